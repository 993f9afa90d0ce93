"""A whole Boolean stack as one function, for methods whose training forward commits to one gate (§3.1 and Controls).

    forward    the Boolean function of the gates; sums count the ones of each group: exact
    backward   ∂L/∂c = Σ_batch δ (1, a, b, ab);   ∂L/∂a = δ (c_a + c_ab b);   ∂L/∂b = δ (c_b + c_ab a)

``coefficients`` are the codebook's rows of ``gates``, or those of a polynomial that stands for the gates in the
backward pass alone; gradients to them go on to the parameters straight through, by whatever function made them.
"""

from collections.abc import Callable, Sequence
from typing import Final

import torch
from jaxtyping import Float, Int64, UInt8
from torch import Tensor

from gatefit.ops.batches import Batch
from gatefit.ops.boolean_stack.numba import boolean_counts_numba, boolean_stack_numba
from gatefit.ops.boolean_stack.reference import boolean_counts_reference, boolean_stack_reference
from gatefit.ops.implementations import Implementation
from gatefit.ops.stacks import Back, Stack, check_half, options_of, whole_or_parts
from gatefit.ops.triton_launch import lazily

BOOLEAN_STACKS: Final[dict[str, Callable[..., Tensor]]] = {
    "reference": boolean_stack_reference,
    "numba": boolean_stack_numba,
    "triton": lazily("boolean_stack", "boolean_stack_triton"),
}
BOOLEAN_COUNTS: Final[dict[str, Callable[..., Tensor]]] = {
    "reference": boolean_counts_reference,
    "numba": boolean_counts_numba,
    "triton": lazily("boolean_stack", "boolean_counts_triton"),
}


def boolean_stack(
    x: Batch,
    stack: Stack,
    gates: Sequence[UInt8[Tensor, " _"]],
    coefficients: Sequence[Float[Tensor, "_ 4"]],
    *,
    back: Back | None = None,
    implementation: Implementation,
) -> Float[Tensor, "batch columns"]:
    """How many gates of each group are 1, with gradients to ``coefficients``; with ``back`` at once."""
    _check_gates(stack, gates)
    stack.check("coefficients", coefficients, 4)
    check_half(stack, coefficients, implementation)
    own = options_of(back, implementation)
    return implementation.choose(BOOLEAN_STACKS)(x, stack, gates, coefficients, **own)


def boolean_counts(
    x: Batch, stack: Stack, gates: Sequence[UInt8[Tensor, " _"]], *, implementation: Implementation
) -> Int64[Tensor, "batch columns"]:
    """The same counts without gradients, as integers: the deployed network."""
    _check_gates(stack, gates)
    return implementation.choose(BOOLEAN_COUNTS)(x, stack, gates)


def _check_gates(stack: Stack, gates: Sequence[Tensor]) -> None:
    stack.check("gate numbers", gates)
    for layer in whole_or_parts(stack, gates):
        if layer.dtype != torch.uint8:
            raise TypeError(f"gate numbers are uint8, got {layer.dtype}; see gatefit.gates.Gate")
        if layer.numel() and int(layer.max()) > 15:
            raise ValueError(f"gate numbers are 0 to 15, got {int(layer.max())}; see gatefit.gates.Gate")
