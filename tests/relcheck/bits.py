"""Bitwise equality across repeated runs, thread counts, stops and decoding batches; every sample once per epoch."""
import os
import shutil
import signal

import batch_order
import decoding
from harness import PATIENCE, digest, metrics_without_clocks, note
from interrupt import finish, linked_step, outcome, resume_run, stop, stopped_at, status_line

KINDS = ("seq2seq", "lm", "synthetic")
THREADS = (1, 2, 3, 4, 8)


def on_one_core():
    """Pins the child process to the first available core."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


def count_equal(check, name, expected, found, other):
    """Checks that all of `found` equal `expected`; `other` must differ, or the comparison proves nothing."""
    equal = sum(one == expected for one in found)
    if other == expected:
        note(f"{name}: a different run has the same digest, so the comparison proves nothing")
    check(name, f"{equal} of {len(found)} equal", "all", equal == len(found) and other != expected)


def repeats(check, ground):
    """Trains several runs, which must be equal, and one with another seed, which must differ."""
    for kind in KINDS:
        digests = [digest(ground.train(kind, "repeat")) for _ in range(5 if ground.long else 2)]
        count_equal(check, f"{kind}: repeated", digests[0], digests,
                    digest(ground.train(kind, "repeat", "seed=6")))


def concurrent_digests(ground, kind, count, *overrides):
    """The digests of `count` concurrent runs."""
    runs = [ground.folder(f"crowd{i}") for i in range(count)]
    config = ground.config(kind)
    processes = [ground.start("train", config, "--run", run, *overrides) for run in runs]
    statuses = [process.wait(PATIENCE) for process in processes]
    if any(statuses):
        raise RuntimeError(f"{kind}: exit statuses {statuses}")
    return [digest(run) for run in runs]


def threads(check, ground):
    """Trains with eight shards on 1 to 8 threads, on the same numbers of threads pinned to one core, and in four
    concurrent runs."""
    numbers, pinned = (THREADS, THREADS) if ground.long else ((2, 3, 8), (3,))
    for kind in KINDS:
        shards = "train.shards=8"
        one = digest(ground.train(kind, "threads", shards, "threads=1"))
        other = digest(ground.train(kind, "threads", "train.shards=7"))
        found = [digest(ground.train(kind, "threads", shards, f"threads={n}")) for n in numbers]
        count_equal(check, f"{kind}: threads {', '.join(map(str, numbers))}", one, found, other)
        found = [digest(ground.train(kind, "threads", shards, f"threads={n}", preexec_fn=on_one_core))
                 for n in pinned]
        count_equal(check, f"{kind}: threads {', '.join(map(str, pinned))}, pinned to one core", one, found, other)
        count_equal(check, f"{kind}: 8 threads, 4 concurrent runs", one,
                    concurrent_digests(ground, kind, 4, shards, "threads=8"), other)


def epoch_edges(run):
    """The last steps of the epochs."""
    return [record["step"] for record in metrics_without_clocks(run)
            if record["kind"] == "train" and record["epoch"] == int(record["epoch"])]


def planned_stops(random, edges, steps, count):
    """Sorted pairs (step, signal): up to half are SIGTERM at epoch boundaries, the others SIGINT and SIGKILL at
    random steps."""
    edges = [edge for edge in edges if 2 < edge < steps - 2]
    plan = [(edge, signal.SIGTERM) for edge in random.sample(edges, min(len(edges), count // 2))]
    for i in range(count - len(plan)):
        plan.append((random.randrange(1, steps - 2), signal.SIGKILL if i % 2 else signal.SIGINT))
    return sorted(plan)


class Edges:
    """Aims at the last step of an epoch and the steps before and after it; counts the hits."""

    def __init__(self, steps):
        self.steps, self.hits = steps, {-1: 0, 0: 0, +1: 0}

    def aim(self, edge):
        """The step before, at or after `edge`, whichever has been hit least often."""
        return edge + min(self.hits, key=self.hits.get)

    def count(self, step):
        """Counts a run that stopped at this step."""
        for offset in self.hits:
            self.hits[offset] += step - offset in self.steps


def continue_until(ground, kind, run, step, number, overrides):
    """Continues with a random number of threads until a signal stops the run at `step` (0: at once). Returns
    whether the signal stopped it."""
    overrides = (*overrides, f"threads={ground.random.choice(THREADS)}")
    if step:
        status = stopped_at(ground, kind, run, step, number, *overrides)
    else:
        status, _ = stop(resume_run(ground, kind, run, *overrides), number)
    if status not in (0, 128 + number):
        raise RuntimeError(f"{kind}: stopped at step {step} by signal {number}: exit {status}")
    return status != 0


def stops(check, ground):
    """Stops each run many times; each continuation uses a random number of threads."""
    chains, count = (10, 20) if ground.long else (1, 10)
    steps = 200
    for kind in KINDS:
        # Saves and validations rarely coincide with epoch boundaries, at which the signals are aimed.
        overrides = [f"train.steps={steps}", "train.save_every=11", "train.validate_every=23"]
        edges = Edges(epoch_edges(ground.train(kind, "edges", *overrides)))
        # Losses between two records are summed; a checkpoint has to store the sum.
        overrides += ["train.log_every=3"] if kind == "lm" else []
        reference = ground.train(kind, "reference", *overrides)
        equal = stopped = 0
        for _ in range(chains):
            run = ground.folder("stopped")
            plan = planned_stops(ground.random, edges.steps, steps, count - 2)
            plan = [(0, signal.SIGKILL), plan[0], (0, signal.SIGTERM), *plan[1:]]
            for step, number in plan:
                at = edges.aim(step) if step in edges.steps else step
                stopped += continue_until(ground, kind, run, at, number, overrides)
                if step and number == signal.SIGTERM:
                    edges.count(linked_step(run))
            status, stderr = finish(ground, kind, run, *overrides)
            equal += status == 0 and outcome(run) == outcome(reference)
            if status != 0:
                note(f"{kind}: {status_line(status, stderr)}")
        check(f"{kind}: {chains * count} stops, each resumed", f"{equal} of {chains} runs equal", "all",
              equal == chains)
        check(f"{kind}: stops before the end of the run", f"{stopped} of {chains * count}", "all",
              stopped == chains * count)
        if kind != "lm":  # lm records too few steps to aim at one
            check(f"{kind}: stops at epoch boundaries - 1, + 0, + 1", " ".join(map(str, edges.hits.values())),
                  ">= 1 each", min(edges.hits.values()) >= 1)


def averages(check, ground):
    """Checks that the mean of the last checkpoints does not depend on additional checkpoints from stops."""
    overrides = ["train.average=3", "train.steps=60", "train.keep=5", "train.save_every=5", "data.synthetic.valid=0"]
    reference = ground.train("synthetic", "reference", *overrides)
    run = ground.folder("stopped")
    for step in (15, 35, 47, 53):
        continue_until(ground, "synthetic", run, step, signal.SIGTERM, overrides)
    status, stderr = finish(ground, "synthetic", run)
    if status != 0:
        note(status_line(status, stderr))
    same = status == 0 and outcome(run) == outcome(reference)
    if status == 0 and not same:
        means = [(one / "average" / "state.json").read_text().split("mean_of_steps")[1].split("]")[0]
                 for one in (reference, run)]
        note("means of steps" + "; ".join(" ".join(mean.split()) for mean in means))
    check("train.average: stopped 4 times", "equal" if same else "differs", "equal", same)


def measure(check, ground):
    """Runs all checks of this measure."""
    repeats(check, ground)
    threads(check, ground)
    stops(check, ground)
    averages(check, ground)
    for name in ("reference", "edges", "stopped", "repeat", "threads"):
        shutil.rmtree(ground.path / name, ignore_errors=True)
    batch_order.measure(check, ground)
    decoding.measure(check, ground)
