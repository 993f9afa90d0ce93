"""What a circuit means, as plainly as it can be said; every pass, proof and backend is tested against this file.

    x_n = bits[:, n]                                       for an input n
    x_n = TRUTH_TABLES[g, 2 · x_a + x_b]                   for a gate g that reads nodes a and b
    y   = x[outputs],   scores = readout(y),   class = the first one with the largest score

Clear, not fast: one row of memory per node and one Python step per gate. To run a circuit use ``circuit.predict``.
"""

import numpy as np
from jaxtyping import Bool, Int64, Shaped

from gatefit.circuit.ir import Circuit
from gatefit.gates import TRUTH_TABLES


def simulate_nodes(circuit: Circuit, bits: Bool[np.ndarray, "samples inputs"]) -> Bool[np.ndarray, "samples nodes"]:
    """The value of every node, inputs first, for every sample."""
    bits = check_bits(circuit, bits)
    tables = TRUTH_TABLES.astype(bool)
    values = np.empty((circuit.nodes, len(bits)), dtype=bool)
    values[: circuit.inputs] = bits.T
    for node, (gate, a, b) in enumerate(zip(circuit.gates, *circuit.operands, strict=True), start=circuit.inputs):
        values[node] = tables[gate][2 * values[a] + values[b]]
    return values.T


def simulate(circuit: Circuit, bits: Bool[np.ndarray, "samples inputs"]) -> Bool[np.ndarray, "samples outputs"]:
    """The output bits, in readout order, for every sample."""
    return simulate_nodes(circuit, bits)[:, circuit.outputs]


def scores(circuit: Circuit, bits: Bool[np.ndarray, "samples inputs"]) -> Shaped[np.ndarray, "samples classes"]:
    """What the readout makes of the output bits: int64 (GroupSum), float64 (Affine), float32 (Linear)."""
    return circuit.readout.scores(simulate(circuit, bits))


def predict_classes(circuit: Circuit, bits: Bool[np.ndarray, "samples inputs"]) -> Int64[np.ndarray, " samples"]:
    """The class numbers: of equal scores the first wins."""
    if circuit.readout.gives_value:
        raise TypeError(f"{circuit.readout.described} gives a value, not a class; use scores(circuit, bits)")
    return np.asarray(scores(circuit, bits).argmax(axis=1))


def check_bits(circuit: Circuit, bits: object) -> Bool[np.ndarray, "samples inputs"]:
    """``bits`` as a Boolean matrix with one column per circuit input; numbers are accepted if they are all 0 or 1."""
    array = np.asarray(bits)
    if array.ndim != 2 or array.shape[1] != circuit.inputs:
        raise ValueError(
            f"the circuit reads a (samples, {circuit.inputs}) matrix of bits, got shape {array.shape}; "
            f"pass one row per sample and one column per input"
        )
    if array.dtype == np.bool_:
        return array
    if not np.issubdtype(array.dtype, np.number):
        raise TypeError(f"the circuit reads Booleans or the numbers 0 and 1, got dtype {array.dtype}")
    if not ((array == 0) | (array == 1)).all():
        raise ValueError(
            "the circuit reads bits, got numbers other than 0 and 1; encode the features first, "
            "or build the circuit with its encoder"
        )
    return array.view(np.bool_) if array.dtype == np.uint8 else array.astype(np.bool_)
