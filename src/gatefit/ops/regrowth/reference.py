"""The definition: all sums, and the least of those that may be taken."""

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
    sums = gradients @ values.T
    sums.scatter_(1, present.long(), torch.inf)
    least, node = sums.min(dim=1)
    return torch.where(least < 0, node, -1)
