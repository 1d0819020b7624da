"""Helpers for the measures: result lines, a scratch folder, the program under test, configs of small runs."""
import hashlib
import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import tempfile

# Maximum number of seconds that a test waits for an event; even a slow machine needs far less.
PATIENCE = int(re.search(r"patience = (\d+);", (pathlib.Path(__file__).parents[1] / "patience.h").read_text())[1])
CLOCK_FIELDS = ("seconds", "tokens_per_s", "decode_seconds")  # fields of metrics.jsonl that differ between runs


class Check:
    """Prints a measure's line and counts the verdict: check(name, value, target, passed)."""

    def __init__(self):
        self.passed = self.failed = 0

    def __call__(self, name, value, target, passed):
        self.relay(f"{name:<58} {value!s:<22} {target!s:<22} {'PASS' if passed else 'FAIL'}")

    def relay(self, line):
        """Prints and counts a finished line."""
        print(line, flush=True)
        if line.endswith(" PASS"):
            self.passed += 1
        elif line.endswith(" FAIL"):
            self.failed += 1


def note(text):
    """Prints a detail, for example about a failure; it is not counted."""
    print(f"#   {text}", flush=True)


def check_seconds(check, ground, name, seconds, max_seconds):
    """Checks a limit on wall-clock time in the long form, which needs an idle machine; otherwise prints the time."""
    if ground.long:
        check(name, f"{seconds:.2f} s", f"<= {max_seconds} s", seconds <= max_seconds)
    else:
        note(f"{name}: {seconds:.2f} s")


class Ground:
    """The scratch folder of the measures, removed afterwards, and the program under test."""

    def __init__(self, heed, programs, long, keep=False):
        self.heed, self.programs, self.long, self.keep = heed, programs, long, keep
        self.random = random.Random(20260101)

    def __enter__(self):
        self.path = pathlib.Path(tempfile.mkdtemp(prefix="heed-relcheck-"))
        write_texts(self.path)
        return self

    def __exit__(self, *_):
        if self.keep:
            note(f"scratch folder: {self.path}")
        else:
            shutil.rmtree(self.path, ignore_errors=True)

    def folder(self, name):
        """Returns an empty folder with this name."""
        path = self.path / name
        shutil.rmtree(path, ignore_errors=True)
        path.mkdir(parents=True)
        return path

    def config(self, kind):
        """Writes a small config, "seq2seq" (text, dropout), "lm" or "synthetic", and returns its path. The run has
        40 steps, 3 shards and 2 threads, and takes about a second; it saves every 10 steps and validates every 20."""
        path = self.path / f"{kind}.yaml"
        path.write_text(CONFIGS[kind])
        return path

    def run(self, *arguments, check=None, **keywords):
        """Runs heed and captures its output as text. If `check` is given, raises RuntimeError unless it is the exit
        status."""
        done = subprocess.run([self.heed, *map(str, arguments)], cwd=self.path, text=True, errors="replace",
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **keywords)
        if check is not None and done.returncode != check:
            raise RuntimeError(f"heed {' '.join(map(str, arguments))}: exit {done.returncode}, "
                               f"not {check}\n{done.stderr}")
        return done

    def start(self, *arguments, **keywords):
        """Starts heed; its output is discarded by default."""
        keywords.setdefault("stdout", subprocess.DEVNULL)
        keywords.setdefault("stderr", subprocess.DEVNULL)
        return subprocess.Popen([self.heed, *map(str, arguments)], cwd=self.path, text=True,
                                stdin=subprocess.DEVNULL, **keywords)

    def train(self, kind, name, *overrides, **keywords):
        """Trains to the end with a small config; returns the run folder."""
        run = self.path / name
        shutil.rmtree(run, ignore_errors=True)
        self.run("train", self.config(kind), "--run", run, *overrides, check=0, **keywords)
        return run


def metrics_without_clocks(run):
    """The records of metrics.jsonl without the fields that depend on the clock."""
    records = []
    for line in (run / "metrics.jsonl").read_text().splitlines():
        record = json.loads(line)
        records.append({key: value for key, value in record.items() if key not in CLOCK_FIELDS})
    return records


def digest(run):
    """SHA-256 of the final weights, moments and metrics of a run, without the fields that depend on the clock."""
    last = run / "last"
    total = hashlib.sha256()
    for name in ("model.safetensors", "training.safetensors"):
        total.update((last / name).read_bytes())
    total.update(json.dumps(metrics_without_clocks(run), sort_keys=True).encode())
    return total.hexdigest()


def tree(folder):
    """Maps every path under a folder to a file's checksum, a link's target or, for a folder, None. Two maps differ if
    the content has changed."""
    found = {}
    for path, folders, files in os.walk(folder):
        for name in folders + files:
            full = pathlib.Path(path, name)
            if full.is_symlink():
                found[str(full)] = os.readlink(full)
            elif full.is_file():
                found[str(full)] = hashlib.sha256(full.read_bytes()).hexdigest()
            else:
                found[str(full)] = None
    return found


def write_texts(folder):
    """Writes sentences of random words; the targets are the same sentences with every word reversed."""
    words = random.Random(7)
    vocabulary = ["".join(words.choices("abcdefghijklmnop", k=words.randint(2, 6))) for _ in range(60)]
    for name, count in (("train", 600), ("valid", 40), ("test", 40)):
        lines = [words.choices(vocabulary, k=words.randint(1, 7)) for _ in range(count)]
        (folder / f"{name}.src").write_text("".join(" ".join(line) + "\n" for line in lines))
        (folder / f"{name}.tgt").write_text("".join(" ".join(w[::-1] for w in line) + "\n" for line in lines))


TRAIN = """
optim: {name: adam, lr: 2.0e-3, clip_norm: 1.0, schedule: {name: inverse_sqrt, warmup: 10}}
train:
  steps: 40
  shards: 3
  label_smoothing: 0.1
  log_every: 1
  validate_every: 20
  save_every: 10
  keep: 2
  BATCH
threads: 2
seed: 5
"""

CONFIGS = {
    "seq2seq": """
name: seq2seq
task: seq2seq
data:
  train: {source: train.src, target: train.tgt}
  valid: {source: valid.src, target: valid.tgt}
  test: {source: test.src, target: test.tgt}
tokenizer: {kind: char}
model: {d_model: 32, heads: 2, d_ff: 64, layers: 1, dropout: 0.2}
decode: {beam: 2, max_length: 40}
""" + TRAIN.replace("BATCH", "batch_tokens: 600"),
    "lm": """
name: lm
task: lm
data:
  train: {text: train.src}
  valid_fraction: 0.1
tokenizer: {kind: char}
model: {d_model: 32, heads: 2, d_ff: 64, layers: 2, dropout: 0.1, positions: learned, max_positions: 24, context: 24}
""" + TRAIN.replace("BATCH", "batch_sequences: 16"),
    "synthetic": """
name: synthetic
task: seq2seq
data:
  synthetic: {name: dates, train: 500, valid: 40, test: 40}
tokenizer: {kind: char}
model: {d_model: 32, heads: 2, d_ff: 64, layers: 1, dropout: 0.0}
decode: {beam: 1, max_length: 16}
""" + TRAIN.replace("BATCH", "batch_tokens: 600"),
}
