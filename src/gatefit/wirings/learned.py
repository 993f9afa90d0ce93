"""A wiring that learns: every gate input has candidates with scores and reads the best scored one.

    committed    n_k*,  k* = argmax_k s_k
    training     ``ops.learned_stack``: straight through to the scores, w = softmax(s)
    regrowth     every ``regrow_every`` steps, for a share of the inputs: of some nodes the one whose reading would help
                 most (``ops.regrowth``) takes the place of the candidate with the lowest score, one below the highest

Which inputs and nodes are looked at is a function of the seed and the step: a run that is resumed goes on to the same
bits.
"""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import torch
from jaxtyping import Float, Int32, Int64
from torch import Tensor, nn

from gatefit.bits import PackedBatch
from gatefit.ops.learned_stack import best_candidates
from gatefit.ops.learned_stack.reference import read_candidates
from gatefit.ops.regrowth import best_nodes, replace_lowest
from gatefit.randomness import stream
from gatefit.wirings.base import Wiring, WiringContext, WiringOptions

CANDIDATES: Final = 8
POOL: Final = 64
"""Nodes that a regrowth compares, by default: its cost grows with the gates alone, not with gates times nodes. Chosen
among eleven settings on held-out images (2 x 2,000 gates, MNIST, 3,000 steps, means of two seeds, standard error
about 0.12): 97.30 % with 64 every 5 steps, 97.19 with 128, 97.09 with 32, 96.44 with 1; 97.08 with all every 10 steps.
Only the 1 is clearly worse. All nodes every 5 steps were not tried."""
_VECTOR: Final = 16
"""Numbers that torch computes with at a time, at most."""


