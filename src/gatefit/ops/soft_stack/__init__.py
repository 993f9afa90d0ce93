"""A whole soft stack as one function: bits in, group sums out, gradients to every layer's coefficients.

a_0 = bits of the batch;   a_l = c_0 + c_a a + c_b b + c_ab ab  over the wired inputs in a_(l-1);   l = 1 ... depth
sums[:, k] = Σ_(layers l that vote) Σ_(gates g of group k) a_l[:, g];   with a sigmoid after each polynomial where it
is asked for, as in the variants that are never snapped to gates

``stack.half``: what layers hand one another is rounded to 16 bits (``stacks.handed_on``); not with a sigmoid.
"""

from collections.abc import Callable, Sequence
from typing import Final

from jaxtyping import Float
from torch import Tensor

from gatefit.ops.batches import Batch
from gatefit.ops.expected_loss import ExpectedLoss
from gatefit.ops.implementations import Implementation
from gatefit.ops.soft_stack.numba import soft_stack_numba
from gatefit.ops.soft_stack.reference import soft_stack_reference
from gatefit.ops.stacks import Back, Stack, check_half, options_of
from gatefit.ops.triton_launch import lazily

SOFT_STACKS: Final[dict[str, Callable[..., Tensor]]] = {
    "reference": soft_stack_reference,
    "numba": soft_stack_numba,
    "triton": lazily("soft_stack", "soft_stack_triton"),
}


def soft_stack(
    x: Batch,
    stack: Stack,
    coefficients: Sequence[Float[Tensor, "_ 4"]],
    *,
    sigmoid: bool = False,
    expected: ExpectedLoss | None = None,
    back: Back | None = None,
    implementation: Implementation,
) -> Float[Tensor, "batch columns"]:
    """The sums over groups of the layers that vote; ``expected`` is what they will be used for, where that is known.

    With ``back`` the gradients that it gives are followed at once, to what ``coefficients`` are of.
    """
    stack.check("coefficients", coefficients, 4)
    check_half(stack, coefficients, implementation)
    return implementation.choose(SOFT_STACKS)(
        x, stack, coefficients, sigmoid=sigmoid, expected=expected, **options_of(back, implementation)
    )
