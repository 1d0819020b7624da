"""Checks that memory and open descriptors do not grow over a long run, and that heed show predicts the peak memory."""
import json
import os
import random
import signal
import time

from harness import note
from interrupt import ENDLESS, stop, wait_for_step

STEADY_AFTER = 500  # steps after which every array size has been allocated


def status(pid, key):
    """A value of /proc/PID/status in KiB, or None if the process has ended."""
    try:
        with open(f"/proc/{pid}/status") as lines:
            for line in lines:
                if line.startswith(key + ":"):
                    return int(line.split()[1])
    except OSError:
        pass
    return None


def descriptors(pid):
    try:
        return len(os.listdir(f"/proc/{pid}/fd"))
    except OSError:
        return None


def last_step(run):
    """The last step in metrics.jsonl, or 0."""
    try:
        with open(run / "metrics.jsonl", "rb") as file:
            file.seek(max(0, os.path.getsize(file.name) - 4096))
            lines = file.read().splitlines()
        return json.loads(lines[-1])["step"]
    except (OSError, ValueError, IndexError):
        return 0


def watch(ground, steps):
    """Trains a run with regular validations and saves; returns samples (step, resident KiB, number of descriptors)."""
    run = ground.path / "memory"
    process = ground.start("train", ground.config("seq2seq"), "--run", run, "--overwrite", f"train.steps={steps}",
                           "train.validate_every=100", "train.save_every=100", "train.log_every=10",
                           "train.batch_tokens=1000")
    samples = []
    while process.poll() is None:
        step, resident, open_files = last_step(run), status(process.pid, "VmRSS"), descriptors(process.pid)
        if step < steps and resident is not None and open_files is not None:  # the final beam search uses more memory
            samples.append((step, resident, open_files))
        time.sleep(0.005)
    if process.returncode != 0:
        raise RuntimeError(f"the run ended with exit status {process.returncode}")
    return samples


def steady(check, ground):
    steps = 10_000 if ground.long else 2_000
    for _ in range(10):  # repeated because samples may be missing on a busy machine
        settled = [s for s in watch(ground, steps) if s[0] >= STEADY_AFTER]
        early = [s for s in settled if s[0] < STEADY_AFTER + 100]
        if len(early) >= 5 and settled[-1][0] >= steps * 0.9:
            break
    else:
        check(f"memory: growth after step {STEADY_AFTER}", "too few samples", "<= 1024 KiB", False)
        return
    growth = max(s[1] for s in settled) - max(s[1] for s in early)
    check(f"memory: growth from step {STEADY_AFTER} to {steps}", f"{growth} KiB", "<= 1024 KiB", growth <= 1024)
    # A save or validation may have files open when descriptors are counted; the minimum excludes them.
    half = len(settled) // 2
    first, second = (min(s[2] for s in part) for part in (settled[:half], settled[half:]))
    check("memory: descriptors that stay open", f"{first}, later {second}", "equal", first == second)


def predicted(check, ground):
    """Compares the estimate of heed show with the peak memory of a training run, for several models."""
    words = random.Random(3)
    lines = [" ".join(words.choices(["lorem", "ipsum", "dolor", "sit", "amet"], k=words.randint(3, 20)))
             for _ in range(3000)]
    for name in ("train", "valid"):
        text = "\n".join(lines if name == "train" else lines[:10]) + "\n"
        (ground.path / f"long.{name}").write_text(text)
    texts = ["data.train.source=long.train", "data.train.target=long.train", "data.valid.source=long.valid",
             "data.valid.target=long.valid"]
    large = ["model.d_model=256", "model.heads=4", "model.d_ff=1024", "model.layers=3", "train.batch_tokens=4000"]
    cases = [("seq2seq, 4 shards", "seq2seq", [*texts, *large, "train.shards=4"]),
             ("seq2seq, 1 shard, gelu", "seq2seq", [*texts, *large, "train.shards=1", "model.activation=gelu"]),
             ("language model, 2 shards", "lm", ["data.train.text=long.train", *large[:4], "train.shards=2",
                                                "model.context=128", "model.max_positions=128",
                                                "train.batch_sequences=32"]),
             ("large model, few tokens", "lm", ["data.train.text=long.train", "model.d_model=512", "model.heads=8",
                                                "model.d_ff=2048", "model.layers=6", "train.batch_sequences=4",
                                                "train.shards=2"])]
    for name, kind, overrides in cases if ground.long else cases[::2]:
        shown = json.loads(ground.run("show", ground.config(kind), "--json", *overrides, check=0).stdout)
        estimate = shown["memory_mb"]["total"]
        steps = 60 if ground.long else 12
        run = ground.folder("peak")
        process = ground.start("train", ground.config(kind), "--run", run, *overrides, *ENDLESS)
        if not wait_for_step(process, run, steps):
            raise RuntimeError(f"{name}: the run ended before step {steps}")
        peak = status(process.pid, "VmHWM") or 0  # read before the final beam search, which uses more memory
        stop(process, signal.SIGKILL)
        peak_mb = peak * 1024 / 1e6
        ratio = estimate / peak_mb if peak_mb else 0
        check(f"memory: predicted / measured, {name}", f"{ratio:.2f}", "0.85 to 1.15", 0.85 <= ratio <= 1.15)
        note(f"{estimate:.0f} MB predicted, {peak_mb:.0f} MB measured")


def measure(check, ground):
    steady(check, ground)
    predicted(check, ground)
