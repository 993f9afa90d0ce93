"""The definition: all sums, and the least of those that may be taken."""

from collections.abc import Sequence

import torch
from jaxtyping import Float, Int, Int64
from torch import Tensor

from gatefit.bits import PackedBatch
from gatefit.ops.batches import as_float


def best_nodes_reference(
    gradients: Float[Tensor, "inputs batch"],
    pool: PackedBatch | Float[Tensor, "nodes batch"],
    present: Int[Tensor, "inputs candidates"],
) -> Int64[Tensor, " inputs"]:
    """One product of gradients with the pool."""
    values = as_float(pool, gradients.dtype, gradients.device).T if isinstance(pool, PackedBatch) else pool
    sums = torch.nn.functional.pad(gradients @ values.T, (0, 1))
    # Candidates that are not in the pool, -1, fall into a column of their own, which is not looked at.
    sums.scatter_(1, present.long() % sums.shape[1], torch.inf)
    least, node = sums[:, :-1].min(dim=1)
    return torch.where(least < 0, node, -1)


def replace_lowest_reference(
    candidates: Int[Tensor, "2 gates candidates"],
    scores: Float[Tensor, "2 gates candidates"],
    moments: Sequence[Float[Tensor, "2 gates candidates"]],
    inputs: Int64[Tensor, " inputs"],
    nodes: Int64[Tensor, " inputs"],
    offset: float,
) -> None:
    """By indices."""
    side, gate, nodes = (each[nodes >= 0] for each in (inputs // scores.shape[1], inputs % scores.shape[1], nodes))
    own = scores[side, gate]
    lowest = own.argmin(1)
    candidates[side, gate, lowest] = nodes.to(candidates.dtype)
    scores[side, gate, lowest] = own.max(1).values - offset
    if moments:
        first, second = moments
        first[side, gate, lowest] = 0
        second[side, gate, lowest] = second[side, gate].mean(1)
