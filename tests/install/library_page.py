"""Compiles and runs the programs of docs/LIBRARY.md against an installed heed.

    library_page.py PAGE PREFIX COMPILER [FLAG …]

The page's blocks, by the words after the three backquotes:

    cpp FILE, cmake FILE, python FILE
                           appended to FILE, with an empty line between two blocks of one file
    console                lines that begin with "$ " are commands, other lines their output, in which … matches any
                           text and a line that consists of … matches any lines

All files are written first; then the commands run in the order of the page, in one shell, and must succeed. $HOME/.local,
the prefix in the page, is a link to PREFIX; g++ is COMPILER with the flags.
"""
import fnmatch
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

TOGETHER = (("linear.cpp", "reverse.cpp"), 60)  # programs, and the maximum of their total number of lines
PROMPT = "$ "
ANY = "…"


def blocks(page):
    """Yields (kind, file or "", text) of each block with a language."""
    for found in re.finditer(r"^```(cpp|cmake|python|console) ?(\S*)\n(.*?)^```$", page, re.DOTALL | re.MULTILINE):
        yield found[1], found[2], found[3]


def files_of(page):
    files = {}
    for kind, name, text in blocks(page):
        if kind == "console":
            continue
        if not name:
            raise SystemExit(f"a {kind} block names no file:\n{text}")
        files.setdefault(name, []).append(text)
    return {name: "\n".join(parts) for name, parts in files.items()}


def commands_of(page):
    """The commands of the page in order, as (command, expected lines of output)."""
    commands = []
    for kind, _, text in blocks(page):
        if kind == "console":
            for line in text.splitlines():
                if line.startswith(PROMPT):
                    commands.append((line.removeprefix(PROMPT), []))
                else:
                    commands[-1][1].append(line)
    return commands


def matches(expected, printed):
    """Whether the printed lines match the expected lines."""
    if not expected:
        return not printed
    if expected[0] == ANY:
        return any(matches(expected[1:], printed[skipped:]) for skipped in range(len(printed) + 1))
    pattern = "".join("*" if letter == ANY else f"[{letter}]" if letter in "[*?" else letter for letter in expected[0])
    return bool(printed) and fnmatch.fnmatchcase(printed[0], pattern) and matches(expected[1:], printed[1:])


def run(shell, command):
    """Runs a command in the shell; returns its status and the lines it prints."""
    end = "the command has ended with status"
    shell.stdin.write(f"{command}\nstatus=$?; echo; echo {end} $status\n")
    shell.stdin.flush()
    lines = []
    for line in shell.stdout:
        if line.startswith("heed: warning: OpenBLAS runs its kernel"):
            continue  # depends on the machine
        lines.append(re.sub(r"\x1b\[[0-9;]*m", "", line.rstrip("\n")))  # removes colours
        if lines[-1].startswith(end):
            break
    else:
        raise SystemExit(f"$ {command}\nthe shell has ended:\n" + "\n".join(lines))
    status = int(lines.pop().split()[-1])
    while lines and not lines[-1]:
        lines.pop()
    return status, lines


def start_shell(folder, prefix, compiler, flags):
    """Starts a shell in folder/work, in which $HOME/.local is the prefix and g++ is the compiler with its flags."""
    tools = folder / "tools"
    tools.mkdir()
    (tools / "g++").write_text(f'#!/bin/sh\nexec {shlex.quote(compiler)} {flags} "$@"\n')
    (tools / "g++").chmod(0o755)
    home = folder / "home"
    home.mkdir()
    (home / ".local").symlink_to(prefix)
    environment = os.environ | {"HOME": str(home), "PATH": f"{tools}:{os.environ['PATH']}", "CXX": compiler,
                                "CXXFLAGS": flags, "LC_ALL": "C.UTF-8"}
    return subprocess.Popen(["sh"], cwd=folder / "work", env=environment, text=True, stdin=subprocess.PIPE,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def main():
    page, prefix, compiler, *flags = sys.argv[1:]
    page = pathlib.Path(page).read_text()
    files = files_of(page)
    names, max_lines = TOGETHER
    lines = {name: files[name].count("\n") for name in names}
    if sum(lines.values()) > max_lines:
        raise SystemExit(f"the programs have more than {max_lines} lines together: {lines}")
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "work").mkdir()
        for name, text in files.items():
            (folder / "work" / name).write_text(text)
        shell = start_shell(folder, prefix, compiler, " ".join(flags))
        for command, expected in commands_of(page):
            status, printed = run(shell, command)
            if status or not matches(expected, printed):
                shell.kill()
                raise SystemExit("\n".join([f"$ {command}", f"exit status {status}", "expected:", *expected, "printed:",
                                            *printed]))
        shell.stdin.close()
        shell.wait()
    print(f"library page: {len(files)} files, {len(commands_of(page))} commands; {lines}, together "
          f"{sum(lines.values())} of {max_lines} lines")


if __name__ == "__main__":
    main()
