"""Run folders of unknown origin: each command on mutated folders ends in time, with a permitted status and a message,
writes nothing outside the run, and executes nothing of the stranger's."""
import collections
import concurrent.futures
import json
import os
import pathlib
import random
import re
import resource
import shutil
import signal
import stat
import subprocess
import threading
import time

from harness import note
from hostile_folder import Hostile, make_fifo

SECRET = "correct horse battery staple"
SECONDS = 10         # a command may take this long; one that computes must then end when it receives SIGTERM
MEBIBYTES = 2048     # of memory
ERRORS = 8192        # bytes on standard error
STATUSES = (0, 2, 3, 4, 5, 6)
# Control characters other than tab, newline and carriage return, and characters that reorder a line.
UNSAFE = re.compile("[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")

OWN = """
name: own
task: seq2seq
data:
  train: {source: a.src, target: a.tgt}
  valid: {source: a.src, target: a.tgt}
  test: {source: a.src, target: a.tgt}
tokenizer: {kind: char}
model: {d_model: 8, heads: 2, d_ff: 16, layers: 1, dropout: 0.1}
decode: {beam: 1, max_length: 8}
optim: {lr: 2.0e-3}
train: {steps: 4, batch_tokens: 200, log_every: 1, validate_every: 2, save_every: 2, tensorboard: true}
threads: 1
"""
TEXT = """
name: text
task: lm
data: {train: {text: a.src}, valid: {text: a.src}, test: {text: a.src}}
tokenizer: {kind: char}
model: {d_model: 8, heads: 2, d_ff: 16, layers: 1, context: 8}
optim: {lr: 2.0e-3}
train: {steps: 4, batch_sequences: 2, validate_every: 2, save_every: 2}
threads: 1
"""
LABELS = """
name: labels
task: classify
data: {train: {source: a.src, target: labels}, valid: {source: a.src, target: labels}, test: {source: a.src, target: labels}}
tokenizer: {kind: char}
model: {d_model: 8, heads: 2, d_ff: 16, layers: 1, positions: rotary}
optim: {lr: 2.0e-3}
train: {steps: 4, batch_tokens: 64, validate_every: 2, save_every: 2, average: 2}
threads: 1
"""
PICTURES = """
name: pictures
task: classify
data:
  input: image
  image: {height: 8, width: 8, channels: 3, patch: 4}
  train: {source: list.txt, target: labels}
  valid: {source: list.txt, target: labels}
  test: {source: list.txt, target: labels}
model: {d_model: 8, heads: 2, d_ff: 16, layers: 1, positions: learned, max_positions: 8}
optim: {lr: 2.0e-3}
train: {steps: 4, batch_sequences: 4, validate_every: 2, save_every: 2}
threads: 1
"""
CONFIGS = {"own": OWN, "text": TEXT, "labels": LABELS, "pictures": PICTURES}
DATA = {"own": ("a.src", "a.tgt"), "text": ("a.src",), "labels": ("a.src", "labels"), "pictures": ("list.txt", "labels")}

# Commands on RUN. Those that train, evaluate or decode may compute for long if the stranger's config says so.
QUICK = ("report RUN", "report RUN GOOD", "report RUN --csv train.loss", "compare RUN GOOD", "compare RUN GOOD --latex", "runs .",
         "runs RUN", "runs . --json", "show RUN/config.yaml", "plot schedule RUN/config.yaml --output new.svg", "verify RUN",
         "verify RUN --json")
COMPUTES = ("resume RUN", "resume RUN train.steps=6", "resume RUN train.steps=6", "eval RUN", "eval RUN --json --weights last",
            "eval RUN --output new.txt", "eval RUN --source lines --target lines", "generate RUN --input lines",
            "generate RUN --input lines --output new.txt", "generate RUN --prompt abc", "score RUN --source lines --target lines",
            "attention RUN --input abc", "attention RUN --input abc --output new.html", "trace RUN --input abc",
            "prune RUN --share 0.5 --run new", "quantize RUN --run new", "quantize RUN", "train own.yaml --run RUN",
            "train own.yaml --run RUN --overwrite", "train own.yaml --run new model.init_from=RUN",
            "train own.yaml --run new train.distill.teacher=RUN", "train RUN/config.yaml --run new train.steps=4",
            "export RUN --to huggingface,onnx --output new --check", "export RUN --to ctranslate2 --int8 --output new",
            "export RUN --to gguf --output new.gguf", "import RUN --run new",
            "sweep own.yaml --run RUN model.heads=1,2", "gradcheck RUN/config.yaml --entries 1", "bench RUN/config.yaml --steps 1")
