"""The soft stack compiled: a tile of samples through all layers and back, leaving the cache no more than it must.

    forward    z = (c_0 + c_1 u) + v (c_2 + c_12 u)          u, v: the gate's first and second input
    backward   dc += Σ_tile δ (1, u, v, uv);   ∂L/∂u = δ (c_1 + c_12 v);   ∂L/∂v = δ (c_2 + c_12 u)
    sigmoid    y = 1 / (1 + e^(-z)) in place of z, and δ = y (1 - y) ∂L/∂y, for the variants that never snap

A row holds one node's sixteen samples, a cache line; of 16-bit numbers (``Stack.half``) it holds thirty-two.
``stack_schedule`` says how a layer finds its inputs, and why gradients can replace one another in place. Where the loss
is known beforehand (``expected_loss``), a tile goes back as soon as its scores are there. Else activations are not kept
for the backward pass: computing them again for a tile, layer by layer in the cache, takes less time than writing those
of the whole batch to memory and reading them back.
"""
# mypy: disable-error-code="no-untyped-def, call-arg, var-annotated"

from collections.abc import Sequence
from dataclasses import dataclass
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
    times,
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
    scheduled_coefficients,
    slices,
    spread_groups,
    subkernel,
    to_tiles,
    trails,
    walked_cycles,
)
from gatefit.ops.stacks import Back, Stack, there_and_back, whole_or_parts
from gatefit.ops.tensors import check_cpu_float
from gatefit.ops.threads import parallel_for
from gatefit.ops.workspace import workspace

FAR: Final = 1 << 24
"""Bytes of activations from which a tile's do not stay in the last cache until they are read again."""


@inlined
def _polynomial(c, k, u, v, tile):
    c_0, c_1 = spread(c[k, 0], tile), spread(c[k, 1], tile)
    c_2, c_12 = spread(c[k, 2], tile), spread(c[k, 3], tile)
    return (c_0 + c_1 * u) + v * (c_2 + c_12 * u)


@inlined
def _put(z, rows, k, value, far, tile):
    """The gate's row; past the caches if they cannot keep it until it is read."""
    n = samples(tile)
    if far:
        stream(z, int64(rows[k]) * n, value)
    else:
        ahead(z, rows, k, tile)
        store(z, int64(rows[k]) * n, value)


@subkernel
def _forward_bits(x, shift, first, second, rows, c, z, far, tile):
    """The first layer: u and v are bits of the batch, z takes one of four values."""
    wide_vectors()
    for k in range(uint32(rows.size)):
        u, v = x[uint32(first[k])] >> shift, x[uint32(second[k])] >> shift
        z_00 = c[k, 0]
        z_10, z_01 = z_00 + c[k, 1], z_00 + c[k, 2]
        z_11 = z_10 + (c[k, 2] + c[k, 3])
        low = where(u, spread(z_10, tile), spread(z_00, tile))
        high = where(u, spread(z_11, tile), spread(z_01, tile))
        _put(z, rows, k, where(v, high, low), far, tile)


@subkernel
def _forward_rows(x, first, second, rows, c, z, far, tile):
    wide_vectors()
    n = samples(tile)
    for k in range(uint32(rows.size)):
        u, v = load(x, int64(first[k]) * n, tile), load(x, int64(second[k]) * n, tile)
        _put(z, rows, k, _polynomial(c, k, u, v, tile), far, tile)


@subkernel
def _backward_bits(x, shift, first, second, slots, delta, dc, tile):
    """The first layer: sums over the samples whose bits are set; nothing below wants a gradient."""
    wide_vectors()
    n = samples(tile)
    zero = spread(dc.dtype.type(0), tile)
    for k in range(uint32(slots.size)):
        u, v = x[uint32(first[k])] >> shift, x[uint32(second[k])] >> shift
        ahead(delta, slots, k, tile)
        d = load(delta, int64(slots[k]) * n, tile)
        add_sums(dc, int64(k) * 4, d, where(u, d, zero), where(v, d, zero), where(u & v, d, zero))


@inlined
def _backward_gate(u, v, c, k, carry, delta, place, dc, tile):
    """One gate of a cycle: completes u's gradient, returns v's so far."""
    c_1, c_2, c_12 = spread(c[k, 1], tile), spread(c[k, 2], tile), spread(c[k, 3], tile)
    d = load(delta, place, tile)
    d_u, d_v = d * u, d * v
    store(delta, place, times_plus(c_12, d_v, times_plus(c_1, d, carry)))
    add_sums(dc, int64(k) * 4, d, d_u, d_v, d_u * v)
    return times_plus(c_2, d, times(c_12, d_u))


