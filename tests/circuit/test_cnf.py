"""Gates as clauses, and the text of formulas and proofs."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatefit.circuit.logic.cnf import DELETE, PRIME_CLAUSES, Cnf, clauses_to_text, gate_clauses, proof_from_text
from gatefit.gates import Gate


def clauses_of(literals: np.ndarray) -> list[list[int]]:
    ends = np.flatnonzero(literals == 0)
    return [part[part != 0].tolist() for part in np.split(literals, ends[:-1] + 1)] if literals.size else []


def satisfied(clauses: list[list[int]], values: tuple[int, ...]) -> bool:
    return all(any(values[abs(v) - 1] == (v > 0) for v in clause) for clause in clauses)


@pytest.mark.parametrize("gate", Gate)
def test_clauses_of_a_gate_have_exactly_its_rows_as_models(gate):
    literals = gate_clauses(np.array([gate], np.uint8), np.array([[1], [2]], np.int32), np.array([3], np.int32))
    models = [row for row in product((0, 1), repeat=3) if satisfied(clauses_of(literals), row)]
    assert models == [(a, b, gate(a, b)) for a, b in product((0, 1), repeat=2)]


@pytest.mark.parametrize("gate", Gate)
def test_no_literal_can_be_dropped_from_a_prime_clause(gate):
    rows = [(a, b, gate(a, b)) for a, b in product((0, 1), repeat=2)]
    for clause in PRIME_CLAUSES[gate]:
        literals = [s * (i + 1) for i, s in enumerate(clause) if s]
        assert all(satisfied([literals], row) for row in rows)
        for dropped in literals:
            assert not all(satisfied([[v for v in literals if v != dropped]], row) for row in rows)


@pytest.mark.parametrize("gate", Gate)
def test_a_gate_that_reads_one_variable_twice_has_no_repeated_literal(gate):
    literals = gate_clauses(np.array([gate], np.uint8), np.array([[1], [1]], np.int32), np.array([2], np.int32))
    clauses = clauses_of(literals)
    assert all(len({abs(v) for v in clause}) == len(clause) for clause in clauses)
    assert [row for row in product((0, 1), repeat=2) if satisfied(clauses, row)] == [(a, gate(a, a)) for a in (0, 1)]


def test_dimacs_text():
    cnf = Cnf(12, np.array([1, -2, 0, 12, 0, 0], np.int32))
    assert cnf.to_dimacs() == b"p cnf 12 3\n1 -2 0\n12 0\n0\n"


STEPS = st.lists(
    st.tuples(st.booleans(), st.lists(st.integers(-999, 999).filter(bool), max_size=5)), max_size=20
)  # fmt: skip


@given(STEPS)
def test_proof_text_is_read_back(steps):
    flat = np.array([v for gone, clause in steps for v in ([DELETE] if gone else []) + [*clause, 0]], np.int32)
    text = clauses_to_text(flat)
    assert text.decode().splitlines() == [
        "d " * gone + "".join(f"{v} " for v in clause) + "0" for gone, clause in steps
    ]
    assert np.array_equal(proof_from_text(text, 999), flat)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (b"1 2 0\n3 4\n", 2),  # no 0
        (b"1 2 0", 1),  # no end of line
        (b"1 0\n\n2 0\n", 2),
        (b"1 0\nd\n", 2),
        (b"1 0\nd1 0\n", 2),
        (b"1 d 2 0\n", 1),
        (b"1  2 0\n", 1),
        (b"1\t2 0\n", 1),
        (b"- 0\n", 1),
        (b"-0\n", 1),
        (b"+1 0\n", 1),
        (b"8 0\n", 1),  # beyond the variables
        (b"-99999999999999999999 0\n", 1),
        (b"1 0 2 0\n", 1),
        (b"1 0\r\n", 1),
        (b"1 0\n\xff\n", 2),
        (b"1 0\nd ", 2),
    ],
)
def test_malformed_proofs_are_refused_by_line(text, line):
    with pytest.raises(ValueError, match=f"^line {line} of the proof is not a DRAT step over variables 1 to 7"):
        proof_from_text(text, 7)
