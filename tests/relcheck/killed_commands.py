"""SIGKILL at random moments of the commands that write and do not train: what they read is unchanged, what they write is
absent, old or complete, and the repeated command succeeds with the result of an undisturbed one."""
import collections
import os
import pathlib
import re
import shutil
import time

from harness import metrics_without_clocks, note, tree
from interrupt import copy_run, let_run, status_line, stop

ROOT = pathlib.Path(__file__).resolve().parents[2]
DATA = ROOT / "data/multi30k"  # from `heed fetch multi30k`


class Command:
    """A command with its arguments; RUN stands for the run that it reads, OUT for what it writes. `steady` maps the
    output's path to its content, without what depends on the clock."""

    def __init__(self, name, arguments, steady, once_more=()):
        self.name, self.arguments, self.steady, self.once_more = name, arguments, steady, once_more

    def words(self, run, out):
        """The command line."""
        return [word.replace("RUN", str(run)).replace("OUT", str(out)) for word in self.arguments]


def whole_file(out):
    """A file's bytes; a temporary file beside it does not count."""
    return out.read_bytes() if out.exists() else None


def page(out):
    """A page's text, without the memory of the program, which is measured."""
    return re.sub(r"\d+\.\d MB", "", out.read_text()) if out.exists() else None


def derived_run(out):
    """The weights and the config of a run; None while it lacks one of them."""
    if not ((out / "last").exists() and (out / "config.yaml").exists()):
        return None
    return [(out / "last" / "model.safetensors").read_bytes(), (out / "config.yaml").read_bytes()]


def sweep_runs(out):
    """The metrics of every run of a sweep, by name; None unless its report was written."""
    if not (out / "report.html").exists():
        return None
    return {path.parent.name: metrics_without_clocks(path.parent) for path in sorted(out.glob("*/metrics.jsonl"))}


def data_set(out):
    """The files of a data set; None until all have come."""
    files = {p.name: p.read_bytes() for p in sorted(out.glob("*")) if not p.name.startswith(".")} if out.exists() else {}
    return files if len(files) == len(list(DATA.glob("*.gz"))) else None


def commands(ground):
    """The commands, with whole_file and the like as `steady`."""
    sweep = ground.config("synthetic")
    found = [Command("prune", ("prune", "RUN", "--share", "0.5", "--run", "OUT"), derived_run, ("--overwrite",)),
             Command("quantize", ("quantize", "RUN", "--run", "OUT"), derived_run, ("--overwrite",)),
             Command("report", ("report", "RUN", "--output", "OUT.html"), page),
             Command("attention", ("attention", "RUN", "--input", "ab cd", "--output", "OUT.html"), page),
             Command("trace", ("trace", "RUN", "--input", "ab cd", "--output", "OUT.html"), page),
             Command("plot", ("plot", "schedule", str(ground.config("seq2seq")), "--output", "OUT.svg"), whole_file),
             Command("eval", ("eval", "RUN", "--output", "OUT.txt"), whole_file),
             Command("sweep", ("sweep", str(sweep), "--run", "OUT", "train.steps=4", "model.heads=1,2"), sweep_runs)]
    if DATA.exists():
        found.append(Command("fetch", ("fetch", "multi30k", "--from", str(DATA), "--to", "OUT"), data_set))
    else:
        note(f"fetch is left out: no {DATA.relative_to(ROOT)}")
    return found


def output_of(command, base):
    """The path that OUT names in the arguments, with its extension."""
    word = next(word for word in command.arguments if word.startswith("OUT"))
    return base.with_name(base.name + word[3:])


def inputs_of(run):
    """What the commands read; evaluations.jsonl and reports/ are written beside it."""
    return {path: content for path, content in tree(run).items() if "/reports" not in path and "evaluations.jsonl" not in path}


def killed(command, ground, original, rounds):
    """Kills the command `rounds` times. Returns a tally and the faults found."""
    base = ground.folder("written") / "out"
    out = output_of(command, base)
    began = time.monotonic()
    ground.run(*command.words(original, base), check=0)
    seconds, expected = time.monotonic() - began, command.steady(out)
    if expected is None:
        raise RuntimeError(f"{command.name}: no output")
    read, tally, faults = inputs_of(original), collections.Counter(), []
    while tally["kills"] < rounds and tally["tries"] < 5 * rounds:
        tally["tries"] += 1
        older = ground.random.random() < 0.5 and not out.is_dir()  # half of the files replace an older one
        if not older:
            shutil.rmtree(base.parent)
            base.parent.mkdir()
        process = ground.start(*command.words(original, base))
        if not let_run(process, ground.random.uniform(0, seconds), 1e-4):
            continue
        tally["kills"] += stop(process, 9)[0] == 137
        found = command.steady(out)
        if older and found is None:
            faults.append(f"{command.name}: the older output was lost")
        if not out.is_dir() and found not in (None, expected):
            faults.append(f"{command.name}: a part of an output was left")
        if inputs_of(original) != read:
            faults.append(f"{command.name}: its input has changed")
        again = command.once_more if out.is_dir() else ()
        done = ground.run(*command.words(original, base), *again)
        if done.returncode != 0:
            faults.append(f"{command.name}: repeated: {status_line(done.returncode, done.stderr)}")
        elif command.steady(out) != expected:
            faults.append(f"{command.name}: repeated: another output")
        left = [name for name in os.listdir(base.parent) if name.startswith(".")]
        if left:
            faults.append(f"{command.name}: left {', '.join(left)}")
    return tally["kills"], faults


def measure(check, ground):
    """At least 100 kills of each command in the long form."""
    rounds = 100 if ground.long else 5
    original = ground.train("seq2seq", "original")
    total, faults = [], []
    for command in commands(ground):
        kills, found = killed(command, ground, original, rounds)
        total.append(f"{command.name} {kills}")
        faults += found
        check(f"SIGKILL: {command.name}: kills", kills, f">= {rounds}", kills >= rounds)
    for fault, count in collections.Counter(faults).most_common(20):
        note(f"{count} × {fault}")
    check("SIGKILL: commands that write: nothing lost, nothing stuck", f"{len(faults)} faults", 0, not faults)
    for name in ("original", "written"):
        shutil.rmtree(ground.path / name, ignore_errors=True)
