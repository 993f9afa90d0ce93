"""From a fitted estimator to its circuit: the same on any machine, and for the smallest of tables."""

import itertools
import time

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris

from gatefit.circuit.prove import Equivalent, prove
from gatefit.encoders import Identity
from gatefit.estimators import LogicGateClassifier, LogicGateRegressor
from gatefit.harden import harden

SMALL = {"width": 120, "depth": 3, "steps": 60, "threads": 1, "random_state": 0}


def hours_between_looks(monkeypatch):
    """A machine so busy that hours pass between any two looks at the clock."""
    for name in ("monotonic", "perf_counter", "time", "process_time"):
        looks = itertools.count()
        monkeypatch.setattr(time, name, lambda looks=looks: 1e4 * next(looks))


def test_the_circuit_does_not_depend_on_the_clock(monkeypatch):
    X, y = load_iris(return_X_y=True)
    usual = LogicGateClassifier(**SMALL).fit(X, y).circuit_
    assert usual.gates.size < 120 * 3
    hours_between_looks(monkeypatch)
    busy = LogicGateClassifier(**SMALL).fit(X, y).circuit_
    for field in ("gates", "operands", "outputs"):
        np.testing.assert_array_equal(getattr(usual, field), getattr(busy, field))


def test_a_limit_of_your_own_keeps_the_trained_circuit_with_a_warning(monkeypatch):
    X, y = load_iris(return_X_y=True)
    model = LogicGateClassifier(**SMALL, proof_seconds=60).fit(X, y)
    hours_between_looks(monkeypatch)
    with pytest.warns(UserWarning, match=r"^circuit_ is not optimised, .* were not decided in 60 s; raise timeout"):
        circuit = model.circuit_
    np.testing.assert_array_equal(circuit.gates, harden(model.network_).gates)
    np.testing.assert_allclose(circuit.predict_proba(X), model.predict_proba(X), rtol=1e-12)


@pytest.mark.parametrize(
    "X",
    [
        np.array([[False], [True]] * 20),
        np.array([[3.5], [7.0]] * 20),
        pd.DataFrame({"member": [False, True] * 20}),
        pd.DataFrame({"member": ["no", "yes"] * 20, "constant": 1}),
    ],
    ids=["bool", "two numbers", "frame", "two categories"],
)
def test_a_single_column_of_two_values(X):
    y = np.array([0, 1] * 20)
    for labels, estimator in ((y, LogicGateClassifier), (1 - y, LogicGateClassifier), (4.0 - y, LogicGateRegressor)):
        model = estimator(**SMALL).fit(X, labels)
        np.testing.assert_allclose(model.predict(X), labels)
        assert isinstance(prove(harden(model.network_), model.circuit_), Equivalent)


def test_a_single_bit_of_your_own_encoder():
    X = np.array([[0], [1]] * 20, dtype=np.uint8)
    model = LogicGateClassifier(**SMALL, encoder=Identity()).fit(X, X[:, 0])
    assert model.encoder_.bits == 1
    assert model.score(X, X[:, 0]) == 1
    with pytest.raises(ValueError, match=r"^a gate reads two different inputs, got 1 in all"):
        LogicGateClassifier(**SMALL, encoder=Identity(), wiring="random").fit(X, X[:, 0])
