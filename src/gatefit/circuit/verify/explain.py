"""Why a row is answered as it is: features that force the answer, and how far each of them may move.

    1. delete    one feature after the other is let go, unless the answer can then be another: what is left is a
                 subset-minimal reason (an abductive explanation), the least influential features being tried first
    2. widen     each feature that is left: a number to the widest interval, a category to all that keep the answer
    3. prove     "whatever the others are, the answer is this" is settled like any other statement
    4. why not   the smallest change that turns the answer (``closest``)

The search of steps 1 and 2 is trusted with nothing: that a feature is needed is shown by an input, which is kept and
replayed, and that the rest suffice is proved in step 3. So it may use what writes no proof: a solver with native
cardinality constraints, asked again and again under assumptions.
"""

import time
from typing import Any, Final

import numpy as np
from jaxtyping import Bool, Int32, Int64

from gatefit.circuit.ir import Circuit
from gatefit.circuit.logic.cnf import clause_lists, gate_clauses
from gatefit.circuit.logic.literals import dimacs
from gatefit.circuit.prove.questions import Effort
from gatefit.circuit.verify import exhaust
from gatefit.circuit.verify.answers import Answer, Condition, Explanation, Proved, Undecided
from gatefit.circuit.verify.decide import replay
from gatefit.circuit.verify.domain import Domain
from gatefit.circuit.verify.encode import Clauses, Encoding, at_most
from gatefit.circuit.verify.exhaust import Found
from gatefit.circuit.verify.pose import Posed, name_of, posed, resolve_domain, state_always
from gatefit.circuit.verify.problem import Allowed, Problem
from gatefit.circuit.verify.questions import TIMEOUT, Folder, closest, effort_of, settle
from gatefit.circuit.verify.rows import condition, read_row
from gatefit.circuit.verify.sat import limited
from gatefit.circuit.verify.supports import supports

SAMPLES: Final = 1024
FEW: Final = 2**14
"""Points drawn in a region before a solver is asked; and points that are all tried instead."""
_MOST_COPIES: Final = 4
"""Literals that a native constraint counts for each output; weights that take more are left to a totalizer."""
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
    with Search(asked, Effort(deadline=deadline), seed) as search:
        allowed, minimal = search.delete()
        if widen:
            allowed = search.widen(allowed)
    reason = posed(state_always(circuit, row, allowed, own, tolerance), (circuit,), own)
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
        self.solvers: dict[int, _Solver] = {}
        self.unneeded: Allowed | None = None

    def __enter__(self) -> "Search":
        return self

    def __exit__(self, *_: object) -> None:
        for solver in self.solvers.values():
            solver.close()

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
        kept, minimal = set(order), True
        for i in order:
            if i not in kept:
                continue
            trial = list(allowed)
            trial[i] = self.everything[i]
            keeps = self.keeps(trial)
            if keeps is None:
                minimal = False
            if not keeps:
                continue
            kept.discard(i)
            allowed = trial
            for j in kept.copy() if self.unneeded is not None else ():
                if self.unneeded is not None and self.unneeded[j].size == self.everything[j].size:
                    kept.discard(j)  # the solver did not even use that it was fixed
                    allowed[j] = self.everything[j]
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
        self.unneeded = None
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
        needed: list[np.ndarray] = [np.empty(0, np.int64) for _ in allowed]
        for number in range(len(problem.alternatives)):
            if self.effort.late:
                return None
            solver = self.solvers.get(number)
            if solver is None:
                solver = self.solvers[number] = _Solver(self.encoding, number)
            answer = solver.ask(allowed, self.effort)
            if answer is None:
                return None
            if isinstance(answer, np.ndarray):
                self._remember(Found(number, answer))
                return False
            needed = [np.union1d(a, b) for a, b in zip(needed, answer, strict=True)]
        self.unneeded = [
            np.setdiff1d(values, excluded) for values, excluded in zip(self.everything, needed, strict=True)
        ]
        return True

    def _inside(self, points: np.ndarray, allowed: Allowed) -> Bool[np.ndarray, " points"]:
        inside = np.ones(len(points), bool)
        for i, values in enumerate(allowed):
            if values.size < self.everything[i].size:
                inside &= np.isin(points[:, i], values)
        return inside

    def _remember(self, found: Found) -> None:
        replay(self.problem, found)
        self.pool = np.concatenate([self.pool, found.point[None]])


