"""The temperature of probabilities: what finds it, and that it changes nothing else."""

import dataclasses

import numpy as np
import pytest
import torch
from sklearn.datasets import make_classification
from sklearn.metrics import log_loss

from gatefit import Circuit
from gatefit.circuit.file import digest
from gatefit.estimators import LogicGateClassifier, calibration
from gatefit.estimators.calibration import cautious_factor, cross_entropy, fitted_factor
from gatefit.harden import harden
from gatefit.network import LogicNetwork
from gatefit.readouts import GroupSum

SMALL = {"width": 120, "depth": 2, "steps": 60, "threads": 1, "random_state": 0}


@pytest.fixture(scope="module")
def noisy():
    X, y = make_classification(900, 8, n_informative=4, flip_y=0.3, random_state=0)
    return X[:600], y[:600], X[600:], y[600:]


@pytest.fixture(scope="module")
def held(noisy):
    return LogicGateClassifier(**SMALL, early_stopping=True, validation_fraction=0.3).fit(*noisy[:2])


@pytest.mark.parametrize("factor", [0.25, 1.0, 3.0])
def test_the_factor_of_scores_that_were_scaled_is_found(factor):
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(20_000, 3))
    powers = np.exp(scores)
    classes = (powers.cumsum(axis=1) > rng.random((20_000, 1)) * powers.sum(axis=1, keepdims=True)).argmax(axis=1)
    found = fitted_factor(factor * scores, classes, np.ones(20_000))
    assert found == pytest.approx(factor, rel=0.06)
    assert np.log2(found) * calibration.STEPS == pytest.approx(round(np.log2(found) * calibration.STEPS))


def test_the_search_finds_the_least_of_all_candidates():
    rng = np.random.default_rng(1)
    for _ in range(20):
        scores, classes = 3 * rng.normal(size=(30, 4)), rng.integers(0, 4, 30)
        weights = rng.random(30)
        losses = [
            cross_entropy(scores, classes, weights, 2.0 ** (j / calibration.STEPS))
            for j in range(calibration.LEAST, calibration.MOST + 1)
        ]
        found = fitted_factor(scores, classes, weights)
        assert cross_entropy(scores, classes, weights, found) == pytest.approx(min(losses), rel=1e-12)


def test_rows_that_are_all_right_do_not_make_a_model_certain():
    scores = np.array([[3.0, 0.0], [0.0, 3.0]] * 50)
    classes = np.array([0, 1] * 50)
    factor = fitted_factor(scores, classes, np.ones(100))
    wrong = 1 / (1 + np.exp(3 / factor))
    assert wrong == pytest.approx(1 / 102, rel=0.15)  # Platt: one error in n + 2


def test_weights_count_as_rows():
    rng = np.random.default_rng(2)
    scores, classes, weights = rng.normal(size=(40, 3)), rng.integers(0, 3, 40), rng.integers(1, 4, 40).astype(float)
    scaled = [cross_entropy(scores, classes, weights * scale, 1.5) for scale in (1.0, 7.0)]
    assert scaled[0] == pytest.approx(scaled[1], rel=1e-12)
    assert scaled[0] != pytest.approx(cross_entropy(scores, classes, np.ones(40), 1.5), rel=1e-6)


def test_the_fewer_rows_the_less_scores_are_believed():
    assert [cautious_factor(rows) for rows in (100, 1_000, 10_000)] == [2.0, 1.1, 1.01]


def test_probabilities_are_those_of_the_circuit_and_of_its_file(held, noisy, tmp_path):
    X_test = noisy[2]
    before = held.predict_proba(X_test)
    held.circuit_.save(tmp_path / "m.gate")
    for same in (held.predict_proba(X_test), held.circuit_.predict_proba(X_test)):
        np.testing.assert_array_equal(same, before)
    np.testing.assert_array_equal(Circuit.load(tmp_path / "m.gate").predict_proba(X_test), before)
    np.testing.assert_array_equal(harden(held.network_).predict_proba(X_test), before)


def test_nothing_but_probabilities_follows_the_temperature(noisy, monkeypatch, held):
    X, y, X_test, _ = noisy
    monkeypatch.setattr(LogicGateClassifier, "_calibrate", lambda *_: None)
    plain = LogicGateClassifier(**SMALL, early_stopping=True, validation_fraction=0.3).fit(X, y)
    assert plain.history_ == held.history_
    np.testing.assert_array_equal(plain.decision_function(X_test), held.decision_function(X_test))
    np.testing.assert_array_equal(plain.predict(X_test), held.predict(X_test))
    np.testing.assert_array_equal(plain.circuit_.scores(X_test), held.circuit_.scores(X_test))
    ours, theirs = held.network_.state_dict(), plain.network_.state_dict()
    assert ours.keys() - theirs.keys() == {"readout.probability_temperature"}
    assert all(torch.equal(theirs[name], ours[name]) for name in theirs)
    readout = dataclasses.replace(held.circuit_.readout, temperature=plain.circuit_.readout.temperature)
    assert digest(dataclasses.replace(held.circuit_, readout=readout)) == digest(plain.circuit_)
    assert not np.allclose(plain.predict_proba(X_test), held.predict_proba(X_test))


def test_rows_kept_apart_lower_the_log_loss_of_a_model_that_is_too_sure(noisy):
    X, y, X_test, y_test = noisy
    options = {**SMALL, "steps": 150, "readout_temperature": 2.0}
    model = LogicGateClassifier(**options, early_stopping=True, validation_fraction=0.3, n_iter_no_change=50).fit(X, y)
    sure = 1 / (1 + np.exp(-model.decision_function(X_test)))
    assert model.circuit_.readout.temperature > 2 * model.network_.readout.temperature
    assert log_loss(y_test, model.predict_proba(X_test)) < 0.85 * log_loss(y_test, sure)


def test_a_network_keeps_its_temperature_through_a_state_dict(held, noisy):
    state = held.network_.state_dict()
    again = LogicNetwork.from_state_dict(state)
    assert harden(again).readout.temperature == held.circuit_.readout.temperature
    del state["readout.probability_temperature"]  # as an earlier version saved it
    assert harden(LogicNetwork.from_state_dict(state)).readout.temperature == held.network_.readout.temperature


def test_a_readout_that_an_earlier_version_pickled_is_not_calibrated():
    readout = GroupSum(12, 3, temperature=2.0)
    del readout._buffers["probability_temperature"]
    assert readout.harden().temperature == 2.0
    assert readout.trained_temperature is None
    readout.calibrate_probabilities(5.0)
    assert (readout.harden().temperature, readout.trained_temperature) == (5.0, 2.0)
    readout.calibrate_probabilities(None)
    assert readout.harden().temperature == 2.0


def test_a_warm_start_finds_the_temperature_anew(noisy):
    X, y, X_test, _ = noisy
    model = LogicGateClassifier(**SMALL, warm_start=True).fit(X, y)
    assert model.circuit_.readout.temperature == pytest.approx(
        cautious_factor(600) * model.network_.readout.temperature
    )
    model.fit(X[:300], y[:300])
    assert model.circuit_.readout.temperature == pytest.approx(
        cautious_factor(300) * model.network_.readout.temperature
    )
    np.testing.assert_array_equal(model.predict_proba(X_test), model.circuit_.predict_proba(X_test))
