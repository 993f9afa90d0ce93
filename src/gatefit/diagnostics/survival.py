"""How much of a layer's signal survives, and how often c_ab learns (paper §5, fig. cancellation; Prop. basis-futility).

A gate evaluates the mixture z = Σ_j π_j g_j(a, b) of the sixteen gates, so that ∂z/∂a = Σ_j π_j ∂g_j/∂a is a sum in
which complementary gates cancel (Prop. softmix-cancel). The most that could pass is the sum without signs:

    s_l = Σ |∂z/∂h| / Σ ‖∂z/∂h‖_max,   ‖∂z/∂h‖_max = Σ_j π_j |∂g_j/∂h|,   h = a, b

summed over samples, gates and both inputs at the activations the network has: the fraction of the gradient that is not
cancelled, 0 <= s_l <= 1. π is what the forward pass mixes with: softmax(θ), ω, or the corners' product measure; a
method that commits to one gate has nothing to cancel, and s_l = 1.
The paper leaves the maximum undefined. With N(0, 1) parameters on MNIST at depth 12 this one gives 0.27 to 0.30 for
Soft-Mix (paper: 0.29), 1 for Multilinear-STE (1.0), and for Multilinear-CovJac 0.74 at τ = 1, 0.99 at τ = 0.1 (0.993).

    coverage_l = P(∂z/∂c_ab ≠ 0)      over (gate, sample) pairs; c_ab the parameter, or else the evaluated coefficient

Straight through it is P(ab ≠ 0), or P(ψ~_ab ≠ 0) in another basis; under CovJac P((Jψ)_ab ≠ 0).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import numpy as np
import torch
from jaxtyping import Float, Int, Int64, UInt8
from torch import Tensor, nn
from torch.nn import functional

from gatefit.codebook import CODEBOOK
from gatefit.diagnostics.batch import first_samples
from gatefit.gates import Gate
from gatefit.layers import GateLayer
from gatefit.methods import Method, NotBooleanError
from gatefit.network import LogicNetwork
from gatefit.ops.batches import Batch
from gatefit.ops.stacks import at_places
from gatefit.randomness import noise_kept

Found = TypeVar("Found")

WORDS: Final = 2
"""Layers are walked with the first 128 samples of a batch: gates are many, so that the mean over pairs is sharp."""


def _sign_free(own: int) -> Int64[np.ndarray, "16 2"]:
    """(u, v) of each gate's |∂g/∂h| = |u + v h'|, with the sign that makes the first of them that is not 0 positive."""
    rows = CODEBOOK[:, [own, 3]]
    return rows * np.sign(np.where(rows[:, 0] != 0, rows[:, 0], rows[:, 1]))[:, None]


SLOPES: Final[tuple[tuple[int, int], ...]] = tuple(sorted({(u, v) for u, v in _sign_free(1).tolist() if u or v}))
"""The different |u + v h| that a gate's derivative can be, but for 0."""

_MEMBERS: Final = {own: (_sign_free(own)[:, None] == np.array(SLOPES)).all(-1) for own in (1, 2)}
"""Which gates have which slope in their first and in their second input."""


@dataclass(frozen=True)
class Walked:
    """A layer on the way through the network: its method, wiring and coefficients of this pass, and what they read.

    ``gates`` are those committed to, where the method commits; ``owners`` the rows of parameters that gates share.
    """

    method: Method
    wiring: Int64[Tensor, "2 gates"]
    coefficients: Float[Tensor, "gates 4"]
    gates: UInt8[Tensor, " gates"] | None
    owners: Int[Tensor, " gates"] | None
    h: Float[Tensor, "inputs samples"]


def walk(network: LogicNetwork, x: Batch, visit: Callable[[Walked], Found]) -> list[Found]:
    """What ``visit`` finds at every layer of gates, on the first samples of a batch, as the network is trained."""
    found: list[Found] = []

    def visited(layer: nn.Module, read: tuple[Tensor, ...], _: Tensor) -> None:
        assert isinstance(layer, GateLayer)
        method = layer.method
        gates, c = method.sample() if method.boolean_forward else (None, method.coefficients())
        committed = None if gates is None else layer.at_places(gates)
        # A row for each node: gates read whole rows.
        rows = read[0].T.contiguous()
        wiring = layer.wiring.committed().long()
        found.append(visit(Walked(method, wiring, layer.at_places(c), committed, layer.owners, rows)))

    layers = [layer for layer in network.gate_layers if isinstance(layer, GateLayer)]
    hooks = [layer.register_forward_hook(visited) for layer in layers]
    try:
        network.layer_by_layer(first_samples(x, WORDS))
    finally:
        for hook in hooks:
            hook.remove()
    return found


