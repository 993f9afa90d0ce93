"""The engine's speed: random networks of equal layers with ten classes, packing and readout included."""

import time
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from gatefit.circuit.engine import Engine
from gatefit.circuit.ir import Circuit
from gatefit.circuit.readout import GroupSum
from gatefit.gates import Gate

LOGIC: Final = tuple(int(gate) for gate in Gate if gate.depends_on_a and gate.depends_on_b)
"""The ten gates that depend on both inputs: none of them folds away."""


def layered(inputs: int, width: int, depth: int, gates: Sequence[int] = LOGIC, seed: int = 0) -> Circuit:
    """A random network of equal layers with ten classes."""
    rng = np.random.default_rng(seed)
    operands, first, size = [], 0, inputs
    for _ in range(depth):
        operands.append(first + rng.integers(0, size, (2, width)))
        first, size = first + size, width
    nodes = inputs + width * depth
    readout = GroupSum(np.arange(width) * 10 // width, np.zeros(10, np.int64))
    kinds = rng.choice(np.array(gates), width * depth).astype(np.uint8)
    return Circuit(inputs, kinds, np.concatenate(operands, 1), np.arange(nodes - width, nodes), readout)


def least(action: Callable[[], object], repeats: int = 15) -> float:
    """The least time of some calls."""
    times = []
    for _ in range(repeats):
        begun = time.perf_counter()
        action()
        times.append(time.perf_counter() - begun)
    return min(times)


def measured(circuit: Circuit, samples: int, threads: int, repeats: int = 15) -> dict[str, float]:
    """Samples and gate evaluations a second, and the seconds that one sample alone takes."""
    bits = np.random.default_rng(0).random((samples, circuit.inputs)) < 0.3
    engine = Engine(circuit, threads=threads)
    gates = engine.evaluated_gates  # which prepares the kernels
    engine.predict(bits[:512])
    engine.predict(bits[:1])
    seconds = least(lambda: engine.predict(bits), repeats)
    return {
        "threads": threads,
        "evaluated_gates": gates,
        "samples_per_second": samples / seconds,
        "gate_evaluations_per_second": gates * samples / seconds,
        "one_sample_seconds": least(lambda: engine.predict(bits[:1]), 10 * repeats),
    }
