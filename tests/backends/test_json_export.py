"""JSON: complete, exact, and refused with one error when anything is wrong."""

import json
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gatefit.backends.json_export import from_json, to_json
from gatefit.circuit import simulate
from gatefit.circuit.container import CircuitFileError
from gatefit.circuit.ir import Circuit
from gatefit.circuit.readout import Affine, GroupSum, Linear
from gatefit.encoders import Thermometer
from strategies import all_patterns, circuits

EXAMPLE = Circuit(
    inputs=4,
    gates=[1, 6],
    operands=[[0, 4], [1, 2]],
    outputs=[5, 3],
    readout=GroupSum([0, 1], [0, 3], 2.5),
    input_names=("a", 'b"\n', "é", ""),
    class_names=("no", "yes"),
    metadata={"trained": "today"},
)


@given(circuits())
@settings(max_examples=80)
def test_round_trip_is_exact(circuit):
    again = from_json(to_json(circuit))
    for name in ("gates", "operands", "outputs"):
        np.testing.assert_array_equal(getattr(again, name), getattr(circuit, name))
    assert type(again.readout) is type(circuit.readout)
    bits = all_patterns(circuit.inputs)
    np.testing.assert_array_equal(simulate.scores(again, bits), simulate.scores(circuit, bits))
    assert to_json(again) == to_json(circuit)


def test_names_metadata_and_encoder_come_along():
    x = np.random.default_rng(0).normal(size=(50, 2))
    encoder = Thermometer(2).fit(x)
    circuit = Circuit(4, [6], [[0], [3]], [4], Affine(1, 2, 0.1, 1e-300), encoder=encoder)
    again = from_json(to_json(circuit))
    assert again.encoder == encoder
    assert again.readout == circuit.readout or vars(again.readout) == vars(circuit.readout)
    named = from_json(to_json(EXAMPLE))
    assert (named.input_names, named.class_names, named.metadata) == (
        EXAMPLE.input_names,
        EXAMPLE.class_names,
        EXAMPLE.metadata,
    )
    assert named.readout.temperature == 2.5


def test_the_text_is_plain_ascii_with_one_field_a_line():
    text = to_json(EXAMPLE)
    assert text.isascii()
    assert len(text.splitlines()) == 2 + 11
    assert json.loads(text)["gates"] == [1, 6]


def test_float32_weights_are_kept_exactly():
    weights = np.random.default_rng(0).normal(size=(3, 2)).astype(np.float32)
    circuit = Circuit(2, [], np.empty((2, 0), int), [0, 1], Linear(weights, np.float32([0.1, -0.1, 3e-45])))
    again = from_json(to_json(circuit)).readout
    np.testing.assert_array_equal(again.weights, weights)
    np.testing.assert_array_equal(again.bias, circuit.readout.bias)


def changed(**fields: object) -> str:
    return json.dumps(json.loads(to_json(EXAMPLE)) | fields)


def readout(**fields: object) -> str:
    return changed(readout=json.loads(to_json(EXAMPLE))["readout"] | fields)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the circuit is not valid JSON"),
        ("[]", "the text is not a circuit"),
        (changed(format="x"), "its format must be 'gatefit-circuit-json'"),
        (changed(version=3), "version must be 1 to 2, got 3; update gatefit"),
        (changed(version=True), "version must be 1 to 2, got True"),
        (changed(extra=1), "a circuit has exactly the fields"),
        (changed(inputs=4.0), "inputs must be an integer, got 4.0"),
        (changed(inputs=-1), "at least one input"),
        (changed(gates=[1, 16]), "gate numbers are 0 to 15"),
        (changed(gates=[1, 256]), "gates must be integers from 0 to 255"),
        (changed(gates=[1, 6.0]), "gates must be a list of integers"),
        (changed(gates=[1, True]), "gates must be a list of integers"),
        (changed(gates="ab"), "gates must be a list of integers"),
        (changed(operands=[[0, 4]]), "operands must be two lists of nodes"),
        (changed(operands=[[0, 4], [1]]), "not a valid circuit"),
        (changed(operands=[[0, 5], [1, 2]]), "list gates in topological order"),
        (changed(operands=[[0, -1], [1, 2]]), "operands must be nodes from 0"),
        (changed(outputs=[5, 2**31]), "outputs must be integers from"),
        (changed(outputs=[5]), "the readout reads 2 bits"),
        (changed(readout=None), "the readout's kind is None; known are group_sum, affine, linear"),
        (changed(readout={"kind": "affine"}), "the affine readout has exactly the fields"),
        (readout(temperature=0), "temperature must be a finite number > 0"),
        (readout(temperature="1"), "temperature must be a number, got '1'"),
        (readout(groups=[0, 2]), "every group must be a class number"),
        (readout(offsets=[0, 2**63]), "offsets must be integers from"),
        (changed(readout={"kind": "linear", "weights": [[1, 2], [3]], "bias": [0, 0]}), "not a valid circuit"),
        (changed(readout={"kind": "linear", "weights": 1, "bias": [0]}), "weights must be a list of lists"),
        (changed(readout={"kind": "linear", "weights": [1], "bias": [0]}), "weights must be a list of numbers"),
        (changed(input_names=["a"]), "got 1 input names for 4 inputs"),
        (changed(input_names=[1, 2, 3, 4]), "input_names must be a list of strings"),
        (changed(class_names="ab"), "class_names must be a list of strings"),
        (changed(metadata={"a": 1}), "metadata must hold strings only"),
        (changed(encoder={"kind": "x"}), "not a valid circuit"),
        (to_json(EXAMPLE).replace("2.5", "NaN"), "NaN is not a finite number"),
        (to_json(EXAMPLE).replace("2.5", "1e999"), "1e999"),
        (to_json(EXAMPLE).replace('"inputs": 4', '"inputs": 4, "inputs": 4'), "the key 'inputs' appears twice"),
    ],
)
def test_anything_wrong_is_one_clear_error(text, message):
    with pytest.raises(CircuitFileError, match=re.escape(message)):
        from_json(text)


@given(st.data())
@settings(max_examples=400)
def test_damaged_text_is_refused_or_still_a_circuit(data):
    text = to_json(EXAMPLE)
    start = data.draw(st.integers(0, len(text) - 1))
    length = data.draw(st.integers(0, 12))
    insert = data.draw(st.text(alphabet='0159-.e,:[]{}"ntfa ', max_size=4))
    try:
        circuit = from_json(text[:start] + insert + text[start + length :])
    except CircuitFileError:
        return
    assert from_json(to_json(circuit)).inputs == circuit.inputs
