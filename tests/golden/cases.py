"""Golden cases: random inputs, PyTorch's outputs and gradients, all in float64."""
import json
import zlib

import numpy as np
import torch


class Group:
    """Collects the cases of one safetensors file. README.md describes the names."""

    def __init__(self):
        self.tensors = {}
        self.metadata = {}

    def put(self, case, name, value):
        """Stores one tensor: reals as float64, integers as int32."""
        value = value.detach().numpy() if isinstance(value, torch.Tensor) else np.asarray(value)
        kind = np.float64 if value.dtype.kind == "f" else np.int32
        assert f"{case}/{name}" not in self.tensors, f"duplicate tensor {case}/{name}"
        self.tensors[f"{case}/{name}"] = value.astype(kind)

    def describe(self, case, **attributes):
        assert case not in self.metadata, f"duplicate case {case}"
        self.metadata[case] = json.dumps(attributes)

    def op(self, case, op, function, inputs, constants=None, dy=None, **attributes):
        """Runs y = function(*inputs) and stores inputs, y, a random cotangent and all gradients.

        constants: further tensors to store (masks, ids, offsets); they have no gradients.
        """
        self.describe(case, op=op, **attributes)
        inputs = [x.clone().requires_grad_() for x in inputs]
        y = function(*inputs)
        dy = normal(f"{case}/dy", *y.shape) if dy is None else dy
        gradients = torch.autograd.grad(y, inputs, dy)
        for i, x in enumerate(inputs):
            self.put(case, f"x{i}", x)
        for name, value in (constants or {}).items():
            self.put(case, name, value)
        self.put(case, "y", y)
        self.put(case, "dy", dy)
        for i, gradient in enumerate(gradients):
            self.put(case, f"dx{i}", gradient)

    def layer(self, case, layer, module, function, inputs, constants=None, **attributes):
        """Like op(), for a module: also stores its weights w/NAME and their gradients dw/NAME."""
        names = [name for name, _ in module.named_parameters()]
        weights = [weight for _, weight in module.named_parameters()]
        self.describe(case, layer=layer, **attributes)
        inputs = [x.clone().requires_grad_() for x in inputs]
        y = function(*inputs)
        dy = normal(f"{case}/dy", *y.shape)
        gradients = torch.autograd.grad(y, inputs + weights, dy)
        for i, x in enumerate(inputs):
            self.put(case, f"x{i}", x)
            self.put(case, f"dx{i}", gradients[i])
        for name, value in (constants or {}).items():
            self.put(case, name, value)
        self.put(case, "y", y)
        self.put(case, "dy", dy)
        for name, weight, gradient in zip(names, weights, gradients[len(inputs):]):
            self.put(case, f"w/{name}", weight)
            self.put(case, f"dw/{name}", gradient)


def stream(name):
    """Random numbers that depend only on the name, so that a new case changes no other case.

    MT19937 through RandomState, whose output is frozen in numpy.
    """
    return np.random.RandomState(zlib.crc32(name.encode()))


def normal(name, *shape):
    return torch.from_numpy(np.asarray(stream(name).standard_normal(shape)))


def positive(name, *shape):
    return torch.from_numpy(np.asarray(stream(name).uniform(0.5, 2.0, shape)))


def integers(name, high, *shape):
    return torch.from_numpy(stream(name).randint(0, high, shape))


def randomise(module, name):
    """Randomises all weights, including biases and gains of norms, because ones and zeros would hide bugs."""
    module.double().train()
    for weight_name, weight in module.named_parameters():
        noise = normal(f"{name}/{weight_name}", *weight.shape)
        is_gain = weight_name.endswith("weight") and weight.dim() == 1
        scale = weight.shape[-1] ** -0.5 if weight.dim() > 1 else 0.2
        weight.data = 1.0 + scale * noise if is_gain else scale * noise
    return module


def offsets(lengths):
    """The offsets of sequences with these lengths, including the end: [3, 5, 1] gives [0, 3, 8, 9]."""
    return torch.tensor(np.cumsum([0] + list(lengths)))


def rows_of(x, bounds):
    """Splits rows at the offsets: one view per sequence."""
    return [x[begin:end] for begin, end in zip(bounds[:-1].tolist(), bounds[1:].tolist())]
