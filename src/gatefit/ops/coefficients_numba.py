"""Coefficients from parameters by compiled kernels on the CPU, with closed-form gradients.

    soft_coefficients_numba      c_soft = Σ_j ω_j G_j,  ω = softmax(-‖c - G_j‖² / τ);   ∂c_soft/∂c = (2/τ) Cov_ω(G)
    mixture_coefficients_numba   c = softmax(θ / τ) G
    straight_through_mixture_numba   forward G[argmax θ], backward that of the mixture
    snap_numba                   G[argmin_j ‖c - G_j‖²], ties to the lexicographically smallest coefficients

All take float32 or float64, and give the same bits whatever the number of threads.
"""

from typing import Any

import numpy as np
import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from gatefit.ops import coefficients_kernels_numba as kernels
from gatefit.ops.gate_layer_numba import check_cpu_float
from gatefit.ops.threads import parallel_for

SHARE = 4096
"""Gates that one thread takes at a time; sums over gates are added share by share, whatever the number of threads."""


def _array(tensor: Tensor) -> np.ndarray:
    result: np.ndarray = tensor.detach().contiguous().numpy()
    return result


def _shared(kernel: Any, *arrays: Any, gates: int) -> list[Any]:
    """``kernel(*arrays, first, last)`` for all gates; what each share returned, in order."""
    results: list[Any] = [None] * -(-gates // SHARE)

    def task(place: int) -> None:
        results[place] = kernel(*arrays, place * SHARE, min(gates, (place + 1) * SHARE))

    parallel_for(task, len(results))
    return results


def _check(parameters: Tensor, count: int, name: str) -> None:
    check_cpu_float(**{name: parameters})
    if parameters.ndim != 2 or parameters.shape[1] != count:
        raise ValueError(f"{name} must have shape (gates, {count}), got {tuple(parameters.shape)}")


def _number(temperature: float | Tensor, like: Tensor) -> Any:
    """The temperature as a scalar of the parameters' type."""
    value = float(temperature)
    if not 0 < value < float("inf"):
        raise ValueError(f"temperature must be a finite number > 0, got {value}; the paper uses 1")
    return np.float32(value) if like.dtype == torch.float32 else np.float64(value)


class _SoftCoefficients(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, latent: Tensor, temperature: Tensor | float) -> Tensor:
        ctx.temperature = _number(temperature, latent)
        ctx.like = temperature.detach() if isinstance(temperature, Tensor) else None
        ctx.save_for_backward(latent)
        result = torch.empty(latent.shape, dtype=latent.dtype)
        _shared(kernels.covjac_forward, _array(latent), ctx.temperature, result.numpy(), gates=latent.shape[0])
        return result

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, Tensor | None]:
        (latent,) = ctx.saved_tensors
        to_latent = torch.empty(latent.shape, dtype=latent.dtype)
        arrays = _array(latent), ctx.temperature, _array(gradients[0]), to_latent.numpy()
        parts = _shared(kernels.covjac_backward, *arrays, gates=latent.shape[0])
        return (
            to_latent if ctx.needs_input_grad[0] else None,
            torch.full_like(ctx.like, sum(parts)) if ctx.needs_input_grad[1] else None,
        )


def soft_coefficients_numba(
    latent: Float[Tensor, "gates 4"], temperature: float | Float[Tensor, ""]
) -> Float[Tensor, "gates 4"]:
    """c_soft of every gate; gradients to the latent coefficients and, where it is a tensor, to the temperature."""
    _check(latent, 4, "latent")
    result = _SoftCoefficients.apply(latent, temperature)
    assert isinstance(result, Tensor)
    return result


class _Mixture(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, logits: Tensor, temperature: float, chosen: Tensor | None) -> Tensor:
        ctx.temperature = _number(temperature, logits)
        ctx.save_for_backward(logits)
        if chosen is not None:
            return chosen.view_as(chosen)
        result = torch.empty((logits.shape[0], 4), dtype=logits.dtype)
        _shared(kernels.mixture_forward, _array(logits), ctx.temperature, result.numpy(), gates=logits.shape[0])
        return result

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        (logits,) = ctx.saved_tensors
        to_logits = torch.empty(logits.shape, dtype=logits.dtype)
        arrays = _array(logits), ctx.temperature, _array(gradients[0]), to_logits.numpy()
        _shared(kernels.mixture_backward, *arrays, gates=logits.shape[0])
        return to_logits, None, None


def mixture_coefficients_numba(logits: Float[Tensor, "gates 16"], temperature: float = 1.0) -> Float[Tensor, "gates 4"]:
    """c = softmax(θ / τ) G of every gate."""
    _check(logits, 16, "logits")
    result = _Mixture.apply(logits, temperature, None)
    assert isinstance(result, Tensor)
    return result


def straight_through_mixture_numba(
    logits: Float[Tensor, "gates 16"], temperature: float = 1.0
) -> tuple[UInt8[Tensor, " gates"], Float[Tensor, "gates 4"]]:
    """The gates argmax θ and their coefficients, with the gradient of softmax(θ / τ) G."""
    _check(logits, 16, "logits")
    gates = torch.empty(logits.shape[0], dtype=torch.uint8)
    chosen = torch.empty((logits.shape[0], 4), dtype=logits.dtype)
    _shared(kernels.argmax, _array(logits), gates.numpy(), chosen.numpy(), gates=logits.shape[0])
    result = _Mixture.apply(logits, temperature, chosen)
    assert isinstance(result, Tensor)
    return gates, result


def snap_numba(
    coefficients: Float[Tensor, "gates 4"],
) -> tuple[UInt8[Tensor, " gates"], Float[Tensor, "gates 4"]]:
    """The nearest gates and their coefficients, without gradients; NaN where the given coefficients are NaN."""
    _check(coefficients, 4, "coefficients")
    gates = torch.empty(coefficients.shape[0], dtype=torch.uint8)
    snapped = torch.empty(coefficients.shape, dtype=coefficients.dtype)
    _shared(kernels.snap, _array(coefficients), gates.numpy(), snapped.numpy(), gates=gates.numel())
    return gates, snapped
