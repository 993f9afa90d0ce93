"""gatefit: fit logic gate networks, deploy them as proven combinational circuits.

The names below are imported when they are first used: ``import gatefit`` is fast and needs neither torch nor numba.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from gatefit._version import VERSION

__version__ = VERSION

if TYPE_CHECKING:
    from gatefit import verify
    from gatefit.circuit.ir import Circuit
    from gatefit.circuit.optimise import optimise
    from gatefit.circuit.prove import Counterexample, Equivalent, Undecided, prove
    from gatefit.datasets import load_dataset
    from gatefit.estimators import LogicGateClassifier, LogicGateRegressor
    from gatefit.gates import Gate
    from gatefit.layers import GateLayer
    from gatefit.network import LogicNetwork

_HOMES = {
    "Circuit": "gatefit.circuit.ir",
    "Counterexample": "gatefit.circuit.prove",
    "Equivalent": "gatefit.circuit.prove",
    "Gate": "gatefit.gates",
    "GateLayer": "gatefit.layers",
    "LogicGateClassifier": "gatefit.estimators",
    "LogicGateRegressor": "gatefit.estimators",
    "LogicNetwork": "gatefit.network",
    "Undecided": "gatefit.circuit.prove",
    "load_dataset": "gatefit.datasets",
    "optimise": "gatefit.circuit.optimise",
    "prove": "gatefit.circuit.prove",
}

__all__ = [
    "Circuit",
    "Counterexample",
    "Equivalent",
    "Gate",
    "GateLayer",
    "LogicGateClassifier",
    "LogicGateRegressor",
    "LogicNetwork",
    "Undecided",
    "load_dataset",
    "optimise",
    "prove",
    "verify",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    if name == "verify":
        return import_module("gatefit.verify")
    raise AttributeError(f"module 'gatefit' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
