"""Runs programs, by default in heed's folder."""
import json
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Failure(Exception):
    pass


def output(command, quiet=False, cwd=ROOT):
    """The standard output of a program. Its messages go to the terminal or, if `quiet`, into the Failure."""
    command = list(map(str, command))
    try:
        done = subprocess.run(command, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE if quiet else None,
                              text=True, errors="replace")
    except OSError as error:
        raise Failure(f"{command[0]}: {error.strerror}")
    if done.returncode != 0:
        raise Failure(f"{' '.join(command)}: exit code {done.returncode}" + (f"\n{done.stderr}" if quiet else ""))
    return done.stdout


def report(command, quiet=False):
    """The JSON object that a program prints, possibly in several lines."""
    text = output(command, quiet)
    try:
        return json.loads(text[text.index("{"):])
    except ValueError:
        raise Failure(f"{' '.join(map(str, command))}: no JSON object on stdout")
