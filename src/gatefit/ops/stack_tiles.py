"""What soft and Boolean stacks do around their kernels: cut the batch, lay out scores, order coefficients.

    scores in kernels   (tiles, columns * samples)    a column's samples side by side, padding beyond the batch
    scores outside      (batch, columns)

    coefficients        (c_0, c_a, c_b, c_ab) of a row   ->   (c_0, c_1, c_2, c_12) at place k, for its first and second
                        input; places that share a row all get it, and their gradients are added up in their order

The batch is cut into slices by its size alone. A thread takes a slice at a time, and what slices add up to the
coefficients' gradients is added in their order: the number of threads shows in no bit of any result.
"""
# mypy: disable-error-code="no-untyped-def, call-arg"

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Final

import numpy as np
import torch
from jaxtyping import Float
from numba import int64, uint32
from torch import Tensor

from gatefit.compiled import njit
from gatefit.ops.simd import load, prefetch, samples, store, wide_vectors
from gatefit.ops.stack_schedule import FROM_CYCLES, FROM_TRAILS, StackOrder
from gatefit.ops.stacks import Stack
from gatefit.ops.threads import kernel_threads, parallel_for
from gatefit.ops.workspace import NUMPY_TYPES, workspace

AHEAD: Final = 16
"""Gates between the request for a row and its use, where rows are visited in an order the processor cannot guess."""

kernel = njit(cache=True, nogil=True, plain=True, optional=True)
subkernel = njit(cache=True, inner=True, nogil=True, plain=True, optional=True)
inlined = njit(inner=True, plain=True, forceinline=True)


