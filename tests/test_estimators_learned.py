"""What estimators do with a learned wiring: automatic settings, calibration, budgets, and a warning."""

import numpy as np
import pytest
import torch
from sklearn.datasets import load_iris, make_classification
from sklearn.exceptions import ConvergenceWarning

from gatefit.circuit.prove import Equivalent, prove
from gatefit.circuit.statistics import statistics
from gatefit.estimators import LogicGateClassifier, LogicGateRegressor
from gatefit.estimators.recipes import excess_kurtosis, recipe_of, thresholds_of, wiring_of
from gatefit.harden import harden
from gatefit.network import LogicNetwork
from gatefit.training.budget import Size, estimated_luts

SHORT = {"threads": 1, "random_state": 0}


@pytest.fixture(scope="module")
def iris():
    return load_iris(return_X_y=True)


def test_the_wiring_is_learned_except_for_values_of_heavy_tails():
    rng = np.random.default_rng(0)
    x = rng.normal(size=500)
    assert wiring_of("auto", rng.integers(0, 2, 500)) == "learned"
    assert wiring_of("auto", x) == "learned"
    assert wiring_of("auto", np.exp(2 * x)) == "auto"  # the network's name of what is fixed here
    assert wiring_of("fixed", x) == "auto"
    assert wiring_of("random", x) == "random"
    assert excess_kurtosis(x) == pytest.approx(0, abs=0.5)
    assert excess_kurtosis(np.array([0.0, 1.0])) == pytest.approx(-2)
    assert excess_kurtosis(np.full(5, 3.0)) == 0
    assert excess_kurtosis(1e200 * np.array([0.0, 1.0])) == pytest.approx(-2)


def test_settings_follow_from_the_table():
    small, large = (recipe_of("learned", rows=rows, bits=100, classes=2) for rows in (100, 10_000))
    assert (small.steps, large.steps) == (300, 2000)
    assert recipe_of("learned", rows=10**7, bits=100, classes=2).steps == 6000
    widths = [recipe_of("learned", rows=rows, bits=100, classes=26).width for rows in (100, 3_000, 100_000)]
    assert widths == [2600, 5200, 10_400]
    assert (small.width, large.width) == (500, 1000)
    assert recipe_of("unique", rows=100, bits=5000, classes=2).width == 2500
    assert thresholds_of("learned", 100_000, 10) == 47
    assert thresholds_of("learned", 100_000, 1000) == thresholds_of("learned", 100, 2) == 15
    assert thresholds_of("learned", 500, 10) == 25
    assert thresholds_of("unique", 100_000, 10) == 15


def test_all_layers_vote_and_a_linear_readout_reads_the_last(iris):
    X, y = iris
    assert LogicGateClassifier(**SHORT, steps=3).fit(X, y).network_.votes == (1, 2, 3)
    assert LogicGateClassifier(**SHORT, steps=3, readout="linear", width=60).fit(X, y).network_.votes == (3,)
    assert LogicGateClassifier(**SHORT, steps=3, votes="last").fit(X, y).network_.votes == (3,)


def test_deployed_scores_have_the_means_of_training(iris):
    X, y = iris
    model = LogicGateClassifier(**SHORT, width=60, steps=60).fit(X, y)
    bits = torch.as_tensor(model.encoder_.transform(X))
    network = model.network_
    with torch.no_grad():
        shift = (network.soft_scores(bits) - network(bits)).mean(0) * network.readout.temperature
    assert network.readout.offsets is not None
    assert float(shift.max() - shift.min()) <= 1.01  # votes are whole numbers
    assert network.readout.offsets.min() == 0
    assert model.history_[-1]["train_score"] == model.score(X, y)
    np.testing.assert_array_equal(model.circuit_.predict(X), model.predict(X))
    assert isinstance(prove(harden(network), model.circuit_), Equivalent)
    restored = LogicNetwork.from_state_dict(network.state_dict()).eval()
    assert torch.equal(restored(bits), network(bits))
    fresh = LogicNetwork.from_state_dict(LogicNetwork(4, 2, 6, 1).state_dict())
    assert fresh.readout.offsets is None


