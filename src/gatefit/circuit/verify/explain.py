"""Why a row is answered as it is: features that force the answer, and how far each of them may move.

    1. delete    one feature after the other is let go, unless the answer can then be another: what is left is a
                 subset-minimal reason (an abductive explanation), the least influential features being tried first
    2. widen     each feature that is left: a number to the widest interval, a category to all that keep the answer
    3. prove     "whatever the others are, the answer is this" is settled like any other statement
    4. why not   the smallest change that turns the answer (``closest``)

Steps 1 and 2 are hopeful: where simulation finds no other answer, there is taken to be none. Step 3 decides: a proof
covers all of these guesses at once, and a counterexample is remembered, which undoes the guess that it refutes and
those after it. What is needed is shown by an input each time, so that a reason that is proved is minimal too: one
proof, where a solver asked at every step would have to make dozens. Only if that proof takes too long is the solver
asked at every step, and what it does not decide stays fixed.

A point with another answer is remembered in the forms that are nearest to the row: with as many features put back, and
numbers moved back as far, as it keeps that answer. Such a point refutes every region that it is in, and

    v is blocked for feature i    some point has value v there, and all of its other features are inside the region

whatever else feature i may be: so the widest values of one feature, the others given, are all that are not blocked, of
a number those up to the nearest blocked ones. One guess a feature, not one for each value; what the guess got wrong is
a point, and blocks more. Intervals are proved as the reason was; if that is too hard, they are made as wide as all of
their points can be tried, or where the reason has too many for that, the half of the features that matters most is
widened, and so on.
"""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np
from jaxtyping import Bool, Int64

from gatefit.circuit.ir import Circuit
from gatefit.circuit.logic.cnf import clause_lists
from gatefit.circuit.prove.questions import Effort
from gatefit.circuit.simulate import simulate
from gatefit.circuit.verify import certificate as files
from gatefit.circuit.verify import exhaust
from gatefit.circuit.verify.answers import Answer, Condition, Explanation, Proved, Undecided
from gatefit.circuit.verify.attack import climb, slack_of
from gatefit.circuit.verify.decide import Outcome, decide
from gatefit.circuit.verify.domain import Domain
from gatefit.circuit.verify.encode import Encoding, TooLargeError
from gatefit.circuit.verify.exhaust import Found
from gatefit.circuit.verify.pose import Posed, name_of, posed, resolve_domain, state_always
from gatefit.circuit.verify.problem import Allowed, Form, Problem
from gatefit.circuit.verify.questions import TIMEOUT, Folder, closest, effort_of
from gatefit.circuit.verify.rows import condition, read_row
from gatefit.circuit.verify.sat import has_empty_clause, limited
from gatefit.circuit.verify.supports import Bound

SAMPLES: Final = 256
FEW: Final = 2**14
"""Points drawn in a region before a solver is asked; and points that are all tried instead."""
KEPT: Final = 64
"""Points with another answer, of those found before, that are tried again."""
RUNS: Final = 64
"""Ways in which features of a point with another answer are put back, each to a nearest form of it."""
HOPEFUL: Final = 0.4
STRICT: Final = 0.7
WIDE: Final = 0.9
"""Of the time that is given, until when guesses are proved, a solver is asked at every step, intervals are proved."""
MOST_CONFLICTS: Final = 10_000
MANY_GATES: Final = 1_000
"""Of a solver, for the proof of a widened reason; beyond that it is widened less. With more gates a conflict takes
longer, and more of them are needed: of more than so many gates there are fewer, by the square."""


