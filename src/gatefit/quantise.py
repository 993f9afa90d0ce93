"""From four real coefficients to a gate: snap, soft vector quantisation, straight-through gradients (paper §3).

snap       ĉ = G_j*,  j* = argmin_j ‖c - G_j‖²           ties: lexicographically smallest G_j
soft       ω = softmax(-‖c - G_j‖² / τ),  c_soft = Σ_j ω_j G_j
Jacobian   ∂c_soft/∂c = (2/τ) Cov_ω(G)                    input-independent, symmetric, PSD (Prop. covjac)
straight through   forward ĉ,  backward ∂L/∂c = A ∂L/∂ĉ   A = I in the canonical basis
"""

from functools import cache
from typing import Any

from gatefit._requires import require

require("torch", "train", "training")

import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from gatefit.codebook import CODEBOOK, TIE_ORDER


@cache
def codebook(dtype: torch.dtype = torch.float32, device: torch.device | str = "cpu") -> Float[Tensor, "16 4"]:
    """G as a tensor; shared, do not modify."""
    return torch.tensor(CODEBOOK, dtype=dtype, device=device)


def nearest_gate(coefficients: Float[Tensor, "gates 4"]) -> UInt8[Tensor, " gates"]:
    """argmin_j ‖c - G_j‖², as gate numbers.

    = argmax_j 2 c·G_j - ‖G_j‖², in float64 whatever the type of c: 2c·G_j as a sum over the corners where gate j is 1,
    in the order of ``ops.sixteen_numba.subset_sums``. Products are with 2 and so exact: however a processor multiplies
    and adds, the compiled snap finds the same gate, to the bit.
    """
    check_coefficients(coefficients)
    c_0, c_a, c_b, c_ab = (2 * coefficients.double()).unbind(-1)
    s_00, s_01, s_10 = c_0 - c_a - c_b + c_ab, c_b - c_ab, c_a - c_ab
    without_00 = (torch.zeros_like(c_ab), c_ab, s_10, c_a, s_01, c_b, s_01 + s_10, s_01 + s_10 + c_ab)
    sums = torch.stack([*without_00, *(s_00 + part for part in without_00)], dim=-1)
    scores = sums - codebook(torch.float64, coefficients.device).square().sum(-1)
    # argmax returns the first of equals, so the order settles ties.
    order = torch.as_tensor(TIE_ORDER.copy(), device=coefficients.device)
    return order[scores[:, order].argmax(-1)].to(torch.uint8)


def snap(coefficients: Float[Tensor, "gates 4"]) -> Float[Tensor, "gates 4"]:
    """The coefficients of the nearest gate."""
    return codebook(coefficients.dtype, coefficients.device)[nearest_gate(coefficients).long()]


def proximity(
    coefficients: Float[Tensor, "gates 4"], temperature: float | Float[Tensor, ""]
) -> Float[Tensor, "gates 16"]:
    """ω = softmax(-‖c - G_j‖² / τ)."""
    check_coefficients(coefficients)
    check_temperature(temperature)
    distances = (coefficients[:, None, :] - codebook(coefficients.dtype, coefficients.device)).square().sum(-1)
    return torch.softmax(-distances / temperature, dim=-1)


def soft_coefficients(
    coefficients: Float[Tensor, "gates 4"], temperature: float | Float[Tensor, ""]
) -> Float[Tensor, "gates 4"]:
    """c_soft = Σ_j ω_j G_j, differentiated by autograd: the definition that faster forms are tested against."""
    return proximity(coefficients, temperature) @ codebook(coefficients.dtype, coefficients.device)


def covariance_jacobian(
    coefficients: Float[Tensor, "gates 4"], temperature: float | Float[Tensor, ""]
) -> Float[Tensor, "gates 4 4"]:
    """J = ∂c_soft/∂c = (2/τ) Cov_ω(G) for every gate (Eq. covjac)."""
    weights = proximity(coefficients, temperature)
    vectors = codebook(coefficients.dtype, coefficients.device)
    centred = vectors - (weights @ vectors)[:, None, :]
    return (2 / temperature) * torch.einsum("nj,nji,njk->nik", weights, centred, centred)


def rows_times(rows: Float[Tensor, "gates 4"], matrix: Float[Tensor, "4 4"]) -> Float[Tensor, "gates 4"]:
    """Each row r as A r, term by term: a matrix product may round a row differently beside other rows."""
    columns = rows.unbind(-1)
    products = [sum(weight * column for weight, column in zip(row, columns, strict=True)) for row in matrix.tolist()]
    return torch.stack([torch.as_tensor(product) for product in products], dim=-1)


class _StraightThrough(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, latent: Tensor, value: Tensor, matrix: Tensor | None) -> Tensor:
        ctx.matrix = matrix
        return value.view_as(value)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        (gradient,) = gradients
        return gradient if ctx.matrix is None else rows_times(gradient, ctx.matrix), None, None


def straight_through(
    latent: Float[Tensor, "*shape"],
    value: Float[Tensor, "*shape"],
    basis: Float[Tensor, "4 4"] | None = None,
) -> Float[Tensor, "*shape"]:
    """Forward ``value``; backward ∂L/∂latent = A ∂L/∂value, with A = ``basis`` on rows of four (None: the identity)."""
    result = _StraightThrough.apply(latent, value.detach(), basis)
    assert isinstance(result, Tensor)
    return result


def check_temperature(temperature: float | Tensor) -> None:
    """Refuse a temperature that is not a finite positive number."""
    value = float(temperature.detach()) if isinstance(temperature, Tensor) else float(temperature)
    if not 0 < value < float("inf"):
        raise ValueError(f"temperature must be a finite number > 0, got {value}; the paper uses 1")


def check_coefficients(coefficients: Tensor) -> None:
    """Refuse anything but finite floating-point coefficients, four a gate."""
    if coefficients.ndim != 2 or coefficients.shape[-1] != 4:
        raise ValueError(f"coefficients must have shape (gates, 4), got {tuple(coefficients.shape)}")
    check_finite(coefficients, "coefficients")


def check_finite(parameters: Tensor, what: str) -> None:
    """Refuse NaN and infinity, which no gate is nearest to."""
    if not parameters.is_floating_point():
        raise TypeError(f"{what} must be floating-point, got {parameters.dtype}; convert with .float()")
    # A sum is finite only if all terms are: one pass without a mask of the parameters' size. Overflow of the sum
    # itself would be a false alarm, so it is checked again element by element.
    if not torch.isfinite(parameters.sum()) and not bool(torch.isfinite(parameters).all()):
        count = int((~torch.isfinite(parameters)).sum())
        raise ValueError(f"{what} hold {count} non-finite values; lower the learning rate or check the data for NaN")
