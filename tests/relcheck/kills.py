"""SIGKILL at random moments, half of them aimed at saves: the run resumes and ends with the same bits."""
import collections
import os
import re
import shutil
import signal
import time

from harness import note
from interrupt import (broken_lines, copy_run, finish, let_run, linked_step, names_in, newest_record, outcome,
                       resume_run, stop, status_line, wait_for_link, wait_until)

KINDS = ("seq2seq", "lm", "synthetic")
STEPS = 20
# A checkpoint of 7 MB every step, with pruning: saves take about half of the time.
OVERRIDES = (f"train.steps={STEPS}", "train.save_every=1", "train.validate_every=3", "model.d_model=128",
             "model.d_ff=512")
CHAIN = 5  # maximum number of kills of one run


def traces_of_saving(run):
    """The traces of unfinished saves: hidden names, or a step newer than `last`."""
    traces = set()
    for folder in (run, run / "checkpoints"):
        for name in names_in(folder):
            if re.fullmatch(r"\.(step-\d+|last|best)\.\w+", name):
                status = os.lstat(folder / name)
                traces.add((name, status.st_ino, status.st_mtime_ns))
    newest = newest_step(run)
    return traces | ({newest} if newest > linked_step(run) else set())


def newest_step(run):
    """The newest step that has a checkpoint, or 0."""
    return max((int(name[5:]) for name in names_in(run / "checkpoints") if name.startswith("step-")), default=0)


def written(path):
    """The modification time of a file or folder, or None if it does not exist."""
    try:
        return os.lstat(path).st_mtime_ns
    except FileNotFoundError:
        return None


class Aim:
    """Chooses when to kill. `seconds`, `save`: the duration of a reference run and of a save."""

    def __init__(self, random, seconds, save):
        self.random, self.seconds, self.save = random, seconds, save

    def any_moment(self, process, run):
        """Waits for a uniformly random moment before the expected end of the process; False if it ends first."""
        left = self.seconds * (1 - 0.9 * linked_step(run) / STEPS)
        return let_run(process, self.random.uniform(0, left))

    def at_the_start(self, process, _):
        """Waits for a random moment while the run is being created or read."""
        return let_run(process, self.random.uniform(0, 0.05))

    def in_a_save(self, process, run):
        """Waits for a random moment in one of the next saves: during the writes, or between renaming and linking."""
        name = f"step-{newest_step(run) + self.random.randint(1, 3):08}"
        done, begun = run / "checkpoints" / name, run / "checkpoints" / f".{name}.tmp"
        if self.random.random() < 0.3:  # the checkpoint has its final name, but no link yet
            return wait_until(process, done.exists, 2e-5)
        older = written(begun)  # a folder left by an earlier kill
        if not wait_until(process, lambda: written(begun) not in (None, older), 5e-5):
            return False
        return let_run(process, self.random.uniform(0, self.save), 5e-5)


def timed(ground, kind):
    """Trains a run without interruption. Returns the run, its duration and the mean duration of a save, in seconds."""
    run = ground.folder(f"reference-{kind}")
    began = time.monotonic()
    process = resume_run(ground, kind, run, *OVERRIDES)
    samples = saving = 0
    while process.poll() is None:
        samples += 1
        saving += any(name.startswith(".step-") for name in names_in(run / "checkpoints"))
        time.sleep(2e-4)
    if process.returncode != 0:
        raise RuntimeError(f"{kind}: exit {process.returncode}")
    seconds = time.monotonic() - began
    return run, seconds, seconds * saving / samples / STEPS


def lost_steps(stderr, before):
    """Whether a resumed run continued from an earlier checkpoint than the reported one."""
    found = re.search(r"(?:continuing from|already finished, at) step (\d+)|no checkpoint", stderr)
    return found is not None and int(found[1] or 0) < before


def killed_chain(ground, kind, run, aim, tally):
    """Kills one run up to CHAIN times, resumes it after each kill, and finally runs it to its end. Returns whether it
    ended with exit status 0."""
    for _ in range(CHAIN):
        before, records, traces = linked_step(run), written(run / "metrics.jsonl"), traces_of_saving(run)
        words = ground.path / "words"
        with open(words, "wb") as file:
            process = resume_run(ground, kind, run, *OVERRIDES, stderr=file)
            choice = tally["aims"] % 8
            tally["aims"] += 1
            kill_when = aim.in_a_save if choice % 2 else aim.any_moment if choice else aim.at_the_start
            alive = kill_when(process, run)
            status = stop(process, signal.SIGKILL)[0] if alive else process.wait()
        stderr = words.read_text(errors="replace")
        tally["lost"] += lost_steps(stderr, before)
        tally["torn"] += broken_lines(run, unfinished=True)
        if status != 128 + signal.SIGKILL:
            tally["refused"] += status != 0
            if status != 0:
                note(f"{kind}: {status_line(status, stderr)}")
            break
        tally["kills"] += 1
        tally["in a save"] += not traces_of_saving(run) <= traces
        tally["starting"] += written(run / "metrics.jsonl") == records or newest_record(run) <= before
    before = linked_step(run)
    status, stderr = finish(ground, kind, run, *OVERRIDES)
    tally["lost"] += lost_steps(stderr, before)
    tally["torn"] += broken_lines(run)
    tally["refused"] += status != 0
    if status != 0:
        note(f"{kind}: {status_line(status, stderr)}")
    return status == 0


