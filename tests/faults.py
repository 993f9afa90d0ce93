"""Single faults in circuits, seeded, and rare events, for tests of whatever claims to notice them."""

from dataclasses import replace

import numpy as np

from gatefit.circuit.ir import Circuit
from gatefit.circuit.readout import Affine, GroupSum, Linear

KINDS = ("truth table", "operand", "swap", "output", "readout")


def with_fault(rng: np.random.Generator, circuit: Circuit, kind: str) -> Circuit:
    """The circuit with one fault of the given kind; some faults change nothing that can be seen."""
    gates, operands, outputs = circuit.gates.copy(), circuit.operands.copy(), circuit.outputs.copy()
    if kind in ("truth table", "operand", "swap") and gates.size:
        gate = int(rng.integers(gates.size))
        if kind == "truth table":
            gates[gate] ^= 1 << int(rng.integers(4))
        elif kind == "swap":
            operands[:, gate] = operands[::-1, gate].copy()
        else:
            operands[rng.integers(2), gate] = rng.integers(circuit.inputs + gate)
        return replace(circuit, gates=gates, operands=operands)
    if kind == "output" and outputs.size:
        outputs[rng.integers(outputs.size)] = rng.integers(circuit.nodes)
        return replace(circuit, outputs=outputs)
    readout = circuit.readout
    if isinstance(readout, GroupSum):
        offsets, groups = readout.offsets.copy(), readout.groups.copy()
        if groups.size and rng.random() < 0.5:
            groups[rng.integers(groups.size)] = rng.integers(readout.classes)
        else:
            offsets[rng.integers(offsets.size)] += rng.choice([-1, 1])
        return replace(circuit, readout=replace(readout, offsets=offsets, groups=groups))
    if isinstance(readout, Affine):
        changes = ({"offset": readout.offset + 1}, {"scale": readout.scale * 2}, {"intercept": readout.intercept + 1})
        return replace(circuit, readout=replace(readout, **changes[rng.integers(3)]))
    assert isinstance(readout, Linear)
    bias = readout.bias.copy()
    bias[rng.integers(bias.size)] += 0.5
    return replace(circuit, readout=replace(readout, bias=bias))


def needle_circuit(needle: np.ndarray) -> Circuit:
    """A circuit whose only score is 1 on the pattern ``needle`` and 0 on all others."""
    inputs = len(needle)
    chain = np.arange(inputs - 1)
    left, right = np.where(chain == 0, needle[0], True), needle[1:]
    return Circuit(
        inputs=inputs,
        gates=(0b1000 >> (2 * left + right)).astype(np.uint8),  # the one row that is 1
        operands=np.stack([np.where(chain == 0, 0, inputs + chain - 1), chain + 1]).astype(np.int32),
        outputs=np.array([2 * inputs - 2], np.int32),
        readout=GroupSum(np.array([0]), np.array([0])),
    )
