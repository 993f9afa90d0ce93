"""Learned stacks compiled: the gradients of all candidates in the pass that has their values in the cache.

    soft      tiles of 32 samples go through all layers and back, as in ``soft_stack``, the pool's rows as floats
    Boolean   64 samples a word forward; on the way back bits select lanes, as in ``boolean_stack``
    q_k       four candidates at a time: a product (a choice, where the pool is bits) and a sum over lanes each

Layers read any node any number of times, so their inputs' gradients are added row by row. Sums are cut by the size of
the batch and added in order: the number of threads shows in no bit.
"""
# mypy: disable-error-code="no-untyped-def, call-arg, var-annotated"

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import torch
from jaxtyping import Float, Int, UInt8
from numba import int64, uint32
from torch import Tensor

from gatefit.bits import PackedBatch
from gatefit.ops.batches import Batch, as_packed
from gatefit.ops.boolean_stack.numba import MASKS, add_group_counts
from gatefit.ops.learned_stack.watch import Watch
from gatefit.ops.simd import add_sums, exp_of_negative, load, samples, spread, store, where, wide_vectors
from gatefit.ops.stack_schedule import check_range
from gatefit.ops.stack_tiles import add_group_sums, from_tiles, inlined, kernel, run, slices, spread_groups, to_tiles
from gatefit.ops.stacks import Stack, at_places
from gatefit.ops.tensors import check_cpu_float
from gatefit.ops.workspace import NUMPY_TYPES, workspace

TILE: Final = (0, 0)
SAMPLES: Final = samples(TILE)
"""Of candidates' sums the part over lanes weighs as much as the products: twice the width of a soft stack's tile."""

GATES, START, POOL, VOTES, CANDIDATES, SCORES_START, WATCHED, KEPT = range(8)
"""Columns of the table of layers: how many gates, the first one's number, nodes to read, whether it votes, how many
candidates an input has, where their sums begin, whether inputs are watched, whether its outputs are a watched pool."""


@inlined
def _polynomial(c, k, u, v):
    c_0, c_1 = spread(c[k, 0], TILE), spread(c[k, 1], TILE)
    c_2, c_12 = spread(c[k, 2], TILE), spread(c[k, 3], TILE)
    return (c_0 + c_1 * u) + v * (c_2 + c_12 * u)


@kernel
def _forward_bits(x, shift, pairs, c, z):
    wide_vectors()
    for k in range(uint32(pairs.shape[1])):
        u, v = x[uint32(pairs[0, k])] >> shift, x[uint32(pairs[1, k])] >> shift
        z_00 = c[k, 0]
        z_10, z_01 = z_00 + c[k, 1], z_00 + c[k, 2]
        z_11 = z_10 + (c[k, 2] + c[k, 3])
        low = where(u, spread(z_10, TILE), spread(z_00, TILE))
        high = where(u, spread(z_11, TILE), spread(z_01, TILE))
        store(z, int64(k) * SAMPLES, where(v, high, low))


@kernel
def _forward_rows(x, pairs, c, z):
    wide_vectors()
    for k in range(uint32(pairs.shape[1])):
        u, v = load(x, int64(pairs[0, k]) * SAMPLES, TILE), load(x, int64(pairs[1, k]) * SAMPLES, TILE)
        store(z, int64(k) * SAMPLES, _polynomial(c, k, u, v))


