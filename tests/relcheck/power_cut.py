"""Power cuts: the states in which a disk may be after any call of a training run, and what heed loads from them.

The log of the fault shim is replayed on a model of a disk (disk_model.py). After every call the power
fails several times, each time with another random subset of the pending data on disk. In each state, what
`heed resume` and `heed eval` would load is compared with what the run had written. The same is done with
a disk that falsely reports a file's bytes as written: it loses checkpoints, but heed loads no torn one.
"""
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess

from checkpoints import promised, reported, step_of
from disk_model import Disk, Folder, Link
from faults import scenarios
from harness import digest, note
from shim import Shim, read_log

IGNORED = ("run/train.log", "run/.lock")  # files without guarantees, ignored when states are compared
FIXED = ("run/config.yaml", "run/tokenizer.vocab")  # files that are written once and that every checkpoint needs


class Recording:
    """The log of a run, and the expected content after each call."""

    def __init__(self, scenario, ground):
        self.scenario = scenario
        self.work = scenario.copy("recorded")
        log, data = ground.path / "power.log", ground.path / "power.data"
        done = scenario.start(self.work, scenario.shim.environment(self.work, log, data=data))
        if done.returncode != 0:
            raise RuntimeError(f"power_cut, {scenario.name}: exit {done.returncode}\n{done.stderr}")
        self.calls, self.data = read_log(log, self.work), data.read_bytes()
        self.true = self.true_files()

    def play(self, disk, call):
        if call.result >= 0:
            disk.play(call, self.data[call.at:call.at + call.result] if call.name == "write" else b"")

    def true_files(self):
        """Maps the FIXED files and the files of folders renamed into place to the checksums of their valid contents."""
        disk, true = Disk(self.scenario.base), {}

        def learn(path):
            folder, name = disk.find(path)
            node = folder.names.get(name)
            for name, file in node.names.items() if isinstance(node, Folder) else [("", node)] if node else []:
                true.setdefault(f"{path}/{name}".rstrip("/"), set()).add(sha256(file.content))

        # The initial content, without the checkpoint that was damaged on purpose.
        kept = [f"run/checkpoints/step-{step:08}" for step in self.scenario.whole] + ["run/average", *FIXED]
        for path in kept if (self.scenario.base / "run").exists() else []:
            learn(path)
        for call in self.calls:
            self.play(disk, call)
            last = call.second.split("/")[-1]
            if call.name in ("rename", "exchange") and (last == "average" or step_of(last)):
                learn(call.second)
        for path in FIXED:
            learn(path)
        return true

    def points(self, lies=False):
        """Yields after every call: the disk, the steps that must exist, and the required beginning of metrics.jsonl."""
        disk, reports, records, synced = Disk(self.scenario.base, lies), reported(self.calls), b"", b""
        for number, call in enumerate(self.calls, 1):
            self.play(disk, call)
            if call.name == "fsync" and call.path == "run/metrics.jsonl":
                synced = disk.files[call.descriptor].content
            if call.number in reports:
                records = synced
            yield disk, promised(self.calls[:number], self.scenario.kept), records


