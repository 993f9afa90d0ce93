"""Circuits made piece by piece: layers add their gates over nodes that are there, and get the nodes of what they added.

    builder = CircuitBuilder(inputs)
    nodes = builder.gates(kinds, operands)       as many gates at once as there are kinds
    circuit = builder.circuit(nodes, readout)

Node n < inputs is the n-th input bit; gates are numbered as they come, so that their order is topological.
"""

from typing import Any

import numpy as np
from jaxtyping import Int, Int64

from gatefit.circuit.ir import Circuit
from gatefit.circuit.readout import Readout


class CircuitBuilder:
    """A circuit in the making."""

    def __init__(self, inputs: int) -> None:
        self.inputs = self.nodes = inputs
        self._kinds: list[np.ndarray] = []
        self._operands: list[np.ndarray] = []

    def gates(
        self, kinds: Int[np.ndarray, " gates"], operands: Int[np.ndarray, "2 gates"]
    ) -> Int64[np.ndarray, " gates"]:
        """Gate i of the kind kinds[i] (``gates.Gate``) over the nodes operands[:, i]; returns the new nodes."""
        kinds, operands = np.asarray(kinds), np.asarray(operands)
        if kinds.ndim != 1 or operands.shape != (2, kinds.size):
            raise ValueError(
                f"gates need kinds (n,) and operands (2, n), got shapes {kinds.shape} and {operands.shape}"
            )
        if kinds.size:
            if not 0 <= kinds.min() <= kinds.max() <= 15:
                raise ValueError(f"gate numbers are 0 to 15 (gatefit.gates.Gate), got {kinds.min()} to {kinds.max()}")
            if not 0 <= operands.min() <= operands.max() < self.nodes:
                raise ValueError(
                    f"gates read nodes 0 to {self.nodes - 1} so far, got {operands.min()} to {operands.max()}; "
                    "gates of one call cannot read one another: add them in turn"
                )
        first, self.nodes = self.nodes, self.nodes + kinds.size
        self._kinds.append(kinds.astype(np.uint8))
        self._operands.append(operands.astype(np.int64))
        return np.arange(first, self.nodes)

    def circuit(self, outputs: Int[np.ndarray, " outputs"], readout: Readout, **fields: Any) -> Circuit:
        """The circuit of all gates so far; ``fields`` are the further ones of ``Circuit``."""
        return Circuit(
            inputs=self.inputs,
            gates=np.concatenate([np.empty(0, np.uint8), *self._kinds]),
            operands=np.concatenate([np.empty((2, 0), np.int64), *self._operands], axis=1),
            outputs=outputs,
            readout=readout,
            **fields,
        )
