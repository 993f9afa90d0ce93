"""The parts of a network: each can be trained, saved, and lowered to the gates of a circuit."""

from collections.abc import Callable
from typing import Final

from gatefit._requires import require

require("torch", "train", "training")

from gatefit.layers.base import Layer
from gatefit.layers.gates import KIND, GateLayer

LAYERS: Final[dict[str, Callable[..., Layer]]] = {KIND: GateLayer.from_configuration}
"""How a saved network makes its layers again, by their kind; those of your own are given to it."""

__all__ = ["LAYERS", "GateLayer", "Layer"]
