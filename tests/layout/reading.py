#!/usr/bin/env python3
"""reading.py ROOT [--update]: checks the list of essential files in docs/READING.md.

An essential file includes only essential files. The list has at most 44 files, with at most 3,900 lines in all. It states
the lines of each file and the total, which --update corrects; a difference of up to 20 lines is accepted, so that a small
addition to an essential file does not also change the list."""
import os
import re
import sys

MAX_FILES, MAX_LINES, TOLERANCE = 44, 3900, 20
ROW = re.compile(r"^\| `([\w./-]+)` \| (base|reference) \| ([\d,]+) \|", re.M)
TOTAL = re.compile(r"(\d+) files and ([\d,]+) lines")
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*["<]([^">]+)[">]')
MODULES = ("autograd/", "nn/", "optim/", "data/", "train/", "tests/")


def lines_of(path):
    with open(path, encoding="utf-8") as file:
        return file.read().splitlines()


def main():
    root = sys.argv[1]
    page = os.path.join(root, "docs", "READING.md")
    with open(page, encoding="utf-8") as file:
        text = file.read()
    rows = [(name, int(lines.replace(",", ""))) for name, _, lines in ROW.findall(text)]
    files = {name for name, _ in rows}
    violations = []
    if len(files) != len(rows):
        violations.append("docs/READING.md: a file is listed twice")
    sizes = {}
    for name, stated in rows:
        try:
            lines = lines_of(os.path.join(root, name))
        except OSError as error:
            violations.append(f"docs/READING.md: {name}: {error.strerror}")
            continue
        sizes[name] = len(lines)
        if abs(len(lines) - stated) > TOLERANCE:
            violations.append(f"docs/READING.md: {name} has {len(lines)} lines, but the page states {stated}; "
                              "tests/layout/reading.py . --update corrects it")
        for number, line in enumerate(lines, 1):
            included = INCLUDE.match(line)
            if included and included[1].startswith(MODULES) and included[1] not in files:
                violations.append(f"{name}:{number}: an essential file must not include {included[1]}, which is none")
    total = sum(sizes.values())
    if len(files) > MAX_FILES:
        violations.append(f"docs/READING.md: {len(files)} essential files; at most {MAX_FILES} are allowed")
    if total > MAX_LINES:
        violations.append(f"docs/READING.md: {total} lines of essential files; at most {MAX_LINES} are allowed")
    stated = TOTAL.search(text)
    right = f"{len(files)} files and {total:,} lines"
    if not stated or int(stated[1]) != len(files) or abs(int(stated[2].replace(",", "")) - total) > TOLERANCE:
        violations.append(f"docs/READING.md: the total is {right}")
    if sys.argv[2:] == ["--update"]:
        text = ROW.sub(lambda row: row[0].replace(f"| {row[3]} |", f"| {sizes.get(row[1], 0)} |"), text)
        text = TOTAL.sub(right, text, count=1)
        with open(page, "w", encoding="utf-8") as file:
            file.write(text)
        return 0
    print("\n".join(violations) or f"reading: {right}, no violation")
    return 1 if violations else 0


sys.exit(main())
