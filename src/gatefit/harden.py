"""Hardening: the only bridge from torch to circuits.

    node of gate i in layer l  =  inputs + l · width + i;   outputs = the last layer;   readout = readout.harden()

``network.eval()`` already is the Boolean network; this copies its gates, wiring, readout, encoder and names.
"""

import numpy as np
from jaxtyping import Shaped

from gatefit.circuit.ir import Circuit
from gatefit.network import LogicNetwork


def harden(network: LogicNetwork, labels: Shaped[np.ndarray, " classes"] | None = None) -> Circuit:
    """The circuit that ``network.eval()`` computes, gate for gate; refuses networks that are not Boolean.

    ``labels`` are what the circuit predicts for each class; without them it predicts the network's class names.
    """
    gates = np.concatenate([layer.cpu().numpy() for layer in network.gates()])
    operands, first = [], 0
    for layer in network.gate_layers:
        operands.append(layer.wiring.cpu().numpy().astype(np.int64) + first)
        first = network.inputs if first == 0 else first + network.width
    nodes = network.inputs + network.depth * network.width
    return Circuit(
        inputs=network.inputs,
        gates=gates,
        operands=np.concatenate(operands, axis=1),
        outputs=np.arange(nodes - network.width, nodes),
        readout=network.readout.harden(),
        input_names=() if network.encoder is None else tuple(network.encoder.names),
        class_names=network.class_names,
        encoder=network.encoder,
        metadata={"method": str(network.configuration["method"])},
        labels=labels,
    )
