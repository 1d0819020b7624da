"""Golden values of the deterministic ops of autograd/ that PyTorch has."""
import math

import torch
import torch.nn.functional as F

from cases import Group, integers, normal, offsets, positive, rows_of

INF = float("inf")


def binary(group):
    shapes = {"same": ((3, 4), (3, 4)), "right": ((2, 3, 4), (4,)), "left": ((4,), (2, 3, 4)),
              "both": ((2, 1, 4), (3, 1)), "scalar_left": ((), (3, 2)),
              "scalar_right": ((3, 2), ()), "scalars": ((), ()), "one": ((1,), (1, 1))}
    for op in ("add", "sub", "mul", "div"):
        for shape_name, (a, b) in shapes.items():
            case = f"{op}_{shape_name}"
            group.op(case, op, getattr(torch, op),
                     [normal(f"{case}/x0", *a), -positive(f"{case}/x1", *b)])


def unary(group):
    functions = {"neg": torch.neg, "exp": torch.exp, "tanh": torch.tanh, "relu": torch.relu,
                 "gelu": F.gelu, "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
                 "sigmoid": torch.sigmoid, "silu": F.silu}
    for op, function in functions.items():
        group.op(op, op, function, [2.0 * normal(f"{op}/x0", 3, 7)])
    for op in ("log", "sqrt"):
        group.op(op, op, getattr(torch, op), [positive(f"{op}/x0", 3, 7)])
    # Naive formulas overflow or cancel at some of these values. relu has slope 0 at 0.
    far = torch.tensor([-750.0, -40.0, -9.0, -1e-9, 0.0, 1e-9, 9.0, 40.0, 750.0]).double()
    for op in ("tanh", "relu", "gelu", "gelu_tanh", "sigmoid", "silu"):
        group.op(f"{op}_far", op, functions[op], [far])


def more_arithmetic(group):
    """Further elementwise ops, including ties, limits and values far from 0."""
    a = torch.tensor([[1.0, -2.0, 3.0], [0.5, 0.5, -1.0]]).double()
    b = torch.tensor([1.0, 4.0, -3.0]).double()
    for op in ("maximum", "minimum"):
        group.op(f"{op}_ties", op, getattr(torch, op), [a, b])
        group.op(f"{op}_scalar", op, getattr(torch, op), [a, torch.tensor(0.5).double()])
    condition = integers("where/condition", 2, 2, 3)
    group.op("where", "where", lambda a, b: torch.where(condition.bool(), a, b),
             [a, normal("where/x1", 3)], {"condition": condition})
    near = 2.0 * normal("functions/x0", 3, 7)
    far = torch.tensor([-750.0, -40.0, -9.0, -1e-9, 0.0, 1e-9, 9.0, 40.0, 750.0]).double()
    for op, function in (("softplus", lambda x: F.softplus(x, threshold=40.0)), ("abs", torch.abs),
                         ("sin", torch.sin), ("cos", torch.cos)):
        group.op(op, op, function, [near])
        group.op(f"{op}_far", op, function, [far])
    for exponent in (0.0, 1.0, 2.0, 2.5, -1.5):
        group.op(f"pow_{exponent}", "pow", lambda x: torch.pow(x, exponent),
                 [positive(f"pow_{exponent}/x0", 3, 4)], exponent=exponent)
    group.op("pow_of_zero", "pow", lambda x: torch.pow(x, 2.0), [torch.tensor([0.0, -3.0]).double()],
             exponent=2.0)
    limits = torch.tensor([-2.0, -1.0, 0.25, 1.5, 3.0]).double()  # includes both limits
    group.op("clamp", "clamp", lambda x: torch.clamp(x, -1.0, 1.5), [limits], low=-1.0, high=1.5)


