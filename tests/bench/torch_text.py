#!/usr/bin/python3
"""Times PyTorch on real sentence pairs: the model of nmt-small, trained on padded batches.

    torch_text.py --tokenizer RUN/tokenizer.model --source F --target F [--batches N] [--batch-tokens N]
                  [torch_step.py's options]

Uses the lengths of the tokenised pairs and random ids, which do not affect the time. As usual, the pairs are
sorted by length, grouped into batches of at most --batch-tokens target tokens, including padding, and padded to
the maximum length of each batch; the batches are then shuffled. Prints one JSON object: target tokens per second
without padding, as the median of ten parts of the run. Needs python3-sentencepiece.
"""
import argparse
import gzip
import json
import random
import statistics
import sys
import time

ARGUMENTS = argparse.ArgumentParser(description=__doc__.splitlines()[0])
for name in ("--tokenizer", "--source", "--target"):
    ARGUMENTS.add_argument(name, required=True)
ARGUMENTS.add_argument("--batches", type=int, default=100, help="number of timed batches, after 5 warm-up batches")
ARGUMENTS.add_argument("--batch-tokens", type=int, default=4096)
OPTIONS, REST = ARGUMENTS.parse_known_args()
ALL_ARGUMENTS = sys.argv[1:]
sys.argv[1:] = ["nmt-small", *REST]  # torch_step reads these and may restart this program

import torch_step  # noqa: E402

torch_step.OPTIONS = torch_step.arguments()
sys.argv[1:] = ALL_ARGUMENTS
torch_step.restart_under(torch_step.OPTIONS.threads, torch_step.OPTIONS.isa)

import sentencepiece  # noqa: E402
import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402

PAD = 0


class PaddedModel(torch_step.Model):
    """nmt-small with padding masked in the keys of the encoder and of cross-attention."""

    def forward(self, source, target):
        heads = self.encoder[0].attention.heads
        hidden = torch.zeros_like(source, dtype=torch.float).masked_fill_(source == PAD, float("-inf"))
        keys = hidden.t().repeat_interleave(heads, 0)[:, None]  # [B heads, 1, S]
        encoder_output = self.embed(source)
        for block in self.encoder:
            encoder_output = block(encoder_output, mask=keys)
        encoder_output = self.norms[1](encoder_output)
        x = self.embed(target)
        causal = self.causal[:len(target), :len(target)]
        for block in self.decoder:
            x = self.decode(block, x, encoder_output, causal, keys)
        return F.linear(self.norms[0](x), self.embedding.weight)

    @staticmethod
    def decode(block, x, encoder_output, causal, keys):
        dropout = torch_step.dropout
        x = x + dropout(block.attention(block.norms[0](x), mask=causal))
        x = x + dropout(block.cross(block.norms[1](x), encoder_output, mask=keys))
        hidden = dropout(block.activation(block.linear1(block.norms[-1](x))))
        return x + dropout(block.linear2(hidden))

    def embed(self, ids):
        return torch_step.dropout(self.embedding(ids) * self.scale + self.positions[:len(ids)])


def tokens_of(path):
    """The number of tokens of each line, including the end token."""
    model = sentencepiece.SentencePieceProcessor(model_file=OPTIONS.tokenizer)
    with (gzip.open if path.endswith(".gz") else open)(path, "rt", encoding="utf-8") as lines:
        return [len(model.encode(line.rstrip("\n"))) + 1 for line in lines]


def batches_of(lengths, max_tokens):
    """Batches of pairs of similar length, with at most `max_tokens` padded target tokens."""
    batches, current = [], []
    for pair in sorted(lengths, key=lambda p: (p[1], p[0])):
        if current and pair[1] * (len(current) + 1) > max_tokens:
            batches.append(current)
            current = []
        current.append(pair)
    return batches + [current]


def padded(lengths, vocabulary):
    ids = torch.randint(3, vocabulary, (max(lengths), len(lengths)))
    return ids.masked_fill_(torch.arange(max(lengths))[:, None] >= torch.tensor(lengths), PAD)


def main():
    w = torch_step.WORKLOADS["nmt-small"]
    lengths = list(zip(tokens_of(OPTIONS.source), tokens_of(OPTIONS.target)))
    object.__setattr__(w, "length", max(max(pair) for pair in lengths) + 1)
    torch.set_num_threads(torch_step.OPTIONS.threads)
    torch.manual_seed(1)
    model = PaddedModel(w).train()
    weights = list(model.parameters())
    optimizer = torch.optim.Adam(weights, lr=1e-4, betas=(0.9, 0.98), eps=1e-9, foreach=True)

    def step(pairs):
        source, target = padded([s for s, _ in pairs], w.vocab), padded([t for _, t in pairs], w.vocab)
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cpu", torch.bfloat16, enabled=torch_step.OPTIONS.precision == "bf16"):
            logits = model(source, target)
        loss = F.cross_entropy(logits.float().flatten(0, 1), target.flatten(), ignore_index=PAD,
                               label_smoothing=torch_step.SMOOTHING)
        loss.backward()
        torch_step.clip([weight.grad for weight in weights])
        optimizer.step()
        return sum(t for _, t in pairs)

    batches = batches_of(lengths, OPTIONS.batch_tokens)
    random.Random(1).shuffle(batches)
    for pairs in batches[:5]:
        step(pairs)
    rates, part = [], max(1, OPTIONS.batches // 10)
    for begin in range(5, 5 + OPTIONS.batches, part):
        start = time.perf_counter()
        tokens = sum(step(batches[i % len(batches)]) for i in range(begin, begin + part))
        rates.append(tokens / (time.perf_counter() - start))
    print(json.dumps({"tokens_per_s": statistics.median(rates), "batches": OPTIONS.batches,
                      "batch_tokens": OPTIONS.batch_tokens, "precision": torch_step.OPTIONS.precision,
                      "dropout": torch_step.OPTIONS.dropout}))


if __name__ == "__main__":
    main()
