"""Failing disks: the n-th call on a file of the run fails, for every n of three small runs."""
import concurrent.futures
import errno
import os
import pathlib
import shutil
import subprocess

from checkpoints import promised, spoil, whole_steps
from harness import digest, note
from shim import Shim, read_log

SMALL = ("train.steps=6", "train.save_every=2", "train.validate_every=3", "train.average=2", "threads=1")
# "half": a write does half of its work, and the next one finds the disk full. "for good": all later calls fail.
ERRORS = ("EIO", "ENOSPC", "EDQUOT", "half", "EIO for good")
WRITES_ONLY = ("half", "short")
HARMLESS = ("EINTR", "short")
DEADLY = ("kill", "exit")
EVERY = (*ERRORS, *HARMLESS, *DEADLY)


class Scenario:
    """A command on a run folder, what the folder holds before, and the calls it makes when nothing fails."""

    def __init__(self, ground, shim, name, command, prepare=None):
        self.ground, self.shim, self.name, self.command = ground, shim, name, command
        self.base = ground.folder(f"faults-{name}-base")
        if prepare:
            prepare(self.base)
        self.whole = whole_steps(self.base / "run")
        self.kept = set() if name == "overwrite" else self.whole  # of those that are there, what must stay
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
        """Whether an error in this call may not be passed over: something would be lost, or not be on the disk."""
        call, follows = self.calls[number - 1], self.calls[number:number + 1]
        if call.path == "run/.lock":
            return call.name == "open"  # the number written into it only serves messages
        if call.name == "exchange":
            return False  # there is another way, for disks that cannot do it
        if call.name == "close":
            return self.unsafe(call)
        if call.name == "open" and not call.writes():
            return bool(follows) and follows[0].name == "fsync" and follows[0].path == call.path
        return True

    def unsafe(self, close):
        """Whether a file is closed that was written to after its last fsync. The log of a run is closed when all
        is over, and nobody is left to say so."""
        before = [call.name for call in self.calls[:close.number - 1]
                  if call.path == close.path and call.name in ("write", "fsync")]
        return before[-1:] == ["write"] and close.path != "run/train.log"


class Case:
    """One run with one call that fails; `wrong` says what is not as it should be."""

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
            self.wrong["end"] = "the call never came"
            return
        self.judge_exit(done)
        self.judge_folder(run, calls, done)
        self.judge_end(run, done)

    def judge_exit(self, done):
        if self.kind in HARMLESS:
            if done.returncode != 0:
                self.wrong["harmless"] = f"exit {done.returncode}: {last_line(done)}"
            elif lines_of(self.work / "run/train.log") != self.scenario.logged:
                self.wrong["harmless"] = "train.log has not all of its lines"
        elif self.kind in DEADLY:
            if done.returncode not in (-9, 99):
                self.wrong["end"] = f"exit {done.returncode}, not killed"
        elif done.returncode != 4 and (done.returncode != 0 or self.scenario.needs(self.number)):
            self.wrong["exit"] = f"exit {done.returncode}, not 4: {last_line(done)}"
        elif done.returncode == 4 and not any(name in last_line(done) for name in self.names()):
            self.wrong["message"] = f"does not name the file: {last_line(done)}"

    def names(self):
        """What a message may call the file: itself, the name it is to have, or the tree being removed."""
        for call in self.failed:
            for path in map(pathlib.PurePath, filter(None, (call.path, call.second))):
                yield str(path)
                if path.name.endswith((".tmp", ".old")):
                    yield str(path.with_name(path.name[1:-4]))
                if call.name in ("unlink", "rmdir", "open"):
                    yield from (str(tree) for tree in path.parents if len(tree.parts) > 1)
            yield call.path or self.work.name  # the folder that the run lies in

    def judge_folder(self, run, calls, done):
        """What lies there before anybody resumes."""
        missing = promised(calls, self.scenario.kept) - whole_steps(run)
        if missing:
            self.wrong["checkpoint"] = f"step {max(missing)} was reported and is not there, or not whole"
        metrics = run / "metrics.jsonl"
        lines = metrics.read_bytes().split(b"\n") if metrics.exists() else []
        if any(not (line.startswith(b"{") and line.endswith(b"}")) for line in lines[:-1]):
            self.wrong["metrics"] = "a broken line that is not the last"
        elif self.kind in ERRORS[:4] and done.returncode == 4 and lines and lines[-1]:
            self.wrong["metrics"] = "half a record was not taken back"

    def judge_end(self, run, done):
        """Going on brings the same bits, and nothing has to be cleaned up."""
        if done.returncode != 0:
            begun = (run / "config.yaml").exists()
            done = self.scenario.ground.run(*(("resume", run) if begun else self.scenario.command(run)))
            if done.returncode != 0:
                self.wrong["end"] = f"{'resume' if begun else 'train'}: exit {done.returncode}: {last_line(done)}"
                return
        if digest(run) != self.scenario.end:
            self.wrong["end"] = "other weights, moments or metrics than the run that nothing happened to"
        more = names_of(run) - self.scenario.names
        if any(name.startswith(".") for path in more for name in path.split("/")):
            self.wrong["left"] = f"left behind: {', '.join(sorted(more))}"

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
        """Killed while writing the checkpoint of step 6; that of step 4 was damaged later."""
        ground.run(*train(base / "run"), check=0)
        log = ground.path / "faults-stopped.log"
        ground.run(*train(base / "run"), "--overwrite", env=shim.environment(base, log), check=0)
        point = next(call.number for call in read_log(log, base)
                     if call.name == "write" and "step-00000006.tmp" in call.path)
        subprocess.run([ground.heed, *train(base / "run"), "--overwrite"], cwd=ground.path, check=False,
                       env=shim.environment(base, log, point, "kill"), capture_output=True)
        spoil(base / "run/checkpoints/step-00000004/model.safetensors")

    return [Scenario(ground, shim, "begin", train),
            Scenario(ground, shim, "resume", lambda run: ("resume", run), stopped),
            Scenario(ground, shim, "overwrite", lambda run: (*train(run), "--overwrite"),
                     lambda base: ground.run(*train(base / "run"), check=0))]


