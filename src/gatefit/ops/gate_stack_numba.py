"""A whole soft stack as one function: packed bits in, group sums out, gradients to every layer's coefficients.

    a_0 = bits of the batch;   a_l = c_0 + c_a a + c_b b + c_ab ab  over the wired inputs in a_(l-1);   l = 1 ... depth
    scores[:, k] = Σ_(gates g of group k) a_depth[:, g];      with a sigmoid after each polynomial where it is asked for

The same numbers as ``gate_layer_reference`` layer after layer (to rounding), at a fraction of the memory: sixteen
samples at a time go through all layers (``gate_stack_kernels_numba``), and no activation of the batch is ever stored.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from gatefit.bits import PackedBatch
from gatefit.ops import gate_stack_kernels_numba as kernels
from gatefit.ops.stack_arrays import (
    check_stack,
    coefficient_gradients,
    from_tiles,
    plan_coefficients,
    run,
    slices,
    to_tiles,
)
from gatefit.ops.stack_plan import StackPlan, stack_plan
from gatefit.ops.workspace import workspace

_PER_WORD = 64 // kernels.SAMPLES


class _GateStack(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: PackedBatch, plan: StackPlan, classes: int, sigmoid: bool, *coefficients: Tensor
    ) -> Tensor:
        c = plan_coefficients(plan, coefficients)
        tiles, widest = _PER_WORD * x.words.shape[0], max(plan.widths)
        scores = np.empty((tiles, classes * kernels.SAMPLES), dtype=c.dtype)
        parts = slices(x.words.shape[0])

        def task(place: int) -> None:
            begin, end = parts[place]
            activations = workspace.array((2 * widest * kernels.SAMPLES,), c.dtype)
            outputs = workspace.array((plan.widths[-1] * kernels.SAMPLES,), c.dtype)
            kernels.forward(
                x.words, plan.layers, plan.first, plan.second, plan.rows, plan.cycles, c, sigmoid,
                activations, outputs, scores, _PER_WORD * begin, _PER_WORD * end,
            )  # fmt: skip

        run(task, len(parts), plan.gates * x.samples)
        ctx.x, ctx.plan, ctx.c, ctx.sigmoid = x, plan, c, sigmoid
        return from_tiles(scores, x.samples, kernels.SAMPLES)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        x, plan, c = ctx.x, ctx.plan, ctx.c
        tiles, widest = _PER_WORD * x.words.shape[0], max(plan.widths)
        gradient = to_tiles(gradients[0], tiles, kernels.SAMPLES)
        parts = slices(x.words.shape[0])
        sums = workspace.array((len(parts), plan.gates, 4), c.dtype)

        def task(place: int) -> None:
            begin, end = parts[place]
            activations = workspace.array(((plan.gates - plan.widths[-1]) * kernels.SAMPLES,), c.dtype)
            # Only a sigmoid's gradient needs its own output.
            outputs = workspace.array((plan.widths[-1] * kernels.SAMPLES if ctx.sigmoid else 0,), c.dtype)
            delta, spare = (workspace.array((widest * kernels.SAMPLES,), c.dtype) for _ in range(2))
            kernels.backward(
                x.words, plan.layers, plan.first, plan.second, plan.rows, plan.slots, plan.cycles, c, ctx.sigmoid,
                activations, outputs, delta, spare, gradient, sums[place], _PER_WORD * begin, _PER_WORD * end,
            )  # fmt: skip

        run(task, len(parts), plan.gates * x.samples)
        return None, None, None, None, *coefficient_gradients(plan, sums)


def gate_stack_numba(
    x: PackedBatch,
    wirings: Sequence[Int[Tensor, "2 gates"]],
    coefficients: Sequence[Float[Tensor, "gates 4"]],
    classes: int | None = None,
    *,
    sigmoid: bool = False,
) -> Float[Tensor, "batch classes"]:
    """Sums over ``classes`` equal groups of the last layer's gates; None: the gates themselves.

    With ``sigmoid`` every layer is followed by one, as in the variants that are never snapped to gates.
    """
    plan = stack_plan(wirings, x.bits)
    result = _GateStack.apply(x, plan, check_stack(plan, coefficients, classes), sigmoid, *coefficients)
    assert isinstance(result, Tensor)
    return result
