"""Circuits to test with: hypothesis strategies, and seeded generators for loops that must be fast.

The circuits are nasty on purpose: constants, wires, inverters, gates that read one node twice, dead gates,
outputs that are inputs, repeated outputs and no outputs at all, with every kind of readout.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st

from gatefit.circuit.ir import Circuit
from gatefit.circuit.readout import Affine, GroupSum, Linear, Readout
from gatefit.gates import Gate

READOUTS = ("group_sum", "affine", "linear")


@st.composite
def readouts(draw: Any, outputs: int, kinds: Sequence[str] = READOUTS) -> Readout:
    """A readout of ``outputs`` bits."""
    kind = draw(st.sampled_from(kinds))
    if kind == "affine":
        finite = st.floats(-1e6, 1e6, allow_nan=False)
        return Affine(outputs, draw(st.integers(-9, 9)), draw(finite), draw(finite))
    classes = draw(st.integers(1, 4))
    if kind == "linear":
        weight = st.floats(-8, 8, width=32)
        weights = draw(st.lists(weight, min_size=classes * outputs, max_size=classes * outputs))
        bias = draw(st.lists(weight, min_size=classes, max_size=classes))
        return Linear(np.array(weights, np.float32).reshape(classes, outputs), np.array(bias, np.float32))
    groups = draw(st.lists(st.integers(0, classes - 1), min_size=outputs, max_size=outputs))
    offsets = draw(st.lists(st.integers(-3, 3), min_size=classes, max_size=classes))
    return GroupSum(np.array(groups, np.int32), np.array(offsets, np.int64), draw(st.sampled_from([0.5, 1.0, 10.0])))


@st.composite
def circuits(
    draw: Any,
    max_inputs: int = 6,
    max_gates: int = 40,
    max_outputs: int = 8,
    min_gates: int = 0,
    min_outputs: int = 0,
    gates: Sequence[Gate] = tuple(Gate),
    readout_kinds: Sequence[str] = READOUTS,
) -> Circuit:
    """A valid circuit; shrinks towards few inputs, few gates and low node numbers."""
    inputs = draw(st.integers(1, max_inputs))
    count = draw(st.integers(min_gates, max_gates))
    kinds = draw(st.lists(st.sampled_from(gates), min_size=count, max_size=count))
    operands = [[draw(st.integers(0, inputs + i - 1)) for i in range(count)] for _ in range(2)]
    outputs = draw(st.lists(st.integers(0, inputs + count - 1), min_size=min_outputs, max_size=max_outputs))
    return Circuit(
        inputs=inputs,
        gates=np.array(kinds, np.uint8),
        operands=np.array(operands, np.int32).reshape(2, count),
        outputs=np.array(outputs, np.int32),
        readout=draw(readouts(len(outputs), readout_kinds)),
    )


def random_readout(rng: np.random.Generator, outputs: int, kinds: Sequence[str] = READOUTS) -> Readout:
    """A seeded readout of ``outputs`` bits."""
    kind = kinds[rng.integers(len(kinds))]
    classes = int(rng.integers(1, 5))
    if kind == "affine":
        return Affine(outputs, int(rng.integers(-9, 10)), float(rng.normal()), float(rng.normal()))
    if kind == "linear":
        return Linear(rng.normal(size=(classes, outputs)), rng.normal(size=classes))
    return GroupSum(rng.integers(0, classes, outputs), rng.integers(-3, 4, classes), float(rng.uniform(0.5, 9)))


def random_circuit(
    rng: np.random.Generator,
    max_inputs: int = 6,
    max_gates: int = 40,
    max_outputs: int = 8,
    readout_kinds: Sequence[str] = READOUTS,
) -> Circuit:
    """A seeded circuit: half of them draw operands from recent nodes (deep), half from all (shallow)."""
    inputs, count = int(rng.integers(1, max_inputs + 1)), int(rng.integers(0, max_gates + 1))
    own = inputs + np.arange(count)
    reach = own if rng.random() < 0.5 else np.minimum(own, int(rng.integers(1, 12)))
    operands = own - 1 - rng.integers(0, np.broadcast_to(reach, (2, count)))
    # A narrow choice of kinds makes duplicates, inverter chains and constants common in some circuits.
    kinds = rng.choice(16, size=int(rng.integers(1, 17)), replace=False)
    outputs = rng.integers(0, inputs + count, size=int(rng.integers(0, max_outputs + 1)))
    return Circuit(
        inputs=inputs,
        gates=rng.choice(kinds, size=count).astype(np.uint8),
        operands=operands.astype(np.int32),
        outputs=outputs.astype(np.int32),
        readout=random_readout(rng, outputs.size, readout_kinds),
    )


def layered_circuit(
    rng: np.random.Generator, inputs: int, width: int, depth: int, classes: int = 10, gates: Sequence[int] = range(16)
) -> Circuit:
    """A random layered network, each layer reading the one before; the last layer is read by group sums."""
    kinds = rng.choice(np.array(list(gates), np.uint8), size=width * depth)
    operands = np.empty((2, depth, width), np.int32)
    operands[:, 0] = rng.integers(0, inputs, (2, width))
    for layer in range(1, depth):
        operands[:, layer] = inputs + (layer - 1) * width + rng.integers(0, width, (2, width))
    outputs = inputs + (depth - 1) * width + np.arange(width)
    groups = np.arange(width) * classes // width
    return Circuit(
        inputs=inputs,
        gates=kinds,
        operands=operands.reshape(2, -1),
        outputs=outputs.astype(np.int32),
        readout=GroupSum(groups, np.zeros(classes, np.int64)),
    )


def build_circuit(
    inputs: int, gates: Sequence[tuple[int, int, int]], outputs: Sequence[int], readout: Readout | None = None
) -> Circuit:
    """A circuit from (gate, a, b) triples; without a readout, one group sum of all outputs."""
    kinds, a, b = zip(*gates, strict=True) if gates else ((), (), ())
    readout = GroupSum(np.zeros(len(outputs), np.int32), [0]) if readout is None else readout
    return Circuit(inputs, np.array(kinds, np.uint8), np.array([a, b], np.int32), np.array(outputs, np.int32), readout)


def all_patterns(inputs: int) -> np.ndarray:
    """Every input pattern, bool (2**inputs, inputs): row r has input i equal to bit i of r."""
    return ((np.arange(2**inputs)[:, None] >> np.arange(inputs)) & 1).astype(bool)
