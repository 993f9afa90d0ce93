"""The gate layer by compiled kernels on the CPU, feature-major: every activation is a row, contiguous along the batch.

    forward    z[g] = c_0 + c_a a + b (c_b + c_ab a),              a = x[wiring[0, g]],  b = x[wiring[1, g]]
    backward   dc[g] = Σ_batch δ[g] (1, a, b, ab)
               dx[i] = Σ_(g: a is i) δ[g] (c_a + c_ab b)  +  Σ_(g: b is i) δ[g] (c_b + c_ab a)

Activations are (batch, gates) views of that storage: layer after layer composes without a copy, and an x stored
otherwise is transposed once. The backward pass visits the inputs, not the gates: each input gathers from its fan-out,
so no two threads write to one row, nothing is added up in an order that depends on the threads, and dc falls out of the
visit in which the input plays the role of a.
"""
# mypy: disable-error-code="no-untyped-def"

from typing import Any, Final, NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.utils.weak import WeakTensorKeyDictionary

from gatefit.compiled import njit
from gatefit.ops.tensors import check_cpu_float, version
from gatefit.ops.threads import parallel_for
from gatefit.ops.workspace import workspace

SHARE: Final = 1 << 17
"""Gate evaluations (gates times batch) that one thread takes at a time: enough to hide the cost of asking for more."""

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
def _forward(x, wiring, c, z, first, last):
    """z of the gates from first to last."""
    for g in range(first, last):
        _forward_row(x[wiring[0, g]], x[wiring[1, g]], c[g], z[g])


@kernel
def _backward_coefficients(delta, x, wiring, dc, first, last):
    """dc of the gates from first to last."""
    for g in range(first, last):
        _coefficient_row(delta[g], x[wiring[0, g]], x[wiring[1, g]], dc[g])


@kernel
def _backward(delta, x, starts, gates, others, roles, c, dx, dc, first, last):
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
def _transposed(source, target, first, last):
    """Rows first to last of ``target``, the transpose of ``source``, in tiles that stay in the first-level cache."""
    tile = 32
    for top in range(first, last, tile):
        for left in range(0, target.shape[1], tile):
            for i in range(top, min(last, top + tile)):
                for j in range(left, min(target.shape[1], left + tile)):
                    target[i, j] = source[j, i]


class TransposedWiring(NamedTuple):
    """A wiring seen from its inputs (CSR): entry e in starts[i]:starts[i+1] is one use of input i."""

    starts: Int[np.ndarray, " inputs+1"]
    gates: Int[np.ndarray, " 2*gates"]
    """The gate that uses it."""
    others: Int[np.ndarray, " 2*gates"]
    """That gate's other input."""
    roles: Int[np.ndarray, " 2*gates"]
    """0 where the input is the gate's a, 1 where it is its b."""


def transpose_wiring(wiring: Int[Tensor, "2 gates"], inputs: int) -> TransposedWiring:
    """The wiring seen from its ``inputs`` inputs; built once for a layer, used by every backward pass."""
    indices = wiring.detach().cpu().numpy()
    if indices.size and not 0 <= indices.min() <= indices.max() < inputs:
        raise ValueError(
            f"wiring reads inputs {indices.min()} to {indices.max()}, but x has {inputs} inputs, numbered from 0"
        )
    uses = indices.astype(np.int32).ravel()  # first every a, then every b
    order = np.argsort(uses, kind="stable").astype(np.int32)
    starts = np.zeros(inputs + 1, dtype=np.int32)
    np.cumsum(np.bincount(uses, minlength=inputs), out=starts[1:])
    roles, gates = np.divmod(order, np.int32(indices.shape[1]))
    others = np.roll(uses, indices.shape[1])[order]
    return TransposedWiring(starts, gates, others, roles.astype(np.uint8))


_TRANSPOSED: WeakTensorKeyDictionary = WeakTensorKeyDictionary()


def _remembered(wiring: Tensor, inputs: int) -> tuple[Tensor, TransposedWiring]:
    """The wiring as checked int32 indices and its transpose, made again only after the tensor was written to."""
    state = (version(wiring), inputs)
    known = _TRANSPOSED.get(wiring)
    if known is None or known[0] != state:
        known = (state, wiring.to(torch.int32).contiguous(), transpose_wiring(wiring, inputs))
        _TRANSPOSED[wiring] = known
    return known[1], known[2]


def feature_major(x: Float[Tensor, "batch features"]) -> Float[Tensor, "features batch"]:
    """x transposed, contiguous along the batch: a view where x is already stored so, else one fast copy."""
    rows = x.T
    if rows.is_contiguous():
        return rows
    result = workspace.tensor((x.shape[1], x.shape[0]), x.dtype)
    shared(_transposed, x.contiguous().numpy(), result.numpy(), rows=x.shape[1], work=x.shape[0])
    return result


def shared(kernel: Any, *arrays: Any, rows: int, work: int) -> None:
    """``kernel(*arrays, first, last)`` for all rows, cut into shares of equal size whatever the number of threads."""
    share = max(1, SHARE // max(1, work))
    parallel_for(lambda place: kernel(*arrays, place * share, min(rows, (place + 1) * share)), -(-rows // share))


class _GateLayer(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, wiring: Tensor, transposed: TransposedWiring, coefficients: Tensor) -> Tensor:
        rows = feature_major(x.detach())
        coefficients = coefficients.detach().contiguous()
        gates, batch = wiring.shape[1], x.shape[0]
        z = workspace.tensor((gates, batch), x.dtype)
        arrays = rows.numpy(), wiring.numpy(), coefficients.numpy(), z.numpy()
        shared(_forward, *arrays, rows=gates, work=batch)
        ctx.save_for_backward(rows, wiring, coefficients)
        ctx.transposed = transposed
        return z.T

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, None, None, Tensor | None]:
        rows, wiring, coefficients = ctx.saved_tensors
        delta = feature_major(gradients[0])
        inputs, batch = rows.shape
        dc = torch.empty_like(coefficients)
        arrays: tuple[np.ndarray, ...]
        if not ctx.needs_input_grad[0]:
            arrays = delta.numpy(), rows.numpy(), wiring.numpy(), dc.numpy()
            shared(_backward_coefficients, *arrays, rows=wiring.shape[1], work=batch)
            return None, None, None, dc
        dx = workspace.tensor((inputs, batch), rows.dtype)
        arrays = delta.numpy(), rows.numpy(), *ctx.transposed, coefficients.numpy(), dx.numpy(), dc.numpy()
        # An input's work is its fan-out.
        shared(_backward, *arrays, rows=inputs, work=batch * -(-wiring.shape[1] // inputs))
        return dx.T, None, None, dc if ctx.needs_input_grad[3] else None


def gate_layer(
    x: Float[Tensor, "batch inputs"], wiring: Int[Tensor, "2 gates"], coefficients: Float[Tensor, "gates 4"]
) -> Float[Tensor, "batch gates"]:
    """z(a, b) for every sample and gate, as a view of feature-major storage."""
    check_cpu_float(x=x, coefficients=coefficients)
    result = _GateLayer.apply(x, *_remembered(wiring, x.shape[1]), coefficients)
    assert isinstance(result, Tensor)
    return result
