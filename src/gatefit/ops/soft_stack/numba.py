"""The soft stack compiled: a tile of samples through all layers and back, leaving the cache no more than it must.

    forward    z = (c_0 + c_1 u) + v (c_2 + c_12 u)          u, v: the gate's first and second input
    backward   dc += Σ_tile δ (1, u, v, uv);   ∂L/∂u = δ (c_1 + c_12 v);   ∂L/∂v = δ (c_2 + c_12 u)
    sigmoid    y = 1 / (1 + e^(-z)) in place of z, and δ = y (1 - y) ∂L/∂y, for the variants that never snap

A row holds one node's sixteen samples, a cache line. ``stack_schedule`` says how a layer finds its inputs, and why
gradients can replace one another in place. Where the loss is known beforehand (``expected_loss``), a tile goes back as
soon as its scores are there. Else activations are not kept for the backward pass: computing them again for sixteen
samples, layer by layer in the cache, takes less time than writing those of the whole batch to memory and reading them
back.
"""
# mypy: disable-error-code="no-untyped-def, call-arg, var-annotated"

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import torch
from jaxtyping import Float
from numba import int64, uint32
from torch import Tensor

from gatefit.bits import PackedBatch
from gatefit.ops.batches import Batch, as_packed
from gatefit.ops.cross_entropy.numba import expected_in_tiles, tile_gradient
from gatefit.ops.expected_loss import ExpectedLoss
from gatefit.ops.simd import (
    add_sums,
    exp_of_negative,
    load,
    samples,
    spread,
    store,
    stream,
    times_plus,
    where,
    wide_vectors,
)
from gatefit.ops.simd import kernel as simd
from gatefit.ops.stack_schedule import FROM_BITS, FROM_CYCLES, FROM_ROWS, StackOrder, StackSchedule, stack_schedule
from gatefit.ops.stack_tiles import (
    add_group_sums,
    ahead,
    coefficient_gradients,
    from_tiles,
    inlined,
    kernel,
    put_rows,
    run,
    scheduled_coefficients,
    slices,
    spread_groups,
    subkernel,
    to_tiles,
    trails,
    walked_cycles,
)
from gatefit.ops.stacks import Stack
from gatefit.ops.tensors import check_cpu_float
from gatefit.ops.workspace import workspace

TILE: Final = (0,)
SAMPLES: Final = samples(TILE)
"""A layer of 8,000 gates takes 512 kB at sixteen samples: the two at work stay in the second-level cache."""

FAR: Final = 1 << 24
"""Bytes of activations from which a tile's do not stay in the last cache until they are read again."""


@inlined
def _polynomial(c, k, u, v):
    c_0, c_1 = spread(c[k, 0], TILE), spread(c[k, 1], TILE)
    c_2, c_12 = spread(c[k, 2], TILE), spread(c[k, 3], TILE)
    return (c_0 + c_1 * u) + v * (c_2 + c_12 * u)


@inlined
def _put(z, rows, k, value, far):
    """The gate's row; past the caches if they cannot keep it until it is read."""
    if far:
        stream(z, int64(rows[k]) * SAMPLES, value)
    else:
        ahead(z, rows, k, TILE)
        store(z, int64(rows[k]) * SAMPLES, value)


@subkernel
def _forward_bits(x, shift, first, second, rows, c, z, far):
    """The first layer: u and v are bits of the batch, z takes one of four values."""
    wide_vectors()
    for k in range(uint32(rows.size)):
        u, v = x[uint32(first[k])] >> shift, x[uint32(second[k])] >> shift
        z_00 = c[k, 0]
        z_10, z_01 = z_00 + c[k, 1], z_00 + c[k, 2]
        z_11 = z_10 + (c[k, 2] + c[k, 3])
        low = where(u, spread(z_10, TILE), spread(z_00, TILE))
        high = where(u, spread(z_11, TILE), spread(z_01, TILE))
        _put(z, rows, k, where(v, high, low), far)


@subkernel
def _forward_rows(x, first, second, rows, c, z, far):
    wide_vectors()
    for k in range(uint32(rows.size)):
        u, v = load(x, int64(first[k]) * SAMPLES, TILE), load(x, int64(second[k]) * SAMPLES, TILE)
        _put(z, rows, k, _polynomial(c, k, u, v), far)


