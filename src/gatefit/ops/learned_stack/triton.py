"""Learned stacks by Triton's kernels: the gradients of all candidates, tile by tile of the batch.

forward    that of the soft or the Boolean stack, of the nodes that are read
q_k        Σ over a tile's samples of ∂L/∂a · x[n_k], for one side of a block of gates; parts are added in order
scores     ∂L/∂s_k = w_k (q_k - Σ_j w_j q_j)
watched    ∂L/∂a of single inputs, written down as rows
"""
# mypy: disable-error-code="no-untyped-def"

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
import triton
import triton.language as tl
from jaxtyping import Float, Int, Int64, UInt8
from torch import Tensor

from gatefit.bits import PackedBatch
from gatefit.ops.batches import Batch
from gatefit.ops.boolean_stack.triton import boolean_pools
from gatefit.ops.expected_loss import ExpectedLoss
from gatefit.ops.learned_stack.watch import Watch
from gatefit.ops.stacks import Stack, at_places
from gatefit.ops.triton_launch import TILE, launch, parts, power_of_two, tile
from gatefit.ops.triton_tiles import (
    Delta,
    Pool,
    added_up,
    check_floats,
    check_wirings,
    gradient_of,
    layer_forward,
    placed,
    pool_of,
    read,
    stack_backward,
    uses_of,
    votes_of_pools,
)


@triton.jit
def _to_input(delta, share, pool, size, wiring, c, gates, batch, g, side, s, mask, there, BITS: tl.constexpr):
    """∂L/∂a (side 0) or ∂L/∂b (side 1) of gates for samples: δ (c_a + c_ab b) or δ (c_b + c_ab a)."""
    kind: tl.constexpr = c.dtype.element_ty
    other = tl.load(wiring + (1 - side) * gates + g, mask=there, other=0)
    c_own = tl.load(c + 4 * g + 1 + side, mask=there, other=0.0)
    c_ab = tl.load(c + 4 * g + 3, mask=there, other=0.0)
    d = gradient_of(delta, share, batch, g, s, mask)
    return d * (c_own[:, None] + c_ab[:, None] * read(pool, size, other, s, mask, kind, BITS))


@triton.jit
def _candidate_sums(
    delta, share, pool, size, wiring, c, candidates, partial, gates, batch, count, BITS: tl.constexpr,
    ROWS: tl.constexpr, SAMPLES: tl.constexpr,
):  # fmt: skip
    """The tile's part of q, for one side of a block of gates and each of its candidates."""
    g = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    part, side = tl.program_id(1), tl.program_id(2)
    s = part * SAMPLES + tl.arange(0, SAMPLES)
    there = g < gates
    mask = there[:, None] & (s < batch)[None, :]
    kind: tl.constexpr = c.dtype.element_ty
    d = _to_input(delta, share, pool, size, wiring, c, gates, batch, g, side, s, mask, there, BITS)
    own = (side * gates + g).to(tl.int64) * count
    for k in range(0, count):
        x = read(pool, size, tl.load(candidates + own + k, mask=there, other=0), s, mask, kind, BITS)
        tl.store(partial + part.to(tl.int64) * 2 * gates * count + own + k, tl.sum(d * x, axis=1), mask=there)


@triton.jit
def _score_gradients(scores, sums, result, inputs, count, ROWS: tl.constexpr, WIDTH: tl.constexpr):
    """w_k (q_k - Σ_j w_j q_j),  w = softmax(s)."""
    i = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    k = tl.arange(0, WIDTH)
    there = (i < inputs)[:, None] & (k < count)[None, :]
    places = i[:, None] * count + k[None, :]
    s = tl.load(scores + places, mask=there, other=float("-inf"))
    s = tl.where((k < count)[None, :] & (i >= inputs)[:, None], 0.0, s)
    e = tl.exp(s - tl.max(s, axis=1)[:, None])
    w = e / tl.sum(e, axis=1)[:, None]
    q = tl.load(sums + places, mask=there, other=0.0)
    tl.store(result + places, w * (q - tl.sum(w * q, axis=1)[:, None]), mask=there)