class _Solver:
    """One alternative over the whole domain; a region is assumed by excluding values."""

    def __init__(self, encoding: Encoding, number: int) -> None:
        from pysat.solvers import Solver

        self.encoding = encoding
        problem = encoding.problem
        form = problem.alternatives[number].forms[0]
        literals, weights, need = encoding.terms(form)
        graph = encoding.graph
        clauses = Clauses(graph.nodes)
        encoding.domain_clauses(clauses)
        clauses.add([-1, 0])
        results = np.arange(graph.inputs + 2, graph.nodes + 1, dtype=np.int32)
        clauses.add(gate_clauses(graph.gates, graph.operands + np.int32(1), results))
        false, most = -dimacs(literals), int(weights.sum()) - need
        unit = int(np.gcd.reduce(weights)) if weights.size else 1
        native = most >= 0 and int(weights.sum()) // unit <= _MOST_COPIES * weights.size
        if native:
            false = _repeated(clauses, false, weights // unit)
        else:
            at_most(clauses, false, weights, most)
        self.excluded: list[dict[int, int]] = []
        for i, columns in enumerate(encoding.columns):
            own: dict[int, int] = {}
            for v, value in enumerate(problem.allowed[i].tolist()) if columns.values.shape[1] else ():
                own[value] = clauses.fresh()
                variables = encoding.first[i] + 1 + np.arange(columns.values.shape[1])
                told = _telling(columns.values, v)
                clauses.add([-own[value], *np.where(columns.values[v], -variables, variables)[told].tolist(), 0])
            self.excluded.append(own)
        self.meaning = {variable: (i, v) for i, own in enumerate(self.excluded) for v, variable in own.items()}
        self.solver = Solver(
            name="gluecard4" if native else "glucose4", bootstrap_with=clause_lists(clauses.cnf().literals)
        )
        if native and int(weights.sum()) > most:
            self.solver.add_atmost(false.tolist(), most // unit)

    def ask(self, allowed: Allowed, effort: Effort) -> "np.ndarray | Allowed | None":
        """A point, or the values of each feature that had to be excluded, or None."""
        assumptions = [
            variable
            for own, values in zip(self.excluded, allowed, strict=True)
            for value, variable in own.items()
            if value not in values
        ]
        answer = limited(self.solver, assumptions, effort)
        if answer is None:
            return None
        if answer:
            return self.encoding.point(self.solver.get_model())[0]
        needed: list[list[int]] = [[] for _ in allowed]
        for literal in self.solver.get_core() or ():
            i, value = self.meaning[literal]
            needed[i].append(value)
        return [np.array(sorted(values), np.int64) for values in needed]

    def close(self) -> None:
        """Free the solver."""
        self.solver.delete()


def _repeated(
    clauses: Clauses, literals: Int32[np.ndarray, " n"], weights: Int64[np.ndarray, " n"]
) -> Int32[np.ndarray, " more"]:
    """Each literal as often as it weighs: native cardinality constraints count, and count no literal twice."""
    found = literals.tolist()
    for literal, weight in zip(literals.tolist(), weights.tolist(), strict=True):
        for _ in range(weight - 1):
            copy = clauses.fresh()
            clauses.add([-literal, copy, 0, literal, -copy, 0])
            found.append(copy)
    return np.array(found, np.int32)


def _telling(values: Bool[np.ndarray, "patterns columns"], number: int) -> list[int]:
    """A few columns that tell one pattern from all others."""
    differs = values != values[number]
    left = differs.any(axis=1)
    told: list[int] = []
    while left.any():
        best = int(differs[left].sum(axis=0).argmax())
        told.append(best)
        left &= ~differs[:, best]
    return told
