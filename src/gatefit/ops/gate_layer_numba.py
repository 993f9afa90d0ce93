"""The fused gate layer: the same function as ``gate_layer_reference``, by compiled kernels on the CPU.

    z = c_0 + c_a a + c_b b + c_ab ab,   a = x[:, wiring[0]],  b = x[:, wiring[1]]

Activations are (batch, gates) views of feature-major storage, rows of a gate contiguous along the batch: layer after
layer composes without a copy. An x stored otherwise is transposed once. Results do not depend on the number of threads.
"""

from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.utils.weak import WeakTensorKeyDictionary

from gatefit.ops import gate_layer_kernels_numba as kernels
from gatefit.ops.stack_schedule import version
from gatefit.ops.threads import parallel_for
from gatefit.ops.workspace import workspace

SHARE = 1 << 17
"""Gate evaluations (gates times batch) that one thread takes at a time: enough to hide the cost of asking for more."""


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
    return TransposedWiring(*kernels.transpose(indices.astype(np.int32), inputs))


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
    shared(kernels.transposed, x.contiguous().numpy(), result.numpy(), rows=x.shape[1], work=x.shape[0])
    return result


def shared(kernel: Any, *arrays: Any, rows: int, work: int) -> None:
    """``kernel(*arrays, first, last)`` for all rows, cut into shares of equal size whatever the number of threads."""
    share = max(1, SHARE // max(1, work))
    parallel_for(lambda place: kernel(*arrays, place * share, min(rows, (place + 1) * share)), -(-rows // share))


class _GateLayer(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, wiring: Tensor, coefficients: Tensor, transposed: TransposedWiring) -> Tensor:
        rows = feature_major(x.detach())
        coefficients = coefficients.detach().contiguous()
        gates, batch = wiring.shape[1], x.shape[0]
        z = workspace.tensor((gates, batch), x.dtype)
        arrays = rows.numpy(), wiring.numpy(), coefficients.numpy(), z.numpy()
        shared(kernels.forward, *arrays, rows=gates, work=batch)
        ctx.save_for_backward(rows, wiring, coefficients)
        ctx.transposed = transposed
        return z.T

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, None, Tensor | None, None]:
        rows, wiring, coefficients = ctx.saved_tensors
        delta = feature_major(gradients[0])
        inputs, batch = rows.shape
        dc = torch.empty_like(coefficients)
        arrays: tuple[np.ndarray, ...]
        if not ctx.needs_input_grad[0]:
            arrays = delta.numpy(), rows.numpy(), wiring.numpy(), dc.numpy()
            shared(kernels.backward_coefficients, *arrays, rows=wiring.shape[1], work=batch)
            return None, None, dc, None
        dx = workspace.tensor((inputs, batch), rows.dtype)
        arrays = delta.numpy(), rows.numpy(), *ctx.transposed, coefficients.numpy(), dx.numpy(), dc.numpy()
        # An input's work is its fan-out.
        shared(kernels.backward, *arrays, rows=inputs, work=batch * -(-wiring.shape[1] // inputs))
        return dx.T, None, dc if ctx.needs_input_grad[2] else None, None


def gate_layer_numba(
    x: Float[Tensor, "batch inputs"],
    wiring: Int[Tensor, "2 gates"],
    coefficients: Float[Tensor, "gates 4"],
    transposed: TransposedWiring | None = None,
) -> Float[Tensor, "batch gates"]:
    """z(a, b) for every sample and gate, as a view of feature-major storage.

    ``transposed`` is ``transpose_wiring(wiring, inputs)``; without it, it is made once for each wiring tensor.
    """
    check_cpu_float(x=x, coefficients=coefficients)
    if transposed is None:
        wiring, transposed = _remembered(wiring, x.shape[1])
    elif transposed.starts.size != x.shape[1] + 1 or transposed.gates.size != wiring.numel():
        raise ValueError(
            f"the transposed wiring belongs to {transposed.starts.size - 1} inputs and {transposed.gates.size // 2} "
            f"gates, but x has {x.shape[1]} inputs and the wiring {wiring.shape[1]} gates; use transpose_wiring"
        )
    result = _GateLayer.apply(x, wiring, coefficients, transposed)
    assert isinstance(result, Tensor)
    return result


def check_cpu_float(**tensors: Tensor) -> None:
    """Refuse what the compiled kernels cannot serve: other devices, other types, a mix of types."""
    kinds = {tensor.dtype for tensor in tensors.values()}
    for name, tensor in tensors.items():
        if tensor.device.type != "cpu":
            raise ValueError(
                f"{name} is on {tensor.device}; the fused kernels run on the CPU: move it there or use "
                f'implementation="reference"'
            )
        if tensor.dtype not in (torch.float32, torch.float64):
            raise TypeError(f"{name} must be float32 or float64, got {tensor.dtype}; convert with .float()")
    if len(kinds) > 1:
        raise TypeError(f"{' and '.join(tensors)} must have one type, got {sorted(map(str, kinds))}")
