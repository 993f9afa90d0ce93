"""The parts of a network: each can be trained, saved, and lowered to the gates of a circuit."""

from typing import Final

from gatefit._requires import require

require("torch", "train", "training")

from gatefit.layers.base import Layer
from gatefit.layers.gates import GateLayer

LAYERS: Final[dict[str, type[GateLayer]]] = {GateLayer.kind: GateLayer}
"""The layers that a saved network makes again by itself; those of your own are given to it."""

__all__ = ["LAYERS", "GateLayer", "Layer"]