class LearnedWiring(Wiring):
    """``candidates`` nodes to choose from for each of the two inputs of every gate."""

    learns = True
    step_cost = 2.2
    candidates: Tensor

    def __init__(self, context: WiringContext) -> None:
        super().__init__()
        options: WiringOptions = context.options
        self.inputs, self.gates = context.inputs, context.gates
        count = min(CANDIDATES, self.inputs) if options.candidates is None else options.candidates
        if not 1 <= count <= self.inputs:
            raise ValueError(
                f"each gate input chooses among candidates=1 to {self.inputs} nodes, as many as its layer can read; "
                f"got {count}"
            )
        for name, value, most in (
            ("regrow_every", options.regrow_every, np.inf),
            ("regrow_share", options.regrow_share, 1),
            ("regrow_until", options.regrow_until, 1),
        ):
            if not 0 <= value <= most:
                wanted = "a number of steps >= 0" if most == np.inf else "a number from 0 to 1"
                raise ValueError(f"{name} must be {wanted}, got {value}; 0 leaves the candidates as they are")
        if self.inputs == 1 and options.regrow_every and options.regrow_share:
            raise ValueError(
                "regrowth needs at least two nodes to choose among, got a layer that can read 1; set regrow_every=0, "
                "or use a fixed wiring (wiring='random')"
            )
        if options.regrow_pool is not None and options.regrow_pool < 1:
            raise ValueError(
                f"regrow_pool must be a number of nodes >= 1, got {options.regrow_pool}; regrow_every=0 never regrows"
            )
        shape = (2, self.gates, count)
        self.register_buffer("candidates", _different_nodes(self.inputs, shape, context.generator))
        self.scores = nn.Parameter(torch.randn(shape, generator=context.generator))
        self.regrow_every, self.regrow_share = options.regrow_every, options.regrow_share
        self.regrow_until, self.offset = options.regrow_until, options.regrow_offset
        self.regrow_pool = POOL if options.regrow_pool is None else options.regrow_pool
        self.layer, self.seed = context.layer, context.seed

    def candidates_and_scores(self) -> tuple[Int32[Tensor, "2 gates _"], Float[Tensor, "2 gates _"]]:
        """Candidates and scores."""
        return self.candidates, self.scores

    def committed(self) -> Int32[Tensor, "2 gates"]:
        """The best scored candidates."""
        return best_candidates(self.candidates, self.scores, implementation=self.implementation)

    def read(
        self, x: Float[Tensor, "batch inputs"]
    ) -> tuple[Float[Tensor, "batch gates"], Float[Tensor, "batch gates"]]:
        """Straight through to the scores."""
        first, second = (read_candidates(x, self.candidates[side], self.scores[side]) for side in (0, 1))
        return first, second

    def watched(self, step: int, steps: int) -> Int64[np.ndarray, " watched"]:
        """The inputs (side · gates + gate) that are regrown after step ``step`` of ``steps``; mostly none."""
        due = (
            self.regrow_every
            and self.regrow_share
            and step % self.regrow_every == 0
            and step < self.regrow_until * steps
        )
        if not due or self.candidates.shape[2] == self.inputs:
            return np.empty(0, np.int64)
        count = max(1, round(self.regrow_share * 2 * self.gates))
        generator = stream(self.seed, f"regrowth/{self.layer}/{step}")
        return np.sort(torch.randperm(2 * self.gates, generator=generator)[:count].numpy())

    def offered(self, step: int) -> Int64[np.ndarray, " nodes"] | None:
        """The nodes that are compared with one another after that step."""
        if self.regrow_pool >= self.inputs:
            return None
        generator = stream(self.seed, f"regrowth/{self.layer}/{step}/pool")
        return np.sort(torch.randperm(self.inputs, generator=generator)[: self.regrow_pool].numpy())

    @torch.no_grad()
    def regrow(
        self,
        watched: Int64[np.ndarray, " watched"],
        nodes: Int64[np.ndarray, " nodes"] | None,
        gradients: Float[Tensor, "watched batch"],
        pool: PackedBatch | Float[Tensor, "nodes batch"],
        moments: dict[str, Any],
    ) -> int:
        """Replace the lowest candidates of the watched inputs; returns how many there were.

        ``moments`` are Adam's of the scores: of a new candidate the first is 0, the second the mean of its row.
        """
        device = self.candidates.device
        inputs = torch.from_numpy(watched).to(device)
        present = self.candidates.flatten(0, 1)[inputs]
        if nodes is not None:
            offered = torch.from_numpy(nodes).to(device)
            places = torch.full((self.inputs,), -1, dtype=torch.int32, device=device)
            places[offered] = torch.arange(len(nodes), dtype=torch.int32, device=device)
            present = places.index_select(0, present.flatten()).view_as(present)
        found = best_nodes(gradients, pool, present, implementation=self.implementation)
        if nodes is not None:
            found = torch.where(found >= 0, offered[found], -1)
        own = [moments[name] for name in ("exp_avg", "exp_avg_sq")] if moments else []
        replace_lowest(
            self.candidates, self.scores.data, own, inputs, found, self.offset, implementation=self.implementation
        )
        return int((found >= 0).sum())

    def beside(self, others: Sequence[Wiring]) -> "LearnedWiring | None":
        """Candidates and scores of all; who regrows are the parts.

        None where scores do not fill whole vectors (eight candidates always do): torch's fused Adam rounds what is
        left over in another way, so that a seed would not end with the bits that it has alone.
        """
        parts = [self, *others]
        if self.scores.numel() % _VECTOR or not all(isinstance(part, LearnedWiring) for part in parts):
            return None
        options = WiringOptions(candidates=self.candidates.shape[2], regrow_every=0)
        inputs, gates = (sum(getattr(part, name) for part in parts) for name in ("inputs", "gates"))
        whole = LearnedWiring(WiringContext(inputs, gates, stream(0, "overwritten"), options=options))
        whole.follow(parts)
        whole.scores = nn.Parameter(torch.cat([part.get_parameter("scores").detach() for part in parts], dim=1))
        return whole

    @torch.no_grad()
    def follow(self, parts: Sequence[Wiring]) -> None:
        """The parts' candidates, each block's own inputs after those of the blocks before it."""
        starts = np.cumsum([0, *(part.inputs for part in parts)])
        nodes = [part.get_buffer("candidates") + int(start) for part, start in zip(parts, starts[:-1], strict=True)]
        self.candidates.copy_(torch.cat(nodes, dim=1))


def _different_nodes(
    inputs: int, shape: tuple[int, int, int], generator: torch.Generator
) -> Int32[Tensor, "2 gates _"]:
    """Random nodes, none twice among the candidates of one input."""
    rows, count = shape[0] * shape[1], shape[2]
    if count * 4 >= inputs:
        order = torch.rand(rows, inputs, generator=generator).argsort(1)
        return order[:, :count].reshape(shape).to(torch.int32)
    nodes = torch.randint(inputs, (rows, count), generator=generator)
    while True:
        ordered = nodes.sort(1).values
        again = (ordered[:, 1:] == ordered[:, :-1]).any(1).nonzero().flatten()
        if not len(again):
            return nodes.reshape(shape).to(torch.int32)
        nodes[again] = torch.randint(inputs, (len(again), count), generator=generator)
