"""From literals back to a circuit: what the outputs' literals mean for gates and readout.

    a constant output        is added to the readout's offset and leaves the circuit
    an inverted output       changes the kind of its gate, and of the gates that read that gate
    both polarities, or an inverted input: one inverter, the only place where inverters remain

The readout says which constants it can do without (``Readout.fold``); the others stay, as gates without operands.
"""

from dataclasses import replace

import numpy as np
from jaxtyping import Int32, Int64, UInt8

from gatefit.circuit.ir import Circuit
from gatefit.circuit.passes.literals import Swept
from gatefit.gates import COMPLEMENT, NEGATED_A, NEGATED_B, Gate


def assemble(circuit: Circuit, swept: Swept) -> Circuit:
    """The circuit whose nodes are ``swept``'s, with the outputs, readout and names of ``circuit``."""
    return from_literals(circuit, swept.gates, swept.operands, swept.literals[circuit.outputs])


def from_literals(
    circuit: Circuit,
    gates: UInt8[np.ndarray, " kept"],
    operands: Int32[np.ndarray, "2 kept"],
    literals: Int64[np.ndarray, " outputs"],
) -> Circuit:
    """The circuit of ``gates`` whose outputs are ``literals``, otherwise like ``circuit``."""
    readout, stays = circuit.readout, np.ones(literals.size, bool)
    if (literals < 0).any():
        readout, stays = readout.fold(literals < 0, (literals < 0) & (literals & 1 == 1))
    gates, literals = _turn_over(circuit.inputs, gates, operands, literals[stays])
    loose = (literals < 0) | (literals & 1 == 1)
    extra, which = np.unique(literals[loose], return_inverse=True)
    outputs = literals >> 1
    outputs[loose] = circuit.inputs + gates.size + which
    kinds = np.where(extra >= 0, Gate.NOT_A, np.where(extra & 1 == 1, Gate.TRUE, Gate.FALSE))
    reads = np.maximum(extra >> 1, 0).astype(np.int32)
    return replace(
        circuit,
        gates=np.concatenate([gates, kinds.astype(np.uint8)]),
        operands=np.concatenate([operands, np.stack([reads, reads])], axis=1),
        outputs=outputs.astype(np.int32),
        readout=readout,
    )


def _turn_over(
    inputs: int,
    gates: UInt8[np.ndarray, " gates"],
    operands: Int32[np.ndarray, "2 gates"],
    literals: Int64[np.ndarray, " outputs"],
) -> tuple[UInt8[np.ndarray, " gates"], Int64[np.ndarray, " outputs"]]:
    """Gates that outputs only read inverted compute the inverse instead, and their readers expect it."""
    turned = np.zeros(inputs + gates.size, bool)
    variable = literals[literals >= 0]
    turned[variable[variable & 1 == 1] >> 1] = True
    turned[variable[variable & 1 == 0] >> 1] = False
    turned[:inputs] = False
    if not turned.any():
        return gates, literals
    gates = np.where(turned[inputs:], COMPLEMENT[gates], gates)
    gates = np.where(turned[operands[0]], NEGATED_A[gates], gates)
    gates = np.where(turned[operands[1]], NEGATED_B[gates], gates)
    return gates, np.where((literals >= 0) & turned[literals >> 1], literals ^ 1, literals)