def killed_runs(check, ground):
    """Kills runs until the numbers of kills, in total and of each kind, suffice; on a busy machine, more kills miss
    their target."""
    wanted = 2000 if ground.long else 40
    wanted_of = {"kills": wanted, "in a save": 0.4 * wanted, "starting": 0.05 * wanted}
    reference, aims = {}, {}
    for kind in KINDS:
        run, seconds, save = timed(ground, kind)
        reference[kind], aims[kind] = outcome(run), Aim(ground.random, seconds, save)
    tally = collections.Counter()
    while any(tally[what] < minimum for what, minimum in wanted_of.items()) and tally["chains"] < 3 * wanted:
        kind = KINDS[tally["chains"] % len(KINDS)]
        run = ground.folder("killed")
        ended = killed_chain(ground, kind, run, aims[kind], tally)
        same = ended and outcome(run) == reference[kind]
        if ended and not same:
            parts = [name for name, a, b in zip(("digest", "last", "best", "mean"), outcome(run), reference[kind])
                     if a != b]
            note(f"{kind}: killed run {tally['chains']} differs from the reference in: {', '.join(parts)}")
        tally["chains"] += 1
        tally["equal"] += same
    kills, chains = max(tally["kills"], 1), tally["chains"]
    check("SIGKILL: kills, each resumed without manual cleanup", kills, f">= {wanted}",
          kills >= wanted and not tally["refused"])
    check("SIGKILL: results equal to the uninterrupted run's", f"{tally['equal']} of {chains} runs", "all",
          tally["equal"] == chains)
    for what, name in (("in a save", "kills during a save"), ("starting", "kills during start or resume")):
        check(f"SIGKILL: {name}", f"{tally[what]}, {100 * tally[what] / kills:.0f} %", f">= {wanted_of[what]:.0f}",
              tally[what] >= wanted_of[what])
    check("SIGKILL: reported checkpoints lost", tally["lost"], 0, not tally["lost"])
    check("SIGKILL: broken lines in metrics.jsonl before the last", tally["torn"], 0, not tally["torn"])


def between_rename_and_links(check, ground):
    """Simulates a kill between the renaming of a checkpoint and the update of `last` and `best`."""
    reference = ground.train("synthetic", "reference", "train.keep=4")
    run = copy_run(reference, "unlinked")
    for link, step in (("last", 30), ("best", 20)):
        (run / link).unlink()
        os.symlink(f"checkpoints/step-{step:08}", run / link)
    if linked_step(reference, "best") != 40 or not (run / "best").exists():
        raise RuntimeError("the last checkpoint of this run should be its best")
    lines = (run / "metrics.jsonl").read_text().splitlines(keepends=True)
    (run / "metrics.jsonl").write_text("".join(line for line in lines if '"kind":"test"' not in line))
    status, stderr = finish(ground, "synthetic", run)
    same = status == 0 and outcome(run) == outcome(reference)
    if not same:
        note(f"best is step {linked_step(run, 'best')}, last {linked_step(run)}; {status_line(status, stderr)}")
    check("SIGKILL: between renaming and linking a checkpoint", "equal" if same else "differs", "equal", same)


def half_replaced(check, ground):
    """Simulates a kill while --overwrite clears the older run, whose checkpoints the new run must not use."""
    reference = outcome(ground.train("seq2seq", "reference"))
    good = 0
    for arguments in (("--overwrite",), ()):
        run = ground.train("seq2seq", "replaced", "seed=6")
        (run / "config.yaml").unlink()  # clearing begins with this file
        process = ground.start("train", ground.config("seq2seq"), "--run", run, *arguments)
        if wait_for_link(process, run, 10):
            stop(process, signal.SIGKILL)
        if process.wait() == 2:  # refused
            good += 1
            continue
        status, stderr = finish(ground, "seq2seq", run)
        same = status == 0 and outcome(run) == reference
        good += same
        if not same:
            note(f"train {' '.join(arguments)}: {status_line(status, stderr)}")
    check("SIGKILL: while --overwrite clears a run", f"{good} of 2 equal", "all", good == 2)


def killed_while_replacing(check, ground):
    """Kills train --overwrite at random moments; the repeated command must produce the result of an
    undisturbed run."""
    reference = outcome(ground.train("seq2seq", "reference"))
    older = ground.train("seq2seq", "older", "seed=6")
    rounds = 100 if ground.long else 4
    good = 0
    for _ in range(rounds):
        run = copy_run(older, "replaced")
        command = ("train", ground.config("seq2seq"), "--run", run, "--overwrite")
        process = ground.start(*command)
        if wait_until(process, lambda path=run / "config.yaml": not path.exists(), 1e-5):
            time.sleep(ground.random.uniform(0, 0.01))
            stop(process, signal.SIGKILL)
        done = ground.run(*command)
        good += done.returncode == 0 and outcome(run) == reference
        if done.returncode != 0:
            note(status_line(done.returncode, done.stderr))
    check("SIGKILL: --overwrite, killed and repeated", f"{good} of {rounds} equal", "all", good == rounds)


def measure(check, ground):
    """Runs all checks of this measure."""
    killed_runs(check, ground)
    between_rename_and_links(check, ground)
    half_replaced(check, ground)
    killed_while_replacing(check, ground)
    for name in [f"reference-{kind}" for kind in KINDS] + ["killed", "reference", "unlinked", "replaced", "older"]:
        shutil.rmtree(ground.path / name, ignore_errors=True)
