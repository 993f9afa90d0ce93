"""Wirings that follow from the sizes of a layer, and chance: stride, unique, random, every pair.

All return int32 (2, gates). Where a block of pairs is only partly needed, its pairs are spread over the inputs.
"""

from collections.abc import Iterator
from typing import Final

import torch
from jaxtyping import Int32
from torch import Tensor

from gatefit.wirings.base import WiringContext

PREFERRED_SHARE: Final = 0.75
"""The share of the first layer's gates that read only preferred inputs, where there are such."""


def stride_wiring(inputs: int, gates: int) -> Int32[Tensor, "2 gates"]:
    """The paper's gap scheme, nearest pairs first; nothing is drawn."""
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


def every_pair_wiring(inputs: int, gates: int, *, generator: torch.Generator) -> Int32[Tensor, "2 gates"]:
    """Unique pairs, as often as there are gates for them; the one input twice where there is no pair."""
    pairs = inputs * (inputs - 1) // 2
    if pairs == 0:
        return torch.zeros((2, gates), dtype=torch.int32)
    whole, rest = divmod(gates, pairs)
    counts = [pairs] * whole + [rest] * (rest > 0)
    return torch.cat([unique_wiring(inputs, count, generator=generator) for count in counts], dim=1)


def preferring_wiring(context: WiringContext) -> Int32[Tensor, "2 gates"]:
    """Every pair before any a second time; in the first layer most gates read two of the preferred inputs."""
    pairs = every_pair_wiring(context.inputs, context.gates, generator=context.generator)
    preferred = context.options.preferred
    if preferred is None or context.layer > 0:
        return pairs
    generator = context.stream("preferred")
    among = every_pair_wiring(len(preferred), int(PREFERRED_SHARE * context.gates), generator=generator)
    nodes = torch.as_tensor(preferred, dtype=torch.int32)[among.long()]
    both = torch.cat([nodes, pairs[:, nodes.shape[1] :]], dim=1)
    return both[:, torch.randperm(context.gates, generator=generator)]


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
