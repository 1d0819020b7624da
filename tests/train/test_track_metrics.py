#!/usr/bin/env python3
"""test_track_metrics.py SCRIPT OLD_RUN: runs docs/track_metrics.py with --dry-run, and without an installed tracker,
which must be an error."""
import fcntl
import json
import os
import shutil
import subprocess
import sys
import tempfile


def main():
    script, old_run = sys.argv[1:]
    command = [sys.executable, "-B", script]

    def call(*arguments):
        return subprocess.run([*command, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)

    with tempfile.TemporaryDirectory() as folder:
        run = os.path.join(folder, "run")
        shutil.copytree(old_run, run, symlinks=True)
        with open(os.path.join(run, "metrics.jsonl"), "a", encoding="utf-8") as file:
            file.write('{"kind":"train","step":400,"loss":0.25,"gradient_norms":{"encoder.layers.0":2,"embedding":null}}\n')
            file.write('{"kind":"train","step":500,"lo')  # an incomplete record, as if heed were still writing it
        lines = [json.loads(line) for line in open(os.path.join(run, "metrics.jsonl"), encoding="utf-8").readlines()[:-1]]

        result = call(run, "--to", "wandb", "--project", "p", "--dry-run")
        assert result.returncode == 0, result.stderr
        out = result.stdout.splitlines()
        assert out[0] == "project p, run old" and out[-1] == "end"
        assert "config model.d_model = " + config_value(run, "d_model") in out
        assert 'config task = "seq2seq"' in out and "config data.synthetic.symbols = 4" in out
        assert "step 400  train/loss = 0.25" in out
        assert "step 400  train.gradient_norms/encoder.layers.0 = 2" in out
        assert not any("embedding" in line or "step 500" in line for line in out if line.startswith("step"))
        for record in lines:
            if record["kind"] in ("valid", "test"):
                assert f"step {record['step']}  {record['kind']}/loss = {record['loss']!r}" in out

        for tracker in ("mlflow", "wandb", "trackio"):  # -I -S hide installed packages
            result = subprocess.run([sys.executable, "-I", "-S", script, run, "--to", tracker], check=False,
                                    stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            assert result.returncode == 1 and result.stderr.startswith(f"{tracker} is not installed"), result.stderr
        result = call(os.path.join(folder, "nowhere"), "--to", "wandb", "--dry-run")
        assert result.returncode == 1 and "not a run" in result.stderr
        follow(command, run)
        with open(os.path.join(run, "metrics.jsonl"), "a", encoding="utf-8") as file:
            file.write("\nnonsense\n")
        result = call(run, "--to", "wandb", "--dry-run")
        assert result.returncode == 1 and "metrics.jsonl:" in result.stderr and "not a record" in result.stderr
    print("docs/track_metrics.py: passed")


def config_value(run, key):
    line = next(line for line in open(os.path.join(run, "config.yaml"), encoding="utf-8") if line.strip().startswith(key + ":"))
    return line.split(":")[1].strip()


def follow(command, run):
    """Checks that the script forwards new records while a process holds the run's lock, and then ends."""
    path = os.path.join(run, "metrics.jsonl")
    with open(os.path.join(run, ".lock"), "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        process = subprocess.Popen([*command, run, "--to", "trackio", "--dry-run", "--follow", "--every", "0.05"],
                                   stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONUNBUFFERED": "1"})
        seen = until(process, "step 400  train/loss = 0.25")
        with open(path, "a", encoding="utf-8") as file:
            file.write('ss":0.125}\n')
        seen += until(process, "step 500  train/loss = 0.125")
        # The run resumes from step 400: the record of step 500 is removed, and one of step 450 is written.
        with open(path, "r+", encoding="utf-8") as file:
            text = file.read()
            file.truncate(text.index('{"kind":"train","step":500'))
        with open(path, "a", encoding="utf-8") as file:
            file.write('{"kind":"train","step":450,"loss":0.5}\n')
        seen += until(process, "step 450  train/loss = 0.5")
    rest = process.communicate()[0]
    assert process.returncode == 0 and rest == "end\n", rest
    assert seen.count("step 400  train/loss = 0.25") == 1, "a record was forwarded twice"


def until(process, wanted):
    lines = []
    while not lines or lines[-1] != wanted:
        line = process.stdout.readline()
        assert line, f"the script ended without printing: {wanted}"
        lines.append(line.rstrip("\n"))
    return lines


if __name__ == "__main__":
    main()
