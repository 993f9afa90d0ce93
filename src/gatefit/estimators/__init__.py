"""scikit-learn estimators: ``fit`` on a table, get a logic gate network and its circuit."""

from gatefit._requires import require

require("sklearn", "train", "an estimator")
require("torch", "train", "an estimator")

from gatefit.estimators.classifier import LogicGateClassifier
from gatefit.estimators.regressor import LogicGateRegressor

__all__ = ["LogicGateClassifier", "LogicGateRegressor"]
