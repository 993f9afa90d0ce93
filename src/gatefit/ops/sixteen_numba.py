"""Arithmetic on the sixteen weights of one gate, written for one network gate in each SIMD lane.

The codebook is never multiplied by. With the corners s_j of gate j (the bits of its number) and G_j = M s_j,

    c·G_j = (Mᵀc)·s_j             a sum over the corners where gate j is 1: sixteen subset sums of four numbers
    Σ_j ω_j G_j = M Σ_j ω_j s_j   four marginals of ω, then M

Everything is straight-line code on scalars, so that LLVM turns the loop over network gates into SIMD and keeps the
sixteen weights in registers.
"""
# mypy: disable-error-code="no-untyped-def, call-arg"

from typing import Final

import numpy as np
from numba import float32, int32, types
from numba.extending import intrinsic, overload

from gatefit.codebook import CODEBOOK
from gatefit.compiled import njit

BLOCK: Final = 64
FUSED: Final = {"contract", "nsz"}

inlined = njit(cache=True, forceinline=True, error_model="numpy", fastmath=FUSED)
"""Calls inside a loop keep LLVM from making it SIMD, and so does a check for division by zero."""

kernel = njit(cache=True, nogil=True, error_model="numpy", fastmath=FUSED)
NEGLIGIBLE: Final = np.float32(-44)
"""e^-44 = 8e-20: beside a weight of 1 it is nothing, in float64 too."""
G: Final = np.ascontiguousarray(CODEBOOK.astype(np.float64))
# Whole numbers up to 7: int8 keeps their product with a float32 a float32.
NORMS: Final = np.square(G).sum(-1).astype(np.int8)


@intrinsic
def float_of_bits(typing_context, bits):
    """The float32 whose bits these are."""

    def generate(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], context.get_value_type(types.float32))

    return types.float32(types.int32), generate


@njit(cache=True, forceinline=True, fastmath={"contract"})
def _exp_float32(x):
    """exp(x) for x <= 0 to 1.5 ulp, without a call, so that a loop over it is SIMD; NaN gives NaN."""
    x = float32(-87.0) if x < float32(-87.0) else x
    # x = n ln 2 + r with |r| <= ln 2 / 2; adding 1.5 * 2^23 rounds to an integer. ln 2 in two parts keeps r exact.
    shifted = x * float32(1.4426950408889634) + float32(12582912.0)
    n = shifted - float32(12582912.0)
    r = (x - n * float32(0.693359375)) - n * float32(-2.12194440e-4)
    p = float32(1.9891981302e-4)
    p = p * r + float32(1.3934541927e-3)
    p = p * r + float32(8.3333100242e-3)
    p = p * r + float32(4.1666456810e-2)
    p = p * r + float32(1.6666666683e-1)
    p = p * r + float32(5.0000000143e-1)
    p = (p * r * r + r) + float32(1.0)
    return p * float_of_bits((int32(n) + int32(127)) << int32(23))


def exp_of_negative(x):
    """e^x for x <= 0, in either type; compiled, the float32 form is one that loops turn into SIMD."""
    return np.exp(x)


@overload(exp_of_negative, inline="always")
def _exp_of_type(x):
    if x == types.float32:
        return lambda x: _exp_float32(x)  # noqa: PLW0108 -- a function to inline, not a compiled one
    return lambda x: np.exp(x)  # noqa: PLW0108 -- numba compiles this function, and np.exp is none


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
