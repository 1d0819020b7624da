"""The cost of a save: bytes, writes and syncs. The long form also measures the time from the first file of a checkpoint
to the link that reports it.
"""
import collections
import os
import time

from checkpoints import step_of
from harness import note
from shim import Shim, read_log

LARGE = ["model.d_model=512", "model.d_ff=2048", "model.heads=8", "model.layers=3", "train.batch_sequences=2"]


def command(ground, saves):
    return ("train", ground.config("lm"), "--run", ground.path / "saving", "--overwrite", *LARGE,
            f"train.steps={saves}", "train.save_every=1", "train.validate_every=1000")


def megabytes_of(run):
    """The size of the run's last checkpoint in MB."""
    return sum(file.stat().st_size for file in (run / "last/").iterdir()) / 1e6


def work(check, ground):
    """Checks that each byte of a checkpoint is written once, in large pieces, and each file is synced once."""
    run, log, shim = ground.path / "saving", ground.path / "saving.log", Shim(ground)
    ground.run(*command(ground, 3), check=0, env=shim.environment(run, log))
    written, writes, syncs = (collections.Counter() for _ in range(3))
    for call in read_log(log, run):
        path = call.path.split("/")
        if len(path) != 3 or not path[1].endswith(".tmp"):
            continue
        step = step_of(path[1][1:-4])
        if call.name == "write":
            written[step] += call.result
            writes[step] += 1
        elif call.name == "fsync":
            syncs[step, path[2]] += 1
    megabytes = megabytes_of(run)
    times = max(written.values(), default=0) / 1e6 / megabytes
    check("saving: bytes written for each byte of a checkpoint", f"{times:.3f}", "1.000 in 3 saves",
          len(written) == 3 and abs(times - 1) < 5e-4)
    calls = max(writes.values(), default=0) / megabytes * 100
    check("saving: writes for 100 MB", f"{calls:.0f}", "<= 500", calls <= 500)
    check("saving: syncs of a file", max(syncs.values(), default=0), 1, set(syncs.values()) == {1})


def seconds(check, ground):
    """Checks the wall-clock time of saves, which needs an idle machine."""
    saves = 20
    run = ground.path / "saving"
    process = ground.start(*command(ground, saves))
    durations, began, last = [], None, None
    while process.poll() is None:
        try:
            names = os.listdir(run / "checkpoints")
            saving = any(name.startswith(".step-") and name.endswith(".tmp") for name in names)
            link = os.readlink(run / "last")
        except OSError:  # the folder or the link does not exist yet
            saving, link = (run / "checkpoints").is_dir(), None
        now = time.monotonic()
        if link != last:
            if began is not None:
                durations.append(now - began)
            began, last = None, link
        elif saving and began is None:
            began = now
        time.sleep(0.001)
    if process.returncode != 0 or len(durations) < saves - 2:
        check("saving: maximum seconds for 100 MB", "too few saves observed", "<= 1 s", False)
        return
    megabytes = megabytes_of(run)
    max_seconds = max(durations) / megabytes * 100
    check("saving: maximum seconds for 100 MB", f"{max_seconds:.2f} s", "<= 1 s", max_seconds <= 1)
    note(f"{len(durations)} saves of {megabytes:.0f} MB")


def measure(check, ground):
    work(check, ground)
    if ground.long:
        seconds(check, ground)
