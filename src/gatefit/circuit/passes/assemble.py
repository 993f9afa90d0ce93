"""From literals back to a circuit: what the outputs' literals mean for gates and readout.

    a constant output        is added to the readout's offset and leaves the circuit
    an inverted output       changes the kind of its gate, and of the gates that read that gate
    both polarities, or an inverted input: one inverter, the only place where inverters remain

The readout says which constants it can do without (``Readout.fold``); the others stay, as gates without operands.
"""

from dataclasses import replace

import numpy as np
from jaxtyping import Int64

from gatefit.circuit.ir import Circuit
from gatefit.circuit.logic.graph import Graph, as_nodes
from gatefit.circuit.logic.literals import TRUE


def assemble(circuit: Circuit, graph: Graph, literals: Int64[np.ndarray, " outputs"]) -> Circuit:
    """The circuit of the graph's gates whose outputs are ``literals``, otherwise like ``circuit``."""
    readout, stays, constant = circuit.readout, np.ones(literals.size, bool), literals <= TRUE
    if constant.any():
        readout, stays = readout.fold(constant, literals == TRUE)
    graph, nodes = as_nodes(graph, literals[stays])
    return replace(circuit, gates=graph.gates, operands=graph.operands - 1, outputs=nodes - 1, readout=readout)
