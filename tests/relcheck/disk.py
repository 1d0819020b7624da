"""Disks and pipes that accept no more data: a full file system, a limit on file sizes, /dev/full, a reader that
has exited."""
import os
import resource
import shlex
import shutil
import signal
import subprocess

from checkpoints import promised, whole_steps
from faults import SMALL, last_line
from harness import PATIENCE, digest, note
from shim import Shim, read_log


class Tally:
    """Counts correct cases and prints the wrong ones."""

    def __init__(self):
        self.right = self.all = 0

    def add(self, case, why):
        self.all += 1
        self.right += not why
        if why:
            note(f"disk: {case}: {why}")

    def line(self, check, name):
        check(f"disk: {name}", f"{self.right} of {self.all}", "all", self.right == self.all > 0)


class Runs:
    """A short run that is repeated with failures, and the digest of its undisturbed result."""

    def __init__(self, ground):
        self.ground = ground
        self.config = ground.config("synthetic")
        self.reference = ground.path / "disk-reference"
        ground.run(*self.train(self.reference), check=0)
        self.end = digest(self.reference)

    def train(self, run, *more):
        return "train", self.config, "--run", run, *SMALL, *more

    def resumes(self, run):
        """Continues the run with enough disk space; returns "" if it ends with the same bits, otherwise an error."""
        begun = (run / "config.yaml").exists()
        done = self.ground.run(*(("resume", run) if begun else self.train(run)), timeout=PATIENCE)
        if done.returncode != 0:
            return f"continuing: exit {done.returncode}: {last_line(done)}"
        return "" if digest(run) == self.end else "continuing: different bits at the end"


def refusal(done, *words):
    """Returns "" if the command exited with 4 and a message that contains `words`, otherwise an error."""
    if done.returncode != 4:
        return f"exit {done.returncode}, not 4: {last_line(done)}"
    missing = [word for word in words if str(word) not in last_line(done)]
    return (f"the message lacks {missing[0]!r}: {last_line(done)}"
            if missing or not last_line(done).startswith("heed: ") else "")


def silent_exit(done):
    """Returns "" if the command exited silently with SIGPIPE's status, otherwise an error."""
    if done.returncode != 141:
        return f"exit {done.returncode}, not 141: {last_line(done)}"
    return f"prints an error: {last_line(done)}" if "standard output" in done.stderr else ""


# ---- a small file system -------------------------------------------------------------------------

def mounter(ground):
    """A command prefix that allows mounting in a separate namespace, or None."""
    spot = ground.folder("disk-try")
    for command in (["unshare", "-Urm"], ["unshare", "-m"]):
        tried = subprocess.run([*command, "mount", "-t", "tmpfs", "heed", spot], capture_output=True, check=False)
        if tried.returncode == 0:
            return command
    return None


def train_on_small_disk(runs, unshare, limit, shim):
    """Trains on a tmpfs of limited size and copies the folder out of it. Returns the finished process, the steps
    that must exist, and the copy."""
    ground = runs.ground
    mount, copy, log = ground.folder("disk-mount"), ground.path / "disk-copy", ground.path / "disk.log"
    shutil.rmtree(copy, ignore_errors=True)
    log.unlink(missing_ok=True)
    work = mount / "work"
    watch = [f"{name}={value}" for name, value in shim.environment(work, log).items()
             if name.startswith(("FAULT_", "LD_PRELOAD"))]
    command = shlex.join(["env", *watch, str(ground.heed), *map(str, runs.train(work / "run"))])
    script = (f"mount -t tmpfs -o {limit} heed {shlex.quote(str(mount))} && mkdir {shlex.quote(str(work))} || exit 77\n"
              f"{command}; status=$?\ncp -a {shlex.quote(str(work))} {shlex.quote(str(copy))}; exit $status")
    done = subprocess.run([*unshare, "sh", "-c", script], cwd=ground.path, text=True, capture_output=True,
                          timeout=PATIENCE, check=False)
    return done, promised(read_log(log, work)) if log.exists() else set(), copy / "run"


def full_disk(check, runs, shim):
    unshare = mounter(runs.ground)
    if unshare is None:
        note("disk: small tmpfs: skipped, because mounting is not permitted (unshare -Urm, mount -t tmpfs)")
        return
    step, inodes = (16, range(2, 34)) if runs.ground.long else (160, range(4, 34, 6))
    tally, stopped = Tally(), 0
    for limit in [f"size={kib}k" for kib in range(16, 1400, step)] + [f"nr_inodes={n}" for n in inodes]:
        done, must, run = train_on_small_disk(runs, unshare, limit, shim)
        stopped += done.returncode != 0
        why = "" if done.returncode == 0 else refusal(done, "No space left", "disk-mount/work")
        if not why and must - whole_steps(run):
            why = f"of the reported steps {must}, {must - whole_steps(run)} are missing"
        tally.add(limit, why or runs.resumes(run))
    tally.line(check, f"small tmpfs ({stopped} full): exit 4, named, resumes")
    check("disk: small tmpfs: runs stopped by a full disk", stopped, "some, not all", 0 < stopped < tally.all)


# ---- a limit on the size of files ----------------------------------------------------------------

def file_size_limit(check, runs):
    limits = (100, 300, 2000, 50_000, 101_000, 150_000, 202_000)
    for name, action in (("ignored", signal.SIG_IGN), ("default", signal.SIG_DFL)):
        tally = Tally()
        for limit in limits if runs.ground.long else limits[::3]:
            run = runs.ground.folder("disk-limit") / "run"

            def limit_file_size(limit=limit, action=action):
                resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
                signal.signal(signal.SIGXFSZ, action)
            done = runs.ground.run(*runs.train(run), preexec_fn=limit_file_size, timeout=PATIENCE)
            tally.add(f"files of {limit} bytes, SIGXFSZ {name}",
                      refusal(done, "File too large", run) or runs.resumes(run))
        tally.line(check, f"file size limit, SIGXFSZ {name}: exit 4, resumes")