def more_reductions(group):
    ties = torch.tensor([[[1.0, 3.0, 3.0], [2.0, -1.0, -1.0]]]).double()
    x = 3.0 * normal("extremes/x0", 2, 3, 4)
    for op, function in (("max", torch.amax), ("min", torch.amin), ("log_sum_exp", torch.logsumexp)):
        for axis in (0, 1, -1):
            for keepdim in (False, True):
                case = f"{op}_axis{axis}" + ("_keepdim" if keepdim else "")
                group.op(case, op, lambda x: function(x, axis, keepdim=keepdim), [x],
                         axis=axis, keepdim=keepdim)
        group.op(f"{op}_ties", op, lambda x: function(x, -1), [ties], axis=-1)
        group.op(f"{op}_far", op, lambda x: function(x, 1), [300.0 * x], axis=1)
    for axis in (0, 1, -1):
        group.op(f"cumsum_{axis}", "cumsum", lambda x: torch.cumsum(x, axis), [x], axis=axis)


def more_shapes(group):
    x = normal("more_shapes/x0", 2, 3, 4)
    for axis in (0, 1, 2, -1):
        group.op(f"stack_{axis}", "stack", lambda *x: torch.stack(x, axis),
                 [normal(f"stack_{axis}/x{i}", 3, 4) for i in range(3)], axis=axis)
    for axes in ((2, 0, 1), (1, 2, 0), (0, 2, 1), (2, 1, 0)):
        group.op("permute_" + "".join(map(str, axes)), "permute", lambda x: x.permute(axes), [x],
                 axes=list(axes))
    for i, (shape, to) in enumerate((((), (2, 3)), ((3, 1), (3, 4)), ((4,), (2, 3, 4)))):
        group.op(f"broadcast_to_{i}", "broadcast_to", lambda x: x.broadcast_to(to),
                 [normal(f"broadcast_to_{i}/x0", *shape)], shape=list(to))
    for equation, shapes_in in (("ij->ji", [(2, 3)]), ("ijk->j", [(2, 3, 4)]),
                                ("ij,jk->ik", [(2, 3), (3, 4)]), ("bij,bkj->bik", [(2, 3, 4), (2, 5, 4)]),
                                ("bhqd,bhkd->bhqk", [(2, 2, 3, 4), (2, 2, 5, 4)]),
                                ("ij,jk,kl->li", [(2, 3), (3, 2), (2, 4)]), ("i,j->ij", [(2,), (3,)]),
                                ("ij,kl->i", [(2, 3), (4, 2)])):
        case = f"einsum_{equation}"
        group.op(case, "einsum", lambda *x: torch.einsum(equation, *x),
                 [normal(f"{case}/x{i}", *shape) for i, shape in enumerate(shapes_in)],
                 equation=equation)


def indexing(group):
    x = normal("indexing/x0", 5, 2, 3)
    ids = torch.tensor([3, 0, 3, 4])
    group.op("index_select", "index_select", lambda x: torch.index_select(x, 0, ids), [x], {"ids": ids})
    group.op("scatter_add", "scatter_add",
             lambda x: torch.zeros(6, 2, 3).double().index_add(0, ids, x),
             [normal("scatter_add/x0", 4, 2, 3)], {"ids": ids}, n=6)
    chosen = integers("gather/ids", 3, 5, 2, 2)
    group.op("gather", "gather", lambda x: torch.gather(x, -1, chosen), [x], {"ids": chosen})


def reductions(group):
    for op, function in (("sum", torch.sum), ("mean", torch.mean)):
        x = normal(f"{op}/x0", 2, 3, 4)
        group.op(f"{op}_all", op, function, [x])
        group.op(f"{op}_scalar", op, function, [normal(f"{op}_scalar/x0")])
        for axis in (0, 1, 2, -1):
            for keepdim in (False, True):
                case = f"{op}_axis{axis}" + ("_keepdim" if keepdim else "")
                group.op(case, op, lambda x: function(x, axis, keepdim=keepdim), [x],
                         axis=axis, keepdim=keepdim)


