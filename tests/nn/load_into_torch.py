#!/usr/bin/python3
"""Checks that weights written by heed load into torch.nn.Transformer by name and yield the same logits.

    load_into_torch.py WRITE_TORCH_CASE

Runs WRITE_TORCH_CASE for each of its variants and passes the files to tests/golden/load_into_torch.py.
Exits with 77 if PyTorch is not installed.
"""
import importlib.util
import pathlib
import subprocess
import sys
import tempfile

LOADER = pathlib.Path(__file__).resolve().parent.parent / "golden" / "load_into_torch.py"


def main():
    program = sys.argv[1]
    if importlib.util.find_spec("torch") is None:
        print("skipped: PyTorch is not installed")
        return 77
    names = subprocess.run([program], check=True, capture_output=True, text=True).stdout.split()
    failed = [] if names else ["(no variant)"]
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([program, folder, name], check=True)
            loaded = subprocess.run(
                [sys.executable, "-B", LOADER, "--model", f"{folder}/model.safetensors",
                 "--case", f"{folder}/case.safetensors"], capture_output=True, text=True)
        print(f"{name}: {loaded.stdout}{loaded.stderr}", end="", flush=True)
        if loaded.returncode != 0:
            failed.append(name)
    if failed:
        print("failed:", ", ".join(failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
