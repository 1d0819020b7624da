"""test_mpi.py MPI HEED DELAYS [--long] [CHECK...]: distributed runs of the program under `openmpi` or `mpich`.

Bits: the checkpoints and metrics of a run equal those of one process, for any number of ranks and threads, after
stopping and continuing on a different number, and with messages that are late and overtake one another (the library
DELAYS). Faults: killed and suspended ranks, a full disk, ranks that differ, signals to the launcher. After each fault,
the status is right, no process is left, and the run continues to the same result.

--long runs more models, numbers of ranks and numbers of threads, and 100 random kills.
"""
import json
import os
import pathlib
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid

long_form = "--long" in sys.argv
arguments = [a for a in sys.argv[1:] if a != "--long"]
mpi, heed, delays = arguments[0], *map(os.path.abspath, arguments[1:3])
wanted = arguments[3:]
launcher = shutil.which("mpirun.openmpi" if mpi == "openmpi" else "mpiexec.mpich") or shutil.which("mpirun")
if launcher is None:
    print(f"skipped: found no launcher of {mpi}")
    sys.exit(77)

patience = int(re.search(r"patience = (\d+);", (pathlib.Path(__file__).parent.parent / "patience.h").read_text())[1])
failures = []
checks = 0


def check(right, what):
    global checks
    checks += 1
    if not right:
        failures.append(what)
        print("FAILED:", what, flush=True)


# ---- the runs --------------------------------------------------------------------------------------
seq2seq = """
task: seq2seq
data: {synthetic: {name: reverse, train: 400, valid: 40, test: 30, max_length: 8, symbols: 8}}
tokenizer: {kind: char}
model: {d_model: 24, heads: 4, d_ff: 48, layers: 2, dropout: 0.2}
optim: {lr: 0.004, schedule: {warmup: 10}}
train: {steps: STEPS, batch_tokens: 400, shards: 8, validate_every: 20, save_every: 10, log_every: 10, keep: 100}
decode: {beam: 2, max_length: 12}
"""
tag = seq2seq.replace("seq2seq", "tag").replace("reverse", "brackets").replace("decode: {beam: 2, max_length: 12}", "")
tag = tag.replace(", symbols: 8", "")
models = {
    "seq2seq": seq2seq,
    "wide": seq2seq.replace("d_ff: 48", "d_ff: 5000"),  # exchanges its 970,000 weights in several rounds
    "lm": """
task: lm
data: {train: {text: [text.txt]}, valid_fraction: 0.1, test_fraction: 0.1}
tokenizer: {kind: char}
model: {d_model: 24, heads: 4, d_ff: 48, layers: 2, dropout: 0.2, context: 32}
optim: {lr: 0.004, schedule: {warmup: 10}}
train: {steps: STEPS, batch_tokens: 400, shards: 8, validate_every: 20, save_every: 10, log_every: 10, keep: 100}
""",
    "tag": tag,
    "norm": tag.replace("layers: 2", "layers: {encoder: 2}, norm_kind: batch"),
}


def write_configs(steps=20):
    for name, text in models.items():
        pathlib.Path(name + ".yaml").write_text(text.replace("STEPS", str(steps)))
    pathlib.Path("text.txt").write_text(" ".join(f"{i} times {i} is {i * i}." for i in range(600)))


def start(ranks, *command, env=None, each=None, options=()):
    """Starts the launcher with `heed COMMAND` or, if `each` is given, the command line each(rank) on every rank."""
    options = [*options, "--oversubscribe", "--bind-to", "none"] if mpi == "openmpi" else []
    words = [launcher] + options
    if each is None:
        words += ["-n", str(ranks), heed, *command]
    else:
        for rank in range(ranks):
            words += ([":"] if rank else []) + ["-n", "1", *each(rank)]
    mark = str(uuid.uuid4())
    environment = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
                   "HEED_TEST_MARK": mark, **(env or {})}
    process = subprocess.Popen(words, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)
    process.mark = mark
    return process


def processes(process):
    """The process ids of a launcher's ranks, by rank."""
    found = {}
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            text = (entry / "environ").read_bytes().decode(errors="replace").split("\0")
            name = (entry / "comm").read_text().strip()
        except OSError:
            continue
        if "HEED_TEST_MARK=" + process.mark not in text or name != "heed":
            continue
        for variable in text:
            if variable.startswith(("OMPI_COMM_WORLD_RANK=", "PMI_RANK=")):
                found[int(variable.split("=")[1])] = int(entry.name)
    return found