# Commands with --output, which is then a file of the run or an input.
OUTPUTS = ("generate RUN --input lines", "eval RUN", "score RUN --source lines --target lines", "attention RUN --input abc",
           "trace RUN --input abc", "report RUN", "report RUN --csv train.loss", "compare RUN GOOD",
           "plot schedule RUN/config.yaml", "export RUN --to gguf --overwrite", "export RUN --to onnx --overwrite")
CREATED = ("new", "new.txt", "new.html", "new.svg", "new.gguf", "run-int8")

LIBRARY = r"""
#include <fcntl.h>
#include <stdlib.h>
const char stamp[] = STAMP;
__attribute__((constructor)) static void execute(void) {
  const char* file = getenv("HEED_TEST_EXECUTED");
  if (file != 0) open(file, O_CREAT | O_WRONLY, 0600);
}
const void* heed_plugin_entries(void) { return 0; }
"""


class Village:
    """The folder from which cases are copied: data, a config of the user, finished runs and the stranger's library."""

    def __init__(self, ground):
        self.ground, self.path = ground, ground.folder("hostile")
        work = self.path / "work"
        work.mkdir()
        for name, text in (("a.src", "abc\nbca\ncab\n"), ("a.tgt", "cba\nacb\nbac\n"), ("labels", "x\ny\nx\n"),
                           ("lines", "abc\ncab\n"), ("own.yaml", OWN), ("list.txt", "1.ppm\n2.ppm\n1.ppm\n")):
            (work / name).write_text(text)
        for name, value in (("1.ppm", 40), ("2.ppm", 200)):
            (work / name).write_bytes(b"P6\n8 8\n255\n" + bytes([value] * 192))
        mine = self.path / "mine"
        (mine / "notes").mkdir(parents=True)
        (mine / "thesis.txt").write_text("years of work\n")
        (mine / "secret.txt").write_text(SECRET + "\n")
        (mine / "notes" / "note.txt").write_text("a note\n")
        make_fifo(self.path / "fifo")
        self.runs = {}
        for kind, config in CONFIGS.items():
            (self.path / f"{kind}.yaml").write_text(config)
            done = subprocess.run([ground.heed, "train", self.path / f"{kind}.yaml", "--run", self.path / "runs" / kind], cwd=work,
                                  capture_output=True, text=True, check=False)
            if done.returncode != 0:
                raise RuntimeError(f"{kind}: {done.stderr}")
            self.runs[kind] = self.path / "runs" / kind
        self.build_library()
        (self.path / "home").mkdir()

    def build_library(self):
        """Compiles a library that bears heed's stamp, and that leaves a file if any of its code is executed."""
        program = self.ground.heed.read_bytes()
        stamp = re.search(rb"a plugin for heed [^\0\n]*, float\n", program)[0].decode()
        source = self.path / "evil.c"
        source.write_text(LIBRARY.replace("STAMP", json.dumps(stamp)))
        subprocess.run(["cc", "-shared", "-fPIC", "-o", self.path / "evil.so", source], check=True)


