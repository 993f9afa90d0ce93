"""Every point of a space, sixty-four at a time: itself a proof, and often the fastest.

    within k changes     all sets of at most k moves of different features; a move gives one feature another value
    all combinations     the free features counted like digits; with a second point its own feature is one digit more

Two kernels compute the totals. The ``engine`` answers questions; ``words`` (``logic.words`` and a matrix product)
shares nothing with it but the points, and is what certificates are checked with.
"""
# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from jaxtyping import Int64, UInt64

from gatefit.circuit.logic.graph import Graph
from gatefit.circuit.logic.words import simulate_words
from gatefit.circuit.prove.questions import Effort
from gatefit.circuit.verify.problem import Model, Problem
from gatefit.compiled import njit

MOST_POINTS: Final = 2**25
MOST_WORK: Final = 5e10
"""Points, and points times gates, up to which everything is tried: seconds."""
CHUNK: Final = 2**15
"""Points at a time: their bits stay in the cache of the processor's second or third level."""

Kernel = Literal["engine", "words"]
Words = UInt64[np.ndarray, "words inputs"]


def gates_of(models: tuple[Model, ...]) -> int:
    """How many gates are evaluated for one point."""
    return sum(max(1, int(model.circuit.gates.size)) for model in models)


def most_points(models: tuple[Model, ...]) -> int:
    """Up to how many points all of them can be tried."""
    return int(min(MOST_POINTS, MOST_WORK // gates_of(models)))


def fits(problem: Problem) -> bool:
    """Whether there are so few points that all of them can be tried."""
    return problem.points() <= most_points(problem.models)


@dataclass(frozen=True, eq=False)
class Found:
    """A point at which an alternative holds."""

    alternative: int
    point: Int64[np.ndarray, " features"]
    other: int | None = None


@dataclass(frozen=True, eq=False)
class Moves:
    """Single changes from a point: move m gives ``features[m]`` the value ``values[m]`` and flips some inputs."""

    features: Int64[np.ndarray, " moves"]
    values: Int64[np.ndarray, " moves"]
    starts: Int64[np.ndarray, " moves_and_one"]
    flips: Int64[np.ndarray, " flips"]
    after: Int64[np.ndarray, " moves"]
    """The first move of a later feature."""


def moves_from(problem: Problem, point: Int64[np.ndarray, " features"]) -> Moves:
    """All moves from a point to other allowed values, by feature."""
    features, values, flips = [], [], []
    at = point.tolist()
    for i in problem.free.tolist():
        feature = problem.domain.features[i]
        for value in problem.allowed[i].tolist():
            if value != at[i]:
                features.append(i)
                values.append(value)
                one = feature.inputs.size == 1  # then the move can only flip it
                flips.append(
                    feature.inputs if one else feature.inputs[feature.patterns[value] != feature.patterns[at[i]]]
                )
    found = np.array(features, np.int64)
    return Moves(
        found,
        np.array(values, np.int64),
        np.cumsum([0, *(len(f) for f in flips)]).astype(np.int64),
        np.concatenate([np.empty(0, np.int64), *flips]).astype(np.int64),
        np.searchsorted(found, found, side="right"),
    )


def try_all(problem: Problem, effort: Effort | None = None, kernel: Kernel = "engine") -> Found | bool | None:
    """The first point that satisfies an alternative; None if there is none; False if time ran out."""
    run = {"engine": _by_engine, "words": _by_words}[kernel]
    chunks = _combinations(problem) if problem.changes is None or problem.base is None else _changes(problem)
    for words, second, samples, recover in chunks:
        if effort is not None and effort.late:
            return False
        parts = [run(problem.models[0], words, samples)]
        parts += [run(model, words if second is None else second, samples) for model in problem.models[1:]]
        which = problem.satisfied(np.concatenate(parts, axis=1) if len(parts) > 1 else parts[0])
        first = np.flatnonzero(which >= 0)
        # Of two points the second may have to be above: pairs that are not in the space do not count.
        for s in first.tolist():
            point, other = recover(s)
            if problem.inside(point, other):
                return Found(int(which[s]), point, other)
    return None


def _by_engine(model: Model, words: Words, samples: int) -> Int64[np.ndarray, "samples totals"]:
    return np.asarray(model.engine.scores_packed(words, samples))


def _by_words(model: Model, words: Words, samples: int) -> Int64[np.ndarray, "samples totals"]:
    values = simulate_words(Graph.of(model.circuit), np.ascontiguousarray(words.T))[model.circuit.outputs + 1]
    bits = np.unpackbits(values.astype("<u8").view(np.uint8), axis=1, bitorder="little", count=samples)
    exact = np.abs(model.weights).sum(axis=1).max(initial=0) < 2**24  # then no float32 sum rounds
    dtype = np.float32 if exact else np.int64
    counted = bits.T.astype(dtype) @ model.weights.T.astype(dtype)
    return np.asarray(counted.astype(np.int64) + model.sums.offsets)


Chunk = tuple[Words, Words | None, int, Callable[[int], tuple[np.ndarray, int | None]]]


def _changes(problem: Problem) -> Iterator[Chunk]:
    base = problem.base
    assert base is not None
    assert problem.changes is not None
    moves = moves_from(problem, base)
    row = np.where(problem.domain.bits(base[None])[0], ~np.uint64(0), np.uint64(0))
    words = np.empty((CHUNK // 64, problem.domain.inputs), np.uint64)
    for size in range(min(problem.changes, problem.free.size) + 1):
        state = np.full(max(1, size), -1, np.int64)
        going = True
        while going:
            words[:] = row
            chosen = np.zeros((CHUNK, size), np.int64)
            going, samples = _fill_changes(state, size, moves.after, moves.starts, moves.flips, words, chosen)

            def recover(s: int, chosen: np.ndarray = chosen) -> tuple[np.ndarray, None]:
                point = base.copy()
                point[moves.features[chosen[s]]] = moves.values[chosen[s]]
                return point, None

            if samples:
                yield words[: -(-samples // 64)], None, samples, recover


@njit(cache=True)
def _fill_changes(state, size, after, starts, flips, words, chosen):
    """Write the next sets of ``size`` moves; returns whether there are more, and how many were written."""
    samples, moves = 0, after.size
    if size == 0:
        return False, 1
    while samples < 64 * words.shape[0]:
        place = size - 1
        if state[0] < 0:  # the first set
            place = 0
        while place >= 0:
            state[place] += 1
            fits = state[place] < moves
            for q in range(place + 1, size):
                if fits:
                    state[q] = after[state[q - 1]]
                    fits = state[q] < moves
            if fits:
                break
            place -= 1
        if place < 0:
            return False, samples
        bit = np.uint64(1) << np.uint64(samples & 63)
        for q in range(size):
            chosen[samples, q] = state[q]
            for f in range(starts[state[q]], starts[state[q] + 1]):
                words[samples >> 6, flips[f]] ^= bit
        samples += 1
    return True, samples


def _combinations(problem: Problem) -> Iterator[Chunk]:
    start = np.array([values[0] for values in problem.allowed], np.int64)
    free = problem.free
    second = problem.second
    # Digits: the free features, the last one fastest; then the second point's own feature.
    digits = free if second is None else np.append(free, second)
    sizes = np.array([problem.allowed[i].size for i in digits], np.int64)
    moves = moves_from(problem, start)
    # The moves of a feature begin here; its value number v > 0 is move first + v - 1.
    first = np.searchsorted(moves.features, digits)
    row = np.where(problem.domain.bits(start[None])[0], ~np.uint64(0), np.uint64(0))
    state, going = np.zeros(digits.size, np.int64), True
    ones = np.arange(free.size)
    twos = np.where(digits[: free.size] == second, free.size, ones) if second is not None else ones
    while going:
        chosen = np.zeros((CHUNK, digits.size), np.int32)
        going, samples = _count(state, sizes, chosen)
        parts = []
        for columns in (ones,) if second is None else (ones, twos):
            words = np.empty((-(-samples // 64), problem.domain.inputs), np.uint64)
            words[:] = row
            _apply(chosen[:samples], columns, first, moves.starts, moves.flips, words)
            parts.append(words)

        def recover(s: int, chosen: np.ndarray = chosen) -> tuple[np.ndarray, int | None]:
            point = start.copy()
            for k, i in enumerate(free.tolist()):
                point[i] = problem.allowed[i][chosen[s, k]]
            return point, None if second is None else int(problem.allowed[second][chosen[s, -1]])

        yield parts[0], parts[1] if len(parts) > 1 else None, samples, recover


@njit(cache=True)
def _count(state, sizes, chosen):
    """Write the digits of the next numbers; returns whether there are more, and how many were written."""
    for s in range(chosen.shape[0]):
        chosen[s] = state
        place = sizes.size - 1
        while place >= 0:
            state[place] += 1
            if state[place] < sizes[place]:
                break
            state[place] = 0
            place -= 1
        if place < 0:
            return False, s + 1
    return True, chosen.shape[0]


@njit(cache=True)
def _apply(chosen, columns, first, starts, flips, words):
    for s in range(chosen.shape[0]):
        bit = np.uint64(1) << np.uint64(s & 63)
        for k in columns:
            if chosen[s, k]:
                move = first[k] + chosen[s, k] - 1
                for f in range(starts[move], starts[move + 1]):
                    words[s >> 6, flips[f]] ^= bit
