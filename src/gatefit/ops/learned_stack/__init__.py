"""A whole stack whose wiring learns: every gate input has candidates with scores, and reads the best scored one.

    forward    a = x[n_k*],  k* = argmax_k s_k                               one node, no mixture; n_k the candidates
    backward   q_k = Σ_batch ∂L/∂a · x[n_k];   w = softmax(s)
               ∂L/∂s_k = w_k (q_k - Σ_j w_j q_j)                             as if a were Σ_k w_k x[n_k]
               ∂L/∂x reaches the node that is read, and no other

The polynomial, votes and groups are those of ``soft_stack``; with ``gates`` the forward pass is that of
``boolean_stack``: the gates' value, the gradient of the coefficients' polynomial. A layer without candidates is fixed.
What a ``Watch`` asks for is written down on the way back, for ``regrowth``.
"""

from collections.abc import Callable, Sequence
from typing import Final

from jaxtyping import Float, Int, UInt8
from torch import Tensor

from gatefit.ops.batches import Batch
from gatefit.ops.expected_loss import ExpectedLoss
from gatefit.ops.implementations import Implementation
from gatefit.ops.learned_stack.numba import best_candidates_numba, learned_stack_numba
from gatefit.ops.learned_stack.reference import best_candidates_reference, learned_stack_reference
from gatefit.ops.learned_stack.watch import Watch
from gatefit.ops.stacks import Back, Stack, check_half, options_of
from gatefit.ops.triton_launch import lazily

LEARNED_STACKS: Final[dict[str, Callable[..., Tensor]]] = {
    "reference": learned_stack_reference,
    "numba": learned_stack_numba,
    "triton": lazily("learned_stack", "learned_stack_triton"),
}
BEST_CANDIDATES: Final[dict[str, Callable[..., Tensor]]] = {
    "reference": best_candidates_reference,
    "numba": best_candidates_numba,
}

__all__ = ["BEST_CANDIDATES", "LEARNED_STACKS", "Watch", "best_candidates", "learned_stack"]


def best_candidates(
    candidates: Int[Tensor, "2 gates candidates"],
    scores: Float[Tensor, "2 gates candidates"],
    *,
    implementation: Implementation,
) -> Int[Tensor, "2 gates"]:
    """The candidate with the highest score of each input, the first of equal ones."""
    return implementation.choose(BEST_CANDIDATES)(candidates, scores)


def learned_stack(
    x: Batch,
    stack: Stack,
    candidates: Sequence[Int[Tensor, "2 _ candidates"] | None],
    scores: Sequence[Float[Tensor, "2 _ candidates"] | None],
    coefficients: Sequence[Float[Tensor, "_ 4"]],
    *,
    gates: Sequence[UInt8[Tensor, " _"]] | None = None,
    watch: Watch | None = None,
    expected: ExpectedLoss | None = None,
    back: Back | None = None,
    implementation: Implementation,
) -> Float[Tensor, "batch columns"]:
    """The sums over groups of the layers that vote, with gradients to ``scores`` and ``coefficients``.

    ``stack.wirings`` are the nodes that are read: the best scored candidates. ``expected`` is what the sums will be
    used for, where that is known; with ``back`` the gradients that it gives are followed at once.
    """
    stack.check("coefficients", coefficients, 4)
    check_half(stack, coefficients, implementation)
    if gates is not None:
        stack.check("gate numbers", gates)
    for layer, (nodes, values, width) in enumerate(zip(candidates, scores, stack.widths, strict=True)):
        if (nodes is None) != (values is None) or (
            nodes is not None
            and values is not None
            and (nodes.shape != values.shape or nodes.ndim != 3 or nodes.shape[:2] != (2, width))
        ):
            given = [None if each is None else tuple(each.shape) for each in (nodes, values)]
            raise ValueError(
                f"layer {layer} of {width} gates needs candidates and scores (2, {width}, candidates), got {given}"
            )
    options = {"gates": gates, "watch": watch, "expected": expected, **options_of(back, implementation)}
    return implementation.choose(LEARNED_STACKS)(x, stack, candidates, scores, coefficients, **options)
