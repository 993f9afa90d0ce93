"""The Boolean stack compiled: forward on 64 samples a word, backward from the words' bits.

    forward    z = m_0 ^ (u & (m_1 ^ (m_12 & v))) ^ (m_2 & v)       a gate over GF(2), masks by its kind
    backward   dc += Σ_tile δ (1, u, v, uv);   ∂L/∂u = δ (c_1 + c_12 v);   ∂L/∂v = δ (c_2 + c_12 u)

An activation costs one bit. In the backward pass bits select lanes, where a soft network would multiply; gradients walk
the cycles and trails of ``stack_schedule`` and replace one another in place. The walks are those of ``soft_stack``,
with bits where that has products: one loop for both would be compiled for both all the same.
"""
# mypy: disable-error-code="no-untyped-def, call-arg, var-annotated"

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import torch
from jaxtyping import Float, Int64, UInt8
from numba import int64, uint32
from torch import Tensor

from gatefit.bits import PackedBatch
from gatefit.gates import SWAPPED, TRUTH_TABLES
from gatefit.ops.batches import Batch, as_packed
from gatefit.ops.simd import add_sums, load, samples, spread, store, times, times_plus, where, wide_vectors
from gatefit.ops.stack_schedule import FROM_BITS, FROM_CYCLES, FROM_ROWS, StackOrder, StackSchedule, stack_schedule
from gatefit.ops.stack_tiles import (
    ahead,
    coefficient_gradients,
    from_tiles,
    inlined,
    kernel,
    pieces,
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
from gatefit.ops.workspace import NUMPY_TYPES, workspace

TILE: Final = (0, 0, 0, 0)
SAMPLES: Final = samples(TILE)
"""Sixty-four samples, one word's."""

PART: Final = (0, 0)
PART_SAMPLES: Final = samples(PART)
"""The backward pass takes a word's samples in parts, so that the gradients of 8,000 gates stay in a cache of 2 MB."""

_corners = TRUTH_TABLES.astype(np.uint64)
_ONES: Final = np.uint64(0xFFFFFFFFFFFFFFFF)
MASKS: Final = _ONES * np.stack(
    [
        _corners[:, 0],
        _corners[:, 0] ^ _corners[:, 2],
        _corners[:, 0] ^ _corners[:, 1],
        np.bitwise_xor.reduce(_corners, axis=1),
    ],
    axis=1,
)
"""m_0, m_1, m_2, m_12 of each gate: its algebraic normal form, first input a."""


@kernel
def _to_schedule(gates, rows, swapped, kinds):
    """Gate numbers of one layer into the order of computation, with first and second input for a and b."""
    for k in range(rows.size):
        gate = gates[rows[k]]
        kinds[k] = SWAPPED[gate] if swapped[k] else gate


@subkernel
def _forward_layer(x, y, first, second, rows, kinds, z, w):
    """z of the word x and w of the word y: finding a gate's inputs and masks costs more than using them twice."""
    for k in range(uint32(rows.size)):
        one, two, kind, row = uint32(first[k]), uint32(second[k]), uint32(kinds[k]), uint32(rows[k])
        m_0, m_1 = MASKS[kind, uint32(0)], MASKS[kind, uint32(1)]
        m_2, m_12 = MASKS[kind, uint32(2)], MASKS[kind, uint32(3)]
        z[row] = m_0 ^ (x[one] & (m_1 ^ (m_12 & x[two]))) ^ (m_2 & x[two])
        w[row] = m_0 ^ (y[one] & (m_1 ^ (m_12 & y[two]))) ^ (m_2 & y[two])


@subkernel
def add_group_counts(words, scores):
    """How many of each group's bits are set is added to its scores; exact below 2^24."""
    wide_vectors()
    one = spread(scores.dtype.type(1), TILE)
    size = words.size * 64 // scores.size
    for group in range(scores.size // 64):
        total = load(scores, group * 64, TILE)
        for row in range(group * size, (group + 1) * size):
            total = where(words[row], total + one, total)
        store(scores, group * 64, total)


@kernel
def _forward(words, layers, first, second, rows, kinds, bits, scores, begin, end):
    """Words begin to end, two at a time: ``bits`` (words, gates) keep every layer's output.

    Where there are but two rows of them, they are used again and again. ``scores`` (words, columns * 64) are the sums
    over groups of the layers that vote.
    """
    keep = bits.shape[0] >= scores.shape[0]
    for word in range(begin, end, 2):
        other = min(word + 1, end - 1)
        x, y = words[word], words[other]
        scores[word : other + 1] = 0
        to_z, to_w = bits[word if keep else 0], bits[other if keep else 1]
        for layer in range(layers.shape[0]):
            start = layers[layer, 2]
            stop = start + layers[layer, 1]
            z, w = to_z[start:stop], to_w[start:stop]
            _forward_layer(x, y, first[start:stop], second[start:stop], rows[start:stop], kinds[start:stop], z, w)
            x, y = z, w
            if layers[layer, 6]:
                add_group_counts(x, scores[word])
                if other > word:
                    add_group_counts(y, scores[other])


@inlined
def _add_sums(dc, k, d, u, v, zero):
    add_sums(dc, int64(k) * 4, d, where(u, d, zero), where(v, d, zero), where(u & v, d, zero))


@subkernel
def _backward_bits(x, shift, first, second, slots, delta, dc):
    """The first layer: nothing below wants a gradient."""
    wide_vectors()
    zero = spread(dc.dtype.type(0), PART)
    for k in range(uint32(slots.size)):
        u, v = x[uint32(first[k])] >> shift, x[uint32(second[k])] >> shift
        ahead(delta, slots, k, PART)
        _add_sums(dc, k, load(delta, int64(slots[k]) * PART_SAMPLES, PART), u, v, zero)


@inlined
def _backward_gate(u, v, c, k, carry, delta, place, dc, zero):
    """One gate of a cycle: completes u's gradient, returns v's so far."""
    c_1, c_2, c_12 = spread(c[k, 1], PART), spread(c[k, 2], PART), spread(c[k, 3], PART)
    d = load(delta, place, PART)
    to_u, to_v = carry + c_1 * d, c_2 * d
    store(delta, place, where(v, to_u + c_12 * d, to_u))
    _add_sums(dc, k, d, u, v, zero)
    return where(u, to_v + c_12 * d, to_v)


@subkernel
def _backward_cycles(x, shift, starts, slots, c, delta, dc):
    wide_vectors()
    zero = spread(dc.dtype.type(0), PART)
    for cycle in range(uint32(starts.size - 1)):
        begin, end = uint32(starts[cycle]), uint32(starts[cycle + uint32(1)])
        opening = x[begin] >> shift
        u, carry = opening, zero
        for k in range(begin, end - uint32(1)):
            v = x[uint32(k + uint32(1))] >> shift
            ahead(delta, slots, k, PART)
            carry = _backward_gate(u, v, c, k, carry, delta, int64(slots[k]) * PART_SAMPLES, dc, zero)
            u = v
        last = uint32(end - uint32(1))
        carry = _backward_gate(u, opening, c, last, carry, delta, int64(slots[last]) * PART_SAMPLES, dc, zero)
        place = int64(slots[begin]) * PART_SAMPLES
        store(delta, place, load(delta, place, PART) + carry)


@subkernel
def _backward_rows(x, shift, first, second, slots, c, delta, below, dc):
    """Into ``below``, the gradients of the inputs; an input may be used any number of times."""
    wide_vectors()
    zero = spread(dc.dtype.type(0), PART)
    for k in range(uint32(slots.size)):
        u, v = x[uint32(first[k])] >> shift, x[uint32(second[k])] >> shift
        c_1, c_2, c_12 = spread(c[k, 1], PART), spread(c[k, 2], PART), spread(c[k, 3], PART)
        to_u, to_v = int64(first[k]) * PART_SAMPLES, int64(second[k]) * PART_SAMPLES
        d = load(delta, int64(slots[k]) * PART_SAMPLES, PART)
        before = load(below, to_u, PART) + c_1 * d
        store(below, to_u, where(v, before + c_12 * d, before))
        before = load(below, to_v, PART) + c_2 * d
        store(below, to_v, where(u, before + c_12 * d, before))
        _add_sums(dc, k, d, u, v, zero)


@inlined
def _added(before, c, d, c_12, other):
    """A gate's part of an input's gradient, added to what came before."""
    before = times_plus(spread(c, PART), d, before)
    return where(other, before + times(spread(c_12, PART), d), before)


@inlined
def _of_two(zero, turned, c, d, c_12, other, next_c, next_d, next_12, next_other):
    """An input's gradient from the two gates that read it; ``turned``: the second one's part comes first."""
    before = _added(
        zero, next_c if turned else c, where(turned, next_d, d), next_12 if turned else c_12,
        next_other if turned else other,
    )  # fmt: skip
    return _added(
        before, c if turned else next_c, where(turned, d, next_d), c_12 if turned else next_12,
        other if turned else next_other,
    )  # fmt: skip


@inlined
def _walked_gate(x, shift, first, second, enters, slots, c, k, delta, dc, zero):
    """δ, the bits of the input that a trail leaves by and of that it enters by, and the three coefficients."""
    u, v = x[uint32(first[k])] >> shift, x[uint32(second[k])] >> shift
    d = load(delta, int64(slots[k]) * PART_SAMPLES, PART)
    _add_sums(dc, k, d, u, v, zero)
    by = uint32(enters[k])
    return d, u if by else v, v if by else u, c[k, uint32(1) + by], c[k, uint32(2) - by], c[k, 3]


@subkernel
def _backward_trails(x, shift, starts, closed, enters, turned, first, second, slots, c, delta, dc):
    """As ``_backward_rows`` adds, in place: of two gates at an input, the one with the lower number comes first."""
    wide_vectors()
    zero = spread(dc.dtype.type(0), PART)
    for trail in range(uint32(starts.size - 1)):
        begin, end = uint32(starts[trail]), uint32(starts[trail + uint32(1)])
        d, out, into, c_in, c_out, c_12 = _walked_gate(
            x, shift, first, second, enters, slots, c, begin, delta, dc, zero
        )
        from_d, from_out, from_c, from_12 = d, out, c_in, c_12
        for k in range(begin + uint32(1), end):
            last_d, last_into, last_c, last_12 = d, into, c_out, c_12
            ahead(delta, slots, k, PART)
            d, out, into, c_in, c_out, c_12 = _walked_gate(
                x, shift, first, second, enters, slots, c, k, delta, dc, zero
            )
            both = _of_two(zero, turned[k], last_c, last_d, last_12, last_into, c_in, d, c_12, out)
            store(delta, int64(slots[k]) * PART_SAMPLES, both)
        if closed[trail]:
            both = _of_two(zero, turned[begin], c_out, d, c_12, into, from_c, from_d, from_12, from_out)
            store(delta, int64(slots[begin]) * PART_SAMPLES, both)


@subkernel
def _backward_ends(x, shift, uses, first, second, slots, c, delta, sums):
    """The gradients of nodes at which trails end, while those of the gates are still there."""
    wide_vectors()
    sums[:] = 0
    for use in range(uses.shape[0]):
        k, by, to = uses[use, 0], uses[use, 1], int64(uses[use, 2]) * PART_SAMPLES
        d = load(delta, int64(slots[k]) * PART_SAMPLES, PART)
        other = x[first[k] if by else second[k]] >> shift
        before = load(sums, to, PART)
        store(sums, to, _added(before, c[k, 1 + by], d, c[k, 3], other))


@kernel
def _backward(words, layers, first, second, slots, cycles, trails, c, bits, delta, spare, gradient, dc, begin, end):
    """dc = the sums over the parts of words begin to end, for the scores' gradients (parts, columns * PART_SAMPLES)."""
    dc[:] = 0
    parts = 64 // PART_SAMPLES
    for part in range(begin * parts, end * parts):
        word, shift = part // parts, np.uint64(part % parts * PART_SAMPLES)
        here, there = delta, spare
        spread_groups(gradient[part], here[: layers[-1, 1] * PART_SAMPLES], PART)
        for layer in range(layers.shape[0] - 1, -1, -1):
            kind, start, inputs = layers[layer, 0], layers[layer, 2], layers[layer, 5]
            stop = start + layers[layer, 1]
            to, own, sums = slots[start:stop], c[start:stop], dc[start:stop]
            one, two = first[start:stop], second[start:stop]
            if kind == FROM_BITS:
                _backward_bits(words[word], shift, one, two, to, here, sums)
                break
            below = bits[word, start - inputs : start]
            if kind == FROM_ROWS:
                if spare is not None:
                    if layers[layer - 1, 6]:
                        spread_groups(gradient[part], there[: inputs * PART_SAMPLES], PART)
                    else:
                        there[: inputs * PART_SAMPLES] = 0
                    _backward_rows(below, shift, one, two, to, own, here, there, sums)
                    here, there = there, here
            elif kind == FROM_CYCLES:
                if cycles is not None:
                    _backward_cycles(below, shift, cycles[layers[layer, 3] : layers[layer, 4] + 1], to, own, here, sums)
            elif trails is not None:
                starts, closed, enters, turned, ends, uses, sums_of_ends = trails
                at = ends[layers[layer, 7] : layers[layer, 8]]
                ending = sums_of_ends[: at.size * PART_SAMPLES]
                _backward_ends(
                    below, shift, uses[layers[layer, 9] : layers[layer, 10]], one, two, to, own, here, ending
                )
                walk = slice(layers[layer, 3], layers[layer, 4] + 1)
                _backward_trails(
                    below, shift, starts[walk], closed[walk], enters[start:stop], turned[start:stop], one, two, to,
                    own, here, sums,
                )  # fmt: skip
                put_rows(ending, at, here, PART)


def _scheduled_kinds(stack: Stack, order: StackOrder, gates: Sequence[Tensor]) -> np.ndarray:
    """All layers' gates in the order of computation."""
    kinds = np.empty(order.gates, dtype=np.uint8)
    numbers = [tensor.detach().contiguous().numpy() for tensor in whole_or_parts(stack, gates)]
    shares = pieces(stack, order, len(numbers))

    def task(share: int) -> None:
        tensor, rows, place = shares[share]
        _to_schedule(numbers[tensor], rows, order.swapped[place], kinds[place])

    parallel_for(task, len(shares), nanoseconds=order.gates)
    return kinds


def _counted(
    x: PackedBatch, stack: Stack, schedule: StackSchedule, gates: Sequence[Tensor], dtype: Any, keep: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Scores (words, columns * 64) and, if they are kept, every layer's bits."""
    words, order = x.words.shape[0], schedule.fixed
    kinds = _scheduled_kinds(stack, order, gates)
    scores = np.empty((words, stack.columns * SAMPLES), dtype=dtype)
    bits = workspace.array((words if keep else 0, order.gates), np.uint64)
    parts = slices(words)

    def task(place: int) -> None:
        own = bits if keep else workspace.array((2, order.gates), np.uint64)
        _forward(x.words, order.layers, schedule.first, schedule.second, order.rows, kinds, own, scores, *parts[place])

    parallel_for(task, len(parts), nanoseconds=2 * order.gates * words)
    return scores, bits


class _BooleanStack(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: PackedBatch, stack: Stack, schedule: StackSchedule, gates: Sequence[Tensor], *coefficients: Tensor
    ) -> Tensor:
        needed = any(ctx.needs_input_grad)
        scores, bits = _counted(x, stack, schedule, gates, NUMPY_TYPES[coefficients[0].dtype], keep=needed)
        if needed:
            ctx.x, ctx.stack, ctx.schedule, ctx.bits = x, stack, schedule, bits
            ctx.c = scheduled_coefficients(stack, schedule.fixed, coefficients)
            ctx.shapes = [tensor.shape for tensor in coefficients]
        return from_tiles(scores, x.samples, SAMPLES)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        x, schedule, order, c = ctx.x, ctx.schedule, ctx.schedule.fixed, ctx.c
        words, widest = x.words.shape[0], max(order.widths)
        gradient = to_tiles(gradients[0], words * 64 // PART_SAMPLES, PART_SAMPLES)
        parts = slices(words)
        sums = workspace.array((len(parts), order.gates, 4), c.dtype)
        kept_as = np.int16 if ctx.stack.half else c.dtype

        def task(place: int) -> None:
            delta = workspace.array((widest * PART_SAMPLES,), kept_as)
            spare = workspace.array(delta.shape, kept_as) if FROM_ROWS in order.kinds else None
            _backward(
                x.words, order.layers, schedule.first, schedule.second, order.slots, walked_cycles(order),
                trails(order, PART_SAMPLES, c.dtype), c, ctx.bits, delta, spare, gradient, sums[place], *parts[place],
            )  # fmt: skip

        parallel_for(task, len(parts), nanoseconds=order.gates * x.samples / 4)
        return None, None, None, None, *coefficient_gradients(ctx.stack, order, sums, ctx.shapes)


def boolean_stack_numba(
    x: Batch,
    stack: Stack,
    gates: Sequence[UInt8[Tensor, " _"]],
    coefficients: Sequence[Float[Tensor, "_ 4"]],
    *,
    back: Back | None = None,
) -> Float[Tensor, "batch columns"]:
    """Bit operations forward; gradients from the bits, which are all that is kept."""
    tensors = whole_or_parts(stack, coefficients)
    check_cpu_float(**{f"coefficients of layer {i}": tensor for i, tensor in enumerate(tensors)})
    packed = as_packed(x)
    arguments = packed, stack, stack_schedule(stack, packed.bits), gates
    return there_and_back(_BooleanStack, arguments, tensors, back)


def boolean_counts_numba(
    x: Batch, stack: Stack, gates: Sequence[UInt8[Tensor, " _"]]
) -> Int64[Tensor, "batch columns"]:
    """Bit operations alone."""
    packed = as_packed(x)
    scores, _ = _counted(packed, stack, stack_schedule(stack, packed.bits), gates, np.float32, keep=False)
    return from_tiles(scores, packed.samples, SAMPLES).to(torch.int64)
