"""Failing disks: the n-th file system call of a run fails, for every n of three small runs; in the short form, for a
sample."""
import concurrent.futures
import errno
import os
import pathlib
import shutil
import subprocess

from checkpoints import flip_byte, promised, whole_steps
from harness import digest, note
from shim import Shim, read_log

SMALL = ("train.steps=6", "train.save_every=2", "train.validate_every=3", "train.average=2", "threads=1")
# "half": a write is cut in half, and the next one fails with ENOSPC. "for good": all later calls fail.
ERRORS = ("EIO", "ENOSPC", "EDQUOT", "half", "EIO for good")
WRITES_ONLY = ("half", "short")
HARMLESS = ("EINTR", "short")
DEADLY = ("kill", "exit")
EVERY = (*ERRORS, *HARMLESS, *DEADLY)


class Scenario:
    """A command on a run folder, the folder's initial content, and the calls of an undisturbed run."""

    def __init__(self, ground, shim, name, command, prepare=None):
        self.ground, self.shim, self.name, self.command = ground, shim, name, command
        self.base = ground.folder(f"faults-{name}-base")
        if prepare:
            prepare(self.base)
        self.whole = whole_steps(self.base / "run")
        self.kept = set() if name == "overwrite" else self.whole  # existing steps that must remain
        work = self.copy("calm")
        log = ground.path / f"faults-{name}.log"
        done = self.start(work, shim.environment(work, log))
        if done.returncode != 0:
            raise RuntimeError(f"faults, {name}: exit {done.returncode}\n{done.stderr}")
        self.calls = read_log(log, work)
        self.end = digest(work / "run")
        self.names = names_of(work / "run")
        self.logged = lines_of(work / "run/train.log")
        shutil.rmtree(work)

    def copy(self, name):
        work = self.ground.path / f"faults-{self.name}-{name}"
        shutil.copytree(self.base, work, symlinks=True)
        return work

    def start(self, work, environment=None):
        return self.ground.run(*self.command(work / "run"), env=environment)

    def needs(self, number):
        """Whether heed must report a failure of this call, because data could be lost."""
        call, follows = self.calls[number - 1], self.calls[number:number + 1]
        if call.path == "run/.lock":
            return call.name == "open"  # the process number in the file is used only in messages
        if call.name == "exchange":
            return False  # heed has a fallback for file systems without exchange
        if call.name == "close":
            return self.unsafe(call)
        if call.name == "open" and not call.writes():
            return bool(follows) and follows[0].name == "fsync" and follows[0].path == call.path
        return True

    def unsafe(self, close):
        """Whether the closed file was written to after its last fsync. The log is an exception: a run closes it last and
        can then no longer report an error."""
        before = [call.name for call in self.calls[:close.number - 1]
                  if call.path == close.path and call.name in ("write", "fsync")]
        return before[-1:] == ["write"] and close.path != "run/train.log"


class Case:
    """One run with one failing call; `wrong` maps each violated requirement to a message."""

    def __init__(self, scenario, number, kind):
        self.scenario, self.number, self.kind = scenario, number, kind
        self.wrong = {}
        self.work = scenario.copy(f"{number}-{kind.replace(' ', '-')}")
        try:
            self.judge()
        except (OSError, RuntimeError, ValueError, KeyError) as error:
            self.wrong["end"] = str(error)
        shutil.rmtree(self.work, ignore_errors=True)

    def judge(self):
        run, log = self.work / "run", self.work.with_suffix(".log")
        word = self.kind.split()[0]
        environment = self.scenario.shim.environment(self.work, log, self.number, getattr(errno, word, word),
                                                     lasts=self.kind.endswith("for good"))
        done = self.scenario.start(self.work, environment)
        calls = read_log(log, self.work)
        log.unlink()
        self.failed = [call for call in calls if call.fault]
        if not self.failed and self.kind not in WRITES_ONLY:
            self.wrong["end"] = "the call was never made"
            return
        self.judge_exit(done)
        self.judge_folder(run, calls, done)
        self.judge_end(run, done)

    def judge_exit(self, done):
        if self.kind in HARMLESS:
            if done.returncode != 0:
                self.wrong["harmless"] = f"exit {done.returncode}: {last_line(done)}"
            elif lines_of(self.work / "run/train.log") != self.scenario.logged:
                self.wrong["harmless"] = "train.log has a different number of lines"
        elif self.kind in DEADLY:
            if done.returncode not in (-9, 99):
                self.wrong["end"] = f"exit {done.returncode}, not killed"
        elif done.returncode != 4 and (done.returncode != 0 or self.scenario.needs(self.number)):
            self.wrong["exit"] = f"exit {done.returncode}, not 4: {last_line(done)}"
        elif done.returncode == 4 and not any(name in last_line(done) for name in self.names()):
            self.wrong["message"] = f"the message does not name the file: {last_line(done)}"

    def names(self):
        """The names that a message may use for the file: its path, its final path, or the folder being removed."""
        for call in self.failed:
            for path in map(pathlib.PurePath, filter(None, (call.path, call.second))):
                yield str(path)
                if path.name.endswith((".tmp", ".old")):
                    yield str(path.with_name(path.name[1:-4]))
                if call.name in ("unlink", "rmdir", "open"):
                    yield from (str(tree) for tree in path.parents if len(tree.parts) > 1)
            yield call.path or self.work.name  # the folder that contains the run

    def judge_folder(self, run, calls, done):
        """Checks the run folder before the run is resumed."""
        missing = promised(calls, self.scenario.kept) - whole_steps(run)
        if missing:
            self.wrong["checkpoint"] = f"step {max(missing)} was reported but is missing or damaged"
        metrics = run / "metrics.jsonl"
        lines = metrics.read_bytes().split(b"\n") if metrics.exists() else []
        if any(not (line.startswith(b"{") and line.endswith(b"}")) for line in lines[:-1]):
            self.wrong["metrics"] = "metrics.jsonl has a broken line before the last"
        elif self.kind in ERRORS[:4] and done.returncode == 4 and lines and lines[-1]:
            self.wrong["metrics"] = "metrics.jsonl ends with half a record"

    def judge_end(self, run, done):
        """Checks that the continued run has the same bits and that no temporary files remain."""
        if done.returncode != 0:
            begun = (run / "config.yaml").exists()
            done = self.scenario.ground.run(*(("resume", run) if begun else self.scenario.command(run)))
            if done.returncode != 0:
                self.wrong["end"] = f"{'resume' if begun else 'train'}: exit {done.returncode}: {last_line(done)}"
                return
        if digest(run) != self.scenario.end:
            self.wrong["end"] = "weights, moments or metrics differ from those of the undisturbed run"
        more = names_of(run) - self.scenario.names
        if any(name.startswith(".") for path in more for name in path.split("/")):
            self.wrong["left"] = f"unexpected files: {', '.join(sorted(more))}"

    def place(self):
        where = self.scenario.calls[self.number - 1]
        return f"{self.scenario.name}, call {self.number}, {where.name} {where.path}, {self.kind}"


