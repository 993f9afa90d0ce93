"""The order in which a problem is tried, from what costs nothing to what may take long.

    bound          supports alone refute an alternative
    attack         simulation finds a point
    exhaustive     every point is tried, where they are few
    decomposed     at most three changes, by what each output reads
    sat            one alternative after the other, the closest first: a point or a checked refutation

What is tried depends on sizes and on counts of conflicts, never on the clock: where no time limit is hit, the same
question has the same answer on every machine. Every point is replayed (``replay``) before it is given out.
"""

from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
from jaxtyping import Int64

from gatefit.circuit.prove.questions import Effort
from gatefit.circuit.simulate import simulate
from gatefit.circuit.verify import decompose, exhaust
from gatefit.circuit.verify.answers import METHODS
from gatefit.circuit.verify.attack import attack
from gatefit.circuit.verify.encode import Encoding, TooLargeError
from gatefit.circuit.verify.exhaust import Found
from gatefit.circuit.verify.problem import Problem
from gatefit.circuit.verify.sat import Refutation, Solution, ask
from gatefit.circuit.verify.supports import Bound

FEW_POINTS: Final = 2**14
FEW_WORK: Final = 4e9
FEW_A_GATE: Final = 2**13
"""Points that are tried before anything else; work (points times gates) that is done before a solver is asked; and
points for each gate: a solver's conflicts take the longer the more gates there are."""
SHORT: Final = 5_000
"""Conflicts of a first look by the solver, where trying every point would take seconds."""


@dataclass(frozen=True, eq=False)
class Closed:
    """How an alternative was refuted; by SAT with a formula of all its forms, or of the implied ones alone."""

    method: str
    refutation: Refutation | None = None
    implied: bool = False


@dataclass(eq=False)
class Outcome:
    """A point, or how each alternative was refuted, or which are left and why."""

    found: Found | None = None
    closed: dict[int, Closed] = field(default_factory=dict)
    left: list[int] = field(default_factory=list)
    reason: str = ""

    @property
    def method(self) -> str:
        """The strongest method that was needed."""
        return max((closed.method for closed in self.closed.values()), key=METHODS.index, default="bound")


def decide(problem: Problem, effort: Effort, *, seed: int = 0, solver: bool = True, keep: bool = False) -> Outcome:
    """Whether some point of the space satisfies some alternative; ``keep`` the refutations for a certificate."""
    outcome = Outcome()
    encoding = Encoding(problem)
    bound = Bound(encoding)
    for number, alternative in enumerate(problem.alternatives):
        if bound.refutes(alternative):
            outcome.closed[number] = Closed("bound")
    left = [number for number in range(len(problem.alternatives)) if number not in outcome.closed]
    if not left:
        return outcome
    rest = replace(problem, alternatives=tuple(problem.alternatives[number] for number in left))

    def settled(found: Found | bool | None, method: str) -> bool:
        """Whether an engine that tries everything has answered."""
        if found is None:
            outcome.closed.update({number: Closed(method) for number in left})
        elif isinstance(found, Found):
            outcome.found = replace(found, alternative=left[found.alternative])
        return found is not False

    tries_all = exhaust.fits(rest)
    gates = exhaust.gates_of(rest.models)
    before = tries_all and (rest.points() * gates <= FEW_WORK or rest.points() <= FEW_A_GATE * gates)
    if tries_all and rest.points() <= FEW_POINTS and settled(exhaust.try_all(rest, effort), "exhaustive"):
        return outcome
    found = attack(rest, effort, seed)
    if found is not None:
        settled(found, "")
        return outcome
    if before and settled(exhaust.try_all(rest, effort), "exhaustive"):
        return outcome
    if decompose.serves(rest) and not effort.late:
        tables = decompose.Tables(rest, encoding)
        answer = decompose.decompose(tables, list(range(len(left))), effort) if decompose.fits(rest, tables) else False
        if settled(answer, "decomposed"):
            return outcome
    if solver and tries_all:
        short = Effort(min(SHORT, effort.conflicts), effort.deadline)
        _solve(problem, encoding, left, short, outcome, keep)
        if outcome.found is not None or not outcome.left:
            return outcome
        left = outcome.left
        rest = replace(problem, alternatives=tuple(problem.alternatives[number] for number in left))
    if tries_all and settled(exhaust.try_all(rest, effort), "exhaustive"):
        outcome.left = []
        return outcome
    if solver:
        _solve(problem, encoding, left, effort, outcome, keep)
    else:
        outcome.left, outcome.reason = left, "not tried by a solver"
    return outcome


def _solve(problem: Problem, encoding: Encoding, left: list[int], effort: Effort, outcome: Outcome, keep: bool) -> None:
    """Ask about the alternatives that are left, the closest first."""
    outcome.left, outcome.reason = [], ""
    for number in _closest_first(problem, left):
        if effort.spent:
            outcome.left.append(number)
            continue
        alternative = problem.alternatives[number]
        answer: Refutation | Solution | None = None
        implied = bool(alternative.implied)
        try:
            if implied:  # what follows from the forms is about fewer gates: often enough to refute them
                answer = ask(encoding, alternative.implied, effort)
            if not isinstance(answer, Refutation):
                implied = False
                answer = ask(encoding, (*alternative.forms, *alternative.implied), effort)
        except TooLargeError as error:
            outcome.left.append(number)
            outcome.reason = str(error)
            continue
        if isinstance(answer, Solution):
            outcome.found = Found(number, answer.point, answer.other)
            return
        if answer is None:
            outcome.left.append(number)
        else:
            outcome.closed[number] = Closed("sat", answer if keep else None, implied)
    if outcome.left and not outcome.reason:
        outcome.reason = "out of time" if effort.late else f"more than {SHORT:,} conflicts"


def _closest_first(problem: Problem, numbers: list[int]) -> list[int]:
    """Alternatives by how little their forms lack at the base."""
    if problem.totals is None:
        return numbers
    totals = problem.totals

    def lack(number: int) -> int:
        return max(-int(f.coefficients @ totals) - f.constant for f in problem.alternatives[number].forms)

    return sorted(numbers, key=lack)


def totals_by_definition(problem: Problem, found: Found) -> Int64[np.ndarray, " totals"]:
    """The totals at a point as ``circuit.simulate`` and the readout's own sums give them."""
    points = [found.point]
    if problem.second is not None:
        second = found.point.copy()
        second[problem.second] = found.other
        points.append(second)
    parts = []
    for k, model in enumerate(problem.models):
        bits = problem.domain.bits(points[min(k, len(points) - 1)][None])
        parts.append(model.sums.totals(simulate(model.circuit, bits))[0])
    return np.concatenate(parts)


def replay(problem: Problem, found: Found) -> None:
    """Check a point by the definition of a circuit's meaning; what does not hold is a defect of ours."""
    totals = totals_by_definition(problem, found)
    forms = problem.alternatives[found.alternative].forms
    holds = all(int(form.coefficients @ totals) + form.constant >= 0 for form in forms)
    if not holds or not problem.inside(found.point, found.other):
        raise AssertionError("a point was found that the reference does not confirm; this is a defect, report it")
