#!/usr/bin/python3 -B
"""Checks the commands of heed in the documentation: in blocks and in `code` of the pages.

    commands.py HEED

Each command exists and has the options that the page gives it. Where a command names a config of the repository, the keys that
it overrides exist and have valid values. Commands that only show or draw a config are executed. A word in capitals stands for
anything (RUN, CONFIG, N), as does `…`. The commands of `console` blocks begin with "$ " and print what the page says
(tests/install/library_page.py, which also executes docs/LIBRARY.md).
"""
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/install"))
from library_page import commands_of as console_commands, matches  # noqa: E402

PAGES = ("README.md", "CONTRIBUTING.md", "docs/*.md", "docs/gallery/README.md")
LEFT_OUT = ("docs/CHANGES.md", "docs/LIBRARY.md")  # earlier versions; a page with a test of its own
EXECUTED = ("show", "plot", "trace")  # seconds at most, without data and without a run
WRAPPERS = {"mpirun", "srun", "env", "nice", "timeout"}
ANYTHING = re.compile(r"^[A-Z][A-Z_-]*$|…|^\[|\]$|^<|\||^\.\.\.$")


def commands_of(text):
    """Yields the commands of heed in a page, each as (line number, words)."""
    fence = None
    lines = text.split("\n")
    number = 0
    while number < len(lines):
        start, line = number + 1, lines[number]
        number += 1
        if found := re.match(r"^```(\S*)", line):
            fence = None if fence is not None else found[1]
            continue
        if fence is None:
            if line.startswith("|") or "`" in line:
                # A code span may extend over two lines.
                joined = line + " " + (lines[number] if number < len(lines) and line.count("`") % 2 else "")
                for code in re.findall(r"`([^`]+)`", joined):
                    yield from split(start, code)
            continue
        if fence not in ("", "console", "bash"):
            continue
        while line.endswith("\\") and number < len(lines):
            line = line[:-1] + lines[number].strip()
            number += 1
        yield from split(start, line.removeprefix("$ "))


def split(number, code):
    """The commands of heed in a line of a shell."""
    try:
        words = shlex.split(code, comments=True)
    except ValueError:
        return  # a fragment, such as one with an apostrophe
    for part in parts(words):
        while part and (part[0] in WRAPPERS or part[0].startswith("-") or "=" in part[0] or part[0].isdigit()):
            part = part[1:]
        while part and part[0] not in ("heed", "./heed") and "heed" in part and WRAPPERS & set(words):
            part = part[1:]
        if len(part) > 1 and part[0] in ("heed", "./heed"):
            yield number, part[1:]


def parts(words):
    """The commands that |, &&, ; and so on separate."""
    part = []
    for word in words:
        if word in ("|", "&&", "||", ";", "&", ">") or word.endswith(";"):
            yield part + [word[:-1]] * word.endswith(";")
            part = []
        else:
            part.append(word)
    yield part


class Program:
    """heed in a folder with the configs of the repository."""

    def __init__(self, program, folder):
        self.program, self.folder, self.helps, self.done = program, folder, {}, {}

    def run(self, *words):
        """The status and what was printed."""
        done = subprocess.run([self.program, *words], cwd=self.folder, capture_output=True, text=True, timeout=120, check=False)
        return done.returncode, done.stdout + done.stderr

    def options(self, command):
        """The options of a command, by the page of its help; None if there is no such command."""
        if command not in self.helps:
            status, text = self.run(command, "--help")
            self.helps[command] = set(re.findall(r"(?<![\w-])--?[a-z][a-z0-9-]*", text)) if status == 0 else None
        return self.helps[command]

    def check(self, words):
        """What is wrong with a command; empty: nothing."""
        command, *rest = words
        if command.startswith("-") or command == "test" or ANYTHING.search(command):
            return "" if command in ("--help", "--version", "test", "--check-blas") or ANYTHING.search(command) else f"no option {command}"
        options = self.options(command)
        if options is None:
            return f"no command {command}"
        for word in rest:
            name = word.split("=")[0]
            if re.match(r"^--?[a-z]", name) and name not in options:
                return f"heed {command} has no option {name}"
        if not rest or rest[0].startswith("-") or any(ANYTHING.search(word) for word in rest):
            return ""  # the name of a command, or a pattern
        rest = [word for word in rest if not ANYTHING.search(word.rpartition("=")[2])]
        configs = [word for word in rest if word.endswith(".yaml")]
        if not all((self.folder / config).exists() for config in configs):
            return ""
        if command in EXECUTED and not any(word.startswith("runs/") for word in rest):
            return self.execute([command, *rest])
        keys = [word for word in rest if re.match(r"^[a-z_]+(\.[a-z0-9_]+)*=", word)]
        if command == "sweep":  # one value of each
            keys = [key if re.search(r"=[\[{]", key) else key.split(",")[0] for key in keys]
        return self.execute(["plot", "schedule", *configs, *keys]) if configs else ""  # the fastest that reads them

    def execute(self, words):
        """Executes a command, once."""
        if tuple(words) not in self.done:
            status, text = self.run(*words)
            self.done[tuple(words)] = "" if status == 0 else f"status {status}: {text.strip()[:300]}"
        return self.done[tuple(words)]


def main():
    """Checks the pages."""
    wrong, checked = [], 0
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "configs").symlink_to(ROOT / "configs")
        program = Program(pathlib.Path(sys.argv[1]).resolve(), folder)
        pages = sorted({page for pattern in PAGES for page in ROOT.glob(pattern)} - {ROOT / page for page in LEFT_OUT})
        for page in pages:
            for number, words in commands_of(page.read_text(encoding="utf-8")):
                checked += 1
                if why := program.check(words):
                    wrong.append(f"{page.relative_to(ROOT)}:{number}: heed {' '.join(words)}: {why}")
            for command, expected in console_commands(page.read_text(encoding="utf-8")):
                status, text = program.run(*shlex.split(command)[1:])
                if status or not matches(expected, text.rstrip().splitlines()):
                    wrong.append(f"{page.relative_to(ROOT)}: {command}: status {status}, printed:\n{text}")
    print(*wrong, f"{checked} commands in {len(pages)} pages, {len(wrong)} wrong", sep="\n")
    return int(bool(wrong) or checked < 100)


if __name__ == "__main__":
    sys.exit(main())
