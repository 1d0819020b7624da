#!/usr/bin/env python3
"""test_reading.py ROOT: plants each violation of reading.py in a copy of the essential files; each must be reported."""
import os
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = sys.argv[1]
HERE = os.path.dirname(os.path.abspath(__file__))
TENSOR, PAGE = "autograd/tensor.h", "docs/READING.md"
failures = 0


def run(tree, *options):
    result = subprocess.run([sys.executable, "-B", os.path.join(HERE, "reading.py"), tree, *options],
                            capture_output=True, text=True)
    return result.returncode, result.stdout + result.stderr


def edit(tree, name, change):
    path = os.path.join(tree, name)
    with open(path, encoding="utf-8") as file:
        text = file.read()
    changed = change(text)
    assert changed != text, name
    with open(path, "w", encoding="utf-8") as file:
        file.write(changed)


def planted(message, name, change, update=False):
    """The change must be reported by the message, also if the page states the new lines (update)."""
    global failures
    with tempfile.TemporaryDirectory() as folder:
        tree = os.path.join(folder, "tree")
        shutil.copytree(clean, tree)
        edit(tree, name, change)
        if update:
            run(tree, "--update")
        status, output = run(tree)
        if status == 0 or message not in output:
            failures += 1
            print(f"expected: {message}\nbut got, with status {status}:\n{output}")


with tempfile.TemporaryDirectory() as clean:
    with open(os.path.join(ROOT, PAGE), encoding="utf-8") as file:
        rows = re.findall(r"^\| `([\w./-]+)` \| (?:base|reference) \| ([\d,]+) \|.*\n", file.read(), re.M)
    for name in [PAGE] + [name for name, _ in rows]:
        os.makedirs(os.path.dirname(os.path.join(clean, name)), exist_ok=True)
        shutil.copy(os.path.join(ROOT, name), os.path.join(clean, name))
    status, output = run(clean)
    if status != 0:
        failures += 1
        print("the files as they are are rejected:\n" + output)
    total = sum(len(open(os.path.join(clean, name), encoding="utf-8").readlines()) for name, _ in rows)

    planted(f"{TENSOR}:1: an essential file must not include autograd/tape/observer.h, which is none", TENSOR,
            lambda text: '#include "autograd/tape/observer.h"\n' + text)
    planted("must not include nn/layers/block.h, which is none", "nn/reference/transformer.h",
            lambda text: text + "  #  include <nn/layers/block.h>\n")
    planted("lines, but the page states", PAGE,
            lambda text: re.sub(rf"(`{TENSOR}` \| base) \| \d+", r"\1 | 100", text))
    planted("docs/READING.md: 3901 lines of essential files; at most 3900 are allowed", TENSOR,
            lambda text: text + "\n" * (3901 - total), update=True)
    planted("docs/READING.md: no/such/file.h: No such file or directory", PAGE,
            lambda text: text + "\n| `no/such/file.h` | base | 1 | |\n")
    planted("45 essential files; at most 44 are allowed", PAGE,
            lambda text: text + "".join(f"\n| `no/{i}.h` | base | 1 | |" for i in range(45 - len(rows))) + "\n")
    planted("docs/READING.md: a file is listed twice", PAGE, lambda text: text + f"\n| `{TENSOR}` | base | 1 | |\n")
    planted("docs/READING.md: the total is", PAGE, lambda text: re.sub(r"\d+ files and", "7 files and", text, count=1))
    planted("docs/READING.md: the total is", PAGE, lambda text: re.sub(r"files and 3,\d+", "files and 3,700", text, count=1))
    status, output = run(clean, "--update")
    if status != 0 or run(clean)[0] != 0:
        failures += 1
        print("--update does not accept a clean tree:\n" + output)

sys.exit(1 if failures else 0)
