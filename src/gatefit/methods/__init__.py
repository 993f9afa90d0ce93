"""Every gate method behind one interface: parameters -> coefficients (gates, 4), and the gates that are deployed."""

from typing import Final

from gatefit._requires import require

require("torch", "train", "training")

from gatefit.methods.base import Method, NotBooleanError, SingleGateForward
from gatefit.methods.corner import IWP, IWPSTE, IWPFree
from gatefit.methods.gate_logits import GumbelST, HardST, SoftMix
from gatefit.methods.multilinear import MultilinearCovJac, MultilinearFree, MultilinearSTE

METHODS: Final[dict[str, type[Method]]] = {
    "soft-mix": SoftMix,
    "hard-st": HardST,
    "gumbel-st": GumbelST,
    "multilinear-ste": MultilinearSTE,
    "multilinear-covjac": MultilinearCovJac,
    "multilinear-free": MultilinearFree,
    "iwp": IWP,
    "iwp-ste": IWPSTE,
    "iwp-free": IWPFree,
}


def method_class(name: str) -> type[Method]:
    """The method called ``name``."""
    if name not in METHODS:
        raise ValueError(f"unknown method {name!r}; choose one of {', '.join(METHODS)}")
    return METHODS[name]


def resolve_method(method: str | type[Method]) -> type[Method]:
    """The class of a method given by name, or a class of the user's own, checked."""
    if isinstance(method, str):
        return method_class(method)
    if not (isinstance(method, type) and issubclass(method, Method)):
        raise TypeError(f"method must be a name or a subclass of gatefit.methods.Method, got {method!r}")
    name = getattr(method, "name", None)
    if not isinstance(name, str) or not name:
        raise TypeError(f'{method.__name__} needs a name, which its saved networks carry: name = "my-method"')
    if METHODS.get(name, method) is not method:
        raise ValueError(f"{method.__name__} has the name of gatefit's own {name}; give it another one")
    return method


__all__ = [
    "IWP",
    "IWPSTE",
    "METHODS",
    "GumbelST",
    "HardST",
    "IWPFree",
    "Method",
    "MultilinearCovJac",
    "MultilinearFree",
    "MultilinearSTE",
    "NotBooleanError",
    "SingleGateForward",
    "SoftMix",
    "method_class",
    "resolve_method",
]