@subkernel
def _backward_bits(x, shift, first, second, slots, delta, dc):
    """The first layer: sums over the samples whose bits are set; nothing below wants a gradient."""
    wide_vectors()
    zero = spread(dc.dtype.type(0), TILE)
    for k in range(uint32(slots.size)):
        u, v = x[uint32(first[k])] >> shift, x[uint32(second[k])] >> shift
        ahead(delta, slots, k, TILE)
        d = load(delta, int64(slots[k]) * SAMPLES, TILE)
        add_sums(dc, int64(k) * 4, d, where(u, d, zero), where(v, d, zero), where(u & v, d, zero))


@inlined
def _backward_gate(u, v, c, k, carry, delta, place, dc):
    """One gate of a cycle: completes u's gradient, returns v's so far."""
    c_1, c_2, c_12 = spread(c[k, 1], TILE), spread(c[k, 2], TILE), spread(c[k, 3], TILE)
    d = load(delta, place, TILE)
    d_u, d_v = d * u, d * v
    store(delta, place, (carry + c_1 * d) + c_12 * d_v)
    add_sums(dc, int64(k) * 4, d, d_u, d_v, d_u * v)
    return c_2 * d + c_12 * d_u


@subkernel
def _backward_cycles(x, starts, slots, c, delta, dc):
    wide_vectors()
    zero = spread(dc.dtype.type(0), TILE)
    for cycle in range(uint32(starts.size - 1)):
        begin, end = uint32(starts[cycle]), uint32(starts[cycle + uint32(1)])
        opening = load(x, int64(begin) * SAMPLES, TILE)
        u, carry = opening, zero
        for k in range(begin, end - uint32(1)):
            v = load(x, (int64(k) + 1) * SAMPLES, TILE)
            ahead(delta, slots, k, TILE)
            carry = _backward_gate(u, v, c, k, carry, delta, int64(slots[k]) * SAMPLES, dc)
            u = v
        last = uint32(end - uint32(1))
        carry = _backward_gate(u, opening, c, last, carry, delta, int64(slots[last]) * SAMPLES, dc)
        place = int64(slots[begin]) * SAMPLES
        store(delta, place, load(delta, place, TILE) + carry)


@subkernel
def _backward_rows(x, first, second, slots, c, delta, below, dc):
    """Into ``below``, the gradients of the inputs; an input may be used any number of times."""
    wide_vectors()
    for k in range(uint32(slots.size)):
        c_1, c_2, c_12 = spread(c[k, 1], TILE), spread(c[k, 2], TILE), spread(c[k, 3], TILE)
        to_u, to_v = int64(first[k]) * SAMPLES, int64(second[k]) * SAMPLES
        d, u, v = load(delta, int64(slots[k]) * SAMPLES, TILE), load(x, to_u, TILE), load(x, to_v, TILE)
        d_u, d_v = d * u, d * v
        store(below, to_u, (load(below, to_u, TILE) + c_1 * d) + c_12 * d_v)
        store(below, to_v, (load(below, to_v, TILE) + c_2 * d) + c_12 * d_u)
        add_sums(dc, int64(k) * 4, d, d_u, d_v, d_u * v)


@inlined
def _added(before, c, d, c_12, d_other):
    """A gate's part of an input's gradient, added to what came before."""
    return times_plus(c_12, d_other, times_plus(c, d, before))


@inlined
def _walked_gate(x, first, second, enters, slots, c, k, delta, dc):
    """δ, its products with the input that a trail leaves by and that it enters by, and the three coefficients."""
    one, two = int64(first[k]) * SAMPLES, int64(second[k]) * SAMPLES
    d, u, v = load(delta, int64(slots[k]) * SAMPLES, TILE), load(x, one, TILE), load(x, two, TILE)
    d_u = d * u
    add_sums(dc, int64(k) * 4, d, d_u, d * v, d_u * v)
    by = uint32(enters[k])
    leaves, enter = load(x, one if by else two, TILE), load(x, two if by else one, TILE)
    c_in, c_out = spread(c[k, uint32(1) + by], TILE), spread(c[k, uint32(2) - by], TILE)
    return d, d * leaves, d * enter, c_in, c_out, spread(c[k, 3], TILE)


