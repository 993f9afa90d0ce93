"""One walk over a circuit in topological order that gives every node a literal of a smaller circuit.

Each rule lets the walk answer with a literal where it would otherwise copy the gate:

    CONSTANTS    a gate with constant operands becomes what is left of it
    WIRES        a gate that passes one operand on is that operand, and so are two inverters in a row
    INVERTERS    an inverter is its operand inverted; whoever reads it changes kind instead

``share`` does all that, and looks at more than one gate: a gate of one node is what it becomes, and a gate seen
before, up to the order of its operands and up to inversion, is that gate.
"""

from typing import Final

import numpy as np
from jaxtyping import Int64

from gatefit.circuit.ir import Circuit
from gatefit.circuit.passes.literals import FALSE, TRUE, Swept, absorb
from gatefit.circuit.passes.network import empty_network, make
from gatefit.compiled import njit
from gatefit.gates import DEPENDS_ON_A, DEPENDS_ON_B, Gate

CONSTANTS: Final = 1
WIRES: Final = 2
INVERTERS: Final = 4

_NOT_A: Final = int(Gate.NOT_A)


def sweep(circuit: Circuit, rules: int) -> Swept:
    """Apply ``rules`` in one pass over the gates."""
    gates = np.empty_like(circuit.gates)
    operands = np.empty_like(circuit.operands)
    literals = np.empty(circuit.nodes, np.int64)
    kept = _sweep(circuit.inputs, circuit.gates, circuit.operands, rules, gates, operands, literals)
    return Swept(gates[:kept], operands[:, :kept], literals)


def share(circuit: Circuit, merged: Int64[np.ndarray, " nodes"] | None = None) -> Swept:
    """Keep every gate once; what is kept is AND, a & ~b, ~a & b, XOR or OR of two nodes, the smaller one first.

    ``merged`` gives nodes that are known to equal a literal of a smaller node, or a constant; others their own literal.
    """
    net = empty_network(circuit.inputs, circuit.nodes)
    merged = 2 * np.arange(circuit.nodes) if merged is None else merged
    literals = np.empty(circuit.nodes, np.int64)
    _share(net, circuit.gates, circuit.operands, merged, literals)
    kept = slice(circuit.inputs, int(net.used[0]))
    return Swept(net.gates[kept], net.operands[:, kept], literals)


@njit(cache=True)
def _share(net, gates, operands, merged, literals):  # type: ignore[no-untyped-def]
    for node in range(len(literals)):
        known = merged[node]
        if node < net.inputs:
            literals[node] = 2 * node
        elif known == 2 * node:
            i = node - net.inputs
            literals[node] = make(net, np.int64(gates[i]), literals[operands[0, i]], literals[operands[1, i]])
        else:
            literals[node] = known if known < 0 else literals[known >> 1] ^ (known & 1)


@njit(cache=True)
def _sweep(inputs, gates, operands, rules, new_gates, new_operands, literals):  # type: ignore[no-untyped-def]
    kept = 0
    for node in range(inputs):
        literals[node] = 2 * node
    for i in range(len(gates)):
        gate, a, b = absorb(np.int64(gates[i]), literals[operands[0, i]], literals[operands[1, i]])
        reads_a, reads_b = DEPENDS_ON_A[gate], DEPENDS_ON_B[gate]
        if not reads_a and not reads_b:
            if rules & CONSTANTS:
                literals[inputs + i] = TRUE if gate else FALSE
                continue
        elif not (reads_a and reads_b):
            operand = a if reads_a else b
            inverted = gate >> 3
            if (inverted == 0 and rules & WIRES) or (inverted and rules & INVERTERS):
                literals[inputs + i] = operand ^ inverted
                continue
            if inverted and rules & WIRES:
                below = (operand >> 1) - inputs
                if below >= 0 and new_gates[below] == _NOT_A:
                    literals[inputs + i] = 2 * new_operands[0, below]
                    continue
                gate, a, b = _NOT_A, operand, operand  # this is how the line above knows an inverter
        new_gates[kept] = gate
        new_operands[0, kept] = a >> 1
        new_operands[1, kept] = b >> 1
        literals[inputs + i] = 2 * (inputs + kept)
        kept += 1
    return kept
