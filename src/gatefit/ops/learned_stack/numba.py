"""Learned stacks compiled: the gradients of all candidates in the pass that has their values in the cache.

    soft      words of 64 samples go through all layers and back, as in ``soft_stack``, the pool's rows as floats
    Boolean   bits forward; on the way back they select lanes, as in ``boolean_stack``
    q_k       four candidates at a time: a product (a choice, where the pool is bits) and a sum over lanes each

Where the loss is known beforehand (``expected_loss``), a word of a soft stack goes back as soon as its scores are
there. Layers read any node any number of times, so their inputs' gradients are added row by row. Sums are cut by the
size of the batch and added in order: the number of threads shows in no bit.
"""
# mypy: disable-error-code="no-untyped-def, call-arg, var-annotated"

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import torch
from jaxtyping import Float, Int, UInt8
from numba import int64, uint32
from torch import Tensor
from torch.utils.weak import WeakTensorKeyDictionary

from gatefit.bits import PackedBatch
from gatefit.compiled import njit
from gatefit.ops.batches import Batch, as_packed
from gatefit.ops.boolean_stack.numba import MASKS, add_group_counts
from gatefit.ops.cross_entropy.numba import expected_in_tiles, tile_gradient
from gatefit.ops.expected_loss import ExpectedLoss
from gatefit.ops.learned_stack.watch import Watch
from gatefit.ops.simd import (
    FUSED,
    add_sums,
    exp_of_negative,
    group_sums,
    group_tops,
    load,
    prefetch,
    samples,
    spread,
    store,
    times,
    times_plus,
    where,
    wide_vectors,
)
from gatefit.ops.simd import kernel as simd
from gatefit.ops.stack_schedule import check_range
from gatefit.ops.stack_tiles import (
    add_group_sums,
    from_tiles,
    inlined,
    kernel,
    slices,
    spread_groups,
    subkernel,
    to_tiles,
)
from gatefit.ops.stacks import Back, Stack, at_places, there_and_back, whole_or_parts
from gatefit.ops.tensors import check_cpu_float, version
from gatefit.ops.threads import parallel_for
from gatefit.ops.workspace import NUMPY_TYPES, workspace

TILE: Final = (0, 0, 0, 0)
SAMPLES: Final = samples(TILE)
"""A word's. Of candidates' sums the part over lanes weighs as much as the products of 32 samples, so a tile is four
times as wide as a soft stack's, though 4,000 gates are 1 MB then and leave the second-level cache."""

NEAR: Final = 1 << 20
"""Bytes of a pool's rows up to which candidates are read as they come: asking for more of them ahead takes longer than
the second-level cache does. Of four layers of 8,000 gates it saves a quarter of the kernel's time."""

ROW: Final = (0,)
ROW_LANES: Final = samples(ROW)
GROUPS: Final = {count: (0,) * count for count in (4, 8, 16)}
"""Numbers of candidates of which a vector holds whole inputs."""
SCORE_ROWS: Final = 8192
"""Inputs whose scores' gradients a thread computes at a time."""

GATES, START, POOL, VOTES, CANDIDATES, SCORES_START, WATCHED, OFFERED, OFFERED_START = range(9)
"""Columns of the table of layers: how many gates, the first one's number, nodes to read, whether it votes, how many
candidates an input has, where their sums begin, whether inputs are watched, how many nodes' values are kept for them,
where these begin."""


@inlined
def _polynomial(c, k, u, v):
    c_0, c_1 = spread(c[k, 0], TILE), spread(c[k, 1], TILE)
    c_2, c_12 = spread(c[k, 2], TILE), spread(c[k, 3], TILE)
    return (c_0 + c_1 * u) + v * (c_2 + c_12 * u)


@subkernel
def _forward_bits(x, pairs, c, z):
    wide_vectors()
    for k in range(uint32(pairs.shape[1])):
        u, v = x[uint32(pairs[0, k])], x[uint32(pairs[1, k])]
        z_00 = c[k, 0]
        z_10, z_01 = z_00 + c[k, 1], z_00 + c[k, 2]
        z_11 = z_10 + (c[k, 2] + c[k, 3])
        low = where(u, spread(z_10, TILE), spread(z_00, TILE))
        high = where(u, spread(z_11, TILE), spread(z_01, TILE))
        store(z, int64(k) * SAMPLES, where(v, high, low))


