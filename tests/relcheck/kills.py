"""SIGKILL at any moment, half of them aimed at saves: the run resumes, and ends with the same bits."""
import collections
import os
import re
import shutil
import signal
import time

from harness import note
from interrupt import (broken_lines, copy_run, finish, go_on, let_run, linked_step, names_in, newest_record,
                       outcome, stop, told, wait_for_link, wait_until)

KINDS = ("seq2seq", "lm", "synthetic")
STEPS = 20
# A checkpoint every step, of 7 MB, and the oldest pruned: about half of the time belongs to saves.
OVERRIDES = (f"train.steps={STEPS}", "train.save_every=1", "train.validate_every=3", "model.d_model=128",
             "model.d_ff=512")
CHAIN = 5  # kills on the way of one run


def traces_of_saving(run):
    """What checkpoints in the making have left: hidden names, or a step that `last` does not know."""
    traces = set()
    for folder in (run, run / "checkpoints"):
        for name in names_in(folder):
            if re.fullmatch(r"\.(step-\d+|last|best)\.\w+", name):
                about = os.lstat(folder / name)
                traces.add((name, about.st_ino, about.st_mtime_ns))
    newest = newest_step(run)
    return traces | ({newest} if newest > linked_step(run) else set())


def newest_step(run):
    """The newest step that has a checkpoint, or 0."""
    return max((int(name[5:]) for name in names_in(run / "checkpoints") if name.startswith("step-")), default=0)


def written(path):
    """When a file or folder was last written to; none where it is not there."""
    try:
        return os.lstat(path).st_mtime_ns
    except FileNotFoundError:
        return None


class Aim:
    """Chooses when to kill. `seconds`, `save`: of a whole run and of one of its saves."""

    def __init__(self, random, seconds, save):
        self.random, self.seconds, self.save = random, seconds, save

    def any_moment(self, process, run):
        """Uniformly from the start to the expected end of the process; false: it ended before."""
        left = self.seconds * (1 - 0.9 * linked_step(run) / STEPS)
        return let_run(process, self.random.uniform(0, left))

    def at_the_start(self, process, _):
        """While the run is made or read."""
        return let_run(process, self.random.uniform(0, 0.05))

    def in_a_save(self, process, run):
        """Uniformly within one of the next saves: first of the files, then of names and links."""
        name = f"step-{newest_step(run) + self.random.randint(1, 3):08}"
        done, begun = run / "checkpoints" / name, run / "checkpoints" / f".{name}.tmp"
        if self.random.random() < 0.3:  # the new name is there, the links are still to come
            return wait_until(process, done.exists, 2e-5)
        older = written(begun)  # what an earlier kill has left
        if not wait_until(process, lambda: written(begun) not in (None, older), 5e-5):
            return False
        return let_run(process, self.random.uniform(0, self.save), 5e-5)


def timed(ground, kind):
    """An uninterrupted run, its seconds, and the mean seconds of a save."""
    run = ground.folder(f"whole-{kind}")
    began = time.monotonic()
    process = go_on(ground, kind, run, *OVERRIDES)
    looks = saving = 0
    while process.poll() is None:
        looks += 1
        saving += any(name.startswith(".step-") for name in names_in(run / "checkpoints"))
        time.sleep(2e-4)
    if process.returncode != 0:
        raise RuntimeError(f"{kind}: exit {process.returncode}")
    seconds = time.monotonic() - began
    return run, seconds, seconds * saving / looks / STEPS


def lost_steps(said, before):
    """Whether a resumed run went on from an earlier checkpoint than the one it had reported."""
    found = re.search(r"(?:continuing from|finished already, at) step (\d+)|no checkpoint", said)
    return found is not None and int(found[1] or 0) < before


def killed_chain(ground, kind, run, aim, tally):
    """One run, killed up to CHAIN times and gone on with after each, until it comes to its end."""
    for _ in range(CHAIN):
        before, records, traces = linked_step(run), written(run / "metrics.jsonl"), traces_of_saving(run)
        words = ground.path / "words"
        with open(words, "wb") as file:
            process = go_on(ground, kind, run, *OVERRIDES, stderr=file)
            choice = tally["aims"] % 8
            tally["aims"] += 1
            kill_when = aim.in_a_save if choice % 2 else aim.any_moment if choice else aim.at_the_start
            alive = kill_when(process, run)
            status = stop(process, signal.SIGKILL)[0] if alive else process.wait()
        said = words.read_text(errors="replace")
        tally["lost"] += lost_steps(said, before)
        tally["torn"] += broken_lines(run, unfinished=True)
        if status != 128 + signal.SIGKILL:
            tally["refused"] += status != 0
            if status != 0:
                note(f"{kind}: {told(status, said)}")
            break
        tally["kills"] += 1
        tally["in a save"] += not traces_of_saving(run) <= traces
        tally["starting"] += written(run / "metrics.jsonl") == records or newest_record(run) <= before
    before = linked_step(run)
    status, said = finish(ground, kind, run, *OVERRIDES)
    tally["lost"] += lost_steps(said, before)
    tally["torn"] += broken_lines(run)
    tally["refused"] += status != 0
    if status != 0:
        note(f"{kind}: {told(status, said)}")
    return status == 0


