"""The passes that look at one gate and its operands: each maps a Circuit to one with the same scores.

    fold_constants      g(0, x) -> x, ~x, 0 or 1;  constant outputs move into the readout
    forward_wires       whoever reads a wire, or an inverter of an inverter, reads its source
    absorb_inverters    g(~x, y) -> g'(x, y);  inverters remain where an output needs one
    simplify_operands   g(x, x) and g(x, ~x) -> x, ~x, 0 or 1;  also where x and its twin are different gates
    merge_duplicates    g(x, y), g'(y, x) and ~g(x, y) become one gate
    remove_dead         gates from which no output can be reached

Each is one walk in topological order that gives every node a literal of a smaller graph. The first three apply some
of the rules below, where the walk would otherwise copy the gate; ``share`` applies all of them and looks at more than
one gate. Inputs keep their numbers, used or not, because they are the circuit's interface.

    CONSTANTS    a gate with constant operands becomes what is left of it
    WIRES        a gate that passes one operand on is that operand, and so are two inverters in a row
    INVERTERS    an inverter is its operand inverted; whoever reads it changes kind instead
"""
# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from dataclasses import replace
from typing import Final

import numpy as np

from gatefit.circuit.ir import Circuit
from gatefit.circuit.logic.graph import Graph, without_dead
from gatefit.circuit.logic.hashing import share
from gatefit.circuit.logic.literals import OF_EQUALS, absorb
from gatefit.circuit.passes.assemble import assemble
from gatefit.compiled import njit
from gatefit.gates import DEPENDS_ON_A, DEPENDS_ON_B, NEGATED_B, Gate

CONSTANTS: Final = 1
WIRES: Final = 2
INVERTERS: Final = 4

_NOT_A: Final = int(Gate.NOT_A)


def fold_constants(circuit: Circuit) -> Circuit:
    """Replace gates with constant operands by what is left of them; constant outputs become readout offsets."""
    return _walk(circuit, CONSTANTS)


def forward_wires(circuit: Circuit) -> Circuit:
    """Bypass gates that pass one operand on unchanged, and pairs of inverters."""
    return _walk(circuit, WIRES)


def absorb_inverters(circuit: Circuit) -> Circuit:
    """Bypass inverters: the gate that reads one changes kind; at an output, the gate below it does, if it can."""
    return _walk(circuit, WIRES | INVERTERS)


def simplify_operands(circuit: Circuit) -> Circuit:
    """Gates whose two operands are equal or opposite, by structure, become wires, inverters or constants."""
    graph = Graph.of(circuit)
    _, literals = share(graph)
    a, b = literals[graph.operands]
    # Constants have their own pass; gates that read one operand only are done already.
    found = (a >> 1 == b >> 1) & (a >> 1 > 0) & DEPENDS_ON_A[circuit.gates] & DEPENDS_ON_B[circuit.gates]
    kinds = OF_EQUALS[np.where(a == b, circuit.gates, NEGATED_B[circuit.gates])]
    reads = np.where(found, circuit.operands[0], circuit.operands[1])
    return replace(
        circuit,
        gates=np.where(found, kinds, circuit.gates),
        operands=np.stack([circuit.operands[0], reads]),
    )


def merge_duplicates(circuit: Circuit) -> Circuit:
    """Share gates that are equal up to operand order and inversion, after everything the passes above do."""
    graph, literals = share(Graph.of(circuit))
    return assemble(circuit, graph, literals[circuit.outputs + 1])


def remove_dead(circuit: Circuit) -> Circuit:
    """Drop gates that no output depends on; operands that a gate ignores do not count as read."""
    graph, outputs = without_dead(Graph.of(circuit), circuit.outputs + 1)
    if graph.gates.size == circuit.gates.size:
        return circuit
    return replace(circuit, gates=graph.gates, operands=graph.operands - 1, outputs=outputs - 1)


def _walk(circuit: Circuit, rules: int) -> Circuit:
    """Apply ``rules`` in one pass over the gates."""
    graph = Graph.of(circuit)
    gates, operands = np.empty_like(graph.gates), np.empty_like(graph.operands)
    literals = np.empty(graph.nodes, np.int64)
    kept = _apply(1 + graph.inputs, graph.gates, graph.operands, rules, gates, operands, literals)
    smaller = Graph(graph.inputs, gates[:kept], operands[:, :kept])
    return assemble(circuit, smaller, literals[circuit.outputs + 1])


@njit(cache=True, plain=True)
def _apply(first, gates, operands, rules, new_gates, new_operands, literals):
    kept = 0
    for node in range(first):
        literals[node] = 2 * node
    for i in range(len(gates)):
        gate, a, b = absorb(np.int64(gates[i]), literals[operands[0, i]], literals[operands[1, i]])
        reads_a, reads_b = DEPENDS_ON_A[gate], DEPENDS_ON_B[gate]
        if not reads_a and not reads_b:
            if rules & CONSTANTS:
                literals[first + i] = gate & 1
                continue
        elif not (reads_a and reads_b):
            operand = a if reads_a else b
            inverted = gate >> 3
            if (inverted == 0 and rules & WIRES) or (inverted and rules & INVERTERS):
                literals[first + i] = operand ^ inverted
                continue
            if inverted and rules & WIRES:
                below = (operand >> 1) - first
                if below >= 0 and new_gates[below] == _NOT_A:
                    literals[first + i] = 2 * new_operands[0, below]
                    continue
                gate, a, b = _NOT_A, operand, operand  # this is how the line above knows an inverter
        new_gates[kept] = gate
        new_operands[0, kept] = a >> 1
        new_operands[1, kept] = b >> 1
        literals[first + i] = 2 * (first + kept)
        kept += 1
    return kept
