"""Wirings: which two nodes of the layer below each gate reads (paper, app. hyperparams, Wiring).

    stride   gap g = 1, 2, 3, ...:  (i, i+g) for even i, then for odd i, until there are enough      deterministic
    unique   the same pairs in a random order: no pair twice, and deep layers are not all adjacent   the default
    random   every input once before any a second time; never one input twice at a gate
    explicit a tensor of your own, checked; ``local_wiring`` makes one for every layer of a network

All return int32 (2, gates). Where a block of pairs is only partly needed, its pairs are spread over the inputs.
"""

import warnings
from collections.abc import Callable, Iterator
from typing import Final

from gatefit._requires import require

require("torch", "train", "training")

import numpy as np
import torch
from jaxtyping import Int, Int32
from torch import Tensor


def stride_wiring(inputs: int, gates: int, *, generator: torch.Generator | None = None) -> Int32[Tensor, "2 gates"]:
    """The paper's gap scheme, nearest pairs first; ``generator`` is not used."""
    check_sizes(inputs, gates)
    check_unique_pairs(inputs, gates)
    chosen, missing = [], gates
    for first, second in _stride_blocks(inputs):
        if missing < len(first):
            # Spread, and end on the last pair, so that an odd number of inputs is covered as soon as it can be.
            at = (torch.arange(1, missing + 1) * len(first)) // missing - 1
            first, second = first[at], second[at]
        chosen.append(torch.stack([first, second]))
        missing -= len(first)
        if missing == 0:
            break
    return torch.cat(chosen, dim=1).to(torch.int32)


def unique_wiring(inputs: int, gates: int, *, generator: torch.Generator) -> Int32[Tensor, "2 gates"]:
    """The stride pairs in a random order; with fewer than inputs/2 gates, a random choice of adjacent pairs."""
    check_sizes(inputs, gates)
    check_unique_pairs(inputs, gates)
    if 2 * gates < inputs:
        first = 2 * torch.randperm(inputs // 2, generator=generator)[:gates]
        return torch.stack([first, first + 1]).to(torch.int32)
    return stride_wiring(inputs, gates)[:, torch.randperm(gates, generator=generator)]


def random_wiring(inputs: int, gates: int, *, generator: torch.Generator) -> Int32[Tensor, "2 gates"]:
    """Balanced: permutations of the inputs end to end, taken two by two."""
    check_sizes(inputs, gates)
    parts: list[Tensor] = []
    for _ in range(-(-2 * gates // inputs)):
        permutation = torch.randperm(inputs, generator=generator)
        # A pair that straddles two permutations could be one input twice: then the second starts with its next.
        if parts and permutation[0] == parts[-1][-1]:
            permutation[:2] = permutation[:2].flip(0)
        parts.append(permutation)
    sequence = torch.cat(parts)[: 2 * gates]
    return sequence.view(gates, 2).T.contiguous().to(torch.int32)


WIRINGS: Final[dict[str, Callable[..., Tensor]]] = {
    "unique": unique_wiring,
    "stride": stride_wiring,
    "random": random_wiring,
}


def make_wiring(
    wiring: str | Int[Tensor, "2 gates"], inputs: int, gates: int, *, generator: torch.Generator
) -> Int32[Tensor, "2 gates"]:
    """The wiring called by its name, or an explicit one, checked; warns where inputs stay unread."""
    if isinstance(wiring, Tensor):
        result = explicit_wiring(wiring, inputs, gates)
    elif wiring in WIRINGS:
        result = WIRINGS[wiring](inputs, gates, generator=generator)
    else:
        raise ValueError(f"unknown wiring {wiring!r}; choose one of {', '.join(WIRINGS)}, or pass a tensor (2, gates)")
    if 2 * gates < inputs:
        warnings.warn(
            f"{gates} gates read at most {2 * gates} of {inputs} inputs (coverage {coverage(result, inputs):.1%}); "
            f"use {-(-inputs // 2)} gates or more to read them all",
            stacklevel=2,
        )
    return result


def explicit_wiring(wiring: Int[Tensor, "2 gates"], inputs: int, gates: int) -> Int32[Tensor, "2 gates"]:
    """Your own wiring, checked against the layer's sizes; a gate may read one input twice."""
    if inputs < 1 or gates < 1:
        raise ValueError(f"a layer needs at least one input and one gate, got {inputs} and {gates}")
    if wiring.is_floating_point() or wiring.dtype == torch.bool:
        raise TypeError(f"wiring must hold integers, got {wiring.dtype}")
    if wiring.shape != (2, gates):
        raise ValueError(f"wiring must have shape (2, gates) = (2, {gates}), got {tuple(wiring.shape)}")
    low, high = int(wiring.min()), int(wiring.max())
    if low < 0 or high >= inputs:
        raise ValueError(f"wiring must name inputs from 0 to {inputs - 1}, got {low} to {high}")
    return wiring.to(torch.int32).contiguous()


def coverage(wiring: Int[Tensor, "2 gates"], inputs: int) -> float:
    """The fraction of inputs that some gate reads."""
    return np.unique(wiring.cpu().numpy()).size / inputs


def check_sizes(inputs: int, gates: int) -> None:
    """Refuse a layer that cannot give each gate two different inputs."""
    if inputs < 2:
        raise ValueError(
            f"a gate reads two different inputs, got {inputs} in all; encode the data with two bits or more"
        )
    if gates < 1:
        raise ValueError(f"a layer needs at least one gate, got {gates}")


def check_unique_pairs(inputs: int, gates: int) -> None:
    """Refuse more gates than there are pairs of inputs."""
    pairs = inputs * (inputs - 1) // 2
    if gates > pairs:
        raise ValueError(
            f"{inputs} inputs have {pairs} different pairs, got {gates} gates; "
            f"use width={pairs} or less, or wiring='random', which may repeat a pair"
        )


def _stride_blocks(inputs: int) -> Iterator[tuple[Tensor, Tensor]]:
    for gap in range(1, inputs):
        for parity in (0, 1):
            first = torch.arange(parity, inputs - gap, 2)
            if len(first):
                yield first, first + gap
