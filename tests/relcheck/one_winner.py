"""Several processes on one run folder: one trains, the others change nothing and exit with 6."""
import os
import pathlib
import signal
import subprocess
import time

from harness import PATIENCE, note, tree
from interrupt import (ENDLESS, broken_lines, copy_run, finish, newest_record, outcome, shell_status, stop,
                       wait_for_step, wait_until)

LOCKED = 6


def command(config, kind, run):
    """The arguments of a command of this kind: train, replace (train --overwrite) or resume."""
    if kind == "resume":
        return ("resume", run)
    return ("train", config, "--run", run, *ENDLESS, *(["--overwrite"] * (kind == "replace")))


def race(ground, kinds, run):
    """Starts all processes at once; returns the winner's index, or None, and the exit statuses of the losers."""
    config = ground.config("synthetic")  # written once: no process reads a partial file
    recorded = newest_record(run)
    processes = [ground.start(*command(config, kind, run)) for kind in kinds]
    limit = time.monotonic() + PATIENCE
    while sum(process.poll() is None for process in processes) > 1 and time.monotonic() < limit:
        time.sleep(1e-3)
    alive = [i for i, process in enumerate(processes) if process.poll() is None]
    if len(alive) == 1:  # the winner must make progress
        if not wait_until(processes[alive[0]], lambda: newest_record(run) not in (0, recorded)):
            alive = []
    statuses = {i: shell_status(process.returncode) for i, process in enumerate(processes)
                if process.returncode is not None}
    for i in alive:
        stop(processes[i], signal.SIGKILL)
    return (alive[0] if len(alive) == 1 else None), statuses


def fair(kinds, winner, statuses):
    """Whether one process trains and the others report a locked folder; a plain train may report an existing run."""
    return winner is not None and all(
        status == LOCKED or (status == 2 and kinds[i] == "train" and "resume" in kinds)
        for i, status in statuses.items())


def races(check, ground):
    """Runs rounds of 2 to 8 processes for each mixture of commands."""
    rounds = 300 if ground.long else 8
    begun = ground.folder("begun")
    process = ground.start(*command(ground.config("synthetic"), "train", begun))
    if not wait_for_step(process, begun, 20):
        raise RuntimeError("race: the run to be resumed ended before step 20")
    stop(process, signal.SIGTERM)
    for name, mixture in (("train", ("train",)), ("resume", ("resume",)), ("train + resume", ("train", "resume")),
                          ("one resume + several train", ("resume",) + ("train",) * 7),
                          ("train --overwrite + resume", ("replace", "resume"))):
        good = total = 0
        for _ in range(rounds):
            count = ground.random.randint(2, 8)
            kinds = [mixture[i % len(mixture)] for i in range(count)]
            ground.random.shuffle(kinds)
            run = copy_run(begun, "raced") if "resume" in mixture else ground.folder("raced")
            winner, statuses = race(ground, kinds, run)
            total += count
            passed = fair(kinds, winner, statuses) and not broken_lines(run, unfinished=True)
            good += passed
            if not passed:
                note(f"{' '.join(kinds)}: winner {winner}, exit statuses {statuses}")
        check(f"{name}: exactly one wins, others exit with 6", f"{good} of {rounds} rounds", "all", good == rounds)
        note(f"{total} processes")


def times(folder):
    """The modification time of every path under a folder."""
    return {str(path): os.lstat(path).st_mtime_ns for path in sorted(pathlib.Path(folder).rglob("*"))}


def untouched(check, ground):
    """Pauses the holder of the lock, so that only the other processes can change a file."""
    run = ground.folder("held")
    config = ground.config("synthetic")
    process = ground.start(*command(config, "train", run))
    if not wait_for_step(process, run, 5):
        raise RuntimeError("held: the run ended before step 5")
    process.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)
    tries = [kind for kind in ("train", "replace", "resume") for _ in range(20 if ground.long else 3)]
    changed, named, statuses = 0, 0, []
    for kind in tries:
        before = tree(run), times(run)
        try:
            done = ground.run(*command(config, kind, run), timeout=PATIENCE)
            statuses.append(done.returncode)
            named += f"process ({process.pid})" in done.stderr
        except subprocess.TimeoutExpired:
            statuses.append(f"{kind} did not exit")
        changed += (tree(run), times(run)) != before
        if statuses[-1] == f"{kind} did not exit":
            break  # further processes would time out as well
    process.send_signal(signal.SIGCONT)
    continued = stop(process, signal.SIGTERM)[0] == 143
    check("locked: losers that changed a file or its time", f"{changed} of {len(tries)}", 0, not changed)
    check("locked: losers that exit with 6", f"{statuses.count(LOCKED)} of {len(tries)}", "all",
          statuses == [LOCKED] * len(tries))
    check("locked: losers that name the holder", f"{named} of {len(tries)}", "all", named == len(tries))
    check("locked: the holder continues", "yes" if continued else "no", "yes", continued)


def stale_locks(check, ground):
    """Kills a process that holds the lock: the next process must resume without help and end with the same bits."""
    reference = ground.train("synthetic", "reference")
    rounds = 100 if ground.long else 10
    good = 0
    for i in range(rounds):
        run = ground.folder("stale")
        process = ground.start("train", ground.config("synthetic"), "--run", run)
        if wait_for_step(process, run, 1 + i * 3 % 35):
            stop(process, signal.SIGKILL)
        if not (run / ".lock").exists():
            raise RuntimeError("stale: the killed process had no lock file")
        good += finish(ground, "synthetic", run)[0] == 0 and outcome(run) == outcome(reference)
    check("locked: resumed at once after SIGKILL", f"{good} of {rounds}", "all", good == rounds)


def measure(check, ground):
    """Runs all checks of this measure."""
    races(check, ground)
    untouched(check, ground)
    stale_locks(check, ground)
