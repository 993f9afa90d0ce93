"""The refutation checker: against a plain one, against real solvers, and against proofs that are wrong."""

from itertools import product

import numpy as np
import pytest
from pysat.solvers import Solver

from gatefit.circuit.logic.cnf import DELETE, Cnf
from gatefit.circuit.prove.rup import find_flaw


def flat(clauses):
    return np.array([v for clause in clauses for v in [*clause, 0]], np.int32)


def random_clauses(rng, variables, count, width=3):
    sizes = rng.integers(1, width + 1, count)
    return [(rng.choice([-1, 1], n) * rng.integers(1, variables + 1, n)).tolist() for n in sizes]


def satisfiable(variables, clauses):
    rows = product((False, True), repeat=variables)
    return any(all(any(row[abs(v) - 1] == (v > 0) for v in clause) for clause in clauses) for row in rows)


def plainly_refutes(clauses, steps):
    """The definition, without deletions: each step by unit propagation, up to the empty clause."""

    def conflict(known, assumed):
        true = set(assumed)
        while not any(-v in true for v in true):
            units = []
            for clause in known:
                left = {v for v in clause if -v not in true}
                if not left & true and len(left) < 2:
                    units.append(left)
            if not units:
                return False
            if set() in units:
                return True
            true |= set().union(*units)
        return True

    known = list(clauses)
    if conflict(known, ()):
        return True
    for step in steps:
        if not conflict(known, [-v for v in step]):
            return False
        known.append(step)
        if conflict(known, ()):
            return True
    return False


def test_agrees_with_the_definition_on_random_formulas_and_proofs():
    rng = np.random.default_rng(1)
    accepted = 0
    for _ in range(3000):
        variables = int(rng.integers(1, 6))
        clauses = random_clauses(rng, variables, int(rng.integers(0, 16)))
        steps = random_clauses(rng, variables, int(rng.integers(0, 5)), width=2)
        expected = plainly_refutes(clauses, steps)
        assert (find_flaw(Cnf(variables, flat(clauses)), flat(steps)) is None) == expected
        accepted += expected
    assert 300 < accepted < 2700


def test_never_refutes_a_satisfiable_formula():
    rng = np.random.default_rng(2)
    tried = 0
    for _ in range(4000):
        clauses = random_clauses(rng, 6, int(rng.integers(4, 24)))
        if not satisfiable(6, clauses):
            continue
        tried += 1
        steps = [v for c in random_clauses(rng, 6, 12) for v in ([DELETE] if rng.random() < 0.2 else []) + [*c, 0]]
        assert find_flaw(Cnf(6, flat(clauses)), np.array([*steps, 0], np.int32)) is not None
    assert tried > 500


def solver_proof(name, clauses):
    with Solver(name=name, bootstrap_with=clauses, with_proof=True) as solver:
        if solver.solve():
            return None
        steps = []
        for line in solver.get_proof():
            numbers = [int(v) for v in line.removeprefix("d ").split()]
            steps += [DELETE, *numbers] if line.startswith("d") else numbers
    return np.array([*steps, 0], np.int32)


def hard_clauses(rng, variables=40):
    """Random 3-SAT well above the threshold."""
    return [
        (rng.choice([-1, 1], 3) * (1 + rng.choice(variables, 3, replace=False))).tolist() for _ in range(6 * variables)
    ]


@pytest.mark.parametrize("name", ["glucose4", "cadical195", "lingeling"])
def test_accepts_the_proofs_of_real_solvers(name):
    rng = np.random.default_rng(3)
    for _ in range(5):
        clauses = hard_clauses(rng)
        proof = solver_proof(name, clauses)
        assert proof is not None
        assert find_flaw(Cnf(40, flat(clauses)), proof) is None


def test_damaged_proofs_are_not_believed_for_a_formula_they_do_not_refute():
    """Take one clause away: the formula may become satisfiable, and then no damage may make the proof pass."""
    rng = np.random.default_rng(4)
    refused = 0
    for _ in range(60):
        clauses = hard_clauses(rng, variables=12)
        proof = solver_proof("glucose4", clauses)
        if proof is None:
            continue
        with Solver(name="minisat22", bootstrap_with=clauses) as solver:
            while not solver.solve():
                clauses.pop(int(rng.integers(len(clauses))))
                solver.delete()
                solver.new(bootstrap_with=clauses)
        for _ in range(5):
            damaged = proof.copy()
            at = rng.integers(damaged.size - 1, size=2)
            damaged[at] = np.where(damaged[at] == 0, 0, rng.integers(1, 13, 2))
            assert find_flaw(Cnf(12, flat(clauses)), damaged) is not None
            refused += 1
    assert refused > 100


def test_says_which_step_fails():
    cnf = Cnf(3, flat([[1, 2], [-1, 2], [1, -2], [-1, -2]]))
    assert find_flaw(cnf, flat([[2], []])) is None
    assert find_flaw(cnf, flat([[2]])) is None  # the empty clause follows as soon as 2 is fixed
    assert find_flaw(cnf, flat([[3], [2]])) == "step 1 of the proof does not follow by unit propagation"
    assert find_flaw(cnf, flat([[1, 2, 3], [3]])) == "step 2 of the proof does not follow by unit propagation"
    assert find_flaw(cnf, flat([])) == "the proof ends without reaching the empty clause"
    assert find_flaw(cnf, flat([[]])) == "step 1 of the proof does not follow by unit propagation"


def test_a_deleted_clause_cannot_be_used():
    cnf = Cnf(2, flat([[1, 2], [-1, 2], [1, -2], [-1, -2]]))
    # Deleted in another order of literals than it was given; the second copy of a clause survives.
    assert find_flaw(cnf, np.array([DELETE, 2, -1, 0, 2, 0], np.int32)) == (
        "step 2 of the proof does not follow by unit propagation"
    )
    twice = Cnf(2, flat([[1, 2], [-1, 2], [-1, 2], [1, -2], [-1, -2]]))
    assert find_flaw(twice, np.array([DELETE, 2, -1, 0, 2, 0], np.int32)) is None
    assert find_flaw(cnf, np.array([DELETE, 1, 0, 2, 0], np.int32)) is None  # nothing like it: nothing is deleted


def test_nothing_refutes_the_empty_formula():
    assert find_flaw(Cnf(1, flat([])), flat([])) is not None
    assert find_flaw(Cnf(1, flat([])), flat([[1], [-1], []])) is not None


def test_an_empty_clause_in_the_formula_needs_no_proof():
    assert find_flaw(Cnf(1, flat([[]])), flat([])) is None
    assert find_flaw(Cnf(1, flat([[1, -1]])), flat([])) is not None


@pytest.mark.parametrize(
    ("formula", "proof", "flaw"),
    [
        ([1], [1, 0], "the formula does not end with 0"),
        ([1, 0], [1], "the proof does not end with 0"),
        ([1, 0], [3, 0], "the proof has a literal beyond variable 2"),
        ([-3, 0], [1, 0], "the formula has a literal beyond variable 2"),
        ([1, 0], [1, DELETE, 0], "the proof has a deletion mark inside a step"),
        ([DELETE, 1, 0], [1, 0], "the formula has a literal beyond variable 2"),
    ],
)
def test_malformed_arrays_are_refused(formula, proof, flaw):
    assert find_flaw(Cnf(2, np.array(formula, np.int32)), np.array(proof, np.int32)) == flaw
