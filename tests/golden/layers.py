"""Golden values of every layer of nn/, from the torch.nn module with the same parameter names.

Sequences are concatenated as rows. PyTorch computes each of them alone, as a batch of one, so that
neither side uses padding; autograd sums the gradients of the shared weights.
"""
import math

import torch
import torch.nn.functional as F
from torch import nn

from cases import Group, integers, normal, offsets, randomise, rows_of

D_MODEL, HEADS, D_FF, LAYERS = 12, 3, 20, 2
VOCABULARY, MAX_LENGTH, END = 9, 8, 2  # sizes and end token of "bert"; "vit" shares MAX_LENGTH
PATCH = 5  # number of values of a patch in "vit" and "front_end"
SOURCE_LENGTHS, TARGET_LENGTHS = (3, 5, 1), (4, 2, 6)
ACTIVATIONS = {"relu": F.relu, "gelu": F.gelu, "silu": F.silu,
               "gelu_tanh": lambda x: F.gelu(x, approximate="tanh")}


def causal_mask(length):
    """The mask added to the scores: -inf above the diagonal."""
    return torch.full((length, length), float("-inf"), dtype=torch.float64).triu(1)


def per_sequence(function, *sides):
    """Applies function to each sequence, as [1, T, d], and concatenates the results. A side is a pair (rows, offsets)."""
    split = [rows_of(x, bounds) for x, bounds in sides]
    return torch.cat([function(*(x[None] for x in parts))[0] for parts in zip(*split)])


def source_rows(case, lengths=SOURCE_LENGTHS):
    return normal(f"{case}/x0", sum(lengths), D_MODEL), offsets(lengths)


def target_rows(case):
    return normal(f"{case}/x1", sum(TARGET_LENGTHS), D_MODEL), offsets(TARGET_LENGTHS)


def linear(group):
    for case, bias in (("linear", True), ("linear_no_bias", False)):
        module = randomise(nn.Linear(5, 3, bias=bias), case)
        group.layer(case, "linear", module, module, [normal(f"{case}/x0", 4, 5)])


def embedding(group):
    case, scale = "embedding", math.sqrt(D_MODEL)
    module = randomise(nn.Embedding(11, D_MODEL), case)
    ids = integers(f"{case}/ids", 11, 9)
    group.layer(case, "embedding", module, lambda: module(ids) * scale, [], {"ids": ids},
                scale=scale)


def layer_norm(group):
    case = "layer_norm"
    module = randomise(nn.LayerNorm(D_MODEL), case)
    group.layer(case, case, module, module, [normal(f"{case}/x0", 6, D_MODEL)], eps=module.eps)


class RmsNorm(nn.Module):
    """RMS norm (Zhang and Sennrich 2019), which PyTorch 1.13 does not have."""

    def __init__(self, width, eps=1e-5):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.eps = eps

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * self.weight


def rms_norm(group):
    case = "rms_norm"
    module = randomise(RmsNorm(D_MODEL), case)
    group.layer(case, case, module, module, [normal(f"{case}/x0", 6, D_MODEL)], eps=module.eps)


