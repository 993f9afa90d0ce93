"""Cuts: up to four nodes below a node that decide its value, with the function by which they do.

    cuts(n) = {{n}}  ∪  {u ∪ v : u in cuts(a), v in cuts(b), |u ∪ v| <= 4}        for a gate n = g(a, b)

The function of a cut is 16 bits, variable i being the i-th leaf in ascending order.
"""

from typing import Final, NamedTuple

import numpy as np
from jaxtyping import Int32, UInt8, UInt16

from gatefit.compiled import njit

LEAVES: Final = 4


class Cuts(NamedTuple):
    """Cut 0 of a node is the node itself; unused leaves hold no meaning."""

    number: UInt8[np.ndarray, " capacity"]
    sizes: UInt8[np.ndarray, "capacity cuts"]
    leaves: Int32[np.ndarray, "capacity cuts 4"]
    functions: UInt16[np.ndarray, "capacity cuts"]


def empty_cuts(capacity: int, inputs: int, limit: int) -> Cuts:
    """Room for ``limit`` cuts a node; the inputs have theirs."""
    cuts = Cuts(
        number=np.zeros(capacity, np.uint8),
        sizes=np.zeros((capacity, limit), np.uint8),
        leaves=np.zeros((capacity, limit, LEAVES), np.int32),
        functions=np.zeros((capacity, limit), np.uint16),
    )
    cuts.number[:inputs] = 1
    cuts.sizes[:inputs, 0] = 1
    cuts.leaves[:inputs, 0, 0] = np.arange(inputs)
    cuts.functions[:inputs, 0] = 0xAAAA
    return cuts


@njit(cache=True)
def gate_of_functions(gate: int, x: int, y: int) -> int:
    """A gate of two functions, point by point."""
    out = 0
    if gate & 8:
        out |= ~x & ~y
    if gate & 4:
        out |= ~x & y
    if gate & 2:
        out |= x & ~y
    if gate & 1:
        out |= x & y
    return out & 0xFFFF


_EXCHANGE_MASKS = np.array(
    [
        [sum(1 << p for p in range(16) if (p >> i) & 1 and not (p >> j) & 1) for j in range(LEAVES)]
        for i in range(LEAVES)
    ],
    np.int64,
)
"""The points with variable i = 1 and variable j = 0."""


@njit(cache=True)
def _spread(function, leaves, size, union):  # type: ignore[no-untyped-def]
    """The function of ``leaves`` as a function of the larger, also ascending ``union``."""
    j = LEAVES
    for i in range(size - 1, -1, -1):
        j -= 1
        while union[j] != leaves[i]:
            j -= 1
        if j > i:
            shift = (1 << j) - (1 << i)
            mask = _EXCHANGE_MASKS[i, j]
            function = (function & ~(mask | mask << shift)) | (function & mask) << shift | (function >> shift) & mask
    return function


@njit(cache=True)
def _merge(cuts, p, u, q, v, union):  # type: ignore[no-untyped-def]
    """Write the union of cut u of p and cut v of q; its size, or 5 if it has too many leaves."""
    i, j, size = 0, 0, 0
    left, right = cuts.sizes[p, u], cuts.sizes[q, v]
    while i < left or j < right:
        if size == LEAVES:
            return LEAVES + 1
        if j == right or (i < left and cuts.leaves[p, u, i] < cuts.leaves[q, v, j]):
            leaf = cuts.leaves[p, u, i]
            i += 1
        elif i == left or cuts.leaves[q, v, j] < cuts.leaves[p, u, i]:
            leaf = cuts.leaves[q, v, j]
            j += 1
        else:
            leaf = cuts.leaves[p, u, i]
            i += 1
            j += 1
        union[size] = leaf
        size += 1
    for k in range(size, LEAVES):
        union[k] = -1
    return size


@njit(cache=True)
def _dominated(cuts, node, used, union, size):  # type: ignore[no-untyped-def]
    """Whether an earlier cut of the node (not the node itself) is contained in ``union``."""
    for k in range(1, used):
        if cuts.sizes[node, k] > size:
            continue
        i = 0
        for j in range(size):
            if i < cuts.sizes[node, k] and cuts.leaves[node, k, i] == union[j]:
                i += 1
        if i == cuts.sizes[node, k]:
            return True
    return False


@njit(cache=True)
def find_cuts(cuts, node, gate, p, q):  # type: ignore[no-untyped-def]
    """Fill in the cuts of a new gate g(p, q); those of p and q are there already."""
    union = np.empty(LEAVES, np.int32)
    cuts.sizes[node, 0] = 1
    cuts.leaves[node, 0, 0] = node
    cuts.functions[node, 0] = 0xAAAA
    used = 1
    limit = cuts.sizes.shape[1]
    for u in range(cuts.number[p]):
        for v in range(cuts.number[q]):
            if used == limit:
                break
            size = _merge(cuts, p, u, q, v, union)
            if size > LEAVES or _dominated(cuts, node, used, union, size):
                continue
            x = _spread(np.int64(cuts.functions[p, u]), cuts.leaves[p, u], cuts.sizes[p, u], union)
            y = _spread(np.int64(cuts.functions[q, v]), cuts.leaves[q, v], cuts.sizes[q, v], union)
            cuts.sizes[node, used] = size
            for k in range(LEAVES):
                cuts.leaves[node, used, k] = union[k]
            cuts.functions[node, used] = gate_of_functions(gate, x, y)
            used += 1
    cuts.number[node] = used
