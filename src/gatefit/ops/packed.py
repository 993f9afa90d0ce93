"""A whole Boolean stack as one function, for methods whose training forward commits to one gate (§3.1 and Controls).

    forward    bit operations on 64 samples a word; scores count the ones of each group: exact
    backward   ∂L/∂c = Σ_batch δ (1, a, b, ab);   ∂L/∂a = δ (c_a + c_ab b);   ∂L/∂b = δ (c_b + c_ab a)

An activation takes one bit, thirty-two times less than float32. ``coefficients`` are the codebook's rows of ``gates``,
or those of a polynomial that stands for the gates in the backward pass alone; gradients to them go on to the parameters
straight through, by whatever function made them.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int, Int64, UInt8
from torch import Tensor

from gatefit.bits import PackedBatch
from gatefit.ops import packed_numba as kernels
from gatefit.ops.stack_arrays import (
    check_classes,
    check_stack,
    coefficient_gradients,
    from_tiles,
    layer_ranges,
    plan_coefficients,
    run,
    slices,
    to_tiles,
)
from gatefit.ops.stack_plan import StackPlan, stack_plan
from gatefit.ops.workspace import NUMPY_TYPES, workspace


def _plan_kinds(plan: StackPlan, gates: Sequence[Tensor]) -> np.ndarray:
    """All layers' gates in the plan's order."""
    shapes, needed = [tuple(layer.shape) for layer in gates], [(width,) for width in plan.widths]
    if shapes != needed:
        raise ValueError(f"the layers need gate numbers of shapes {needed}, got {shapes}")
    kinds = np.empty(plan.gates, dtype=np.uint8)
    for layer, place in zip(gates, layer_ranges(plan), strict=True):
        if layer.dtype != torch.uint8:
            raise TypeError(f"gate numbers are uint8, got {layer.dtype}; see gatefit.gates.Gate")
        if layer.numel() and int(layer.max()) > 15:
            raise ValueError(f"gate numbers are 0 to 15, got {int(layer.max())}; see gatefit.gates.Gate")
        numbers = layer.detach().contiguous().numpy()
        kernels.kinds_to_plan(numbers, plan.order[place], plan.swapped[place], kinds[place])
    return kinds


def _forward(x: PackedBatch, plan: StackPlan, kinds: np.ndarray, classes: int, dtype: Any, keep: bool) -> Any:
    """Scores (words, classes * 64) and, if they are kept, every layer's bits."""
    words = x.words.shape[0]
    scores = np.empty((words, classes * kernels.SAMPLES), dtype=dtype)
    bits = workspace.array((words if keep else 0, plan.gates), np.uint64)
    parts = slices(words)

    def task(place: int) -> None:
        own = bits if keep else workspace.array((2, plan.gates), np.uint64)
        kernels.forward(x.words, plan.layers, plan.first, plan.second, plan.rows, kinds, own, scores, *parts[place])

    # A gate of a word takes about as long as four soft evaluations.
    run(task, len(parts), 4 * plan.gates * words)
    return scores, bits


class _BooleanStack(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: PackedBatch, plan: StackPlan, kinds: np.ndarray, classes: int, *coefficients: Tensor
    ) -> Tensor:
        needed = any(ctx.needs_input_grad)
        scores, bits = _forward(x, plan, kinds, classes, NUMPY_TYPES[coefficients[0].dtype], keep=needed)
        if needed:
            ctx.x, ctx.plan, ctx.bits = x, plan, bits
            ctx.c = plan_coefficients(plan, coefficients)
        return from_tiles(scores, x.samples, kernels.SAMPLES)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        x, plan, c = ctx.x, ctx.plan, ctx.c
        words, widest = x.words.shape[0], max(plan.widths)
        gradient = to_tiles(gradients[0], words * 64 // kernels.PART_SAMPLES, kernels.PART_SAMPLES)
        parts = slices(words)
        sums = workspace.array((len(parts), plan.gates, 4), c.dtype)

        def task(place: int) -> None:
            delta, spare = (workspace.array((widest * kernels.PART_SAMPLES,), c.dtype) for _ in range(2))
            kernels.backward(
                x.words, plan.layers, plan.first, plan.second, plan.slots, plan.cycles, c,
                ctx.bits, delta, spare, gradient, sums[place], *parts[place],
            )  # fmt: skip

        run(task, len(parts), plan.gates * x.samples)
        return None, None, None, None, *coefficient_gradients(plan, sums)


def boolean_stack(
    x: PackedBatch,
    wirings: Sequence[Int[Tensor, "2 gates"]],
    gates: Sequence[UInt8[Tensor, " gates"]],
    coefficients: Sequence[Float[Tensor, "gates 4"]],
    classes: int | None = None,
) -> Float[Tensor, "batch classes"]:
    """How many gates of each of ``classes`` equal groups of the last layer are 1; None: the gates themselves.

    ``coefficients`` are the rows of the codebook that belong to ``gates``, or a continuous surrogate's: what the
    backward pass differentiates, and what receives the gradients.
    """
    plan = stack_plan(wirings, x.bits)
    classes = check_stack(plan, coefficients, classes)
    result = _BooleanStack.apply(x, plan, _plan_kinds(plan, gates), classes, *coefficients)
    assert isinstance(result, Tensor)
    return result


def boolean_forward(
    x: PackedBatch,
    wirings: Sequence[Int[Tensor, "2 gates"]],
    gates: Sequence[UInt8[Tensor, " gates"]],
    classes: int | None = None,
) -> Int64[Tensor, "batch classes"]:
    """The same counts without gradients, as integers: the deployed network."""
    plan = stack_plan(wirings, x.bits)
    groups = check_classes(plan, classes)
    scores, _ = _forward(x, plan, _plan_kinds(plan, gates), groups, np.float32, keep=False)
    return from_tiles(scores, x.samples, kernels.SAMPLES).to(torch.int64)
