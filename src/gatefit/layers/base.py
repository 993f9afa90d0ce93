"""What a layer is: a Boolean function that can be trained, and that turns itself into gates.

    forward(x)              (batch, inputs) -> (batch, outputs)    train(): differentiable;  eval(): of 0 and 1, 0 and 1
    lower(builder, inputs)  nodes -> nodes                         the same Boolean function, as gates of a circuit
    configuration()         what a saved network says of it

A layer of your own is a subclass; ``LogicNetwork(layers=[...])`` takes it as it is, without registering it.
"""

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from torch import Tensor

from gatefit.circuit.builder import CircuitBuilder
from gatefit.ops.implementations import Implemented


class Layer(Implemented, ABC):
    """A function from ``inputs`` to ``outputs`` nodes."""

    inputs: int
    outputs: int

    @abstractmethod
    def forward(self, x: Float[Tensor, "batch inputs"]) -> Float[Tensor, "batch outputs"]:
        """As it is trained in ``train()``; the deployed Boolean function in ``eval()``."""

    @abstractmethod
    def lower(self, builder: CircuitBuilder, inputs: Int[np.ndarray, " inputs"]) -> Int[np.ndarray, " outputs"]:
        """Add the gates of the deployed function over the nodes ``inputs`` to the circuit; returns its output nodes."""

    def configuration(self) -> dict[str, Any]:
        """What a saved network says of this layer, as JSON; states fit layers whose configurations are equal."""
        return {"kind": type(self).__name__, "inputs": self.inputs, "outputs": self.outputs}
