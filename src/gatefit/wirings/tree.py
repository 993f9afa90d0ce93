"""Wiring as a tree: every node of the layer below serves one gate alone, so that no two voters share any.

    n nodes, g gates, g <= n <= 2g      gate i reads nodes [i n / g] to [(i + 1) n / g] - 1,  [.] the nearest number
                                        two neighbours; or one node, twice: the gate passes it on, or its complement

A function of a few inputs is a few tables of an FPGA, however many gates compute it. Above a learned layer, V voters:

    widths           inputs of a voter    tables of 6 inputs
    2V, V                    4                   1
    3V, 2V, V                6                   1
    5V, 3V, 2V, V           10                   2           a table of 6 inputs, and one of it and 4 others
"""

import torch
from jaxtyping import Int32
from torch import Tensor

from gatefit.wirings.base import WiringContext


def tree_wiring(context: WiringContext) -> Int32[Tensor, "2 gates"]:
    """The wiring of one layer, which has at least half as many gates as it can read, and no more."""
    inputs, gates = context.inputs, context.gates
    if not gates <= inputs <= 2 * gates:
        raise ValueError(
            f"a tree layer gives every node below to one gate, and a gate reads one or two: {gates} gates serve "
            f"{gates} to {2 * gates} nodes, layer {context.layer + 1} can read {inputs}; use "
            f"{-(-inputs // 2)} to {inputs} gates, and no skips"
        )
    starts = (2 * torch.arange(gates + 1) * inputs + gates) // (2 * gates)
    return torch.stack([starts[:-1], starts[1:] - 1]).to(torch.int32)
