"""A wiring that learns: every gate input has candidates with scores and reads the best scored one.

    committed    n_k*,  k* = argmax_k s_k
    training     ``ops.learned_stack``: straight through to the scores, w = softmax(s)
    regrowth     every ``regrow_every`` steps, for a share of the inputs: the node whose reading would help most
                 (``ops.regrowth``) takes the place of the candidate with the lowest score, one below the highest

Which inputs are looked at is a function of the seed and the step: a run that is resumed goes on to the same bits.
"""

from typing import Any, Final

import numpy as np
import torch
from jaxtyping import Float, Int32, Int64
from torch import Tensor, nn

from gatefit.bits import PackedBatch
from gatefit.ops.learned_stack.reference import read_candidates
from gatefit.ops.regrowth import best_nodes
from gatefit.randomness import stream
from gatefit.wirings.base import Wiring, WiringContext, WiringOptions

CANDIDATES: Final = 8


class LearnedWiring(Wiring):
    """``candidates`` nodes to choose from for each of the two inputs of every gate."""

    learns = True
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
        shape = (2, self.gates, count)
        self.register_buffer("candidates", _different_nodes(self.inputs, shape, context.generator))
        self.scores = nn.Parameter(torch.randn(shape, generator=context.generator))
        self.regrow_every, self.regrow_share = options.regrow_every, options.regrow_share
        self.regrow_until, self.offset = options.regrow_until, options.regrow_offset
        self.layer, self.seed = context.layer, context.seed

    def candidates_and_scores(self) -> tuple[Int32[Tensor, "2 gates _"], Float[Tensor, "2 gates _"]]:
        """Candidates and scores."""
        return self.candidates, self.scores

    def committed(self) -> Int32[Tensor, "2 gates"]:
        """The best scored candidates."""
        return self.candidates.gather(2, self.scores.argmax(2, keepdim=True)).squeeze(2)

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

    @torch.no_grad()
    def regrow(
        self,
        watched: Int64[np.ndarray, " watched"],
        gradients: Float[Tensor, "watched batch"],
        pool: PackedBatch | Float[Tensor, "inputs batch"],
        moments: dict[str, Any],
    ) -> int:
        """Replace the lowest candidates of the watched inputs; returns how many there were.

        ``moments`` are Adam's of the scores: of a new candidate the first is 0, the second the mean of its row.
        """
        rows = torch.from_numpy(watched).to(self.candidates.device)
        nodes, scores = self.candidates.flatten(0, 1), self.scores.data.flatten(0, 1)
        found = best_nodes(gradients, pool, nodes[rows], implementation=self.implementation)
        rows, found = rows[found >= 0], found[found >= 0]
        own = scores[rows]
        lowest = own.argmin(1)
        nodes[rows, lowest] = found.to(nodes.dtype)
        scores[rows, lowest] = own.max(1).values - self.offset
        if moments:
            first, second = (moments[name].flatten(0, 1) for name in ("exp_avg", "exp_avg_sq"))
            first[rows, lowest] = 0
            second[rows, lowest] = second[rows].mean(1)
        return len(rows)


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
