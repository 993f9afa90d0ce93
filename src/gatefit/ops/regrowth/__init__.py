"""The node of a pool that a gate input would gain most by reading, among those that are not its candidates.

    gain of node n at an input    -q_n,   q_n = Σ_batch ∂L/∂a · x_n            a the value that the input reads now
    answer                        argmin_n q_n over n that are no candidates, if that is below 0

To first order in the value, ∂L/∂a · (x_n - a) is what the loss changes by where the input reads n instead.
"""

from collections.abc import Callable
from typing import Final

from jaxtyping import Float, Int, Int64
from torch import Tensor

from gatefit.bits import PackedBatch
from gatefit.ops.implementations import Implementation
from gatefit.ops.regrowth.numba import best_nodes_numba
from gatefit.ops.regrowth.reference import best_nodes_reference
from gatefit.ops.triton_launch import lazily

BEST_NODES: Final[dict[str, Callable[..., Tensor]]] = {
    "reference": best_nodes_reference,
    "numba": best_nodes_numba,
    "triton": lazily("regrowth", "best_nodes_triton"),
}


def best_nodes(
    gradients: Float[Tensor, "inputs batch"],
    pool: PackedBatch | Float[Tensor, "nodes batch"],
    present: Int[Tensor, "inputs candidates"],
    *,
    implementation: Implementation,
) -> Int64[Tensor, " inputs"]:
    """For each input the best node that is not ``present``; -1 where none would make the loss smaller."""
    return implementation.choose(BEST_NODES)(gradients, pool, present)