def explain(
    circuit: Circuit,
    x: Any,
    *,
    why_not: bool = True,
    widen: bool = True,
    tolerance: float | None = None,
    domain: Domain | None = None,
    timeout: float | None = TIMEOUT,
    certificate: Folder = None,
    seed: int = 0,
) -> Answer:
    """Features that force the answer to the row ``x`` whatever the others are, and the smallest change that turns it.

    Arguments:
        circuit: what is asked.
        x: one row: a mapping of names to values, a sequence, or an array or frame of one row; bits without an encoder.
        why_not: whether to look for the smallest change too.
        widen: whether to widen the reason to intervals and sets of categories.
        tolerance: of a regression: how near to its value all values must stay.
        domain: what features can be, if it is not what the encoder says.
        timeout: seconds for all of it; None: no limit. What runs out of time is valid, but ``minimal`` is False.
        certificate: a new folder for the proof that the features force the answer.
        seed: of the search; it affects speed and which of several reasons is found, not what is true.
    """
    start = time.monotonic()
    effort_of(timeout)  # refuses what is no time limit
    own = resolve_domain((circuit,), domain)
    row, bits = read_row(circuit, x)
    point = own.locate(bits[None])[0]
    fixed: Allowed = [np.array([value], np.int64) for value in point]
    asked = posed(state_always(circuit, row, fixed, own, tolerance), (circuit,), own)
    path = None if certificate is None else Path(certificate)
    if path is not None:
        files.refuse_existing(path)

    def until(share: float, conflicts: float = math.inf) -> Effort:
        return Effort(conflicts, math.inf if timeout is None else start + share * timeout)

    def prove(allowed: Allowed, effort: Effort) -> Tried:
        asked = posed(state_always(circuit, row, allowed, own, tolerance), (circuit,), own)
        before = time.monotonic()
        outcome = decide(asked.problem, effort, seed=seed, keep=path is not None)
        return Tried(allowed, asked, outcome, time.monotonic() - before)

    search = Search(asked, until(HOPEFUL), seed)
    reason, minimal = search.reason(prove, until(STRICT), None if timeout is None else (1 - STRICT) * timeout)
    if reason.outcome.left:
        seconds = time.monotonic() - start
        return Undecided(reason.asked.text, seconds, f"not decided in {seconds:.1f} s; raise timeout", "")
    widest = False
    if widen:
        search.effort, search.strict = until(WIDE), False
        conflicts = MOST_CONFLICTS * min(1.0, MANY_GATES / max(1, circuit.gates.size)) ** 2
        reason, widest = search.wider(prove, reason, lambda: until(WIDE, conflicts))
    search.confirm()
    if path is not None:
        files.write(path, reason.asked, reason.outcome)
    proof = Proved(reason.asked.text, reason.outcome.method, reason.seconds, path)
    allowed = reason.allowed
    pairs = zip(own.features, allowed, strict=True)
    because = tuple(
        Condition(feature.name, condition(feature, values), tuple(values.tolist()))
        for feature, values in pairs
        if not set(feature.usual.tolist()) <= set(values.tolist())
    )
    other = None
    if why_not:
        left = None if timeout is None else max(0.05, start + timeout - time.monotonic())
        other = closest(circuit, x, tolerance=tolerance, domain=own, timeout=left, seed=seed)
    if circuit.readout.gives_value:
        answer: Any = float(circuit.readout.from_totals(asked.problem.totals[None])[0, 0])  # type: ignore[index]
    else:
        answer = name_of(circuit, int(asked.problem.totals.argmax()))  # type: ignore[union-attr]
    seconds = time.monotonic() - start
    return Explanation(proof.statement, seconds, answer, because, len(own.features), minimal, proof, other, widest)


@dataclass(frozen=True, eq=False)
class Tried:
    """A region, the statement that the answer is the same everywhere in it, and whether that was proved."""

    allowed: Allowed
    asked: Posed
    outcome: Outcome
    seconds: float


Prove = Callable[[Allowed, Effort], Tried]


