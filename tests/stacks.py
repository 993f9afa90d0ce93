"""Stacks of layers for the tests of the compiled stacks, and what plain torch says about them."""

import numpy as np
import torch

from gatefit.bits import pack

SHAPES = {
    "one layer": (7, [20]),
    "two square": (9, [30, 30]),
    "one gate": (2, [1]),
    "deep": (12, [40, 40, 40, 40]),
    "narrowing": (12, [60, 30, 30, 10]),
    "widening": (5, [10, 40, 40]),
}


def balanced(inputs, gates, generator):
    """Every input is used before any repeats: square layers use each exactly twice."""
    repeats = -(-2 * gates // inputs)
    uses = torch.cat([torch.randperm(inputs, generator=generator) for _ in range(repeats)])
    return uses[: 2 * gates].view(2, gates).to(torch.int32)


def wirings_of(inputs, widths, kind="balanced", seed=0):
    generator = torch.Generator().manual_seed(seed)
    result = []
    for below, width in zip([inputs, *widths], widths, strict=False):
        if kind == "balanced":
            wiring = balanced(below, width, generator)
        elif kind == "random":
            wiring = torch.randint(below, (2, width), generator=generator, dtype=torch.int32)
        else:  # "twins": each gate reads one input twice, or two gates read the same two
            own = torch.arange(width, dtype=torch.int32) % below
            wiring = torch.stack([own, own]) if width % 2 else torch.stack([own, own ^ 1]).clamp(max=below - 1)
        result.append(wiring)
    return result


def bits_of(batch, inputs, seed=0):
    values = np.random.default_rng(seed).random((batch, inputs)) < 0.5
    return values, pack(values)


def owners_of(gates, seed=0):
    """About three gates share a row; every row is some gate's."""
    rows = -(-gates // 3)
    order = torch.randperm(gates, generator=torch.Generator().manual_seed(seed))
    return (torch.arange(gates, dtype=torch.int32) % rows)[order]


def plain_scores(values, wirings, coefficients, classes, sigmoid=False, votes=(), owners=(), changing=()):
    """The definition: one polynomial a gate, layer after layer, then sums over groups."""
    x = torch.as_tensor(values).to(coefficients[0].dtype)
    owners = owners or [None] * len(wirings)
    scores = 0
    for number, (wiring, c, owner) in enumerate(zip(wirings, coefficients, owners, strict=True), 1):
        c = c if owner is None else c[owner.long()]
        a, b = x[:, wiring[0].long()], x[:, wiring[1].long()]
        x = c[:, 0] + c[:, 1] * a + c[:, 2] * b + c[:, 3] * a * b
        x = torch.sigmoid(x) if sigmoid else x
        if number in (votes or [len(wirings)]):
            scores = scores + (x if classes is None else x.unflatten(1, (classes, x.shape[1] // classes)).sum(-1))
    return scores


def gradients(scores, delta, coefficients):
    found = torch.autograd.grad(scores, coefficients, delta)
    return {f"grad_coefficients of layer {i}": gradient for i, gradient in enumerate(found)}
