"""How large a gradient each of the four coefficients receives (paper §5, fig. commitment b; app. gradnorm).

    ‖∂L/∂c_k‖ = (Σ_gates (∂L/∂c_k)²)^½                       k = 0, a, b, ab;   L the mean loss of a minibatch
    ratio     = ‖∂L/∂c_ab‖ / ‖∂L/∂c_0‖                        both averaged over the minibatches first
    l1_ratio  = Σ_gates |∂L/∂c_ab| / Σ_gates |∂L/∂c_0|        likewise

Of the parameters, where a method learns coefficients, and ("effective") of the coefficients that the forward pass
evaluates, for every method. Multilinear-STE: both are Σ_samples δ (1, a, b, ab). For uniform bits independent of δ the
ratio is E[ab] = 1/4 where the δ of a gate agree, and (E[ab])^½ = 1/2 where they are noise: real networks lie between.
The paper names the L2 norm, and its 0.19 to 0.25 for Multilinear-STE is what we see of l1_ratio.
Multilinear-CovJac: the parameters' gradient is J = (2/τ) Cov_ω(G) times the effective one.
"""

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any, Final

import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from gatefit.diagnostics.batch import ProbeBatch
from gatefit.methods import Method
from gatefit.network import LogicNetwork
from gatefit.randomness import noise_kept

COEFFICIENTS: Final = ("c_0", "c_a", "c_b", "c_ab")


@contextlib.contextmanager
def _recorded(methods: Sequence[Method]) -> Iterator[dict[Method, Tensor]]:
    """The coefficients that each method gives within, by method: with them, their gradient can be asked for."""
    given: dict[Method, Tensor] = {}

    def record(method: Method) -> None:
        of_class, drawn_of_class = method.coefficients, method.sample

        def coefficients() -> Float[Tensor, "gates 4"]:
            given[method] = of_class()
            return given[method]

        def sample() -> tuple[UInt8[Tensor, " gates"], Float[Tensor, "gates 4"]]:
            gates, given[method] = drawn_of_class()
            return gates, given[method]

        # Of this object alone: whoever asks it, in whatever kind of layer, is what is measured.
        method.coefficients, method.sample = coefficients, sample  # type: ignore[method-assign]

    for method in methods:
        record(method)
    try:
        yield given
    finally:
        for method in methods:
            del method.coefficients, method.sample


def gradient_norms(network: LogicNetwork, batches: Sequence[ProbeBatch]) -> dict[str, Any]:
    """Norms of the parameters' gradients and, under "effective", of the evaluated coefficients' gradients.

    A method that learns logits or corners has no parameter c_0 ... c_ab: its own entries are None.
    """
    effective, latent = [], []
    with noise_kept(network):
        for batch in batches:
            of_coefficients, of_parameters = _gradients(network, batch)
            effective.append(_sizes(of_coefficients))
            latent.append(_sizes(of_parameters))
    found = _summary(torch.stack(effective))
    if all(layer.method.learns_coefficients for layer in network.gate_layers):
        return {**_summary(torch.stack(latent)), "effective": found}
    return {**dict.fromkeys((*COEFFICIENTS, "ratio", "l1_ratio", "by_layer")), "effective": found}


def _gradients(network: LogicNetwork, batch: ProbeBatch) -> tuple[list[Tensor], list[Tensor]]:
    """∂L/∂c of every layer, and ∂L/∂parameters; nothing is added to any .grad."""
    methods = [layer.method for layer in network.gate_layers]
    with torch.enable_grad(), _recorded(methods) as given:
        loss = batch.loss(network.trained_scores(batch.x))
        coefficients = [given[method] for method in methods]
        latents: list[Tensor] = [method.latent for method in methods]
        gradients = torch.autograd.grad(loss, [*coefficients, *latents])
    return list(gradients[: len(latents)]), list(gradients[len(latents) :])


def _sizes(gradients: Sequence[Tensor]) -> Float[Tensor, "2 layers parameters"]:
    """Sums of squares and of absolute values of each column, layer by layer."""
    layers = [gradient.double() for gradient in gradients]
    squares, absolutes = [layer.square().sum(0) for layer in layers], [layer.abs().sum(0) for layer in layers]
    return torch.stack([torch.stack(squares), torch.stack(absolutes)])


def _summary(sizes: Float[Tensor, "batches 2 layers parameters"]) -> dict[str, Any]:
    squares, absolutes = sizes.unbind(1)
    layers = zip(squares.sqrt().mean(0), absolutes.mean(0), strict=True)
    whole = _named(squares.sum(1).sqrt().mean(0), absolutes.sum(1).mean(0))
    return {**whole, "by_layer": [_named(norms, sums) for norms, sums in layers]}


def _named(norms: Float[Tensor, "4"], sums: Float[Tensor, "4"]) -> dict[str, float | None]:
    values = dict(zip(COEFFICIENTS, norms.tolist(), strict=True))
    return {**values, "ratio": _last_to_first(norms), "l1_ratio": _last_to_first(sums)}


def _last_to_first(sizes: Float[Tensor, "4"]) -> float | None:
    first, last = float(sizes[0]), float(sizes[3])
    return last / first if first else None
