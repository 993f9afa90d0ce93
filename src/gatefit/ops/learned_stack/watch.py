"""What is written down while a learned stack is differentiated: whose inputs are to be regrown, and what that takes."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from jaxtyping import Float, Int64
from torch import Tensor

from gatefit.bits import PackedBatch


@dataclass
class Watch:
    """``inputs`` names, for each layer, the gate inputs that are watched: side · gates + gate, in rising order.

    The backward pass fills in, for each layer that has some, the loss's gradient at these inputs, and the values of the
    ``nodes`` that the layer could read: numbers in rising order, None for all of them.
    """

    inputs: list[Int64[np.ndarray, " watched"]]
    nodes: list[Int64[np.ndarray, " nodes"] | None] = field(default_factory=list)
    gradients: dict[int, Float[Tensor, "watched batch"]] = field(default_factory=dict)
    pools: dict[int, PackedBatch | Float[Tensor, "nodes batch"]] = field(default_factory=dict)

    @classmethod
    def side_by_side(cls, watches: "Sequence[Watch]", pools: Sequence[int], gates: Sequence[int]) -> "Watch":
        """What several networks of the same layers watch, as one network with all of them side by side does.

        ``pools`` and ``gates`` are the sizes of one network's layers.
        """
        blocks, whole = len(watches), cls([])
        for layer, (pool, width) in enumerate(zip(pools, gates, strict=True)):
            own = [each.inputs[layer] for each in watches]
            # Rising order: the first sides of all blocks come before the second ones.
            moved = [
                inputs // width * (blocks * width) + block * width + inputs % width for block, inputs in enumerate(own)
            ]
            whole.inputs.append(np.sort(np.concatenate(moved)))
            nodes = [each.offered(layer, pool) + block * pool for block, each in enumerate(watches)]
            whole.nodes.append(np.concatenate(nodes) if len(whole.inputs[layer]) else None)
        return whole

    def hand_back(self, watches: "Sequence[Watch]", pools: Sequence[int], gates: Sequence[int]) -> None:
        """Give each of the networks side by side what was written down for it."""
        blocks = len(watches)
        for layer, gradients in self.gradients.items():
            pool, width, values = pools[layer], gates[layer], self.pools[layer]
            block = self.inputs[layer] % (blocks * width) // width
            nodes = self.offered(layer, blocks * pool) // pool
            for number, each in enumerate(watches):
                each.gradients[layer] = gradients[torch.from_numpy(np.flatnonzero(block == number))]
                own = np.flatnonzero(nodes == number)
                each.pools[layer] = (
                    PackedBatch(values.words.take(own, axis=1), values.samples)
                    if isinstance(values, PackedBatch)
                    else values[torch.from_numpy(own)]
                )

    def offered(self, layer: int, pool: int) -> Int64[np.ndarray, " nodes"]:
        """The nodes of a layer's ``pool`` nodes whose values are asked for."""
        nodes = self.nodes[layer] if self.nodes else None
        return np.arange(pool) if nodes is None else nodes
