"""What soft and Boolean stacks do around their kernels: cut the batch, lay out scores, order coefficients.

    scores in kernels   (tiles, classes * samples)    a class's samples side by side, padding beyond the batch
    scores outside      (batch, classes)

The batch is cut into slices by its size alone. A thread takes a slice at a time, and what slices add up to the
coefficients' gradients is added in their order: the number of threads shows in no bit of any result.
"""

from collections.abc import Callable, Sequence

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from gatefit.ops import stack_kernels_numba as kernels
from gatefit.ops.stack_plan import StackPlan
from gatefit.ops.tensors import check_cpu_float
from gatefit.ops.threads import parallel_for
from gatefit.ops.workspace import NUMPY_TYPES, workspace

WORTH_THREADS = 1 << 20
"""Gate evaluations (gates times samples) from which threads pay: about half a millisecond of work."""


def slices(words: int) -> list[tuple[int, int]]:
    """Ranges of words: four where there are as many, sixteen for large batches; an empty one for an empty batch."""
    count = max(1, min(words, 16, max(4, words // 4)))
    return [(words * place // count, words * (place + 1) // count) for place in range(count)]


def run(task: Callable[[int], None], count: int, evaluations: int) -> None:
    """The tasks 0 to count - 1, by several threads where the work is worth it."""
    if evaluations >= WORTH_THREADS:
        parallel_for(task, count)
    else:
        for place in range(count):
            task(place)


def layer_ranges(plan: StackPlan) -> list[slice]:
    """Where each layer lies in the plan's arrays over gates."""
    ends = np.cumsum(plan.widths).tolist()
    return [slice(end - width, end) for end, width in zip(ends, plan.widths, strict=True)]


def plan_coefficients(plan: StackPlan, coefficients: Sequence[Tensor]) -> np.ndarray:
    """All layers' coefficients in the plan's order."""
    c = workspace.array((plan.gates, 4), NUMPY_TYPES[coefficients[0].dtype])
    ranges = layer_ranges(plan)

    def task(layer: int) -> None:
        place = ranges[layer]
        rows = coefficients[layer].detach().contiguous().numpy()
        kernels.to_plan(rows, plan.order[place], plan.swapped[place], c[place])

    run(task, len(ranges), 16 * plan.gates)
    return c


def coefficient_gradients(plan: StackPlan, parts: np.ndarray) -> list[Tensor]:
    """The gradients of every layer's coefficients, from the sums of the batch's slices."""
    ranges = layer_ranges(plan)
    kind = torch.float32 if parts.dtype == np.float32 else torch.float64
    gradients = [torch.empty((width, 4), dtype=kind) for width in plan.widths]

    def task(layer: int) -> None:
        place = ranges[layer]
        kernels.from_plan(parts[:, place], plan.order[place], plan.swapped[place], gradients[layer].numpy())

    run(task, len(ranges), 16 * plan.gates * parts.shape[0])
    return gradients


def to_tiles(gradient: Float[Tensor, "batch classes"], tiles: int, samples: int) -> np.ndarray:
    """The scores' gradients as the kernels read them, zero beyond the batch."""
    batch, classes = gradient.shape
    padded = gradient.new_zeros((classes, tiles * samples))
    padded[:, :batch] = gradient.T
    laid_out: np.ndarray = padded.view(classes, tiles, samples).permute(1, 0, 2).contiguous().numpy()
    return laid_out.reshape(tiles, classes * samples)


def from_tiles(scores: np.ndarray, batch: int, samples: int) -> Float[Tensor, "batch classes"]:
    """The kernels' scores, without the padding; stored class by class, contiguous along the batch."""
    tiles, classes = scores.shape[0], scores.shape[1] // samples
    laid_out = torch.from_numpy(scores).view(tiles, classes, samples).permute(1, 0, 2)
    return laid_out.reshape(classes, tiles * samples)[:, :batch].T


def check_stack(plan: StackPlan, coefficients: Sequence[Tensor], classes: int | None) -> int:
    """Refuse what does not fit together; returns the number of classes, as many as last gates for None."""
    shapes = [tuple(tensor.shape) for tensor in coefficients]
    needed = [(width, 4) for width in plan.widths]
    if shapes != needed:
        raise ValueError(f"the layers need coefficients of shapes {needed}, got {shapes}")
    check_cpu_float(**{f"coefficients of layer {i}": tensor for i, tensor in enumerate(coefficients)})
    return check_classes(plan, classes)


def check_classes(plan: StackPlan, classes: int | None) -> int:
    """The number of groups that the last layer is summed over, as many as it has gates for None."""
    gates = plan.widths[-1]
    groups = gates if classes is None else classes
    if groups < 1 or gates % groups:
        raise ValueError(
            f"the last layer's {gates} gates cannot be divided into {groups} equal groups; "
            f"use a multiple of the number of classes"
        )
    return groups