# ---- /dev/full and pipes -------------------------------------------------------------------------

def commands(runs, run):
    """The commands that write to standard output: maps their names to their arguments."""
    path = runs.ground.path
    return {"train --json": runs.train(run, "--json"), "resume --json": ("resume", runs.reference, "--json"),
            "eval": ("eval", runs.reference), "eval --json": ("eval", runs.reference, "--json"),
            "generate": ("generate", runs.reference, "--input", path / "test.src"),
            "score": ("score", runs.reference, "--source", path / "test.src", "--target", path / "test.tgt"),
            "show RUN": ("show", runs.reference), "show CONFIG --json": ("show", runs.config, "--json"),
            "show reference": ("show", "reference"), "gradcheck": ("gradcheck", runs.config),
            "--help": ("--help",), "train --help": ("train", "--help"), "--version": ("--version",)}


def start(runs, arguments, **streams):
    """Like ground.run, with the given streams; stderr is captured unless it is given."""
    return subprocess.run([runs.ground.heed, *map(str, arguments)], cwd=runs.ground.path, text=True, timeout=PATIENCE,
                          check=False, stdin=subprocess.DEVNULL, **{"stderr": subprocess.PIPE, **streams})


def broken_pipe():
    """The write end of a pipe without a reader."""
    reader, writer = os.pipe()
    os.close(reader)
    return writer


def standard_output(check, runs):
    for name, opened in (("/dev/full", lambda: os.open("/dev/full", os.O_WRONLY)), ("a closed pipe", broken_pipe)):
        tally, run = Tally(), runs.ground.path / "disk-stdout"
        for command, arguments in commands(runs, run).items():
            shutil.rmtree(run, ignore_errors=True)
            stream = opened()
            done = start(runs, arguments, stdout=stream)
            why = refusal(done, "standard output") if name == "/dev/full" else silent_exit(done)
            os.close(stream)
            if not why and command == "train --json":
                why = "" if digest(run) == runs.end else "different bits at the end"
            tally.add(f"heed {command} into {name}", why)
        tally.line(check, f"stdout is {name}: " + ("exit 4, named" if name == "/dev/full" else "exit 141, silently"))


def standard_error(check, runs):
    """Checks that training continues if its progress cannot be printed."""
    tally, run = Tally(), runs.ground.path / "disk-stderr"
    for name, opened in (("/dev/full", lambda: os.open("/dev/full", os.O_WRONLY)), ("a closed pipe", broken_pipe)):
        shutil.rmtree(run, ignore_errors=True)
        stream = opened()
        done = start(runs, runs.train(run), stdout=subprocess.DEVNULL, stderr=stream)
        os.close(stream)
        why = f"exit {done.returncode}" if done.returncode != 0 else ""
        tally.add(f"stderr is {name}", why or ("" if digest(run) == runs.end else "different bits"))
    tally.line(check, "stderr is full or a closed pipe: training continues")


def head(check, runs):
    """Pipes the output of a training run, and more generated lines than a pipe holds, to a reader that exits after one
    line."""
    tally, run = Tally(), runs.ground.folder("disk-head") / "run"
    heed, many = shlex.quote(str(runs.ground.heed)), runs.ground.path / "many.txt"
    many.write_text("1 May 1999\n" * 6000)
    arguments = shlex.join(map(str, runs.train(run)))
    script = f"set -o pipefail; {heed} {arguments} 2>&1 | head -1"
    done = subprocess.run(["bash", "-c", script], cwd=runs.ground.path, capture_output=True, timeout=PATIENCE,
                          check=False)
    complete = done.returncode == 0 and digest(run) == runs.end
    tally.add("train 2>&1 | head -1", "" if complete else f"exit {done.returncode}")
    script = (f"set -o pipefail; {heed} generate {shlex.quote(str(runs.reference))} --input {shlex.quote(str(many))}"
              " | head -1")
    done = subprocess.run(["bash", "-c", script], cwd=runs.ground.path, capture_output=True, text=True,
                          timeout=PATIENCE, check=False)
    tally.add("generate | head -1", silent_exit(done))
    tally.line(check, "| head -1: no hang, the run is complete")


def full_metrics(check, runs):
    """Begins runs in which a file that grows has already reached the maximum size of files."""
    limit = 10_000_000  # more than any other file of the run
    for name in ("metrics.jsonl", "train.log"):
        run = runs.ground.folder("disk-full") / "run"
        run.mkdir()
        (run / ".lock").touch()  # marks a run that has just begun; without it, heed refuses the folder
        with open(run / name, "wb") as file:
            file.truncate(limit)
        done = runs.ground.run(*runs.train(run), timeout=PATIENCE,
                               preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
        why = refusal(done, run / name, "File too large")
        (run / name).unlink()
        tally = Tally()
        tally.add(f"{name} cannot grow", why or runs.resumes(run))
        tally.line(check, f"{name} cannot grow: exit 4, named, resumes")


def measure(check, ground):
    runs = Runs(ground)
    full_disk(check, runs, Shim(ground))
    file_size_limit(check, runs)
    full_metrics(check, runs)
    standard_output(check, runs)
    standard_error(check, runs)
    head(check, runs)
