"""Labels: a circuit predicts what its model was trained with, in the same type, from memory and from its file."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gatefit.backends.json_export import from_json, to_json
from gatefit.circuit.file import dumps, loads
from gatefit.circuit.ir import Circuit
from gatefit.circuit.optimise import optimise
from gatefit.circuit.readout import Affine, GroupSum
from gatefit.gates import Gate
from strategies import build_circuit

SAMPLES = Path(__file__).parent.parent / "samples"
LABELS = [
    np.array([False, True]),
    np.array([3, -7]),
    np.array([3, 250], np.uint8),
    np.array([-(2**63), 2**63 - 1]),
    np.array([0, 2**64 - 1], np.uint64),
    np.array([1, 2], ">i4"),
    np.array([0.1, 1e-300]),
    np.array([0.1, 1e-30], np.float32),
    np.array([0.1, 2], np.float16),
    np.array(["no", "yes ✓\n"]),
    np.array(["no", "yes"], object),
]
X = np.array([[0, 0], [0, 1], [1, 0], [1, 1]], dtype=bool)


def labelled(labels, **fields):
    gates = [(Gate.XOR, 0, 1), (Gate.AND, 0, 1)]
    return replace(build_circuit(2, gates, [2, 3], GroupSum([0, 1], [0, 0])), labels=labels, **fields)


@pytest.mark.parametrize("labels", LABELS, ids=lambda labels: str(labels.dtype))
def test_labels_are_predicted_in_their_own_type(labels):
    circuit = labelled(labels)
    expected = labels[[0, 0, 0, 1]]
    for same in (circuit, loads(dumps(circuit)), from_json(to_json(circuit)), optimise(circuit)[0]):
        predicted = same.predict(X)
        assert predicted.dtype == labels.dtype.newbyteorder("=")
        assert predicted.tolist() == expected.tolist()
        assert (predicted == expected).mean() == 1
        assert list(map(type, predicted)) == list(map(type, expected))
        assert same.class_names == tuple(map(str, labels.tolist()))


def test_class_names_stay_what_is_displayed():
    circuit = loads(dumps(labelled(np.array([0, 1]), class_names=("benign", "malignant"))))
    assert circuit.class_names == ("benign", "malignant")
    assert circuit.predict(X).tolist() == [0, 0, 0, 1]


def test_a_long_label_does_not_widen_all_of_them():
    labels = ["a" * 2**21, *map(str, range(9))]
    circuit = replace(labelled(None), readout=GroupSum([0, 1], np.zeros(10, int)), labels=np.array(labels, object))
    text = to_json(circuit).replace('"dtype": "object"', '"dtype": "str"')
    assert from_json(text).predict(X).dtype == object


@pytest.mark.parametrize(
    ("labels", "error", "message"),
    [
        ([1, 2, 3], ValueError, "got 3 labels, the GroupSum readout has 2 classes"),
        ([[1], [2]], ValueError, r"labels must be a one-dimensional array, one for each class, got shape \(2, 1\)"),
        ([0.5, np.nan], ValueError, "labels must be finite"),
        ([1j, 2j], TypeError, "labels must be Booleans, numbers or strings, got complex128"),
        (np.array([1, "a"], object), TypeError, "labels must be Booleans, numbers or strings, got object"),
        (np.array(["2024-01-01", "2024-01-02"], "M8[D]"), TypeError, "labels must be Booleans, numbers or strings"),
    ],
)
def test_labels_are_checked(labels, error, message):
    with pytest.raises(error, match=message):
        labelled(labels)


def test_a_regression_has_no_labels():
    with pytest.raises(ValueError, match="got 1 labels, the Affine readout has none: it gives a value"):
        replace(labelled(None), readout=Affine(2), labels=[1])


def test_files_without_labels_are_written_as_before_and_predict_class_names():
    data = (SAMPLES / "version-1.gate").read_bytes()
    circuit = Circuit.load(SAMPLES / "version-1.gate")
    x = {"age": [31.0, None, 57.5, 40.25], "job": ["a", "b", "a", "c"], "member": [True, False, True, True]}
    assert circuit.labels is None
    assert circuit.predict(x).tolist() == ["1", "0", "0", "0"]
    assert dumps(circuit) == data
