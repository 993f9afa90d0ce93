"""What a page offers for a circuit's inputs: the right controls, reaching every value that makes a difference."""

import numpy as np
import pytest

from gatefit.backends.html import inputs as html_inputs
from gatefit.backends.html.inputs import Samples, choose_view, control_values, controls, image_fit, image_range, slider
from gatefit.circuit.ir import Circuit
from gatefit.circuit.readout import GroupSum
from gatefit.encoders import Identity, Table, Thermometer, Threshold

MISSING_TABLE = {
    "age": [20.0, None, 30.0, 40.0],
    "job": ["cook", "smith", None, "cook"],
    "member": [True, False, True, False],
}


def circuit_of(encoder=None, inputs=None, names=()) -> Circuit:
    inputs = inputs or encoder.bits
    return Circuit(inputs, [], np.empty((2, 0), int), [0], GroupSum([0], [0]), names, encoder=encoder)


@pytest.mark.parametrize(
    ("encoder", "view", "shape"),
    [
        (Threshold(127.5).fit(np.zeros((1, 784))), "image", (28, 28, 1)),
        (Thermometer(3, low=0, high=255).fit(np.zeros((1, 3072))), "image", (32, 32, 3)),
        (Identity().fit(np.zeros((1, 64), bool)), "image", (8, 8, 1)),
        (Identity().fit(np.zeros((1, 65), bool)), "bits", None),
        (Threshold(127.5).fit(np.zeros((1, 49))), "table", None),
        (Threshold(1.0).fit(np.zeros((1, 64)), [f"f{i}" for i in range(64)]), "table", None),
        (Table().fit(MISSING_TABLE), "table", None),
        (Identity().fit(np.zeros((1, 2), bool), ["p", "q"]), "table", None),
    ],
)
def test_the_view_follows_from_the_encoder(encoder, view, shape):
    assert choose_view(circuit_of(encoder), "auto", None) == (view, shape)


def test_without_an_encoder_names_decide():
    assert choose_view(circuit_of(inputs=64), "auto", None) == ("bits", None)
    assert choose_view(circuit_of(inputs=2, names=("p", "q")), "auto", None) == ("table", None)


def test_a_tables_columns_become_controls():
    circuit = circuit_of(Table().fit(MISSING_TABLE))
    age, job, member = controls(circuit)
    assert (age.kind, age.name, age.bits, age.values, age.missing) == ("number", "age", [0, 1], [25.0, 35.0], 2)
    assert (job.kind, job.bits, job.labels, job.missing) == ("choice", [3, 4], ["cook", "smith"], 5)
    assert (member.kind, member.bits, member.missing) == ("bit", [6], -1)
    rows = np.array([[20.0, "smith", True], [None, "ghost", False]], dtype=object)
    assert [control_values(control, rows) for control in (age, job, member)] == [[20.0, None], [1, -1], [1, 0]]


def test_thermometers_by_plane_are_gathered_by_feature():
    circuit = circuit_of(Thermometer(2, order="threshold", low=0, high=3).fit(np.zeros((1, 2)), ["a", "b"]))
    assert [(c.name, c.bits, c.values) for c in controls(circuit)] == [("a", [0, 2], [1, 2]), ("b", [1, 3], [1, 2])]


def test_bits_are_gathered_by_what_their_names_say():
    names = ("c = red", "c = blue", "x > 1", "x > 2.5", "age < 21", "21 <= age < 30", "age >= 30", "alone", "d = 1")
    found = controls(circuit_of(inputs=9, names=names))
    assert [(c.kind, c.name, c.bits) for c in found] == [
        ("choice", "c", [0, 1]),
        ("number", "x", [2, 3]),
        ("choice", "age", [4, 5, 6]),
        ("bit", "alone", [7]),
        ("bit", "d = 1", [8]),
    ]
    assert found[0].labels == ["red", "blue"]
    assert found[1].values == [1.0, 2.5]
    assert found[2].labels == ["age < 21", "21 <= age < 30", "age >= 30"]


def test_bits_that_are_true_together_are_no_choice():
    names = ("tag = a", "tag = b")
    encoder = Identity().fit(np.ones((1, 2), bool), names)
    rows = Samples(np.array([[True, True]]), np.array([0]))
    assert [c.kind for c in controls(circuit_of(encoder), rows)] == ["bit", "bit"]
    assert [c.kind for c in controls(circuit_of(encoder))] == ["choice"]


def test_thresholds_that_fall_are_no_slider():
    assert [c.kind for c in controls(circuit_of(inputs=2, names=("x > 2", "x > 1")))] == ["bit", "bit"]


def test_values_of_gathered_bits_come_back():
    encoder = Identity().fit(np.zeros((1, 4), bool), ["c = 1", "c = 2", "x > 1", "x > 3"])
    choice, number = controls(circuit_of(encoder))
    rows = np.array([[0, 1, 1, 0], [0, 0, 0, 0]], bool)
    assert control_values(choice, rows) == [1, -1]
    assert control_values(number, rows) == [2.0, 0.0]


@pytest.mark.parametrize(
    ("thresholds", "values", "expected"),
    [
        ([0.5, 1.5, 4.5], [], {"low": -1, "high": 6, "step": 1}),
        ([0.25, 0.75], [], {"low": 0.0, "high": 1.0, "step": 0.1}),
        ([0.25, 0.75], [-3.0, None, 7.0], {"low": -3.0, "high": 7.0, "step": 0.1}),
        ([5.0], [], {"low": 2.0, "high": 8.0, "step": 1.0}),
        ([], [1.0], {"low": 0, "high": 1, "step": 1}),
    ],
)
def test_sliders_reach_every_interval(thresholds, values, expected):
    control = html_inputs.Control("number", "x", list(range(len(thresholds))), thresholds)
    found = slider(control, values)
    assert found == pytest.approx(expected)
    stops = found["low"] + found["step"] * np.arange(round((found["high"] - found["low"]) / found["step"]) + 1)
    passed = {int((stop > np.array(thresholds)).sum()) for stop in stops}
    assert passed == set(range(len(thresholds) + 1))


@pytest.mark.parametrize(
    ("encoder", "samples", "expected"),
    [
        (Threshold(127.5), None, (0, 255)),
        (Threshold(8), None, (0, 16)),
        (Thermometer(7, low=0, high=16), None, (0, 16)),
        (Thermometer(3), None, (0, 16)),
        (Identity(), None, (0, 1)),
        (Thermometer(3), Samples(np.full((1, 64), 9.0), np.zeros(1)), (0, 9)),
    ],
)
def test_the_range_of_a_pixel(encoder, samples, expected):
    fitted = encoder.fit(np.zeros((1, 64)) if isinstance(encoder, Identity) else np.arange(128).reshape(2, 64) % 10)
    _, _, levels = html_inputs.image_levels(fitted)
    assert image_range(fitted, levels, samples) == expected


def test_drawings_are_scaled_to_the_size_that_samples_have():
    images = np.zeros((3, 28, 28), np.uint8)
    images[0, 4:24, 10:18] = images[1, 10:12, 4:24] = images[2, 6:20, 6:20] = 200
    assert image_fit((28, 28, 1), Samples(images.reshape(3, -1), np.zeros(3))) == round(20 / 28, 4)
    assert image_fit((28, 28, 1), None) == 20 / 28
    assert image_fit((8, 8, 1), Samples(np.zeros((2, 64)), np.zeros(2))) == 1