@subkernel
def _backward_trails(x, starts, closed, enters, turned, first, second, slots, c, delta, dc):
    """As ``_backward_rows`` adds, in place: of two gates at an input, the one with the lower number comes first."""
    wide_vectors()
    zero = spread(dc.dtype.type(0), TILE)
    for trail in range(uint32(starts.size - 1)):
        begin, end = uint32(starts[trail]), uint32(starts[trail + uint32(1)])
        d, d_in, d_out, c_in, c_out, c_12 = _walked_gate(x, first, second, enters, slots, c, begin, delta, dc)
        opening, from_d, from_in, from_c, from_12 = _added(zero, c_in, d, c_12, d_in), d, d_in, c_in, c_12
        for k in range(begin + uint32(1), end):
            last_d, last_out, last_c, last_12 = d, d_out, c_out, c_12
            carry = _added(zero, last_c, last_d, last_12, last_out)
            ahead(delta, slots, k, TILE)
            d, d_in, d_out, c_in, c_out, c_12 = _walked_gate(x, first, second, enters, slots, c, k, delta, dc)
            own = _added(zero, c_in, d, c_12, d_in)
            in_order = _added(carry, c_in, d, c_12, d_in)
            reverse = _added(own, last_c, last_d, last_12, last_out)
            store(delta, int64(slots[k]) * SAMPLES, where(turned[k], reverse, in_order))
        if closed[trail]:
            carry = _added(zero, c_out, d, c_12, d_out)
            in_order = _added(carry, from_c, from_d, from_12, from_in)
            reverse = _added(opening, c_out, d, c_12, d_out)
            store(delta, int64(slots[begin]) * SAMPLES, where(turned[begin], reverse, in_order))


@subkernel
def _backward_ends(x, uses, first, second, slots, c, delta, sums):
    """The gradients of nodes at which trails end, while those of the gates are still there."""
    wide_vectors()
    sums[:] = 0
    for use in range(uses.shape[0]):
        k, by, to = uses[use, 0], uses[use, 1], int64(uses[use, 2]) * SAMPLES
        d = load(delta, int64(slots[k]) * SAMPLES, TILE)
        other = load(x, int64(first[k] if by else second[k]) * SAMPLES, TILE)
        before = load(sums, to, TILE)
        store(sums, to, _added(before, spread(c[k, 1 + by], TILE), d, spread(c[k, 3], TILE), d * other))


@simd
def _sigmoid(z):
    wide_vectors()
    one = z.dtype.type(1)
    for i in range(z.size):
        e = exp_of_negative(-abs(z[i]))
        z[i] = (e if z[i] < 0 else one) / (one + e)


@subkernel
def _through_sigmoid(y, rows, slots, delta):
    """δ becomes y (1 - y) δ."""
    wide_vectors()
    one, minus = spread(y.dtype.type(1), TILE), spread(y.dtype.type(-1), TILE)
    for k in range(uint32(rows.size)):
        place = int64(slots[k]) * SAMPLES
        own = load(y, int64(rows[k]) * SAMPLES, TILE)
        store(delta, place, load(delta, place, TILE) * (own * (one + minus * own)))


@subkernel
def _forward_tile(x, shift, layers, first, second, rows, c, sigmoid, activations, outputs, scores):
    """All layers, the last one's rows into ``outputs``; without the last where there is no room for them.

    The others' rows stay in ``activations``, one layer after another where there is room, else in its halves by turns.
    What layers that vote say is added to ``scores``, unless that is empty.
    """
    last = layers.shape[0] - 1
    keep = activations.size >= layers[last, 2] * SAMPLES
    half = activations.size // 2
    far = activations.size * activations.itemsize > FAR
    below, place = activations[:0], 0
    for layer in range(last + 1 if outputs.size else last):
        kind, gates, start = layers[layer, 0], layers[layer, 1], layers[layer, 2]
        z = activations[place : place + gates * SAMPLES] if layer < last else outputs
        stop, past = start + gates, far and layer < last
        if kind == FROM_BITS:
            _forward_bits(x, shift, first[start:stop], second[start:stop], rows[start:stop], c[start:stop], z, past)
        else:
            _forward_rows(below, first[start:stop], second[start:stop], rows[start:stop], c[start:stop], z, past)
        if sigmoid is not None:
            _sigmoid(z)
        if scores.size and layers[layer, 6]:
            add_group_sums(z, scores, TILE)
        below = z
        place = place + gates * SAMPLES if keep else half - place


