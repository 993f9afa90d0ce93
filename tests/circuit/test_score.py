"""``circuit.score``: accuracy of classes, R² of values."""

import numpy as np
import pytest

from gatefit import Circuit
from gatefit.circuit.readout import Affine, GroupSum


@pytest.mark.parametrize(
    ("named", "targets"),
    [
        ({"labels": np.array(["no", "yes"])}, ["no", "yes", "yes", "yes"]),
        ({"class_names": ("no", "yes")}, ["no", "yes", "yes", "yes"]),
        ({"class_names": ("no", "yes")}, [0, 1, 1, 1]),
        ({}, [0, 1, 1, 1]),
    ],
)
def test_score_is_the_share_of_right_classes(named, targets):
    bits = np.array([[0, 0], [0, 1], [1, 0], [1, 1]], bool)
    circuit = Circuit(2, [6], [[0], [1]], [2], GroupSum([1], [0, 0]), **named)  # class 1 where the bits differ
    assert circuit.score(bits, targets) == 0.75
    assert circuit.score(bits, np.array(targets)[[0, 1, 2, 0]]) == 1.0


def test_score_of_values_is_r2():
    bits = np.array([[0], [1], [1], [0]], bool)
    circuit = Circuit(1, [], np.empty((2, 0), int), [0], Affine(1, 0, 2.0, 1.0))
    y = np.array([1.0, 3.5, 2.0, 0.0])
    predicted = np.array([1.0, 3.0, 3.0, 1.0])
    assert circuit.score(bits, y) == pytest.approx(1 - ((y - predicted) ** 2).sum() / ((y - y.mean()) ** 2).sum())
    assert circuit.score(bits, np.full(4, 7.0)) == 0.0


def test_score_refuses_targets_of_another_kind():
    bits = np.zeros((2, 2), bool)
    circuit = Circuit(2, [6], [[0], [1]], [2], GroupSum([1], [0, 0]), labels=np.array(["no", "yes"]))
    with pytest.raises(
        ValueError, match=r"^no target is a class of this circuit: y holds 0, 1, the classes are 'no', 'ye"
    ):
        circuit.score(bits, [0, 1])
    with pytest.raises(ValueError, match=r"^y must be one target for each of 2 rows, got shape \(3,\)$"):
        circuit.score(bits, ["no"] * 3)
