"""Interrupted runs: started or resumed, watched, stopped, and the files they leave."""
import json
import os
import pathlib
import shutil
import time

import harness
from harness import PATIENCE
from shim import Shim

# More steps than anyone waits for: a run that is stopped, or killed, before its end.
ENDLESS = ("train.steps=100000", "train.save_every=100000", "train.validate_every=100000")


def shell_status(returncode):
    """The exit status as a shell shows it: 143 for a process that SIGTERM ended."""
    return returncode if returncode >= 0 else 128 - returncode


def go_on(ground, kind, run, *overrides, **keywords):
    """Starts what a user would type next: train where there is no run yet, then resume."""
    if (run / "config.yaml").exists():
        return ground.start("resume", run, *overrides, **keywords)
    return ground.start("train", ground.config(kind), "--run", run, *overrides, **keywords)


def newest_record(run):
    """The step of the last whole line of metrics.jsonl, or 0."""
    try:
        with open(run / "metrics.jsonl", "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - 4096))
            lines = file.read().split(b"\n")[:-1]
        return json.loads(lines[-1])["step"] if lines else 0
    except (FileNotFoundError, ValueError):  # not begun; or shorter while it was read
        return 0


def linked_step(run, link="last"):
    """The step that a link of the run points to, or 0."""
    try:
        return int(os.readlink(run / link).rsplit("-", 1)[-1])
    except FileNotFoundError:
        return 0


def names_in(folder):
    """The names in a folder, which may be missing."""
    try:
        return os.listdir(folder)
    except FileNotFoundError:
        return []


def wait_until(process, happened, pause=3e-4):
    """Waits until happened(); False where the process ended first."""
    limit = time.monotonic() + PATIENCE
    while not happened():
        if process.poll() is not None:
            return False
        if time.monotonic() > limit:
            process.kill()
            process.wait()
            raise RuntimeError(f"{process.args}: waited {PATIENCE} s in vain")
        time.sleep(pause)
    return True


def wait_for_step(process, run, step):
    """Waits until a step is in the metrics; False where the process ended first."""
    return wait_until(process, lambda: newest_record(run) >= step)


def wait_for_link(process, run, step):
    """Waits until `last` points to the checkpoint of a step; False where the process ended first."""
    return wait_until(process, lambda: linked_step(run) == step, 5e-5)


def let_run(process, seconds, pause=3e-4):
    """Lets it run for some time; False where it ended first."""
    limit = time.monotonic() + seconds
    return wait_until(process, lambda: time.monotonic() >= limit, pause)


def stop(process, number):
    """Sends a signal; returns the exit status as a shell shows it, and the seconds it took."""
    began = time.monotonic()
    process.send_signal(number)
    process.wait(PATIENCE)
    return shell_status(process.returncode), time.monotonic() - began


def stop_watching(process, number, count):
    """The same, and what count() said just after the signal, and in the end."""
    began = time.monotonic()
    process.send_signal(number)
    before = count()
    process.wait(PATIENCE)
    return shell_status(process.returncode), time.monotonic() - began, before, count()


def stopped_at(ground, kind, run, step, number, *overrides):
    """Goes on with a run until a signal meets it as it records this step, or a later one: on any machine, busy or
    not. Returns the exit status as a shell shows it."""
    environment = Shim(ground).signals(run, max(step, newest_record(run) + 1), number)
    process = go_on(ground, kind, run, *overrides, env=environment)
    return shell_status(process.wait(PATIENCE))


def finish(ground, kind, run, *overrides):
    """Goes on to the end of a run; returns the exit status and what was said."""
    process = go_on(ground, kind, run, *overrides, stderr=-1)
    said = process.communicate(timeout=PATIENCE)[1]
    return shell_status(process.returncode), said


def told(status, said):
    """The beginning of what a process said, in a line."""
    return f"exit {status}: {' | '.join(said.splitlines()[:3])}"


def broken_lines(run, unfinished=False):
    """How many lines of metrics.jsonl are not whole records; `unfinished`: but for the last one."""
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
    """What an interrupted run shares with the one that was not: weights, moments, metrics, links."""
    weights = run / "average" / "model.safetensors"
    mean = harness.tree(weights.parent) if weights.exists() else {}
    return (harness.digest(run), linked_step(run, "last"), linked_step(run, "best"),
            mean.get(str(weights)))


def copy_run(run, name):
    """A copy of a run folder beside it, links kept."""
    copy = pathlib.Path(run).with_name(name)
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(run, copy, symlinks=True)
    return copy