def matmul(group):
    """y = op(a) op(b), where op optionally transposes the last two axes."""
    def run(case, a, b, transpose_a=False, transpose_b=False):
        def function(a, b):
            a = a.transpose(-1, -2) if transpose_a else a
            b = b.transpose(-1, -2) if transpose_b else b
            return a @ b
        flip = lambda shape, do: shape[:-2] + (shape[-1], shape[-2]) if do else shape
        group.op(case, "matmul", function,
                 [normal(f"{case}/x0", *flip(a, transpose_a)),
                  normal(f"{case}/x1", *flip(b, transpose_b))],
                 transpose_a=transpose_a, transpose_b=transpose_b)

    for suffix, ta, tb in (("nn", False, False), ("nt", False, True),
                           ("tn", True, False), ("tt", True, True)):
        run(f"matmul_2d_{suffix}", (3, 5), (5, 4), ta, tb)
        run(f"matmul_batched_{suffix}", (2, 3, 4, 5), (2, 3, 5, 2), ta, tb)
        run(f"matmul_broadcast_{suffix}", (2, 1, 4, 5), (3, 5, 2), ta, tb)
    run("matmul_left_2d", (3, 5), (2, 5, 4))
    run("matmul_right_2d", (2, 3, 5), (5, 4))
    run("matmul_ones", (1, 1), (1, 1))


def affine(group):
    for case, shape, bias in (("affine", (6, 5), True), ("affine_no_bias", (6, 5), False),
                              ("affine_rank3", (2, 3, 5), True), ("affine_one_row", (1, 5), True)):
        weights = [normal(f"{case}/x1", 4, 5)] + ([normal(f"{case}/x2", 4)] if bias else [])
        group.op(case, "affine", F.linear, [normal(f"{case}/x0", *shape)] + weights)


def shapes(group):
    x = normal("shapes/x0", 2, 3, 4)
    for i, shape in enumerate(([6, 4], [24], [4, 3, 2], [1, 2, 12])):
        group.op(f"reshape_{i}", "reshape", lambda x: x.reshape(shape), [x], shape=shape)
    for a, b in ((0, 1), (1, 2), (0, 2), (-1, -2), (1, 1)):
        group.op(f"transpose_{a}_{b}", "transpose", lambda x: x.transpose(a, b), [x], axes=[a, b])
    for axis, begin, end in ((0, 1, 2), (1, 0, 2), (2, 1, 4), (-1, 2, 3), (1, 0, 3)):
        group.op(f"slice_{axis}_{begin}_{end}", "slice",
                 lambda x: x.narrow(axis, begin, end - begin), [x], axis=axis, begin=begin, end=end)
    for axis in (0, 1, 2, -1):
        parts = []
        for i, extent in enumerate((1, 3, 2)):
            shape = [2, 3, 4]
            shape[axis] = extent
            parts.append(normal(f"concat_{axis}/x{i}", *shape))
        group.op(f"concat_{axis}", "concat", lambda *x: torch.cat(x, axis), parts, axis=axis)


def causal_seen(rows, columns):
    """1 where column j is visible to row i (j <= i), 0 where it is hidden, as int32."""
    return torch.ones(rows, columns).tril().int()


def softmaxes(group):
    for op, function in (("softmax", F.softmax), ("log_softmax", F.log_softmax)):
        run = lambda x: function(x, -1)
        group.op(op, op, run, [2.0 * normal(f"{op}/x0", 3, 5)])
        group.op(f"{op}_rank4", op, run, [normal(f"{op}_rank4/x0", 2, 3, 2, 4)])
        group.op(f"{op}_one", op, run, [normal(f"{op}_one/x0", 3, 1)])
        group.op(f"{op}_far", op, run, [600.0 * normal(f"{op}_far/x0", 3, 5)])
        # The mask applies to the last two axes and is shared by the batch axes. The cotangent of hidden
        # entries is 0, because log_softmax is -inf there and has no derivative.
        seen = causal_seen(4, 4)
        visible = seen.double().expand(2, 3, 4, 4)
        added = torch.where(seen.bool(), normal(f"{op}_masked/mask", 4, 4), torch.tensor(-INF).double())
        x = normal(f"{op}_masked/x0", 2, 3, 4, 4)
        dy = normal(f"{op}_masked/dy", 2, 3, 4, 4) * visible
        group.op(f"{op}_masked_added", op, lambda x: run(x + added), [x], {"mask": added}, dy,
                 mask="added")
        group.op(f"{op}_masked_seen", op, lambda x: run(x.masked_fill(seen == 0, -INF)), [x],
                 {"mask": seen}, dy, mask="seen")