def survival(network: LogicNetwork, x: Batch) -> dict[str, Any] | None:
    """s_l of every layer and their mean, None where nothing passes; None for a network that mixes no gates."""
    if any(layer.method.has_activation for layer in network.gate_layers):
        return None
    try:
        with torch.no_grad(), noise_kept(network):
            layers = walk(network, x, _layer_survival)
    except NotBooleanError:
        return None  # A method that says nothing of which gates it mixes.
    known = [s for s in layers if s is not None]
    return {"mean": sum(known) / len(known) if known else None, "by_layer": layers}


def _layer_survival(layer: Walked) -> float | None:
    """Σ |∂z/∂h| / Σ Σ_j π_j |∂g_j/∂h|; None where every gate ignores both inputs."""
    most = _most(layer)
    if not most:
        return None
    # A gate that is committed to is the only term of its sum.
    return 1.0 if layer.gates is not None else _passed(layer) / most


def _most(layer: Walked) -> float:
    """Σ Σ_j π_j |∂g_j/∂h|."""
    if layer.gates is None:
        mixture = at_places(layer.method.gate_probabilities(), layer.owners)
    else:
        mixture = functional.one_hot(layer.gates.long(), len(Gate)).to(layer.h)
    # Σ_samples |u + v h| belongs to the node that is read, whichever gates read it.
    sizes = torch.stack([layer.h.mul(v).add_(u).abs_().sum(1).double() for u, v in SLOPES], dim=1)
    first, second = layer.wiring
    return sum(
        float((mixture.double() @ torch.tensor(_MEMBERS[own]).to(sizes) * sizes[nodes]).sum())
        for own, nodes in ((1, second), (2, first))
    )


def _passed(layer: Walked) -> float:
    """Σ |∂z/∂h|."""
    c, h = layer.coefficients[:, :, None], layer.h
    first, second = layer.wiring
    return sum(
        float(h[nodes].mul_(c[:, 3]).add_(c[:, own]).abs_().sum(1).double().sum())
        for own, nodes in ((1, second), (2, first))
    )


def coverage(network: LogicNetwork, x: Batch) -> dict[str, Any] | None:
    """On what fraction of (gate, sample) pairs c_ab receives a gradient, layer by layer and on average.

    None for a network without layers of gates.
    """
    with torch.no_grad(), noise_kept(network):
        layers = walk(network, x, _layer_coverage)
    return {"mean": sum(layers) / len(layers), "by_layer": layers} if layers else None


def _layer_coverage(layer: Walked) -> float:
    """P(R·ψ ≠ 0), R = ∂c/∂(parameter c_ab); P(ab ≠ 0) where R has the last entry alone or c_ab is no parameter."""
    first, second = layer.wiring
    row = (
        at_places(interaction_row(layer.method), layer.owners)[:, :, None] if layer.method.learns_coefficients else None
    )
    if row is None or (not row[:, :3].any() and bool(row[:, 3].all())):
        there = layer.h != 0
        received = there[first] & there[second]
    else:
        a, b = layer.h[first], layer.h[second]
        received = (a * row[:, 3]).add_(row[:, 2]).mul_(b).add_(a.mul_(row[:, 1])).add_(row[:, 0]) != 0
    return int(torch.count_nonzero(received)) / received.numel()


def interaction_row(method: Method) -> Float[Tensor, "gates 4"]:
    """∂c_m/∂(parameter c_ab) for the coefficients c_m that are evaluated, as the backward pass of training has it.

    (0, 0, 0, 1) straight through, the last row of A in another basis, of J under CovJac.
    """
    with torch.enable_grad():
        c = method.coefficients()
        units = torch.eye(4, dtype=c.dtype, device=c.device)
        columns = [
            torch.autograd.grad(c, method.latent, unit.expand_as(c), retain_graph=True)[0][:, 3] for unit in units
        ]
    return torch.stack(columns, dim=-1)
