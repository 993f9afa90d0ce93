"""The sixteen gates: exhaustive, since the space is small."""

import itertools

import numpy as np
import pytest

from gatefit import gates as module
from gatefit.gates import DEPENDS_ON_A, DEPENDS_ON_B, FORMULAS, TRUTH_TABLES, Gate, GateKind

BITS = list(itertools.product((0, 1), repeat=2))


@pytest.mark.parametrize("gate", Gate)
def test_formula_computes_its_truth_table(gate):
    a, b = 0b0011, 0b0101  # the four corners, side by side
    assert eval(FORMULAS[gate].format(a=a, b=b)) & 0b1111 == gate


@pytest.mark.parametrize("gate", Gate)
def test_symmetries_do_what_they_say(gate):
    for a, b in BITS:
        assert gate.complement(a, b) == 1 - gate(a, b)
        assert gate.swapped(a, b) == gate(b, a)
        assert gate.negated_a(a, b) == gate(1 - a, b)
        assert gate.negated_b(a, b) == gate(a, 1 - b)
    assert gate.depends_on_a == any(gate(0, b) != gate(1, b) for b in (0, 1))
    assert gate.depends_on_b == any(gate(a, 0) != gate(a, 1) for a in (0, 1))


@pytest.mark.parametrize("gate", Gate)
def test_tables_equal_the_properties(gate):
    assert TRUTH_TABLES[gate].tolist() == [gate(a, b) for a, b in BITS]
    for name in ("COMPLEMENT", "SWAPPED", "NEGATED_A", "NEGATED_B"):
        assert getattr(module, name)[gate] == getattr(gate, name.lower())
    assert (DEPENDS_ON_A[gate], DEPENDS_ON_B[gate]) == (gate.depends_on_a, gate.depends_on_b)


def test_numbers_are_those_of_the_field():
    named = {"FALSE": 0, "AND": 1, "A": 3, "B": 5, "XOR": 6, "OR": 7, "NOR": 8, "XNOR": 9, "NAND": 14, "TRUE": 15}
    assert {name: int(Gate[name]) for name in named} == named


def test_kinds_partition_the_gates_2_4_8_2():
    counts = {kind: sum(gate.kind is kind for gate in Gate) for kind in GateKind}
    assert counts == {
        GateKind.CONSTANT: 2,
        GateKind.SEPARABLE: 4,
        GateKind.WEAK_INTERACTION: 8,
        GateKind.STRONG_INTERACTION: 2,
    }
    assert {gate for gate in Gate if gate.kind is GateKind.STRONG_INTERACTION} == {Gate.XOR, Gate.XNOR}


def test_tables_cannot_be_written():
    with pytest.raises(ValueError, match="read-only"):
        TRUTH_TABLES[0, 0] = 1
    assert TRUTH_TABLES.dtype == np.uint8
