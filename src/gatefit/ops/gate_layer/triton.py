"""The gate layer by Triton's kernels, feature-major; see ``ops.triton_tiles``."""

from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from gatefit.ops.triton_tiles import (
    Delta,
    Pool,
    Uses,
    check_floats,
    coefficients_backward,
    layer_backward,
    layer_forward,
    remembered_uses,
)


class _GateLayer(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, wiring: Tensor, uses: Uses, coefficients: Tensor) -> Tensor:
        # A view where x is stored feature by feature already, as this operation leaves it.
        rows, c = x.detach().T.contiguous(), coefficients.detach().contiguous()
        ctx.save_for_backward(rows, wiring, c)
        ctx.uses = uses
        return layer_forward(Pool(rows, x.shape[0]), wiring, c).values.T

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, None, None, Tensor | None]:
        rows, wiring, c = ctx.saved_tensors
        delta, pool = Delta(gradients[0].T.contiguous()), Pool(rows, rows.shape[1])
        if not ctx.needs_input_grad[0]:
            return None, None, None, coefficients_backward(delta, pool, wiring, c.dtype)
        below, own = layer_backward(delta, pool, ctx.uses, c)
        return below.T, None, None, own if ctx.needs_input_grad[3] else None


def gate_layer(
    x: Float[Tensor, "batch inputs"], wiring: Int[Tensor, "2 gates"], coefficients: Float[Tensor, "gates 4"]
) -> Float[Tensor, "batch gates"]:
    """z(a, b) for every sample and gate, as a view of feature-major storage."""
    check_floats(x=x, coefficients=coefficients)
    result = _GateLayer.apply(x, *remembered_uses(wiring, x.shape[1]), coefficients)
    assert isinstance(result, Tensor)
    return result
