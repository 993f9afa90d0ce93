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
asked at every step, and what it does not decide stays fixed. Intervals are proved as the reason was; if that is too
hard, the half of the features that matters most is widened, and so on.
"""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from jaxtyping import Bool, Int64

from gatefit.circuit.ir import Circuit
from gatefit.circuit.logic.cnf import clause_lists
from gatefit.circuit.prove.questions import Effort
from gatefit.circuit.verify import certificate as files
from gatefit.circuit.verify import exhaust
from gatefit.circuit.verify.answers import Answer, Condition, Explanation, Proved, Undecided
from gatefit.circuit.verify.attack import climb, slack_of
from gatefit.circuit.verify.decide import Outcome, decide, replay
from gatefit.circuit.verify.domain import Domain
from gatefit.circuit.verify.encode import Encoding, TooLargeError
from gatefit.circuit.verify.exhaust import Found
from gatefit.circuit.verify.pose import Posed, name_of, posed, resolve_domain, state_always
from gatefit.circuit.verify.problem import Allowed, Form, Problem
from gatefit.circuit.verify.questions import TIMEOUT, Folder, closest, effort_of
from gatefit.circuit.verify.rows import condition, read_row
from gatefit.circuit.verify.sat import has_empty_clause, limited
from gatefit.circuit.verify.supports import Bound

SAMPLES: Final = 1024
FEW: Final = 2**14
"""Points drawn in a region before a solver is asked; and points that are all tried instead."""
KEPT: Final = 64
"""Points with another answer, of those found before, that are tried again."""
HOPEFUL: Final = 0.4
STRICT: Final = 0.7
WIDE: Final = 0.9
"""Of the time that is given, until when guesses are proved, a solver is asked at every step, intervals are proved."""
MOST_CONFLICTS: Final = 10_000
"""Of a solver, for the proof of a widened reason; beyond that fewer features are widened."""


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
    if widen:
        search.effort, search.strict = until(WIDE), False
        reason = search.wider(prove, reason, lambda: until(WIDE, MOST_CONFLICTS))
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
    return Explanation(proof.statement, seconds, answer, because, len(own.features), minimal, proof, other)


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
        self.effort = effort
        self.rng = np.random.default_rng((seed, 4))
        self.pool = np.empty((0, self.base.size), np.int64)
        """Points with another answer that were found so far."""
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
                self.remember(tried.outcome.found)
            elif not tried.outcome.left or self.strict:
                return tried, minimal
            else:
                self.effort, self.strict = strict, True

    def wider(self, prove: Prove, reason: Tried, effort: Callable[[], Effort]) -> Tried:
        """The reason with its features widened: all of them, or as many as can be proved with the effort."""
        fixed = [i for i in reversed(self.order()) if reason.allowed[i].size < self.everything[i].size]
        count = len(fixed)
        while count and not self.effort.late:
            allowed = self.widen(reason.allowed, fixed[:count])
            tried = prove(allowed, effort())
            if tried.outcome.found is not None:
                self.remember(tried.outcome.found)
            elif not tried.outcome.left:
                return tried
            else:
                count //= 2
        return reason

    def order(self) -> list[int]:
        """The features that have a choice, those that reach least of the outputs first."""
        weights = np.abs(self.problem.models[0].weights).sum(axis=0)
        gains = weights @ self.encoding.reads(self.encoding.outputs[0] >> 1).astype(np.int64)
        free = [i for i, values in enumerate(self.everything) if values.size > 1]
        return sorted(free, key=lambda i: (int(gains[i]), i))

    def delete(self) -> tuple[Allowed, bool]:
        """A subset-minimal reason, each of its features fixed; and whether every test was decided."""
        order = self.order()
        allowed: Allowed = [np.array([value], np.int64) for value in self.base]
        minimal = True
        for i in order:
            trial = list(allowed)
            trial[i] = self.everything[i]
            keeps = self.keeps(trial)
            if keeps is None:
                minimal = False
            if keeps:
                allowed = trial
        return allowed, minimal

    def widen(self, allowed: Allowed, features: list[int]) -> Allowed:
        """As many values of some features as keep the answer, one feature after the other."""
        allowed = list(allowed)
        for i in features:
            feature = self.problem.domain.features[i]
            numbers = np.intersect1d(self.everything[i], feature.levels())
            if np.any(numbers == self.base[i]):
                for side in (1, -1):
                    allowed[i] = self._stretched(allowed, i, numbers, side)
                rest = np.setdiff1d(self.everything[i], numbers)
            else:
                rest = np.setdiff1d(self.everything[i], allowed[i])
            for value in rest.tolist():
                trial = list(allowed)
                trial[i] = np.union1d(allowed[i], value)
                if self.keeps(trial):
                    allowed = trial
        return allowed

    def _stretched(self, allowed: Allowed, i: int, numbers: Int64[np.ndarray, " some"], side: int) -> np.ndarray:
        """An interval of feature ``i`` stretched to one side as far as the answer is kept, by halving."""
        edge = allowed[i].max() if side > 0 else allowed[i].min()
        beyond = numbers[numbers > edge] if side > 0 else numbers[numbers < edge][::-1]
        good, bad = 0, beyond.size + 1
        count = beyond.size  # all the way first: many features end where nothing else matters
        while good < bad - 1:
            trial = list(allowed)
            trial[i] = np.union1d(allowed[i], beyond[:count])
            if self.keeps(trial):
                good = count
            else:
                bad = count
            count = (good + bad) // 2
        return np.union1d(allowed[i], beyond[:good])

    def keeps(self, allowed: Allowed) -> bool | None:
        """Whether the answer is the same everywhere in a region, as far as is known; None if that was not decided."""
        if self._permitted(self.pool, allowed).all(axis=1).any():
            return False
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
                self.remember(tried)
            else:
                self.kept[key] = True
            return tried is None
        encoding = Encoding(problem)
        bound = Bound(encoding)
        left = [a for a, alternative in enumerate(problem.alternatives) if not bound.refutes(alternative)]
        if left and key not in self.kept:
            found = self._looked(replace(problem, alternatives=tuple(problem.alternatives[a] for a in left)))
            if found is not None:
                self.remember(replace(found, alternative=left[found.alternative]))
                return False
        self.kept[key] = not left
        return self._asked(encoding, left, key) if self.strict else True

    def _looked(self, problem: Problem) -> Found | None:
        """A point that satisfies an alternative, if one is found by simulation: drawn, near the last, or climbed to."""
        points = np.stack([values[self.rng.integers(0, values.size, SAMPLES)] for values in problem.allowed], axis=1)
        # What turned the answer before may do so still, with the features that are fixed again put back.
        last = self.pool[-KEPT:]
        last = np.where(self._permitted(last, problem.allowed), last, self.base)
        points = np.concatenate([last, points])
        totals = problem.evaluate(points)
        which = problem.satisfied(totals)
        good = np.flatnonzero(which >= 0)
        if good.size:
            return Found(int(which[good[0]]), points[good[0]])
        slacks = [slack_of(alternative, totals) for alternative in problem.alternatives]
        best = int(np.argmax([slack.max() for slack in slacks]))
        start = points[np.argsort(-slacks[best], kind="stable")[:1]]
        return climb(problem, best, start, self.effort, self.rng, beam=1)

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
                self.remember(Found(a, answer))
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

    def _permitted(self, points: np.ndarray, allowed: Allowed) -> Bool[np.ndarray, "points features"]:
        """Whether the value of each feature is one that it may have."""
        sizes = np.fromiter((values.size for values in allowed), np.int64, len(allowed))
        flags = np.zeros(self.starts[-1], bool)
        flags[np.concatenate(allowed) + np.repeat(self.starts[:-1], sizes)] = True
        return np.asarray(flags[points + self.starts[:-1]])

    def remember(self, found: Found) -> None:
        """Keep a point with another answer, once the definition confirms it."""
        replay(self.problem, found)
        self.pool = np.concatenate([self.pool, found.point[None]])
