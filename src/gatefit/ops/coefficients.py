"""From a method's parameters to coefficients, by compiled kernels on the CPU and by torch elsewhere.

    soft_coefficients          c_soft = Σ_j ω_j G_j,   ω = softmax(-‖c - G_j‖² / τ)
                               ∂L/∂c = (2/τ) Cov_ω(G) ∂L/∂c_soft
                               ∂L/∂τ = (1/τ²) Σ_n Σ_j ω_j (d_j - Σ_k ω_k d_k) G_j·∂L/∂c_soft,   d_j = ‖c - G_j‖²
    mixture_coefficients       c = softmax(θ/T) G
    straight_through_mixture   forward G[argmax θ], backward that of the mixture
    nearest                    G[argmin_j ‖c - G_j‖²], no gradient

Each gate's result depends on its own parameters alone, bit for bit: networks can be laid side by side.
"""

from typing import Any

import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from gatefit.ops import coefficients_numba as fused
from gatefit.ops.implementations import NUMBA, Implementation
from gatefit.quantise import check_coefficients, check_temperature, codebook, nearest_gate, straight_through


class _SoftCoefficients(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, latent: Tensor, temperature: Tensor) -> Tensor:
        vectors = codebook(latent.dtype, latent.device)
        distances = (latent[:, None, :] - vectors).square().sum(-1)
        weights = torch.softmax(-distances / temperature, dim=-1)
        ctx.save_for_backward(weights, distances, temperature)
        return weights @ vectors

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, Tensor | None]:
        (gradient,) = gradients
        weights, distances, temperature = ctx.saved_tensors
        vectors = codebook(gradient.dtype, gradient.device)
        along = gradient @ vectors.T
        # Σ_j ω_j (G_j - c_soft) (G_j·g - c_soft·g): the covariance applied to g without forming it.
        centred = weights * (along - (weights * along).sum(-1, keepdim=True))
        to_latent = (2 / temperature) * (centred @ vectors) if ctx.needs_input_grad[0] else None
        to_temperature = (centred * distances).sum() / temperature.square() if ctx.needs_input_grad[1] else None
        return to_latent, to_temperature


def soft_coefficients_torch(
    latent: Float[Tensor, "gates 4"], temperature: float | Float[Tensor, ""]
) -> Float[Tensor, "gates 4"]:
    """c_soft in plain torch operations, with the covariance Jacobian as its backward: any device, any float type."""
    check_coefficients(latent)
    check_temperature(temperature)
    result = _SoftCoefficients.apply(latent, torch.as_tensor(temperature, dtype=latent.dtype, device=latent.device))
    assert isinstance(result, Tensor)
    return result


def soft_coefficients(
    latent: Float[Tensor, "gates 4"], temperature: float | Float[Tensor, ""], *, implementation: Implementation
) -> Float[Tensor, "gates 4"]:
    """c_soft of every gate, with the covariance Jacobian as its backward."""
    if implementation == NUMBA:
        return fused.soft_coefficients_numba(latent, temperature)
    return soft_coefficients_torch(latent, temperature)


def mixture_coefficients(
    logits: Float[Tensor, "gates 16"], *, implementation: Implementation
) -> Float[Tensor, "gates 4"]:
    """c = softmax(θ) G of every gate."""
    if implementation == NUMBA:
        return fused.mixture_coefficients_numba(logits)
    return torch.softmax(logits, dim=-1) @ codebook(logits.dtype, logits.device)


def straight_through_mixture(
    logits: Float[Tensor, "gates 16"], temperature: float, *, implementation: Implementation
) -> tuple[UInt8[Tensor, " gates"], Float[Tensor, "gates 4"]]:
    """The gates argmax θ and their coefficients, with the gradient of softmax(θ/T) G."""
    if implementation == NUMBA:
        return fused.straight_through_mixture_numba(logits, temperature)
    vectors = codebook(logits.dtype, logits.device)
    gates = logits.argmax(-1).to(torch.uint8)
    soft = torch.softmax(logits / temperature, dim=-1) @ vectors
    return gates, straight_through(soft, vectors[gates.long()])


def nearest(
    coefficients: Float[Tensor, "gates 4"], *, implementation: Implementation
) -> tuple[UInt8[Tensor, " gates"], Float[Tensor, "gates 4"]]:
    """The nearest gates and their coefficients, without gradients."""
    if implementation == NUMBA:
        return fused.snap_numba(coefficients.detach())
    gates = nearest_gate(coefficients.detach())
    return gates, codebook(coefficients.dtype, coefficients.device)[gates.long()]
