"""test_docs.py HEED ROOT: the commands of the pages are commands of heed. Checks each command line in a block of code and in
`backticks`: the command exists, its help names the options, the config exists, and `heed show` accepts the overrides. The
commands of a page's blocks `console` print what the page says; they run in a folder with the files of its blocks `python FILE`
and links to the files of the repository. The drawings of README.md and of the gallery come from commands of their page, and all
drawings have colours for dark pages.
tests/install/library_page.py does the same for docs/LIBRARY.md, and docs/course/check.py proves that the blocks of a Chinese
page are those of the English page."""
import functools
import glob
import os
import re
import shlex
import subprocess
import sys
import tempfile

HEED, ROOT = os.path.abspath(sys.argv[1]), sys.argv[2]
sys.path.insert(0, os.path.join(ROOT, "tests/install"))
from library_page import blocks, commands_of, matches  # noqa: E402

PAGES = ["README.md", "CONTRIBUTING.md", *sorted(glob.glob("docs/**/*.md", root_dir=ROOT, recursive=True))]
OF_A_CONFIG = {"train", "show", "bench", "gradcheck", "trace", "plot"}  # sweep: its overrides are lists of values
failures, checked = [], 0


@functools.cache
def heed(*arguments):
    return subprocess.run([HEED, *arguments], cwd=ROOT, capture_output=True, text=True)


def command_lines(text):
    """The lines that call heed, without prompts and comments; a backslash or an indented line continues one."""
    for block in re.findall(r"^```[^\n]*\n(.*?)^```", text, re.S | re.M):
        block = block.replace("\\\n", " ")
        for line in block.splitlines():
            line = re.sub(r"\s#\s.*", "", line)
            if line.startswith("heed:"):  # a message
                continue
            for part in re.split(r"\s\|\s|&&|;\s", line):
                if match := re.match(r"\s*(?:\$ )?(?:\./|build/release/train/)?heed ((?:[a-z]|--).*)", part):
                    yield match[1]
    prose = re.sub(r"^```.*?^```", "", text, flags=re.S | re.M)
    for code in re.findall(r"`(?:\./)?heed ([a-z][^`]*)`", prose):
        yield code.replace("\n", " ")


def check(page, line):
    global checked
    line = line.replace("\\|", "|")
    try:
        words = shlex.split(re.sub(r"[<>].*", "", line))
    except ValueError:  # an apostrophe in a sentence
        words = line.split()
    name = words[0] if words else ""
    if name.startswith("-") or name == "test":  # of the launcher
        return
    usage = heed("help", name)
    checked += 1
    if usage.returncode != 0:
        failures.append(f"{page}: heed {line}: there is no command {name}")
        return
    for word in words[1:]:
        option = re.match(r"\[?(--?[a-z][a-z-]*)", word)
        if option and option[1] not in usage.stdout and option[1] not in ("--help",):
            failures.append(f"{page}: heed {line}: {name} has no option {option[1]}")
    configs = [word for word in words[1:] if word.endswith(".yaml")]
    keys = [word for word in words[1:] if re.match(r"[a-z_]+(\.[a-z_0-9]+)*=", word)]
    for config in configs:
        if config.startswith("configs/") and "NAME" not in config and not os.path.exists(os.path.join(ROOT, config)):
            failures.append(f"{page}: heed {line}: {config} does not exist")
            return
    if name not in OF_A_CONFIG or any(re.search(r"[…N{]|\$|F\b", key) and "{" not in key for key in keys):
        return
    config = next((c for c in configs if c.startswith("configs/") and "NAME" not in c), None)
    if keys and config:
        # heed show runs a step of the model, which takes long with the sizes of a benchmark.
        keys = [re.sub(r"^(bench\.\w+=).*", r"\g<1>1", key) for key in keys]
        if config.startswith("configs/bench/") and not any(key.startswith("model.layers") for key in keys):
            keys.append("model.layers=1")
        shown = heed("show", config, *keys, "--json")
        if shown.returncode != 0:
            failures.append(f"{page}: heed {line}: {shown.stderr.strip()}")


def check_outputs(page, text):
    commands = commands_of(text)
    if not commands:
        return
    with tempfile.TemporaryDirectory() as folder:
        for name in os.listdir(ROOT):
            if name != "runs":  # the commands make their own
                os.symlink(os.path.join(os.path.abspath(ROOT), name), os.path.join(folder, name))
        for kind, name, content in blocks(text):
            if kind == "python" and name:
                with open(os.path.join(folder, name), "a", encoding="utf-8") as file:
                    file.write(content)
        for command, expected in commands:
            line = re.sub(r"^heed\b", shlex.quote(HEED), command)
            printed = subprocess.run(["sh", "-c", line], cwd=folder, capture_output=True, text=True)
            if printed.returncode != 0 or not matches(expected, printed.stdout.rstrip().splitlines()):
                failures.append(f"{page}: {command}: printed\n{printed.stdout}{printed.stderr}")


def check_colours(page, text):
    """Each drawing follows a dark page."""
    text = re.sub(r"^```.*?^```|`[^`\n]*`", "", text, flags=re.S | re.M)
    for path in re.findall(r"!\[[^\]]*\]\((\S+\.svg)\)", text):
        with open(os.path.join(ROOT, os.path.dirname(page), path), encoding="utf-8") as file:
            if "prefers-color-scheme:dark" not in file.read():
                failures.append(f"{page}: {path} has no colours for a dark page")


def check_drawings(page, text):
    """Each drawing of a page is the output of a command on it. Those that need neither data nor a run are drawn again."""
    drawn = {}
    for line in command_lines(text):
        words = shlex.split(line)
        if "--output" in words:
            drawn[words[words.index("--output") + 1]] = words
        elif words[0] == "plot" and len(words) > 1:
            drawn[words[1] + ".svg"] = words
    for path in re.findall(r"!\[[^\]]*\]\((\S+\.svg)\)", text):
        words = drawn.get(os.path.basename(path))
        if not words:
            failures.append(f"{page}: no command of this page draws {path}")
        elif words[0] == "plot" or words[:2] == ["show", "configs/dates.yaml"]:
            with tempfile.TemporaryDirectory() as folder:
                new = os.path.join(folder, "new.svg")
                heed(*(words[:words.index("--output")] if "--output" in words else words), "--output", new)
                with open(os.path.join(ROOT, os.path.dirname(page), path), "rb") as old, open(new, "rb") as file:
                    if old.read() != file.read():
                        failures.append(f"{page}: heed {shlex.join(words)} draws something else than {path}")


for page in PAGES:
    with open(os.path.join(ROOT, page), encoding="utf-8") as file:
        text = file.read()
    for line in command_lines(text):
        check(page, line)
    check_colours(page, text)
    if page != "docs/LIBRARY.md" and not page.endswith("/zh.md"):
        check_outputs(page, text)
    if page in ("README.md", "docs/gallery/README.md"):
        check_drawings(page, text)
if checked < 100:
    failures.append(f"only {checked} commands were found")
print("\n".join(failures) or f"{checked} commands, no failure")
sys.exit(1 if failures else 0)