@kernel
def _forward(words, layers, first, second, rows, c, sigmoid, activations, outputs, scores, begin, end):
    """Tiles begin to end: ``scores`` (tiles, columns * SAMPLES), the sums over groups of the layers that vote."""
    for tile in range(begin, end):
        x, shift = words[tile * SAMPLES // 64], np.uint64(tile * SAMPLES % 64)
        scores[tile] = 0
        _forward_tile(x, shift, layers, first, second, rows, c, sigmoid, activations, outputs, scores[tile])


@subkernel
def _backward_tile(
    x, shift, layers, first, second, rows, slots, cycles, trails, c, sigmoid,
    activations, outputs, delta, spare, gradient, dc,
):  # fmt: skip
    last = layers.shape[0] - 1
    above, top = outputs, layers[last, 2] * SAMPLES
    here, there = delta, spare
    for layer in range(last, -1, -1):
        kind, start, inputs = layers[layer, 0], layers[layer, 2], layers[layer, 5]
        stop = start + layers[layer, 1]
        to, own, sums = slots[start:stop], c[start:stop], dc[start:stop]
        one, two = first[start:stop], second[start:stop]
        if sigmoid is not None:
            _through_sigmoid(above, rows[start:stop], to, here)
        if kind == FROM_BITS:
            _backward_bits(x, shift, one, two, to, here, sums)
            return
        below = activations[top - inputs * SAMPLES : top]
        above = below
        top -= inputs * SAMPLES
        if kind == FROM_ROWS:
            if spare is not None:
                if layers[layer - 1, 6]:
                    spread_groups(gradient, there[: inputs * SAMPLES], TILE)
                else:
                    there[: inputs * SAMPLES] = 0
                _backward_rows(below, one, two, to, own, here, there, sums)
                here, there = there, here
        elif kind == FROM_CYCLES:
            if cycles is not None:
                _backward_cycles(below, cycles[layers[layer, 3] : layers[layer, 4] + 1], to, own, here, sums)
        elif trails is not None:
            starts, closed, enters, turned, ends, uses, sums_of_ends = trails
            at = ends[layers[layer, 7] : layers[layer, 8]]
            ending = sums_of_ends[: at.size * SAMPLES]
            _backward_ends(below, uses[layers[layer, 9] : layers[layer, 10]], one, two, to, own, here, ending)
            walk = slice(layers[layer, 3], layers[layer, 4] + 1)
            _backward_trails(
                below, starts[walk], closed[walk], enters[start:stop], turned[start:stop], one, two, to, own, here,
                sums,
            )  # fmt: skip
            put_rows(ending, at, here, TILE)


@kernel
def _backward(
    words, layers, first, second, rows, slots, cycles, trails, c, sigmoid,
    activations, outputs, delta, spare, gradient, dc, begin, end,
):  # fmt: skip
    """dc = the sums over tiles begin to end, for the gradients (tiles, columns * SAMPLES) of the scores."""
    dc[:] = 0
    for tile in range(begin, end):
        x, shift = words[tile * SAMPLES // 64], np.uint64(tile * SAMPLES % 64)
        here = gradient[tile]
        _forward_tile(x, shift, layers, first, second, rows, c, sigmoid, activations, outputs, here[:0])
        spread_groups(here, delta[: layers[-1, 1] * SAMPLES], TILE)
        _backward_tile(
            x, shift, layers, first, second, rows, slots, cycles, trails, c, sigmoid,
            activations, outputs, delta, spare, here, dc,
        )  # fmt: skip


@kernel
def _forward_and_back(
    words, layers, first, second, rows, slots, cycles, trails, c, sigmoid,
    activations, outputs, delta, spare, scores, loss, gradient, dc, begin, end,
):  # fmt: skip
    """Scores, their gradients and dc, tile by tile: ``_forward`` and ``_backward`` for a loss that is known."""
    dc[:] = 0
    for tile in range(begin, end):
        x, shift = words[tile * SAMPLES // 64], np.uint64(tile * SAMPLES % 64)
        own, here = scores[tile], gradient[tile]
        own[:] = 0
        _forward_tile(x, shift, layers, first, second, rows, c, sigmoid, activations, outputs, own)
        tile_gradient(own, tile * SAMPLES, loss, here)
        spread_groups(here, delta[: layers[-1, 1] * SAMPLES], TILE)
        _backward_tile(
            x, shift, layers, first, second, rows, slots, cycles, trails, c, sigmoid,
            activations, outputs, delta, spare, here, dc,
        )  # fmt: skip


_PER_WORD: Final = 64 // SAMPLES


class _SoftStack(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        x: PackedBatch,
        stack: Stack,
        schedule: StackSchedule,
        sigmoid: bool,
        expected: ExpectedLoss | None,
        *coefficients: Tensor,
    ) -> Tensor:
        order = schedule.fixed
        c = scheduled_coefficients(stack, order, coefficients)
        tiles, widest = _PER_WORD * x.words.shape[0], max(order.widths)
        scores = np.empty((tiles, stack.columns * SAMPLES), dtype=c.dtype)
        parts = slices(x.words.shape[0])
        known = c.dtype == np.float32 and any(ctx.needs_input_grad)
        known = known and expected is not None and expected.is_of(x.samples, stack.columns)
        ctx.x, ctx.stack, ctx.schedule, ctx.c, ctx.sigmoid = x, stack, schedule, c, sigmoid or None
        ctx.expected = expected if known else None
        ctx.gradient = np.empty_like(scores) if known else None
        ctx.sums = workspace.array((len(parts), order.gates, 4), c.dtype) if known else None

        def task(place: int) -> None:
            begin, end = (_PER_WORD * word for word in parts[place])
            outputs = workspace.array((order.widths[-1] * SAMPLES,), c.dtype)
            if ctx.expected is not None:
                activations, delta, spare = _room_to_go_back(order, c.dtype)
                _forward_and_back(
                    x.words, order.layers, schedule.first, schedule.second, order.rows, order.slots,
                    walked_cycles(order), trails(order, SAMPLES, c.dtype), c, ctx.sigmoid, activations, outputs, delta,
                    spare, scores, expected_in_tiles(ctx.expected, SAMPLES), ctx.gradient, ctx.sums[place], begin, end,
                )  # fmt: skip
                return
            activations = workspace.array((2 * widest * SAMPLES,), c.dtype)
            _forward(
                x.words, order.layers, schedule.first, schedule.second, order.rows, c, ctx.sigmoid,
                activations, outputs, scores, begin, end,
            )  # fmt: skip

        run(task, len(parts), order.gates * x.samples)
        ctx.shapes = [tensor.shape for tensor in coefficients]
        return from_tiles(scores, x.samples, SAMPLES)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        x, order = ctx.x, ctx.schedule.fixed
        gradient = to_tiles(gradients[0], _PER_WORD * x.words.shape[0], SAMPLES)
        if ctx.expected is None or not ctx.expected.holds(ctx.gradient, gradient):
            ctx.sums = _sums_of(ctx, gradient)
        sums, ctx.sums = ctx.sums, None
        return None, None, None, None, None, *coefficient_gradients(ctx.stack, order, sums, ctx.shapes)


def _room_to_go_back(order: StackOrder, dtype: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """For a tile's activations of all layers but the last, its gradients, and those of the layer below, if need be."""
    activations = workspace.array(((order.gates - order.widths[-1]) * SAMPLES,), dtype)
    delta = workspace.array((max(order.widths) * SAMPLES,), dtype)
    return activations, delta, workspace.array(delta.shape, dtype) if FROM_ROWS in order.kinds else None


def _sums_of(ctx: Any, gradient: np.ndarray) -> np.ndarray:
    """The slices' sums for the coefficients, for these gradients of the scores, whatever was expected."""
    x, schedule, order, c = ctx.x, ctx.schedule, ctx.schedule.fixed, ctx.c
    parts = slices(x.words.shape[0])
    sums = workspace.array((len(parts), order.gates, 4), c.dtype)

    def task(place: int) -> None:
        begin, end = parts[place]
        activations, delta, spare = _room_to_go_back(order, c.dtype)
        # Only a sigmoid's gradient needs its own output.
        outputs = workspace.array((order.widths[-1] * SAMPLES if ctx.sigmoid else 0,), c.dtype)
        _backward(
            x.words, order.layers, schedule.first, schedule.second, order.rows, order.slots, walked_cycles(order),
            trails(order, SAMPLES, c.dtype), c, ctx.sigmoid, activations, outputs, delta, spare, gradient,
            sums[place], _PER_WORD * begin, _PER_WORD * end,
        )  # fmt: skip

    run(task, len(parts), order.gates * x.samples)
    return sums


def soft_stack_numba(
    x: Batch,
    stack: Stack,
    coefficients: Sequence[Float[Tensor, "_ 4"]],
    *,
    sigmoid: bool = False,
    expected: ExpectedLoss | None = None,
) -> Float[Tensor, "batch columns"]:
    """All layers by compiled kernels, sixteen samples at a time; no activation of the batch is ever stored."""
    check_cpu_float(**{f"coefficients of layer {i}": tensor for i, tensor in enumerate(coefficients)})
    packed = as_packed(x)
    result = _SoftStack.apply(packed, stack, stack_schedule(stack, packed.bits), sigmoid, expected, *coefficients)
    assert isinstance(result, Tensor)
    return result
