"""Coefficients from parameters by compiled kernels on the CPU, with closed-form gradients.

    softmax     ω = softmax(s),   s_j = (2 c·G_j - ‖G_j‖²) / τ   (CovJac: ‖c‖² cancels)   or   s = θ / τ   (mixtures)
    forward     c_soft = Σ_j ω_j G_j
    backward    v_j = ω_j (g·G_j - Σ_k ω_k g·G_k),   g = ∂L/∂c_soft;   ∂L/∂s = v
                CovJac  ∂L/∂c = (2/τ) Σ_j v_j G_j,   ∂L/∂τ = -(1/τ) Σ_j v_j s_j;     mixtures  ∂L/∂θ = v / τ

The codebook is never multiplied by. With the corners s_j of gate j (the bits of its number) and G_j = M s_j,

    c·G_j = (Mᵀc)·s_j             a sum over the corners where gate j is 1: sixteen subset sums of four numbers
    Σ_j ω_j G_j = M Σ_j ω_j s_j   four marginals of ω, then M

Everything is straight-line code on scalars, one network gate in each SIMD lane: LLVM turns the loop over network gates
into SIMD and keeps the sixteen weights in registers. Blocks of gates are turned so that one number of all of them is
contiguous, worked on, and turned back. A block is always worked on as a whole, filled up if need be: a gate's result
does not depend on what stands beside it, nor on the number of threads. Corners need no more than additions, in the
order in which autograd adds them. ω is recomputed in the backward pass: sixteen
exponentials cost less than sixteen numbers a gate kept in memory.
"""
# mypy: disable-error-code="no-untyped-def, call-arg"

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import torch
from jaxtyping import Float, UInt8
from numba import float64
from torch import Tensor

from gatefit.codebook import CODEBOOK, TIE_ORDER
from gatefit.ops.simd import exp_of_negative, inlined, kernel, subkernel, wide_vectors
from gatefit.ops.tensors import check_cpu_float
from gatefit.ops.threads import kernel_threads, parallel_for
from gatefit.ops.workspace import NUMPY_TYPES, workspace

SHARE: Final = 4096
"""Gates that one thread takes at least; sums over gates are added share by share, whatever the number of threads."""
BLOCK: Final = 64
NEGLIGIBLE: Final = np.float32(-44)
"""e^-44 = 8e-20: beside a weight of 1 it is nothing, in float64 too."""
G: Final = np.ascontiguousarray(CODEBOOK.astype(np.float64))
# Whole numbers up to 7: int8 keeps their product with a float32 a float32.
NORMS: Final = np.square(G).sum(-1).astype(np.int8)
GATE_ORDER: Final = np.arange(16)
UNDEFINED: Final = 255


# A block's scratch is flat: number k of the block's gate i is at [k * BLOCK + i]. The constant distance is what lets
# LLVM see that a store for one gate is no load for another.


@inlined
def load4(rows, columns):
    """Rows (gates, 4) into columns. Apart from the arithmetic: a loop with strided access does not become SIMD."""
    for i in range(rows.shape[0]):
        for k in range(4):
            columns[k * BLOCK + i] = rows[i, k]


@inlined
def store4(columns, rows):
    """Columns into rows (gates, 4)."""
    for i in range(rows.shape[0]):
        for k in range(4):
            rows[i, k] = columns[k * BLOCK + i]


@inlined
def load16(rows, columns):
    """Rows (gates, 16) into columns."""
    for i in range(rows.shape[0]):
        for k in range(16):
            columns[k * BLOCK + i] = rows[i, k]


@inlined
def store16(columns, rows):
    """Columns into rows (gates, 16)."""
    for i in range(rows.shape[0]):
        for k in range(16):
            rows[i, k] = columns[k * BLOCK + i]


@inlined
def column4(c, i):
    """The four numbers of gate i."""
    return c[i], c[BLOCK + i], c[2 * BLOCK + i], c[3 * BLOCK + i]


@inlined
def set_column4(c, i, f, m):
    """The four numbers of gate i become f m."""
    c[i], c[BLOCK + i], c[2 * BLOCK + i], c[3 * BLOCK + i] = f * m[0], f * m[1], f * m[2], f * m[3]


