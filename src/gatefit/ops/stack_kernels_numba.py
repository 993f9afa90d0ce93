"""What soft and Boolean stacks share: coefficients in the order of computation, and rows asked for in time.

    to_plan      (c_0, c_a, c_b, c_ab) of gate n   ->   (c_0, c_1, c_2, c_12) at place k, for the first and second input
    from_plan    the sums over the batch's slices  ->   the gradients (gates, 4), as wired

Sums over a slice of the batch are added up in the order of the slices: results do not depend on the number of threads.
"""
# mypy: disable-error-code="no-untyped-def, call-arg"

from typing import Final

from numba import int64, uint32

from gatefit.compiled import njit
from gatefit.ops.simd import load, prefetch, samples, store, wide_vectors

AHEAD: Final = 8
"""Gates between the request for a row and its use, where rows are visited in an order the processor cannot guess."""

kernel = njit(cache=True, nogil=True)
inlined = njit(forceinline=True)


@kernel
def to_plan(coefficients, order, swapped, c):
    """Coefficients of one layer into the plan's order."""
    for k in range(order.size):
        row, s = coefficients[order[k]], swapped[k]
        c[k, 0], c[k, 1], c[k, 2], c[k, 3] = row[0], row[1 + s], row[2 - s], row[3]


@kernel
def from_plan(parts, order, swapped, gradient):
    """The parts' sum, added in order, into the gradient of one layer's coefficients."""
    for k in range(order.size):
        row, s = gradient[order[k]], swapped[k]
        d_0, d_1, d_2, d_12 = parts[0, k, 0], parts[0, k, 1], parts[0, k, 2], parts[0, k, 3]
        for part in range(1, parts.shape[0]):
            d_0 += parts[part, k, 0]
            d_1 += parts[part, k, 1]
            d_2 += parts[part, k, 2]
            d_12 += parts[part, k, 3]
        row[0], row[1 + s], row[2 - s], row[3] = d_0, d_1, d_2, d_12


@inlined
def ahead(array, rows, k, tile):
    """Ask for the row that is needed AHEAD gates later; at the end, for the last one again."""
    place = int64(rows[min(uint32(k) + uint32(AHEAD), uint32(rows.size) - uint32(1))]) * samples(tile)
    for line in range(len(tile)):
        prefetch(array, place + 16 * line)


@kernel
def spread_groups(gradient, rows, tile):
    """Each row of a class gets the class's gradient."""
    wide_vectors()
    n = samples(tile)
    size = rows.size // gradient.size
    for group in range(gradient.size // n):
        d = load(gradient, group * n, tile)
        for row in range(group * size, (group + 1) * size):
            store(rows, row * n, d)
