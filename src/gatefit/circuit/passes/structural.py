"""The passes that look at one gate and its operands: each maps a Circuit to one with the same scores.

    fold_constants      g(0, x) -> x, ~x, 0 or 1;  constant outputs move into the readout
    forward_wires       whoever reads a wire, or an inverter of an inverter, reads its source
    absorb_inverters    g(~x, y) -> g'(x, y);  inverters remain where an output needs one
    simplify_operands   g(x, x) and g(x, ~x) -> x, ~x, 0 or 1;  also where x and its twin are different gates
    merge_duplicates    g(x, y), g'(y, x) and ~g(x, y) become one gate
    remove_dead         gates from which no output can be reached

Inputs keep their numbers, used or not, because they are the circuit's interface.
"""

from dataclasses import replace

import numpy as np

from gatefit.circuit.ir import Circuit
from gatefit.circuit.passes.assemble import assemble
from gatefit.circuit.passes.sweep import CONSTANTS, INVERTERS, WIRES, share, sweep
from gatefit.compiled import njit
from gatefit.gates import DEPENDS_ON_A, DEPENDS_ON_B, NEGATED_B, TRUTH_TABLES, Gate


def fold_constants(circuit: Circuit) -> Circuit:
    """Replace gates with constant operands by what is left of them; constant outputs become readout offsets."""
    return assemble(circuit, sweep(circuit, CONSTANTS))


def forward_wires(circuit: Circuit) -> Circuit:
    """Bypass gates that pass one operand on unchanged, and pairs of inverters."""
    return assemble(circuit, sweep(circuit, WIRES))


def absorb_inverters(circuit: Circuit) -> Circuit:
    """Bypass inverters: the gate that reads one changes kind; at an output, the gate below it does, if it can."""
    return assemble(circuit, sweep(circuit, WIRES | INVERTERS))


def simplify_operands(circuit: Circuit) -> Circuit:
    """Gates whose two operands are equal or opposite, by structure, become wires, inverters or constants."""
    literals = share(circuit).literals
    a, b = literals[circuit.operands]
    # Constants have their own pass; gates that read one operand only are done already.
    found = (a >> 1 == b >> 1) & (a >= 0) & DEPENDS_ON_A[circuit.gates] & DEPENDS_ON_B[circuit.gates]
    of_equals = np.where(a == b, circuit.gates, NEGATED_B[circuit.gates])
    when_0, when_1 = TRUTH_TABLES[of_equals, 0], TRUTH_TABLES[of_equals, 3]
    kinds = (int(Gate.NOT_A) * when_0 | int(Gate.A) * when_1).astype(np.uint8)
    reads = np.where(found, circuit.operands[0], circuit.operands[1])
    return replace(
        circuit,
        gates=np.where(found, kinds, circuit.gates),
        operands=np.stack([circuit.operands[0], reads]),
    )


def merge_duplicates(circuit: Circuit) -> Circuit:
    """Share gates that are equal up to operand order and inversion, after everything the passes above do."""
    return assemble(circuit, share(circuit))


def remove_dead(circuit: Circuit) -> Circuit:
    """Drop gates that no output depends on; operands that a gate ignores do not count as read."""
    live = live_gates(circuit)
    if live.all():
        return circuit
    number = np.empty(circuit.nodes, np.int32)
    number[: circuit.inputs] = np.arange(circuit.inputs)
    number[circuit.inputs :] = circuit.inputs - 1 + np.cumsum(live, dtype=np.int32)
    gates, (a, b) = circuit.gates[live], circuit.operands[:, live]
    reads_a, reads_b = DEPENDS_ON_A[gates], DEPENDS_ON_B[gates]
    constant = ~(reads_a | reads_b)
    a, b = np.where(reads_a, a, b), np.where(reads_b, b, a)
    operands = np.where(constant, 0, number[np.stack([a, b])])
    return replace(circuit, gates=gates, operands=operands, outputs=number[circuit.outputs])


def live_gates(circuit: Circuit) -> np.ndarray:
    """Which gates some output depends on through the operands that gates really read, bool (gates,)."""
    live = np.zeros(circuit.nodes, bool)
    live[circuit.outputs] = True
    _mark(circuit.inputs, circuit.gates, circuit.operands, live)
    return live[circuit.inputs :]


@njit(cache=True)
def _mark(inputs, gates, operands, live):  # type: ignore[no-untyped-def]
    for i in range(len(gates) - 1, -1, -1):
        if live[inputs + i]:
            if DEPENDS_ON_A[gates[i]]:
                live[operands[0, i]] = True
            if DEPENDS_ON_B[gates[i]]:
                live[operands[1, i]] = True