class Case:
    """A command on one mutated folder. `findings` lists what was wrong."""

    def __init__(self, village, number):
        self.village, self.random = village, random.Random(f"hostile {number}")
        self.number, self.findings, self.mutations = number, [], []
        self.place = village.path / f"case-{threading.get_ident()}"
        shutil.rmtree(self.place, ignore_errors=True)
        self.place.mkdir()
        for name in ("work", "mine", "home"):
            shutil.copytree(village.path / name, self.place / name, symlinks=True)
        make_fifo(self.place / "fifo")
        shutil.copy(village.path / "evil.so", self.place / "evil.so")
        self.work = self.place / "work"
        self.kind = self.random.choice([*CONFIGS])
        self.run = self.work / self.random.choice(["run"] * 12 + ["a\x1b[31mrun", "run\nrun", "\udcff\udcfe", "=run", "r" * 200, "\u202erun"])
        shutil.copytree(village.runs[self.kind], self.run, symlinks=True)
        shutil.copytree(village.runs["own"], self.work / "good", symlinks=True)

    def judge(self):
        """Mutates the folder, runs a command and looks at what it did."""
        onto_output = self.random.random() < 0.1
        if not onto_output:
            hostile = Hostile(self.random, self.run, self.place / "mine")
            for _ in range(self.random.choice((1, 1, 1, 2, 3))):
                self.mutations.append(hostile.mutate())
        # Half of the cases look at the folder without computing; they take a tenth of the time.
        self.command = self.random.choice(OUTPUTS if onto_output else self.random.choice((QUICK, COMPUTES)))
        name = os.path.relpath(self.run, self.work)
        words = [word.replace("RUN", name).replace("GOOD", "good") for word in self.command.split()]
        protected = set()
        if onto_output:
            data = [self.work / name for name in DATA[self.kind]]
            files = [p for p in self.run.rglob("*") if p.is_file() and "reports" not in p.parts]
            target = self.random.choice(sorted(files + data))
            words += ["--output", os.path.relpath(target, self.work)]
            self.mutations.append(f"--output {words[-1]!r}")
            protected = self.inputs()
        before, outside = snapshot(self.place / "mine"), self.outside()
        status, out, err = self.execute(words)
        self.look_at(status, out, err)
        if snapshot(self.place / "mine") != before:
            self.findings.append("a file of the user has changed")
        if not onto_output and (changed := self.outside() ^ outside):
            self.findings.append("written outside the run: " + ", ".join(sorted({path for path, _ in changed}))[:200])
        if (self.place / "executed").exists():
            self.findings.append("code of the stranger was executed")
        if protected - self.inputs():
            self.findings.append("--output replaced a file of the run or an input")
        self.look_for_secrets(out + err)
        return self

    def inputs(self):
        """The files of the run, and those beside it, which no --output may replace."""
        return snapshot(self.work, lambda path: "/reports" in path or path.endswith("evaluations.jsonl"))

    def outside(self):
        """Everything near the run that a command may not change, as (path, content)."""
        created = [str(self.work / name) for name in CREATED]
        free = (str(self.run), str(self.work / "good"), str(self.place / "other"), str(self.place / "home/.local"), *created)
        return snapshot(self.place, lambda path: path.startswith(free) or path == str(self.place / "executed"))

    def execute(self, words):
        """Runs heed. Returns the status, or None if it did not end in time, and its output."""
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.place / "home"), "LC_ALL": "C.UTF-8",
                       "HEED_TEST_EXECUTED": str(self.place / "executed"),
                       "ASAN_OPTIONS": "exitcode=99:allocator_may_return_null=1", "UBSAN_OPTIONS": "halt_on_error=1:exitcode=99"}
        # Regular files in place of pipes: a filled pipe would block the command.
        with open(self.place / "out", "w+b") as out, open(self.place / "err", "w+b") as err:
            process = subprocess.Popen([self.village.ground.heed, *words], cwd=self.work, env=environment, stdin=subprocess.DEVNULL,
                                       stdout=out, stderr=err, start_new_session=True,
                                       preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CORE, (0, 0)))
            status = self.wait(process, SECONDS)
            if status is None and self.command in COMPUTES and self.processor_seconds > 1:
                process.send_signal(signal.SIGTERM)
                status = self.wait(process, SECONDS)
                status = 0 if status == 143 else status
            if status is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                self.findings.append(f"still running after {SECONDS} s, {self.processor_seconds:.1f} s of processor time")
            out.seek(0)
            err.seek(0)
            texts = out.read(1 << 24), err.read(1 << 24)
        for name in ("out", "err"):
            (self.place / name).unlink()
        return status, *texts

    def wait(self, process, seconds):
        """Waits until the process ends or has used `seconds` of time: processor time if it computes, else wall-clock time,
        so that other work on the machine does not count. Returns its exit status or None."""
        began, start = time.monotonic(), None
        while True:
            pid, raw, usage = os.wait4(process.pid, os.WNOHANG)
            if pid:
                process.returncode = os.waitstatus_to_exitcode(raw)
                if usage.ru_maxrss > MEBIBYTES * 1024:
                    self.findings.append(f"{usage.ru_maxrss // 1024} MiB of memory")
                return process.returncode
            used = processor_seconds(process.pid)
            start = used if start is None else start
            self.processor_seconds = used - start
            waited = time.monotonic() - began
            idle = waited > seconds and self.processor_seconds < 0.05 * waited
            if self.processor_seconds > seconds or idle or waited > 30 * seconds:
                return None
            time.sleep(0.002 if waited < 0.5 else 0.02)

    def look_at(self, status, out, err):
        """Status and messages."""
        text = err.decode(errors="surrogateescape")
        told = out + err if self.command.startswith("verify") else err  # its findings are its output
        if status is None:
            return
        if status not in STATUSES:
            self.findings.append(f"status {status}: {text[-300:]!r}")
        elif status != 0 and not told.strip():
            self.findings.append(f"status {status} without a message")
        if "internal error" in text or "json.exception" in text or "basic_string" in text or "std::" in text:
            self.findings.append(f"internal error: {text[-300:]!r}")
        if len(err) > ERRORS:
            self.findings.append(f"{len(err)} bytes of messages")
        if found := UNSAFE.search(text):
            self.findings.append(f"control character {found[0]!r} in a message: {text[max(0, found.start() - 60):][:120]!r}")
        if re.search("[\udc80-\udcff]", text):
            self.findings.append("a message is not UTF-8")
        if self.command.split()[0] in ("runs", "compare", "resume", "train", "verify") and "--json" not in self.command:
            if found := UNSAFE.search(out.decode(errors="replace")):
                self.findings.append(f"control character {found[0]!r} in the output")
        if "--csv" in self.command and re.search(rb'(^|,)"?[=@]', out, re.M):
            self.findings.append("a formula in CSV")

    def look_for_secrets(self, printed):
        """Reports and pages leave the machine: they must not contain files of the user."""
        if self.command.split()[0] in ("report", "compare", "attention", "trace", "plot"):
            places = [p for p in self.work.rglob("*.html") if p.is_file() and not p.is_symlink() and p.stat().st_size < 1 << 24]
            if SECRET.encode() in printed or any(SECRET in p.read_text(errors="replace") for p in places):
                self.findings.append("a private file is in the output")


