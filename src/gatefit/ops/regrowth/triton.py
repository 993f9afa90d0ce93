"""The search by a Triton kernel: a block of inputs against all nodes, block by block; no sum leaves the chip.

Products with the samples of a tile are matrix products, in full precision, added tile after tile.
"""
# mypy: disable-error-code="no-untyped-def"

from typing import Final

import torch
import triton
import triton.language as tl
from jaxtyping import Float, Int, Int64
from torch import Tensor

from gatefit.bits import PackedBatch
from gatefit.ops.triton_launch import launch, parts
from gatefit.ops.triton_tiles import check_floats, pool_of, read

INPUTS: Final = 16
NODES: Final = 32
SAMPLES: Final = 32
"""A block of inputs, of nodes, and of samples."""


@triton.jit
def _best_nodes(
    gradients, pool, size, present, found, inputs, nodes, batch, count, BITS: tl.constexpr, INPUTS: tl.constexpr,
    NODES: tl.constexpr, SAMPLES: tl.constexpr,
):  # fmt: skip
    """The node with the least sum below 0 that is not present, the first of equals; -1: there is none."""
    i = tl.program_id(0) * INPUTS + tl.arange(0, INPUTS)
    there = i < inputs
    kind: tl.constexpr = gradients.dtype.element_ty
    least = tl.zeros((INPUTS,), dtype=kind)
    best = tl.full((INPUTS,), -1, dtype=tl.int64)
    for start in range(0, nodes, NODES):
        n = start + tl.arange(0, NODES)
        sums = tl.zeros((INPUTS, NODES), dtype=kind)
        for first in range(0, batch, SAMPLES):
            s = first + tl.arange(0, SAMPLES)
            here = s < batch
            d = tl.load(
                gradients + i.to(tl.int64)[:, None] * batch + s[None, :],
                mask=there[:, None] & here[None, :],
                other=0.0,
            )
            x = read(pool, size, n, s, (n < nodes)[:, None] & here[None, :], kind, BITS)
            sums = tl.dot(d, tl.trans(x), acc=sums, input_precision="ieee", out_dtype=kind)
        sums = tl.where((n < nodes)[None, :], sums, 0.0)
        for k in range(0, count):
            taken = tl.load(present + i.to(tl.int64) * count + k, mask=there, other=-1)
            sums = tl.where(taken[:, None] == n[None, :], 0.0, sums)
        # Of equals the first: nodes come in order, and a later one must be less.
        own = tl.min(sums, axis=1)
        node = tl.min(tl.where(sums == own[:, None], n[None, :], nodes), axis=1)
        better = own < least
        least = tl.where(better, own, least)
        best = tl.where(better, node.to(tl.int64), best)
    tl.store(found + i, best, mask=there)


def best_nodes_triton(
    gradients: Float[Tensor, "inputs batch"],
    pool: PackedBatch | Float[Tensor, "nodes batch"],
    present: Int[Tensor, "inputs candidates"],
) -> Int64[Tensor, " inputs"]:
    """All inputs, a block of them a program."""
    check_floats(gradients=gradients)
    own, taken = gradients.detach().contiguous(), present.to(torch.int64).contiguous()
    inputs, batch = own.shape
    if isinstance(pool, PackedBatch):
        packed = pool_of(pool, own.device)
        values, nodes, size, bits = packed.values, packed.nodes, packed.size, True
    else:
        values = pool.detach().to(own).contiguous()
        nodes, size, bits = int(values.shape[0]), int(values.shape[1]), False
    found = own.new_empty(inputs, dtype=torch.int64)
    launch(
        _best_nodes, (parts(inputs, INPUTS),),
        own, values, size, taken, found, inputs, nodes, batch, taken.shape[1],
        BITS=bits, INPUTS=INPUTS, NODES=NODES, SAMPLES=SAMPLES,
    )  # fmt: skip
    return found
