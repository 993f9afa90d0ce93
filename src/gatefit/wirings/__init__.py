"""Wirings: which two nodes of the layer below each gate reads (paper, app. hyperparams, Wiring).

    unique   the pairs of stride in a random order: no pair twice, deep layers not all adjacent       the default
    stride   gap g = 1, 2, 3, ...:  (i, i+g) for even i, then for odd i, until there are enough       deterministic
    random   every input once before any a second time; never one input twice at a gate
    local    every gate reads near its own place on a line, an image's along a curve through it       short wires
    learned  the best scored of some candidates for each input, learned with the gates                fewer gates
    tree     gate i reads gates 2i and 2i + 1 below: each of them serves one gate alone               few tables
    auto     unique while there are pairs, then all pairs again; preferred inputs first               for any table

The network, the command line and the estimators know these names. A tensor (2, gates), a ``Wiring`` of your own or a
function that makes one from a ``WiringContext`` is taken wherever a name is.
"""

import difflib
import warnings
from collections.abc import Callable
from typing import Final

from gatefit._requires import require

require("torch", "train", "training")

from jaxtyping import Int, Int32
from torch import Tensor

from gatefit.wirings.base import FixedWiring, Wiring, WiringContext, WiringOptions, coverage, explicit_wiring
from gatefit.wirings.fixed import every_pair_wiring, preferring_wiring, random_wiring, stride_wiring, unique_wiring
from gatefit.wirings.learned import LearnedWiring
from gatefit.wirings.local import local_wiring
from gatefit.wirings.tree import tree_wiring

WIRINGS: Final[dict[str, Callable[[WiringContext], Int32[Tensor, "2 _"] | Wiring]]] = {
    "unique": lambda context: unique_wiring(context.inputs, context.gates, generator=context.generator),
    "stride": lambda context: stride_wiring(context.inputs, context.gates),
    "random": lambda context: random_wiring(context.inputs, context.gates, generator=context.generator),
    "local": local_wiring,
    "learned": LearnedWiring,
    "tree": tree_wiring,
    "auto": preferring_wiring,
}

WiringChoice = str | Int[Tensor, "2 _"] | Wiring | Callable[[WiringContext], Int[Tensor, "2 _"] | Wiring]
"""How one layer's wiring is said."""


def make_wiring(wiring: WiringChoice, context: WiringContext) -> Wiring:
    """The wiring called by its name, made by a function of yours, or given; warns where inputs stay unread."""
    inputs, gates = context.inputs, context.gates
    if isinstance(wiring, str):
        if wiring not in WIRINGS:
            near = difflib.get_close_matches(wiring, WIRINGS, 1)
            meant = f"; did you mean {near[0]}?" if near else ""
            raise ValueError(
                f"unknown wiring {wiring!r}; choose one of {', '.join(WIRINGS)}, or pass a tensor (2, gates){meant}"
            )
        made = WIRINGS[wiring](context)
    else:
        made = wiring if isinstance(wiring, Tensor | Wiring) else wiring(context)
    if isinstance(made, Tensor):
        made = FixedWiring(explicit_wiring(made, inputs, gates), inputs)
    if not isinstance(made, Wiring):
        raise TypeError(f"a wiring is a tensor (2, gates) or a gatefit.wirings.Wiring, got {type(made).__name__}")
    if (made.inputs, made.gates) != (inputs, gates):
        raise ValueError(
            f"the layer has {inputs} inputs and {gates} gates, got a wiring of {made.inputs} inputs for {made.gates} "
            "gates; make one for each layer"
        )
    if 2 * gates < inputs and not made.learns:
        warnings.warn(
            f"{gates} gates read at most {2 * gates} of {inputs} inputs (coverage "
            f"{coverage(made.committed(), inputs):.1%}); use {-(-inputs // 2)} gates or more to read them all",
            stacklevel=2,
        )
    return made


__all__ = [
    "WIRINGS",
    "FixedWiring",
    "LearnedWiring",
    "Wiring",
    "WiringChoice",
    "WiringContext",
    "WiringOptions",
    "coverage",
    "every_pair_wiring",
    "explicit_wiring",
    "local_wiring",
    "make_wiring",
    "random_wiring",
    "stride_wiring",
    "tree_wiring",
    "unique_wiring",
]