def snapshot(folder, skipped=lambda path: False):
    """The set of (path, content) of everything below a folder; the content of a link is its target."""
    found = set()
    for at, folders, files in os.walk(folder):
        for path in (os.path.join(at, name) for name in folders + files):
            if skipped(path):
                continue
            status = os.lstat(path)
            if stat.S_ISLNK(status.st_mode):
                found.add((path, os.readlink(path)))
            elif stat.S_ISREG(status.st_mode) and status.st_size < 1 << 24:
                found.add((path, pathlib.Path(path).read_bytes()))
            else:
                found.add((path, stat.S_IFMT(status.st_mode)))
    return found


def processor_seconds(pid):
    """User and system time of a process."""
    try:
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def kind_of(finding):
    """A finding without its particulars."""
    return re.sub(r"[\d.]+", "N", finding.split(":")[0])


def attack(village, numbers, workers):
    """Judges the cases. Returns the findings by kind, each a list of (case, finding)."""
    found = collections.defaultdict(list)
    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        for case in pool.map(lambda number: Case(village, number).judge(), numbers):
            for finding in case.findings:
                found[kind_of(finding)].append((case, finding))
    return found


def measure(check, ground):
    """20,000 cases in the long form. HEED_HOSTILE_CASES=FIRST:LAST repeats others."""
    village = Village(ground)
    first, last = map(int, os.environ.get("HEED_HOSTILE_CASES", "0:20000" if ground.long else "0:400").split(":"))
    found = attack(village, range(first, last), len(os.sched_getaffinity(0)))
    for kind, cases in sorted(found.items(), key=lambda item: -len(item[1])):
        note(f"{len(cases)} × {kind}")
        for case, finding in cases[:3]:
            note(f"  case {case.number}: heed {case.command} ({case.kind}; {'; '.join(filter(None, case.mutations))}): {finding[:400]}")
    total = sum(map(len, found.values()))
    check("hostile run folders: findings", f"{total} in {last - first} cases", 0, total == 0)
    shutil.rmtree(village.path, ignore_errors=True)
