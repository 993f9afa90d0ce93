"""Looking for a point at which an alternative holds, by simulation: most questions that have one end here.

    random      points drawn from the space
    climb       from the base, or from the best that were drawn, the single change that helps most, again and again

What it finds is replayed before anybody is told; that it finds nothing says nothing.
"""

from typing import Any, Final

import numpy as np
from jaxtyping import Int64

from gatefit.circuit.prove.questions import Effort
from gatefit.circuit.verify.exhaust import Found
from gatefit.circuit.verify.problem import Alternative, Problem

SAMPLES: Final = 4096
BEAM: Final = 4
RIVALS: Final = 3
"""Points drawn; points that are kept from one step to the next; alternatives that are climbed for."""
STEPS: Final = 60
_MOST_MOVES: Final = 2**13


def attack(problem: Problem, effort: Effort, seed: int = 0) -> Found | None:
    """A point that satisfies some alternative, if one is found."""
    rng = np.random.default_rng((seed, 1))
    states = _drawn(problem, rng, SAMPLES)
    totals = _totals(problem, states)
    found = _satisfied(problem, states, totals)
    if found is not None or effort.late:
        return found
    slacks = [_slack(alternative, totals) for alternative in problem.alternatives]
    ranked = sorted(range(len(slacks)), key=lambda a: -int(slacks[a].max()))
    for a in ranked[:RIVALS]:
        beam = states[np.argsort(-slacks[a], kind="stable")[:BEAM]]
        if problem.base is not None and problem.changes is not None:
            beam = states[:1]
        found = _climb(problem, a, beam, effort, rng)
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


def _slack(alternative: Alternative, totals: Int64[np.ndarray, "states totals"]) -> Int64[np.ndarray, " states"]:
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


def _climb(
    problem: Problem,
    number: int,
    beam: Int64[np.ndarray, "states coordinates"],
    effort: Effort,
    rng: np.random.Generator,
) -> Found | None:
    allowed = _coordinates(problem)
    # All single changes, as (coordinate, value).
    where = np.repeat(np.arange(len(allowed)), [values.size for values in allowed])
    what = np.concatenate(allowed)
    alternative = problem.alternatives[number]
    best = -(2**62)
    steps = problem.changes if problem.changes is not None and problem.base is not None else STEPS
    for _ in range(steps):
        use: Any = slice(None)
        if where.size * len(beam) > _MOST_MOVES:
            use = np.sort(rng.choice(where.size, max(1, _MOST_MOVES // len(beam)), replace=False))
        moved = np.repeat(beam, where[use].size, axis=0)
        rows = np.arange(len(moved))
        moved[rows, np.tile(where[use], len(beam))] = np.tile(what[use], len(beam))
        moved = _legal(problem, moved)
        if not len(moved):
            return None
        totals = _totals(problem, moved)
        found = _satisfied(problem, moved, totals)
        if found is not None or effort.late:
            return found
        slack = _slack(alternative, totals)
        order = np.argsort(-slack, kind="stable")[: BEAM * BEAM]
        if problem.changes is None and slack[order[0]] <= best:
            return None
        # One state may be reached from several of the beam; the same one need not be kept twice.
        _, first = np.unique(moved[order], axis=0, return_index=True)
        best, beam = int(slack[order[0]]), moved[order[np.sort(first)[:BEAM]]]
    return None