@inlined
def column16(s, i):
    """The sixteen numbers of gate i."""
    return (
        s[i], s[BLOCK + i], s[2 * BLOCK + i], s[3 * BLOCK + i],
        s[4 * BLOCK + i], s[5 * BLOCK + i], s[6 * BLOCK + i], s[7 * BLOCK + i],
        s[8 * BLOCK + i], s[9 * BLOCK + i], s[10 * BLOCK + i], s[11 * BLOCK + i],
        s[12 * BLOCK + i], s[13 * BLOCK + i], s[14 * BLOCK + i], s[15 * BLOCK + i],
    )  # fmt: skip


@inlined
def set_column16(s, i, v):
    """The sixteen numbers of gate i become v."""
    s[i], s[BLOCK + i], s[2 * BLOCK + i], s[3 * BLOCK + i] = v[0], v[1], v[2], v[3]
    s[4 * BLOCK + i], s[5 * BLOCK + i], s[6 * BLOCK + i], s[7 * BLOCK + i] = v[4], v[5], v[6], v[7]
    s[8 * BLOCK + i], s[9 * BLOCK + i], s[10 * BLOCK + i], s[11 * BLOCK + i] = v[8], v[9], v[10], v[11]
    s[12 * BLOCK + i], s[13 * BLOCK + i], s[14 * BLOCK + i], s[15 * BLOCK + i] = v[12], v[13], v[14], v[15]


@inlined
def subset_sums(c_0, c_a, c_b, c_ab):
    """c·G_j for every gate j; bit 8 of j is the corner (0,0), 4 is (0,1), 2 is (1,0), 1 is (1,1)."""
    u = c_0 - c_a - c_b + c_ab
    s4, s2, s1 = c_b - c_ab, c_a - c_ab, c_ab
    s3, s5, s6 = c_a, c_b, s4 + s2
    s7 = s6 + s1
    return (c_0 - c_0, s1, s2, s3, s4, s5, s6, s7, u, u + s1, u + s2, u + s3, u + s4, u + s5, u + s6, u + s7)


@inlined
def mixture(w):
    """Σ_j w_j G_j."""
    p3, p7, p11, p15 = w[2] + w[3], w[6] + w[7], w[10] + w[11], w[14] + w[15]
    low, high = w[4] + w[5] + p7, w[12] + w[13] + p15
    p_11 = ((w[1] + w[3]) + (w[5] + w[7])) + ((w[9] + w[11]) + (w[13] + w[15]))
    p_10 = (p3 + p7) + (p11 + p15)
    p_01 = low + high
    p_00 = (w[8] + w[9] + p11) + high
    return p_00, p_10 - p_00, p_01 - p_00, (p_11 - p_10) - (p_01 - p_00)


@inlined
def _larger(a, b):
    return a if a > b else b


@inlined
def total(w):
    """Σ_j w_j."""
    return (((w[0] + w[1]) + (w[2] + w[3])) + ((w[4] + w[5]) + (w[6] + w[7]))) + (
        ((w[8] + w[9]) + (w[10] + w[11])) + ((w[12] + w[13]) + (w[14] + w[15]))
    )


@inlined
def times(f, w):
    """f w_j."""
    return (
        f * w[0], f * w[1], f * w[2], f * w[3], f * w[4], f * w[5], f * w[6], f * w[7],
        f * w[8], f * w[9], f * w[10], f * w[11], f * w[12], f * w[13], f * w[14], f * w[15],
    )  # fmt: skip


@inlined
def products(v, w):
    """v_j w_j."""
    return (
        v[0] * w[0], v[1] * w[1], v[2] * w[2], v[3] * w[3], v[4] * w[4], v[5] * w[5], v[6] * w[6], v[7] * w[7],
        v[8] * w[8], v[9] * w[9], v[10] * w[10], v[11] * w[11], v[12] * w[12], v[13] * w[13], v[14] * w[14],
        v[15] * w[15],
    )  # fmt: skip


@inlined
def _minus(w, f):
    return (
        w[0] - f, w[1] - f, w[2] - f, w[3] - f, w[4] - f, w[5] - f, w[6] - f, w[7] - f,
        w[8] - f, w[9] - f, w[10] - f, w[11] - f, w[12] - f, w[13] - f, w[14] - f, w[15] - f,
    )  # fmt: skip


