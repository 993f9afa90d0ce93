"""What a probe reads: batches of bits, each with the loss of its scores."""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from torch import Tensor

from gatefit.bits import PackedBatch
from gatefit.network import LogicNetwork
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


@contextlib.contextmanager
def noise_kept(network: LogicNetwork) -> Iterator[None]:
    """Let noise be drawn, and put its streams back where they were: training goes on as if nobody looked."""
    noisy = [layer.method for layer in network.gate_layers if layer.method.draws_noise]
    before = [method.get_extra_state() for method in noisy]
    try:
        yield
    finally:
        for method, state in zip(noisy, before, strict=True):
            method.set_extra_state(state)
