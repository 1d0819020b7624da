"""Checks in the metrics that every sample occurs exactly once per epoch, across stops and kills. Each batch
contains one sample. The number of target tokens identifies a pair, since it is unique; nll identifies a window of a
text, since each window is a different pair of letters and the learning rate is too small to change a weight."""
import collections
import json
import random
import signal

from harness import note
from interrupt import finish, stopped_at
from shim import Shim

PAIRS = 64  # the sides of the pairs have 1, 2, … PAIRS letters
LETTERS = "abcdefgh"
EPOCHS = 5

CONFIG = f"""
tokenizer: {{kind: char}}
optim: {{lr: 1.0e-30}}
train:
  epochs: {EPOCHS}
  batch_sequences: 1
  shards: 2
  log_every: 1
  save_every: 7
threads: 2
seed: 3
"""

KINDS = {
    "seq2seq": """
name: order
task: seq2seq
data:
  train: {source: order.src, target: order.tgt}
model: {d_model: 16, heads: 2, d_ff: 32, layers: 1}
""" + CONFIG,
    "lm": """
name: order
task: lm
data:
  train: {text: order.txt}
model: {d_model: 16, heads: 2, d_ff: 32, layers: 1, dropout: 0.0, context: 1}
""" + CONFIG,
}


def every_pair_of_letters():
    """A text that contains every pair of adjacent letters exactly once."""
    followers = {letter: list(LETTERS) for letter in LETTERS}
    path, text = [LETTERS[0]], []
    while path:  # Hierholzer's algorithm: an Eulerian circuit, in reverse
        if followers[path[-1]]:
            path.append(followers[path[-1]].pop())
        else:
            text.append(path.pop())
    return "".join(text)


def write_data(folder, kind):
    """Writes a config and its data to a folder; returns the path of the config."""
    chance = random.Random(11)
    lengths = list(range(1, PAIRS + 1))
    chance.shuffle(lengths)
    for side in ("src", "tgt"):
        lines = ["".join(chance.choices(LETTERS, k=length)) for length in lengths]
        (folder / f"order.{side}").write_text("\n".join(lines) + "\n")
    (folder / "order.txt").write_text(every_pair_of_letters() + "\n")
    path = folder / "order.yaml"
    path.write_text(KINDS[kind])
    return path


def interrupted(ground, config, run, count):
    """Trains to the end; the run is stopped or killed `count` times."""
    steps = sorted(ground.random.sample(range(2, PAIRS * EPOCHS - 2), count))
    ground.run("train", config, "--run", run, env=Shim(ground).signals(run, steps[0], signal.SIGTERM), check=143)
    for i, step in enumerate(steps[1:]):
        stopped_at(ground, "", run, step, (signal.SIGKILL, signal.SIGTERM)[i % 2])
    status, stderr = finish(ground, "", run)
    if status != 0:
        raise RuntimeError(f"order: exit {status}\n{stderr}")


def samples_by_epoch(run, kind):
    """Maps each epoch to the identifiers of its samples, in the order of training."""
    epochs, before = collections.defaultdict(list), 0
    for line in (run / "metrics.jsonl").read_text().splitlines():
        record = json.loads(line)
        if record["kind"] != "train":
            continue
        done = record["epoch"]  # epochs completed by this step: 2.0 at the last step of epoch 1
        tokens = record["target_tokens"] - before  # </s> included
        epochs[int(done) - (done == int(done))].append(tokens - 1 if kind == "seq2seq" else record["nll"])
        before = record["target_tokens"]
    return dict(epochs)


def wrong_epochs(epochs, kind):
    """The errors in the epochs of a run, one line each."""
    if sorted(epochs) != list(range(EPOCHS)):
        return [f"expected epochs 0 to {EPOCHS - 1}, got {sorted(epochs)}"]
    # The text ends with a newline, which adds one window.
    count = PAIRS if kind == "seq2seq" else len(LETTERS) ** 2 + 1
    expected = list(range(1, count + 1)) if kind == "seq2seq" else sorted(set(epochs[0]))
    wrong = [f"epoch {epoch}: {len(samples)} samples, {len(set(samples))} of them distinct"
             for epoch, samples in epochs.items() if sorted(samples) != expected]
    if len(expected) != count:
        wrong.append(f"{len(expected)} distinct samples, expected {count}")
    return wrong


def measure(check, ground):
    """Checks runs that are stopped or killed 12 times each."""
    runs = 20 if ground.long else 2
    for kind in KINDS:
        config = write_data(ground.path, kind)
        wrong, orders = [], set()
        for _ in range(runs):
            run = ground.folder("order")
            interrupted(ground, config, run, 12)
            epochs = samples_by_epoch(run, kind)
            wrong += wrong_epochs(epochs, kind)
            orders |= {(epoch, tuple(samples)) for epoch, samples in epochs.items()}
        for line in wrong:
            note(line)
        check(f"{kind}: wrong epochs of {runs * EPOCHS}, 12 stops per run", len(wrong), 0, not wrong)
        check(f"{kind}: distinct orders of samples over all runs", len(orders), EPOCHS,
              len(orders) == EPOCHS == len({order for _, order in orders}))
