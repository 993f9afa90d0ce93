"""What a fit costs beyond its steps: evaluations are bounded, and processes do not wait for one another."""

import subprocess
import sys
import textwrap

import numpy as np
import pytest
from sklearn.datasets import make_classification

from gatefit.estimators import LogicGateClassifier, LogicGateRegressor
from gatefit.network import LogicNetwork

pytestmark = pytest.mark.outside

SMALL = {"width": 60, "depth": 2, "steps": 20, "threads": 1, "random_state": 0, "thresholds": 3}


def test_a_worker_process_does_not_load_torchs_compiler():
    """It takes two seconds, in every process that GridSearchCV(n_jobs=2) starts for fits of hundredths of a second."""
    code = """
    import sys
    import numpy as np
    from gatefit import LogicGateClassifier, LogicGateRegressor
    X = np.arange(40.0).reshape(20, 2)
    for estimator in (LogicGateClassifier, LogicGateRegressor):
        model = estimator(width=20, depth=2, steps=3, warm_start=True).fit(X, X[:, 0] > 20)
        model.fit(X, X[:, 0] > 20).predict(X)
    print([name for name in ("torch._dynamo", "torch._inductor", "sympy") if name in sys.modules])
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@pytest.fixture(scope="module")
def large():
    return make_classification(40_000, 8, random_state=0)


@pytest.fixture
def evaluated(monkeypatch):
    """How many samples each evaluation of the soft network read."""
    counts = []
    original = LogicNetwork.soft_scores

    def counted(self, x):
        scores = original(self, x)
        counts.append(len(scores))
        return scores

    monkeypatch.setattr(LogicNetwork, "soft_scores", counted)
    return counts


@pytest.mark.parametrize("estimator", [LogicGateClassifier, LogicGateRegressor])
def test_evaluations_read_a_bounded_number_of_samples(large, evaluated, estimator):
    X, y = large
    model = estimator(**SMALL).fit(X, y)
    assert len(model.history_) == 20  # early stopping, which is automatic here
    calibration = 10_000 if estimator is LogicGateClassifier else 0
    assert sum(evaluated) == 20 * (10_000 + 4_000) + calibration
    evaluated.clear()
    estimator(**SMALL, early_stopping=True, validation_fraction=0.5, evaluate_every=10).fit(X, y)
    assert sum(evaluated) == 2 * (10_000 + 10_000) + calibration
    evaluated.clear()
    estimator(**SMALL, early_stopping=False).fit(X, y)
    assert (
        sum(evaluated) == 10_000 + 1 + calibration
    )  # a single sample stands in for the validation set that is not there


def test_the_training_score_counts_every_sample_where_equal_ones_are_merged(large):
    X, y = large
    model = LogicGateClassifier(**{**SMALL, "thresholds": 1}, early_stopping=False).fit(X[:9000], y[:9000])
    assert model.encoder_.bits == 8  # so there are fewer kinds of rows than fit into a batch
    assert model.history_[-1]["train_score"] == model.score(X[:9000], y[:9000])


def test_the_training_score_of_a_sample_is_near_that_of_all(large):
    X, y = large
    order = np.argsort(y, kind="stable")  # the first 10,000 would be of one class
    model = LogicGateClassifier(**SMALL, early_stopping=False).fit(X[order], y[order])
    assert abs(model.history_[-1]["train_score"] - model.score(X, y)) < 0.02
    again = LogicGateClassifier(**SMALL, early_stopping=False).fit(X[order], y[order])
    assert again.history_ == model.history_
