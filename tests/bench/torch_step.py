#!/usr/bin/python3
"""Times optimised PyTorch training steps on a CPU with the shapes of configs/bench/.

    torch_step.py WORKLOAD [--steps N] [--threads N] [--attention baddbmm|sdpa] [--adam foreach|fused] [--compile] …

Prints one JSON object: step_ms (median), tokens_per_s, gflop_per_step, gflops, peak_rss_mb. The model
is optimised for PyTorch on CPUs: time-first layout, so that the heads are views; one product for
q, k, v; baddbmm, which scales and masks. It runs with PyTorch 1.13 of Debian, which restarts itself with
OpenBLAS's OpenMP build, and with that of PyPI, which brings MKL and oneDNN; --adam fused and --compile need the latter.
malloc is configured to keep freed memory.
"""
import argparse
import json
import math
import os
import resource
import statistics
import sys
import time

from workloads import BERT, LANGUAGE_MODEL, TRANSLATION, VIT, WORKLOADS

OPENBLAS = "/usr/lib/x86_64-linux-gnu/openblas-openmp"
DROPOUT, SMOOTHING = 0.1, 0.1


def restart_under(threads, isa):
    """Sets environment variables that libraries read only when they are loaded, and restarts the program if one changes."""
    wanted = {"OMP_NUM_THREADS": str(threads), "ATEN_CPU_CAPABILITY": isa,
              "MALLOC_TRIM_THRESHOLD_": str(1 << 40), "MALLOC_MMAP_THRESHOLD_": str(1 << 40),
              "MALLOC_TOP_PAD_": str(1 << 28)}
    if sys.prefix != sys.base_prefix:
        pass  # PyPI's PyTorch has its own BLAS
    elif os.path.isdir(OPENBLAS):
        wanted["LD_LIBRARY_PATH"] = OPENBLAS
    elif "LD_LIBRARY_PATH" not in os.environ:
        wanted["LD_LIBRARY_PATH"] = ""
        print("torch_step: PyTorch is slower with this BLAS: install libopenblas0-openmp", file=sys.stderr)
    if any(os.environ.get(name) != value for name, value in wanted.items()):
        os.execve(sys.executable, [sys.executable, "-B", *sys.argv], {**os.environ, **wanted})


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("workload", choices=WORKLOADS)
    parser.add_argument("--steps", type=int, default=0,
                        help="number of timed steps; 0 (default): 5 to 200, for about `--seconds`")
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--warmup", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--isa", choices=("avx2", "avx512"), default="avx512",
                        help="instruction set of PyTorch's loops")
    parser.add_argument("--attention", choices=("baddbmm", "sdpa"), default="baddbmm")
    parser.add_argument("--adam", choices=("foreach", "fused"), default="foreach")
    parser.add_argument("--compile", action="store_true", help="compile the model and its loss with torch.compile")
    parser.add_argument("--dropout", choices=("plain", "bytes", "none"), default="plain",
                        help="bytes: draws eight mask values with one random number, unlike PyTorch's dropout")
    parser.add_argument("--precision", choices=("float32", "bf16"), default="float32",
                        help="bf16: uses autocast")
    parser.add_argument("--profile", action="store_true", help="print the time of each op to stderr")
    return parser.parse_args()


OPTIONS = arguments() if __name__ == "__main__" else None
if OPTIONS:
    restart_under(OPTIONS.threads, OPTIONS.isa)

import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402
from torch import nn  # noqa: E402


