"""The circuit's own checks: what it refuses, what it freezes, and the methods that users type."""

import pickle
import re
from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest
from hypothesis import given, settings

from gatefit.circuit.ir import MAX_NODES, Circuit
from gatefit.circuit.readout import Affine, GroupSum, Linear
from gatefit.circuit.simulate import predict_classes, scores
from gatefit.encoders import Threshold
from gatefit.gates import Gate
from strategies import all_patterns, circuits, random_circuit


def small(**changes):
    fields = {
        "inputs": 2,
        "gates": [Gate.AND, Gate.XOR],
        "operands": [[0, 2], [1, 0]],
        "outputs": [2, 3],
        "readout": GroupSum([0, 1], [0, 0]),
    }
    return Circuit(**(fields | changes))


def test_arrays_are_converted_and_frozen():
    circuit = small()
    assert circuit.gates.dtype == np.uint8
    assert circuit.operands.dtype == circuit.outputs.dtype == np.int32
    assert circuit.nodes == 4
    for array in (circuit.gates, circuit.operands, circuit.outputs, circuit.readout.groups, circuit.readout.offsets):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0
    with pytest.raises(FrozenInstanceError):
        circuit.inputs = 3


def test_the_callers_arrays_are_copied():
    gates = np.array([Gate.AND, Gate.XOR], np.uint8)
    circuit = small(gates=gates)
    gates[0] = Gate.OR
    assert circuit.gates[0] == Gate.AND
    metadata = {"a": "b"}
    circuit = small(metadata=metadata)
    metadata["a"] = "c"
    assert circuit.metadata == {"a": "b"}


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"inputs": 0}, ValueError, "a circuit needs at least one input, got 0"),
        ({"inputs": True}, TypeError, "inputs must be a whole number, got True"),
        ({"inputs": 2.0}, TypeError, "inputs must be a whole number, got 2.0"),
        ({"inputs": MAX_NODES}, ValueError, f"a circuit has at most {MAX_NODES} inputs and gates"),
        ({"gates": [Gate.AND]}, ValueError, "got (1,), (2, 2) and (2,)"),
        ({"gates": [[1, 2]]}, ValueError, "got (1, 2), (2, 2) and (2,)"),
        ({"gates": [1, 16]}, ValueError, "gate numbers are 0 to 15 (gatefit.gates.Gate), got 16"),
        ({"gates": [1, 256]}, ValueError, "gates must fit uint8, got values 1 to 256"),
        ({"gates": [1, -1]}, ValueError, "gates must fit uint8, got values -1 to 1"),
        ({"gates": [1.0, 2.0]}, TypeError, "gates must hold integers, got float64"),
        ({"operands": [[0, 3], [1, 0]]}, ValueError, "gate 1 (node 3) reads nodes [3, 0]"),
        ({"operands": [[0, 2], [-1, 0]]}, ValueError, "operands must be nodes from 0 to 1"),
        ({"operands": [[2, 2], [1, 0]]}, ValueError, "list gates in topological order"),
        ({"outputs": [2, 4]}, ValueError, "output 1 is node 4; outputs must be nodes from 0 to 3"),
        ({"outputs": [-1, 3]}, ValueError, "output 0 is node -1"),
        ({"outputs": [3]}, ValueError, "the readout reads 2 bits, the circuit has 1"),
        ({"readout": None}, TypeError, "readout must be GroupSum, Affine or Linear, got NoneType"),
        ({"input_names": ("a",)}, ValueError, "got 1 input names for 2 inputs"),
        ({"input_names": "ab"}, TypeError, "input_names must be a sequence of strings, got 'ab'"),
        ({"class_names": (1, 2)}, TypeError, "class_names must be a sequence of strings"),
        ({"class_names": ("a", "b", "c")}, ValueError, "got 3 class names for 2 classes"),
        ({"metadata": {"a": 1}}, TypeError, "metadata must map strings to strings"),
        (
            {"encoder": Threshold(0.5).fit(np.zeros((1, 3)))},
            ValueError,
            "the encoder makes 3 bits, the circuit reads 2",
        ),
    ],
)
def test_bad_circuits_are_refused(changes, error, message):
    with pytest.raises(error, match=re.escape(message)):
        small(**changes)


def test_a_circuit_may_have_no_gates_and_no_outputs():
    empty = Circuit(1, [], np.empty((2, 0), int), [], Affine(0, offset=3))
    assert scores(empty, np.zeros((2, 1), bool)).tolist() == [[3.0], [3.0]]


@given(circuits(max_gates=10))
@settings(max_examples=30)
def test_pickling_rebuilds_and_refreezes(circuit):
    copy = pickle.loads(pickle.dumps(circuit))
    assert copy.gates.tobytes() == circuit.gates.tobytes()
    assert not copy.operands.flags.writeable
    bits = all_patterns(circuit.inputs)
    assert np.array_equal(scores(copy, bits), scores(circuit, bits))


