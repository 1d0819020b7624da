#!/usr/bin/python3
"""Times optimised PyTorch training steps on a CPU with the shapes of configs/bench/.

    torch_step.py WORKLOAD [--steps N] [--threads N] [--dropout plain|bytes] …

Prints one JSON object: step_ms (median), tokens_per_s, gflop_per_step, gflops, peak_rss_mb. The model
is optimised for PyTorch 1.13 on CPUs: time-first layout, so that the heads are views; one product for
q, k, v; baddbmm, which scales and masks; foreach Adam. The program restarts itself with OpenBLAS's
OpenMP build and a malloc that keeps its memory.
"""
import argparse
import json
import math
import os
import resource
import statistics
import sys
import time

from workloads import WORKLOADS

OPENBLAS = "/usr/lib/x86_64-linux-gnu/openblas-openmp"
DROPOUT, SMOOTHING = 0.1, 0.1


def restart_under(threads, isa):
    """Sets variables that libraries read only at their start, and restarts the program."""
    wanted = {"OMP_NUM_THREADS": str(threads), "ATEN_CPU_CAPABILITY": isa,
              "MALLOC_TRIM_THRESHOLD_": str(1 << 40), "MALLOC_MMAP_THRESHOLD_": str(1 << 40),
              "MALLOC_TOP_PAD_": str(1 << 28)}
    if os.path.isdir(OPENBLAS):
        wanted["LD_LIBRARY_PATH"] = OPENBLAS
    elif "LD_LIBRARY_PATH" not in os.environ:
        wanted["LD_LIBRARY_PATH"] = ""
        print("torch_step: PyTorch is slower with this BLAS: install libopenblas0-openmp", file=sys.stderr)
    if any(os.environ.get(name) != value for name, value in wanted.items()):
        os.execve(sys.executable, [sys.executable, "-B", *sys.argv], {**os.environ, **wanted})


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("workload", choices=WORKLOADS)
    parser.add_argument("--steps", type=int, default=0, help="timed steps; 0: about 10 seconds' worth")
    parser.add_argument("--warmup", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--isa", choices=("avx2", "avx512"), default="avx512",
                        help="instruction set of PyTorch's loops")
    parser.add_argument("--attention", choices=("baddbmm", "sdpa"), default="baddbmm")
    parser.add_argument("--dropout", choices=("plain", "bytes", "none"), default="plain",
                        help="bytes: eight mask values from one random number instead of PyTorch's dropout")
    parser.add_argument("--precision", choices=("float32", "bf16"), default="float32",
                        help="bf16: with autocast")
    parser.add_argument("--profile", action="store_true", help="time by op, to stderr")
    return parser.parse_args()


OPTIONS = arguments() if __name__ == "__main__" else None
if OPTIONS:
    restart_under(OPTIONS.threads, OPTIONS.isa)

import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402
from torch import nn  # noqa: E402


class BytesDropout(torch.autograd.Function):
    """Dropout with p = 26/256. bernoulli_ draws one number at a time on one thread and is often slower than
    a product; random bytes cost an eighth of that, and the comparison runs on all threads.
    """
    KEEP_FROM = 26

    @staticmethod
    def forward(context, x):
        words = (x.numel() + 7) // 8
        bytes_ = torch.empty(words, dtype=torch.int64).random_(-2**63, None).view(torch.uint8)
        mask = (bytes_[:x.numel()] >= BytesDropout.KEEP_FROM).view(x.shape)
        context.save_for_backward(mask)
        return torch.mul(x, mask).mul_(256 / (256 - BytesDropout.KEEP_FROM))

    @staticmethod
    def backward(context, dy):
        mask, = context.saved_tensors
        return torch.mul(dy, mask).mul_(256 / (256 - BytesDropout.KEEP_FROM))


def dropout(x):
    if OPTIONS.dropout == "none":
        return x
    return BytesDropout.apply(x) if OPTIONS.dropout == "bytes" else F.dropout(x, DROPOUT, True)


