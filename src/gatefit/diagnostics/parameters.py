"""How far gates have settled, and on which of the sixteen (paper §5, fig. commitment; app. entropy, codebook-neurons).

    commitment   std of c_ab over gates, and max |c_ab|
    distance     ‖c - G_j*‖,  j* = argmin_j ‖c - G_j‖
    entropy      H = -Σ_j π_j log π_j  in nats, mean over gates;  at most log 16 = 2.77
    census       fractions of the deployed gates, by gate and by kind (fig. codebook-neurons, gate-selection):
                 constant (depends on neither input), separable (on one, c_ab = 0), weak and strong (|c_ab| = 1, 2)

c are the method's ``raw_coefficients``: the parameters themselves where it learns coefficients, softmax(θ) G where it
learns logits, M act(s) or M s where it learns corners. π is its ``gate_probabilities``. A method that has no answer has
no such diagnostic. Parameters only: no data.
"""

from typing import Any, Final

import numpy as np
import torch
from jaxtyping import Float, Int64
from torch import Tensor

from gatefit.gates import Gate, GateKind
from gatefit.methods import Method, NotBooleanError
from gatefit.network import LogicNetwork
from gatefit.ops.coefficients import snap

KINDS: Final[dict[str, GateKind]] = {kind.value.partition(" ")[0]: kind for kind in GateKind}
"""constant, separable, weak, strong."""

_MEMBERS: Final = {name: np.array([gate.kind is kind for gate in Gate]) for name, kind in KINDS.items()}


def raw_coefficients(method: Method) -> Float[Tensor, "gates 4"]:
    """The method's own answer, without gradients."""
    with torch.no_grad():
        return method.raw_coefficients().detach()


def _by_layer(network: LogicNetwork) -> list[Float[Tensor, "gates 4"]] | None:
    try:
        return [raw_coefficients(layer.method) for layer in network.gate_layers]
    except NotBooleanError:
        return None


def commitment(network: LogicNetwork) -> dict[str, Any] | None:
    """Spread and largest size of c_ab over all gates of the network, and layer by layer; None where there is no c.

    With the temperature of each layer where the method learns it.
    """
    found = _by_layer(network)
    if found is None:
        return None
    layers = [c[:, 3].double() for c in found]
    spread: dict[str, Any] = {**_spread(torch.cat(layers)), "by_layer": [_spread(layer) for layer in layers]}
    learned = [layer.method.learned_temperature() for layer in network.gate_layers]
    return {**spread, "temperatures": learned} if None not in learned else spread


def _spread(c_ab: Float[Tensor, " gates"]) -> dict[str, float]:
    return {"std_c_ab": float(c_ab.std(correction=0)), "max_abs_c_ab": float(c_ab.abs().max())}


def distance(network: LogicNetwork) -> dict[str, Any] | None:
    """Mean and median over gates of the distance from the raw coefficients to the nearest gate's; None without c."""
    found = _by_layer(network)
    if found is None:
        return None
    layers = [(c - snap(c, implementation=network.implementation)[1]).double().square().sum(-1).sqrt() for c in found]
    return {**_centre(torch.cat(layers)), "by_layer": [_centre(layer) for layer in layers]}


def _centre(distances: Float[Tensor, " gates"]) -> dict[str, float]:
    return {"mean": float(distances.mean()), "median": float(np.median(distances.cpu().numpy()))}


def entropy(network: LogicNetwork) -> dict[str, Any] | None:
    """Mean gate entropy of each layer and of all gates; None where there is no distribution over gates."""
    try:
        with torch.no_grad():
            distributions = [layer.method.gate_probabilities().double() for layer in network.gate_layers]
    except NotBooleanError:
        return None
    layers = [-torch.xlogy(pi, pi).sum(-1) for pi in distributions]
    return {"mean": float(torch.cat(layers).mean()), "by_layer": [float(layer.mean()) for layer in layers]}


def census(network: LogicNetwork) -> dict[str, Any] | None:
    """Fractions of the deployed gates: by kind, by gate number, and layer by layer; None where none is deployed."""
    try:
        layers = [np.bincount(gates.cpu().numpy(), minlength=len(Gate)) for gates in network.gates()]
    except NotBooleanError:
        return None
    return {**_fractions(np.sum(layers, axis=0)), "by_layer": [_fractions(counts) for counts in layers]}


def _fractions(counts: Int64[np.ndarray, "16"]) -> dict[str, Any]:
    total = int(counts.sum())
    kinds = {name: int(counts[members].sum()) / total for name, members in _MEMBERS.items()}
    return {**kinds, "gates": [int(count) / total for count in counts]}