@inlined
def _weight(x):
    """e^x for x <= 0, and 0 where it is lost beside 1 in either type.

    Such weights would make coefficients and gradients of 1e-38 and less, which processors are slow with (denormals).
    """
    e = exp_of_negative(x)
    return e - e if x < NEGLIGIBLE else e


@inlined
def exponentials(s):
    """exp(s_j - max s), 0 where that is below 1e-19."""
    m = _larger(
        _larger(_larger(_larger(s[0], s[1]), _larger(s[2], s[3])), _larger(_larger(s[4], s[5]), _larger(s[6], s[7]))),
        _larger(
            _larger(_larger(s[8], s[9]), _larger(s[10], s[11])), _larger(_larger(s[12], s[13]), _larger(s[14], s[15]))
        ),
    )
    return (
        _weight(s[0] - m), _weight(s[1] - m), _weight(s[2] - m), _weight(s[3] - m),
        _weight(s[4] - m), _weight(s[5] - m), _weight(s[6] - m), _weight(s[7] - m),
        _weight(s[8] - m), _weight(s[9] - m), _weight(s[10] - m), _weight(s[11] - m),
        _weight(s[12] - m), _weight(s[13] - m), _weight(s[14] - m), _weight(s[15] - m),
    )  # fmt: skip


@inlined
def norms(scale):
    """‖G_j‖² times ``scale``, which gives the type."""
    n = NORMS
    return (
        scale * n[0], scale * n[1], scale * n[2], scale * n[3], scale * n[4], scale * n[5], scale * n[6],
        scale * n[7], scale * n[8], scale * n[9], scale * n[10], scale * n[11], scale * n[12], scale * n[13],
        scale * n[14], scale * n[15],
    )  # fmt: skip


@inlined
def covjac_scores(c, scale, n):
    """s_j = (2/τ) c·G_j - n_j with n_j = ‖G_j‖² / τ."""
    s = subset_sums(scale * c[0], scale * c[1], scale * c[2], scale * c[3])
    return (
        s[0] - n[0], s[1] - n[1], s[2] - n[2], s[3] - n[3], s[4] - n[4], s[5] - n[5], s[6] - n[6], s[7] - n[7],
        s[8] - n[8], s[9] - n[9], s[10] - n[10], s[11] - n[11], s[12] - n[12], s[13] - n[13], s[14] - n[14],
        s[15] - n[15],
    )  # fmt: skip


@inlined
def centred(e, along):
    """ω_j (along_j - Σ_k ω_k along_k) for ω = e / Σ e."""
    size = total(e)
    inverse = (size / size) / size
    mean = total(products(e, along)) * inverse
    return products(times(inverse, e), _minus(along, mean))


@subkernel
def _covjac_block(c, temperature):
    """c becomes c_soft."""
    wide_vectors()
    kind = c.dtype.type
    scale, lengths = kind(2) / temperature, norms(kind(1) / temperature)
    for i in range(BLOCK):
        e = exponentials(covjac_scores(column4(c, i), scale, lengths))
        set_column4(c, i, kind(1) / total(e), mixture(e))


@subkernel
def _covjac_gradient_block(c, g, temperature):
    """c becomes ∂L/∂c, and the first column of g the gate's part of ∂L/∂τ."""
    wide_vectors()
    kind = c.dtype.type
    scale, lengths = kind(2) / temperature, norms(kind(1) / temperature)
    inverse = kind(1) / temperature
    for i in range(BLOCK):
        s = covjac_scores(column4(c, i), scale, lengths)
        g_0, g_a, g_b, g_ab = column4(g, i)
        v = centred(exponentials(s), subset_sums(g_0, g_a, g_b, g_ab))
        set_column4(c, i, scale, mixture(v))
        g[i] = -inverse * total(products(v, s))


@subkernel
def _mixture_block(s, c, temperature):
    """c = softmax(θ / τ) G."""
    wide_vectors()
    kind = c.dtype.type
    inverse = kind(1) / temperature
    for i in range(BLOCK):
        e = exponentials(times(inverse, column16(s, i)))
        set_column4(c, i, kind(1) / total(e), mixture(e))


@subkernel
def _mixture_gradient_block(s, g, temperature):
    """θ becomes ∂L/∂θ."""
    wide_vectors()
    kind = g.dtype.type
    inverse = kind(1) / temperature
    for i in range(BLOCK):
        e = exponentials(times(inverse, column16(s, i)))
        g_0, g_a, g_b, g_ab = column4(g, i)
        set_column16(s, i, times(inverse, centred(e, subset_sums(g_0, g_a, g_b, g_ab))))


