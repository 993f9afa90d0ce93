"""What a probe reads: batches of bits, each with the loss of its scores."""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from torch import Tensor

from gatefit.bits import PackedBatch
from gatefit.methods import GumbelST
from gatefit.network import LogicNetwork
from gatefit.ops.stack import Batch


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
    """Let Gumbel noise be drawn, and put its streams back where they were: training goes on as if nobody looked."""
    noises = [layer.method.noise for layer in network.gate_layers if isinstance(layer.method, GumbelST)]
    before = [noise.get_state() for noise in noises]
    try:
        yield
    finally:
        for noise, state in zip(noises, before, strict=True):
            noise.set_state(state)
