"""Golden values of optim/: updates, learning rates, clipping."""
import math

import numpy as np
import torch

from cases import Group, normal

STEPS = 20


def updates(group, case, optimizer, lr_at=None, **attributes):
    """STEPS updates of two weights with given gradients, and the weights after each update.

    The gradients of p1 are about as small as Adam's eps, so that a misplaced eps is detected.
    """
    attributes["lr"] = attributes.get("lr", 1e-2)
    group.describe(case, optimizer=case.split("_")[0], steps=STEPS, **attributes)
    scales = {"p0": 1.0, "p1": 1e-9}
    weights = {"p0": normal("optimisers/p0", 3, 4), "p1": normal("optimisers/p1", 5)}
    gradients = {name: scales[name] * normal(f"optimisers/g/{name}", STEPS, *weight.shape)
                 for name, weight in weights.items()}
    weights = {name: weight.clone().requires_grad_() for name, weight in weights.items()}
    stepper = optimizer(list(weights.values()), attributes["lr"])
    history = {name: [weight.detach().clone()] for name, weight in weights.items()}
    for step in range(STEPS):
        for name, weight in weights.items():
            weight.grad = gradients[name][step].clone()
        if lr_at:
            stepper.param_groups[0]["lr"] = lr_at(step + 1)
        stepper.step()
        for name, weight in weights.items():
            history[name].append(weight.detach().clone())
    for name in weights:
        group.put(case, f"gradients/{name}", gradients[name])
        group.put(case, f"weights/{name}", torch.stack(history[name]))


def optimisers(group):
    adam, adamw, sgd = torch.optim.Adam, torch.optim.AdamW, torch.optim.SGD
    updates(group, "adam_paper", lambda p, lr: adam(p, lr, betas=(0.9, 0.999), eps=1e-8),
            betas=[0.9, 0.999], eps=1e-8)
    updates(group, "adam_transformer", lambda p, lr: adam(p, lr, betas=(0.9, 0.98), eps=1e-9),
            betas=[0.9, 0.98], eps=1e-9)
    updates(group, "adam_noam", lambda p, lr: adam(p, lr, betas=(0.9, 0.98), eps=1e-9),
            lambda t: learning_rate("noam", t, 1e-2, 5), betas=[0.9, 0.98], eps=1e-9,
            schedule="noam", warmup=5)
    updates(group, "adamw", lambda p, lr: adamw(p, lr, (0.9, 0.98), 1e-9, weight_decay=0.1),
            betas=[0.9, 0.98], eps=1e-9, weight_decay=0.1)
    updates(group, "sgd_plain", lambda p, lr: sgd(p, lr), momentum=0.0, weight_decay=0.0)
    updates(group, "sgd_momentum", lambda p, lr: sgd(p, lr, momentum=0.9), momentum=0.9,
            weight_decay=0.0)
    updates(group, "sgd_decay", lambda p, lr: sgd(p, lr, momentum=0.9, weight_decay=0.1),
            momentum=0.9, weight_decay=0.1)


def learning_rate(name, t, peak, warmup, steps=0, floor=0.0):
    """The learning rate of step t = 1, 2, …: a straight line up to the peak at t = warmup, then

    noam, inverse_sqrt: peak sqrt(warmup / t)   (Vaswani et al. 2017, 5.3, scaled to its peak)
    cosine:             floor + (peak - floor) (1 + cos(pi x)) / 2   (Loshchilov and Hutter 2017)
    linear:             floor + (peak - floor) (1 - x)
    constant:           peak
    with x = (t - warmup) / (steps - warmup), and the floor after the last step.
    """
    if t < warmup:
        return peak * t / warmup
    if name in ("noam", "inverse_sqrt"):
        return peak * math.sqrt(warmup / t)
    if name == "constant":
        return peak
    x = min(1.0, (t - warmup) / (steps - warmup))
    shape = (1.0 + math.cos(math.pi * x)) / 2.0 if name == "cosine" else 1.0 - x
    return floor + (peak - floor) * shape


def check_against_torch():
    """Compares two schedules with PyTorch's, without warmup; PyTorch counts steps from 0."""
    schedulers = torch.optim.lr_scheduler
    for name, make_scheduler in (
            ("cosine", lambda o: schedulers.CosineAnnealingLR(o, 30, 1e-4)),
            ("linear", lambda o: schedulers.LinearLR(o, 1.0, 1e-2, 30))):
        optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], 1e-2)
        scheduler = make_scheduler(optimizer)
        for t in range(31):
            theirs = optimizer.param_groups[0]["lr"]
            ours = learning_rate(name, t, 1e-2, 0, 30, 1e-4)
            assert abs(ours - theirs) < 1e-12, (name, t, ours, theirs)
            optimizer.step()
            scheduler.step()


def schedules(group):
    """y[t-1] is the learning rate of step t."""
    check_against_torch()
    for name in ("noam", "inverse_sqrt", "cosine", "linear", "constant"):
        for warmup, floor in ((10, 0.0), (1, 0.0), (10, 1e-4)):
            if floor and name not in ("cosine", "linear"):
                continue
            case = f"schedule_{name}_warmup{warmup}" + ("_floor" if floor else "")
            group.describe(case, schedule=name, lr=3e-3, warmup=warmup, steps=40, min_lr=floor)
            group.put(case, "y", np.array([learning_rate(name, t, 3e-3, warmup, 40, floor)
                                           for t in range(1, 51)]))


def clipping(group):
    """All gradients times min(1, max_norm / (norm + 1e-6)), as in torch.nn.utils.clip_grad_norm_."""
    for case, max_norm in (("clip_active", 1.0), ("clip_idle", 100.0)):
        weights = [torch.zeros(3, 4).double(), torch.zeros(5).double()]
        for i, weight in enumerate(weights):
            weight.grad = normal(f"{case}/x{i}", *weight.shape)
            group.put(case, f"x{i}", weight.grad.clone())
        norm = torch.nn.utils.clip_grad_norm_(weights, max_norm)
        group.describe(case, clip_norm=max_norm)
        group.put(case, "norm", norm)
        for i, weight in enumerate(weights):
            group.put(case, f"y{i}", weight.grad)


def make():
    group = Group()
    for part in (optimisers, schedules, clipping):
        part(group)
    return group