def test_a_warm_start_goes_on_from_uncalibrated_scores(iris):
    X, y = iris
    model = LogicGateClassifier(**SHORT, width=60, steps=20, warm_start=True).fit(X, y)
    model.fit(X[:100], y[:100]).fit(X, y)
    assert model.n_iter_ == 60
    bits = torch.as_tensor(model.encoder_.transform(X))
    with torch.no_grad():
        shift = (model.network_.soft_scores(bits) - model.network_(bits)).mean(0) * model.network_.readout.temperature
    assert float(shift.max() - shift.min()) <= 1.01


def test_a_warm_start_keeps_the_size_that_more_samples_would_change():
    X, y = make_classification(3200, 4, n_informative=2, n_redundant=0, random_state=0)
    model = LogicGateClassifier(**SHORT, steps=2, warm_start=True).fit(X[:100], y[:100])
    assert model.fit(X, y).network_.width == 500


@pytest.mark.parametrize("budget", [9, 40, 200])
def test_a_budget_of_gates_is_kept_and_used(iris, budget):
    X, y = iris
    model = LogicGateClassifier(**SHORT, steps=40, max_gates=budget).fit(X, y)
    live = statistics(model.circuit_).live_gates
    assert live <= budget
    assert model.history_[-1]["train_score"] == model.score(X, y)
    again = LogicGateClassifier(**SHORT, steps=40, max_gates=budget).fit(X, y)
    assert again.network_.widths == model.network_.widths
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))


def test_a_warm_start_stays_within_its_budget(iris):
    X, y = iris
    model = LogicGateClassifier(**SHORT, steps=20, max_gates=40, warm_start=True).fit(X, y)
    assert model.network_.widths == (12, 12, 12)
    assert model.fit(X, y).network_.widths == (12, 12, 12)
    assert model.n_iter_ == 40


def test_a_budget_that_is_larger_than_needed_changes_nothing(iris):
    X, y = iris
    free, bound = (LogicGateClassifier(**SHORT, steps=20, max_gates=most).fit(X, y) for most in (None, 10**6))
    np.testing.assert_array_equal(free.decision_function(X), bound.decision_function(X))


def test_a_regressors_budget(iris):
    X, _ = iris
    model = LogicGateRegressor(**SHORT, steps=40, max_gates=50).fit(X, X[:, 0])
    assert statistics(model.circuit_).live_gates <= 50
    np.testing.assert_array_equal(model.circuit_.predict(X), model.predict(X))
    tables = LogicGateRegressor(**SHORT, steps=5, max_luts=50).fit(X, X[:, 0]).network_
    assert estimated_luts(Size(tables.width, tables.depth, "last"), 1) <= 50


def test_a_budget_of_tables(iris):
    X, y = iris
    network = LogicGateClassifier(**SHORT, steps=5, max_luts=150).fit(X, y).network_
    assert (network.depth, network.votes) == (2, (2,))
    assert estimated_luts(Size(network.width, 2, "last"), 3) <= 150
    both = LogicGateClassifier(**SHORT, steps=5, max_luts=150, max_gates=60).fit(X, y).network_
    assert sum(both.widths) <= 60
    with pytest.raises(ValueError, match=r"choose the width, got a network of your own too"):
        LogicGateClassifier(network=lambda *_: network, max_luts=150).fit(X, y)


def test_a_training_set_that_is_not_fitted_is_said(monkeypatch):
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 2, (4000, 3)).astype(float), rng.integers(0, 2, 4000)
    options = {**SHORT, "width": 20, "depth": 1, "steps": 60, "batch_size": 32}
    LogicGateClassifier(**options).fit(X, y)  # no warning, which would be an error here: so few steps are not judged
    monkeypatch.setattr("gatefit.estimators.base.JUDGED_STEPS", 60)
    message = (
        r"^the training set is not fitted: its accuracy is 0\.5\d\d, and always the most .*; try more steps, a larger"
    )
    with pytest.warns(ConvergenceWarning, match=message) as caught:
        LogicGateClassifier(**options).fit(X, y)
    assert caught[0].filename == __file__
    with pytest.warns(
        ConvergenceWarning, match=r"^the training set is not fitted: its R² is -?0\.\d+, and the mean has 0"
    ):
        LogicGateRegressor(**options).fit(X, rng.random(4000))
    LogicGateClassifier(**options).fit(X, X[:, 0])
    LogicGateClassifier(**options, class_weight={0: 1, 1: 5}).fit(X, y)  # an accuracy does not measure what weights ask
