"""A budget of gates used to the full: what optimising leaves free goes to a wider network.

    trained T, live L <= T <= budget   ->   0.95 T · budget / L are trained next

A wider network is kept where it fits as optimised and proven, and reaches at least as much; else the one before it is.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final

from gatefit.circuit.statistics import statistics
from gatefit.estimators.deployment import Deployment
from gatefit.network import LogicNetwork
from gatefit.training.budget import Size

GROWTHS: Final = 3
"""Wider networks that are tried at most."""
CAUTION: Final = 0.95
"""Of the width that would just fit if a wider network were optimised by the same factor."""


@dataclass(frozen=True)
class Fitted:
    """A trained network, its seed, its log, its steps, what it was made from, and the score that it is judged by."""

    network: LogicNetwork
    seed: int
    metrics: list[dict[str, Any]]
    steps: int
    made: dict[str, Any]
    reached: float


def grown(
    fit: Fitted,
    fitted: Callable[[Size], Fitted],
    size: Size,
    widest: Size,
    classes: int,
    max_gates: int,
    should_stop: Callable[[], bool] = lambda: False,
) -> Fitted:
    """The best of ``fit``, of ``size``, and wider networks up to ``widest`` that stay within the budget."""
    if should_stop():
        return fit
    live = live_gates(fit.network)
    for _ in range(GROWTHS):
        width = min(widest.width, int(CAUTION * size.width * max_gates / max(1, live)) // classes * classes)
        if width <= size.width:
            break
        size = replace(size, width=width)
        wider = fitted(size)
        live = live_gates(wider.network)
        if live > max_gates or wider.reached < fit.reached:
            break
        fit = wider
        if should_stop():
            break
    return fit


def live_gates(network: LogicNetwork) -> int:
    """Of the circuit that is deployed: optimised where that is proven to change nothing."""
    return statistics(Deployment(network, None).circuit).live_gates
