"""Wiring along a line: every gate reads near its own place, so that wires are short on a chip.

    inputs   along a Hilbert curve through the image, which keeps neighbours together; else by number
    hidden   gate i of g reads two nodes of the layer below (n nodes) whose places are near i n / g
    last     the gates of every class are spread over the whole line: each class sees all of it

Gates are sorted by place + U(-reach/2, reach/2); the k-th of them reads the nodes floor(k n / g) and, sorted anew,
floor((k + 1/2) n / g). So no gate reads farther than ``reach`` gates from its place (and a node or two), and every
node is read as soon as 2 g >= n, all equally often where g is a multiple of n.
"""

import numpy as np
import torch
from jaxtyping import Float, Int, Int32
from torch import Tensor

from gatefit.wirings.base import WiringContext
from gatefit.wirings.fixed import check_sizes


def local_wiring(context: WiringContext) -> Int32[Tensor, "2 gates"]:
    """The wiring of one layer; the last of ``context.depth`` layers spreads its classes over the line."""
    gates, options = context.gates, context.options
    reach = max(1, gates // 10) if options.reach is None else options.reach
    if reach < 1:
        raise ValueError(f"reach must be a whole number of gates >= 1, got {reach}; the line is {gates} gates long")
    places = np.arange(gates, dtype=np.float64)
    if context.layer == context.depth - 1:
        places = places % -(-gates // context.classes) * context.classes
    pairs = _near(places, context.inputs, reach, context.generator)
    if context.layer == 0 and options.order is not None:
        if sorted(options.order.tolist()) != list(range(context.inputs)):
            raise ValueError(f"order must name each of the {context.inputs} inputs once")
        pairs = options.order[pairs]
    return torch.as_tensor(pairs, dtype=torch.int32)


def image_order(features: Int[np.ndarray, " bits"], shape: tuple[int, int, int]) -> Int[np.ndarray, " bits"]:
    """The bits along a Hilbert curve: ``features[j]`` is bit j's value in an image (channel, row, column) of ``shape``.

    ``shape`` is (rows, columns, channels), as data sets state it.
    """
    rows, columns, _ = shape
    pixel = features % (rows * columns)
    return np.argsort(hilbert_index(pixel % columns, pixel // columns), kind="stable")


def hilbert_index(x: Int[np.ndarray, " points"], y: Int[np.ndarray, " points"]) -> Int[np.ndarray, " points"]:
    """How far along the Hilbert curve of the smallest square 2^k x 2^k that holds all points each of them lies."""
    x, y = x.astype(np.int64), y.astype(np.int64)
    index = np.zeros_like(x)
    size = 1 << int(max(x.max(initial=0), y.max(initial=0))).bit_length()
    quarter = size // 2
    while quarter:
        right, upper = (x & quarter) > 0, (y & quarter) > 0
        index += quarter * quarter * ((3 * right) ^ upper)
        # Turn the quarter as the curve enters it: mirrored in the fourth, transposed in the first and the fourth.
        mirrored = right & ~upper
        x, y = np.where(mirrored, size - 1 - x, x), np.where(mirrored, size - 1 - y, y)
        x, y = np.where(upper, x, y), np.where(upper, y, x)
        quarter //= 2
    return index


def _near(
    places: Float[np.ndarray, " gates"], nodes: int, reach: int, generator: torch.Generator
) -> Int[np.ndarray, "2 gates"]:
    gates = places.size
    check_sizes(nodes, gates)
    pairs = np.empty((2, gates), dtype=np.int64)
    for role in (0, 1):
        noise = torch.rand(gates, generator=generator, dtype=torch.float64).numpy() - 0.5
        sequence = np.argsort(places + reach * noise, kind="stable")
        pairs[role, sequence] = (2 * np.arange(gates) + role) * nodes // (2 * gates)
        if role:
            _part(pairs, sequence, nodes)
    return pairs


def _part(pairs: Int[np.ndarray, "2 gates"], sequence: Int[np.ndarray, " gates"], nodes: int) -> None:
    """Where a gate would read one node twice, it swaps its second node with a gate near by, or takes the next node."""
    rank = np.argsort(sequence)
    for gate in np.flatnonzero(pairs[0] == pairs[1]):
        if pairs[0, gate] != pairs[1, gate]:
            continue  # an earlier swap was of use to this gate too
        around = [r for d in (1, 2, 3) for r in (rank[gate] + d, rank[gate] - d) if 0 <= r < sequence.size]
        for other in sequence[around]:
            if pairs[1, other] != pairs[0, gate] and pairs[1, gate] != pairs[0, other]:
                pairs[1, [gate, other]] = pairs[1, [other, gate]]
                break
        else:
            pairs[1, gate] += 1 if pairs[1, gate] + 1 < nodes else -1
