"""What a probe reads: batches of bits, each with the loss of its scores."""

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor

from gatefit.bits import PackedBatch
from gatefit.ops.batches import Batch


@dataclass(frozen=True)
class ProbeBatch:
    """One minibatch: its bits, and the training loss as a function of the network's scores of them."""

    x: Batch
    loss: Callable[[Tensor], Tensor]


def first_samples(x: Batch, words: int) -> Batch:
    """At most the first 64 · ``words`` samples."""
    if isinstance(x, PackedBatch):
        return PackedBatch(x.words[:words], min(x.samples, 64 * words))
    return x[: 64 * words]
