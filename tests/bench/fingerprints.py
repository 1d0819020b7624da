"""The origin of trained figures: where the runs of a record were trained, and fingerprints of their first steps."""
import collections
import hashlib
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
STEPS = 20


def fingerprint(options, config, keys):
    """The kernel and the SHA-256 of the weights after the first steps. Throws RuntimeError if heed cannot train."""
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile("w+") as log:
        run = pathlib.Path(folder) / "run"
        weights = run / f"checkpoints/step-{STEPS:08}/model.safetensors"
        # The keys of the schedule stay as they are, so the run is stopped instead of shortened.
        process = subprocess.Popen([options.heed, "train", config, "--run", run, *keys, "threads=1",
                                    f"train.save_every={STEPS}", "train.keep=1000000"], cwd=ROOT,
                                   stdout=subprocess.DEVNULL, stderr=log)
        while process.poll() is None and not weights.exists():
            time.sleep(0.02)
        process.terminate()
        process.wait()
        if not weights.exists():
            log.seek(0)
            raise RuntimeError(" ".join(log.read().strip().splitlines()[-1:]))
        kernel = json.loads((run / "run.json").read_text())["blas_kernel"]["name"]
        return kernel, hashlib.sha256(weights.read_bytes()).hexdigest()


def of_runs(options):
    """A fingerprint for each config of the experiment's runs, with their first seed."""
    place, configs = f"{options.runs}/", {}
    for run in sorted(options.used, key=lambda run: run.name):
        configs.setdefault((run.config, *(k for k in run.keys if not k.startswith("seed="))), run)
    found = []
    for run in configs.values():
        kernel, weights = fingerprint(options, run.config, run.keys)
        found.append({"config": run.config, "keys": [k.replace(place, "RUNS/") for k in run.keys], "kernel": kernel,
                      "weights": weights})
    return found


def measured(options):
    """`measured` of a record, from the files of the runs. Fails if two runs differ in more than commit and date."""
    found = collections.defaultdict(dict)
    for run in options.used:
        folder = options.runs / options.experiment / run.name
        about = json.loads((folder / "run.json").read_text())
        precision = re.search(r"^\s*precision: *(\S+)", (folder / "config.yaml").read_text(), re.M)
        for key, value in (("commit", about.get("revision")), ("date", about["started"][:10]),
                           ("processor", about["cpu"]), ("cores", about["processors"]),
                           ("kernel", about["blas_kernel"]["name"]),
                           ("precision", precision[1] if precision else "float32")):
            found[key].setdefault(value, run.name)
    for key in ("processor", "cores", "kernel"):
        if len(found[key]) > 1:
            sys.exit(f"{options.runs / options.experiment}: the runs differ in {key}: " +
                     "; ".join(f"{name}: {value}" for value, name in found[key].items()) +
                     "; remove those of one of them and start again")
    join = lambda values: ", ".join(sorted(values)) if None not in values else None
    return {"commit": join(found["commit"]), "date": max(found["date"]), "processor": join(found["processor"]),
            "cores": next(iter(found["cores"])), "kernel": join(found["kernel"]),
            "precision": join(found["precision"]), "conditions": None}


def stale(options):
    """Lists the records whose configs have other bits than when they were measured, and those that cannot be compared."""
    count = 0
    for path in sorted(p for p in (ROOT / "docs/results").glob("*.json") if options.only in p.stem):
        record = json.loads(path.read_text())
        lines = []
        if None in (record["measured"]["commit"], record.get("fingerprints", [])):
            lines.append("commit or fingerprints are not recorded: it needs a new run")
        for entry in record.get("fingerprints") or []:
            name = " ".join([entry["config"], *entry["keys"]])
            try:
                kernel, weights = fingerprint(options, entry["config"],
                                              [k.replace("RUNS/", f"{options.runs}/") for k in entry["keys"]])
            except RuntimeError as error:
                lines.append(f"cannot tell: {name}: {error}")
                continue
            if kernel != entry["kernel"]:
                lines.append(f"cannot tell: {name}: measured with BLAS kernel {entry['kernel']}; here it is {kernel}")
            elif weights != entry["weights"]:
                lines.append(f"other bits: {name}")
        count += any(not line.startswith("cannot tell") for line in lines)
        print("".join(f"{path.stem}: {line}\n" for line in lines), end="", flush=True)
    return 1 if count else 0