def slices(words: int) -> list[tuple[int, int]]:
    """Ranges of words: four where there are as many, sixteen for large batches; an empty one for an empty batch."""
    count = max(1, min(words, 16, max(4, words // 4)))
    return [(words * place // count, words * (place + 1) // count) for place in range(count)]


def walked_cycles(order: StackOrder) -> np.ndarray | None:
    """Where cycles begin; None where no layer has any: kernels are compiled without what they are given None for."""
    return order.cycles if FROM_CYCLES in order.kinds else None


def trails(order: StackOrder, samples: int, dtype: Any) -> tuple[np.ndarray, ...] | None:
    """What a backward pass along trails needs: how they run, and room for what their ends add up; None likewise."""
    if FROM_TRAILS not in order.kinds:
        return None
    room = workspace.array((order.most_ends * samples,), dtype)
    return order.cycles, order.closed, order.enters, order.turned, order.ends, order.uses, room


def pieces(stack: Stack, order: StackOrder, tensors: int) -> list[tuple[int, np.ndarray, slice]]:
    """For threads to share: a tensor, which of its rows gates have, and where they stand in the order of computation.

    Of as many ``tensors`` as layers, or of one tensor of all layers (``stacks.whole_or_parts``).
    """
    if tensors == len(order.widths):
        return [(layer, _rows(stack, order, layer), place) for layer, place in enumerate(order.ranges)]
    count = kernel_threads()
    cuts = [order.gates * part // count for part in range(count + 1)]
    return [(0, order.numbers[begin:end], slice(begin, end)) for begin, end in pairwise(cuts)]


def _rows(stack: Stack, order: StackOrder, layer: int) -> np.ndarray:
    """Which row of coefficients each gate of a layer has, in the order of computation."""
    numbers, owner = order.order[order.ranges[layer]], stack.owners[layer]
    if owner is None:
        return numbers
    rows: np.ndarray = owner.detach().cpu().numpy()[numbers]
    return rows


def scheduled_coefficients(stack: Stack, order: StackOrder, coefficients: Sequence[Tensor]) -> np.ndarray:
    """All layers' coefficients in the order of computation."""
    c = workspace.array((order.gates, 4), NUMPY_TYPES[coefficients[0].dtype])
    given = [tensor.detach().contiguous().numpy() for tensor in coefficients]
    shares = pieces(stack, order, len(given))

    def task(share: int) -> None:
        tensor, rows, place = shares[share]
        _to_schedule(given[tensor], rows, order.swapped[place], c[place])

    parallel_for(task, len(shares), nanoseconds=4 * order.gates)
    return c


def coefficient_gradients(
    stack: Stack, order: StackOrder, parts: np.ndarray, shapes: Sequence[torch.Size]
) -> list[Tensor]:
    """The gradients of the coefficients, tensor by tensor, from the sums of the batch's slices."""
    kind = torch.float32 if parts.dtype == np.float32 else torch.float64
    gradients = [workspace.tensor(shape, kind) for shape in shapes]
    found = [gradient.numpy() for gradient in gradients]
    shares = pieces(stack, order, len(found))

    def task(share: int) -> None:
        tensor, rows, place = shares[share]
        shared = len(found) == len(stack.owners) and stack.owners[tensor] is not None
        add = _from_shared_schedule if shared else _from_schedule
        add(parts[:, place], rows, order.swapped[place], found[tensor])

    parallel_for(task, len(shares), nanoseconds=3 * order.gates * parts.shape[0])
    return gradients


@kernel
def _to_schedule(coefficients, rows, swapped, c):
    """Coefficients of one layer into the order of computation."""
    for k in range(rows.size):
        row, s = coefficients[rows[k]], swapped[k]
        c[k, 0], c[k, 1], c[k, 2], c[k, 3] = row[0], row[1 + s], row[2 - s], row[3]


@inlined
def _added_up(parts, k):
    """The parts' sum, added in order."""
    d_0, d_1, d_2, d_12 = parts[0, k, 0], parts[0, k, 1], parts[0, k, 2], parts[0, k, 3]
    for part in range(1, parts.shape[0]):
        d_0 += parts[part, k, 0]
        d_1 += parts[part, k, 1]
        d_2 += parts[part, k, 2]
        d_12 += parts[part, k, 3]
    return d_0, d_1, d_2, d_12


@kernel
def _from_schedule(parts, rows, swapped, gradient):
    """The gradient of one layer's coefficients, each row of which belongs to one gate."""
    for k in range(rows.size):
        row, s = gradient[rows[k]], swapped[k]
        row[0], row[1 + s], row[2 - s], row[3] = _added_up(parts, k)


@kernel
def _from_shared_schedule(parts, rows, swapped, gradient):
    """The same where gates share rows: their gradients are added up, in the order of computation."""
    gradient[:] = 0
    for k in range(rows.size):
        row, s = gradient[rows[k]], swapped[k]
        d_0, d_1, d_2, d_12 = _added_up(parts, k)
        row[0] += d_0
        row[1 + s] += d_1
        row[2 - s] += d_2
        row[3] += d_12


@inlined
def ahead(array, rows, k, tile):
    """Ask for the row that is needed AHEAD gates later; at the end, for the last one again."""
    place = int64(rows[min(uint32(k) + uint32(AHEAD), uint32(rows.size) - uint32(1))]) * samples(tile)
    for line in range(len(tile)):
        prefetch(array, place + 16 * line)


@subkernel
def put_rows(given, places, rows, tile):
    """The given rows at these places among others."""
    n = samples(tile)
    for i in range(places.size):
        store(rows, int64(places[i]) * n, load(given, i * n, tile))


@subkernel
def add_group_sums(rows, scores, tile):
    """The sum of each group's rows is added to its scores."""
    wide_vectors()
    n = samples(tile)
    size = rows.size // scores.size
    for group in range(scores.size // n):
        total = load(scores, group * n, tile)
        for row in range(group * size, (group + 1) * size):
            total = total + load(rows, row * n, tile)
        store(scores, group * n, total)


@subkernel
def spread_groups(gradient, rows, tile):
    """Each row of a group gets the group's gradient."""
    wide_vectors()
    n = samples(tile)
    size = rows.size // gradient.size
    for group in range(gradient.size // n):
        d = load(gradient, group * n, tile)
        for row in range(group * size, (group + 1) * size):
            store(rows, row * n, d)


def to_tiles(gradient: Float[Tensor, "batch columns"], tiles: int, samples: int) -> np.ndarray:
    """The scores' gradients as the kernels read them, zero beyond the batch."""
    batch, columns = gradient.shape
    given = gradient.numpy()
    # Numpy: of a small network's step every call of torch's takes a hundredth.
    laid_out = np.zeros((tiles, columns, samples), given.dtype)
    whole = batch // samples
    if whole:
        laid_out[:whole] = given[: whole * samples].reshape(whole, samples, columns).transpose(0, 2, 1)
    if batch % samples:
        laid_out[whole, :, : batch % samples] = given[whole * samples :].T
    return laid_out.reshape(tiles, columns * samples)


def from_tiles(scores: np.ndarray, batch: int, samples: int) -> Float[Tensor, "batch columns"]:
    """The kernels' scores, without the padding; stored column by column, contiguous along the batch."""
    tiles, columns = scores.shape[0], scores.shape[1] // samples
    laid_out = scores.reshape(tiles, columns, samples).transpose(1, 0, 2)
    return torch.from_numpy(laid_out.reshape(columns, tiles * samples)[:, :batch].T)