def test_replace_checks_again():
    with pytest.raises(ValueError, match="gate numbers are 0 to 15"):
        replace(small(), gates=np.array([1, 99]))


def test_predictions_match_the_reference(tmp_path):
    rng = np.random.default_rng(5)
    for kind in ("group_sum", "affine", "linear"):
        circuit = random_circuit(rng, readout_kinds=[kind])
        bits = all_patterns(circuit.inputs)
        assert np.array_equal(circuit.scores(bits), scores(circuit, bits))
        circuit.save(tmp_path / "c.gate", overwrite=True)
        loaded = Circuit.load(str(tmp_path / "c.gate"))
        if kind == "affine":
            assert circuit.predict(bits).dtype == np.float64
            assert np.array_equal(loaded.predict(bits), scores(circuit, bits)[:, 0])
        else:
            assert np.array_equal(loaded.predict(bits.astype(float)), predict_classes(circuit, bits))


def test_class_names_are_predicted():
    circuit = small(class_names=("no", "yes"))
    predicted = circuit.predict([[0, 0], [1, 1], [1, 0]])
    assert predicted.tolist() == ["no", "no", "yes"]
    assert all(type(name) is str for name in predicted)


def test_features_go_through_the_encoder():
    encoder = Threshold(0.5).fit(np.zeros((1, 2)))
    circuit = small(encoder=encoder)
    assert circuit.predict(np.array([[0.2, 0.9], [0.7, 0.1]])).tolist() == [0, 1]
    with pytest.raises(ValueError, match="is nan in row 0"):
        circuit.predict(np.array([[0.2, np.nan]]))


def test_probabilities_are_the_softmax_of_scores_over_the_temperature():
    circuit = small(readout=GroupSum([0, 1], [0, 2], temperature=2.0))
    probabilities = circuit.predict_proba(np.array([[1, 1]]))
    expected = np.exp(np.array([1, 2]) / 2.0)
    assert np.allclose(probabilities, [expected / expected.sum()], rtol=1e-15)
    steep = small(readout=Linear([[1e30, 0], [0, 0]], [0, 0])).predict_proba(np.array([[1, 1]]))
    assert steep.tolist() == [[1.0, 0.0]]
    with pytest.raises(TypeError, match="an Affine readout gives a value, not class probabilities"):
        small(readout=Affine(2)).predict_proba(np.array([[1, 1]]))


def test_print_is_one_short_line():
    names = tuple(f"feature {i}" for i in range(5000))
    circuit = Circuit(5000, [1, 6], [[0, 1], [2, 3]], [5000, 5001], GroupSum([0, 1], [0, 0]), names, ("a", "b" * 5000))
    assert repr(circuit) == str(circuit) == "<Circuit: 5000 inputs, 2 gates, 2 outputs, GroupSum of 2 classes>"
    encoder = Threshold().fit(np.zeros((1, 5000)))
    encoded = Circuit(5000, circuit.gates, circuit.operands, circuit.outputs, Affine(2), encoder=encoder)
    assert repr(encoded) == (
        "<Circuit: 5000 inputs, 2 gates, 2 outputs, Affine of 1 value, encoder=Threshold(threshold=0.5)>"
    )


@pytest.mark.parametrize("temperature", [1e-300, 1e-290, 1e-30, 1.0, 1e300])
def test_probabilities_are_finite_at_every_temperature(temperature):
    chances = small(readout=GroupSum([0, 1], [10**6, 0], temperature)).predict_proba(all_patterns(2))
    assert np.isfinite(chances).all()
    np.testing.assert_allclose(chances.sum(axis=1), 1)


def test_probabilities_of_overflowing_sums_are_numbers():
    circuit = small(readout=Linear([[3e38, 3e38], [-3e38, -3e38]], [3e38, 0]))
    with np.errstate(over="ignore"):
        chances = circuit.predict_proba([[False, False], [True, True]])
    assert np.isfinite(chances).all()
    np.testing.assert_allclose(chances.sum(axis=1), 1)


def test_probabilities_of_large_offsets_are_exact_to_the_last_unit():
    close = small(readout=GroupSum([0, 1], [2**61, 2**61 - 1])).predict_proba([[False, False]])
    np.testing.assert_allclose(close, [[1 / (1 + np.exp(-1)), 1 / (1 + np.exp(1))]])


@pytest.mark.parametrize(
    ("readout", "message"),
    [
        (
            lambda: GroupSum([0, 1], [2**61, 0], 1e-300),
            "scores of up to 2.30584e.18 cannot be divided by a temperature",
        ),
        (lambda: GroupSum([0, 1], [0, 0], 5e-324), "scores of up to 2 cannot be divided by a temperature of 5e-324"),
    ],
)
def test_readouts_whose_probabilities_would_not_be_numbers_are_refused(readout, message):
    with pytest.raises(ValueError, match=message):
        readout()