@subkernel
def _backward_cycles(x, starts, slots, c, delta, dc, tile):
    wide_vectors()
    n = samples(tile)
    zero = spread(dc.dtype.type(0), tile)
    for cycle in range(uint32(starts.size - 1)):
        begin, end = uint32(starts[cycle]), uint32(starts[cycle + uint32(1)])
        opening = load(x, int64(begin) * n, tile)
        u, carry = opening, zero
        for k in range(begin, end - uint32(1)):
            v = load(x, (int64(k) + 1) * n, tile)
            ahead(delta, slots, k, tile)
            carry = _backward_gate(u, v, c, k, carry, delta, int64(slots[k]) * n, dc, tile)
            u = v
        last = uint32(end - uint32(1))
        carry = _backward_gate(u, opening, c, last, carry, delta, int64(slots[last]) * n, dc, tile)
        place = int64(slots[begin]) * n
        store(delta, place, load(delta, place, tile) + carry)


@subkernel
def _backward_rows(x, first, second, slots, c, delta, below, dc, tile):
    """Into ``below``, the gradients of the inputs; an input may be used any number of times."""
    wide_vectors()
    n = samples(tile)
    for k in range(uint32(slots.size)):
        c_1, c_2, c_12 = spread(c[k, 1], tile), spread(c[k, 2], tile), spread(c[k, 3], tile)
        to_u, to_v = int64(first[k]) * n, int64(second[k]) * n
        d, u, v = load(delta, int64(slots[k]) * n, tile), load(x, to_u, tile), load(x, to_v, tile)
        d_u, d_v = d * u, d * v
        store(below, to_u, (load(below, to_u, tile) + c_1 * d) + c_12 * d_v)
        store(below, to_v, (load(below, to_v, tile) + c_2 * d) + c_12 * d_u)
        add_sums(dc, int64(k) * 4, d, d_u, d_v, d_u * v)


@inlined
def _added(before, c, d, c_12, d_other):
    """A gate's part of an input's gradient, added to what came before."""
    return times_plus(c_12, d_other, times_plus(c, d, before))


@inlined
def _walked_gate(x, first, second, enters, slots, c, k, delta, dc, tile):
    """δ, its products with the input that a trail leaves by and that it enters by, and the three coefficients."""
    n = samples(tile)
    one, two = int64(first[k]) * n, int64(second[k]) * n
    d, u, v = load(delta, int64(slots[k]) * n, tile), load(x, one, tile), load(x, two, tile)
    d_u = d * u
    add_sums(dc, int64(k) * 4, d, d_u, d * v, d_u * v)
    by = uint32(enters[k])
    leaves, enter = load(x, one if by else two, tile), load(x, two if by else one, tile)
    c_in, c_out = spread(c[k, uint32(1) + by], tile), spread(c[k, uint32(2) - by], tile)
    return d, d * leaves, d * enter, c_in, c_out, spread(c[k, 3], tile)


@subkernel
def _backward_trails(x, starts, closed, enters, turned, first, second, slots, c, delta, dc, tile):
    """As ``_backward_rows`` adds, in place: of two gates at an input, the one with the lower number comes first."""
    wide_vectors()
    n = samples(tile)
    zero = spread(dc.dtype.type(0), tile)
    for trail in range(uint32(starts.size - 1)):
        begin, end = uint32(starts[trail]), uint32(starts[trail + uint32(1)])
        d, d_in, d_out, c_in, c_out, c_12 = _walked_gate(x, first, second, enters, slots, c, begin, delta, dc, tile)
        opening, from_d, from_in, from_c, from_12 = _added(zero, c_in, d, c_12, d_in), d, d_in, c_in, c_12
        for k in range(begin + uint32(1), end):
            last_d, last_out, last_c, last_12 = d, d_out, c_out, c_12
            carry = _added(zero, last_c, last_d, last_12, last_out)
            ahead(delta, slots, k, tile)
            d, d_in, d_out, c_in, c_out, c_12 = _walked_gate(x, first, second, enters, slots, c, k, delta, dc, tile)
            own = _added(zero, c_in, d, c_12, d_in)
            in_order = _added(carry, c_in, d, c_12, d_in)
            reverse = _added(own, last_c, last_d, last_12, last_out)
            store(delta, int64(slots[k]) * n, where(turned[k], reverse, in_order))
        if closed[trail]:
            carry = _added(zero, c_out, d, c_12, d_out)
            in_order = _added(carry, from_c, from_d, from_12, from_in)
            reverse = _added(opening, c_out, d, c_12, d_out)
            store(delta, int64(slots[begin]) * n, where(turned[begin], reverse, in_order))


