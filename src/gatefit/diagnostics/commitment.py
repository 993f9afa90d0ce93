"""How far gates have settled on one of the sixteen (paper §5, fig. commitment; app. entropy, codebook-neurons).

    commitment   std of c_ab over gates, and max |c_ab|
    distance     ‖c - G_j*‖,  j* = argmin_j ‖c - G_j‖
    entropy      H = -Σ_j π_j log π_j  in nats, mean over gates;  at most log 16 = 2.77

c are the raw coefficients: the parameters themselves where a method learns coefficients, softmax(θ) G where it learns
logits, M act(s) or M s where it learns corners. π is the method's ``gate_probabilities``. Parameters only: no data.
"""

from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from gatefit.methods import IWP, IWPSTE, IWPFree, Method, MultilinearCovJac, NotBooleanError
from gatefit.methods.corner import from_corners
from gatefit.network import LogicNetwork
from gatefit.quantise import codebook, snap


def learns_coefficients(method: Method) -> bool:
    """Whether the parameters are (c_0, c_a, c_b, c_ab) themselves, not logits or corners."""
    return method.parameters_per_gate == 4 and not isinstance(method, IWP | IWPSTE | IWPFree)


def raw_coefficients(method: Method) -> Float[Tensor, "gates 4"]:
    """The coefficients that the parameters stand for, before any snapping, softening or noise."""
    with torch.no_grad():
        if learns_coefficients(method):
            return method.latent.detach()
        if isinstance(method, IWPSTE):
            return from_corners(method.corners())
        if isinstance(method, IWP | IWPFree):
            return method.coefficients()
        return method.gate_probabilities() @ codebook(method.latent.dtype, method.latent.device)


def commitment(network: LogicNetwork) -> dict[str, Any]:
    """Spread and largest size of c_ab over all gates of the network, and layer by layer.

    With the temperature of each layer where CovJac learns it.
    """
    layers = [raw_coefficients(layer.method)[:, 3].double() for layer in network.gate_layers]
    found: dict[str, Any] = {**_spread(torch.cat(layers)), "by_layer": [_spread(layer) for layer in layers]}
    methods = [layer.method for layer in network.gate_layers]
    logs = [
        m.log_temperature.detach()
        for m in methods
        if isinstance(m, MultilinearCovJac) and m.log_temperature is not None
    ]
    return {**found, "temperatures": [float(log.exp()) for log in logs]} if logs else found


def _spread(c_ab: Float[Tensor, " gates"]) -> dict[str, float]:
    return {"std_c_ab": float(c_ab.std(correction=0)), "max_abs_c_ab": float(c_ab.abs().max())}


def distance(network: LogicNetwork) -> dict[str, Any]:
    """Mean and median over gates of the distance from the raw coefficients to the nearest gate's."""
    layers = []
    for layer in network.gate_layers:
        c = raw_coefficients(layer.method)
        layers.append((c - snap(c)).double().square().sum(-1).sqrt())
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
