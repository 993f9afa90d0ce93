"""A circuit on bits in plain numpy: for the little work that is not worth compiling kernels for.

    z = c_0 ^ (c_a & a) ^ (c_b & b) ^ (c_ab & a & b)        64 samples a word; a coefficient is all ones or all zeros

Every Boolean function of two bits is such a sum over GF(2) (its algebraic normal form). Gates go through it a stretch
at a time: as many in their stored order as read nothing of one another, which is a layer of a network of layers.
"""

import itertools
from typing import Final

import numpy as np
from jaxtyping import Bool, Int64, UInt64

from gatefit.circuit.ir import Circuit
from gatefit.gates import TRUTH_TABLES

SECONDS_A_WORD: Final = 2e-8
SECONDS_A_BIT: Final = 5e-9
SECONDS_A_STRETCH: Final = 5e-5
"""What a word of a gate, a bit that is packed or unpacked and added up, and a stretch of gates cost, about; enough to
say when compiling pays."""

_WORDS_AT_A_TIME: Final = 1 << 18
"""Of all nodes together: 2 MB, which caches hold."""


def _normal_forms() -> UInt64[np.ndarray, "4 16"]:
    """c_0, c_a, c_b and c_ab of every gate: the truth table's Möbius transform, as masks."""
    g00, g01, g10, g11 = TRUTH_TABLES.T.astype(np.uint64)
    return np.stack([g00, g00 ^ g10, g00 ^ g01, g00 ^ g01 ^ g10 ^ g11]) * np.uint64(0xFFFF_FFFF_FFFF_FFFF)


_NORMAL_FORMS: Final = _normal_forms()


def stretches(circuit: Circuit, most: int) -> Int64[np.ndarray, " stretches_1"] | None:
    """Where stretches of gates that read nothing of one another begin, and the number of gates; None: over ``most``."""
    latest = circuit.operands.max(axis=0, initial=-1) - circuit.inputs
    edges, gates = [0], len(latest)
    # Of what is left the first gate that reads a gate of its own stretch; looked for in pieces of growing size, so
    # that many short stretches stay linear too.
    while edges[-1] < gates:
        begin = at = edges[-1]
        size, end = 64, gates
        while at < gates:
            late = np.flatnonzero(latest[at : at + size] >= begin)
            if late.size:
                end = at + int(late[0])
                break
            at, size = at + size, 2 * size
        edges.append(end)
        if len(edges) > most:
            return None
    return np.array(edges)


def cost(circuit: Circuit, edges: Int64[np.ndarray, " stretches_1"], samples: int) -> float:
    """About how many seconds ``outputs`` and the readout's sums of them take."""
    words, bits = -(-samples // 64), samples * (circuit.inputs + len(circuit.outputs))
    return SECONDS_A_WORD * words * circuit.nodes + SECONDS_A_BIT * bits + SECONDS_A_STRETCH * len(edges)


def outputs(
    circuit: Circuit, edges: Int64[np.ndarray, " stretches_1"], bits: Bool[np.ndarray, "samples inputs"]
) -> Bool[np.ndarray, "samples outputs"]:
    """The circuit's output bits, in readout order."""
    step = 64 * max(1, _WORDS_AT_A_TIME // max(1, circuit.nodes))
    parts = [_outputs(circuit, edges, bits[first : first + step]) for first in range(0, max(1, len(bits)), step)]
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _outputs(
    circuit: Circuit, edges: Int64[np.ndarray, " stretches_1"], bits: Bool[np.ndarray, "samples inputs"]
) -> Bool[np.ndarray, "samples outputs"]:
    samples, words = len(bits), -(-len(bits) // 64)
    rows = np.zeros((circuit.nodes, 8 * words), np.uint8)
    packed = np.packbits(bits, axis=0, bitorder="little")
    rows[: circuit.inputs, : len(packed)] = packed.T
    nodes = rows.view(np.uint64)
    for begin, end in itertools.pairwise(edges.tolist()):
        c0, ca, cb, cab = _NORMAL_FORMS[:, circuit.gates[begin:end], None]
        a, b = nodes[circuit.operands[0, begin:end]], nodes[circuit.operands[1, begin:end]]
        nodes[circuit.inputs + begin : circuit.inputs + end] = c0 ^ (ca & a) ^ (cb & b) ^ (cab & a & b)
    chosen = rows[circuit.outputs]
    return np.unpackbits(chosen, axis=1, count=samples, bitorder="little").T.astype(np.bool_, order="C")
