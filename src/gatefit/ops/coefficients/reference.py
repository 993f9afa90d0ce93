"""From parameters to coefficients and gates in plain torch, gradients by autograd: the definitions (paper §3).

snap       ĉ = G_j*,  j* = argmin_j ‖c - G_j‖²           ties: lexicographically smallest G_j
soft       ω = softmax(-‖c - G_j‖² / τ),  c_soft = Σ_j ω_j G_j
Jacobian   ∂c_soft/∂c = (2/τ) Cov_ω(G)                    input-independent, symmetric, PSD (Prop. covjac)
mixture    c = softmax(θ / τ) G
largest    G[argmax θ]                                    ties: the smallest gate number
corners    c = M s,   s at (0,0), (1,0), (0,1), (1,1);    snapped: M [s > 1/2], gradient that of M s
"""

from functools import cache

import torch
from jaxtyping import Bool, Float, Int64, UInt8
from torch import Tensor

from gatefit.codebook import CODEBOOK, CORNERS, TIE_ORDER
from gatefit.ops.straight_through import straight_through


@cache
def codebook(dtype: torch.dtype = torch.float32, device: torch.device | str = "cpu") -> Float[Tensor, "16 4"]:
    """G as a tensor; shared, do not modify."""
    return torch.tensor(CODEBOOK, dtype=dtype, device=device)


def snap(
    coefficients: Float[Tensor, "gates 4"],
) -> tuple[UInt8[Tensor, " gates"], Float[Tensor, "gates 4"]]:
    """argmin_j ‖c - G_j‖² = argmax_j 2 c·G_j - ‖G_j‖², and G_j.

    In float64 whatever the type of c: 2c·G_j as a sum over the corners where gate j is 1. Products are with 2 and so
    exact: however a processor multiplies and adds, every implementation finds the same gate, to the bit. What is not
    finite has no nearest gate: c_0 - c_0 is NaN then, and so is one of the other sums.
    """
    c_0, c_a, c_b, c_ab = (2 * coefficients.detach().double()).unbind(-1)
    s_00, s_01, s_10 = c_0 - c_a - c_b + c_ab, c_b - c_ab, c_a - c_ab
    without_00 = (c_0 - c_0, c_ab, s_10, c_a, s_01, c_b, s_01 + s_10, s_01 + s_10 + c_ab)
    sums = torch.stack([*without_00, *(s_00 + part for part in without_00)], dim=-1)
    scores = sums - codebook(torch.float64, coefficients.device).square().sum(-1)
    return _first_largest(scores, torch.as_tensor(TIE_ORDER.copy(), device=scores.device), coefficients.dtype)


def largest(logits: Float[Tensor, "gates 16"]) -> tuple[UInt8[Tensor, " gates"], Float[Tensor, "gates 4"]]:
    """argmax_j θ_j and G_j."""
    return _first_largest(logits.detach(), torch.arange(16, device=logits.device), logits.dtype)


def _first_largest(
    scores: Float[Tensor, "gates 16"], order: Int64[Tensor, "16"], dtype: torch.dtype
) -> tuple[UInt8[Tensor, " gates"], Float[Tensor, "gates 4"]]:
    """The first gate in ``order`` with the largest score, and its coefficients: NaN where a score is, so it shows."""
    undefined = scores.isnan().any(-1)
    # argmax returns the first of equals, so the order settles ties.
    gates = order[scores[:, order].argmax(-1)].masked_fill(undefined, 0)
    return gates.to(torch.uint8), codebook(dtype, scores.device)[gates].masked_fill(undefined[:, None], torch.nan)


def proximity(
    coefficients: Float[Tensor, "gates 4"], temperature: float | Float[Tensor, ""]
) -> Float[Tensor, "gates 16"]:
    """ω = softmax(-‖c - G_j‖² / τ)."""
    distances = (coefficients[:, None, :] - codebook(coefficients.dtype, coefficients.device)).square().sum(-1)
    return torch.softmax(-distances / temperature, dim=-1)


def soft_coefficients(
    latent: Float[Tensor, "gates 4"], temperature: float | Float[Tensor, ""]
) -> Float[Tensor, "gates 4"]:
    """c_soft = Σ_j ω_j G_j."""
    return proximity(latent, temperature) @ codebook(latent.dtype, latent.device)


def covariance_jacobian(
    coefficients: Float[Tensor, "gates 4"], temperature: float | Float[Tensor, ""]
) -> Float[Tensor, "gates 4 4"]:
    """J = ∂c_soft/∂c = (2/τ) Cov_ω(G) for every gate (Eq. covjac)."""
    weights = proximity(coefficients, temperature)
    vectors = codebook(coefficients.dtype, coefficients.device)
    centred = vectors - (weights @ vectors)[:, None, :]
    return (2 / temperature) * torch.einsum("nj,nji,njk->nik", weights, centred, centred)


def mixture_coefficients(logits: Float[Tensor, "gates 16"], temperature: float) -> Float[Tensor, "gates 4"]:
    """c = softmax(θ / τ) G."""
    return torch.softmax(logits / temperature, dim=-1) @ codebook(logits.dtype, logits.device)


def straight_through_mixture(
    logits: Float[Tensor, "gates 16"], temperature: float
) -> tuple[UInt8[Tensor, " gates"], Float[Tensor, "gates 4"]]:
    """argmax θ and its coefficients, with the gradient of the mixture."""
    gates, chosen = largest(logits)
    return gates, straight_through(mixture_coefficients(logits, temperature), chosen)


def corner_coefficients(corners: Float[Tensor, "gates 4"]) -> Float[Tensor, "gates 4"]:
    """c = M s, written out: each gate's coefficients come from its own corners alone, to the bit."""
    s_00, s_10, s_01, s_11 = corners.unbind(-1)
    return torch.stack([s_00, s_10 - s_00, s_01 - s_00, s_11 - s_10 - s_01 + s_00], dim=-1)


def gate_numbers(corners: Bool[Tensor, "gates 4"]) -> UInt8[Tensor, " gates"]:
    """The gate whose values at the four corners these are."""
    # g(0,0) is the highest bit of the gate's number, g(1,1) the lowest.
    weights = torch.tensor([1 << (3 - 2 * a - b) for a, b in CORNERS.tolist()], device=corners.device)
    return (corners.long() * weights).sum(-1).to(torch.uint8)


def snap_corners(corners: Float[Tensor, "gates 4"]) -> tuple[UInt8[Tensor, " gates"], Float[Tensor, "gates 4"]]:
    """The gates [s > 1/2] and their coefficients, with the gradient of M s."""
    at = corners.detach() > 0.5
    return gate_numbers(at), corner_coefficients(straight_through(corners, at.to(corners)))
