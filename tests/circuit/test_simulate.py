"""The reference evaluator against Python's own operators."""

import re

import numpy as np
import pytest
from hypothesis import given, settings

from gatefit.circuit.ir import Circuit
from gatefit.circuit.readout import Affine, GroupSum
from gatefit.circuit.simulate import predict_classes, scores, simulate, simulate_nodes
from gatefit.gates import FORMULAS, Gate
from strategies import all_patterns, circuits


@pytest.mark.parametrize("gate", Gate)
def test_every_gate_computes_its_formula(gate):
    circuit = Circuit(2, [gate], [[0], [1]], [2], Affine(1))
    outputs = simulate(circuit, np.array([[0, 0], [0, 1], [1, 0], [1, 1]], bool))[:, 0]
    formula = [eval(FORMULAS[gate].format(a=a, b=b)) & 1 for a, b in ((0, 0), (0, 1), (1, 0), (1, 1))]
    assert outputs.tolist() == [bool(bit) for bit in formula]


@given(circuits())
@settings(max_examples=60)
def test_nodes_follow_their_definition(circuit):
    bits = all_patterns(circuit.inputs)
    values = simulate_nodes(circuit, bits)
    for row, sample in zip(values[:8].tolist(), bits[:8].tolist(), strict=True):
        expected = list(sample)
        for gate, a, b in zip(circuit.gates.tolist(), *circuit.operands.tolist(), strict=True):
            expected.append(bool(Gate(gate)(expected[a], expected[b])))
        assert row == expected
    assert np.array_equal(simulate(circuit, bits), values[:, circuit.outputs])
    assert np.array_equal(scores(circuit, bits), circuit.readout.scores(values[:, circuit.outputs]))


def test_the_first_of_equal_scores_wins():
    circuit = Circuit(2, [], np.empty((2, 0), int), [0, 1], GroupSum([0, 1], [0, 0]))
    assert predict_classes(circuit, all_patterns(2)).tolist() == [0, 0, 1, 0]


def test_a_regression_has_no_classes():
    circuit = Circuit(1, [], np.empty((2, 0), int), [0], Affine(1))
    with pytest.raises(TypeError, match="an Affine readout gives a value, not a class"):
        predict_classes(circuit, np.zeros((1, 1), bool))


@pytest.mark.parametrize(
    ("bits", "error", "message"),
    [
        (np.zeros((2, 3)), ValueError, "the circuit reads a (samples, 2) matrix of bits, got shape (2, 3)"),
        (np.zeros(2), ValueError, "got shape (2,)"),
        (np.full((1, 2), 2), ValueError, "got numbers other than 0 and 1; encode the features first"),
        (np.array([[0.0, np.nan]]), ValueError, "got numbers other than 0 and 1"),
        (np.array([["0", "1"]]), TypeError, "the circuit reads Booleans or the numbers 0 and 1, got dtype <U1"),
    ],
)
def test_bad_bits_are_refused(bits, error, message):
    circuit = Circuit(2, [Gate.AND], [[0], [1]], [2], Affine(1))
    with pytest.raises(error, match=re.escape(message)):
        simulate(circuit, bits)
