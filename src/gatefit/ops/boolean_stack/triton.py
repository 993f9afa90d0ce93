"""Boolean stacks by Triton's kernels: 64 samples a word forward; on the way back words are read as they are.

z = m_00 where neither input is 1, m_01 where b alone is, m_10 where a alone is, m_11 where both are: the gate's four
bits as masks. Counts are whole numbers below 2²⁴: exact in float32, in any order.
"""
# mypy: disable-error-code="no-untyped-def"

from collections.abc import Sequence
from typing import Any

import torch
import triton
import triton.language as tl
from jaxtyping import Float, Int32, Int64, UInt8
from torch import Tensor

from gatefit.ops.batches import Batch
from gatefit.ops.stacks import Stack, at_places
from gatefit.ops.triton_launch import launch, parts
from gatefit.ops.triton_tiles import (
    ROWS,
    Pool,
    check_floats,
    check_wirings,
    placed,
    pool_of,
    remembered_uses,
    stack_backward,
    votes_of_pools,
)


@triton.jit
def _boolean_forward(pool, size, wiring, kinds, words, gates, ROWS: tl.constexpr):
    """One word of a block of gates."""
    g = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    word = tl.program_id(1).to(tl.int64)
    there = g < gates
    a = tl.load(pool + word * size + tl.load(wiring + g, mask=there, other=0), mask=there, other=0)
    b = tl.load(pool + word * size + tl.load(wiring + gates + g, mask=there, other=0), mask=there, other=0)
    kind = tl.load(kinds + g, mask=there, other=0).to(tl.int64)
    m_00, m_01, m_10, m_11 = -(kind >> 3 & 1), -(kind >> 2 & 1), -(kind >> 1 & 1), -(kind & 1)
    without_b = (a & m_10) | (~a & m_00)
    with_b = (a & m_11) | (~a & m_01)
    tl.store(words + word * gates + g, (b & with_b) | (~b & without_b), mask=there)


def boolean_forward(pool: Pool, wiring: Int32[Tensor, "2 gates"], kinds: UInt8[Tensor, " gates"]) -> Pool:
    """The outputs of a layer of Boolean gates, as words. Bits beyond the batch mean nothing."""
    count, gates = int(pool.values.shape[0]), int(wiring.shape[1])
    words = pool.values.new_empty((count, gates))
    arguments = pool.values, pool.size, wiring, kinds, words, gates
    launch(_boolean_forward, (parts(gates, ROWS), count), *arguments, ROWS=ROWS)
    return Pool(words, pool.batch)


def boolean_pools(x: Pool, wirings: Sequence[Int32[Tensor, "2 _"]], gates: Sequence[UInt8[Tensor, " _"]]) -> list[Pool]:
    """The batch, then every layer's outputs."""
    pools = [x]
    for wiring, kinds in zip(wirings, gates, strict=True):
        pools.append(boolean_forward(pools[-1], wiring, kinds))
    return pools


class _BooleanStack(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Pool, stack: Stack, gates: Sequence[Tensor], *coefficients: Tensor) -> Tensor:
        wired = _wired(stack, x)
        pools = boolean_pools(x, [wiring for wiring, _ in wired], gates)
        ctx.stack, ctx.wired, ctx.pools = stack, wired, pools
        ctx.c = [tensor.detach().contiguous() for tensor in coefficients]
        return votes_of_pools(stack, pools[1:], coefficients[0].dtype)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        wirings, uses = zip(*ctx.wired, strict=True)
        return None, None, None, *stack_backward(ctx.stack, ctx.pools, wirings, uses, ctx.c, gradients[0])


def _wired(stack: Stack, x: Pool) -> list[Any]:
    sizes = (x.nodes, *stack.widths)
    return [remembered_uses(wiring, inputs) for wiring, inputs in zip(stack.wirings, sizes, strict=False)]


def boolean_stack_triton(
    x: Batch, stack: Stack, gates: Sequence[UInt8[Tensor, " _"]], coefficients: Sequence[Float[Tensor, "_ 4"]]
) -> Float[Tensor, "batch columns"]:
    """Bit operations forward; gradients from the bits, which are all that is kept."""
    check_floats(**{f"coefficients of layer {i}": tensor for i, tensor in enumerate(coefficients)})
    rows = [placed(tensor, owner) for tensor, owner in zip(coefficients, stack.owners, strict=True)]
    kinds = [at_places(numbers, owner).contiguous() for numbers, owner in zip(gates, stack.owners, strict=True)]
    result = _BooleanStack.apply(pool_of(x, rows[0].device), stack, kinds, *rows)
    assert isinstance(result, Tensor)
    return result


def boolean_counts_triton(
    x: Batch, stack: Stack, gates: Sequence[UInt8[Tensor, " _"]]
) -> Int64[Tensor, "batch columns"]:
    """Bit operations alone."""
    pool = pool_of(x, gates[0].device)
    check_wirings(stack.wirings, (pool.nodes, *stack.widths[:-1]))
    wirings = [wiring.to(torch.int32).contiguous() for wiring in stack.wirings]
    kinds = [at_places(numbers, owner).contiguous() for numbers, owner in zip(gates, stack.owners, strict=True)]
    pools = boolean_pools(pool, wirings, kinds)
    return votes_of_pools(stack, pools[1:], torch.float32).to(torch.int64)