class BytesDropout(torch.autograd.Function):
    """Dropout with p = 26/256. bernoulli_ draws one number at a time on one thread and is often slower than
    a product; random bytes take an eighth of that time, and the comparison runs on all threads.
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


def sdpa(q, k, v, mask, p):
    if not hasattr(F, "scaled_dot_product_attention"):  # PyTorch 1.13
        return F._scaled_dot_product_attention(q, k, v, mask, p, False, False)[0]
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask if mask is None else mask.to(q.dtype), dropout_p=p)


class Attention(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.in_proj, self.out_proj = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.d, self.heads, self.scale = d, heads, 1.0 / math.sqrt(d // heads)

    def forward(self, x, encoder_output=None, mask=None):
        """x: [T, B, d]; attends to encoder_output if given, otherwise to x. mask: broadcasts to the scores,
        [B heads, T, keys], and is added to them."""
        if encoder_output is None:
            q, k, v = self.in_proj(x).chunk(3, -1)
        else:
            w, b = self.in_proj.weight.split([self.d, 2 * self.d]), self.in_proj.bias.split([self.d, 2 * self.d])
            q = F.linear(x, w[0], b[0])
            k, v = F.linear(encoder_output, w[1], b[1]).chunk(2, -1)
        length, batch, _ = x.shape
        heads = lambda t: t.unflatten(-1, (self.heads, -1)).flatten(1, 2).transpose(0, 1)  # views
        q, k, v = heads(q), heads(k), heads(v)  # [B heads, T, d_k]
        y = self.attend(q, k, v, mask)
        return self.out_proj(y.transpose(0, 1).reshape(length, batch, self.d))

    def attend(self, q, k, v, mask):
        if OPTIONS.attention == "sdpa":
            return sdpa(q, k, v, mask, DROPOUT if OPTIONS.dropout != "none" else 0.0)
        scores = (torch.baddbmm(mask, q, k.transpose(1, 2), alpha=self.scale) if mask is not None else
                  torch.baddbmm(q.new_empty(1, 1, 1), q, k.transpose(1, 2), beta=0, alpha=self.scale))
        return torch.bmm(dropout(F.softmax(scores, -1)), v)


class Block(nn.Module):
    """Self-attention, cross-attention if `cross`, and feed-forward, each after a norm or, in BERT, before one."""

    def __init__(self, w, cross=False):
        super().__init__()
        self.attention = Attention(w.d, w.heads)
        self.cross = Attention(w.d, w.heads) if cross else None
        self.norms = nn.ModuleList(nn.LayerNorm(w.d) for _ in range(3 if cross else 2))
        self.linear1, self.linear2 = nn.Linear(w.d, w.ff), nn.Linear(w.ff, w.d)
        self.activation = F.relu_ if w.kind == TRANSLATION else F.gelu
        self.post = w.kind == BERT

    def around(self, norm, x, sublayer):
        if self.post:
            return norm(x + dropout(sublayer(x)))
        return x + dropout(sublayer(norm(x)))

    def feed(self, x):
        return self.linear2(dropout(self.activation(self.linear1(x))))

    def forward(self, x, encoder_output=None, mask=None):
        x = self.around(self.norms[0], x, lambda rows: self.attention(rows, mask=mask))
        if self.cross is not None:
            x = self.around(self.norms[1], x, lambda rows: self.cross(rows, encoder_output))
        return self.around(self.norms[-1], x, self.feed)


class DistanceBias(nn.Module):
    """T5's biases, [B heads, T, T]. Unless causal, each direction has half of the buckets. All distances from
    `farthest` on share a bucket."""

    def __init__(self, w, causal, buckets=32, farthest=128):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(buckets, w.heads))
        at = torch.arange(w.length)
        distance = at[:, None] - at
        side = buckets if causal else buckets // 2
        n = distance.clamp(min=0) if causal else distance.abs()
        exact = side // 2
        far = exact + (torch.log(n.clamp(min=1) / exact) / math.log(farthest / exact) * (side - exact)).long()
        bucket = torch.where(n < exact, n, far.clamp(max=side - 1))
        self.register_buffer("bucket", bucket if causal else bucket + side * (distance < 0))

    def forward(self, batch):
        # A copy for each sequence, because baddbmm adds one matrix to each product.
        return self.weight[self.bucket].permute(2, 0, 1).repeat(batch, 1, 1)


class Model(nn.Module):
    """An encoder-decoder, or one stack: a language model, BERT, ViT. Embedding and output share a matrix (not in ViT)."""

    def __init__(self, w):
        super().__init__()
        self.kind, self.batch = w.kind, w.batch
        stacks = 2 if w.kind == TRANSLATION else 1
        self.scale = math.sqrt(w.d)
        if w.kind == VIT:
            self.patches, self.output = nn.Linear(w.patch, w.d), nn.Linear(w.d, w.vocab)
        else:
            self.embedding = nn.Embedding(w.vocab, w.d)
            nn.init.normal_(self.embedding.weight, std=w.d ** -0.5)
        self.encoder = nn.ModuleList(Block(w) for _ in range(w.layers if stacks == 2 else 0))
        self.decoder = nn.ModuleList(Block(w, cross=stacks == 2) for _ in range(w.layers))
        self.norms = nn.ModuleList(nn.LayerNorm(w.d) for _ in range(0 if w.kind == BERT else stacks))
        self.biases = nn.ModuleList(DistanceBias(w, causal) for causal in ((True, False) if w.relative else ()))
        if w.kind in (BERT, VIT):
            self.positions = nn.Parameter(torch.randn(w.length, 1, w.d) * w.d ** -0.5)
        elif not w.relative:
            angles = torch.outer(torch.arange(w.length), 10000.0 ** (-torch.arange(0, w.d, 2) / w.d))
            self.register_buffer("positions", torch.stack((angles.sin(), angles.cos()), -1).flatten(1)[:, None])
        self.register_buffer("causal", torch.full((w.length, w.length), float("-inf")).triu(1)
                             if w.kind in (TRANSLATION, LANGUAGE_MODEL) else None)

    def embed(self, source):
        x = self.patches(source) if self.kind == VIT else self.embedding(source) * self.scale
        return dropout(x if self.biases else x + self.positions)

    def forward(self, source, target):
        """Maps tokens [T, B] or patches [T, B, values] to logits of each token, each seventh one (BERT) or each image."""
        encoder_output, mask = None, self.causal
        if self.encoder:
            bias = self.biases[1](self.batch) if self.biases else None
            encoder_output = self.embed(source)
            for block in self.encoder:
                encoder_output = block(encoder_output, mask=bias)
            encoder_output = self.norms[1](encoder_output)
        if self.biases:
            mask = mask + self.biases[0](self.batch)
        x = self.embed(target)
        for block in self.decoder:
            x = block(x, encoder_output, mask)
        if self.norms:
            x = self.norms[0](x)
        if self.kind == VIT:
            return self.output(x[0])
        return F.linear(x.flatten(0, 1)[::7] if self.kind == BERT else x, self.embedding.weight)


def clip(gradients, largest=1.0):
    """torch.nn.utils.clip_grad_norm_ in two foreach calls."""
    norm = torch.stack(torch._foreach_norm(gradients)).norm()
    torch._foreach_mul_(gradients, (largest / (norm + 1e-6)).clamp(max=1.0).item())


def trainer(w):
    """Returns a function that performs one training step."""
    torch.manual_seed(1)
    model = Model(w).train()
    weights = list(model.parameters())
    optimizer = torch.optim.Adam(weights, lr=1e-4, betas=(0.9, 0.98), eps=1e-9, **{OPTIONS.adam: True})
    source, target_in, target_out = torch.randint(0, w.vocab, (3, w.length, w.batch))
    if w.kind == BERT:
        target_out = target_out.flatten()[::7]
    if w.kind == VIT:  # the class token is a row of zeros
        target_in, target_out = torch.rand(w.length, w.batch, w.patch), target_out[0]
        target_in[0] = 0

    def loss_of(source, target_in, target_out):
        with torch.autocast("cpu", torch.bfloat16, enabled=OPTIONS.precision == "bf16"):
            logits = model(source, target_in)
        return F.cross_entropy(logits.float().flatten(0, -2), target_out.flatten(), label_smoothing=SMOOTHING)

    forward = torch.compile(loss_of) if OPTIONS.compile else loss_of

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss = forward(source, target_in, target_out)
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
    steps = OPTIONS.steps or min(200, max(5, round(OPTIONS.seconds / warm[-1])))
    seconds = statistics.median(timed(step) for _ in range(steps))
    gflop = w.flops() / 1e9
    print(json.dumps({
        "workload": w.name, "step_ms": 1e3 * seconds, "tokens_per_s": w.tokens / seconds,
        "gflop_per_step": gflop, "gflops": gflop / seconds, "steps": steps,
        "peak_rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "torch": torch.__version__, "threads": OPTIONS.threads, "isa": OPTIONS.isa,
        "attention": OPTIONS.attention, "adam": OPTIONS.adam, "compile": OPTIONS.compile, "dropout": OPTIONS.dropout,
        "precision": OPTIONS.precision}))
    if OPTIONS.profile:
        with torch.profiler.profile() as profile:
            step()
        print(profile.key_averages().table(sort_by="self_cpu_time_total", row_limit=25), file=sys.stderr)


if __name__ == "__main__":
    main()
