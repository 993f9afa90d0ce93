"""From what a user has to what a user wants: raw features or bits in, labels, probabilities or values out.

    bits = encoder(x)      scores = readout(gates(bits))      P(k) = softmax_k(score / temperature)

The gates are run by the engine, which is imported at the first prediction: circuits can be read, changed and proven
without its kernels.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import numpy as np
from jaxtyping import Bool, Float64, Shaped

from gatefit.circuit.ir import Circuit
from gatefit.circuit.simulate import check_bits

if TYPE_CHECKING:
    from gatefit.circuit.engine import Engine

BITS_AT_ONCE: Final = 2**26
"""Input bits that are held at a time, a byte each."""


def input_batches(circuit: Circuit, x: object) -> Iterator[Bool[np.ndarray, "samples inputs"]]:
    """The bits of ``x``, through the encoder if there is one, checked; the next ones may be written over them."""
    rows = max(64, BITS_AT_ONCE // circuit.inputs)
    if circuit.encoder is not None:
        yield from (check_bits(circuit, bits) for bits in circuit.encoder.transform_batches(x, rows))
        return
    array = np.asarray(x)
    if array.ndim != 2 or len(array) <= rows:
        yield check_bits(circuit, array)
        return
    yield from (check_bits(circuit, array[start : start + rows]) for start in range(0, len(array), rows))


def scores(circuit: Circuit, x: object) -> Shaped[np.ndarray, "samples classes"]:
    """The readout's scores: int64 (GroupSum), float64 (Affine) or float32 (Linear)."""
    return _joined([_engine(circuit).scores(bits) for bits in input_batches(circuit, x)])


def predict(circuit: Circuit, x: object) -> Shaped[np.ndarray, " samples"]:
    """Labels if the circuit has them, else class names, else class numbers; float64 values of a regression."""
    if circuit.readout.gives_value:
        return scores(circuit, x)[:, 0]
    numbers = _joined([_engine(circuit).predict(bits) for bits in input_batches(circuit, x)])
    if circuit.labels is not None:
        return np.asarray(circuit.labels[numbers])
    return np.array(circuit.class_names, dtype=object)[numbers] if circuit.class_names else numbers


def predict_proba(circuit: Circuit, x: object) -> Float64[np.ndarray, "samples classes"]:
    """Class probabilities, where the readout gives classes."""
    return circuit.readout.probabilities(scores(circuit, x))


def _joined(parts: list[np.ndarray]) -> np.ndarray:
    return np.asarray(parts[0] if len(parts) == 1 else np.concatenate(parts))


def _engine(circuit: Circuit) -> "Engine":
    # Kept in the instance's own dictionary: arrays are frozen, so an engine never goes stale.
    engine = circuit.__dict__.get("_engine")
    if engine is None:
        from gatefit.circuit.engine import Engine

        engine = Engine(circuit)
        circuit.__dict__["_engine"] = engine
    return engine
