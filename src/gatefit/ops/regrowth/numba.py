"""The search compiled: four inputs at a time against 32 nodes, whose sums stay in registers; no sum is stored.

    values    (blocks of 32 nodes, batch, 32)     bits are laid out as numbers, so that a product serves all pools

Sums are over one sample after another, for any number of threads and any width of registers; each thread takes inputs
of its own.
"""
# mypy: disable-error-code="no-untyped-def, call-arg, var-annotated"

from collections.abc import Sequence
from typing import Final

import numpy as np
import torch
from jaxtyping import Float, Int, Int64
from numba import int64
from torch import Tensor

from gatefit.bits import PackedBatch
from gatefit.compiled import njit
from gatefit.ops.simd import FUSED, load, samples, spread, store, wide_vectors
from gatefit.ops.threads import parallel_for
from gatefit.ops.workspace import workspace

_kernel = njit(cache=True, nogil=True)
_simd = njit(cache=True, nogil=True, error_model="numpy", fastmath=FUSED)
TILE: Final = (0, 0)
NODES: Final = samples(TILE)
TOGETHER: Final = 4
SHARE: Final = 256
"""Inputs that a thread takes at a time: it compares all of them with a block of nodes, 32 kB for a batch of 256."""


@_simd
def _lay_out_bits(words, values, begin, end):
    """``words`` (words, nodes) of a packed batch; blocks begin to end."""
    wide_vectors()
    batch, one, zero = values.shape[1], values.dtype.type(1), values.dtype.type(0)
    own = np.empty(NODES, np.uint64)
    for block in range(begin, end):
        count = min(NODES, words.shape[1] - block * NODES)
        for word in range(words.shape[0]):
            own[:] = 0
            for i in range(count):
                own[i] = words[word, block * NODES + i]
            for sample in range(min(64, batch - word * 64)):
                row, bit = values[block, word * 64 + sample], np.uint64(1) << np.uint64(sample)
                for node in range(NODES):
                    row[node] = one if own[node] & bit else zero


@_simd
def _lay_out_rows(rows, values, begin, end):
    """``rows`` (nodes, batch); blocks begin to end."""
    for block in range(begin, end):
        first = block * NODES
        for node in range(NODES):
            for sample in range(rows.shape[1]):
                values[block, sample, node] = rows[first + node, sample] if first + node < rows.shape[0] else 0


@_kernel
def _search(values, gradients, present, found, begin, end):
    """Inputs begin to end; ``values`` (blocks, batch, 32), zeros beyond the last node."""
    wide_vectors()
    zero = spread(gradients.dtype.type(0), TILE)
    batch = gradients.shape[1]
    sums, best = np.zeros(TOGETHER * NODES, gradients.dtype), np.zeros(end - begin, gradients.dtype)
    flat = values.ravel()
    for block in range(values.shape[0]):
        for at in range(begin, end, TOGETHER):
            # The last input again, where four are not left: it finds the same node twice.
            g_0, g_1 = gradients[at], gradients[min(at + 1, end - 1)]
            g_2, g_3 = gradients[min(at + 2, end - 1)], gradients[min(at + 3, end - 1)]
            s_0, s_1, s_2, s_3 = zero, zero, zero, zero
            place = int64(block) * batch * NODES
            for sample in range(batch):
                x = load(flat, place + int64(sample) * NODES, TILE)
                s_0 = s_0 + spread(g_0[sample], TILE) * x
                s_1 = s_1 + spread(g_1[sample], TILE) * x
                s_2 = s_2 + spread(g_2[sample], TILE) * x
                s_3 = s_3 + spread(g_3[sample], TILE) * x
            store(sums, 0, s_0)
            store(sums, NODES, s_1)
            store(sums, 2 * NODES, s_2)
            store(sums, 3 * NODES, s_3)
            for j in range(min(TOGETHER, end - at)):
                for node in range(NODES):
                    if sums[j * NODES + node] < best[at - begin + j]:
                        number, is_candidate = block * NODES + node, False
                        for k in range(present.shape[1]):
                            is_candidate |= present[at + j, k] == number
                        if not is_candidate:
                            best[at - begin + j] = sums[j * NODES + node]
                            found[at + j] = number


def best_nodes_numba(
    gradients: Float[Tensor, "inputs batch"],
    pool: PackedBatch | Float[Tensor, "nodes batch"],
    present: Int[Tensor, "inputs candidates"],
) -> Int64[Tensor, " inputs"]:
    """All sums by compiled kernels; nodes are filled up with zeros to whole blocks."""
    inputs, batch = gradients.shape
    own, taken = (np.ascontiguousarray(each.detach().numpy()) for each in (gradients, present))
    found = np.full(inputs, -1, dtype=np.int64)
    if isinstance(pool, PackedBatch):
        nodes, given, lay_out = pool.bits, pool.words, _lay_out_bits
    else:
        nodes, given, lay_out = pool.shape[0], pool.detach().numpy(), _lay_out_rows
    blocks = -(-nodes // NODES)
    values = workspace.array((blocks, batch, NODES), own.dtype)
    parallel_for(lambda block: lay_out(given, values, block, block + 1), blocks, nanoseconds=blocks * batch * NODES / 2)
    shares = [(begin, min(begin + SHARE, inputs)) for begin in range(0, inputs, SHARE)]
    parallel_for(
        lambda share: _search(values, own, taken, found, *shares[share]),
        len(shares),
        nanoseconds=inputs * nodes * batch / 32,
    )
    return torch.from_numpy(found)


@_kernel
def _replace_lowest(candidates, scores, first, second, inputs, nodes, offset):
    gates, count = scores.shape[1:]
    for i in range(inputs.size):
        if nodes[i] < 0:
            continue
        side, gate = inputs[i] // gates, inputs[i] % gates
        own = scores[side, gate]
        lowest, top = 0, own[0]
        for k in range(1, count):
            lowest, top = k if own[k] < own[lowest] else lowest, max(top, own[k])
        candidates[side, gate, lowest] = nodes[i]
        own[lowest] = top - offset
        if first.size:
            total = second[side, gate, 0]
            for k in range(1, count):
                total += second[side, gate, k]
            first[side, gate, lowest], second[side, gate, lowest] = 0, total / count


def replace_lowest_numba(
    candidates: Int[Tensor, "2 gates candidates"],
    scores: Float[Tensor, "2 gates candidates"],
    moments: Sequence[Float[Tensor, "2 gates candidates"]],
    inputs: Int64[Tensor, " inputs"],
    nodes: Int64[Tensor, " inputs"],
    offset: float,
) -> None:
    """In one pass."""
    # Without moments their places are empty.
    all_of_them = (candidates, scores, *(moments or (scores[:0], scores[:0])), inputs, nodes)
    _replace_lowest(*(each.detach().numpy() for each in all_of_them), offset)
    # What is written behind torch's back is not counted by it, and layouts of candidates are kept until they change.
    torch.autograd.graph.increment_version(candidates)
