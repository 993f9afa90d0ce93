"""Coefficients from parameters by Triton's kernels, one gate a lane, with closed-form gradients.

    softmax     ω = softmax(s),   s_j = (2 c·G_j - ‖G_j‖²) / τ   (CovJac: ‖c‖² cancels)   or   s = θ / τ   (mixtures)
    forward     c_soft = Σ_j ω_j G_j
    backward    v_j = ω_j (g·G_j - Σ_k ω_k g·G_k),   g = ∂L/∂c_soft
                CovJac  ∂L/∂c = (2/τ) Σ_j v_j G_j,   ∂L/∂τ = -(1/τ) Σ_j v_j s_j;     mixtures  ∂L/∂θ = v / τ

A tile is gates x sixteen. The codebook is not loaded: the corners of gate j are the bits of j. What commits to a gate
compares the sums that the reference writes down, in float64: the same gate, to the bit.
"""
# mypy: disable-error-code="no-untyped-def"

from typing import Any, Final

import torch
import triton
import triton.language as tl
from jaxtyping import Float, UInt8
from torch import Tensor

from gatefit.codebook import TIE_ORDER
from gatefit.ops.triton_launch import launch, parts
from gatefit.ops.triton_tiles import added_up, check_floats

GATES: Final = 128
"""Gates of a program: sixteen numbers each."""
NEAREST_ORDER: Final = tuple(int(j) for j in TIE_ORDER)


@triton.jit
def _columns(kind: tl.constexpr):
    """The four coefficients of the sixteen gates; bits 8, 4, 2, 1 of j are the corners (0,0), (0,1), (1,0), (1,1)."""
    j = tl.arange(0, 16)
    s_00, s_01, s_10, s_11 = (j >> 3) & 1, (j >> 2) & 1, (j >> 1) & 1, j & 1
    return s_00.to(kind), (s_10 - s_00).to(kind), (s_01 - s_00).to(kind), (s_11 - s_10 - s_01 + s_00).to(kind)


@triton.jit
def _load4(rows, gates, there):
    return (
        tl.load(rows + 4 * gates, mask=there, other=0.0),
        tl.load(rows + 4 * gates + 1, mask=there, other=0.0),
        tl.load(rows + 4 * gates + 2, mask=there, other=0.0),
        tl.load(rows + 4 * gates + 3, mask=there, other=0.0),
    )


@triton.jit
def _along(c_0, c_a, c_b, c_ab, kind: tl.constexpr):
    """c·G_j for every gate j."""
    g_0, g_a, g_b, g_ab = _columns(kind)
    return (c_0[:, None] * g_0[None, :] + c_a[:, None] * g_a[None, :]) + (
        c_b[:, None] * g_b[None, :] + c_ab[:, None] * g_ab[None, :]
    )


@triton.jit
def _store_mixture(rows, gates, there, weights, factor, kind: tl.constexpr):
    """Rows become factor Σ_j w_j G_j."""
    g_0, g_a, g_b, g_ab = _columns(kind)
    tl.store(rows + 4 * gates, factor * tl.sum(weights * g_0[None, :], axis=1), mask=there)
    tl.store(rows + 4 * gates + 1, factor * tl.sum(weights * g_a[None, :], axis=1), mask=there)
    tl.store(rows + 4 * gates + 2, factor * tl.sum(weights * g_b[None, :], axis=1), mask=there)
    tl.store(rows + 4 * gates + 3, factor * tl.sum(weights * g_ab[None, :], axis=1), mask=there)


@triton.jit
def _softmax(s):
    """ω; what is lost beside the largest weight is 0."""
    s = s - tl.max(s, axis=1)[:, None]
    e = tl.where(s < -44.0, s - s, tl.exp(s))
    return e / tl.sum(e, axis=1)[:, None]


@triton.jit
def _centred(weights, along):
    """ω_j (along_j - Σ_k ω_k along_k)."""
    return weights * (along - tl.sum(weights * along, axis=1)[:, None])