@subkernel
def _backward_ends(x, uses, first, second, slots, c, delta, sums, tile):
    """The gradients of nodes at which trails end, while those of the gates are still there."""
    wide_vectors()
    n = samples(tile)
    sums[:] = 0
    for use in range(uses.shape[0]):
        k, by, to = uses[use, 0], uses[use, 1], int64(uses[use, 2]) * n
        d = load(delta, int64(slots[k]) * n, tile)
        other = load(x, int64(first[k] if by else second[k]) * n, tile)
        before = load(sums, to, tile)
        store(sums, to, _added(before, spread(c[k, 1 + by], tile), d, spread(c[k, 3], tile), d * other))


@simd
def _sigmoid(z):
    wide_vectors()
    one = z.dtype.type(1)
    for i in range(z.size):
        e = exp_of_negative(-abs(z[i]))
        z[i] = (e if z[i] < 0 else one) / (one + e)


@subkernel
def _through_sigmoid(y, rows, slots, delta, tile):
    """δ becomes y (1 - y) δ."""
    wide_vectors()
    n = samples(tile)
    one, minus = spread(y.dtype.type(1), tile), spread(y.dtype.type(-1), tile)
    for k in range(uint32(rows.size)):
        place = int64(slots[k]) * n
        own = load(y, int64(rows[k]) * n, tile)
        store(delta, place, load(delta, place, tile) * (own * (one + minus * own)))


@subkernel
def _forward_tile(x, shift, layers, first, second, rows, c, sigmoid, activations, outputs, scores, tile):
    """All layers, the last one's rows into ``outputs``; without the last where there is no room for them.

    The others' rows stay in ``activations``, one layer after another where there is room, else in its halves by turns.
    What layers that vote say is added to ``scores``, unless that is empty.
    """
    n = samples(tile)
    last = layers.shape[0] - 1
    keep = activations.size >= layers[last, 2] * n
    half = activations.size // 2
    far = activations.size * activations.itemsize > FAR
    below, place = activations[:0], 0
    for layer in range(last + 1 if outputs.size else last):
        kind, gates, start = layers[layer, 0], layers[layer, 1], layers[layer, 2]
        z = activations[place : place + gates * n] if layer < last else outputs
        stop, past = start + gates, far and layer < last
        if kind == FROM_BITS:
            _forward_bits(
                x, shift, first[start:stop], second[start:stop], rows[start:stop], c[start:stop], z, past, tile
            )
        else:
            _forward_rows(below, first[start:stop], second[start:stop], rows[start:stop], c[start:stop], z, past, tile)
        if sigmoid is not None:
            _sigmoid(z)
        if scores.size and layers[layer, 6]:
            add_group_sums(z, scores, tile)
        below = z
        place = place + gates * n if keep else half - place


