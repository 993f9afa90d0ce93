"""Looking for a point at which an alternative holds, by simulation: most questions that have one end here.

    random      points drawn from the space
    climb       from the base, or from the best that were drawn, the single change that helps most, again and again
    near        where few changes are allowed, the same with sets of moves: only what they flip is written

What it finds is replayed before anybody is told; that it finds nothing says nothing.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from typing import Any, Final

import numpy as np
from jaxtyping import Int64

from gatefit.circuit.prove.questions import Effort
from gatefit.circuit.verify.exhaust import Found, moves_from
from gatefit.circuit.verify.problem import Alternative, Problem
from gatefit.compiled import njit

SAMPLES: Final = 4096
FEW: Final = 8
"""Changes up to which sets of moves are tried instead of whole points."""
BEAM: Final = 4
RIVALS: Final = 3
"""Points drawn; points that are kept from one step to the next; alternatives that are climbed for."""
STEPS: Final = 60
_MOST_MOVES: Final = 2**13


def attack(problem: Problem, effort: Effort, seed: int = 0) -> Found | None:
    """A point that satisfies some alternative, if one is found."""
    rng = np.random.default_rng((seed, 1))
    limited = problem.base is not None and problem.changes is not None and problem.second is None
    if limited and problem.changes <= FEW and problem.base_places.min(initial=0) >= 0:  # type: ignore[operator]
        return Near(problem).attack(effort, rng)
    states = _drawn(problem, rng, SAMPLES)
    totals = _totals(problem, states)
    found = _satisfied(problem, states, totals)
    if found is not None or effort.late:
        return found
    slacks = [slack_of(alternative, totals) for alternative in problem.alternatives]
    ranked = sorted(range(len(slacks)), key=lambda a: -int(slacks[a].max()))
    for a in ranked[:RIVALS]:
        beam = states[np.argsort(-slacks[a], kind="stable")[:BEAM]]
        if problem.base is not None and problem.changes is not None:
            beam = states[:1]
        found = climb(problem, a, beam, effort, rng)
        if found is not None or effort.late:
            return found
    return None


def _coordinates(problem: Problem) -> list[Int64[np.ndarray, " some"]]:
    """What each coordinate of a state may be: the features, and the second point's own value behind them."""
    second = problem.second
    return problem.allowed + ([] if second is None else [problem.allowed[second]])


def _drawn(problem: Problem, rng: np.random.Generator, count: int) -> Int64[np.ndarray, "states coordinates"]:
    """Random states, the base first if it is part of the space."""
    allowed = _coordinates(problem)
    base = problem.base
    if base is not None and problem.changes is not None:  # a few features each, all others as at the base
        states = np.repeat(base[None], count, axis=0)
        free = problem.free
        sizes = np.array([values.size for values in problem.allowed])
        flat, starts = np.concatenate(problem.allowed), np.cumsum(sizes) - sizes
        for _ in range(problem.changes if free.size else 0):
            chosen = free[rng.integers(0, free.size, count)]
            states[np.arange(count), chosen] = flat[starts[chosen] + rng.integers(0, sizes[chosen])]
        states[0] = base
        return _legal(problem, states)
    states = np.stack([values[rng.integers(0, values.size, count)] for values in allowed], axis=1)
    if base is not None and problem.inside(base):
        states[0, : base.size] = base
    return _legal(problem, states)


def _legal(problem: Problem, states: Int64[np.ndarray, "states coordinates"]) -> Int64[np.ndarray, "some coordinates"]:
    if problem.rising and problem.second is not None:
        states = states[states[:, -1] >= states[:, problem.second]]
    if problem.changes is not None and problem.base is not None:
        states = states[(states[:, : problem.base.size] != problem.base).sum(axis=1) <= problem.changes]
    return states


def _totals(problem: Problem, states: Int64[np.ndarray, "states coordinates"]) -> Int64[np.ndarray, "states totals"]:
    features = len(problem.allowed)
    return problem.evaluate(states[:, :features], None if problem.second is None else states[:, -1])


def slack_of(alternative: Alternative, totals: Int64[np.ndarray, "states totals"]) -> Int64[np.ndarray, " states"]:
    """How far the worst form is from holding; it holds from 0 on."""
    values = [totals @ form.coefficients + form.constant for form in alternative.forms]
    return np.min(values, axis=0) if values else np.zeros(len(totals), np.int64)


def _satisfied(
    problem: Problem, states: Int64[np.ndarray, "states coordinates"], totals: Int64[np.ndarray, "states totals"]
) -> Found | None:
    which = problem.satisfied(totals)
    first = np.flatnonzero(which >= 0)
    if not first.size:
        return None
    if problem.base is not None:  # the one that changes least
        distance = (states[first, : problem.base.size] != problem.base).sum(axis=1)
        first = first[np.argsort(distance, kind="stable")]
    state = states[first[0]]
    features = len(problem.allowed)
    other = None if problem.second is None else int(state[-1])
    return Found(int(which[first[0]]), state[:features].copy(), other)


