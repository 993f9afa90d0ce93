"""The definition of a Boolean stack, in plain torch: any device, any floating type, gradients by autograd."""

from collections.abc import Sequence

import torch
from jaxtyping import Float, Int64, UInt8
from torch import Tensor

from gatefit.ops.batches import Batch, as_float
from gatefit.ops.coefficients import codebook
from gatefit.ops.gate_layer.reference import gate_layer
from gatefit.ops.stacks import Stack, at_places, handed_on, votes_of
from gatefit.ops.straight_through import straight_through


def boolean_stack_reference(
    x: Batch, stack: Stack, gates: Sequence[UInt8[Tensor, " _"]], coefficients: Sequence[Float[Tensor, "_ 4"]]
) -> Float[Tensor, "batch columns"]:
    """One layer after another: the value of the gates, the gradient of the coefficients' polynomial."""
    dtype, device = coefficients[0].dtype, coefficients[0].device
    h, voters = as_float(x, dtype, device), []
    for layer, (wiring, numbers, rows) in enumerate(zip(stack.wirings, gates, coefficients, strict=True)):
        snapped = codebook(dtype, device)[at_places(numbers, stack.owners[layer]).long()]
        z = gate_layer(h, wiring, at_places(rows, stack.owners[layer]))
        h = handed_on(stack, straight_through(z, gate_layer(h.detach(), wiring, snapped)))
        voters += [h] if layer + 1 in stack.votes else []
    return votes_of(stack, voters)


def boolean_counts_reference(
    x: Batch, stack: Stack, gates: Sequence[UInt8[Tensor, " _"]]
) -> Int64[Tensor, "batch columns"]:
    """One layer after another, without gradients."""
    device = gates[0].device
    h, voters = as_float(x, torch.float32, device), []
    for layer, (wiring, numbers) in enumerate(zip(stack.wirings, gates, strict=True)):
        h = gate_layer(h, wiring, codebook(torch.float32, device)[at_places(numbers, stack.owners[layer]).long()])
        voters += [h] if layer + 1 in stack.votes else []
    return votes_of(stack, voters).to(torch.int64)
