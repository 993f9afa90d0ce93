"""CovJac's soft coefficients with the closed-form backward, instead of autograd through the softmax.

forward    c_soft = Σ_j ω_j G_j,   ω = softmax(-‖c - G_j‖² / τ)
backward   ∂L/∂c = (2/τ) Cov_ω(G) ∂L/∂c_soft
           ∂L/∂τ = (1/τ²) Σ_n Σ_j ω_j (d_j - Σ_k ω_k d_k) G_j·∂L/∂c_soft,   d_j = ‖c - G_j‖²
"""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from gatefit.quantise import check_coefficients, check_temperature, codebook


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


def soft_coefficients(
    latent: Float[Tensor, "gates 4"], temperature: float | Float[Tensor, ""]
) -> Float[Tensor, "gates 4"]:
    """c_soft of every gate, with the covariance Jacobian as its backward."""
    check_coefficients(latent)
    check_temperature(temperature)
    result = _SoftCoefficients.apply(latent, torch.as_tensor(temperature, dtype=latent.dtype, device=latent.device))
    assert isinstance(result, Tensor)
    return result