def end_of(process, what, status=None):
    """Waits for the launcher and its ranks to end. Returns the launcher's status and output."""
    try:
        out, err = process.communicate(timeout=patience)
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
        check(False, f"{what}: the run did not end within {patience} s\n{err}")
    deadline = time.time() + 10
    while processes(process) and time.time() < deadline:
        time.sleep(0.05)
    left = processes(process)
    check(not left, f"{what}: processes still run: {left}")
    for pid in left.values():
        os.kill(pid, signal.SIGKILL)
    if status is not None:
        check(process.returncode == status, f"{what}: status {process.returncode}, expected {status}\n{err}")
    return process.returncode, out + err


def alone(*command, status=0):
    done = subprocess.run([heed, *command], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    check(done.returncode == status, f"heed {' '.join(command)}: status {done.returncode}\n{done.stderr}")
    return done


def metrics(run):
    records = []
    for line in (pathlib.Path(run) / "metrics.jsonl").read_text().splitlines():
        record = json.loads(line)
        for clock in ("seconds", "tokens_per_s", "decode_seconds"):
            record.pop(clock, None)
        records.append(record)
    return records


def check_same(a, b, what):
    files = sorted(p.relative_to(a) for p in pathlib.Path(a).glob("checkpoints/*/*.safetensors"))
    check(bool(files), f"{what}: {a} has no checkpoints")
    for file in files:
        second = pathlib.Path(b) / file
        same = second.exists() and (pathlib.Path(a) / file).read_bytes() == second.read_bytes()
        check(same, f"{what}: {file} differs")
    check(metrics(a) == metrics(b), f"{what}: the metrics differ")
    outputs = [pathlib.Path(run) / "outputs.jsonl" for run in (a, b)]
    if outputs[0].exists():  # some tasks write no outputs
        check(outputs[0].read_bytes() == outputs[1].read_bytes(), f"{what}: the outputs differ")


def steps_done(run):
    try:
        return max(int(p.name[5:]) for p in (pathlib.Path(run) / "checkpoints").glob("step-*"))
    except (ValueError, OSError):
        return -1


def wait_for_step(run, step, process):
    deadline = time.time() + patience
    while steps_done(run) < step and process.poll() is None and time.time() < deadline:
        time.sleep(0.01)
    check(process.poll() is None, f"{run}: the run ended before step {step}")


# ---- bits ------------------------------------------------------------------------------------------
def bits():
    write_configs()
    table = [(p, t) for p in (2, 3, 4, 5, 8) for t in (1, 2)] if long_form else [(2, 1), (3, 2), (8, 1)]
    for name in models:
        alone("train", name + ".yaml", "--run", "one-" + name, "threads=1")
        for ranks, threads in table:
            run = f"{name}-{ranks}-{threads}"
            end_of(start(ranks, "train", name + ".yaml", "--run", run, f"threads={threads}"), run, 0)
            check_same("one-" + name, run, run)


def late():
    write_configs()
    for name in models if long_form else ("seq2seq", "norm"):
        alone("train", name + ".yaml", "--run", "late-one-" + name, "threads=1")
        run = "late-" + name
        _, text = end_of(start(3, "train", name + ".yaml", "--run", run, "threads=1", env={"LD_PRELOAD": delays}),
                         run, 0)
        held = [int(n) for n in re.findall(r"(\d+) messages were held back", text)]
        check(len(held) == 3 and min(held) > 100,
              f"late messages, {name}: expected more than 100 on each of 3 ranks, got {held}")
        check_same("late-one-" + name, run, "late messages, " + name)


def metrics_of_eval():
    """Distributed `heed eval` prints the same metrics as one process."""
    write_configs()
    alone("train", "seq2seq.yaml", "--run", "trained", "threads=1")
    one = json.loads(alone("eval", "trained", "--json").stdout)
    process = start(3, "eval", "trained", "--json", "threads=1")
    out, _ = process.communicate(timeout=patience)
    check(process.returncode == 0, f"eval: status {process.returncode}")
    check(out.count("{") == 1 and "\n" not in out.strip(), f"eval: the metrics are not printed exactly once: {out}")
    several = json.loads(out)
    for record in (one, several):
        record.pop("decode_seconds", None)
    check(one == several, f"eval: one process prints {one}, but three ranks print {several}")


# ---- signals and faults ----------------------------------------------------------------------------
long_run = 100000  # number of steps; every such run is ended early


def write_slow():
    """Writes a config whose steps take some milliseconds, and trains its first 10 steps in one process."""
    text = seq2seq.replace("d_model: 24", "d_model: 64").replace("d_ff: 48", "d_ff: 256")
    text = text.replace("train: 400", "train: 4000").replace("batch_tokens: 400", "batch_tokens: 2000")
    text = text.replace("keep: 100", "keep: 10000").replace("validate_every: 20", "validate_every: 50")
    pathlib.Path("slow.yaml").write_text(text.replace("STEPS", "10"))
    if not os.path.exists("whole"):
        alone("train", "slow.yaml", "--run", "whole", "threads=1")


def begin(run, ranks, *more, **how):
    write_slow()
    process = start(ranks, "train", "slow.yaml", "--run", run, "threads=1", f"train.steps={long_run}", *more, **how)
    wait_for_step(run, 10, process)
    return process


def resume_run(run, what, ranks=1):
    """Continues the run for some steps on `ranks` ranks, and compares it with the run in one process."""
    goal = (steps_done(run) // 10 + 2) * 10
    if ranks == 1:
        alone("resume", run, "threads=1", f"train.steps={goal}")
    else:
        end_of(start(ranks, "resume", run, "threads=1", f"train.steps={goal}"), what, 0)
    if steps_done("whole") < goal:
        alone("resume", "whole", "threads=1", f"train.steps={goal}")
    for file in ("model.safetensors", "training.safetensors"):
        step = f"checkpoints/step-{goal:08}/{file}"
        check(pathlib.Path("whole", step).read_bytes() == pathlib.Path(run, step).read_bytes(),
              f"{what}: {step} differs from that of one process")


def stop_and_continue():
    """SIGTERM to the launcher saves and ends the run. It continues on 3 ranks, is stopped again, and continues on one."""
    # Open MPI's launcher kills ranks that take longer (docs/CLUSTER.md), as on a machine under load.
    process = begin("stopped", 2, options=["--mca", "odls_base_sigkill_timeout", "4"])
    process.send_signal(signal.SIGTERM)
    status, text = end_of(process, "SIGTERM to the launcher")
    if mpi == "openmpi":  # MPICH's launcher may exit with status 0
        check(status != 0, "SIGTERM to the launcher: status 0")
    log = pathlib.Path("stopped/train.log").read_text()
    check("stopped by SIGTERM; to continue: heed resume stopped" in log,
          f"the log does not report a stop by SIGTERM: {log}\n{text}")
    first = steps_done("stopped")
    process = start(3, "resume", "stopped", "threads=1", f"train.steps={long_run}")
    wait_for_step("stopped", first + 10, process)
    pid = processes(process).get(1)
    os.kill(pid, signal.SIGTERM)  # a single rank
    _, text = end_of(process, "SIGTERM to a rank")
    log = pathlib.Path("stopped/train.log").read_text()
    check(log.count("stopped by SIGTERM") == 2, f"SIGTERM to a rank did not stop the run: {text}")
    resume_run("stopped", "stopped on 2 and 3 ranks, continued on one")


def killed():
    times = 100 if long_form else 3
    slowest = 0
    for i in range(times):
        run = f"killed-{i}"
        process = begin(run, 3)
        time.sleep(random.random() * 0.3)
        victim = random.choice(sorted(processes(process).items()))
        os.kill(victim[1], signal.SIGKILL)
        began = time.time()
        status, _ = end_of(process, f"rank {victim[0]} killed")
        took = time.time() - began
        slowest = max(slowest, took)
        check(status != 0, "a killed rank: status 0")
        check(took < 10, f"a killed rank: the others ended after {took:.1f} s")
        if i < 3 or i % 10 == 0:
            resume_run(run, f"rank {victim[0]} killed", 1 + i % 2)
        shutil.rmtree(run)
    print(f"{times} kills: all ranks ended within {slowest:.2f} s")


def stopped_rank():
    for rank in (0, 2):
        run = f"hangs-{rank}"
        process = begin(run, 3, "distributed.timeout=2")
        os.kill(processes(process)[rank], signal.SIGSTOP)
        _, text = end_of(process, f"rank {rank} hangs", 4)
        check(re.search(rf"no answer from rank {rank} on \S+ in 20? s \(distributed.timeout\)", text),
              f"the rank that hangs is not named:\n{text}")
        resume_run(run, f"rank {rank} hung")


def suspended():
    """Time during which all ranks are suspended does not count towards the timeout."""
    process = begin("suspended", 2, "distributed.timeout=2")
    pids = processes(process).values()
    for sent, pause in ((signal.SIGSTOP, 4), (signal.SIGCONT, 0)):
        for pid in pids:
            os.kill(pid, sent)
        time.sleep(pause)
    wait_for_step("suspended", steps_done("suspended") + 20, process)
    os.kill(processes(process)[0], signal.SIGTERM)
    end_of(process, "suspended")
    check("stopped by SIGTERM" in pathlib.Path("suspended/train.log").read_text(),
          "suspended: the run did not continue until SIGTERM")


def full_disk():
    process = begin("full", 2)
    limit = (1 << 16, 1 << 16)  # maximum size of a file in bytes; a checkpoint is larger
    resource.prlimit(processes(process)[0], resource.RLIMIT_FSIZE, limit)
    _, text = end_of(process, "a full disk", 4)
    check("File too large" in text, f"a full disk: the reason is not reported\n{text}")
    resume_run("full", "a full disk")


def unequal():
    write_configs()
    command = [heed, "train", "seq2seq.yaml", "--run", "unequal", "threads=1"]
    process = start(2, each=lambda rank: command + (["optim.lr=0.5"] if rank == 1 else []))
    _, text = end_of(process, "different configs", 2)
    check(re.search(r"rank 1 on \S+: optim.lr is 0.5, but 0.004 on rank 0", text),
          f"different configs are not reported:\n{text}")
    check(not os.path.exists("unequal"), "different configs: a run folder was created")
    process = start(2, each=lambda rank: (["env", "OPENBLAS_CORETYPE=Nehalem"] if rank == 1 else []) + command)
    _, text = end_of(process, "different BLAS kernels", 2)
    check(re.search(r"rank 1 on \S+: BLAS is ", text), f"different BLAS kernels are not reported:\n{text}")
    process = start(3, "train", "missing.yaml")
    _, text = end_of(process, "a missing config", 2)
    check(text.count("missing.yaml") == 1, f"a missing config is not reported exactly once:\n{text}")
    check(not os.path.exists("unequal"), "different BLAS kernels: a run folder was created")
    process = start(2, each=lambda rank: [heed, "resume" if rank == 1 else "train", "seq2seq.yaml"])
    _, text = end_of(process, "different commands", 2)
    check(re.search(r"rank 1 on \S+: the command is resume, but train on rank 0", text),
          f"different commands are not reported:\n{text}")
    os.mkfifo("pipe.yaml")
    _, text = end_of(start(2, "train", "pipe.yaml"), "a config in a pipe", 2)
    check("pipe.yaml is not a regular file; every rank must be able to read the config" in text,
          f"a config in a pipe is not reported:\n{text}")
    for _ in range(5):
        process = start(2, "show", "seq2seq.yaml")
        _, text = end_of(process, "a command that is not distributed")
        if mpi != "mpich" or process.returncode != -signal.SIGPIPE:
            break  # MPICH's launcher dies of SIGPIPE if the ranks end before it has written to their proxy
    check(process.returncode == 2, f"a command that is not distributed: status {process.returncode}, expected 2\n{text}")
    check("only train, resume and eval are distributed" in text,
          f"a command that is not distributed is not reported:\n{text}")


def damaged():
    """All ranks end if every checkpoint is damaged."""
    write_configs()
    alone("train", "seq2seq.yaml", "--run", "damaged", "threads=1")
    for file in pathlib.Path("damaged/checkpoints").glob("step-*/model.safetensors"):
        os.truncate(file, 100)
    _, text = end_of(start(2, "train", "seq2seq.yaml", "--run", "damaged", "threads=1"), "an existing run", 2)
    check(text.count("already holds a run") == 1, f"an existing run is not reported exactly once:\n{text}")
    _, text = end_of(start(3, "resume", "damaged", "threads=1"), "damaged checkpoints", 3)
    check("warning: train.shards=8 with 3 ranks: some ranks have more work than others" in text,
          f"an unequal number of shards is not reported:\n{text}")
    check(text.count("every checkpoint is damaged") == 1, f"damaged checkpoints are not reported exactly once:\n{text}")


def no_mpi():
    """A launcher whose processes cannot reach one another is refused."""
    write_configs()
    slurm = {"SLURM_STEP_NUM_TASKS": "4", "SLURM_PROCID": "0"}
    done = subprocess.run([heed, "train", "seq2seq.yaml", "--run", "none"], env={**os.environ, **slurm},
                          capture_output=True, text=True)
    check(done.returncode == 2 and "srun --mpi=pmix" in done.stderr, f"srun without PMIx: {done.stderr}")
    check(not os.path.exists("none"), "srun without PMIx: a run folder was created")


every = [bits, late, metrics_of_eval, stop_and_continue, killed, stopped_rank, suspended, full_disk, damaged, unequal,
         no_mpi]
work = tempfile.mkdtemp(prefix="heed-mpi-")
os.chdir(work)
try:
    for part in every:
        if wanted and part.__name__ not in wanted:
            continue
        began = time.time()
        before = checks
        part()
        print(f"{part.__name__}: {checks - before} checks, {time.time() - began:.1f} s", flush=True)
finally:
    os.chdir("/")
    shutil.rmtree(work, ignore_errors=True)
print(f"{checks} checks, {len(failures)} failed")
sys.exit(1 if failures else 0)
