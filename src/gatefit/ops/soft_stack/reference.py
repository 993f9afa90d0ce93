"""The definition of a soft stack, in plain torch: any device, any floating type, gradients by autograd."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from gatefit.ops.batches import Batch, as_float
from gatefit.ops.expected_loss import ExpectedLoss
from gatefit.ops.gate_layer.reference import gate_layer
from gatefit.ops.stacks import Stack, at_places, handed_on, votes_of


def soft_stack_reference(
    x: Batch,
    stack: Stack,
    coefficients: Sequence[Float[Tensor, "_ 4"]],
    *,
    sigmoid: bool = False,
    expected: ExpectedLoss | None = None,
) -> Float[Tensor, "batch columns"]:
    """One gate layer after another; activations are kept, so that nothing is gained by what is expected."""
    h, voters = as_float(x, coefficients[0].dtype, coefficients[0].device), []
    for layer, (wiring, rows) in enumerate(zip(stack.wirings, coefficients, strict=True)):
        z = gate_layer(h, wiring, at_places(rows, stack.owners[layer]))
        h = torch.sigmoid(z) if sigmoid else handed_on(stack, z)
        voters += [h] if layer + 1 in stack.votes else []
    return votes_of(stack, voters)
