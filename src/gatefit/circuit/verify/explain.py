"""Why a row is answered as it is: features that force the answer, and how far each of them may move.

    1. delete    one feature after the other is let go, unless the answer can then be another: what is left is a
                 subset-minimal reason (an abductive explanation), the least influential features being tried first
    2. widen     each feature that is left: a number to the widest interval, a category to all that keep the answer
    3. prove     "whatever the others are, the answer is this" is settled like any other statement
    4. why not   the smallest change that turns the answer (``closest``)

The search of steps 1 and 2 is trusted with nothing: that a feature is needed is shown by an input, which is kept and
replayed, and that the rest suffice is proved in step 3. So its solver writes no proof.
"""

import time
from typing import Any, Final

import numpy as np
from jaxtyping import Bool, Int64

from gatefit.circuit.ir import Circuit
from gatefit.circuit.logic.cnf import clause_lists
from gatefit.circuit.prove.questions import Effort
from gatefit.circuit.verify import exhaust
from gatefit.circuit.verify.answers import Answer, Condition, Explanation, Proved, Undecided
from gatefit.circuit.verify.decide import replay
from gatefit.circuit.verify.domain import Domain
from gatefit.circuit.verify.encode import Encoding, TooLargeError
from gatefit.circuit.verify.exhaust import Found
from gatefit.circuit.verify.pose import Posed, name_of, posed, resolve_domain, state_always
from gatefit.circuit.verify.problem import Allowed, Form, Problem
from gatefit.circuit.verify.questions import TIMEOUT, Folder, closest, effort_of, settle
from gatefit.circuit.verify.rows import condition, read_row
from gatefit.circuit.verify.sat import has_empty_clause, limited
from gatefit.circuit.verify.supports import supports

SAMPLES: Final = 1024
FEW: Final = 2**14
"""Points drawn in a region before a solver is asked; and points that are all tried instead."""
SEARCH_SHARE: Final = 0.6
"""Of the time that is given, for the search; the proof and the nearest counterexample have the rest."""


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
    effort = effort_of(timeout)
    own = resolve_domain((circuit,), domain)
    row, bits = read_row(circuit, x)
    point = own.locate(bits[None])[0]
    fixed: Allowed = [np.array([value], np.int64) for value in point]
    asked = posed(state_always(circuit, row, fixed, own, tolerance), (circuit,), own)
    deadline = effort.deadline if timeout is None else start + SEARCH_SHARE * timeout
    search = Search(asked, Effort(deadline=deadline), seed)
    allowed, minimal = search.delete()
    if widen:
        allowed = search.widen(allowed)
    reason = posed(state_always(circuit, row, allowed, own, tolerance), (circuit,), own)
    if timeout is not None:  # the proof has its share of the time even if the search has taken more than its own
        effort = Effort(deadline=max(effort.deadline, time.monotonic() + (1 - SEARCH_SHARE) * timeout))
    proof = settle(reason, effort, certificate, seed=seed)
    if not isinstance(proof, Proved):
        if not isinstance(proof, Undecided):
            raise AssertionError(f"a reason was found that is none: {proof}; this is a defect, report it")
        return Undecided(proof.statement, time.monotonic() - start, proof.reason, "")
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


class Search:
    """Regions around a row in which its answer is kept, as far as a solver that writes no proof can tell."""

    def __init__(self, asked: Posed, effort: Effort, seed: int) -> None:
        problem = asked.problem
        assert problem.base is not None
        self.base = problem.base
        self.everything: Allowed = problem.domain.usual_and(self.base)
        self.problem = Problem(
            problem.domain, problem.models, self.everything, problem.alternatives, self.base, totals=problem.totals
        )
        self.effort = effort
        self.rng = np.random.default_rng((seed, 4))
        self.pool = np.empty((0, self.base.size), np.int64)
        """Points with another answer that were found so far."""
        self.encoding = Encoding(self.problem)

    def order(self) -> list[int]:
        """The features that have a choice, those that reach least of the outputs first."""
        reach = supports(self.encoding)
        nodes = self.encoding.outputs[0] >> 1
        weights = np.abs(self.problem.models[0].weights).sum(axis=0)
        bits = np.unpackbits(reach[nodes].view(np.uint8), axis=1, bitorder="little", count=self.base.size)
        gains = weights @ bits.astype(np.int64)
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

    def widen(self, allowed: Allowed) -> Allowed:
        """As many values of each feature that is not free as keep the answer, one feature after the other."""
        allowed = list(allowed)
        for i in reversed(self.order()):
            if allowed[i].size == self.everything[i].size:
                continue
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
        """Whether the answer is the same everywhere in a region; None if that was not decided."""
        if self._inside(self.pool, allowed).any():
            return False
        problem = Problem(
            self.problem.domain, self.problem.models, allowed, self.problem.alternatives, self.base,
            totals=self.problem.totals,
        )  # fmt: skip
        if problem.points() <= FEW:
            found = exhaust.try_all(problem)
            if isinstance(found, Found):
                self._remember(found)
            return found is None
        points = np.stack([values[self.rng.integers(0, values.size, SAMPLES)] for values in allowed], axis=1)
        which = problem.satisfied(problem.evaluate(points))
        if (which >= 0).any():
            first = int(np.flatnonzero(which >= 0)[0])
            self._remember(Found(int(which[first]), points[first]))
            return False
        # Asked afresh: with the features that are fixed folded away, little of the circuit is left.
        encoding = Encoding(problem)
        for alternative in problem.alternatives:
            if self.effort.late:
                return None
            try:
                answer = self._ask(encoding, alternative.forms)
            except TooLargeError:
                return None
            if answer is None:
                return None
            if isinstance(answer, np.ndarray):
                self._remember(Found(int(problem.satisfied(problem.evaluate(answer[None]))[0]), answer))
                return False
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

    def _inside(self, points: np.ndarray, allowed: Allowed) -> Bool[np.ndarray, " points"]:
        inside = np.ones(len(points), bool)
        for i, values in enumerate(allowed):
            if values.size < self.everything[i].size:
                inside &= np.isin(points[:, i], values)
        return inside

    def _remember(self, found: Found) -> None:
        replay(self.problem, found)
        self.pool = np.concatenate([self.pool, found.point[None]])
