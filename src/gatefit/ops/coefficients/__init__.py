"""From a method's parameters to coefficients, and to the gates that are committed to.

    snap                       G[argmin_j ‖c - G_j‖²], no gradient
    largest                    G[argmax θ], no gradient
    soft_coefficients          c_soft = Σ_j ω_j G_j,   ω = softmax(-‖c - G_j‖² / τ),   ∂L/∂c = (2/τ) Cov_ω(G) ∂L/∂c_soft
    mixture_coefficients       c = softmax(θ/τ) G
    straight_through_mixture   forward G[argmax θ], backward that of the mixture
    corner_coefficients        c = M s
    snap_corners               forward M [s > 1/2], backward that of M s

Those that commit are the same in training and deployment: a gate is the same to the bit whatever computes it. What is
no number gives coefficients that are none. Each gate's result depends on its own parameters alone, bit for bit.
"""

import math
from collections.abc import Callable
from typing import Final

import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from gatefit.ops.coefficients import numba, reference
from gatefit.ops.coefficients.reference import codebook, covariance_jacobian, gate_numbers, proximity
from gatefit.ops.implementations import Implementation
from gatefit.ops.triton_launch import lazily

Committed = tuple[UInt8[Tensor, " gates"], Float[Tensor, "gates 4"]]
"""Gates, and their coefficients."""

SNAP: Final[dict[str, Callable[[Tensor], Committed]]] = {
    "reference": reference.snap,
    "numba": numba.snap,
    "triton": lazily("coefficients", "snap"),
}
LARGEST: Final[dict[str, Callable[[Tensor], Committed]]] = {
    "reference": reference.largest,
    "numba": numba.largest,
    "triton": lazily("coefficients", "largest"),
}
SOFT_COEFFICIENTS: Final[dict[str, Callable[[Tensor, float | Tensor], Tensor]]] = {
    "reference": reference.soft_coefficients,
    "numba": numba.soft_coefficients,
    "triton": lazily("coefficients", "soft_coefficients"),
}
MIXTURE_COEFFICIENTS: Final[dict[str, Callable[[Tensor, float], Tensor]]] = {
    "reference": reference.mixture_coefficients,
    "numba": numba.mixture_coefficients,
    "triton": lazily("coefficients", "mixture_coefficients"),
}
STRAIGHT_THROUGH_MIXTURE: Final[dict[str, Callable[[Tensor, float], Committed]]] = {
    "reference": reference.straight_through_mixture,
    "numba": numba.straight_through_mixture,
    "triton": lazily("coefficients", "straight_through_mixture"),
}

CORNER_COEFFICIENTS: Final[dict[str, Callable[[Tensor], Tensor]]] = {
    "reference": reference.corner_coefficients,
    "numba": numba.corner_coefficients,
}
SNAP_CORNERS: Final[dict[str, Callable[[Tensor], Committed]]] = {
    "reference": reference.snap_corners,
    "numba": numba.snap_corners,
}


def snap(coefficients: Float[Tensor, "gates 4"], *, implementation: Implementation) -> Committed:
    """The nearest gates and their coefficients, without gradients; between equals, the smallest coefficients."""
    _check(coefficients, 4, "coefficients")
    return implementation.choose(SNAP)(coefficients)


def largest(logits: Float[Tensor, "gates 16"], *, implementation: Implementation) -> Committed:
    """The gates argmax θ and their coefficients, without gradients; between equals, the smallest number."""
    _check(logits, 16, "logits")
    return implementation.choose(LARGEST)(logits)


def soft_coefficients(
    latent: Float[Tensor, "gates 4"], temperature: float | Float[Tensor, ""], *, implementation: Implementation
) -> Float[Tensor, "gates 4"]:
    """c_soft of every gate; gradients to the latent coefficients and, where it is a tensor, to the temperature."""
    _check(latent, 4, "latent")
    check_temperature(temperature)
    return implementation.choose(SOFT_COEFFICIENTS)(latent, temperature)


def mixture_coefficients(
    logits: Float[Tensor, "gates 16"], temperature: float = 1.0, *, implementation: Implementation
) -> Float[Tensor, "gates 4"]:
    """c = softmax(θ/τ) G of every gate."""
    _check(logits, 16, "logits")
    check_temperature(temperature)
    return implementation.choose(MIXTURE_COEFFICIENTS)(logits, temperature)


def straight_through_mixture(
    logits: Float[Tensor, "gates 16"], temperature: float = 1.0, *, implementation: Implementation
) -> Committed:
    """The gates argmax θ and their coefficients, with the gradient of softmax(θ/τ) G."""
    _check(logits, 16, "logits")
    check_temperature(temperature)
    return implementation.choose(STRAIGHT_THROUGH_MIXTURE)(logits, temperature)


def corner_coefficients(
    corners: Float[Tensor, "gates 4"], *, implementation: Implementation
) -> Float[Tensor, "gates 4"]:
    """c = M s of every gate, s its values at (0,0), (1,0), (0,1), (1,1)."""
    _check(corners, 4, "corners")
    return implementation.choose(CORNER_COEFFICIENTS)(corners)


def snap_corners(corners: Float[Tensor, "gates 4"], *, implementation: Implementation) -> Committed:
    """The gates that are [s > 1/2] at their corners and their coefficients, with the gradient of M s."""
    _check(corners, 4, "corners")
    return implementation.choose(SNAP_CORNERS)(corners)


def _check(parameters: Tensor, count: int, what: str) -> None:
    if parameters.ndim != 2 or parameters.shape[1] != count:
        raise ValueError(f"{what} must have shape (gates, {count}), got {tuple(parameters.shape)}")
    if not parameters.is_floating_point():
        raise TypeError(f"{what} must be floating-point, got {parameters.dtype}; convert with .float()")


def check_temperature(temperature: float | Tensor) -> None:
    """Refuse a temperature that is not a finite positive number."""
    value = float(temperature.detach()) if isinstance(temperature, Tensor) else float(temperature)
    if not 0 < value < float("inf"):
        raise ValueError(f"temperature must be a finite number > 0, got {value}; the paper uses 1")


def check_finite(parameters: Tensor, what: str) -> None:
    """Refuse NaN and infinity, which no gate is nearest to."""
    # A sum is finite only if all terms are: one pass without a mask of the parameters' size. Overflow of the sum
    # itself would be a false alarm, so it is checked again element by element.
    if not math.isfinite(float(parameters.detach().sum())) and not bool(torch.isfinite(parameters).all()):
        count = int((~torch.isfinite(parameters)).sum())
        raise ValueError(f"{what} hold {count} non-finite values; lower the learning rate or check the data for NaN")


__all__ = [
    "check_finite",
    "check_temperature",
    "codebook",
    "corner_coefficients",
    "covariance_jacobian",
    "gate_numbers",
    "largest",
    "mixture_coefficients",
    "proximity",
    "snap",
    "snap_corners",
    "soft_coefficients",
    "straight_through_mixture",
]
