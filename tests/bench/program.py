"""Programs that print a JSON object."""
import json
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Failure(Exception):
    pass


def run(command):
    """Runs a program in heed's folder and returns the JSON object that it prints."""
    try:
        done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    except OSError as error:
        raise Failure(f"{command[0]}: {error.strerror}")
    if done.returncode != 0:
        raise Failure(f"{' '.join(map(str, command))}: exit code {done.returncode}")
    try:  # a report may span several lines
        return json.loads(done.stdout[done.stdout.index("{"):])
    except ValueError:
        raise Failure(f"{' '.join(map(str, command))}: no JSON object on stdout")
