"""The search compiled: four inputs at a time against a block of nodes that stays in the cache; no sum is stored.

Sums are over sixteen samples at a time, then over lanes: the same for any number of threads, each of which takes
inputs of its own.
"""
# mypy: disable-error-code="no-untyped-def, call-arg, var-annotated"

from typing import Final

import numpy as np
import torch
from jaxtyping import Float, Int, Int64
from numba import int64
from torch import Tensor

from gatefit.bits import PackedBatch
from gatefit.ops.simd import add_sums, load, samples, spread, where, wide_vectors
from gatefit.ops.stack_tiles import inlined, kernel, run

TILE: Final = (0,)
SAMPLES: Final = samples(TILE)
TOGETHER: Final = 4
SHARE: Final = 64
"""Inputs that a thread takes at a time."""
BLOCK: Final = 128
"""Nodes that all of these inputs are compared with before the next ones: 128 kB of floats for a batch of 256."""


@inlined
def _keep_least(sums, node, present, begin, at, best, found):
    for j in range(TOGETHER):
        if sums[j] < best[at - begin + j]:
            is_candidate = False
            for k in range(present.shape[1]):
                is_candidate |= present[at + j, k] == node
            if not is_candidate:
                best[at - begin + j] = sums[j]
                found[at + j] = node


@kernel
def _among_bits(words, gradients, present, found, begin, end):
    """``words`` (words, nodes); inputs begin to end, a multiple of four."""
    wide_vectors()
    zero = spread(gradients.dtype.type(0), TILE)
    size = gradients.shape[1]
    flat = gradients.ravel()
    sums, best = np.zeros(TOGETHER, gradients.dtype), np.zeros(end - begin, gradients.dtype)
    nodes = words.shape[1]
    for block in range(0, nodes, BLOCK):
        for at in range(begin, end, TOGETHER):
            first = int64(at) * size
            for node in range(block, min(block + BLOCK, nodes)):
                s_0, s_1, s_2, s_3 = zero, zero, zero, zero
                for part in range(size // SAMPLES):
                    bits = words[part * SAMPLES // 64, node] >> np.uint64(part * SAMPLES % 64)
                    place = first + part * SAMPLES
                    s_0 = where(bits, s_0 + load(flat, place, TILE), s_0)
                    s_1 = where(bits, s_1 + load(flat, place + size, TILE), s_1)
                    s_2 = where(bits, s_2 + load(flat, place + 2 * size, TILE), s_2)
                    s_3 = where(bits, s_3 + load(flat, place + 3 * size, TILE), s_3)
                sums[:] = 0
                add_sums(sums, 0, s_0, s_1, s_2, s_3)
                _keep_least(sums, node, present, begin, at, best, found)


@kernel
def _among_rows(values, gradients, present, found, begin, end):
    """``values`` (nodes, batch)."""
    wide_vectors()
    zero = spread(gradients.dtype.type(0), TILE)
    size = gradients.shape[1]
    flat, rows = gradients.ravel(), values.ravel()
    sums, best = np.zeros(TOGETHER, gradients.dtype), np.zeros(end - begin, gradients.dtype)
    nodes = values.shape[0]
    for block in range(0, nodes, BLOCK):
        for at in range(begin, end, TOGETHER):
            first = int64(at) * size
            for node in range(block, min(block + BLOCK, nodes)):
                s_0, s_1, s_2, s_3 = zero, zero, zero, zero
                for part in range(size // SAMPLES):
                    place = first + part * SAMPLES
                    x = load(rows, int64(node) * size + part * SAMPLES, TILE)
                    s_0 = s_0 + x * load(flat, place, TILE)
                    s_1 = s_1 + x * load(flat, place + size, TILE)
                    s_2 = s_2 + x * load(flat, place + 2 * size, TILE)
                    s_3 = s_3 + x * load(flat, place + 3 * size, TILE)
                sums[:] = 0
                add_sums(sums, 0, s_0, s_1, s_2, s_3)
                _keep_least(sums, node, present, begin, at, best, found)


def best_nodes_numba(
    gradients: Float[Tensor, "inputs batch"],
    pool: PackedBatch | Float[Tensor, "nodes batch"],
    present: Int[Tensor, "inputs candidates"],
) -> Int64[Tensor, " inputs"]:
    """All sums by compiled kernels; samples and inputs are filled up with zeros to whole tiles."""
    inputs, batch = gradients.shape
    bits = isinstance(pool, PackedBatch)
    size = -(-batch // 64) * 64 if bits else -(-batch // SAMPLES) * SAMPLES
    rows = -(-inputs // TOGETHER) * TOGETHER
    padded = np.zeros((rows, size), dtype=gradients.detach().numpy().dtype)
    padded[:inputs, :batch] = gradients.detach().numpy()
    taken = np.full((rows, present.shape[1]), -1, dtype=np.int64)
    taken[:inputs] = present.numpy()
    found = np.full(rows, -1, dtype=np.int64)
    if isinstance(pool, PackedBatch):
        values = pool.words
        search = _among_bits
        nodes = values.shape[1]
    else:
        values = np.zeros((pool.shape[0], size), dtype=padded.dtype)
        values[:, :batch] = pool.detach().numpy()
        search = _among_rows
        nodes = values.shape[0]
    shares = [(begin, min(begin + SHARE, rows)) for begin in range(0, rows, SHARE)]
    run(lambda share: search(values, padded, taken, found, *shares[share]), len(shares), rows * nodes * size // 16)
    return torch.from_numpy(found[:inputs])