@triton.jit
def _covjac_scores(c_0, c_a, c_b, c_ab, temperature, kind: tl.constexpr):
    """s_j = (2 c·G_j - ‖G_j‖²) / τ."""
    g_0, g_a, g_b, g_ab = _columns(kind)
    norms = g_0 * g_0 + g_a * g_a + g_b * g_b + g_ab * g_ab
    return (2 * _along(c_0, c_a, c_b, c_ab, kind) - norms[None, :]) / temperature


@triton.jit
def _covjac_forward(latent, temperature, coefficients, gates, GATES: tl.constexpr):
    g = tl.program_id(0).to(tl.int64) * GATES + tl.arange(0, GATES)
    there = g < gates
    kind: tl.constexpr = latent.dtype.element_ty
    c_0, c_a, c_b, c_ab = _load4(latent, g, there)
    weights = _softmax(_covjac_scores(c_0, c_a, c_b, c_ab, tl.load(temperature), kind))
    _store_mixture(coefficients, g, there, weights, 1.0, kind)


@triton.jit
def _covjac_backward(latent, temperature, gradient, to_latent, to_temperature, gates, GATES: tl.constexpr):
    g = tl.program_id(0).to(tl.int64) * GATES + tl.arange(0, GATES)
    there = g < gates
    kind: tl.constexpr = latent.dtype.element_ty
    tau = tl.load(temperature)
    c_0, c_a, c_b, c_ab = _load4(latent, g, there)
    s = _covjac_scores(c_0, c_a, c_b, c_ab, tau, kind)
    g_0, g_a, g_b, g_ab = _load4(gradient, g, there)
    v = _centred(_softmax(s), _along(g_0, g_a, g_b, g_ab, kind))
    _store_mixture(to_latent, g, there, v, 2 / tau, kind)
    # v adds up to nothing, so that any one score may be taken from all: the largest keeps the products small.
    own = tl.sum(v * (s - tl.max(s, axis=1)[:, None]), axis=1) / tau
    tl.store(to_temperature + tl.program_id(0), -tl.sum(tl.where(there, own, 0.0).to(tl.float64), axis=0))


@triton.jit
def _mixture_forward(logits, temperature, coefficients, gates, GATES: tl.constexpr):
    g = tl.program_id(0).to(tl.int64) * GATES + tl.arange(0, GATES)
    there = g < gates
    kind: tl.constexpr = logits.dtype.element_ty
    s = tl.load(logits + 16 * g[:, None] + tl.arange(0, 16)[None, :], mask=there[:, None], other=0.0)
    _store_mixture(coefficients, g, there, _softmax(s / tl.load(temperature)), 1.0, kind)


@triton.jit
def _mixture_backward(logits, temperature, gradient, to_logits, gates, GATES: tl.constexpr):
    g = tl.program_id(0).to(tl.int64) * GATES + tl.arange(0, GATES)
    there = g < gates
    kind: tl.constexpr = logits.dtype.element_ty
    tau = tl.load(temperature)
    places = 16 * g[:, None] + tl.arange(0, 16)[None, :]
    s = tl.load(logits + places, mask=there[:, None], other=0.0)
    g_0, g_a, g_b, g_ab = _load4(gradient, g, there)
    v = _centred(_softmax(s / tau), _along(g_0, g_a, g_b, g_ab, kind))
    tl.store(to_logits + places, v / tau, mask=there[:, None])


@triton.jit
def _better(score, j: tl.constexpr, best, chosen):
    """Gate j where its score is larger than the best so far; what is no number is taken, and nothing beats it."""
    taken = (score > best) | (score != score)  # noqa: PLR0124
    return tl.where(taken, score, best), tl.where(taken, j, chosen)


@triton.jit
def _store_committed(best, chosen, gates, coefficients, g, there):
    """The gate and its row of the codebook; no numbers where the parameters were none."""
    kind: tl.constexpr = coefficients.dtype.element_ty
    undefined = best != best  # noqa: PLR0124
    tl.store(gates + g, tl.where(undefined, 0, chosen).to(tl.uint8), mask=there)
    s_00, s_01, s_10, s_11 = (chosen >> 3) & 1, (chosen >> 2) & 1, (chosen >> 1) & 1, chosen & 1
    odd = tl.where(undefined, float("nan"), 0.0).to(kind)
    tl.store(coefficients + 4 * g, s_00.to(kind) + odd, mask=there)
    tl.store(coefficients + 4 * g + 1, (s_10 - s_00).to(kind) + odd, mask=there)
    tl.store(coefficients + 4 * g + 2, (s_01 - s_00).to(kind) + odd, mask=there)
    tl.store(coefficients + 4 * g + 3, (s_11 - s_10 - s_01 + s_00).to(kind) + odd, mask=there)


