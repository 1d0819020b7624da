#!/usr/bin/env python3
"""test_essentials.py ESSENTIALS HEED: the reference Transformer as a program. It learns, checks its gradients, refuses
keys that it does not support, and reads the same experiments as heed."""
import os
import re
import subprocess
import sys
import tempfile

ESSENTIALS, HEED = map(os.path.abspath, sys.argv[1:3])
HERE = os.path.dirname(os.path.abspath(__file__))
CONFIGS = os.path.join(HERE, "..", "..", "..", "configs", "essentials")
SMALL = """task: {task}
data:
  train: {train}
  valid: {valid}
tokenizer: {{kind: char}}
model: {{d_model: 16, heads: 2, d_ff: 32, layers: 1, dropout: 0, norm: post, final_norm: false{more}}}
optim: {{lr: 5.0e-3, clip_norm: 0, schedule: {{warmup: 40}}}}
train: {{steps: 300, batch_tokens: 150, label_smoothing: 0.1}}
decode: {{beam: 1}}
"""
failures = 0


def check(right, what):
    global failures
    if not right:
        failures += 1
        print("FAILED:", what)


def run(*command, status=0):
    result = subprocess.run(command, capture_output=True, text=True, timeout=300)
    check(result.returncode == status, f"{' '.join(command)}: status {result.returncode}, expected {status}\n{result.stderr}")
    return result.stdout + result.stderr


def losses(output):
    return [float(loss) for loss in re.findall(r"loss (\S+)", output)]


def write(name, text):
    with open(name, "w", encoding="utf-8") as file:
        file.write(text)
    return name


with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    run(sys.executable, os.path.join(HERE, "make_data.py"), "runs/essentials", "300")
    for name in ("reverse", "dates"):
        config = os.path.join(CONFIGS, name + ".yaml")
        check("parameters" in run(HEED, "show", config), f"{name}: heed shows the experiment")

    pairs = write("pairs.yaml", SMALL.format(
        task="seq2seq", train="{source: runs/essentials/dates.train.source, target: runs/essentials/dates.train.target}",
        valid="{source: runs/essentials/dates.valid.source, target: runs/essentials/dates.valid.target}", more=""))
    text = write("text.yaml", SMALL.format(
        task="lm", train="{text: runs/essentials/dates.train.target}", valid="{text: runs/essentials/dates.valid.target}",
        more=", context: 20"))
    for experiment in (pairs, text):
        output = run(ESSENTIALS, "train", experiment)
        found = losses(output)
        check(len(found) >= 4 and found[3] < 0.7 * found[0], f"{experiment}: the loss falls: {found}")
        output = run(ESSENTIALS, "check", experiment)
        check("gradcheck passed" in output and "WRONG" not in output, f"{experiment}: gradients are correct:\n{output}")
    check(re.search(r"exact match \S+ % of 300 lines", run(ESSENTIALS, "train", pairs)), "validation lines are decoded")

    for stated, message in ((", dropout: 0", "model.dropout: 0 must be stated"),
                            ("decode: {beam: 1}\n", "decode.beam: 1 must be stated")):
        with open(pairs, encoding="utf-8") as file:
            broken = write("broken.yaml", file.read().replace(stated, ""))
        check(f"broken.yaml: {message}" in run(ESSENTIALS, "train", broken, status=2), f"{message}")

    for wrong, message in (("heads: 2", "model.heds: unknown or repeated key"), ("norm: post", "model.norm: expected post"),
                           ("lr: 5.0e-3", "optim.lr: "), ("d_ff: 32", "model.d_ff: unknown or repeated key")):
        replacement = {"heads: 2": "heds: 2", "norm: post": "norm: pre", "lr: 5.0e-3": "lr: fast", "d_ff: 32": "d_ff: 32, d_ff: 32"}[wrong]
        with open(pairs, encoding="utf-8") as file:
            broken = write("broken.yaml", file.read().replace(wrong, replacement))
        line = 7 if "lr" in wrong else 6
        check(f"broken.yaml:{line}: {message}" in run(ESSENTIALS, "train", broken, status=2), f"{replacement} is refused")
    write("short", "a\n")
    write("empty", "")
    for files, message in (("{source: short, target: empty}", "short has 1 lines, but empty has 0"),
                           ("{source: empty, target: empty}", "no samples")):
        with open(pairs, encoding="utf-8") as file:
            broken = write("broken.yaml", re.sub(r"train: \{source.*", "train: " + files, file.read()))
        check(message in run(ESSENTIALS, "train", broken, status=3), f"{files} is refused")
    check("missing.yaml" in run(ESSENTIALS, "train", "missing.yaml", status=2), "a missing file is named")

print("failures:", failures)
sys.exit(failures > 0)
