"""From literals back to a circuit: what the outputs' literals mean for gates and readout.

    a constant output        is added to the readout's offset and leaves the circuit
    an inverted output       changes the kind of its gate, and of the gates that read that gate
    both polarities, or an inverted input: one inverter, the only place where inverters remain

A sum of integers is folded exactly. A Linear readout adds floats in a fixed order, so a constant is folded into its
bias only where that cannot change any rounding; otherwise the constant stays, as a gate without operands.
"""

from dataclasses import replace

import numpy as np
from jaxtyping import Bool, Int32, Int64, UInt8

from gatefit.circuit.ir import Circuit
from gatefit.circuit.passes.literals import Swept
from gatefit.circuit.readout import Affine, GroupSum, Linear, Readout, exact_unit
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
    readout, stays = fold_outputs(circuit.readout, literals < 0, literals & 1 == 1)
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


def fold_outputs(
    readout: Readout, constant: Bool[np.ndarray, " outputs"], ones: Bool[np.ndarray, " outputs"]
) -> tuple[Readout, Bool[np.ndarray, " outputs"]]:
    """The readout without its constant outputs, and which outputs remain; ``ones`` says which constants are 1."""
    if not constant.any():
        return readout, np.ones(constant.size, bool)
    ones = ones & constant
    if isinstance(readout, GroupSum):
        offsets = readout.offsets + np.bincount(readout.groups[ones], minlength=readout.classes)
        return replace(readout, groups=readout.groups[~constant], offsets=offsets), ~constant
    if isinstance(readout, Affine):
        return replace(readout, outputs=int((~constant).sum()), offset=readout.offset + int(ones.sum())), ~constant
    # Ones before the first variable output are added to the bias first in any case.
    readout, left = _add_to_bias(readout, ones & (np.cumsum(~constant) == 0))
    rest = ones & (left | (np.cumsum(~constant) > 0))
    if exact_unit(Linear(readout.weights[:, ~constant | rest], readout.bias)) is not None:
        readout, rest = _add_to_bias(readout, rest)
    stays = ~constant | rest
    return Linear(readout.weights[:, stays], readout.bias), stays


def _add_to_bias(readout: Linear, outputs: Bool[np.ndarray, " outputs"]) -> tuple[Linear, Bool[np.ndarray, " outputs"]]:
    """The readout with the weights of ``outputs`` in its bias, and those outputs that did not fit a float32."""
    bias = readout.bias.copy()
    with np.errstate(over="ignore"):
        for i in np.flatnonzero(outputs):
            bias += readout.weights[:, i]
    if not np.isfinite(bias).all():
        return readout, outputs
    return Linear(readout.weights, bias), np.zeros_like(outputs)
