"""Fifty training steps in float64: weights, batches and PyTorch's losses."""
import torch
import torch.nn.functional as F

from cases import Group, normal, offsets, stream
from model import Seq2Seq
from optimisers import learning_rate

STEPS, VOCAB, SEQUENCES, BEGIN, END = 50, 23, 6, 1, 2
MODEL = dict(d_model=16, heads=4, d_ff=32, encoder_layers=2, decoder_layers=2, activation="relu",
             norm="pre")
ADAM = dict(betas=(0.9, 0.98), eps=1e-9)
LR, WARMUP, CLIP, SMOOTHING = 1e-2, 10, 1.0, 0.1


def initialise(model):
    """Xavier-like weights; biases differ from 0 and norms from 1, so that each has an effect."""
    model.double().train()
    for name, weight in model.named_parameters():
        noise = normal(f"trajectory/{name}", *weight.shape)
        if weight.dim() == 2:
            scale = (2.0 / sum(weight.shape)) ** 0.5 if "embedding" not in name else 0.25
            weight.data = scale * noise
        else:
            weight.data = 0.05 * noise + (1.0 if "norm" in name and "weight" in name else 0.0)


def batch(step):
    """Random sentences of 1 to 7 tokens; the targets are the first 5 tokens of the reversed sentences."""
    random = stream(f"trajectory/batch/{step}")
    sentences = [random.randint(3, VOCAB, random.randint(1, 8)).tolist() for _ in range(SEQUENCES)]
    targets = [s[::-1][:5] for s in sentences]
    join = lambda parts: torch.tensor(sum(parts, []))
    return {"source": join([s + [END] for s in sentences]),
            "source_offsets": offsets(len(s) + 1 for s in sentences),
            "target_in": join([[BEGIN] + t for t in targets]),
            "target_out": join([t + [END] for t in targets]),
            "target_offsets": offsets(len(t) + 1 for t in targets)}


def train(model, batches, watch=lambda step, what, value: None):
    """Runs the training loop, calling watch with the logits and gradients of each step.

    Returns the losses, learning rates and gradient norms, one row each.
    """
    weights = list(model.parameters())
    optimizer = torch.optim.Adam(weights, lr=LR, **ADAM)
    losses, rates, norms = [], [], []
    for step, b in enumerate(batches, start=1):
        logits = model.batch_logits(b["source"], b["source_offsets"], b["target_in"],
                                    b["target_offsets"])
        loss = F.cross_entropy(logits, b["target_out"], label_smoothing=SMOOTHING,
                               reduction="sum") / len(b["target_out"])
        optimizer.zero_grad()
        loss.backward()
        watch(step, "logits", logits)
        watch(step, "gradients", {name: w.grad.clone() for name, w in model.named_parameters()})
        norms.append(torch.nn.utils.clip_grad_norm_(weights, CLIP).item())
        rates.append(learning_rate("noam", step, LR, WARMUP))
        optimizer.param_groups[0]["lr"] = rates[-1]
        optimizer.step()
        losses.append(loss.item())
    return torch.tensor([losses, rates, norms], dtype=torch.float64)


def make():
    group = Group()
    model = Seq2Seq(VOCAB, VOCAB, **MODEL)
    initialise(model)
    batches = [batch(step) for step in range(1, STEPS + 1)]
    group.describe("trajectory", steps=STEPS, vocab=VOCAB, **MODEL, dropout=0.0, clip_norm=CLIP,
                   label_smoothing=SMOOTHING, lr=LR, schedule="noam", warmup=WARMUP,
                   positions="sinusoidal", tie_embeddings=True, scale_embeddings=True, **ADAM)
    for name, weight in model.named_parameters():
        group.put("trajectory", f"weights/{name}", weight.clone())
    for step, b in enumerate(batches, start=1):
        for name, value in b.items():
            group.put("trajectory", f"batches/{step}/{name}", value)

    def watch(step, what, value):
        if step != 1:
            return
        for name, tensor in (value.items() if what == "gradients" else [("", value)]):
            group.put("trajectory", f"first_{what}/{name}".rstrip("/"), tensor)

    losses, rates, norms = train(model, batches, watch)
    for name, values in (("losses", losses), ("learning_rates", rates), ("gradient_norms", norms)):
        group.put("trajectory", name, values)
    return group
