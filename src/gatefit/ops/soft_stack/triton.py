"""Soft stacks by Triton's kernels: a launch for each layer and way, the batch's bits read as words."""

from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from gatefit.ops.batches import Batch
from gatefit.ops.expected_loss import ExpectedLoss
from gatefit.ops.stacks import Stack
from gatefit.ops.triton_tiles import (
    Pool,
    check_floats,
    layer_forward,
    placed,
    pool_of,
    remembered_uses,
    stack_backward,
    votes_of_pools,
)


class _SoftStack(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Pool, stack: Stack, sigmoid: bool, *coefficients: Tensor) -> Tensor:
        own = [tensor.detach().contiguous() for tensor in coefficients]
        wired = [
            remembered_uses(wiring, inputs)
            for wiring, inputs in zip(stack.wirings, (x.nodes, *stack.widths), strict=False)
        ]
        pools, kept = [x], any(ctx.needs_input_grad)
        for layer, ((wiring, _), c) in enumerate(zip(wired, own, strict=True)):
            pools.append(layer_forward(pools[-1], wiring, c, sigmoid=sigmoid))
            if not kept and layer not in stack.votes:
                pools[layer] = x  # What nobody reads any more makes room.
        ctx.stack, ctx.sigmoid, ctx.wired, ctx.pools, ctx.c = stack, sigmoid, wired, pools, own
        return votes_of_pools(stack, pools[1:], own[0].dtype)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        wirings, uses = zip(*ctx.wired, strict=True)
        found = stack_backward(ctx.stack, ctx.pools, wirings, uses, ctx.c, gradients[0], sigmoid=ctx.sigmoid)
        return None, None, None, *found


def soft_stack_triton(
    x: Batch,
    stack: Stack,
    coefficients: Sequence[Float[Tensor, "_ 4"]],
    *,
    sigmoid: bool = False,
    expected: ExpectedLoss | None = None,
) -> Float[Tensor, "batch columns"]:
    """All layers on the device of the coefficients; activations are kept, whatever is expected."""
    check_floats(**{f"coefficients of layer {i}": tensor for i, tensor in enumerate(coefficients)})
    rows = [placed(tensor, owner) for tensor, owner in zip(coefficients, stack.owners, strict=True)]
    result = _SoftStack.apply(pool_of(x, rows[0].device), stack, sigmoid, *rows)
    assert isinstance(result, Tensor)
    return result
