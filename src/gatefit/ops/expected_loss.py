"""A loss that is known before the scores are, so that a stack can go back at once.

    scores = sums / temperature;        L = Σ_i u_i · cross-entropy(scores_i, target_i)
    ∂L/∂sums_ij = u_i (p_ij - [j = target_i]) / temperature

A sample's gradient depends on its own sums alone. A kernel that has just computed the activations of a few samples can
therefore take their gradients back through all layers while it has them; when autograd comes with the gradients of the
whole batch, they have to be computed again. What autograd comes with is compared bit by bit with what was expected, and
where it is anything else, the stack goes back again, as if nothing had been expected: an expectation decides how long a
step takes and never what it computes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch
from jaxtyping import Float32, Int64
from torch import Tensor


@dataclass
class ExpectedLoss:
    """The mean cross-entropy of one or several blocks of columns, each of them as wide and with targets of its own."""

    targets: Int64[np.ndarray, "blocks batch"]
    upstream: Float32[np.ndarray, "blocks batch"]
    """u: what the losses of the samples are multiplied by."""
    temperature: float
    classes: int
    """The columns of a block."""
    failed: bool = False
    """Whether autograd came with something else."""

    def is_of(self, batch: int, columns: int) -> bool:
        """Whether a stack with these scores can go by it."""
        return self.targets.shape == (columns // self.classes, batch)

    def holds(self, computed: np.ndarray, given: np.ndarray) -> bool:
        """Whether the gradients are those that were expected, to the bit."""
        same = np.array_equal(computed.view(np.uint32), given.view(np.uint32))
        self.failed = self.failed or not same
        return same


def expected_loss(
    targets: Sequence[Tensor],
    weights: Sequence[Tensor | None],
    *,
    temperature: float,
    columns: int,
    share: float = 1.0,
) -> ExpectedLoss | None:
    """``share`` times the sum over blocks of ``loss_of``; None where kernels of float32 have nothing to expect."""
    if any(each.dtype != torch.int64 or each.device.type != "cpu" for each in targets) or columns % len(targets):
        return None
    if any(each is not None and each.dtype != torch.float32 for each in weights):
        return None
    upstream = [_upstream(len(own), each, share) for own, each in zip(targets, weights, strict=True)]
    places = [each.contiguous().numpy() for each in targets]
    if len(places) == 1:  # views: in a small network every call takes a hundredth of a step
        return ExpectedLoss(places[0][None], upstream[0][None], temperature, columns)
    return ExpectedLoss(np.stack(places), np.stack(upstream), temperature, columns // len(targets))


def _upstream(batch: int, weights: Tensor | None, share: float) -> Float32[np.ndarray, " batch"]:
    """What autograd brings to the losses of the samples, computed as autograd does."""
    if weights is None:
        return _equal_parts(batch, share)
    scale = torch.tensor(share, dtype=torch.float32) / weights.sum().clamp_min(1e-12)
    return (scale * weights).numpy()


@lru_cache(maxsize=16)
def _equal_parts(batch: int, share: float) -> Float32[np.ndarray, " batch"]:
    # Kept, and read by all; kernels are compiled apart for arrays that say that they are not to be written.
    return np.full(batch, np.float32(share) / np.float32(max(1, batch)))