@triton.jit
def _score(c_0, c_a, c_b, c_ab, s_00, s_01, s_10, j: tl.constexpr):
    """c·G_j - ‖G_j‖² by the reference's sums over corners, for twice the coefficients."""
    low: tl.constexpr = j % 8
    if low == 0:
        part = c_0 - c_0
    elif low == 1:
        part = c_ab
    elif low == 2:
        part = s_10
    elif low == 3:
        part = c_a
    elif low == 4:
        part = s_01
    elif low == 5:
        part = c_b
    elif low == 6:
        part = s_01 + s_10
    else:
        part = s_01 + s_10 + c_ab
    if j >= 8:
        part = s_00 + part
    b_00: tl.constexpr = j // 8
    b_a: tl.constexpr = j // 2 % 2 - b_00
    b_b: tl.constexpr = j // 4 % 2 - b_00
    b_ab: tl.constexpr = j % 2 - b_a - b_b - b_00
    return part - (b_00 * b_00 + b_a * b_a + b_b * b_b + b_ab * b_ab)


@triton.jit
def _nearest(latent, gates, coefficients, size, ORDER: tl.constexpr, GATES: tl.constexpr):
    """argmax_j 2 c·G_j - ‖G_j‖², in float64; the first of equals in ``ORDER``."""
    g = tl.program_id(0).to(tl.int64) * GATES + tl.arange(0, GATES)
    there = g < size
    c_0, c_a, c_b, c_ab = _load4(latent, g, there)
    c_0, c_a = 2 * c_0.to(tl.float64), 2 * c_a.to(tl.float64)
    c_b, c_ab = 2 * c_b.to(tl.float64), 2 * c_ab.to(tl.float64)
    s_00, s_01, s_10 = c_0 - c_a - c_b + c_ab, c_b - c_ab, c_a - c_ab
    best = tl.full((GATES,), float("-inf"), dtype=tl.float64)
    chosen = tl.zeros((GATES,), dtype=tl.int32)
    for place in tl.static_range(16):
        score = _score(c_0, c_a, c_b, c_ab, s_00, s_01, s_10, ORDER[place])
        best, chosen = _better(score, ORDER[place], best, chosen)
    _store_committed(best, chosen, gates, coefficients, g, there)


@triton.jit
def _largest(logits, gates, coefficients, size, GATES: tl.constexpr):
    """argmax_j θ_j, the first of equals."""
    g = tl.program_id(0).to(tl.int64) * GATES + tl.arange(0, GATES)
    there = g < size
    best = tl.full((GATES,), float("-inf"), dtype=logits.dtype.element_ty)
    chosen = tl.zeros((GATES,), dtype=tl.int32)
    for j in tl.static_range(16):
        best, chosen = _better(tl.load(logits + 16 * g + j, mask=there, other=0.0), j, best, chosen)
    _store_committed(best, chosen, gates, coefficients, g, there)


def _grid(gates: int) -> tuple[int]:
    return (parts(gates, GATES),)


def _committed(parameters: Tensor) -> tuple[Tensor, Tensor]:
    size = parameters.shape[0]
    return parameters.new_empty(size, dtype=torch.uint8), parameters.new_empty((size, 4))


def snap(coefficients: Float[Tensor, "gates 4"]) -> tuple[UInt8[Tensor, " gates"], Float[Tensor, "gates 4"]]:
    """The nearest gates and their coefficients."""
    check_floats(coefficients=coefficients)
    c = coefficients.detach().contiguous()
    gates, rows = _committed(c)
    launch(_nearest, _grid(len(c)), c, gates, rows, len(c), fused=False, ORDER=NEAREST_ORDER, GATES=GATES)
    return gates, rows


