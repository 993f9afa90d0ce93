"""From parameters to coefficients and back, for ranges of gates.

    softmax     ω = softmax(s),   s_j = (2 c·G_j - ‖G_j‖²) / τ   (CovJac: ‖c‖² cancels)   or   s = θ / τ   (mixtures)
    forward     c_soft = Σ_j ω_j G_j
    backward    v_j = ω_j (g·G_j - Σ_k ω_k g·G_k),   g = ∂L/∂c_soft;   ∂L/∂s = v
                CovJac  ∂L/∂c = (2/τ) Σ_j v_j G_j,   ∂L/∂τ = -(1/τ) Σ_j v_j s_j;     mixtures  ∂L/∂θ = v / τ

Blocks of gates are turned so that one number of all of them is contiguous, worked on by SIMD loops, and turned back.
A block is always worked on as a whole, filled up if need be: a gate's result does not depend on what stands beside it.
ω is recomputed in the backward pass: sixteen exponentials cost less than sixteen numbers a gate kept in memory.
"""
# mypy: disable-error-code="no-untyped-def, call-arg"

from typing import Final

import numpy as np
from numba import float64

from gatefit.codebook import TIE_ORDER
from gatefit.ops.sixteen_numba import (
    BLOCK,
    G,
    centred,
    column4,
    column16,
    covjac_scores,
    exponentials,
    kernel,
    load4,
    load16,
    mixture,
    norms,
    products,
    set_column4,
    set_column16,
    store4,
    store16,
    subset_sums,
    times,
    total,
)
from gatefit.ops.wide_vectors import wide_vectors

GATE_ORDER: Final = np.arange(16)
UNDEFINED: Final = 255


@kernel
def _covjac_block(c, temperature):
    """c becomes c_soft."""
    wide_vectors()
    kind = c.dtype.type
    scale, lengths = kind(2) / temperature, norms(kind(1) / temperature)
    for i in range(BLOCK):
        e = exponentials(covjac_scores(column4(c, i), scale, lengths))
        set_column4(c, i, kind(1) / total(e), mixture(e))


@kernel
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


@kernel
def _mixture_block(s, c, temperature):
    """c = softmax(θ / τ) G."""
    wide_vectors()
    kind = c.dtype.type
    inverse = kind(1) / temperature
    for i in range(BLOCK):
        e = exponentials(times(inverse, column16(s, i)))
        set_column4(c, i, kind(1) / total(e), mixture(e))


@kernel
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
def covjac_forward(latent, temperature, coefficients, first, last):
    """coefficients = c_soft."""
    c = np.zeros(4 * BLOCK, latent.dtype)
    for start in range(first, last, BLOCK):
        size = min(last - start, BLOCK)
        load4(latent[start : start + size], c)
        _covjac_block(c, temperature)
        store4(c, coefficients[start : start + size])


@kernel
def covjac_backward(latent, temperature, gradient, to_latent, first, last):
    """to_latent = ∂L/∂c; returns the range's part of ∂L/∂τ."""
    c, g = np.zeros(4 * BLOCK, latent.dtype), np.zeros(4 * BLOCK, latent.dtype)
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
def mixture_forward(logits, temperature, coefficients, first, last):
    """coefficients = softmax(θ / τ) G."""
    s, c = np.zeros(16 * BLOCK, logits.dtype), np.zeros(4 * BLOCK, logits.dtype)
    for start in range(first, last, BLOCK):
        size = min(last - start, BLOCK)
        load16(logits[start : start + size], s)
        _mixture_block(s, c, temperature)
        store4(c, coefficients[start : start + size])


@kernel
def mixture_backward(logits, temperature, gradient, to_logits, first, last):
    """to_logits = ∂L/∂θ."""
    s, g = np.zeros(16 * BLOCK, logits.dtype), np.zeros(4 * BLOCK, logits.dtype)
    for start in range(first, last, BLOCK):
        size = min(last - start, BLOCK)
        load16(logits[start : start + size], s)
        load4(gradient[start : start + size], g)
        _mixture_gradient_block(s, g, temperature)
        store16(s, to_logits[start : start + size])


@kernel
def _snap_scores_block(c, scores):
    wide_vectors()
    for i in range(BLOCK):
        set_column16(scores, i, covjac_scores(column4(c, i), 2.0, norms(1.0)))


@kernel
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


@kernel
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
def snap(latent, gates, coefficients, first, last):
    """The nearest gate, by the largest 2 c·G_j - ‖G_j‖² in float64: no rounding decides for float32 coefficients."""
    c, scores = np.zeros(4 * BLOCK, np.float64), np.zeros(16 * BLOCK, np.float64)
    best, chosen = np.empty(BLOCK, np.float64), np.empty(BLOCK, np.int64)
    for start in range(first, last, BLOCK):
        size = min(last - start, BLOCK)
        load4(latent[start : start + size], c)
        _snap_scores_block(c, scores)
        _first_largest_block(scores, TIE_ORDER, best, chosen)
        _store_gates(chosen, gates[start : start + size], coefficients[start : start + size])


@kernel
def argmax(logits, gates, coefficients, first, last):
    """The gate with the largest logit, the first of equals."""
    scores, best = np.zeros(16 * BLOCK, logits.dtype), np.empty(BLOCK, logits.dtype)
    chosen = np.empty(BLOCK, np.int32)
    for start in range(first, last, BLOCK):
        size = min(last - start, BLOCK)
        load16(logits[start : start + size], scores)
        _first_largest_block(scores, GATE_ORDER, best, chosen)
        _store_gates(chosen, gates[start : start + size], coefficients[start : start + size])