class Search:
    """Regions around a row in which its answer is kept, as far as simulation, or a solver without a proof, can tell."""

    def __init__(self, asked: Posed, effort: Effort, seed: int) -> None:
        problem = asked.problem
        assert problem.base is not None
        self.base = problem.base
        self.everything: Allowed = problem.domain.usual_and(self.base)
        self.problem = Problem(
            problem.domain, problem.models, self.everything, problem.alternatives, self.base, totals=problem.totals
        )
        self.starts = np.cumsum([0, *(len(feature.values) for feature in problem.domain.features)])
        """Where each feature's values begin when those of all are counted through."""
        self.ordered = np.concatenate(
            [np.isin(np.arange(len(f.values)), f.levels()) & np.isin(np.arange(len(f.values)), values)
             for f, values in zip(problem.domain.features, self.everything, strict=True)]
        )  # fmt: skip
        """Of all values, those that are numbers and allowed."""
        self.effort = effort
        self.rng = np.random.default_rng((seed, 4))
        self.pool = np.empty((0, self.base.size), np.int64)
        """Points with another answer that were found so far."""
        self.known: set[bytes] = set()
        self.kept: dict[bytes, bool] = {}
        """Regions in which none was found, and whether it is certain that there is none."""
        self.strict = False
        """Whether a solver is asked where simulation finds nothing."""
        self.encoding = Encoding(self.problem)

    def reason(self, prove: Prove, strict: Effort, seconds: float | None) -> tuple[Tried, bool]:
        """A reason that was proved, or not decided; and whether each of its features is known to be needed.

        ``strict`` is what a search with a solver may cost; its proof has some ``seconds`` even if that took all.
        """
        while True:
            allowed, minimal = self.delete()
            effort = self.effort
            if self.strict:
                effort = Effort() if seconds is None else Effort(deadline=time.monotonic() + seconds)
            tried = prove(allowed, effort)
            if tried.outcome.found is not None:
                self.remember(tried.outcome.found.point[None])
            elif not tried.outcome.left or self.strict:
                return tried, minimal
            else:
                self.effort, self.strict = strict, True

    def wider(self, prove: Prove, reason: Tried, effort: Callable[[], Effort]) -> tuple[Tried, bool]:
        """The reason, its features widened as far as can be proved with the effort; and whether that is all the way.

        All the way: no feature can have another value, of a number no further one, unless another feature gives way.
        """
        fixed = [i for i in reversed(self.order) if reason.allowed[i].size < self.everything[i].size]
        count, most = len(fixed), math.inf
        tries = exhaust.most_points(self.problem.models)
        while count and not self.effort.late:
            allowed = self.widen(reason.allowed, fixed[:count], most)
            if allowed is None:  # what was found on the way refutes what was guessed before
                continue
            tried = prove(allowed, effort())
            if tried.outcome.found is not None:
                self.remember(tried.outcome.found.point[None])
            elif not tried.outcome.left:
                return tried, count == len(fixed) and most == math.inf and not self.effort.late
            elif most == math.inf and 2 * reason.asked.problem.points() <= tries:
                most = tries
            else:
                count, most = count // 2, math.inf
        return reason, not fixed

    @cached_property
    def order(self) -> list[int]:
        """The features that have a choice, those that reach least of the outputs first."""
        weights = np.abs(self.problem.models[0].weights).sum(axis=0)
        gains = weights @ self.encoding.reads(self.encoding.outputs[0] >> 1).astype(np.int64)
        free = [i for i, values in enumerate(self.everything) if values.size > 1]
        return sorted(free, key=lambda i: (int(gains[i]), i))

    def delete(self) -> tuple[Allowed, bool]:
        """A subset-minimal reason, each of its features fixed; and whether every test was decided."""
        while True:
            region = Region(self, [np.array([value], np.int64) for value in self.base])
            minimal = True
            for i in self.order:
                if not region.blocked(i).size:
                    keeps = self.keeps(region.changed(i, self.everything[i]))
                    if keeps is None:
                        minimal = False
                    if keeps:
                        region.change(i, self.everything[i])
            if not region.refuted:  # by a point that was found after a guess
                return region.allowed, minimal

    def widen(self, allowed: Allowed, features: list[int], most: float = math.inf) -> Allowed | None:
        """As many values of some features as keep the answer, one feature after the other; a region of ``most`` points.

        None if the region turns out not to keep the answer.
        """
        region = Region(self, allowed)
        for i in features:
            own = region.allowed[i]
            room = most / math.prod(values.size for j, values in enumerate(region.allowed) if j != i)
            while True:
                blocked = region.blocked(i)
                if np.isin(own, blocked).any():
                    return None
                values = self._unblocked(i, blocked, own, room)
                if values.size == own.size or self.effort.late:
                    break
                if self.keeps(region.changed(i, values), i):
                    region.change(i, values)
                    break
        return region.allowed

    def _unblocked(
        self, i: int, blocked: Int64[np.ndarray, " some"], own: Int64[np.ndarray, " some"], room: float
    ) -> Int64[np.ndarray, " some"]:
        """The values of a feature that may be tried: those not blocked, of a number without a gap; the nearest first.

        ``own`` are among them, and are not more than there is ``room`` for.
        """
        base = int(self.base[i])
        values = np.setdiff1d(self.everything[i], blocked)
        levels = self.problem.domain.features[i].levels()
        numbers = np.intersect1d(self.everything[i], levels)
        if np.any(numbers == base):
            gaps = np.intersect1d(numbers, blocked)
            low, high = gaps[gaps < base].max(initial=-1), gaps[gaps > base].min(initial=int(numbers.max()) + 1)
            values = values[~np.isin(values, numbers) | ((values > low) & (values < high))]
        others = np.setdiff1d(values, own)
        far = np.where(np.isin(others, numbers), np.abs(others - base), self.starts[-1])
        extra = others[np.argsort(far, kind="stable")]
        return np.union1d(own, extra[: int(min(extra.size, max(0, room - own.size)))])

    def keeps(self, allowed: Allowed, feature: int | None = None) -> bool | None:
        """Whether the answer is the same everywhere in a region, as far as is known; None if that was not decided.

        No point that was found before is in the region; one that is found blocks as much of the feature as it can.
        """
        key = b"|".join(values.tobytes() for values in allowed)
        if key in self.kept and (self.kept[key] or not self.strict):
            return True
        if self.effort.late:
            return None
        problem = Problem(
            self.problem.domain, self.problem.models, allowed, self.problem.alternatives, self.base,
            totals=self.problem.totals,
        )  # fmt: skip
        if problem.points() <= FEW:
            tried = exhaust.try_all(problem)
            if isinstance(tried, Found):
                self.remember(tried.point[None], feature)
            else:
                self.kept[key] = True
            return tried is None
        encoding = Encoding(problem)
        bound = Bound(encoding)
        left = [a for a, alternative in enumerate(problem.alternatives) if not bound.refutes(alternative)]
        if left and key not in self.kept:
            found = self._looked(replace(problem, alternatives=tuple(problem.alternatives[a] for a in left)))
            if found is not None:
                self.remember(found, feature)
                return False
        self.kept[key] = not left
        return self._asked(encoding, left, key) if self.strict else True

    def _looked(self, problem: Problem) -> Int64[np.ndarray, "points features"] | None:
        """Points that satisfy an alternative, if simulation finds some: drawn, near the last, or climbed to."""
        points = np.stack([values[self.rng.integers(0, values.size, SAMPLES)] for values in problem.allowed], axis=1)
        # What turned the answer before may do so still, with the features that are fixed again put back.
        last = self.pool[-KEPT:]
        last = np.where(self.permitted(last, problem.allowed), last, self.base)
        points = np.concatenate([last, points])
        totals = problem.evaluate(points)
        which = problem.satisfied(totals)
        good = np.flatnonzero(which >= 0)
        if good.size:
            return np.asarray(points[good[:RUNS]])
        slacks = [slack_of(alternative, totals) for alternative in problem.alternatives]
        best = int(np.argmax([slack.max() for slack in slacks]))
        start = points[np.argsort(-slacks[best], kind="stable")[:1]]
        found = climb(problem, best, start, self.effort, self.rng, beam=1)
        return None if found is None else found.point[None]

    def _asked(self, encoding: Encoding, left: list[int], key: bytes) -> bool | None:
        """The same by a solver, whose formula has the fixed features folded away."""
        for a in left:
            if self.effort.late:
                return None
            try:
                answer = self._ask(encoding, encoding.problem.alternatives[a].forms)
            except TooLargeError:
                return None
            if answer is None:
                return None
            if isinstance(answer, np.ndarray):
                self.remember(answer[None])
                return False
        self.kept[key] = True
        return True

    def _ask(self, encoding: Encoding, forms: tuple[Form, ...]) -> "np.ndarray | bool | None":
        """A point at which the forms hold; False if there is none; None if that was not decided."""
        from pysat.solvers import Solver

        cnf = encoding.formula(forms)
        if has_empty_clause(cnf):
            return False
        with Solver(name="cadical195", bootstrap_with=clause_lists(cnf.literals)) as solver:
            answer = limited(solver, [], self.effort)
            return encoding.point(solver.get_model())[0] if answer else answer

    def permitted(self, points: np.ndarray, allowed: Allowed) -> Bool[np.ndarray, "points features"]:
        """Whether the value of each feature is one that it may have."""
        sizes = np.fromiter((values.size for values in allowed), np.int64, len(allowed))
        flags = np.zeros(self.starts[-1], bool)
        flags[np.concatenate(allowed) + np.repeat(self.starts[:-1], sizes)] = True
        return np.asarray(flags[points + self.starts[:-1]])

    def remember(self, points: Int64[np.ndarray, "points features"], feature: int | None = None) -> None:
        """Keep what is nearest to the row of points with another answer; above all in one feature, if it is given."""
        near = self._nearer(np.resize(points, (max(RUNS, len(points)), self.base.size)), feature)
        new = [point for point in np.unique(near, axis=0) if point.tobytes() not in self.known]
        self.known.update(point.tobytes() for point in new)
        self.pool = np.concatenate([self.pool, *(point[None] for point in new)])

    def _nearer(
        self, points: Int64[np.ndarray, "points features"], feature: int | None
    ) -> Int64[np.ndarray, "points features"]:
        """The points with features put back, each in an order of its own, then numbers moved back, by halving.

        Of hundreds of features that differ few are needed: they are put back many at a time, then fewer, then each.
        """
        points = points.copy()
        order = self.rng.permuted(np.tile(np.arange(self.base.size), (len(points), 1)), axis=1)
        if feature is not None:
            self._halve(points, np.full(len(points), feature))
        many = self.base.size
        while many > 1:
            columns = self._differing(points, order)
            many = max(1, min(many // 4, len(columns) // 4))
            for start in range(0, len(columns), many):
                some = columns[start : start + many]
                self._move(points, some, self.base[some])
        for column in self._differing(points, order):
            self._halve(points, column)
        return points

    def _halve(self, points: np.ndarray, features: np.ndarray) -> None:
        """Move a feature of each point, where it is a number, as near to the row's as halving finds."""
        low, high = self.base[features], points[np.arange(len(points)), features]
        numbers = self.ordered[low + self.starts[features]] & self.ordered[high + self.starts[features]]
        while np.any(numbers & (np.abs(high - low) > 1)):
            middle = np.where(numbers, (low + high) // 2, high)
            good = self._move(points, features, middle)
            low, high = np.where(good, low, middle), np.where(good, middle, high)

    def _differing(self, points: np.ndarray, order: np.ndarray) -> Int64[np.ndarray, "steps points"]:
        """The features of each point, those first that are not as in the row, as many of them as differ at most."""
        same = np.take_along_axis(points, order, 1) == self.base[order]
        first = np.take_along_axis(order, np.argsort(same, axis=1, kind="stable"), 1)
        return first.T[: int((~same).sum(axis=1).max(initial=0))]

    def _move(self, points: np.ndarray, features: np.ndarray, values: np.ndarray) -> Bool[np.ndarray, " points"]:
        """Give one feature of each point, or some, other values where its answer is still another one; says where."""
        trial = points.copy()
        trial[np.arange(len(points)), features] = values
        good = np.asarray(self.problem.satisfied(self.problem.evaluate(trial)) >= 0)
        points[good] = trial[good]
        return good

    def confirm(self) -> None:
        """Check all points that were kept by the definition of a circuit's meaning, as ``decide.replay`` does one."""
        if len(self.pool):
            model = self.problem.models[0]
            totals = model.sums.totals(simulate(model.circuit, self.problem.domain.bits(self.pool)))
            good = (self.problem.satisfied(totals) >= 0) & self.permitted(self.pool, self.everything).all(axis=1)
            if not good.all():
                raise AssertionError(
                    "points were found that the reference does not confirm; this is a defect, report it"
                )


class Region:
    """A region that changes feature by feature, and of each point that was found in which features it is outside."""

    def __init__(self, search: Search, allowed: Allowed) -> None:
        self.search, self.allowed = search, list(allowed)
        self.outside = np.zeros((0, len(allowed)), bool)
        self.count = np.zeros(0, np.int64)

    def blocked(self, i: int) -> Int64[np.ndarray, " some"]:
        """The values of a feature with which a point that was found is in the region but for that feature."""
        new = self.search.pool[len(self.outside) :]
        if len(new):
            self.outside = np.concatenate([self.outside, ~self.search.permitted(new, self.allowed)])
            self.count = self.outside.sum(axis=1)
        return np.unique(self.search.pool[self.count == self.outside[:, i], i])

    @property
    def refuted(self) -> bool:
        """Whether a point that was found is in the region."""
        return bool(self.search.permitted(self.search.pool, self.allowed).all(axis=1).any())

    def changed(self, i: int, values: Int64[np.ndarray, " some"]) -> Allowed:
        """The region with other values of a feature."""
        return [*self.allowed[:i], values, *self.allowed[i + 1 :]]

    def change(self, i: int, values: Int64[np.ndarray, " some"]) -> None:
        """Give a feature other values."""
        self.blocked(i)  # all points are looked at
        self.allowed = self.changed(i, values)
        outside = ~np.isin(self.search.pool[:, i], values)
        self.count += outside.astype(np.int64) - self.outside[:, i]
        self.outside[:, i] = outside
