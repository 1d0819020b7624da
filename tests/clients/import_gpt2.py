#!/usr/bin/env python3
"""Time and memory of an imported GPT-2 of 124 million parameters, with random weights that transformers saves.

    build/clients/venv/bin/python tests/clients/import_gpt2.py TEXT [--heed PROGRAM] [--folder FOLDER] [--steps N]

The environment is that of `run`. TEXT, such as tinyshakespeare, is what the model is trained on for 50 updates. Prints the
seconds and the peak of memory of each command: import, generate, train, quantize, generate in int8, export.
"""
import argparse
import os
import pathlib
import subprocess
import sys
import time

import torch
import transformers

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[0:0] = [str(ROOT / "tests"), str(ROOT / "tests/bench")]

from clients.import_tokenizers import byte_pairs_of  # noqa: E402

transformers.logging.set_verbosity_error()
transformers.logging.disable_progress_bar()


def save(folder, text):
    """Saves the model, and a tokenizer that is learned from the text; the model has further ids, which stay unused."""
    tokenizer = byte_pairs_of(text.splitlines(keepends=True), 500)
    torch.manual_seed(1)
    transformers.GPT2LMHeadModel(transformers.GPT2Config(bos_token_id=0, eos_token_id=0)).save_pretrained(folder)
    tokenizer.save(str(folder / "tokenizer.json"))


def measure(program, *arguments):
    """Runs heed, and prints its time and memory."""
    start = time.monotonic()
    with subprocess.Popen([program, *map(str, arguments)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as child:
        message = child.stderr.read()
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        sys.exit(f"heed {arguments[0]}: {message}")
    print(f"{arguments[0]:<10}{time.monotonic() - start:8.1f} s {usage.ru_utime + usage.ru_stime:8.1f} s of processors "
          f"{usage.ru_maxrss / 2**20:6.2f} GiB", flush=True)


def main():
    """Runs the commands."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("text", type=pathlib.Path)
    parser.add_argument("--heed", type=pathlib.Path, default=ROOT / "build/release/train/heed")
    parser.add_argument("--folder", type=pathlib.Path, default=ROOT / "build/clients/gpt2")
    parser.add_argument("--steps", type=int, default=50)
    options = parser.parse_args()
    folder, program = options.folder.resolve(), options.heed.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    save(folder / "origin", options.text.read_text(encoding="utf-8"))
    (folder / "tuned.yaml").write_text(
        f"task: lm\ndata: {{train: {{text: {options.text.resolve()}}}}}\ntokenizer: {{kind: imported}}\n"
        f"model: {{init_from: {folder / 'run'}, d_model: 768, heads: 12, d_ff: 3072, layers: {{decoder: 12}}, context: 1024,\n"
        "  positions: learned, activation: gelu_tanh, scale_embeddings: false, dropout: 0.1}\n"
        f"optim: {{lr: 5.0e-5}}\ntrain: {{steps: {options.steps}, batch_tokens: 1024}}\n")
    measure(program, "import", folder / "origin", "--run", folder / "run", "--overwrite")
    measure(program, "generate", folder / "run", "--prompt", "To be", "--max-length", 50)
    measure(program, "train", folder / "tuned.yaml", "--run", folder / "tuned", "--overwrite")
    measure(program, "quantize", folder / "tuned", "--run", folder / "int8", "--overwrite")
    measure(program, "generate", folder / "int8", "--prompt", "To be", "--max-length", 50)
    measure(program, "export", folder / "tuned", "--to", "huggingface", "--output", folder / "export", "--overwrite", "--check")


if __name__ == "__main__":
    main()