def rms_norm(x, weight, eps):
    """y = x / sqrt(mean(x^2) + eps) * weight (Zhang and Sennrich 2019); PyTorch 1.13 does not have it."""
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * weight


def norms(group):
    for case, shape in (("rows", (4, 6)), ("rank3", (2, 3, 5)), ("wide", (3, 37)), ("one", (3, 1))):
        width, eps = shape[-1:], 1e-5
        x, w, b = (normal(f"norm_{case}/{i}", *s) for i, s in enumerate((shape, width, width)))
        group.op(f"layer_norm_{case}", "layer_norm",
                 lambda x, w, b: F.layer_norm(x, width, w, b, eps), [3.0 * x + 1.0, w, b], eps=eps)
        group.op(f"rms_norm_{case}", "rms_norm", lambda x, w: rms_norm(x, w, eps),
                 [3.0 * x + 1.0, w], eps=eps)
        if len(shape) != 2:
            continue
        group.op(f"batch_norm_{case}", "batch_norm",
                 lambda x, w, b: F.batch_norm(x, None, None, w, b, training=True, eps=eps),
                 [3.0 * x + 1.0, w, b], eps=eps)
        mean, var = (normal(f"norm_{case}/{s}", *width) for s in ("mean", "var"))
        group.op(f"batch_norm_given_{case}", "batch_norm_given",
                 lambda x, w, b: F.batch_norm(x, mean, var.square(), w, b, training=False, eps=eps),
                 [3.0 * x + 1.0, w, b], {"mean": mean, "var": var.square()}, eps=eps)


def embedding(group):
    for case, scale in (("embedding", 1.0), ("embedding_scaled", math.sqrt(6.0))):
        ids = torch.tensor([3, 0, 3, 6, 1, 3, 0])
        group.op(case, "embedding", lambda w: F.embedding(ids, w) * scale,
                 [normal(f"{case}/x0", 7, 6)], {"ids": ids}, scale=scale)


def composed_attention(q, k, v, hidden=None, added=None):
    """softmax(q k^T / sqrt(d_k) + mask) v, over the last two axes (Vaswani et al. 2017, 3.2.1)."""
    scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
    if added is not None:
        scores = scores + added
    if hidden is not None:
        scores = scores.masked_fill(hidden, -INF)
    weights = F.softmax(scores, -1)
    return weights @ v, weights


def attention_composed(group):
    def run(case, batch, tq, tk, dk, dv, constants=None, mask="none", **masks):
        inputs = [normal(f"{case}/x{i}", *batch, *shape)
                  for i, shape in enumerate(((tq, dk), (tk, dk), (tk, dv)))]
        weights = composed_attention(*inputs, **masks)[1]
        group.op(case, "attention_composed", lambda *x: composed_attention(*x, **masks)[0], inputs,
                 {"weights": weights, **(constants or {})}, mask=mask)

    run("attention_plain", (2,), 3, 5, 4, 4)
    run("attention_rank4", (2, 3), 3, 4, 2, 3)
    seen = causal_seen(4, 4)
    run("attention_seen", (2, 3), 4, 4, 2, 2, {"mask": seen}, "seen", hidden=seen == 0)
    added = torch.where(causal_seen(3, 5) == 1, normal("attention_added/mask", 3, 5),
                        torch.tensor(-INF).double())
    run("attention_added", (2,), 3, 5, 4, 4, {"mask": added}, "added", added=added)


