"""Hardening: the only bridge from torch to circuits.

``network.eval()`` already is the Boolean network. Each layer in turn lowers itself to gates over the nodes it reads;
readout, encoder and names are copied. The nodes of ``depth`` equal layers of gates are then

    node of gate i in layer l  =  inputs + l · width + i;   outputs = the last layer;   readout = readout.harden()
"""

import numpy as np
from jaxtyping import Shaped

from gatefit.circuit.builder import CircuitBuilder
from gatefit.circuit.ir import Circuit
from gatefit.network import LogicNetwork


def harden(network: LogicNetwork, labels: Shaped[np.ndarray, " classes"] | None = None) -> Circuit:
    """The circuit that ``network.eval()`` computes, gate for gate; refuses networks that are not Boolean.

    ``labels`` are what the circuit predicts for each class; without them it predicts the network's class names.
    """
    builder = CircuitBuilder(network.inputs)
    nodes = [np.arange(network.inputs)]
    for layer, reads in network.wired_layers:
        read = np.concatenate([nodes[source] for source in reads])
        nodes.append(layer.lower(builder, read))
        if nodes[-1].shape != (layer.outputs,):
            raise ValueError(
                f"{type(layer).__name__}.lower must return one node for each of its {layer.outputs} outputs, "
                f"got shape {nodes[-1].shape}"
            )
    voters = np.concatenate([nodes[source] for source in network.votes])
    return builder.circuit(
        voters if network.ballot is None else voters[network.ballot.cpu().numpy()],
        network.readout.harden(),
        input_names=() if network.encoder is None else tuple(network.encoder.names),
        class_names=network.class_names,
        encoder=network.encoder,
        metadata={"method": ", ".join(dict.fromkeys(layer.method.name for layer in network.gate_layers))},
        labels=labels,
    )