def largest(logits: Float[Tensor, "gates 16"]) -> tuple[UInt8[Tensor, " gates"], Float[Tensor, "gates 4"]]:
    """The gates argmax θ and their coefficients."""
    check_floats(logits=logits)
    own = logits.detach().contiguous()
    gates, rows = _committed(own)
    launch(_largest, _grid(len(own)), own, gates, rows, len(own), GATES=GATES)
    return gates, rows


def _as_tensor(temperature: float | Tensor, like: Tensor) -> Tensor:
    """On the device, where a learned one is and a given one is put: no number waits for the device."""
    if isinstance(temperature, Tensor):
        return temperature.detach().to(like)
    return torch.full((), temperature, dtype=like.dtype, device=like.device)


class _SoftCoefficients(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, latent: Tensor, temperature: Tensor) -> Tensor:
        own = latent.detach().contiguous()
        ctx.save_for_backward(own, temperature)
        coefficients = torch.empty_like(own)
        launch(_covjac_forward, _grid(len(own)), own, temperature, coefficients, len(own), GATES=GATES)
        return coefficients

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor | None]:
        latent, temperature = ctx.saved_tensors
        to_latent, size = torch.empty_like(latent), len(latent)
        to_temperature = latent.new_empty(_grid(size), dtype=torch.float64)
        arguments = latent, temperature, gradients[0].contiguous(), to_latent, to_temperature, size
        launch(_covjac_backward, _grid(size), *arguments, GATES=GATES)
        total = added_up(to_temperature).to(temperature.dtype) if ctx.needs_input_grad[1] else None
        return to_latent, total


def soft_coefficients(
    latent: Float[Tensor, "gates 4"], temperature: float | Float[Tensor, ""]
) -> Float[Tensor, "gates 4"]:
    """c_soft = Σ_j ω_j G_j."""
    check_floats(latent=latent)
    tau = temperature.to(latent) if isinstance(temperature, Tensor) else _as_tensor(temperature, latent)
    result = _SoftCoefficients.apply(latent, tau)
    assert isinstance(result, Tensor)
    return result


def _mixture_gradient(logits: Tensor, temperature: Tensor, gradient: Tensor) -> Tensor:
    to_logits = torch.empty_like(logits)
    arguments = logits, temperature, gradient.contiguous(), to_logits, len(logits)
    launch(_mixture_backward, _grid(len(logits)), *arguments, GATES=GATES)
    return to_logits


class _Mixture(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, logits: Tensor, temperature: float) -> Tensor:
        own, tau = logits.detach().contiguous(), _as_tensor(temperature, logits)
        ctx.save_for_backward(own, tau)
        coefficients = own.new_empty((len(own), 4))
        launch(_mixture_forward, _grid(len(own)), own, tau, coefficients, len(own), GATES=GATES)
        return coefficients

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        logits, temperature = ctx.saved_tensors
        return _mixture_gradient(logits, temperature, gradients[0]), None


def mixture_coefficients(logits: Float[Tensor, "gates 16"], temperature: float) -> Float[Tensor, "gates 4"]:
    """c = softmax(θ / τ) G."""
    check_floats(logits=logits)
    result = _Mixture.apply(logits, temperature)
    assert isinstance(result, Tensor)
    return result


class _StraightThroughMixture(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, logits: Tensor, rows: Tensor, temperature: float) -> Tensor:
        ctx.save_for_backward(logits.detach().contiguous(), _as_tensor(temperature, logits))
        return rows

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        logits, temperature = ctx.saved_tensors
        return _mixture_gradient(logits, temperature, gradients[0]), None, None


def straight_through_mixture(
    logits: Float[Tensor, "gates 16"], temperature: float
) -> tuple[UInt8[Tensor, " gates"], Float[Tensor, "gates 4"]]:
    """argmax θ and its coefficients, with the gradient of the mixture."""
    gates, rows = largest(logits)
    result = _StraightThroughMixture.apply(logits, rows, temperature)
    assert isinstance(result, Tensor)
    return gates, result