def fused_attention(q, k, v, heads, q_offsets, k_offsets, causal):
    """Attention of each sequence alone, with heads concatenated in the columns of q, k, v and y."""
    split = lambda x: x.reshape(len(x), heads, x.shape[1] // heads).transpose(0, 1)  # [heads, T, d_k]
    outputs = []
    for qi, ki, vi in zip(rows_of(q, q_offsets), rows_of(k, k_offsets), rows_of(v, k_offsets)):
        hidden = causal_seen(len(qi), len(ki)) == 0 if causal else None
        y, _ = composed_attention(split(qi), split(ki), split(vi), hidden)
        outputs.append(y.transpose(0, 1).reshape(len(qi), q.shape[1]))
    return torch.cat(outputs)


def attention_fused(group):
    # 70 and 37 rows are not multiples of the tile sizes 16, 32 and 64.
    settings = [("self", (3, 5, 1), (3, 5, 1), 2, 6), ("one_head", (4, 2), (4, 2), 1, 3),
                ("empty", (3, 0, 2), (3, 0, 2), 2, 4), ("long", (70, 3), (70, 3), 2, 4),
                ("cross", (3, 5, 1), (2, 4, 6), 2, 6), ("cross_long", (37,), (70,), 1, 8)]
    for name, q_lengths, k_lengths, heads, d_k in settings:
        for causal in (False, True) if q_lengths == k_lengths else (False,):
            case = f"attention_fused_{name}" + ("_causal" if causal else "")
            qo, ko, width = offsets(q_lengths), offsets(k_lengths), heads * d_k
            group.op(case, "attention_fused",
                     lambda q, k, v: fused_attention(q, k, v, heads, qo, ko, causal),
                     [normal(f"{case}/x0", sum(q_lengths), width),
                      normal(f"{case}/x1", sum(k_lengths), width),
                      normal(f"{case}/x2", sum(k_lengths), width)],
                     {"q_offsets": qo, "k_offsets": ko}, heads=heads, causal=causal)


def cross_entropy(group):
    """The loss is summed over rows and divided by a normaliser, which may differ from the number of rows."""
    def loss(logits, targets, smoothing, normaliser):
        total = F.cross_entropy(logits, targets, label_smoothing=smoothing, reduction="sum")
        return total / normaliser

    for name, rows, vocab, smoothing, normaliser, scale in (
            ("plain", 5, 7, 0.0, 5.0, 2.0), ("smooth", 5, 7, 0.1, 5.0, 2.0),
            ("shard", 4, 9, 0.1, 11.0, 2.0), ("one_row", 1, 3, 0.3, 1.0, 1.0),
            ("far", 4, 6, 0.1, 4.0, 400.0)):
        case = f"cross_entropy_{name}"
        targets = integers(f"{case}/targets", vocab, rows)
        group.op(case, "cross_entropy", lambda x: loss(x, targets, smoothing, normaliser),
                 [scale * normal(f"{case}/x0", rows, vocab)], {"targets": targets},
                 smoothing=smoothing, normaliser=normaliser)
    for name, rows, vocab, smoothing, bias in (("plain", 5, 7, 0.0, False),
                                               ("smooth", 37, 11, 0.1, False),
                                               ("bias", 6, 9, 0.1, True)):
        case = f"linear_cross_entropy_{name}"
        targets, normaliser = integers(f"{case}/targets", vocab, rows), float(rows + 2)
        weights = [normal(f"{case}/x1", vocab, 4)] + ([normal(f"{case}/x2", vocab)] if bias else [])
        group.op(case, "linear_cross_entropy",
                 lambda x, *w: loss(F.linear(x, *w), targets, smoothing, normaliser),
                 [normal(f"{case}/x0", rows, 4)] + weights, {"targets": targets},
                 smoothing=smoothing, normaliser=normaliser)


def make():
    group = Group()
    for part in (binary, unary, more_arithmetic, reductions, more_reductions, matmul, affine, shapes,
                 more_shapes, indexing, softmaxes, norms, embedding,
                 attention_composed, attention_fused, cross_entropy):
        part(group)
    return group
