"""Programs from PyPI that tests compare heed with, in a virtual environment of their own."""
import pathlib
import subprocess
import sys

TORCH = "torch==2.13.0"  # any version from 2 on works
FOLDER = pathlib.Path(__file__).resolve().parents[1] / "build/clients"


def environment(folder=FOLDER):
    """The Python of the virtual environment FOLDER/venv, which the first call makes."""
    python = pathlib.Path(folder) / "venv/bin/python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", python.parents[1]], check=True)
    return python


def install(python, packages):
    """Installs packages for `python`. Returns the reason why it failed, or None."""
    done = subprocess.run([python, "-m", "pip", "install", "--quiet", *packages], stderr=subprocess.PIPE, text=True)
    return None if done.returncode == 0 else (done.stderr.strip().splitlines() or ["unknown"])[-1]
