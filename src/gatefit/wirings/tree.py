"""Wiring as a tree: every gate of the layer below serves one gate alone.

    gate i reads gates 2i and 2i + 1 of the layer below

Above a learned layer of 2V gates, a tree layer of V gates makes every one of them a function of its own of four learned
inputs, which is one table of an FPGA; above 4V and 2V gates, of eight inputs, two tables. No gate of the layer below is
shared, so nothing that one gate above needs of it can be spoilt by another.
"""

import torch
from jaxtyping import Int32
from torch import Tensor

from gatefit.wirings.base import WiringContext


def tree_wiring(context: WiringContext) -> Int32[Tensor, "2 gates"]:
    """The wiring of one layer, which has half as many gates as it can read."""
    inputs, gates = context.inputs, context.gates
    if inputs != 2 * gates:
        wanted = f"{inputs // 2} gates" if inputs % 2 == 0 else "an even number of nodes below"
        raise ValueError(
            f"a tree layer has half as many gates as the layer below: {gates} gates need {2 * gates} nodes, layer "
            f"{context.layer + 1} can read {inputs}; use {wanted}, and no skips"
        )
    return torch.arange(inputs, dtype=torch.int32).view(gates, 2).T.contiguous()