def sinusoids(length, d_model):
    """Vaswani et al. 2017, section 3.5: row p alternates sin(p / 10000^(2i/d)) and cos(…)."""
    angles = [[p / 10000.0 ** (2 * (i // 2) / d_model) for i in range(d_model)]
              for p in range(length)]
    return torch.tensor([[math.cos(a) if i % 2 else math.sin(a) for i, a in enumerate(row)]
                         for row in angles], dtype=torch.float64)


def positions(group):
    for case, length, d_model in (("positions", 20, D_MODEL), ("positions_odd", 5, 7)):
        group.describe(case, layer="positions", d_model=d_model)
        group.put(case, "y", sinusoids(length, d_model))


def attention(group):
    def module_of(case):
        return randomise(nn.MultiheadAttention(D_MODEL, HEADS, batch_first=True), case)

    for case, causal in (("attention_self", False), ("attention_causal", True)):
        module, (x, bounds) = module_of(case), source_rows(case)
        def run(x):
            mask = causal_mask(x.shape[1]) if causal else None
            return module(x, x, x, attn_mask=mask, need_weights=False)[0]
        group.layer(case, "attention", module, lambda x: per_sequence(run, (x, bounds)), [x],
                    {"offsets0": bounds}, heads=HEADS, causal=causal)

    case = "attention_cross"  # x0: queries from the decoder; x1: keys and values from the encoder
    module, (x, bounds), (memory, ends) = module_of(case), source_rows(case), target_rows(case)
    run = lambda x, memory: module(x, memory, memory, need_weights=False)[0]
    group.layer(case, "attention", module,
                lambda x, memory: per_sequence(run, (x, bounds), (memory, ends)), [x, memory],
                {"offsets0": bounds, "offsets1": ends}, heads=HEADS, causal=False)


def recurrent(group):
    """nn.LSTM and nn.GRU with one direction, or with two concatenated directions of half the width."""
    for mixer, kind in (("lstm", nn.LSTM), ("gru", nn.GRU)):
        for causal in (False, True):
            case = f"{mixer}_{'causal' if causal else 'both'}"
            module = randomise(kind(D_MODEL, D_MODEL if causal else D_MODEL // 2, batch_first=True,
                                    bidirectional=not causal), case)
            x, bounds = source_rows(case)
            run = lambda x: module(x)[0]
            group.layer(case, "mixer", module, lambda x: per_sequence(run, (x, bounds)), [x],
                        {"offsets0": bounds}, mixer=mixer, causal=causal)


class GatedConvolution(nn.Module):
    """A gated convolution (Dauphin et al. 2017). Column j d + c of the weight belongs to input channel c at position j
    of the kernel."""

    def __init__(self, width, before):
        super().__init__()
        self.conv = nn.Linear(width * D_MODEL, 2 * D_MODEL)
        self.width, self.padding = width, (before, width - 1 - before)

    def forward(self, x):
        kernel = self.conv.weight.view(2 * D_MODEL, self.width, D_MODEL).transpose(1, 2)
        padded = F.pad(x.transpose(1, 2), self.padding)
        return F.glu(F.conv1d(padded, kernel, self.conv.bias), dim=1).transpose(1, 2)


def convolution(group):
    for case, width, before in (("conv_both", 3, 1), ("conv_causal", 3, 2), ("conv_wide", 11, 5)):
        module = randomise(GatedConvolution(width, before), case)
        x, bounds = source_rows(case)
        group.layer(case, "mixer", module, lambda x: per_sequence(module, (x, bounds)), [x],
                    {"offsets0": bounds}, mixer="conv", conv_width=width,
                    causal=before == width - 1)


class FrontEnd(nn.Module):
    """Convolutions with kernel size 3, stride 2 and GELU: over time or, with lines of patches, over images.

    Column (3 p + q) c + k of a weight belongs to input channel k (of c) and to row p and column q of the kernel; over
    time, p is 0.
    """

    def __init__(self, depth, line):
        super().__init__()
        size = 3 if line == 0 else 9
        self.layers = nn.ModuleList(nn.Linear(size * (PATCH if i == 0 else D_MODEL), D_MODEL) for i in range(depth))
        self.line = line

    def forward(self, x):
        x = x.transpose(1, 2) if self.line == 0 else x.transpose(1, 2).unflatten(2, (-1, self.line))
        for layer in self.layers:
            channels = x.shape[1]
            if self.line == 0:
                kernel = layer.weight.view(D_MODEL, 3, channels).transpose(1, 2)
                x = F.gelu(F.conv1d(x, kernel, layer.bias, stride=2, padding=1))
            else:
                kernel = layer.weight.view(D_MODEL, 3, 3, channels).permute(0, 3, 1, 2)
                x = F.gelu(F.conv2d(x, kernel, layer.bias, stride=2, padding=1))
        return x.flatten(2).transpose(1, 2)


def front_end(group):
    for case, depth, line, lengths in (("front_end_sequences", 2, 0, (7, 1, 4)), ("front_end_one", 1, 0, (2, 5)),
                                       ("front_end_pictures", 2, 6, (30, 30)), ("front_end_three", 3, 7, (35, 35))):
        module = randomise(FrontEnd(depth, line), case)
        x, bounds = normal(f"{case}/x0", sum(lengths), PATCH), offsets(lengths)
        group.layer(case, "front_end", module, lambda x: per_sequence(module, (x, bounds)), [x],
                    {"offsets0": bounds}, depth=depth, line=line)


class FeedForward(nn.Module):
    def __init__(self, activation):
        super().__init__()
        self.linear1, self.linear2 = nn.Linear(D_MODEL, D_FF), nn.Linear(D_FF, D_MODEL)
        self.activation = ACTIVATIONS[activation]

    def forward(self, x):
        return self.linear2(self.activation(self.linear1(x)))


def feed_forward(group):
    for activation in ACTIVATIONS:
        case = f"feed_forward_{activation}"
        module = randomise(FeedForward(activation), case)
        group.layer(case, "feed_forward", module, module, [normal(f"{case}/x0", 3, D_MODEL)],
                    activation=activation)


def options(norm, activation):
    return dict(d_model=D_MODEL, nhead=HEADS, dim_feedforward=D_FF, dropout=0.0, batch_first=True,
                norm_first=norm == "pre", activation=ACTIVATIONS[activation])


def described(norm, activation, **more):
    return dict(d_model=D_MODEL, heads=HEADS, d_ff=D_FF, norm=norm, activation=activation, **more)


VARIANTS = [(norm, activation) for norm in ("pre", "post") for activation in ("relu", "gelu")]


def encoder_layer(group):
    for norm, activation in VARIANTS:
        case = f"encoder_layer_{norm}_{activation}"
        module = randomise(nn.TransformerEncoderLayer(**options(norm, activation)), case)
        x, bounds = source_rows(case)
        group.layer(case, "encoder_layer", module, lambda x: per_sequence(module, (x, bounds)), [x],
                    {"offsets0": bounds}, **described(norm, activation))


def decoder_layer(group):
    for norm, activation in VARIANTS:
        case = f"decoder_layer_{norm}_{activation}"
        module = randomise(nn.TransformerDecoderLayer(**options(norm, activation)), case)
        (memory, ends), (x, bounds) = source_rows(case), target_rows(case)
        run = lambda memory, x: module(x, memory, tgt_mask=causal_mask(x.shape[1]))
        group.layer(case, "decoder_layer", module,
                    lambda memory, x: per_sequence(run, (memory, ends), (x, bounds)), [memory, x],
                    {"offsets0": ends, "offsets1": bounds}, **described(norm, activation))


def encoder(group):
    """Layers and a final norm; if causal, the body of a decoder-only language model."""
    for norm, activation, causal in (("pre", "relu", False), ("pre", "gelu", True)):
        case = f"encoder_{norm}_{activation}" + ("_causal" if causal else "")
        module = randomise(
            nn.TransformerEncoder(nn.TransformerEncoderLayer(**options(norm, activation)), LAYERS,
                                  nn.LayerNorm(D_MODEL)), case)
        x, bounds = source_rows(case)
        run = lambda x: module(x, mask=causal_mask(x.shape[1]) if causal else None)
        group.layer(case, "encoder", module, lambda x: per_sequence(run, (x, bounds)), [x],
                    {"offsets0": bounds},
                    **described(norm, activation, layers=LAYERS, causal=causal))


class Bert(nn.Module):
    """BERT (Devlin et al. 2019): <s> A </s> B </s> in post-norm layers, with logits of each token or of the sequence."""

    def __init__(self, activation, tokens):
        super().__init__()
        self.embedding, self.segments = nn.Embedding(VOCABULARY, D_MODEL), nn.Embedding(2, D_MODEL)
        self.positions = nn.Embedding(MAX_LENGTH, D_MODEL)
        self.encoder = nn.TransformerEncoder(
            nn.TransformerEncoderLayer(**options("post", activation)), LAYERS, nn.LayerNorm(D_MODEL))
        self.output = nn.Linear(D_MODEL, VOCABULARY if tokens else 3)

    def forward(self, ids, pool):
        segment = torch.cumsum((ids == END).long(), 0) - (ids == END).long()
        x = (self.embedding(ids) + self.segments(segment.clamp(max=1)) +
             self.positions(torch.arange(len(ids))))
        x = self.encoder(x[None])[0]
        return self.output({"rows": x, "first": x[:1], "mean": x.mean(0, keepdim=True)}[pool])


def bert(group):
    ids, bounds = torch.tensor([1, 5, 6, END, 4, END, 1, 7, END, 1, 3, 3, END, 5, 8, END]), offsets((6, 3, 7))
    for pool in ("rows", "first", "mean"):
        case = f"bert_{pool}"
        module = randomise(Bert("gelu", pool == "rows"), case)
        run = lambda: torch.cat([module(part, pool) for part in rows_of(ids, bounds)])
        group.layer(case, "bert", module, run, [], {"ids": ids.to(torch.int32), "offsets0": bounds},
                    pool=pool, **described("post", "gelu", encoder_layers=LAYERS))


class Vit(nn.Module):
    """ViT (Dosovitskiy et al. 2021): learned positions, pre-norm layers, and logits from a class token or the mean."""

    def __init__(self, pool):
        super().__init__()
        self.input = nn.Linear(PATCH, D_MODEL)
        self.positions = nn.Embedding(MAX_LENGTH, D_MODEL)
        self.encoder = nn.TransformerEncoder(
            nn.TransformerEncoderLayer(**options("pre", "gelu")), LAYERS, nn.LayerNorm(D_MODEL))
        self.output = nn.Linear(D_MODEL, 3)
        self.class_token = pool == "first"

    def forward(self, patches):
        x = self.input(patches)
        if self.class_token:  # the embedding of the class token is the projection's bias
            x = torch.cat([self.input.bias[None], x])
        x = self.encoder((x + self.positions(torch.arange(len(x))))[None])[0]
        return self.output(x[:1] if self.class_token else x.mean(0, keepdim=True))


def vit(group):
    for pool in ("first", "mean"):
        case = f"vit_{pool}"
        module = randomise(Vit(pool), case)
        patches, bounds = normal(f"{case}/patches", 10, PATCH).float().double(), offsets((4, 6))
        run = lambda: torch.cat([module(part) for part in rows_of(patches, bounds)])
        group.layer(case, "vit", module, run, [], {"patches": patches, "offsets0": bounds},
                    pool=pool, **described("pre", "gelu", encoder_layers=LAYERS))


def transformer(group):
    for norm, activation in (("pre", "relu"), ("post", "gelu")):
        case = f"transformer_{norm}_{activation}"
        module = randomise(nn.Transformer(num_encoder_layers=LAYERS, num_decoder_layers=LAYERS,
                                          **options(norm, activation)), case)
        (source, ends), (target, bounds) = source_rows(case), target_rows(case)
        run = lambda source, target: module(source, target, tgt_mask=causal_mask(target.shape[1]))
        group.layer(case, "transformer", module,
                    lambda source, target: per_sequence(run, (source, ends), (target, bounds)),
                    [source, target], {"offsets0": ends, "offsets1": bounds},
                    **described(norm, activation, encoder_layers=LAYERS, decoder_layers=LAYERS))


def make():
    group = Group()
    for part in (linear, embedding, layer_norm, rms_norm, positions, attention, recurrent, convolution, front_end,
                 feed_forward, encoder_layer, decoder_layer, encoder, bert, vit, transformer):
        part(group)
    return group
