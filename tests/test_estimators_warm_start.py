"""What a second ``fit`` with ``warm_start=True`` goes on with, and what it refuses."""

import numpy as np
import pytest
from sklearn.datasets import load_iris, make_friedman1

from gatefit.encoders import Thermometer
from gatefit.estimators import LogicGateClassifier, LogicGateRegressor

SMALL = {"width": 120, "depth": 3, "steps": 60, "threads": 1, "random_state": 0}


@pytest.mark.parametrize(("centre", "scale"), [(0.0, 1.0), (1000.0, 10.0), (-5.0, 1e-3)])
def test_a_regressor_goes_on_in_the_units_it_was_trained_in(centre, scale):
    X, y = make_friedman1(300, random_state=0)
    y = centre + scale * y
    model = LogicGateRegressor(**SMALL, warm_start=True).fit(X, y)
    first = model.score(X, y)
    assert first > 0.6
    model.fit(X, y)
    assert model.score(X, y) > first
    assert model.history_[-1]["loss"] < model.history_[0]["loss"]
    np.testing.assert_array_equal(model.circuit_.predict(X), model.predict(X))


def test_the_units_do_not_change_what_a_warm_start_learns():
    X, y = make_friedman1(300, random_state=0)
    losses = []
    for scale in (1.0, 1024.0):  # a power of two: the scaled targets are the same to the bit
        model = LogicGateRegressor(**SMALL, warm_start=True).fit(X, scale * y).fit(X, scale * y)
        losses.append([row["loss"] for row in model.history_])
    assert losses[0] == losses[1]


@pytest.mark.parametrize(
    ("before", "now", "named"),
    [
        ({}, {"temperature": 0.5}, r"temperature=None, got temperature=0.5; set temperature back"),
        ({}, {"readout_temperature": 3.0}, r"readout_temperature=17.7\d+, got readout_temperature=3.0; set"),
        ({}, {"wiring": "random"}, r"wiring='learned', got wiring='random'; set wiring back"),
        ({}, {"initialisation": "residual"}, r"initialisation='normal', got initialisation='residual'"),
        ({}, {"thresholds": 5}, r"thresholds='auto', got thresholds=5; set thresholds back"),
        ({}, {"encoder": Thermometer(5)}, r"encoder='auto', got encoder=\"Thermometer\(.*5.*\)\"; set encoder back"),
        ({"encoder": Thermometer(5)}, {"encoder": Thermometer(6)}, r"encoder=\"Thermometer\(.*5.*\)\", got encoder="),
    ],
    ids=str,
)
def test_what_a_network_was_made_from_cannot_change(before, now, named):
    X, y = load_iris(return_X_y=True)
    model = LogicGateClassifier(**{**SMALL, "steps": 2}, **before, warm_start=True).fit(X, y)
    with pytest.raises(ValueError, match=r"^warm_start=True continues a network with " + named):
        model.set_params(**now).fit(X, y)
    assert model.n_iter_ == 2


def test_how_it_is_trained_may_change():
    X, y = load_iris(return_X_y=True)
    model = LogicGateClassifier(**{**SMALL, "steps": 2}, encoder=Thermometer(5), warm_start=True).fit(X, y)
    changed = {"learning_rate": 0.01, "batch_size": 32, "schedule": "cosine", "steps": 3, "encoder": Thermometer(5)}
    assert model.set_params(**changed).fit(X, y).n_iter_ == 5
