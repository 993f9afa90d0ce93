"""An alternative as a question to a SAT solver: a point, or a refutation that was checked.

The solver is CaDiCaL, which writes its proof; ``prove.rup`` checks it, so that "no" rests on the formula and on that
checker alone. "Yes" rests on nothing: the point is replayed. Work is done in slices of conflicts, with a look at the
clock between two of them; where no time limit is hit, the answer does not depend on how fast the machine is.
"""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from jaxtyping import Int32, Int64

from gatefit.circuit.logic.cnf import DELETE, Cnf, clause_lists
from gatefit.circuit.prove.questions import Effort
from gatefit.circuit.prove.rup import find_flaw
from gatefit.circuit.verify.encode import Encoding
from gatefit.circuit.verify.problem import Form

SLICE: Final = 2_000
"""Conflicts between two looks at the clock."""


@dataclass(frozen=True, eq=False)
class Refutation:
    """A formula and the proof that it is unsatisfiable; it has been checked."""

    cnf: Cnf
    proof: Int32[np.ndarray, " literals"]


@dataclass(frozen=True, eq=False)
class Solution:
    """A point at which the forms hold, as the formula has it."""

    point: Int64[np.ndarray, " features"]
    other: int | None


def ask(encoding: Encoding, forms: tuple[Form, ...], effort: Effort) -> Refutation | Solution | None:
    """Whether the forms can hold together somewhere in the space; None if that was not decided."""
    from pysat.solvers import Solver

    cnf = encoding.formula(forms)
    if has_empty_clause(cnf):
        return Refutation(cnf, np.zeros(1, np.int32))
    with Solver(name="cadical195", bootstrap_with=clause_lists(cnf.literals), with_proof=True) as solver:
        answer = limited(solver, [], effort)
        if answer is None:
            return None
        if answer:
            point, other = encoding.point(solver.get_model())
            return Solution(point, other)
        lines: list[str] = solver.get_proof()
    proof = proof_of(lines)
    flaw = find_flaw(cnf, proof)
    if flaw is not None:  # deletions can only make a proof fail
        proof = proof_of([line for line in lines if line[0] != "d"])
        flaw = find_flaw(cnf, proof)
    if flaw is not None:
        raise AssertionError(f"the solver's proof does not pass its check: {flaw}; this is a defect, report it")
    return Refutation(cnf, proof)


def has_empty_clause(cnf: Cnf) -> bool:
    """Whether the formula says itself that it cannot hold."""
    ends = cnf.literals == 0
    return bool(ends[:1].any() or np.any(ends[1:] & ends[:-1]))


def limited(solver: Any, assumptions: list[int], effort: Effort) -> bool | None:
    """The solver's answer, in slices, until the effort is spent."""
    while not effort.spent:
        before = solver.accum_stats()["conflicts"]
        solver.conf_budget(int(min(SLICE, max(1, effort.conflicts))))
        answer: bool | None = solver.solve_limited(assumptions=assumptions)
        effort.conflicts -= solver.accum_stats()["conflicts"] - before
        if answer is not None:
            return answer
    return None


def proof_of(lines: list[str]) -> Int32[np.ndarray, " literals"]:
    """DRAT text lines as the flat steps that ``prove.rup`` reads, with the empty clause at the end."""
    steps: list[int] = []
    for line in lines:
        if line[0] == "d":
            steps.append(DELETE)
            steps += map(int, line[1:].split())
        else:
            steps += map(int, line.split())
    if not lines or lines[-1].strip() != "0":
        steps.append(0)
    return np.array(steps, np.int32)