def names_of(run):
    return {os.path.relpath(os.path.join(folder, name), run)
            for folder, folders, files in os.walk(run) for name in folders + files}


def lines_of(path):
    return path.read_bytes().count(b"\n")


def last_line(done):
    return (done.stderr.strip().splitlines() or [""])[-1]


def scenarios(ground, shim):
    config = ground.config("synthetic")

    def train(run):
        return "train", config, "--run", run, *SMALL

    def stopped(base):
        """A run that was killed while it wrote the checkpoint of step 6; the checkpoint of step 4 was damaged later."""
        ground.run(*train(base / "run"), check=0)
        log = ground.path / "faults-stopped.log"
        ground.run(*train(base / "run"), "--overwrite", env=shim.environment(base, log), check=0)
        point = next(call.number for call in read_log(log, base)
                     if call.name == "write" and "step-00000006.tmp" in call.path)
        subprocess.run([ground.heed, *train(base / "run"), "--overwrite"], cwd=ground.path, check=False,
                       env=shim.environment(base, log, point, "kill"), capture_output=True)
        flip_byte(base / "run/checkpoints/step-00000004/model.safetensors")

    return [Scenario(ground, shim, "begin", train),
            Scenario(ground, shim, "resume", lambda run: ("resume", run), stopped),
            Scenario(ground, shim, "overwrite", lambda run: (*train(run), "--overwrite"),
                     lambda base: ground.run(*train(base / "run"), check=0))]


def kinds_for(call):
    """The failures that apply to a call: some apply only to writes, and a full disk does not affect reads."""
    reads = call.name == "open" and not call.writes()
    return [kind for kind in EVERY if (call.name == "write" or kind not in WRITES_ONLY)
            and not (reads and kind in ("ENOSPC", "EDQUOT"))]


def every_case(scenario):
    for call in scenario.calls:
        for kind in kinds_for(call):
            yield call.number, kind


def sample(ground, scenario, known):
    """Draws one error for each group of calls that differ only in the step; one other failure if heed must report a
    failure of one of the calls; and a half write for a group of writes. `known`: the groups that earlier scenarios have
    covered."""
    groups = {}
    for call in scenario.calls:
        if call.kind() not in known:
            groups.setdefault(call.kind(), []).append(call.number)
    known.update(groups)
    for (name, *_), numbers in groups.items():
        kinds = kinds_for(scenario.calls[numbers[0] - 1])
        yield ground.random.choice(numbers), ground.random.choice([kind for kind in kinds if kind in ERRORS])
        if any(map(scenario.needs, numbers)):
            yield ground.random.choice(numbers), ground.random.choice([kind for kind in kinds if kind not in ERRORS])
        if name == "write":
            yield ground.random.choice(numbers), "half"


# The requirements: key in Case.wrong → name of the measure, and the failures to which it applies.
ASKED = {"exit": ("errors: exit 4, or the same result", ERRORS),
         "message": ("errors: the message names the file", ERRORS),
         "harmless": ("EINTR and short writes: exit 0", HARMLESS),
         "checkpoint": ("reported checkpoints exist", EVERY),
         "metrics": ("metrics: complete records", EVERY),
         "end": ("resumed: the same bits", EVERY),
         "left": ("no temporary files remain", EVERY)}


def measure(check, ground):
    shim, known, never_asked = Shim(ground), set(), set(ASKED)
    for scenario in scenarios(ground, shim):
        # The sample may draw a case twice.
        chosen = list(dict.fromkeys(every_case(scenario) if ground.long else sample(ground, scenario, known)))
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            cases = list(pool.map(lambda pick, s=scenario: Case(s, *pick), chosen))
        for what, (title, kinds) in ASKED.items():
            asked = [case for case in cases if case.kind in kinds]
            if not asked:  # no such case in this scenario's sample
                continue
            never_asked.discard(what)
            wrong = [case for case in asked if what in case.wrong]
            for case in wrong[:10]:
                note(f"{case.place()}: {case.wrong[what]}")
            check(f"faults: {scenario.name}: {title}", f"{len(asked) - len(wrong)} of {len(asked)}", "all",
                  not wrong)
    for what in sorted(never_asked):
        check(f"faults: {ASKED[what][0]}", "never checked", "checked", False)
