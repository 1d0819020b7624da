#!/usr/bin/env python3
"""test_notebook.py NOTEBOOK MODULE FOLDER: executes the notebook in a Jupyter kernel, with the Python module of the folder
MODULE, and checks its outputs. Writes the executed notebook to FOLDER.

Without the module or Jupyter, the status is 77 (skipped).
"""
import base64
import html
import importlib.util
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

NOTEBOOK, MODULE, FOLDER = map(pathlib.Path, sys.argv[1:4])
sys.path.insert(0, str(MODULE))
missing = [name for name in ("heed", "numpy", "nbconvert", "ipykernel") if importlib.util.find_spec(name) is None]
if missing:
    print(f"skipped: no {', '.join(missing)} (Debian: apt-get install pybind11-dev python3-dev python3-numpy jupyter-nbconvert "
          "python3-ipykernel, then build heed again)")
    sys.exit(77)

shipped = json.loads(NOTEBOOK.read_text())
for cell in shipped["cells"]:
    assert not cell.get("outputs") and not cell.get("execution_count"), "the notebook in docs/ contains outputs"

shutil.rmtree(FOLDER, ignore_errors=True)
FOLDER.mkdir(parents=True)
shutil.copy(NOTEBOOK, FOLDER)
environment = os.environ | {"PYTHONPATH": str(MODULE), "HOME": str(FOLDER), "XDG_STATE_HOME": str(FOLDER)}

# Fails if a cell raises an exception.
subprocess.run([sys.executable, "-m", "jupyter", "nbconvert", "--to", "notebook", "--execute", "--inplace", NOTEBOOK.name],
               cwd=FOLDER, env=environment, check=True)
executed = json.loads((FOLDER / NOTEBOOK.name).read_text())
outputs, streams = {}, ""  # the last result of each cell by its source; all messages
for cell in executed["cells"]:
    for output in cell.get("outputs", []):
        outputs["".join(cell["source"])] = {kind: "".join(text) for kind, text in output.get("data", {}).items()}
        streams += "".join(output.get("text", ""))


def output_of(part, kind="text/plain"):
    (found,) = [output for source, output in outputs.items() if part in source]
    return found[kind]


assert re.search(r"all \d+ parameters have the right gradient", output_of("gradcheck")), output_of("gradcheck")
assert "heed.Run('runs/reverse', weights: best" in output_of("heed.train"), output_of("heed.train")
assert "train step 800/800 (100%)" in streams, streams
assert re.fullmatch(r"\['[a-j ]+', '[a-j ]+', '[a-j ]+'\]", output_of("run.generate")), output_of("run.generate")
for part in ("run.curves()", "attention.figure()"):
    assert output_of(part, "image/svg+xml").startswith("<svg"), part
    (image,) = re.findall(r'^<img alt="" src="data:image/svg\+xml;base64,([^"]*)">$', output_of(part, "text/html"))
    assert base64.b64decode(image).decode() == output_of(part, "image/svg+xml"), part
for part in ('run.attention("a b c d e f g h")', "run.report()"):
    (page,) = re.findall(r'srcdoc="([^"]*)"', output_of(part, "text/html"))
    assert html.unescape(page).startswith("<!DOCTYPE html>"), part