def kinds_for(call):
    """What can happen to a call: half of it only to a write, and no disk is too full for reading."""
    reads = call.name == "open" and not call.writes()
    return [kind for kind in EVERY if (call.name == "write" or kind not in WRITES_ONLY)
            and not (reads and kind in ("ENOSPC", "EDQUOT"))]


def every_case(scenario):
    for call in scenario.calls:
        for kind in kinds_for(call):
            yield call.number, kind


def sample(ground, scenario, known):
    """Of calls that differ only in the step, one: with an error, and with something that is none. `known`: the
    kinds of calls that other scenarios have shown."""
    alike = {}
    for call in scenario.calls:
        if call.kind() not in known:
            alike.setdefault(call.kind(), []).append(call.number)
    known.update(alike)
    for (name, *_), numbers in alike.items():
        kinds = kinds_for(scenario.calls[numbers[0] - 1])
        yield ground.random.choice(numbers), ground.random.choice([kind for kind in kinds if kind in ERRORS])
        if any(map(scenario.needs, numbers)):
            yield ground.random.choice(numbers), ground.random.choice([kind for kind in kinds if kind not in ERRORS])
        if name == "write":
            yield ground.random.choice(numbers), "half"


# What is asked of a case: its name in Case.wrong → the measure's name and the kinds of failure that it is asked of.
ASKED = {"exit": ("errors: exit 4, or the same end", ERRORS),
         "message": ("errors: the message names the file", ERRORS),
         "harmless": ("EINTR and short writes: exit 0", HARMLESS),
         "checkpoint": ("reported checkpoints are there", EVERY),
         "metrics": ("metrics: whole records", EVERY),
         "end": ("gone on with: the same bits", EVERY),
         "left": ("nothing left to clean up", EVERY)}


def measure(check, ground):
    shim, known, never_asked = Shim(ground), set(), set(ASKED)
    for scenario in scenarios(ground, shim):
        # The sample may draw a case twice.
        chosen = list(dict.fromkeys(every_case(scenario) if ground.long else sample(ground, scenario, known)))
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            cases = list(pool.map(lambda pick, s=scenario: Case(s, *pick), chosen))
        for what, (title, kinds) in ASKED.items():
            asked = [case for case in cases if case.kind in kinds]
            if not asked:  # the sample has none of these here
                continue
            never_asked.discard(what)
            wrong = [case for case in asked if what in case.wrong]
            for case in wrong[:10]:
                note(f"{case.place()}: {case.wrong[what]}")
            check(f"faults: {scenario.name}: {title}", f"{len(asked) - len(wrong)} of {len(asked)}", "all",
                  not wrong)
    for what in sorted(never_asked):
        check(f"faults: {ASKED[what][0]}", "never asked", "asked somewhere", False)