def killed_runs(check, ground):
    """Chains of kills until there are enough, and enough where they were aimed at: a busy machine makes more of them
    miss."""
    wanted = 2000 if ground.long else 100
    wanted_of = {"kills": wanted, "in a save": 0.4 * wanted, "starting": 0.05 * wanted}
    whole, aims = {}, {}
    for kind in KINDS:
        run, seconds, save = timed(ground, kind)
        whole[kind], aims[kind] = outcome(run), Aim(ground.random, seconds, save)
    tally = collections.Counter()
    while any(tally[what] < least for what, least in wanted_of.items()) and tally["chains"] < 3 * wanted:
        kind = KINDS[tally["chains"] % len(KINDS)]
        run = ground.folder("killed")
        ended = killed_chain(ground, kind, run, aims[kind], tally)
        same = ended and outcome(run) == whole[kind]
        if ended and not same:
            parts = [name for name, a, b in zip(("digest", "last", "best", "mean"), outcome(run), whole[kind])
                     if a != b]
            note(f"{kind}: chain {tally['chains']}: {' and '.join(parts)} differ")
        tally["chains"] += 1
        tally["equal"] += same
    kills, chains = max(tally["kills"], 1), tally["chains"]
    check("SIGKILL: times, each resumed without cleaning up", kills, f">= {wanted}",
          kills >= wanted and not tally["refused"])
    check("SIGKILL: ends equal to the uninterrupted run's", f"{tally['equal']} of {chains} runs", "all",
          tally["equal"] == chains)
    for what, name in (("in a save", "kills that hit a save"), ("starting", "kills while starting or resuming")):
        check(f"SIGKILL: {name}", f"{tally[what]}, {100 * tally[what] / kills:.0f} %", f">= {wanted_of[what]:.0f}",
              tally[what] >= wanted_of[what])
    check("SIGKILL: reported checkpoints lost", tally["lost"], 0, not tally["lost"])
    check("SIGKILL: broken lines but the last in metrics.jsonl", tally["torn"], 0, not tally["torn"])


def between_rename_and_links(check, ground):
    """A kill after a checkpoint has got its name and before `last` and `best` point to it."""
    whole = ground.train("synthetic", "whole", "train.keep=4")
    run = copy_run(whole, "unlinked")
    for link, step in (("last", 30), ("best", 20)):
        (run / link).unlink()
        os.symlink(f"checkpoints/step-{step:08}", run / link)
    if linked_step(whole, "best") != 40 or not (run / "best").exists():
        raise RuntimeError("the last checkpoint of this run should be its best")
    lines = (run / "metrics.jsonl").read_text().splitlines(keepends=True)
    (run / "metrics.jsonl").write_text("".join(line for line in lines if '"kind":"test"' not in line))
    status, said = finish(ground, "synthetic", run)
    same = status == 0 and outcome(run) == outcome(whole)
    if not same:
        note(f"best is step {linked_step(run, 'best')}, last {linked_step(run)}; {told(status, said)}")
    check("SIGKILL: between a checkpoint's name and its links", "equal" if same else "differs", "equal", same)


def half_replaced(check, ground):
    """A kill while --overwrite clears the older run: its checkpoints must not become the new run's."""
    whole = outcome(ground.train("seq2seq", "whole"))
    good = 0
    for arguments in (("--overwrite",), ()):
        run = ground.train("seq2seq", "replaced", "seed=6")
        (run / "config.yaml").unlink()  # what clearing begins with
        process = ground.start("train", ground.config("seq2seq"), "--run", run, *arguments)
        if wait_for_link(process, run, 10):
            stop(process, signal.SIGKILL)
        if process.wait() == 2:  # refused: nothing taken for anything
            good += 1
            continue
        status, said = finish(ground, "seq2seq", run)
        same = status == 0 and outcome(run) == whole
        good += same
        if not same:
            note(f"train {' '.join(arguments)}: {told(status, said)}")
    check("SIGKILL: while --overwrite clears a run", f"{good} of 2 equal", "all", good == 2)


def killed_while_replacing(check, ground):
    """The same at random moments: the command is repeated, and gives what it would have given."""
    whole = outcome(ground.train("seq2seq", "whole"))
    older = ground.train("seq2seq", "older", "seed=6")
    rounds = 100 if ground.long else 10
    good = 0
    for _ in range(rounds):
        run = copy_run(older, "replaced")
        command = ("train", ground.config("seq2seq"), "--run", run, "--overwrite")
        process = ground.start(*command)
        if wait_until(process, lambda path=run / "config.yaml": not path.exists(), 1e-5):
            time.sleep(ground.random.uniform(0, 0.01))
            stop(process, signal.SIGKILL)
        done = ground.run(*command)
        good += done.returncode == 0 and outcome(run) == whole
        if done.returncode != 0:
            note(told(done.returncode, done.stderr))
    check("SIGKILL: --overwrite, killed and repeated", f"{good} of {rounds} equal", "all", good == rounds)


def measure(check, ground):
    """All of the above."""
    killed_runs(check, ground)
    between_rename_and_links(check, ground)
    half_replaced(check, ground)
    killed_while_replacing(check, ground)
    for name in [f"whole-{kind}" for kind in KINDS] + ["killed", "whole", "unlinked", "replaced", "older"]:
        shutil.rmtree(ground.path / name, ignore_errors=True)