@triton.jit
def _notes(
    delta, share, pool, size, wiring, c, watched, notes, gates, batch, count, BITS: tl.constexpr, ROWS: tl.constexpr,
    SAMPLES: tl.constexpr,
):  # fmt: skip
    """The gradients of watched inputs (side · gates + gate), as rows."""
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    s = tl.program_id(1) * SAMPLES + tl.arange(0, SAMPLES)
    there = row < count
    mask = there[:, None] & (s < batch)[None, :]
    place = tl.load(watched + row, mask=there, other=0)
    side, g = (place // gates).to(tl.int32), (place % gates).to(tl.int32)
    d = _to_input(delta, share, pool, size, wiring, c, gates, batch, g, side, s, mask, there, BITS)
    tl.store(notes + row.to(tl.int64)[:, None] * batch + s[None, :], d, mask=mask)


def candidate_sums(delta: Delta, pool: Pool, wiring: Tensor, c: Tensor, nodes: Tensor) -> Float[Tensor, "2 _ _"]:
    """q of every candidate."""
    _, gates, count = nodes.shape
    rows, samples = tile(pool.batch)
    cuts = parts(pool.batch, samples)
    partial = c.new_empty((cuts, 2, gates, count))
    launch(
        _candidate_sums, (parts(gates, rows), cuts, 2),
        delta.rows, delta.share, pool.values, pool.size, wiring, c, nodes, partial, gates, pool.batch, count,
        BITS=pool.bits, ROWS=rows, SAMPLES=samples,
    )  # fmt: skip
    return added_up(partial)


def score_gradients(scores: Float[Tensor, "2 _ candidates"], sums: Tensor) -> Float[Tensor, "2 _ candidates"]:
    """The scores' gradients from the sums."""
    inputs, count = scores.shape[0] * scores.shape[1], scores.shape[2]
    width, result = power_of_two(count), torch.empty_like(scores)
    rows = max(1, TILE // width)
    launch(_score_gradients, (parts(inputs, rows),), scores, sums, result, inputs, count, ROWS=rows, WIDTH=width)
    return result


def noted(delta: Delta, pool: Pool, wiring: Tensor, c: Tensor, watched: Tensor) -> Float[Tensor, "watched batch"]:
    """The gradients of the watched inputs."""
    rows, samples = tile(pool.batch)
    notes = c.new_empty((len(watched), pool.batch))
    launch(
        _notes, (parts(len(watched), rows), parts(pool.batch, samples)),
        delta.rows, delta.share, pool.values, pool.size, wiring, c, watched, notes, wiring.shape[1], pool.batch,
        len(watched), BITS=pool.bits, ROWS=rows, SAMPLES=samples,
    )  # fmt: skip
    return notes


def offered(pool: Pool, nodes: Int64[np.ndarray, " nodes"]) -> PackedBatch | Float[Tensor, "nodes batch"]:
    """The values of some nodes, as ``regrowth`` reads them."""
    numbers = torch.from_numpy(nodes).to(pool.values.device)
    if pool.bits:
        return PackedBatch(pool.values.index_select(1, numbers), pool.batch)
    return pool.values.index_select(0, numbers)


class _LearnedStack(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        x: Pool,
        stack: Stack,
        candidates: Sequence[Tensor | None],
        kinds: Sequence[Tensor] | None,
        watch: Watch | None,
        *tensors: Tensor,
    ) -> Tensor:
        depth = len(stack.wirings)
        wirings = [wiring.to(torch.int32).contiguous() for wiring in stack.wirings]
        c = [tensor.detach().contiguous() for tensor in tensors[:depth]]
        if kinds is None:
            pools = [x]
            for wiring, own in zip(wirings, c, strict=True):
                pools.append(layer_forward(pools[-1], wiring, own))
        else:
            pools = boolean_pools(x, wirings, kinds)
        ctx.stack, ctx.wirings, ctx.pools, ctx.c, ctx.watch = stack, wirings, pools, c, watch
        ctx.candidates = [None if nodes is None else nodes.to(torch.int32).contiguous() for nodes in candidates]
        ctx.scores = [tensor.detach().contiguous() for tensor in tensors[depth:]]
        return votes_of_pools(stack, pools[1:], c[0].dtype)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        pools, sums = ctx.pools, {}

        def visit(layer: int, delta: Delta) -> None:
            given = pools[layer], ctx.wirings[layer], ctx.c[layer]
            if ctx.candidates[layer] is not None:
                sums[layer] = candidate_sums(delta, *given, ctx.candidates[layer])
            if ctx.watch is not None and len(ctx.watch.inputs[layer]):
                watched = torch.from_numpy(ctx.watch.inputs[layer]).to(ctx.c[layer].device)
                ctx.watch.gradients[layer] = noted(delta, *given, watched)
                ctx.watch.pools[layer] = offered(given[0], ctx.watch.offered(layer, given[0].nodes))

        uses = [uses_of(wiring, pool.nodes) for wiring, pool in zip(ctx.wirings, pools, strict=False)]
        found = stack_backward(ctx.stack, pools, ctx.wirings, uses, ctx.c, gradients[0], visit=visit)
        learned = [layer for layer, nodes in enumerate(ctx.candidates) if nodes is not None]
        to_scores = [score_gradients(own, sums[layer]) for layer, own in zip(learned, ctx.scores, strict=True)]
        return None, None, None, None, None, *found, *to_scores


def learned_stack_triton(
    x: Batch,
    stack: Stack,
    candidates: Sequence[Int[Tensor, "2 _ candidates"] | None],
    scores: Sequence[Float[Tensor, "2 _ candidates"] | None],
    coefficients: Sequence[Float[Tensor, "_ 4"]],
    *,
    gates: Sequence[UInt8[Tensor, " _"]] | None = None,
    watch: Watch | None = None,
    expected: ExpectedLoss | None = None,
) -> Float[Tensor, "batch columns"]:
    """All layers on the device of the coefficients; activations are kept, whatever is expected."""
    check_floats(**{f"coefficients of layer {i}": tensor for i, tensor in enumerate(coefficients)})
    pool = pool_of(x, coefficients[0].device)
    below = (pool.nodes, *stack.widths[:-1])
    read_or_not = [(nodes, size) for nodes, size in zip(candidates, below, strict=True) if nodes is not None]
    check_wirings([*stack.wirings, *(nodes for nodes, _ in read_or_not)], [*below, *(size for _, size in read_or_not)])
    rows = [placed(tensor, owner) for tensor, owner in zip(coefficients, stack.owners, strict=True)]
    kinds = None
    if gates is not None:
        kinds = [at_places(numbers, owner).contiguous() for numbers, owner in zip(gates, stack.owners, strict=True)]
    learned = [tensor for tensor in scores if tensor is not None]
    result = _LearnedStack.apply(pool, stack, candidates, kinds, watch, *rows, *learned)
    assert isinstance(result, Tensor)
    return result