@kernel
def covjac_forward(latent, temperature, coefficients, c, first, last):
    """coefficients = c_soft."""
    for start in range(first, last, BLOCK):
        size = min(last - start, BLOCK)
        load4(latent[start : start + size], c)
        _covjac_block(c, temperature)
        store4(c, coefficients[start : start + size])


@kernel
def covjac_backward(latent, temperature, gradient, to_latent, c, g, first, last):
    """to_latent = ∂L/∂c; returns the range's part of ∂L/∂τ."""
    to_temperature = 0.0
    for start in range(first, last, BLOCK):
        size = min(last - start, BLOCK)
        load4(latent[start : start + size], c)
        load4(gradient[start : start + size], g)
        _covjac_gradient_block(c, g, temperature)
        store4(c, to_latent[start : start + size])
        for i in range(size):
            to_temperature += float64(g[i])
    return to_temperature


@kernel
def mixture_forward(logits, temperature, coefficients, s, c, first, last):
    """coefficients = softmax(θ / τ) G."""
    for start in range(first, last, BLOCK):
        size = min(last - start, BLOCK)
        load16(logits[start : start + size], s)
        _mixture_block(s, c, temperature)
        store4(c, coefficients[start : start + size])


@kernel
def mixture_backward(logits, temperature, gradient, to_logits, s, g, first, last):
    """to_logits = ∂L/∂θ."""
    for start in range(first, last, BLOCK):
        size = min(last - start, BLOCK)
        load16(logits[start : start + size], s)
        load4(gradient[start : start + size], g)
        _mixture_gradient_block(s, g, temperature)
        store16(s, to_logits[start : start + size])


@subkernel
def _snap_scores_block(c, scores):
    wide_vectors()
    for i in range(BLOCK):
        set_column16(scores, i, covjac_scores(column4(c, i), 2.0, norms(1.0)))


@subkernel
def _first_largest_block(scores, order, best, chosen):
    """The first gate in ``order`` with the largest score; UNDEFINED where one is NaN."""
    wide_vectors()
    kind = scores.dtype.type
    best[:] = kind(-np.inf)
    chosen[:] = 0
    for j in order:
        row = scores[j * BLOCK : (j + 1) * BLOCK]
        for i in range(BLOCK):
            # A NaN is taken, and nothing is larger than it.
            better = row[i] > best[i] or row[i] != row[i]
            chosen[i] = j if better else chosen[i]
            best[i] = row[i] if better else best[i]
    for i in range(BLOCK):
        chosen[i] = chosen[i] if best[i] == best[i] else UNDEFINED


@subkernel
def _store_gates(chosen, gates, coefficients):
    """The gates and their rows of the codebook; NaN where the parameters were not numbers, so that nothing hides it."""
    for i in range(gates.size):
        gate = chosen[i]
        if gate == UNDEFINED:
            gates[i] = 0
            coefficients[i, :] = np.nan
        else:
            gates[i] = gate
            for k in range(4):
                coefficients[i, k] = G[gate, k]


@kernel
def nearest_range(latent, gates, coefficients, c, scores, best, chosen, first, last):
    """The nearest gate, by the largest 2 c·G_j - ‖G_j‖² in float64: no rounding decides for float32 coefficients."""
    for start in range(first, last, BLOCK):
        size = min(last - start, BLOCK)
        load4(latent[start : start + size], c)
        _snap_scores_block(c, scores)
        _first_largest_block(scores, TIE_ORDER, best, chosen)
        _store_gates(chosen, gates[start : start + size], coefficients[start : start + size])


@kernel
def largest_range(logits, gates, coefficients, scores, best, chosen, first, last):
    """The gate with the largest logit, the first of equals."""
    for start in range(first, last, BLOCK):
        size = min(last - start, BLOCK)
        load16(logits[start : start + size], scores)
        _first_largest_block(scores, GATE_ORDER, best, chosen)
        _store_gates(chosen, gates[start : start + size], coefficients[start : start + size])


