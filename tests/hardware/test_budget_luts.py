"""Budgets of tables against what Yosys counts."""

import pytest
from sklearn.datasets import load_digits, load_iris

from gatefit.estimators import LogicGateClassifier, LogicGateRegressor
from gatefit.hardware.build import Build, Settings
from gatefit.hardware.targets import TARGETS
from patience import HANG
from tools import require_tool

pytestmark = pytest.mark.outside


@pytest.mark.parametrize(("estimator", "load", "budget"), [
    (LogicGateClassifier, load_iris, 120),
    pytest.param(LogicGateClassifier, load_digits, 400, marks=pytest.mark.slow),
    (LogicGateRegressor, load_iris, 100),
])  # fmt: skip
def test_a_budget_of_tables_holds_as_synthesised(estimator, load, budget, tmp_path):
    require_tool("yosys")
    X, y = load(return_X_y=True)
    model = estimator(max_luts=budget, steps=100, random_state=0, threads=1).fit(X, y)
    settings = Settings(model.encoder_.transform(X[:5]), timeout=HANG, route=False)
    build = Build(model.circuit_, TARGETS["xilinx"], None, 0, tmp_path, settings).run()
    assert 0 < build["core"]["tables"] <= budget
