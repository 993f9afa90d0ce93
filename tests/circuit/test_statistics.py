"""Counts against circuits counted by hand and against brute force."""

import numpy as np
import pytest
from hypothesis import given, settings

from gatefit.circuit.readout import Affine, GroupSum, Linear
from gatefit.circuit.statistics import adders, depth, fan_out, levels, statistics
from gatefit.encoders import Threshold
from gatefit.gates import Gate
from strategies import build_circuit, circuits

EXAMPLE = [
    (Gate.AND, 0, 1),  # 3
    (Gate.XOR, 3, 2),  # 4
    (Gate.NOT_B, 0, 4),  # 5: an inverter
    (Gate.A, 5, 0),  # 6: a wire
    (Gate.TRUE, 0, 0),  # 7: a constant
    (Gate.NOR, 6, 7),  # 8
    (Gate.OR, 0, 1),  # 9: dead
]


def test_gates_by_hand():
    counts = statistics(build_circuit(3, EXAMPLE, [8, 4, 8]))
    assert counts.gates == 7
    assert counts.dead == 1
    assert counts.live_gates == 6
    assert counts.logic_gates == 3
    assert (counts.inverters, counts.wires, counts.constants) == (1, 1, 1)
    assert counts.aig_nodes == 1 + 3 + 1
    assert counts.depth == 3
    assert (counts.inputs, counts.used_inputs, counts.outputs, counts.classes) == (3, 3, 3, 1)
    assert counts.max_fan_out == 2
    assert {name: count for name, count in counts.census.items() if count} == {
        "AND": 1,
        "XOR": 1,
        "NOT_B": 1,
        "A": 1,
        "TRUE": 1,
        "NOR": 1,
    }


def test_levels_count_logic_gates_only():
    circuit = build_circuit(3, EXAMPLE, [8])
    assert levels(circuit).tolist() == [0, 0, 0, 1, 2, 2, 2, 0, 3, 1]
    assert depth(circuit) == 3


def test_fan_out_counts_real_readers():
    circuit = build_circuit(3, EXAMPLE, [8, 4, 8])
    # Input 0 is read by the AND; the NOT_B and the constant ignore it, and the OR is dead.
    assert fan_out(circuit).tolist() == [1, 1, 1, 1, 2, 1, 1, 1, 2, 0]


@given(circuits())
@settings(max_examples=60)
def test_counts_are_consistent(circuit):
    counts = statistics(circuit)
    assert counts.logic_gates + counts.inverters + counts.wires + counts.constants == counts.live_gates
    assert sum(counts.census.values()) == counts.live_gates
    assert counts.logic_gates <= counts.aig_nodes <= 3 * counts.logic_gates
    assert counts.depth <= counts.logic_gates
    assert counts.mean_fan_out <= counts.max_fan_out


@pytest.mark.parametrize("bits", range(70))
def test_adders_count_ones(bits):
    """Columns of bits, reduced one adder at a time."""
    columns = [bits]
    full = half = 0
    while any(column > 1 for column in columns):
        i = next(i for i, column in enumerate(columns) if column > 1)
        columns += [0] * (i + 2 - len(columns))
        if columns[i] >= 3:
            full, columns[i] = full + 1, columns[i] - 2
        else:
            half, columns[i] = half + 1, columns[i] - 1
        columns[i + 1] += 1
    assert adders(np.ones(bits, np.int64)) == (full, half)


def test_readout_cost_by_kind():
    sums = statistics(build_circuit(8, [], range(8), GroupSum([0, 0, 0, 0, 0, 0, 0, 1], [0, 0]))).readout
    assert (sums.score_bits, sums.full_adders, sums.half_adders, sums.comparators) == (3, 4, 0, 1)
    assert sums.gates == 5 * 4 + 8 * 3
    value = statistics(build_circuit(8, [], range(3), Affine(3))).readout
    assert (value.full_adders, value.half_adders, value.comparators, value.multiplications) == (1, 0, 0, 1)
    linear = statistics(build_circuit(8, [], range(3), Linear(np.ones((2, 3)), [0, 0]))).readout
    assert (linear.multiplications, linear.comparators) == (6, 1)


def test_only_bits_that_are_read_cost_a_comparison():
    circuit = build_circuit(3, [(Gate.AND, 0, 2)], [3])
    assert statistics(circuit).encoder_comparisons == 0
    encoder = Threshold(0.5).fit(np.zeros((1, 3)))
    encoded = type(circuit)(3, circuit.gates, circuit.operands, circuit.outputs, circuit.readout, encoder=encoder)
    assert statistics(encoded).encoder_comparisons == 2


def test_an_empty_circuit_costs_nothing():
    counts = statistics(build_circuit(1, [], [], Affine(0)))
    assert (counts.gates, counts.depth, counts.max_fan_out, counts.mean_fan_out) == (0, 0, 0, 0.0)
    assert counts.readout.gates == 0