@kernel
def _add_groups(gradient, rows):
    """Each row of a group gets the group's gradient, beside what it has."""
    wide_vectors()
    size = rows.size // gradient.size
    for group in range(gradient.size // SAMPLES):
        d = load(gradient, group * SAMPLES, TILE)
        for row in range(group * size, (group + 1) * size):
            store(rows, row * SAMPLES, load(rows, row * SAMPLES, TILE) + d)


@inlined
def _sums_of_bits(x, shift, nodes, d, zero, q, at):
    """q += Σ over lanes of d where the candidate's bit is set, four candidates at a time."""
    for j in range(0, nodes.size, 4):
        n_0, n_1 = x[uint32(nodes[j])] >> shift, x[uint32(nodes[j + 1])] >> shift
        n_2, n_3 = x[uint32(nodes[j + 2])] >> shift, x[uint32(nodes[j + 3])] >> shift
        add_sums(q, at + j, where(n_0, d, zero), where(n_1, d, zero), where(n_2, d, zero), where(n_3, d, zero))


@inlined
def _sums_of_rows(x, nodes, d, q, at):
    """q += Σ over lanes of d times the candidate's values, four candidates at a time."""
    for j in range(0, nodes.size, 4):
        n_0, n_1 = load(x, int64(nodes[j]) * SAMPLES, TILE), load(x, int64(nodes[j + 1]) * SAMPLES, TILE)
        n_2, n_3 = load(x, int64(nodes[j + 2]) * SAMPLES, TILE), load(x, int64(nodes[j + 3]) * SAMPLES, TILE)
        add_sums(q, at + j, d * n_0, d * n_1, d * n_2, d * n_3)


@inlined
def _note(watched, side, k, gates, d, notes, at):
    """Write down the gradient of an input that is watched."""
    if watched.size:
        row = int64(watched[side * gates + k])
        if row >= 0:
            store(notes, row * notes.shape[1] + at, d)


@kernel
def _backward_bits(x, shift, pairs, nodes, c, delta, below, dc, q, watched, notes, at):
    """A layer whose pool is bits; ``below`` is empty where nothing there wants a gradient."""
    wide_vectors()
    zero = spread(dc.dtype.type(0), TILE)
    gates, width = pairs.shape[1], nodes.shape[2]
    for k in range(gates):
        u, v = x[uint32(pairs[0, k])] >> shift, x[uint32(pairs[1, k])] >> shift
        c_1, c_2, c_12 = spread(c[k, 1], TILE), spread(c[k, 2], TILE), spread(c[k, 3], TILE)
        d = load(delta, int64(k) * SAMPLES, TILE)
        add_sums(dc, int64(k) * 4, d, where(u, d, zero), where(v, d, zero), where(u & v, d, zero))
        to_u, to_v = c_1 * d, c_2 * d
        to_u, to_v = where(v, to_u + c_12 * d, to_u), where(u, to_v + c_12 * d, to_v)
        if below.size:
            place = int64(pairs[0, k]) * SAMPLES
            store(below, place, load(below, place, TILE) + to_u)
            place = int64(pairs[1, k]) * SAMPLES
            store(below, place, load(below, place, TILE) + to_v)
        _sums_of_bits(x, shift, nodes[0, k], to_u, zero, q, int64(k) * width)
        _sums_of_bits(x, shift, nodes[1, k], to_v, zero, q, int64(gates + k) * width)
        _note(watched, 0, k, gates, to_u, notes, at)
        _note(watched, 1, k, gates, to_v, notes, at)


@kernel
def _backward_rows(x, pairs, nodes, c, delta, below, dc, q, watched, notes, at):
    wide_vectors()
    gates, width = pairs.shape[1], nodes.shape[2]
    for k in range(gates):
        c_1, c_2, c_12 = spread(c[k, 1], TILE), spread(c[k, 2], TILE), spread(c[k, 3], TILE)
        first, second = int64(pairs[0, k]) * SAMPLES, int64(pairs[1, k]) * SAMPLES
        d, u, v = load(delta, int64(k) * SAMPLES, TILE), load(x, first, TILE), load(x, second, TILE)
        d_u, d_v = d * u, d * v
        to_u, to_v = c_1 * d + c_12 * d_v, c_2 * d + c_12 * d_u
        store(below, first, load(below, first, TILE) + to_u)
        store(below, second, load(below, second, TILE) + to_v)
        add_sums(dc, int64(k) * 4, d, d_u, d_v, d_u * v)
        _sums_of_rows(x, nodes[0, k], to_u, q, int64(k) * width)
        _sums_of_rows(x, nodes[1, k], to_v, q, int64(gates + k) * width)
        _note(watched, 0, k, gates, to_u, notes, at)
        _note(watched, 1, k, gates, to_v, notes, at)


@inlined
def _layer(layers, layer, nodes, q, watched):
    """A layer's gates from start to stop, its pool's size, its candidates, their sums, and which inputs are watched."""
    start, pool, width = layers[layer, START], layers[layer, POOL], layers[layer, CANDIDATES]
    stop, at = start + layers[layer, GATES], layers[layer, SCORES_START]
    own = nodes[at : at + 2 * (stop - start) * width].reshape((2, stop - start, width))
    sums = q[at : at + 2 * (stop - start) * width]
    return start, stop, pool, own, sums, watched[2 * start : 2 * stop] if layers[layer, WATCHED] else watched[:0]


@kernel
def _soft_forward(words, layers, pairs, c, activations, scores, begin, end):
    """Tiles begin to end: the sums over groups of the layers that vote."""
    for tile in range(begin, end):
        scores[tile] = 0
        _soft_forward_tile(words, layers, pairs, c, activations, scores[tile], tile)


@kernel
def _soft_forward_tile(words, layers, pairs, c, activations, scores, tile):
    """All layers of one tile, their rows one layer after another in ``activations``."""
    x, shift = words[tile * SAMPLES // 64], np.uint64(tile * SAMPLES % 64)
    for layer in range(layers.shape[0]):
        start = layers[layer, START]
        stop = start + layers[layer, GATES]
        z = activations[start * SAMPLES : stop * SAMPLES]
        if layer == 0:
            _forward_bits(x, shift, pairs[:, start:stop], c[start:stop], z)
        else:
            below = activations[layers[layer - 1, START] * SAMPLES : start * SAMPLES]
            _forward_rows(below, pairs[:, start:stop], c[start:stop], z)
        if scores.size and layers[layer, VOTES]:
            add_group_sums(z, scores, TILE)


@kernel
def _soft_backward(
    words, layers, pairs, nodes, c, activations, delta, spare, gradient, dc, q, watched, notes, kept, begin, end
):
    """dc and q: the sums over tiles begin to end."""
    dc[:] = 0
    q[:] = 0
    for tile in range(begin, end):
        x, shift = words[tile * SAMPLES // 64], np.uint64(tile * SAMPLES % 64)
        _soft_forward_tile(words, layers, pairs, c, activations, gradient[tile][:0], tile)
        here, there = delta, spare
        last = layers.shape[0] - 1
        spread_groups(gradient[tile], here[: layers[last, GATES] * SAMPLES], TILE)
        for layer in range(last, -1, -1):
            start, stop, pool, own, sums, seen = _layer(layers, layer, nodes, q, watched)
            if layer == 0:
                _backward_bits(
                    x, shift, pairs[:, start:stop], own, c[start:stop], here, there[:0], dc[start:stop], sums,
                    seen, notes, tile * SAMPLES,
                )  # fmt: skip
                break
            below = activations[layers[layer - 1, START] * SAMPLES : start * SAMPLES]
            there[: pool * SAMPLES] = 0
            _backward_rows(
                below, pairs[:, start:stop], own, c[start:stop], here, there, dc[start:stop], sums,
                seen, notes, tile * SAMPLES,
            )  # fmt: skip
            if layers[layer - 1, KEPT]:
                _keep(below, kept[layers[layer - 1, START] : start], tile)
            if layers[layer - 1, VOTES]:
                _add_groups(gradient[tile], there[: pool * SAMPLES])
            here, there = there, here


@kernel
def _keep(rows, kept, tile):
    """The tile's values of all nodes, for whoever looks for better ones."""
    for node in range(kept.shape[0]):
        for sample in range(SAMPLES):
            kept[node, tile * SAMPLES + sample] = rows[node * SAMPLES + sample]


@kernel
def _boolean_forward(words, layers, pairs, kinds, bits, scores, begin, end):
    """Words begin to end: ``bits`` (words, gates) keep every layer's output."""
    for word in range(begin, end):
        x = words[word]
        scores[word] = 0
        for layer in range(layers.shape[0]):
            start = layers[layer, START]
            stop = start + layers[layer, GATES]
            z = bits[word, start:stop]
            for k in range(uint32(stop - start)):
                u, v = x[uint32(pairs[0, start + k])], x[uint32(pairs[1, start + k])]
                kind = uint32(kinds[start + k])
                z[k] = MASKS[kind, 0] ^ (u & (MASKS[kind, 1] ^ (MASKS[kind, 3] & v))) ^ (MASKS[kind, 2] & v)
            if layers[layer, VOTES]:
                add_group_counts(z, scores[word])
            x = z


@kernel
def _boolean_backward(words, layers, pairs, nodes, c, bits, delta, spare, gradient, dc, q, watched, notes, begin, end):
    """dc and q: the sums over tiles begin to end, from the bits of the forward pass."""
    dc[:] = 0
    q[:] = 0
    for tile in range(begin, end):
        word, shift = tile * SAMPLES // 64, np.uint64(tile * SAMPLES % 64)
        here, there = delta, spare
        last = layers.shape[0] - 1
        spread_groups(gradient[tile], here[: layers[last, GATES] * SAMPLES], TILE)
        for layer in range(last, -1, -1):
            start, stop, pool, own, sums, seen = _layer(layers, layer, nodes, q, watched)
            x = words[word] if layer == 0 else bits[word, layers[layer - 1, START] : start]
            below = there[: pool * SAMPLES] if layer else there[:0]
            below[:] = 0
            _backward_bits(
                x, shift, pairs[:, start:stop], own, c[start:stop], here, below, dc[start:stop], sums,
                seen, notes, tile * SAMPLES,
            )  # fmt: skip
            if layer == 0:
                break
            if layers[layer - 1, VOTES]:
                _add_groups(gradient[tile], below)
            here, there = there, here


@kernel
def _score_gradients(scores, q, gradient):
    """∂L/∂s_k = w_k (q_k - Σ_j w_j q_j) of each row; q has columns beyond the candidates, which do not count."""
    for row in range(scores.shape[0]):
        top = scores[row, 0]
        for k in range(1, scores.shape[1]):
            top = max(top, scores[row, k])
        total, mean = top - top, top - top
        for k in range(scores.shape[1]):
            w = exp_of_negative(scores[row, k] - top)
            gradient[row, k] = w
            total += w
            mean += w * q[row, k]
        mean /= total
        for k in range(scores.shape[1]):
            gradient[row, k] = gradient[row, k] / total * (q[row, k] - mean)


class _Plan:
    """A stack's arrays as the kernels read them."""

    def __init__(
        self, stack: Stack, inputs: int, candidates: Sequence[Tensor | None], dtype: Any, watch: Watch | None
    ) -> None:
        starts = np.cumsum([0, *stack.widths])
        pools = [inputs, *stack.widths[:-1]]
        self.gates, self.widest, self.columns = int(starts[-1]), max(stack.widths), stack.columns
        self.pairs = np.concatenate([wiring.detach().to(torch.int32).cpu().numpy() for wiring in stack.wirings], axis=1)
        for layer, pool in enumerate(pools):
            check_range(layer, self.pairs[:, starts[layer] : starts[layer + 1]], pool)
        # Four candidates at a time: other counts are filled up with the first one, whose further sums are not read.
        padded = [None if each is None else _filled_up(each.detach().to(torch.int32).numpy()) for each in candidates]
        widths = [0 if each is None else each.shape[2] for each in padded]
        sizes = np.cumsum([0, *(0 if each is None else each.size for each in padded)])
        self.nodes = np.concatenate([np.empty(0, np.int32), *(each.ravel() for each in padded if each is not None)])
        watched = [0 if watch is None else len(watch.inputs[layer]) for layer in range(len(pools))]
        kept = [layer + 1 < len(pools) and watched[layer + 1] > 0 for layer in range(len(pools))]
        self.layers = np.array(
            [
                [gates, starts[i], pools[i], i + 1 in stack.votes, widths[i], sizes[i], watched[i] > 0, kept[i]]
                for i, gates in enumerate(stack.widths)
            ],
            dtype=np.int64,
        )
        self.watched = np.full(2 * self.gates, -1, dtype=np.int32)
        self.notes_of: list[slice] = []
        rows = 0
        for layer, count in enumerate(watched):
            self.notes_of.append(slice(rows, rows + count))
            if watch is not None and count:
                self.watched[2 * starts[layer] + watch.inputs[layer]] = np.arange(rows, rows + count)
            rows += count
        self.rows = rows
        self.starts, self.sizes, self.widths, self.kept, self.dtype = starts, sizes, widths, kept, dtype


def _filled_up(nodes: Int[np.ndarray, "2 gates candidates"]) -> Int[np.ndarray, "2 gates filled"]:
    short = -nodes.shape[2] % 4
    filled = np.concatenate([nodes, np.repeat(nodes[:, :, :1], short, axis=2)], axis=2) if short else nodes
    return np.ascontiguousarray(filled)


class _LearnedStack(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: PackedBatch, plan: _Plan, kinds: np.ndarray | None, watch: Watch | None, depth: int, *rest: Tensor
    ) -> Tensor:
        coefficients, scores = rest[:depth], rest[depth:]
        c = np.concatenate([tensor.detach().numpy() for tensor in coefficients])
        words = x.words.shape[0]
        parts = slices(words)
        size = SAMPLES if kinds is None else 64
        found = np.empty((words * 64 // size, plan.columns * size), dtype=plan.dtype)
        bits = workspace.array((0 if kinds is None else words, plan.gates), np.uint64)

        def task(place: int) -> None:
            begin, end = parts[place]
            if kinds is None:
                activations = workspace.array((plan.gates * SAMPLES,), plan.dtype)
                a_word = 64 // SAMPLES
                _soft_forward(x.words, plan.layers, plan.pairs, c, activations, found, a_word * begin, a_word * end)
            else:
                _boolean_forward(x.words, plan.layers, plan.pairs, kinds, bits, found, begin, end)

        run(task, len(parts), plan.gates * x.samples if kinds is None else 4 * plan.gates * words)
        ctx.x, ctx.plan, ctx.c, ctx.bits, ctx.watch, ctx.soft, ctx.depth = x, plan, c, bits, watch, kinds is None, depth
        ctx.scores = [tensor.detach() for tensor in scores]
        return from_tiles(found, x.samples, size)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        x, plan, c = ctx.x, ctx.plan, ctx.c
        words = x.words.shape[0]
        a_word = 64 // SAMPLES
        gradient = to_tiles(gradients[0], words * a_word, SAMPLES)
        parts = slices(words)
        dc = workspace.array((len(parts), plan.gates, 4), plan.dtype)
        q = workspace.array((len(parts), plan.nodes.size), plan.dtype)
        notes = np.empty((plan.rows, words * 64), dtype=plan.dtype)
        kept = np.empty((plan.gates if any(plan.kept) else 0, words * 64), dtype=plan.dtype)

        def task(place: int) -> None:
            begin, end = parts[place]
            delta, spare = (workspace.array((plan.widest * SAMPLES,), plan.dtype) for _ in range(2))
            shared = (delta, spare, gradient, dc[place], q[place], plan.watched, notes)
            if ctx.soft:
                activations = workspace.array((plan.gates * SAMPLES,), plan.dtype)
                _soft_backward(
                    x.words, plan.layers, plan.pairs, plan.nodes, c, activations, *shared, kept,
                    a_word * begin, a_word * end,
                )  # fmt: skip
            else:
                _boolean_backward(
                    x.words, plan.layers, plan.pairs, plan.nodes, c, ctx.bits, *shared, a_word * begin, a_word * end
                )

        run(task, len(parts), plan.gates * x.samples)
        total, sums = _added(dc), _added(q)
        if ctx.watch is not None:
            _hand_over(ctx.watch, plan, x, notes, kept, ctx.bits)
        to_coefficients = [
            torch.from_numpy(total[begin:end].copy()) for begin, end in zip(plan.starts, plan.starts[1:], strict=False)
        ]
        to_scores, learned = [], iter(ctx.scores)
        for layer, width in enumerate(plan.widths):
            if width:
                own = next(learned)
                rows = own.reshape(-1, own.shape[2]).numpy()
                result = np.empty_like(rows)
                _score_gradients(rows, sums[plan.sizes[layer] : plan.sizes[layer + 1]].reshape(-1, width), result)
                to_scores.append(torch.from_numpy(result.reshape(own.shape)))
        return None, None, None, None, None, *to_coefficients, *to_scores


def _added(parts: np.ndarray) -> np.ndarray:
    """The slices' sums, added in their order."""
    total: np.ndarray = parts[0].copy()
    for part in parts[1:]:
        total += part
    return total


def _hand_over(
    watch: Watch, plan: _Plan, x: PackedBatch, notes: np.ndarray, kept: np.ndarray, bits: np.ndarray
) -> None:
    for layer, rows in enumerate(plan.notes_of):
        if rows.stop > rows.start:
            watch.gradients[layer] = torch.from_numpy(notes[rows, : x.samples])
            if layer == 0:
                watch.pools[layer] = x
            elif bits.size:
                watch.pools[layer] = PackedBatch(
                    np.ascontiguousarray(bits[:, plan.starts[layer - 1] : plan.starts[layer]]), x.samples
                )
            else:
                watch.pools[layer] = torch.from_numpy(kept[plan.starts[layer - 1] : plan.starts[layer], : x.samples])


def learned_stack_numba(
    x: Batch,
    stack: Stack,
    candidates: Sequence[Int[Tensor, "2 _ candidates"] | None],
    scores: Sequence[Float[Tensor, "2 _ candidates"] | None],
    coefficients: Sequence[Float[Tensor, "_ 4"]],
    *,
    gates: Sequence[UInt8[Tensor, " _"]] | None = None,
    watch: Watch | None = None,
) -> Float[Tensor, "batch columns"]:
    """All layers by compiled kernels."""
    check_cpu_float(**{f"coefficients of layer {i}": tensor for i, tensor in enumerate(coefficients)})
    packed = as_packed(x)
    dtype = NUMPY_TYPES[coefficients[0].dtype]
    plan = _Plan(stack, packed.bits, candidates, dtype, watch)
    rows = [at_places(tensor, owner) for tensor, owner in zip(coefficients, stack.owners, strict=True)]
    kinds = None
    if gates is not None:
        placed = [at_places(numbers, owner) for numbers, owner in zip(gates, stack.owners, strict=True)]
        kinds = np.concatenate([numbers.detach().numpy() for numbers in placed])
    learned = [tensor for tensor in scores if tensor is not None]
    result = _LearnedStack.apply(packed, plan, kinds, watch, len(rows), *rows, *learned)
    assert isinstance(result, Tensor)
    return result
