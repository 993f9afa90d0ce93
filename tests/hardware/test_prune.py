"""Outputs that the samples do not miss are dropped first."""

import numpy as np
import pytest

from gatefit.circuit.engine import Engine
from gatefit.circuit.ir import Circuit
from gatefit.circuit.readout import Affine, GroupSum
from gatefit.encoders import Threshold
from gatefit.hardware.prune import prune_readout
from gatefit.hardware.vectors import edge_features, feature_matrix, pack_features

pytestmark = pytest.mark.outside

NO_GATES = np.empty((2, 0), int)


def copies_and_noise(seed=0, samples=400):
    """Class 1 where the first input is one: five outputs say so, ten a class are noise."""
    rng = np.random.default_rng(seed)
    bits = rng.random((samples, 21)) < 0.5
    labels = bits[:, 0].astype(np.int64)
    outputs = [*[0] * 5, *range(1, 11), *range(11, 21)]
    groups = [*[1] * 15, *[0] * 10]
    return Circuit(21, [], NO_GATES, outputs, GroupSum(groups, [2, 7], 2.0)), bits, labels


def accuracy(circuit, bits, labels):
    return float((Engine(circuit).predict(bits) == labels).mean())


def test_noise_goes_and_what_tells_the_classes_stays():
    circuit, bits, labels = copies_and_noise()
    pruned = prune_readout(circuit, bits, labels, 6)
    assert pruned.outputs.tolist()[:5] == [0] * 5
    assert pruned.outputs.size == 6
    assert np.bincount(pruned.readout.groups).min() == 1
    assert pruned.readout.offsets.min() == 0
    unseen = copies_and_noise(seed=1)
    assert accuracy(pruned, *unseen[1:]) > 0.95


def test_classes_are_balanced_even_where_nothing_is_dropped():
    circuit, bits, labels = copies_and_noise()
    same = prune_readout(circuit, bits, labels, circuit.outputs.size)
    assert same.outputs.tolist() == circuit.outputs.tolist()
    assert accuracy(circuit, bits, labels) < 0.6  # the offsets favour class 1
    assert accuracy(same, bits, labels) > 0.75


def witnesses(seed, samples=500):
    """Two classes of 200 outputs, each right about its class for 60 % of the samples."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 2, samples)
    true = labels[:, None] == np.repeat([0, 1], 200)
    return true ^ (rng.random(true.shape) < 0.4), labels


def test_probabilities_are_as_sharp_as_the_outputs_that_are_left():
    circuit = Circuit(400, [], NO_GATES, range(400), GroupSum(np.repeat([0, 1], 200), [0, 0], 10.0))
    pruned = prune_readout(circuit, *witnesses(seed=0), 20)
    assert pruned.readout.temperature == pytest.approx(10 * np.sqrt(20 / 400))  # 2.236: the rule of training
    bits, labels = witnesses(seed=1)
    own, other = (
        np.exp(scores).T / np.exp(scores).sum(axis=1)
        for scores in (Engine(pruned).scores(bits) / temperature for temperature in (pruned.readout.temperature, 10.0))
    )
    chosen = labels, np.arange(len(labels))
    assert -np.log(own[chosen]).mean() < -np.log(other[chosen]).mean() - 0.1
    again = prune_readout(pruned, *witnesses(seed=0), 5)
    assert again.readout.temperature == pytest.approx(10 * np.sqrt(5 / 400))


def test_wrong_requests_are_refused():
    circuit, bits, labels = copies_and_noise()
    with pytest.raises(ValueError, match=r"outputs must be from 2 \(one a class\) to the 25 that there are, got 1"):
        prune_readout(circuit, bits, labels, 1)
    with pytest.raises(ValueError, match="400 samples, 3 labels"):
        prune_readout(circuit, bits, labels[:3], 6)
    regression = Circuit(21, [], NO_GATES, [0, 1], Affine(2))
    with pytest.raises(ValueError, match="only a group-sum readout can be pruned, got Affine"):
        prune_readout(regression, bits, labels, 1)


ENCODER = Threshold(0.5).fit(np.zeros((1, 3)), feature_names=["a", "b", "c"])


def test_features_as_port_values():
    assert pack_features(np.array([[1, 2, 3], [0, 0, 7]]), 3) == (0b011_010_001, 0b111_000_000)
    assert feature_matrix(np.array([[1.0, 2, 3]]), ENCODER, 2).tolist() == [[1, 2, 3]]
    assert feature_matrix({"b": [2], "a": [1], "c": [3]}, ENCODER, 2).tolist() == [[1, 2, 3]]
    drawn = edge_features(ENCODER, 2, np.random.default_rng(0), 50)
    assert (drawn.shape, drawn.min(), drawn.max()) == ((50, 3), 0, 3)


@pytest.mark.parametrize("value", [-1.0, 4.0, 0.5, float("nan")])
def test_features_that_the_port_cannot_hold_are_refused(value):
    with pytest.raises(ValueError, match=r"whole numbers from 0 to 3, but feature 'b' is .*; raise --feature-bits"):
        feature_matrix(np.array([[0, value, 0]]), ENCODER, 2)
    with pytest.raises(ValueError, match="the encoder reads 3 features, got 2"):
        feature_matrix(np.zeros((1, 2)), ENCODER, 2)
    with pytest.raises(ValueError, match="these features are not; use --inputs bits"):
        feature_matrix(np.array([["x", "y", "z"]]), ENCODER, 2)
