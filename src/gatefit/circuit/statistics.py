"""Honest counts: what a circuit costs, with gates, inverters, wires, encoder and readout apart.

    logic gates    gates that read both operands; inverters, wires and constants are counted by themselves
    level          logic gates on the longest path from an input; depth is the largest level of an output
    AIG nodes      and-gates if only ANDs and inverters were allowed: XOR and XNOR count 3, other logic gates 1
    adders         a column of n bits takes (n - 1) / 2 full adders, or (n - 2) / 2 and a half adder; n // 2 carry on

Only live gates count, except in ``gates`` and ``dead``.
"""

import itertools
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int32, Int64

from gatefit.circuit.ir import Circuit
from gatefit.circuit.logic import graph as logic
from gatefit.gates import DEPENDS_ON_A, DEPENDS_ON_B, Gate, GateKind

_KINDS = [gate.kind for gate in Gate]
_STRONG = np.array([kind is GateKind.STRONG_INTERACTION for kind in _KINDS])
_LOGIC = DEPENDS_ON_A & DEPENDS_ON_B
_INVERTS = np.isin(np.arange(16), (Gate.NOT_A, Gate.NOT_B))
_CONSTANT = ~(DEPENDS_ON_A | DEPENDS_ON_B)


@dataclass(frozen=True)
class ReadoutCost:
    """An estimate of what the readout costs in logic beside the gates."""

    score_bits: int
    full_adders: int
    half_adders: int
    comparators: int
    multiplications: int

    @property
    def gates(self) -> int:
        """Two-input gates: 5 a full adder, 2 a half adder; a comparator subtracts and selects, 8 a bit."""
        return 5 * self.full_adders + 2 * self.half_adders + 8 * self.score_bits * self.comparators


@dataclass(frozen=True)
class Statistics:
    """The counts of one circuit."""

    inputs: int
    used_inputs: int
    outputs: int
    classes: int
    gates: int
    dead: int
    logic_gates: int
    inverters: int
    wires: int
    constants: int
    aig_nodes: int
    depth: int
    mean_fan_out: float
    max_fan_out: int
    census: dict[str, int]
    encoder_comparisons: int
    readout: ReadoutCost

    @property
    def live_gates(self) -> int:
        """Gates that some output depends on, of every kind."""
        return self.gates - self.dead


def statistics(circuit: Circuit) -> Statistics:
    """Count everything."""
    readers = fan_out(circuit)
    live = readers[circuit.inputs :] > 0
    gates = circuit.gates[live]
    logic_gates = int(_LOGIC[gates].sum())
    level = levels(circuit)
    computed = readers[readers > 0]
    used = int((readers[: circuit.inputs] > 0).sum())
    counts = np.bincount(gates, minlength=16)
    return Statistics(
        inputs=circuit.inputs,
        used_inputs=used,
        outputs=int(circuit.outputs.size),
        classes=circuit.readout.classes,
        gates=int(circuit.gates.size),
        dead=int((~live).sum()),
        logic_gates=logic_gates,
        inverters=int(_INVERTS[gates].sum()),
        wires=int(gates.size - logic_gates - _INVERTS[gates].sum() - _CONSTANT[gates].sum()),
        constants=int(_CONSTANT[gates].sum()),
        aig_nodes=logic_gates + 2 * int(_STRONG[gates].sum()),
        depth=int(level[circuit.outputs].max(initial=0)),
        mean_fan_out=float(computed.mean()) if computed.size else 0.0,
        max_fan_out=int(readers.max(initial=0)),
        census={gate.name: int(counts[gate]) for gate in Gate},
        # Every bit that the circuit reads is one comparison with a threshold or a category.
        encoder_comparisons=0 if circuit.encoder is None else used,
        readout=readout_cost(circuit),
    )


def levels(circuit: Circuit) -> Int32[np.ndarray, " nodes"]:
    """For every node the logic gates on its longest path; wires, inverters and constants add nothing."""
    return logic.levels(logic.Graph.of(circuit))[1:]


def fan_out(circuit: Circuit) -> Int64[np.ndarray, " nodes"]:
    """For every node how many operands of live gates and how many outputs read it; a node is live if any do."""
    return logic.readers(logic.Graph.of(circuit), circuit.outputs + 1)[1:]


def depth(circuit: Circuit) -> int:
    """Logic gates on the longest path from an input to an output."""
    return int(levels(circuit)[circuit.outputs].max(initial=0))


def readout_cost(circuit: Circuit) -> ReadoutCost:
    """Adders of the sums, comparators for the argmax; float sums multiply instead."""
    readout = circuit.readout
    if readout.lowered:
        return ReadoutCost(readout.outputs, 0, 0, 0, int(readout.gives_value))
    comparators = 0 if readout.gives_value else readout.classes - 1
    floats, sums = readout.float_terms(), readout.sums()
    if floats is not None or sums is None:
        return ReadoutCost(32, 0, 0, comparators, readout.classes * readout.outputs)
    low, high = np.array(sums.low), np.array(sums.high)
    # The offset of a value is part of its intercept; those of classes are added.
    largest = int((high - low).max() if readout.gives_value else max(np.abs(low).max(), high.max()))
    starts = sums.starts.tolist()
    full, half = np.sum([adders(np.abs(sums.weights[a:b])) for a, b in itertools.pairwise(starts)], axis=0).tolist()
    scaled = readout.classes if readout.dtype is np.float64 else 0
    return ReadoutCost(largest.bit_length(), full, half, comparators, scaled)


def adders(weights: Int64[np.ndarray, " terms"]) -> tuple[int, int]:
    """Full and half adders that add up weighted bits: in each column three bits, at last two, leave one and a carry."""
    full = half = carries = 0
    while carries or weights.any():
        bits = carries + int((weights & 1).sum())
        if bits:
            full, half, carries = full + (bits - 1) // 2, half + 1 - bits % 2, bits // 2
        weights = weights >> 1
    return full, half
