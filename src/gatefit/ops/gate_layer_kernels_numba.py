"""One gate layer, feature-major: every activation is a row (one gate or input), contiguous along the batch.

    forward    z[g] = c_0 + c_a a + b (c_b + c_ab a),              a = x[wiring[0, g]],  b = x[wiring[1, g]]
    backward   dc[g] = Σ_batch δ[g] (1, a, b, ab)
               dx[i] = Σ_(g: a is i) δ[g] (c_a + c_ab b)  +  Σ_(g: b is i) δ[g] (c_b + c_ab a)

The backward pass visits the inputs, not the gates: each input gathers from its fan-out, so no two threads write to
one row, nothing is added up in an order that depends on the threads, and dc falls out of the visit in which the
input plays the role of a. Each kernel works on a range, so that threads can share it out; callers are in
``gate_layer_numba``.
"""
# mypy: disable-error-code="no-untyped-def"

from typing import Final

import numpy as np

from gatefit.compiled import njit

# Sums over the batch may be reordered (that is what SIMD does; the same code does it the same way every time),
# but NaN and infinity keep their meaning.
FAST: Final = {"contract", "reassoc", "nsz"}
kernel = njit(cache=True, nogil=True, fastmath=FAST)


@kernel
def _forward_row(a, b, c, z):
    c_0, c_a, c_b, c_ab = c[0], c[1], c[2], c[3]
    for s in range(z.size):
        z[s] = (c_0 + c_a * a[s]) + b[s] * (c_b + c_ab * a[s])


@kernel
def _coefficient_row(delta, a, b, dc):
    s_0 = delta.dtype.type(0)
    s_a = s_b = s_ab = s_0
    for s in range(delta.size):
        d = delta[s]
        d_b = d * b[s]
        s_0 += d
        s_a += d * a[s]
        s_b += d_b
        s_ab += d_b * a[s]
    dc[0], dc[1], dc[2], dc[3] = s_0, s_a, s_b, s_ab


@kernel
def _backward_row_a(delta, a, b, c, dx, dc):
    c_a, c_ab = c[1], c[3]
    s_0 = delta.dtype.type(0)
    s_a = s_b = s_ab = s_0
    for s in range(delta.size):
        d = delta[s]
        d_b = d * b[s]
        dx[s] += c_a * d + c_ab * d_b
        s_0 += d
        s_a += d * a[s]
        s_b += d_b
        s_ab += d_b * a[s]
    dc[0], dc[1], dc[2], dc[3] = s_0, s_a, s_b, s_ab


@kernel
def _backward_row_b(delta, a, c, dx):
    c_b, c_ab = c[2], c[3]
    for s in range(delta.size):
        dx[s] += delta[s] * (c_b + c_ab * a[s])


@kernel
def forward(x, wiring, c, z, first, last):
    """z of the gates from first to last."""
    for g in range(first, last):
        _forward_row(x[wiring[0, g]], x[wiring[1, g]], c[g], z[g])


@kernel
def backward_coefficients(delta, x, wiring, dc, first, last):
    """dc of the gates from first to last."""
    for g in range(first, last):
        _coefficient_row(delta[g], x[wiring[0, g]], x[wiring[1, g]], dc[g])


@kernel
def backward(delta, x, starts, gates, others, roles, c, dx, dc, first, last):
    """dx of the inputs from first to last, and dc of the gates whose a they are."""
    for i in range(first, last):
        own, total = x[i], dx[i]
        total[:] = 0
        for e in range(starts[i], starts[i + 1]):
            g = gates[e]
            if roles[e] == 0:
                _backward_row_a(delta[g], own, x[others[e]], c[g], total, dc[g])
            else:
                _backward_row_b(delta[g], x[others[e]], c[g], total)


@kernel
def transposed(source, target, first, last):
    """Rows first to last of ``target``, the transpose of ``source``, in tiles that stay in the first-level cache."""
    tile = 32
    for top in range(first, last, tile):
        for left in range(0, target.shape[1], tile):
            for i in range(top, min(last, top + tile)):
                for j in range(left, min(target.shape[1], left + tile)):
                    target[i, j] = source[j, i]


def transpose(wiring: np.ndarray, inputs: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The wiring seen from the inputs: row starts, and for each use of an input the gate, the other input, the role."""
    uses = wiring.ravel()  # first every a, then every b
    order = np.argsort(uses, kind="stable").astype(np.int32)
    starts = np.zeros(inputs + 1, dtype=np.int32)
    np.cumsum(np.bincount(uses, minlength=inputs), out=starts[1:])
    roles, gates = np.divmod(order, np.int32(wiring.shape[1]))
    return starts, gates, np.ascontiguousarray(wiring[::-1]).ravel()[order], roles.astype(np.uint8)
