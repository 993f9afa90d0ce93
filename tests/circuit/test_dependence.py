"""Partial dependence and importance, against their definitions written out."""

import numpy as np
import pytest

from gatefit import Circuit
from gatefit.circuit.dependence import importance, partial_dependence
from gatefit.circuit.readout import Affine, GroupSum
from gatefit.encoders import Thermometer
from gatefit.gates import Gate


def two_features(readout=None, **more):
    """x0 > 1, x0 > 2 and x1 > 1 through an XOR; x2 is not read."""
    encoder = Thermometer(2, spacing="uniform", low=0.0, high=3.0).fit(np.array([[0.0, 3.0, 1.5]]))
    gates = [Gate.XOR, Gate.AND]
    bits = {(rule.feature, rule.value): i for i, rule in enumerate(encoder.rules)}
    a, b, c = bits[0, 1.0], bits[0, 2.0], bits[1, 1.0]
    return Circuit(
        encoder.bits, gates, [[a, b], [c, c]], [encoder.bits, encoder.bits + 1],
        readout or GroupSum([0, 1], [0, 0], 0.5), encoder=encoder, **more,
    )  # fmt: skip


@pytest.fixture
def rows():
    return np.random.default_rng(0).uniform(0, 3, (200, 3))


def moved(circuit, rows, feature, raw):
    changed = rows.copy()
    changed[:, feature] = raw
    return circuit.scores(changed) if circuit.readout.gives_value else circuit.predict_proba(changed)


@pytest.mark.parametrize("readout", [None, Affine(2, 1, 0.5, -1.0)], ids=["classes", "value"])
def test_partial_dependence_is_the_mean_at_every_value(readout, rows):
    circuit = two_features(readout)
    found = partial_dependence(circuit, rows, 0)
    assert [(value.low, value.high) for value in found.values] == [(-np.inf, 1.0), (1.0, 2.0), (2.0, np.inf)]
    for average, share, raw in zip(found.average, found.share, (0.5, 1.5, 2.5), strict=True):
        np.testing.assert_allclose(average, moved(circuit, rows, 0, raw).mean(axis=0), rtol=1e-12)
        assert share == np.mean(np.floor(rows[:, 0]) == np.floor(raw))
    assert repr(found) == f"<PartialDependence of 'x0': 3 values, {1 if readout else 2} answers>"


@pytest.mark.parametrize("readout", [None, Affine(2, 1, 0.5, -1.0)], ids=["classes", "value"])
def test_importance_is_what_moves_on_average(readout, rows):
    circuit = two_features(readout)
    rows = rows[:40]
    found = importance(circuit, rows)
    own = circuit.scores(rows) if readout else circuit.predict_proba(rows)
    for feature in range(3):
        drawn = [np.abs(moved(circuit, rows, feature, raw) - own).sum(axis=1).mean() for raw in rows[:, feature]]
        assert found[f"x{feature}"] == pytest.approx(np.mean(drawn) * (1 if readout else 0.5), rel=1e-12)
    assert found["x2"] == 0


def test_bits_without_an_encoder_are_features():
    circuit = Circuit(2, [Gate.A], [[0], [1]], [2], GroupSum([1], [0, 0]), input_names=("p", "q"))
    bits = np.array([[0, 0], [1, 0], [1, 1], [0, 1]], bool)
    found = importance(circuit, bits)
    assert found["q"] == 0
    assert found["p"] == pytest.approx(0.5 * (1 / (1 + np.exp(-1)) - 0.5))


def test_no_rows_have_no_mean():
    with pytest.raises(ValueError, match=r"^a mean over rows needs at least one row, got none$"):
        importance(two_features(), np.empty((0, 3)))
