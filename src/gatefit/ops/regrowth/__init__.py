"""The node of a pool that a gate input would gain most by reading, among those that are not its candidates.

    gain of node n at an input    -q_n,   q_n = Σ_batch ∂L/∂a · x_n            a the value that the input reads now
    answer                        argmin_n q_n over n that are no candidates, if that is below 0

To first order in the value, ∂L/∂a · (x_n - a) is what the loss changes by where the input reads n instead.
"""

from collections.abc import Callable, Sequence
from typing import Final

from jaxtyping import Float, Int, Int64
from torch import Tensor

from gatefit.bits import PackedBatch
from gatefit.ops.implementations import Implementation
from gatefit.ops.regrowth.numba import best_nodes_numba, replace_lowest_numba
from gatefit.ops.regrowth.reference import best_nodes_reference, replace_lowest_reference

BEST_NODES: Final[dict[str, Callable[..., Tensor]]] = {"reference": best_nodes_reference, "numba": best_nodes_numba}
REPLACE_LOWEST: Final[dict[str, Callable[..., None]]] = {
    "reference": replace_lowest_reference,
    "numba": replace_lowest_numba,
}


def best_nodes(
    gradients: Float[Tensor, "inputs batch"],
    pool: PackedBatch | Float[Tensor, "nodes batch"],
    present: Int[Tensor, "inputs candidates"],
    *,
    implementation: Implementation,
) -> Int64[Tensor, " inputs"]:
    """For each input the best node that is not ``present``; -1 where none would make the loss smaller.

    Nodes are numbered by their places in the pool; what is present and not in the pool is -1.
    """
    return implementation.choose(BEST_NODES)(gradients, pool, present)


def replace_lowest(
    candidates: Int[Tensor, "2 gates candidates"],
    scores: Float[Tensor, "2 gates candidates"],
    moments: Sequence[Float[Tensor, "2 gates candidates"]],
    inputs: Int64[Tensor, " inputs"],
    nodes: Int64[Tensor, " inputs"],
    offset: float,
    *,
    implementation: Implementation,
) -> None:
    """In place: of each input (side · gates + gate) the lowest scored candidate gives way to its node; -1: none does.

    A new candidate's score is ``offset`` below the highest. ``moments`` are Adam's of the scores, or nothing: the first
    becomes 0, the second the mean of its input's. All may be views of something larger.
    """
    implementation.choose(REPLACE_LOWEST)(candidates, scores, moments, inputs, nodes, offset)