class Attention(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.in_proj, self.out_proj = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.d, self.heads, self.scale = d, heads, 1.0 / math.sqrt(d // heads)

    def forward(self, x, memory=None, mask=None):
        """x: [T, B, d]; attends to memory if given, else to itself. mask: [T, T], added."""
        if memory is None:
            q, k, v = self.in_proj(x).chunk(3, -1)
        else:
            w, b = self.in_proj.weight.split([self.d, 2 * self.d]), self.in_proj.bias.split([self.d, 2 * self.d])
            q = F.linear(x, w[0], b[0])
            k, v = F.linear(memory, w[1], b[1]).chunk(2, -1)
        length, batch, _ = x.shape
        heads = lambda t: t.unflatten(-1, (self.heads, -1)).flatten(1, 2).transpose(0, 1)  # views
        q, k, v = heads(q), heads(k), heads(v)  # [B heads, T, d_k]
        y = self.attend(q, k, v, mask)
        return self.out_proj(y.transpose(0, 1).reshape(length, batch, self.d))

    def attend(self, q, k, v, mask):
        if OPTIONS.attention == "sdpa":
            return F._scaled_dot_product_attention(q, k, v, mask, DROPOUT, False, False)[0]
        scores = (torch.baddbmm(mask, q, k.transpose(1, 2), alpha=self.scale) if mask is not None else
                  torch.baddbmm(q.new_empty(1, 1, 1), q, k.transpose(1, 2), beta=0, alpha=self.scale))
        return torch.bmm(dropout(F.softmax(scores, -1)), v)


class Block(nn.Module):
    """Pre-norm: self-attention, with `cross` attention to the encoder, feed-forward."""

    def __init__(self, w, cross=False):
        super().__init__()
        self.attention = Attention(w.d, w.heads)
        self.cross = Attention(w.d, w.heads) if cross else None
        self.norms = nn.ModuleList(nn.LayerNorm(w.d) for _ in range(3 if cross else 2))
        self.linear1, self.linear2 = nn.Linear(w.d, w.ff), nn.Linear(w.ff, w.d)
        self.activation = F.gelu if w.lm else F.relu_

    def forward(self, x, memory=None, mask=None):
        x = x + dropout(self.attention(self.norms[0](x), mask=mask))
        if self.cross is not None:
            x = x + dropout(self.cross(self.norms[1](x), memory))
        hidden = dropout(self.activation(self.linear1(self.norms[-1](x))))
        return x + dropout(self.linear2(hidden))


class Model(nn.Module):
    """Encoder-decoder, or a decoder for a language model; one matrix for embedding and output."""

    def __init__(self, w):
        super().__init__()
        self.embedding = nn.Embedding(w.vocab, w.d)
        nn.init.normal_(self.embedding.weight, std=w.d ** -0.5)
        self.scale = math.sqrt(w.d)
        self.encoder = nn.ModuleList(Block(w) for _ in range(0 if w.lm else w.layers))
        self.decoder = nn.ModuleList(Block(w, cross=not w.lm) for _ in range(w.layers))
        self.norms = nn.ModuleList(nn.LayerNorm(w.d) for _ in range(1 if w.lm else 2))
        angles = torch.outer(torch.arange(w.length), 10000.0 ** (-torch.arange(0, w.d, 2) / w.d))
        table = torch.stack((angles.sin(), angles.cos()), -1).flatten(1)
        self.register_buffer("positions", table[:, None])
        self.register_buffer("causal", torch.full((w.length, w.length), float("-inf")).triu(1))

    def embed(self, ids):
        return dropout(self.embedding(ids) * self.scale + self.positions)

    def forward(self, source, target):
        """Token ids [T, B] to logits [T, B, vocab]."""
        memory = None
        if self.encoder:
            memory = self.embed(source)
            for block in self.encoder:
                memory = block(memory)
            memory = self.norms[1](memory)
        x = self.embed(target)
        for block in self.decoder:
            x = block(x, memory, self.causal)
        return F.linear(self.norms[0](x), self.embedding.weight)


def clip(gradients, largest=1.0):
    """torch.nn.utils.clip_grad_norm_ in two foreach calls."""
    norm = torch.stack(torch._foreach_norm(gradients)).norm()
    torch._foreach_mul_(gradients, (largest / (norm + 1e-6)).clamp(max=1.0).item())


def trainer(w):
    """Returns a function that performs one training step."""
    torch.manual_seed(1)
    model = Model(w).train()
    weights = list(model.parameters())
    optimizer = torch.optim.Adam(weights, lr=1e-4, betas=(0.9, 0.98), eps=1e-9, foreach=True)
    source, target_in, target_out = torch.randint(0, w.vocab, (3, w.length, w.batch))

    def step():
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cpu", torch.bfloat16, enabled=OPTIONS.precision == "bf16"):
            logits = model(source, target_in)
        loss = F.cross_entropy(logits.float().flatten(0, 1), target_out.flatten(),
                               label_smoothing=SMOOTHING)
        loss.backward()
        clip([weight.grad for weight in weights])
        optimizer.step()
        return loss.item()
    return step


def timed(step):
    start = time.perf_counter()
    loss = step()
    assert math.isfinite(loss), "the loss is not finite"
    return time.perf_counter() - start


def main():
    w = WORKLOADS[OPTIONS.workload]
    torch.set_num_threads(OPTIONS.threads)
    step = trainer(w)
    warm = [timed(step) for _ in range(max(1, OPTIONS.warmup))]
    steps = OPTIONS.steps or min(200, max(5, round(10.0 / warm[-1])))
    seconds = statistics.median(timed(step) for _ in range(steps))
    gflop = w.flops() / 1e9
    print(json.dumps({
        "workload": w.name, "step_ms": 1e3 * seconds, "tokens_per_s": w.tokens / seconds,
        "gflop_per_step": gflop, "gflops": gflop / seconds, "steps": steps,
        "peak_rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "torch": torch.__version__, "threads": OPTIONS.threads, "isa": OPTIONS.isa,
        "attention": OPTIONS.attention, "dropout": OPTIONS.dropout,
        "precision": OPTIONS.precision}))
    if OPTIONS.profile:
        with torch.profiler.profile() as profile:
            step()
        print(profile.key_averages().table(sort_by="self_cpu_time_total", row_limit=25), file=sys.stderr)


if __name__ == "__main__":
    main()