class Loader:
    """Inspects run folders with heed's loading code (load_states.cpp)."""

    def __init__(self, program):
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def inspect(self, run):
        self.process.stdin.write(f"{run}\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait()


def sha256(content):
    return hashlib.sha256(content).hexdigest()


def key_of(state):
    """A hash that is equal for states that differ only in IGNORED files."""
    total = hashlib.sha256()
    for path in sorted(state.keys() - set(IGNORED)):
        what = state[path]
        content = "folder" if what is None else what.target if isinstance(what, Link) else sha256(what)
        total.update(f"{path}\0{content}\0".encode())
    return total.digest()


def put_on_disk(state, folder):
    """Writes the files of a state to a folder."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for path in sorted(state):  # a folder comes before its files
        what, place = state[path], folder / path
        if what is None:
            place.mkdir()
        elif isinstance(what, Link):
            place.symlink_to(what.target)
        else:
            place.write_bytes(what)


class Verdicts:
    """Examines states and records violations."""

    def __init__(self, recording, loader, folder):
        self.recording, self.loader, self.folder = recording, loader, folder
        self.seen, self.lost, self.corrupt, self.refused = set(), [], [], 0

    def inspect(self, state, must, records):
        """Examines a state; returns False if it was seen before."""
        key = key_of(state)
        if key in self.seen:
            return False
        self.seen.add(key)
        put_on_disk(state, self.folder)
        found = self.loader.inspect(self.folder / "run")
        if why := self.loss(state, found, must, records):
            self.lost.append(why)
        if why := self.accepted_wrong(state, found):
            self.corrupt.append(why)
        named = {step_of(path) for path, what in state.items() if what is None and step_of(path)}
        self.refused += len(named - set(found["valid"]))
        return True

    def loss(self, state, found, must, records):
        """Describes what was lost although the steps `must` were reported as saved; "" if nothing was. `records`: the
        beginning that metrics.jsonl must have; empty until this process has reported a step, because until then
        `last` may point to the damaged checkpoint."""
        if not must:
            return ""
        if missing := must - set(found["valid"]):
            return f"step {max(missing)} is missing; valid: {found['valid']}"
        if found["newest"] != max(found["valid"]):
            return f"resumes from step {found['newest']}; valid: {found['valid']}"
        if records and (found["last"] not in found["valid"] or found["last"] < max(must)):
            return f"`last` points to {found['last'] or 'nothing'}; valid: {found['valid']}"
        for path in FIXED:
            if sha256(state.get(path) or b"") not in self.recording.true[path]:
                return f"{path} is {'torn' if path in state else 'missing'} ({found['error']})"
        if found["error"]:
            return found["error"]
        if not (state.get("run/metrics.jsonl") or b"").startswith(records):
            return "metrics.jsonl has lost records from before the checkpoint"
        return ""

    def accepted_wrong(self, state, found):
        """Describes an accepted file with content that the run never wrote; "" if there is none."""
        accepted = [path for path, what in state.items() if isinstance(what, bytes)
                 and step_of(pathlib.PurePath(path).parent) in found["valid"]]
        if found["weights"]:
            accepted.append(os.path.relpath(found["weights"], os.path.realpath(self.folder)))
        for path in accepted:
            if sha256(state[path]) not in self.recording.true.get(path, ()):
                return f"{path} was accepted with content that the run never wrote"
        return ""


def resumes(ground, state, must, folder, scenario):
    """Resumes a state; returns "" if the result has the same bits, otherwise an error."""
    put_on_disk(state, folder)
    run = folder / "run"
    done = ground.run("resume", run)
    if done.returncode != 0:
        return f"exit {done.returncode}: {(done.stderr.strip().splitlines() or [''])[-1]}"
    begun = max(map(int, re.findall(r"^(?:continuing from|already finished, at) step (\d+)", done.stderr, re.M)), default=0)
    if begun < max(must, default=0):
        return f"continued from step {begun}, not from {max(must)}"
    return "" if digest(run) == scenario.end else "different bits at the end"


def examine(verdicts, per_point, random, lies=False, keep=0):
    """Cuts the power after every call until `per_point` new states, or too many known ones, are found. Returns up to
    `keep` of the states, with the steps that must exist, for resuming."""
    kept, count = [], 0
    for disk, must, records in verdicts.recording.points(lies):
        new = old = 0
        while new < per_point and old < 2 + per_point // 10:
            state = disk.after_cut(random)
            if not verdicts.inspect(state, must, records):
                old += 1
                continue
            new, old = new + 1, 0
            if "run/config.yaml" in state:
                count += 1  # reservoir sampling: each state is kept with equal probability
                if count <= keep:
                    kept.append((state, must))
                elif random.random() < keep / count:
                    kept[random.randrange(keep)] = state, must
    return kept


def report_wrong(case, wrong):
    for why in sorted(set(wrong))[:5]:
        note(f"{case}: {why} (number of cases: {wrong.count(why)})")


def examine_scenario(ground, scenario):
    """Returns the verdicts on an honest and on a lying disk, and the results of resuming some of the states."""
    recording, place = Recording(scenario, ground), ground.path / "power-state"
    with Loader(ground.programs / "relcheck_load_states") as loader:
        honest, liar = (Verdicts(recording, loader, place) for _ in range(2))
        kept = examine(honest, 160 if ground.long else 2, ground.random, keep=40 if ground.long else 4)
        examine(liar, 2 if ground.long else 1, ground.random, lies=True)
    resumed = [resumes(ground, state, must, place, scenario) for state, must in kept]
    note(f"{scenario.name}: {len(honest.seen)} states, and {len(liar.seen)} of a lying disk")
    report_wrong(f"{scenario.name}, lost", honest.lost)
    report_wrong(f"{scenario.name}, accepted", honest.corrupt + liar.corrupt)
    report_wrong(f"{scenario.name}, resume", list(filter(None, resumed)))
    return honest, liar, resumed


def measure(check, ground):
    found = [examine_scenario(ground, scenario) for scenario in scenarios(ground, Shim(ground))]
    honest, liars, resumed = [one[0] for one in found], [one[1] for one in found], sum((one[2] for one in found), [])
    distinct, min_states = sum(len(one.seen) for one in honest), 5000 if ground.long else 300
    lost = sum(len(one.lost) for one in honest)
    corrupt = sum(len(one.corrupt) for one in honest + liars)
    check("power cut: distinct states examined", distinct, min_states, distinct >= min_states)
    check("power cut: reported checkpoints lost", lost, 0, lost == 0)
    check("power cut: corrupt checkpoints accepted", corrupt, 0, corrupt == 0)
    check("power cut: states resumed to the same bits", f"{resumed.count('')} of {len(resumed)}", "all",
          resumed.count("") == len(resumed) > 0)
    # The same checks must find losses and torn files on a lying disk.
    lost, torn = sum(len(one.lost) for one in liars), sum(one.refused for one in liars)
    check("power cut: lying disk: states with a loss", lost, "some", lost > 0)
    check("power cut: lying disk: torn checkpoints refused", torn, "some", torn > 0)
