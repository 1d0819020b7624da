"""How long a save keeps training waiting: from the first file of a checkpoint to the link that reports it."""
import os
import time

from harness import note

LARGE = ["model.d_model=512", "model.d_ff=2048", "model.heads=8", "model.layers=3", "train.batch_sequences=2"]


def measure(check, ground):
    saves = 20 if ground.long else 5
    run = ground.path / "saving"
    process = ground.start("train", ground.config("lm"), "--run", run, "--overwrite", *LARGE, f"train.steps={saves}",
                           "train.save_every=1", "train.validate_every=1000")
    durations, began, last = [], None, None
    while process.poll() is None:
        try:
            saving = any(name.startswith(".step-") and name.endswith(".tmp") for name in os.listdir(run / "checkpoints"))
            link = os.readlink(run / "last")
        except OSError:  # not there yet
            saving, link = (run / "checkpoints").is_dir(), None
        now = time.monotonic()
        if link != last:
            if began is not None:
                durations.append(now - began)
            began, last = None, link
        elif saving and began is None:
            began = now
        time.sleep(0.001)
    megabytes = sum(file.stat().st_size for file in (run / "last/").iterdir()) / 1e6
    if process.returncode != 0 or len(durations) < saves - 2:
        check("saving: seconds for 100 MB", "too few saves seen", "<= 1 s", False)
        return
    worst = max(durations) / megabytes * 100
    check("saving: seconds for 100 MB, the longest", f"{worst:.2f} s", "<= 1 s", worst <= 1)
    note(f"{len(durations)} saves of {megabytes:.0f} MB")