@kernel
def corners_forward(corners, coefficients, first, last):
    """coefficients = M s."""
    for i in range(first, last):
        s_00, s_10, s_01, s_11 = corners[i, 0], corners[i, 1], corners[i, 2], corners[i, 3]
        coefficients[i, 0], coefficients[i, 1], coefficients[i, 2] = s_00, s_10 - s_00, s_01 - s_00
        coefficients[i, 3] = ((s_11 - s_10) - s_01) + s_00


@kernel
def corners_backward(gradient, to_corners, first, last):
    """to_corners = Mᵀ ∂L/∂c."""
    for i in range(first, last):
        g_0, g_a, g_b, g_ab = gradient[i, 0], gradient[i, 1], gradient[i, 2], gradient[i, 3]
        to_corners[i, 0], to_corners[i, 1] = ((g_0 + g_ab) - g_b) - g_a, g_a - g_ab
        to_corners[i, 2], to_corners[i, 3] = g_b - g_ab, g_ab


@kernel
def snap_corners_range(corners, gates, coefficients, first, last):
    """The gate whose values at the corners are [s > 1/2], and its row of the codebook."""
    for i in range(first, last):
        gate = 8 * (corners[i, 0] > 0.5) + 2 * (corners[i, 1] > 0.5) + 4 * (corners[i, 2] > 0.5) + (corners[i, 3] > 0.5)
        gates[i] = gate
        for k in range(4):
            coefficients[i, k] = G[gate, k]


def _array(tensor: Tensor) -> np.ndarray:
    result: np.ndarray = tensor.detach().contiguous().numpy()
    return result


