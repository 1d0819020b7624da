"""Helpers that start, resume, watch and stop runs and read their files."""
import json
import os
import pathlib
import shutil
import time

import harness
from harness import PATIENCE
from shim import Shim

# Enough steps that the run is always stopped or killed before its end.
ENDLESS = ("train.steps=100000", "train.save_every=100000", "train.validate_every=100000")


def shell_status(returncode):
    """The exit status as a shell shows it: 143 for a process that SIGTERM ended."""
    return returncode if returncode >= 0 else 128 - returncode


def resume_run(ground, kind, run, *overrides, **keywords):
    """Starts train if the run does not exist, otherwise resume."""
    if (run / "config.yaml").exists():
        return ground.start("resume", run, *overrides, **keywords)
    return ground.start("train", ground.config(kind), "--run", run, *overrides, **keywords)


def newest_record(run):
    """The step of the last complete line of metrics.jsonl, or 0."""
    try:
        with open(run / "metrics.jsonl", "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - 4096))
            lines = file.read().split(b"\n")[:-1]
        return json.loads(lines[-1])["step"] if lines else 0
    except (FileNotFoundError, ValueError):  # no file yet, or truncated during the read
        return 0


def linked_step(run, link="last"):
    """The step that a link of the run points to, or 0."""
    try:
        return int(os.readlink(run / link).rsplit("-", 1)[-1])
    except FileNotFoundError:
        return 0


def names_in(folder):
    """The names in a folder; none if the folder does not exist."""
    try:
        return os.listdir(folder)
    except FileNotFoundError:
        return []


def wait_until(process, happened, pause=3e-4):
    """Waits until happened() is true; returns False if the process ends first. Raises RuntimeError after PATIENCE
    seconds."""
    limit = time.monotonic() + PATIENCE
    while not happened():
        if process.poll() is not None:
            return False
        if time.monotonic() > limit:
            process.kill()
            process.wait()
            raise RuntimeError(f"{process.args}: timed out after {PATIENCE} s")
        time.sleep(pause)
    return True


def wait_for_step(process, run, step):
    """Waits until this step or a later one is in the metrics; False if the process ends first."""
    return wait_until(process, lambda: newest_record(run) >= step)


def wait_for_link(process, run, step):
    """Waits until `last` points to the checkpoint of a step; False if the process ends first."""
    return wait_until(process, lambda: linked_step(run) == step, 5e-5)


def let_run(process, seconds, pause=3e-4):
    """Lets the process run for some time; False if it ends first."""
    limit = time.monotonic() + seconds
    return wait_until(process, lambda: time.monotonic() >= limit, pause)


def stop(process, number):
    """Sends a signal; returns the exit status as a shell shows it, and the seconds until the exit."""
    began = time.monotonic()
    process.send_signal(number)
    process.wait(PATIENCE)
    return shell_status(process.returncode), time.monotonic() - began


def stop_watching(process, number, count):
    """Like stop(), and also returns count() just after the signal and count() after the exit."""
    began = time.monotonic()
    process.send_signal(number)
    before = count()
    process.wait(PATIENCE)
    return shell_status(process.returncode), time.monotonic() - began, before, count()


def stopped_at(ground, kind, run, step, number, *overrides):
    """Continues a run, which sends itself a signal when it records this step or a later one: the result does not
    depend on timing. Returns the exit status as a shell shows it."""
    environment = Shim(ground).signals(run, max(step, newest_record(run) + 1), number)
    process = resume_run(ground, kind, run, *overrides, env=environment)
    return shell_status(process.wait(PATIENCE))


def finish(ground, kind, run, *overrides):
    """Continues a run to its end; returns the exit status and standard error."""
    process = resume_run(ground, kind, run, *overrides, stderr=-1)
    stderr = process.communicate(timeout=PATIENCE)[1]
    return shell_status(process.returncode), stderr


def status_line(status, stderr):
    """The exit status and the first lines of standard error, on one line."""
    return f"exit {status}: {' | '.join(stderr.splitlines()[:3])}"


def broken_lines(run, unfinished=False):
    """The number of lines of metrics.jsonl that are not complete records. With `unfinished`, a last line without a line
    ending does not count."""
    try:
        lines = (run / "metrics.jsonl").read_bytes().split(b"\n")
    except FileNotFoundError:
        return 0
    tail = lines.pop()
    broken = 0 if unfinished or not tail else 1
    for line in lines:
        try:
            broken += not isinstance(json.loads(line)["step"], int)
        except (ValueError, KeyError, TypeError):
            broken += 1
    return broken


def outcome(run):
    """The parts in which an interrupted run must equal an uninterrupted one: weights, moments, metrics, links,
    averaged weights."""
    weights = run / "average" / "model.safetensors"
    mean = harness.tree(weights.parent) if weights.exists() else {}
    return (harness.digest(run), linked_step(run, "last"), linked_step(run, "best"),
            mean.get(str(weights)))


def copy_run(run, name):
    """Copies a run folder next to the original; links remain links."""
    copy = pathlib.Path(run).with_name(name)
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(run, copy, symlinks=True)
    return copy
