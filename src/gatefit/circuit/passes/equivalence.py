"""Functionally equal nodes, found by SAT sweeping, become one node; so do opposite ones, and constants."""

from typing import Final

import numpy as np

from gatefit.circuit.ir import Circuit
from gatefit.circuit.logic.graph import Graph
from gatefit.circuit.logic.hashing import share
from gatefit.circuit.logic.words import PATTERNS, signatures
from gatefit.circuit.passes.assemble import assemble
from gatefit.circuit.passes.structural import merge_duplicates, remove_dead
from gatefit.circuit.prove.sweeper import sweep
from gatefit.gates import DEPENDS_ON_A, DEPENDS_ON_B

_IDLE_CHUNKS: Final = 4
"""Any patterns will do, because the sweep decides: they end when so many chunks in a row told nothing apart."""


def merge_equivalent(circuit: Circuit, *, conflicts: int = 200, patterns: int = PATTERNS) -> Circuit:
    """Merge functionally equal or opposite nodes, and nodes that are constant.

    ``conflicts`` bounds the work per question, ``patterns`` is how many random patterns are simulated at most. A
    question that takes too long is dropped: the node stays. Nothing is merged without the solver's word.
    """
    circuit = remove_dead(merge_duplicates(circuit))
    graph, outputs = Graph.of(circuit), circuit.outputs + 1
    known = signatures(graph, patterns, idle=_IDLE_CHUNKS)
    swept = sweep(graph, outputs, budgets=np.full(graph.nodes, conflicts), known=known, proof=False)
    # Of equal nodes the smallest one stays: what equals it comes later in the circuit, whatever the sweep's order.
    literals = swept.literals.astype(np.int64)
    smallest = np.full(graph.nodes, graph.nodes)
    np.minimum.at(smallest, literals >> 1, np.arange(graph.nodes))
    smallest = smallest[literals >> 1]
    merged = 2 * smallest + ((literals ^ literals[smallest]) & 1)
    # What reads one operand or none is an inverter or a constant that an output needs.
    alone = ~(DEPENDS_ON_A[circuit.gates] & DEPENDS_ON_B[circuit.gates])
    merged[1 + circuit.inputs :][alone] = 2 * (1 + circuit.inputs + np.flatnonzero(alone))
    smaller, literals = share(graph, merged)
    return remove_dead(assemble(circuit, smaller, literals[outputs]))
