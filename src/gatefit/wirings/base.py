"""What a wiring is: which two nodes of the layer below each gate reads.

    committed()   int32 (2, gates)              the wiring that is deployed
    read(x)       a, b (batch, gates)           what training reads: x at the committed nodes, or what a wiring that
                                                learns mixes from its candidates, differentiable in its parameters

A wiring of your own is a subclass whose constructor takes a ``WiringContext``: ``LogicNetwork(wiring=MyWiring)``.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import torch
from jaxtyping import Float, Int, Int32, Int64
from torch import Tensor

from gatefit.bits import PackedBatch
from gatefit.ops.implementations import Implemented
from gatefit.randomness import stream


@dataclass(frozen=True)
class WiringOptions:
    """What is known of a network's inputs, and wished of its wires; a wiring takes what it can use."""

    order: Int[np.ndarray, " inputs"] | None = None
    """"local": the network's inputs in their order along a line; None: by number."""
    reach: int | None = None
    """"local": how many gates from its own place a gate reads at most; None: a tenth of its layer."""
    preferred: Int[np.ndarray, " preferred"] | None = None
    """"auto": inputs of the network that most gates of the first layer read; None: all alike."""
    candidates: int | None = None
    """"learned": nodes that each gate input chooses among; None: eight, or all where there are fewer."""
    regrow_every: int = 5
    """"learned": steps between regrowths of candidates; 0: never."""
    regrow_share: float = 0.3
    """"learned": the share of gate inputs that are looked at each time."""
    regrow_until: float = 0.7
    """"learned": the part of training after which candidates stay."""
    regrow_offset: float = 1.0
    """"learned": how far below its input's best score a new candidate begins."""
    regrow_pool: int | None = None
    """"learned": nodes that are compared at each regrowth, drawn at random; None: 64, or all where there are fewer."""


@dataclass(frozen=True)
class WiringContext:
    """The layer that a wiring is made for, its place in the network, and where random numbers come from."""

    inputs: int
    gates: int
    generator: torch.Generator
    layer: int = 0
    depth: int = 1
    classes: int = 1
    seed: int = 0
    """The network's wiring seed, for what is drawn apart from ``generator``."""
    options: WiringOptions = field(default_factory=WiringOptions)

    def stream(self, purpose: str) -> torch.Generator:
        """A generator of its own for one purpose: drawing from it moves nothing else."""
        return stream(self.seed, f"wiring/{purpose}")


class Wiring(Implemented, ABC):
    """Two nodes of ``inputs`` for each of ``gates`` gates."""

    inputs: int
    gates: int
    learns: ClassVar[bool] = False
    """Whether training goes through ``read``, and the committed wiring may be another one at every step."""
    step_cost: ClassVar[float] = 1.0
    """About how many times as long its layer's part of a training step takes as with fixed wiring: for estimates."""

    @abstractmethod
    def committed(self) -> Int32[Tensor, "2 gates"]:
        """The nodes that the deployed gates read."""

    def read(
        self, x: Float[Tensor, "batch inputs"]
    ) -> tuple[Float[Tensor, "batch gates"], Float[Tensor, "batch gates"]]:
        """What the gates read in training."""
        first, second = self.committed().long()
        return x[:, first], x[:, second]

    def candidates_and_scores(self) -> tuple[Int32[Tensor, "2 gates _"], Float[Tensor, "2 gates _"]] | None:
        """Candidates and their scores, where ``ops.learned_stack`` can train them; None: by ``read`` alone."""
        return None

    def watched(self, step: int, steps: int) -> Int64[np.ndarray, " watched"]:
        """Gate inputs (side · gates + gate) whose gradients ``regrow`` wants to see of step ``step`` of ``steps``."""
        return np.empty(0, np.int64)

    def offered(self, step: int) -> Int64[np.ndarray, " nodes"] | None:
        """Nodes, in rising order, whose values ``regrow`` wants to see of that step; None: of all."""
        return None

    def regrow(
        self,
        watched: Int64[np.ndarray, " watched"],
        nodes: Int64[np.ndarray, " nodes"] | None,
        gradients: Float[Tensor, "watched batch"],
        pool: PackedBatch | Float[Tensor, "nodes batch"],
        moments: dict[str, Any],
    ) -> int:
        """After a step: change what is chosen from, knowing the watched inputs' gradients and the nodes' values.

        Layers may be asked side by side, by several threads.
        """
        return 0

    def beside(self, others: "Sequence[Wiring]") -> "Wiring | None":
        """This wiring and others of its kind as one: each block's inputs come after those of the blocks before it.

        None: they cannot be joined, as those that learn cannot unless they say how. What the whole learns are their
        parameters side by side along the gates.
        """
        if self.learns:
            return None
        parts = [self, *others]
        starts = np.cumsum([0, *(part.inputs for part in parts)])
        pairs = [part.committed() + int(start) for part, start in zip(parts, starts[:-1], strict=True)]
        return FixedWiring(torch.cat(pairs, dim=1), int(starts[-1]))

    def follow(self, parts: "Sequence[Wiring]") -> None:
        """Of a wiring made by ``beside``: take over what ``regrow`` has changed in the wirings that it was made of."""

    def extra_repr(self) -> str:
        """Shown by ``print(network)``."""
        return f"inputs={self.inputs}, gates={self.gates}"


class FixedWiring(Wiring):
    """A wiring that is made once; saved with the network."""

    pairs: Tensor

    def __init__(self, pairs: Int[Tensor, "2 gates"], inputs: int) -> None:
        super().__init__()
        self.inputs, self.gates = inputs, int(pairs.shape[-1])
        self.register_buffer("pairs", explicit_wiring(pairs, inputs, self.gates))

    def committed(self) -> Int32[Tensor, "2 gates"]:
        """The pairs."""
        return self.pairs


def explicit_wiring(wiring: Int[Tensor, "2 gates"], inputs: int, gates: int) -> Int32[Tensor, "2 gates"]:
    """Your own wiring, checked against the layer's sizes; a gate may read one input twice."""
    if inputs < 1 or gates < 1:
        raise ValueError(f"a layer needs at least one input and one gate, got {inputs} and {gates}")
    if wiring.is_floating_point() or wiring.dtype == torch.bool:
        raise TypeError(f"wiring must hold integers, got {wiring.dtype}")
    if wiring.shape != (2, gates):
        raise ValueError(f"wiring must have shape (2, gates) = (2, {gates}), got {tuple(wiring.shape)}")
    low, high = int(wiring.min()), int(wiring.max())
    if low < 0 or high >= inputs:
        raise ValueError(f"wiring must name inputs from 0 to {inputs - 1}, got {low} to {high}")
    return wiring.to(torch.int32).contiguous()


def coverage(wiring: Int[Tensor, "2 gates"], inputs: int) -> float:
    """The fraction of inputs that some gate reads."""
    return np.unique(wiring.cpu().numpy()).size / inputs