@subkernel
def _forward_rows(x, pairs, c, z):
    wide_vectors()
    for k in range(uint32(pairs.shape[1])):
        u, v = load(x, int64(pairs[0, k]) * SAMPLES, TILE), load(x, int64(pairs[1, k]) * SAMPLES, TILE)
        store(z, int64(k) * SAMPLES, _polynomial(c, k, u, v))


@inlined
def _sums_of_bits(x, nodes, d, zero, q, at):
    """q += Σ over lanes of d where the candidate's bit is set, four candidates at a time."""
    for j in range(0, nodes.size, 4):
        n_0, n_1 = x[uint32(nodes[j])], x[uint32(nodes[j + 1])]
        n_2, n_3 = x[uint32(nodes[j + 2])], x[uint32(nodes[j + 3])]
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


@subkernel
def _backward_bits(x, pairs, nodes, c, delta, below, dc, q, watched, notes, at):
    """A layer whose pool is bits; ``below`` is empty where nothing there wants a gradient.

    ``delta`` has a row for each gate, or for each group of neighbours that share one: votes alone need no more.
    """
    wide_vectors()
    zero = spread(dc.dtype.type(0), TILE)
    gates, width, share = pairs.shape[1], nodes.shape[2], pairs.shape[1] * SAMPLES // delta.size
    for k in range(gates):
        u, v = x[uint32(pairs[0, k])], x[uint32(pairs[1, k])]
        c_1, c_2, c_12 = spread(c[k, 1], TILE), spread(c[k, 2], TILE), spread(c[k, 3], TILE)
        d = load(delta, int64(k // share) * SAMPLES, TILE)
        add_sums(dc, int64(k) * 4, d, where(u, d, zero), where(v, d, zero), where(u & v, d, zero))
        to_u, to_v = c_1 * d, c_2 * d
        to_u, to_v = where(v, to_u + c_12 * d, to_u), where(u, to_v + c_12 * d, to_v)
        if below.size:
            place = int64(pairs[0, k]) * SAMPLES
            store(below, place, load(below, place, TILE) + to_u)
            place = int64(pairs[1, k]) * SAMPLES
            store(below, place, load(below, place, TILE) + to_v)
        _sums_of_bits(x, nodes[0, k], to_u, zero, q, int64(k) * width)
        _sums_of_bits(x, nodes[1, k], to_v, zero, q, int64(gates + k) * width)
        _note(watched, 0, k, gates, to_u, notes, at)
        _note(watched, 1, k, gates, to_v, notes, at)


@inlined
def _fetch(x, nodes):
    """Begin to fetch the rows of candidates that the next gate reads."""
    for j in range(nodes.size):
        row = int64(nodes[j]) * SAMPLES
        for line in range(0, SAMPLES, 64 // x.itemsize):
            prefetch(x, row + line)


@subkernel
def _backward_rows(x, pairs, nodes, c, delta, below, dc, q, watched, notes, at):
    wide_vectors()
    gates, width, share = pairs.shape[1], nodes.shape[2], pairs.shape[1] * SAMPLES // delta.size
    far = x.size * x.itemsize > NEAR
    for k in range(gates):
        c_1, c_2, c_12 = spread(c[k, 1], TILE), spread(c[k, 2], TILE), spread(c[k, 3], TILE)
        first, second = int64(pairs[0, k]) * SAMPLES, int64(pairs[1, k]) * SAMPLES
        if far:
            following = min(k + 1, gates - 1)
            _fetch(x, nodes[0, following])
            _fetch(x, nodes[1, following])
        d, u, v = load(delta, int64(k // share) * SAMPLES, TILE), load(x, first, TILE), load(x, second, TILE)
        d_u, d_v = d * u, d * v
        to_u, to_v = times_plus(c_1, d, times(c_12, d_v)), times_plus(c_2, d, times(c_12, d_u))
        store(below, first, load(below, first, TILE) + to_u)
        store(below, second, load(below, second, TILE) + to_v)
        add_sums(dc, int64(k) * 4, d, d_u, d_v, d_u * v)
        _sums_of_rows(x, nodes[0, k], to_u, q, int64(k) * width)
        _sums_of_rows(x, nodes[1, k], to_v, q, int64(gates + k) * width)
        _note(watched, 0, k, gates, to_u, notes, at)
        _note(watched, 1, k, gates, to_v, notes, at)


_kernel_of_views = njit(cache=True, nogil=True)


@njit(cache=True, inner=True, views=True, forceinline=True, error_model="numpy", fastmath=FUSED)
def _layer(layers, layer, nodes, q, part, watched):
    """A layer's gates from start to stop, its pool's size, its candidates, their sums, and which inputs are watched.

    ``q`` holds for one layer after another the sums of every part of the batch.
    """
    start, pool, width = layers[layer, START], layers[layer, POOL], layers[layer, CANDIDATES]
    stop, at = start + layers[layer, GATES], layers[layer, SCORES_START]
    size = 2 * (stop - start) * width
    own = nodes[at : at + size].reshape((2, stop - start, width))
    first = at * (q.size // max(1, nodes.size)) + part * size
    sums = q[first : first + size]
    return start, stop, pool, own, sums, watched[2 * start : 2 * stop] if layers[layer, WATCHED] else watched[:0]


@kernel
def _soft_forward(words, layers, pairs, c, activations, scores, begin, end):
    """Words begin to end: the sums over groups of the layers that vote."""
    for word in range(begin, end):
        scores[word] = 0
        _soft_forward_word(words[word], layers, layers.shape[0], pairs, c, activations, scores[word])


@subkernel
def _soft_forward_word(x, layers, depth, pairs, c, activations, scores):
    """The first ``depth`` layers of one word, their rows one layer after another in ``activations``."""
    for layer in range(depth):
        start = layers[layer, START]
        stop = start + layers[layer, GATES]
        z = activations[start * SAMPLES : stop * SAMPLES]
        if layer == 0:
            _forward_bits(x, pairs[:, start:stop], c[start:stop], z)
        else:
            below = activations[layers[layer - 1, START] * SAMPLES : start * SAMPLES]
            _forward_rows(below, pairs[:, start:stop], c[start:stop], z)
        if scores.size and layers[layer, VOTES]:
            add_group_sums(z, scores, TILE)


@inlined
def _first_gradient(votes, gradient, rows):
    """What a layer's gradients begin with: the votes' where it votes, else nothing."""
    if votes:
        spread_groups(gradient, rows, TILE)
    else:
        rows[:] = 0


@njit(cache=True, inner=True, views=True, nogil=True)
def _soft_backward_word(
    x, layers, pairs, nodes, c, activations, delta, spare, top, gradient, dc, q, part, watched, notes, offered, kept,
    word, opens,
):  # fmt: skip
    """Back through all layers of one word, whose activations are there; ``opens``: its sums are the part's first."""
    spread_groups(gradient, top, TILE)
    above, here, there = top, delta, spare
    for layer in range(layers.shape[0] - 1, -1, -1):
        start, stop, pool, own, sums, seen = _layer(layers, layer, nodes, q, part, watched)
        if opens:
            sums[:] = 0
        if layer == 0:
            _backward_bits(
                x, pairs[:, start:stop], own, c[start:stop], above, here[:0], dc[start:stop], sums,
                seen, notes, word * SAMPLES,
            )  # fmt: skip
            break
        below = activations[layers[layer - 1, START] * SAMPLES : start * SAMPLES]
        to_below = here[: pool * SAMPLES]
        _first_gradient(layers[layer - 1, VOTES], gradient, to_below)
        _backward_rows(
            below, pairs[:, start:stop], own, c[start:stop], above, to_below, dc[start:stop], sums,
            seen, notes, word * SAMPLES,
        )  # fmt: skip
        first, count = layers[layer, OFFERED_START], layers[layer, OFFERED]
        _keep(below, offered[first : first + count], kept[first : first + count], word)
        above, here, there = to_below, there, here


@_kernel_of_views
def _soft_backward(
    words, layers, pairs, nodes, c, activations, delta, spare, top, gradient, dc, q, part, watched, notes, offered,
    kept, begin, end,
):  # fmt: skip
    """dc and a part of q: the sums over words begin to end."""
    dc[:] = 0
    if begin == end:  # an empty batch
        q[:] = 0
    for word in range(begin, end):
        x, here = words[word], gradient[word]
        _soft_forward_word(x, layers, layers.shape[0] - 1, pairs, c, activations, here[:0])
        _soft_backward_word(
            x, layers, pairs, nodes, c, activations, delta, spare, top, here, dc, q, part, watched, notes, offered,
            kept, word, word == begin,
        )  # fmt: skip


@_kernel_of_views
def _soft_there_and_back(
    words, layers, pairs, nodes, c, activations, delta, spare, top, gradient, dc, q, part, watched, notes, offered,
    kept, scores, loss, begin, end,
):  # fmt: skip
    """Scores, their gradients and what ``_soft_backward`` finds, word by word, for a loss that is known."""
    dc[:] = 0
    if begin == end:
        q[:] = 0
    for word in range(begin, end):
        x, here, own = words[word], gradient[word], scores[word]
        own[:] = 0
        _soft_forward_word(x, layers, layers.shape[0], pairs, c, activations, own)
        tile_gradient(own, word * SAMPLES, loss, here)
        _soft_backward_word(
            x, layers, pairs, nodes, c, activations, delta, spare, top, here, dc, q, part, watched, notes, offered,
            kept, word, word == begin,
        )  # fmt: skip


@subkernel
def _keep(rows, nodes, kept, word):
    """The word's values of some nodes, for whoever looks for better ones."""
    for place in range(nodes.size):
        at = place * kept.shape[1] + word * SAMPLES
        store(kept, at, load(rows, int64(nodes[place]) * SAMPLES, TILE))


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


@_kernel_of_views
def _boolean_backward(
    words, layers, pairs, nodes, c, bits, delta, spare, top, gradient, dc, q, part, watched, notes, begin, end
):
    """dc and a part of q: the sums over words begin to end, from the bits of the forward pass."""
    dc[:] = 0
    if begin == end:
        q[:] = 0
    for word in range(begin, end):
        spread_groups(gradient[word], top, TILE)
        above, here, there = top, delta, spare
        for layer in range(layers.shape[0] - 1, -1, -1):
            start, stop, pool, own, sums, seen = _layer(layers, layer, nodes, q, part, watched)
            if word == begin:
                sums[:] = 0
            x = words[word] if layer == 0 else bits[word, layers[layer - 1, START] : start]
            to_below = here[: pool * SAMPLES] if layer else here[:0]
            if layer:
                _first_gradient(layers[layer - 1, VOTES], gradient[word], to_below)
            _backward_bits(
                x, pairs[:, start:stop], own, c[start:stop], above, to_below, dc[start:stop], sums,
                seen, notes, word * SAMPLES,
            )  # fmt: skip
            above, here, there = to_below, there, here


@simd
def _exponentials(values):
    wide_vectors()
    for i in range(values.size):
        values[i] = exp_of_negative(values[i])


@kernel
def _score_gradients(scores, parts, group, gradient):
    """∂L/∂s_k = w_k (q_k - Σ_j w_j q_j), q the sum of the parts in their order; as many candidates as ``group`` has.

    All are flat, of whole vectors: ``scores``, ``gradient`` (inputs * candidates), ``parts`` (slices, the same).
    """
    wide_vectors()
    minus = spread(gradient.dtype.type(-1), ROW)
    for i in range(0, scores.size, ROW_LANES):
        s = load(scores, i, ROW)
        store(gradient, i, s + minus * group_tops(s, group))
    _exponentials(gradient)
    for i in range(0, scores.size, ROW_LANES):
        w, q = load(gradient, i, ROW), load(parts[0], i, ROW)
        for part in range(1, parts.shape[0]):
            q = q + load(parts[part], i, ROW)
        total = group_sums(w, group)
        mean = group_sums(w * q, group) / total
        store(gradient, i, w / total * (q + minus * mean))


@kernel
def _score_gradients_of_any(scores, parts, gradient):
    """The same for other numbers of candidates; ``scores`` (inputs, candidates), ``parts`` may have further columns."""
    inputs, count = scores.shape
    for row in range(inputs):
        top = scores[row, 0]
        for k in range(1, count):
            top = max(top, scores[row, k])
        total, mean = top - top, top - top
        for k in range(count):
            q = parts[0, row, k]
            for part in range(1, parts.shape[0]):
                q += parts[part, row, k]
            w = exp_of_negative(scores[row, k] - top)
            gradient[row, k] = q
            total += w
            mean += w * q
        mean /= total
        for k in range(count):
            gradient[row, k] = exp_of_negative(scores[row, k] - top) / total * (gradient[row, k] - mean)


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
        self.nodes, widths, sizes = _nodes_of(candidates)
        watch = Watch([np.empty(0, np.int64)] * len(pools)) if watch is None else watch
        watched = [len(inputs) for inputs in watch.inputs]
        # The first layer's pool is the batch itself, and a Boolean layer's the bits of the forward pass.
        self.offered = [
            watch.offered(layer, pools[layer]).astype(np.int32) if watched[layer] else np.empty(0, np.int32)
            for layer in range(len(pools))
        ]
        offers = np.cumsum([0, 0, *(nodes.size for nodes in self.offered[1:])])
        self.offers_of = np.concatenate([np.empty(0, np.int32), *self.offered[1:]])
        self.layers = np.array(
            [
                [
                    gates, starts[i], pools[i], i + 1 in stack.votes, widths[i], sizes[i], watched[i] > 0,
                    offers[i + 1] - offers[i], offers[i],
                ]
                for i, gates in enumerate(stack.widths)
            ],
            dtype=np.int64,
        )  # fmt: skip
        self.watched = np.full(2 * self.gates, -1, dtype=np.int32)
        self.notes_of: list[slice] = []
        rows = 0
        for layer, count in enumerate(watched):
            self.notes_of.append(slice(rows, rows + count))
            self.watched[2 * starts[layer] + watch.inputs[layer]] = np.arange(rows, rows + count)
            rows += count
        self.rows = rows
        self.starts, self.sizes, self.widths, self.offers, self.dtype = starts, sizes, widths, offers, dtype
        self.activations, self.gradients = (np.uint16, np.int16) if stack.half else (dtype, dtype)


_NODES: WeakTensorKeyDictionary = WeakTensorKeyDictionary()


def _nodes_of(candidates: Sequence[Tensor | None]) -> tuple[np.ndarray, list[int], np.ndarray]:
    """All layers' candidates one after another, how many an input has, and where each layer's begin.

    Laid out once, and again after one of them was written to: of a layer of 9,200 gates they are 600 kB.
    """
    given = [each for each in candidates if each is not None]
    state = [None if each is None else (id(each), version(each)) for each in candidates]
    known = _NODES.get(given[0]) if given else None
    if known is None or known[0] != state:
        # Four candidates at a time: other counts are filled up with the first one, whose further sums are not read.
        padded = [None if each is None else _filled_up(each.detach().to(torch.int32).numpy()) for each in candidates]
        widths = [0 if each is None else each.shape[2] for each in padded]
        sizes = np.cumsum([0, *(0 if each is None else each.size for each in padded)])
        nodes = np.concatenate([np.empty(0, np.int32), *(each.ravel() for each in padded if each is not None)])
        # The other tensors are kept alive with it, so that no new one can take over an id.
        known = state, (nodes, widths, sizes), given[1:]
        if given:
            _NODES[given[0]] = known
    laid_out: tuple[np.ndarray, list[int], np.ndarray] = known[1]
    return laid_out


def _filled_up(nodes: Int[np.ndarray, "2 gates candidates"]) -> Int[np.ndarray, "2 gates filled"]:
    short = -nodes.shape[2] % 4
    filled = np.concatenate([nodes, np.repeat(nodes[:, :, :1], short, axis=2)], axis=2) if short else nodes
    return np.ascontiguousarray(filled)


@dataclass
class _Sums:
    """What a pass back finds: the slices' sums, and what is written down for regrowth."""

    gradient: np.ndarray
    """Of the scores: what the sums are for."""
    coefficients: np.ndarray
    candidates: np.ndarray
    notes: np.ndarray
    kept: np.ndarray

    @classmethod
    def empty(cls, plan: _Plan, gradient: np.ndarray, *, soft: bool) -> "_Sums":
        """Room for them."""
        words, parts = len(gradient), len(slices(len(gradient)))
        return cls(
            gradient,
            workspace.array((parts, plan.gates, 4), plan.dtype),
            workspace.array((parts * plan.nodes.size,), plan.dtype),
            workspace.array((plan.rows, words * SAMPLES), plan.dtype),
            workspace.array((int(plan.offers[-1]) if soft else 0, words * SAMPLES), plan.dtype),
        )

    def of(self, plan: _Plan, place: int) -> tuple[Any, ...]:
        """What the kernels are given of them for one slice, and room for its gradients."""
        size = plan.widest * SAMPLES
        room = workspace.array((2 * size + plan.columns * SAMPLES,), plan.gradients)
        delta, spare, top = room[:size], room[size : 2 * size], room[2 * size :]
        own = self.coefficients[place], self.candidates, place, plan.watched, self.notes
        return delta, spare, top, self.gradient, *own


class _LearnedStack(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        x: PackedBatch,
        plan: _Plan,
        kinds: np.ndarray | None,
        watch: Watch | None,
        expected: ExpectedLoss | None,
        depth: int,
        *rest: Tensor,
    ) -> Tensor:
        coefficients, scores = rest[:depth], rest[depth:]
        c = _one_after_another(coefficients)
        words = x.words.shape[0]
        parts = slices(words)
        found = np.empty((words, plan.columns * SAMPLES), dtype=plan.dtype)
        bits = workspace.array((0 if kinds is None else words, plan.gates), np.uint64)
        known = (
            expected is not None
            and kinds is None
            and c.dtype == np.float32
            and any(ctx.needs_input_grad)
            and expected.is_of(x.samples, plan.columns)
        )
        ctx.expected = expected if known else None
        ctx.sums = _Sums.empty(plan, np.empty_like(found), soft=True) if known else None

        def task(place: int) -> None:
            begin, end = parts[place]
            if kinds is not None:
                _boolean_forward(x.words, plan.layers, plan.pairs, kinds, bits, found, begin, end)
                return
            activations = workspace.array((plan.gates * SAMPLES,), plan.activations)
            if ctx.expected is None:
                _soft_forward(x.words, plan.layers, plan.pairs, c, activations, found, begin, end)
                return
            _soft_there_and_back(
                x.words, plan.layers, plan.pairs, plan.nodes, c, activations, *ctx.sums.of(plan, place), plan.offers_of,
                ctx.sums.kept, found, expected_in_tiles(ctx.expected, SAMPLES), begin, end,
            )  # fmt: skip

        parallel_for(task, len(parts), nanoseconds=plan.gates * (x.samples if kinds is None else 2 * words))
        ctx.x, ctx.plan, ctx.c, ctx.bits, ctx.watch, ctx.soft, ctx.depth = x, plan, c, bits, watch, kinds is None, depth
        ctx.scores = [tensor.detach() for tensor in scores]
        return from_tiles(found, x.samples, SAMPLES)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        x, plan = ctx.x, ctx.plan
        gradient = to_tiles(gradients[0], x.words.shape[0], SAMPLES)
        if ctx.sums is None or not ctx.expected.holds(ctx.sums.gradient, gradient):
            ctx.sums = _sums_of(ctx, gradient)
        sums, ctx.sums = ctx.sums, None
        total = _added(sums.coefficients)
        if ctx.watch is not None:
            _hand_over(ctx.watch, plan, x, sums.notes, sums.kept, ctx.bits)
        to_coefficients = [torch.from_numpy(total)]
        if ctx.depth > 1:
            to_coefficients = [
                torch.from_numpy(total[begin:end].copy())
                for begin, end in zip(plan.starts, plan.starts[1:], strict=False)
            ]
        parts = len(sums.coefficients)
        found = [
            sums.candidates[parts * plan.sizes[layer] : parts * plan.sizes[layer + 1]].reshape(parts, -1, width)
            for layer, width in enumerate(plan.widths)
            if width
        ]
        return None, None, None, None, None, None, *to_coefficients, *_to_scores(ctx.scores, found)


def _sums_of(ctx: Any, gradient: np.ndarray) -> _Sums:
    """For these gradients of the scores, whatever was expected."""
    x, plan, c = ctx.x, ctx.plan, ctx.c
    sums, parts = _Sums.empty(plan, gradient, soft=ctx.soft), slices(len(gradient))

    def task(place: int) -> None:
        begin, end = parts[place]
        given = x.words, plan.layers, plan.pairs, plan.nodes, c
        if ctx.soft:
            activations = workspace.array((plan.starts[-2] * SAMPLES,), plan.activations)
            _soft_backward(*given, activations, *sums.of(plan, place), plan.offers_of, sums.kept, begin, end)
        else:
            _boolean_backward(*given, ctx.bits, *sums.of(plan, place), begin, end)

    parallel_for(task, len(parts), nanoseconds=plan.gates * x.samples)
    return sums


def _to_scores(scores: Sequence[Tensor], parts: Sequence[np.ndarray]) -> list[Tensor]:
    """The layers' gradients of scores from the slices' q (slices, inputs, filled-up candidates)."""
    results = [workspace.tensor(tuple(own.shape), own.dtype) for own in scores]
    given, gradients = ([own.reshape(-1, own.shape[2]).numpy() for own in each] for each in (scores, results))
    blocks = [(layer, first) for layer, own in enumerate(given) for first in range(0, len(own), SCORE_ROWS)]

    def task(block: int) -> None:
        layer, first = blocks[block]
        here = slice(first, first + SCORE_ROWS)
        s, q, d = given[layer][here], parts[layer][:, here], gradients[layer][here]
        if s.shape[1] in GROUPS and s.size % ROW_LANES == 0:
            _score_gradients(s.reshape(-1), q.reshape(len(q), -1), GROUPS[s.shape[1]], d.reshape(-1))
        else:
            _score_gradients_of_any(s, q, d)

    parallel_for(task, len(blocks), nanoseconds=sum(own.size for own in given))
    return results


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
                watch.pools[layer] = PackedBatch(x.words.take(plan.offered[0], axis=1), x.samples)
            elif bits.size:
                own = bits[:, plan.starts[layer - 1] : plan.starts[layer]]
                watch.pools[layer] = PackedBatch(own.take(plan.offered[layer], axis=1), x.samples)
            else:
                own = kept[plan.offers[layer] : plan.offers[layer + 1], : x.samples]
                watch.pools[layer] = torch.from_numpy(own)


@kernel
def _best(nodes, scores, best):
    for row in range(nodes.shape[0]):
        place, top = 0, scores[row, 0]
        for k in range(1, nodes.shape[1]):
            higher = scores[row, k] > top
            place, top = k if higher else place, scores[row, k] if higher else top
        best[row] = nodes[row, place]


def best_candidates_numba(
    candidates: Int[Tensor, "2 gates candidates"], scores: Float[Tensor, "2 gates candidates"]
) -> Int[Tensor, "2 gates"]:
    """In one pass."""
    best = torch.empty(candidates.shape[:2], dtype=candidates.dtype)
    given = (each.detach().reshape(-1, each.shape[2]).numpy() for each in (candidates, scores))
    _best(*given, best.view(-1).numpy())
    return best


def _placed(stack: Stack, tensors: Sequence[Tensor]) -> Sequence[Tensor]:
    """What belongs to each gate, of all layers in one tensor or of each in its own."""
    found = whole_or_parts(stack, tensors)
    if not stack.shares_rows:
        return found
    return [at_places(tensor, owner) for tensor, owner in zip(found, stack.owners, strict=True)]


def _one_after_another(tensors: Sequence[Tensor]) -> np.ndarray:
    arrays = [tensor.detach().numpy() for tensor in tensors]
    return np.ascontiguousarray(arrays[0]) if len(arrays) == 1 else np.concatenate(arrays)


def learned_stack_numba(
    x: Batch,
    stack: Stack,
    candidates: Sequence[Int[Tensor, "2 _ candidates"] | None],
    scores: Sequence[Float[Tensor, "2 _ candidates"] | None],
    coefficients: Sequence[Float[Tensor, "_ 4"]],
    *,
    gates: Sequence[UInt8[Tensor, " _"]] | None = None,
    watch: Watch | None = None,
    expected: ExpectedLoss | None = None,
    back: Back | None = None,
) -> Float[Tensor, "batch columns"]:
    """All layers by compiled kernels."""
    rows = _placed(stack, coefficients)
    check_cpu_float(**{f"coefficients of layer {i}": tensor for i, tensor in enumerate(rows)})
    packed = as_packed(x)
    dtype = NUMPY_TYPES[rows[0].dtype]
    plan = _Plan(stack, packed.bits, candidates, dtype, watch)
    kinds = None if gates is None else _one_after_another(_placed(stack, gates))
    learned = [tensor for tensor in scores if tensor is not None]
    arguments = packed, plan, kinds, watch, expected, len(rows)
    return there_and_back(_LearnedStack, arguments, (*rows, *learned), back)