def climb(
    problem: Problem,
    number: int,
    states: Int64[np.ndarray, "states coordinates"],
    effort: Effort,
    rng: np.random.Generator,
    beam: int = BEAM,
) -> Found | None:
    """From some states by single changes, keeping the best ``beam`` for one alternative, until one satisfies any."""
    allowed = _coordinates(problem)
    # All single changes, as (coordinate, value).
    where = np.repeat(np.arange(len(allowed)), [values.size for values in allowed])
    what = np.concatenate(allowed)
    alternative = problem.alternatives[number]
    best = -(2**62)
    steps = problem.changes if problem.changes is not None and problem.base is not None else STEPS
    for _ in range(steps):
        use: Any = slice(None)
        if where.size * len(states) > _MOST_MOVES:
            use = np.sort(rng.choice(where.size, max(1, _MOST_MOVES // len(states)), replace=False))
        moved = np.repeat(states, where[use].size, axis=0)
        rows = np.arange(len(moved))
        moved[rows, np.tile(where[use], len(states))] = np.tile(what[use], len(states))
        moved = _legal(problem, moved)
        if not len(moved):
            return None
        totals = _totals(problem, moved)
        found = _satisfied(problem, moved, totals)
        if found is not None or effort.late:
            return found
        slack = slack_of(alternative, totals)
        order = np.argsort(-slack, kind="stable")[: beam * BEAM]
        if problem.changes is None and slack[order[0]] <= best:
            return None
        # One state may be reached from several of the beam; the same one need not be kept twice.
        _, first = np.unique(moved[order], axis=0, return_index=True)
        best, states = int(slack[order[0]]), moved[order[np.sort(first)[:beam]]]
    return None


class Near:
    """Sets of at most so many moves from the base; a move gives one feature another value, -1 is none."""

    def __init__(self, problem: Problem) -> None:
        assert problem.base is not None
        assert problem.changes is not None
        self.problem, self.base = problem, problem.base
        self.moves = moves_from(problem, problem.base)
        self.count = int(self.moves.features.size)
        self.most = min(problem.changes, problem.free.size)
        self.row = np.where(problem.domain.bits(problem.base[None])[0], ~np.uint64(0), np.uint64(0))

    def attack(self, effort: Effort, rng: np.random.Generator) -> Found | None:
        """A point that satisfies some alternative, if one is found: drawn, or climbed to."""
        problem = self.problem
        sets = self._drawn(rng)
        totals = self._totals(sets)
        found = self._satisfied(sets, totals)
        if found is not None or effort.late or not self.most:
            return found
        slacks = [int(slack_of(alternative, totals).max()) for alternative in problem.alternatives]
        ranked = sorted(range(len(slacks)), key=lambda a: -slacks[a])
        singles = np.arange(self.count)[:, None]
        first = self._totals(singles)
        found = self._satisfied(singles, first)
        for a in ranked[:RIVALS]:
            if found is not None or effort.late:
                return found
            found = self._climb(problem.alternatives[a], singles, first, rng)
        return found

    def _drawn(self, rng: np.random.Generator) -> Int64[np.ndarray, "sets moves"]:
        """Random sets, the empty one first; of two moves of one feature the first counts."""
        sets = np.full((SAMPLES, self.most), -1, np.int64)
        if self.most:
            sets[1:] = rng.integers(0, self.count, (SAMPLES - 1, self.most))
            features = self.moves.features[sets]
            for k in range(1, self.most):
                sets[(features[:, k : k + 1] == features[:, :k]).any(axis=1), k] = -1
        return sets

    def _climb(
        self,
        alternative: Alternative,
        sets: Int64[np.ndarray, "sets moves"],
        totals: Int64[np.ndarray, "sets totals"],
        rng: np.random.Generator,
    ) -> Found | None:
        """From the best of some sets to those with one move more, again and again."""
        while sets.shape[1] < self.most:
            order = np.argsort(-slack_of(alternative, totals), kind="stable")[: BEAM * BEAM]
            # One set may be reached in several orders; it need not be kept twice.
            _, first = np.unique(np.sort(sets[order], axis=1), axis=0, return_index=True)
            beam = sets[order[np.sort(first)[:BEAM]]]
            use = np.arange(self.count)
            if self.count * len(beam) > _MOST_MOVES:
                use = np.sort(rng.choice(self.count, max(1, _MOST_MOVES // len(beam)), replace=False))
            sets = np.column_stack([np.repeat(beam, use.size, axis=0), np.tile(use, len(beam))])
            features = self.moves.features[sets]
            sets = sets[(features[:, :-1] != features[:, -1:]).all(axis=1)]
            if not len(sets):
                return None
            totals = self._totals(sets)
            found = self._satisfied(sets, totals)
            if found is not None:
                return found
        return None

    def _totals(self, sets: Int64[np.ndarray, "sets moves"]) -> Int64[np.ndarray, "sets totals"]:
        words = np.empty((-(-len(sets) // 64), self.row.size), np.uint64)
        words[:] = self.row
        _flip_sets(sets, self.moves.starts, self.moves.flips, words)
        parts = [np.asarray(model.engine.scores_packed(words, len(sets))) for model in self.problem.models]
        return np.concatenate(parts, axis=1) if len(parts) > 1 else parts[0]

    def _satisfied(
        self, sets: Int64[np.ndarray, "sets moves"], totals: Int64[np.ndarray, "sets totals"]
    ) -> Found | None:
        """Of the sets at which an alternative holds, the first of those that change least."""
        which = self.problem.satisfied(totals)
        good = np.flatnonzero(which >= 0)
        if not good.size:
            return None
        best = good[np.argmin((sets[good] >= 0).sum(axis=1))]
        moves = sets[best][sets[best] >= 0]
        point = self.base.copy()
        point[self.moves.features[moves]] = self.moves.values[moves]
        return Found(int(which[best]), point)


@njit(cache=True)
def _flip_sets(sets, starts, flips, words):
    for s in range(sets.shape[0]):
        bit = np.uint64(1) << np.uint64(s & 63)
        for k in range(sets.shape[1]):
            move = sets[s, k]
            if move >= 0:
                for f in range(starts[move], starts[move + 1]):
                    words[s >> 6, flips[f]] ^= bit