@kernel
def _forward(words, layers, first, second, rows, c, sigmoid, activations, outputs, scores, begin, end, tile):
    """Tiles begin to end: ``scores`` (tiles, columns * n), the sums over groups of the layers that vote."""
    n = samples(tile)
    for place in range(begin, end):
        x, shift = words[place * n // 64], np.uint64(place * n % 64)
        scores[place] = 0
        _forward_tile(x, shift, layers, first, second, rows, c, sigmoid, activations, outputs, scores[place], tile)


@subkernel
def _backward_tile(
    x, shift, layers, first, second, rows, slots, cycles, trails, c, sigmoid,
    activations, outputs, delta, spare, gradient, dc, tile,
):  # fmt: skip
    n = samples(tile)
    last = layers.shape[0] - 1
    above, top = outputs, layers[last, 2] * n
    here, there = delta, spare
    for layer in range(last, -1, -1):
        kind, start, inputs = layers[layer, 0], layers[layer, 2], layers[layer, 5]
        stop = start + layers[layer, 1]
        to, own, sums = slots[start:stop], c[start:stop], dc[start:stop]
        one, two = first[start:stop], second[start:stop]
        if sigmoid is not None:
            _through_sigmoid(above, rows[start:stop], to, here, tile)
        if kind == FROM_BITS:
            _backward_bits(x, shift, one, two, to, here, sums, tile)
            return
        below = activations[top - inputs * n : top]
        above = below
        top -= inputs * n
        if kind == FROM_ROWS:
            if spare is not None:
                if layers[layer - 1, 6]:
                    spread_groups(gradient, there[: inputs * n], tile)
                else:
                    there[: inputs * n] = 0
                _backward_rows(below, one, two, to, own, here, there, sums, tile)
                here, there = there, here
        elif kind == FROM_CYCLES:
            if cycles is not None:
                _backward_cycles(below, cycles[layers[layer, 3] : layers[layer, 4] + 1], to, own, here, sums, tile)
        elif trails is not None:
            starts, closed, enters, turned, ends, uses, sums_of_ends = trails
            at = ends[layers[layer, 7] : layers[layer, 8]]
            ending = sums_of_ends[: at.size * n]
            _backward_ends(below, uses[layers[layer, 9] : layers[layer, 10]], one, two, to, own, here, ending, tile)
            walk = slice(layers[layer, 3], layers[layer, 4] + 1)
            _backward_trails(
                below, starts[walk], closed[walk], enters[start:stop], turned[start:stop], one, two, to, own, here,
                sums, tile,
            )  # fmt: skip
            put_rows(ending, at, here, tile)


@kernel
def _backward(
    words, layers, first, second, rows, slots, cycles, trails, c, sigmoid,
    activations, outputs, delta, spare, gradient, dc, begin, end, tile,
):  # fmt: skip
    """dc = the sums over tiles begin to end, for the gradients (tiles, columns * n) of the scores."""
    n = samples(tile)
    dc[:] = 0
    for place in range(begin, end):
        x, shift = words[place * n // 64], np.uint64(place * n % 64)
        here = gradient[place]
        _forward_tile(x, shift, layers, first, second, rows, c, sigmoid, activations, outputs, here[:0], tile)
        spread_groups(here, delta[: layers[-1, 1] * n], tile)
        _backward_tile(
            x, shift, layers, first, second, rows, slots, cycles, trails, c, sigmoid,
            activations, outputs, delta, spare, here, dc, tile,
        )  # fmt: skip


@kernel
def _forward_and_back(
    words, layers, first, second, rows, slots, cycles, trails, c, sigmoid,
    activations, outputs, delta, spare, scores, loss, gradient, dc, begin, end, tile,
):  # fmt: skip
    """Scores, their gradients and dc, tile by tile: ``_forward`` and ``_backward`` for a loss that is known."""
    n = samples(tile)
    dc[:] = 0
    for place in range(begin, end):
        x, shift = words[place * n // 64], np.uint64(place * n % 64)
        own, here = scores[place], gradient[place]
        own[:] = 0
        _forward_tile(x, shift, layers, first, second, rows, c, sigmoid, activations, outputs, own, tile)
        tile_gradient(own, place * n, loss, here)
        spread_groups(here, delta[: layers[-1, 1] * n], tile)
        _backward_tile(
            x, shift, layers, first, second, rows, slots, cycles, trails, c, sigmoid,
            activations, outputs, delta, spare, here, dc, tile,
        )  # fmt: skip


@dataclass(frozen=True)
class _Tiles:
    """How many samples go through a stack at a time, and what their numbers are kept as."""

    tile: tuple[int, ...]
    activations: Any
    gradients: Any

    @classmethod
    def of(cls, stack: Stack, dtype: Any) -> "_Tiles":
        """A row is a cache line: a layer of 8,000 gates takes 512 kB, and the two at work stay in the second cache."""
        return cls((0, 0), np.uint16, np.int16) if stack.half else cls((0,), dtype, dtype)

    @property
    def samples(self) -> int:
        """Samples a tile."""
        return samples(self.tile)

    @property
    def per_word(self) -> int:
        """Tiles in a word's 64 samples."""
        return 64 // self.samples

    def rows(self, count: int) -> np.ndarray:
        """Room for the activations of so many gates."""
        return workspace.array((count * self.samples,), self.activations)

    def to_go_back(self, order: StackOrder) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """For the activations of all layers but the last, for gradients, and for those of a layer below if need be."""
        delta = workspace.array((max(order.widths) * self.samples,), self.gradients)
        spare = workspace.array(delta.shape, self.gradients) if FROM_ROWS in order.kinds else None
        return self.rows(order.gates - order.widths[-1]), delta, spare


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
        tiles = _Tiles.of(stack, c.dtype)
        scores = np.empty((tiles.per_word * x.words.shape[0], stack.columns * tiles.samples), dtype=c.dtype)
        parts = slices(x.words.shape[0])
        known = c.dtype == np.float32 and any(ctx.needs_input_grad)
        known = known and expected is not None and expected.is_of(x.samples, stack.columns)
        ctx.x, ctx.stack, ctx.schedule, ctx.c, ctx.sigmoid = x, stack, schedule, c, sigmoid or None
        ctx.expected = expected if known else None
        ctx.gradient = np.empty_like(scores) if known else None
        ctx.sums = workspace.array((len(parts), order.gates, 4), c.dtype) if known else None

        def task(place: int) -> None:
            begin, end = (tiles.per_word * word for word in parts[place])
            outputs = tiles.rows(order.widths[-1])
            if ctx.expected is not None:
                activations, delta, spare = tiles.to_go_back(order)
                _forward_and_back(
                    x.words, order.layers, schedule.first, schedule.second, order.rows, order.slots,
                    walked_cycles(order), trails(order, tiles.samples, c.dtype), c, ctx.sigmoid, activations, outputs,
                    delta, spare, scores, expected_in_tiles(ctx.expected, tiles.samples), ctx.gradient,
                    ctx.sums[place], begin, end, tiles.tile,
                )  # fmt: skip
                return
            _forward(
                x.words, order.layers, schedule.first, schedule.second, order.rows, c, ctx.sigmoid,
                tiles.rows(2 * max(order.widths)), outputs, scores, begin, end, tiles.tile,
            )  # fmt: skip

        parallel_for(task, len(parts), nanoseconds=order.gates * x.samples / 2)
        ctx.shapes = [tensor.shape for tensor in coefficients]
        return from_tiles(scores, x.samples, tiles.samples)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        tiles = _Tiles.of(ctx.stack, ctx.c.dtype)
        gradient = to_tiles(gradients[0], tiles.per_word * ctx.x.words.shape[0], tiles.samples)
        if ctx.sums is None or not ctx.expected.holds(ctx.gradient, gradient):
            ctx.sums = _sums_of(ctx, tiles, gradient)
        sums, ctx.sums = ctx.sums, None
        found = coefficient_gradients(ctx.stack, ctx.schedule.fixed, sums, ctx.shapes)
        return None, None, None, None, None, *found


def _sums_of(ctx: Any, tiles: _Tiles, gradient: np.ndarray) -> np.ndarray:
    """The slices' sums for the coefficients, for these gradients of the scores, whatever was expected."""
    x, schedule, order, c = ctx.x, ctx.schedule, ctx.schedule.fixed, ctx.c
    parts = slices(x.words.shape[0])
    sums = workspace.array((len(parts), order.gates, 4), c.dtype)

    def task(place: int) -> None:
        begin, end = (tiles.per_word * word for word in parts[place])
        activations, delta, spare = tiles.to_go_back(order)
        # Only a sigmoid's gradient needs its own output.
        outputs = tiles.rows(order.widths[-1] if ctx.sigmoid else 0)
        _backward(
            x.words, order.layers, schedule.first, schedule.second, order.rows, order.slots, walked_cycles(order),
            trails(order, tiles.samples, c.dtype), c, ctx.sigmoid, activations, outputs, delta, spare, gradient,
            sums[place], begin, end, tiles.tile,
        )  # fmt: skip

    parallel_for(task, len(parts), nanoseconds=order.gates * x.samples / 2)
    return sums


def soft_stack_numba(
    x: Batch,
    stack: Stack,
    coefficients: Sequence[Float[Tensor, "_ 4"]],
    *,
    sigmoid: bool = False,
    expected: ExpectedLoss | None = None,
    back: Back | None = None,
) -> Float[Tensor, "batch columns"]:
    """All layers by compiled kernels, sixteen samples at a time; no activation of the batch is ever stored."""
    tensors = whole_or_parts(stack, coefficients)
    check_cpu_float(**{f"coefficients of layer {i}": tensor for i, tensor in enumerate(tensors)})
    assert not (sigmoid and stack.half)
    packed = as_packed(x)
    arguments = packed, stack, stack_schedule(stack, packed.bits), sigmoid, expected
    return there_and_back(_SoftStack, arguments, tensors, back)