def _shared(
    kernel: Any, *arrays: Any, gates: int, scratch: Sequence[tuple[int, Any]], nanoseconds: float, adds: bool = False
) -> list[Any]:
    """``kernel(*arrays, *scratch, first, last)`` for all gates; what each share returned, in order.

    ``scratch``: how many numbers of which type a kernel needs for each gate of a block. ``nanoseconds``: about how long
    a gate takes. What a kernel ``adds`` up is cut in the same way for any number of threads; else there are as many
    shares as threads can use, since calls take time too.
    """
    share = SHARE if adds else max(SHARE, -(-gates // (2 * kernel_threads() * BLOCK)) * BLOCK)
    results: list[Any] = [None] * -(-gates // share)

    def task(place: int) -> None:
        room = [np.zeros(numbers * BLOCK, kind) for numbers, kind in scratch]
        results[place] = kernel(*arrays, *room, place * share, min(gates, (place + 1) * share))

    parallel_for(task, len(results), nanoseconds=nanoseconds * gates)
    return results


def _number(temperature: float | Tensor, like: Tensor) -> Any:
    """The temperature as a scalar of the parameters' type."""
    return np.float32(float(temperature)) if like.dtype == torch.float32 else np.float64(float(temperature))


class _SoftCoefficients(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, latent: Tensor, temperature: Tensor | float) -> Tensor:
        ctx.temperature = _number(temperature, latent)
        ctx.like = temperature.detach() if isinstance(temperature, Tensor) else None
        ctx.save_for_backward(latent)
        result = workspace.tensor(latent.shape, latent.dtype)
        c = _array(latent)
        _shared(covjac_forward, c, ctx.temperature, result.numpy(), gates=len(c), scratch=[(4, c.dtype)], nanoseconds=8)
        return result

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, Tensor | None]:
        (latent,) = ctx.saved_tensors
        to_latent = workspace.tensor(latent.shape, latent.dtype)
        arrays = _array(latent), ctx.temperature, _array(gradients[0]), to_latent.numpy()
        kind = arrays[0].dtype
        parts = _shared(
            covjac_backward, *arrays, gates=latent.shape[0], scratch=[(4, kind), (4, kind)], nanoseconds=12,
            adds=ctx.needs_input_grad[1],
        )  # fmt: skip
        return (
            to_latent if ctx.needs_input_grad[0] else None,
            torch.full_like(ctx.like, sum(parts)) if ctx.needs_input_grad[1] else None,
        )


def soft_coefficients(
    latent: Float[Tensor, "gates 4"], temperature: float | Float[Tensor, ""]
) -> Float[Tensor, "gates 4"]:
    """c_soft of every gate; gradients to the latent coefficients and, where it is a tensor, to the temperature."""
    check_cpu_float(latent=latent)
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
        result = workspace.tensor((logits.shape[0], 4), logits.dtype)
        s = _array(logits)
        scratch = [(16, s.dtype), (4, s.dtype)]
        _shared(mixture_forward, s, ctx.temperature, result.numpy(), gates=len(s), scratch=scratch, nanoseconds=14)
        return result

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        (logits,) = ctx.saved_tensors
        to_logits = workspace.tensor(logits.shape, logits.dtype)
        arrays = _array(logits), ctx.temperature, _array(gradients[0]), to_logits.numpy()
        kind = arrays[0].dtype
        _shared(mixture_backward, *arrays, gates=logits.shape[0], scratch=[(16, kind), (4, kind)], nanoseconds=18)
        return to_logits, None, None


def mixture_coefficients(logits: Float[Tensor, "gates 16"], temperature: float) -> Float[Tensor, "gates 4"]:
    """c = softmax(θ / τ) G of every gate."""
    check_cpu_float(logits=logits)
    result = _Mixture.apply(logits, temperature, None)
    assert isinstance(result, Tensor)
    return result


def straight_through_mixture(
    logits: Float[Tensor, "gates 16"], temperature: float
) -> tuple[UInt8[Tensor, " gates"], Float[Tensor, "gates 4"]]:
    """The gates argmax θ and their coefficients, with the gradient of softmax(θ / τ) G."""
    gates, chosen = largest(logits)
    result = _Mixture.apply(logits, temperature, chosen)
    assert isinstance(result, Tensor)
    return gates, result


def snap(coefficients: Float[Tensor, "gates 4"]) -> tuple[UInt8[Tensor, " gates"], Float[Tensor, "gates 4"]]:
    """The nearest gates and their coefficients, without gradients; NaN where the given coefficients are NaN."""
    check_cpu_float(coefficients=coefficients)
    scratch = [(4, np.float64), (16, np.float64), (1, np.float64), (1, np.int64)]
    return _committed(nearest_range, coefficients, scratch)


def largest(logits: Float[Tensor, "gates 16"]) -> tuple[UInt8[Tensor, " gates"], Float[Tensor, "gates 4"]]:
    """The gates argmax θ and their coefficients, without gradients; NaN where a logit is NaN."""
    check_cpu_float(logits=logits)
    kind = NUMPY_TYPES[logits.dtype]
    return _committed(largest_range, logits, [(16, kind), (1, kind), (1, np.int32)])


def _committed(kernel: Any, parameters: Tensor, scratch: Sequence[tuple[int, Any]]) -> tuple[Tensor, Tensor]:
    gates = torch.empty(parameters.shape[0], dtype=torch.uint8)
    coefficients = workspace.tensor((parameters.shape[0], 4), parameters.dtype)
    arrays = _array(parameters), gates.numpy(), coefficients.numpy()
    _shared(kernel, *arrays, gates=gates.numel(), scratch=scratch, nanoseconds=16 if scratch else 3)
    return gates, coefficients


class _FromCorners(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, corners: Tensor, chosen: Tensor | None) -> Tensor:
        if chosen is not None:
            return chosen.view_as(chosen)
        result = workspace.tensor(corners.shape, corners.dtype)
        _shared(corners_forward, _array(corners), result.numpy(), gates=corners.shape[0], scratch=(), nanoseconds=2)
        return result

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        to_corners = workspace.tensor(gradients[0].shape, gradients[0].dtype)
        arrays = _array(gradients[0]), to_corners.numpy()
        _shared(corners_backward, *arrays, gates=to_corners.shape[0], scratch=(), nanoseconds=2)
        return to_corners, None


def corner_coefficients(corners: Float[Tensor, "gates 4"]) -> Float[Tensor, "gates 4"]:
    """c = M s of every gate."""
    check_cpu_float(corners=corners)
    result = _FromCorners.apply(corners, None)
    assert isinstance(result, Tensor)
    return result


def snap_corners(corners: Float[Tensor, "gates 4"]) -> tuple[UInt8[Tensor, " gates"], Float[Tensor, "gates 4"]]:
    """The gates [s > 1/2] and their coefficients, with the gradient of M s."""
    check_cpu_float(corners=corners)
    gates, chosen = _committed(snap_corners_range, corners, ())
    result = _FromCorners.apply(corners, chosen)
    assert isinstance(result, Tensor)
    return gates, result
