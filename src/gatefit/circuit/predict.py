"""From what a user has to what a user wants: raw features or bits in, labels, probabilities or values out.

    bits = encoder(x)      scores = readout(gates(bits))      P(k) = softmax_k(score / temperature)

The gates are run by the engine (``gatefit.backends.engine``), which is fetched by name at the first prediction, so
that circuits can be read, changed and proven without it.
"""

from importlib import import_module
from typing import Any

import numpy as np
from jaxtyping import Bool, Float64, Shaped

from gatefit.circuit.ir import Circuit
from gatefit.circuit.readout import Affine, GroupSum
from gatefit.circuit.simulate import check_bits


def input_bits(circuit: Circuit, x: object) -> Bool[np.ndarray, "samples inputs"]:
    """The circuit's input bits: ``x`` through the encoder if there is one, else ``x`` itself, checked."""
    if circuit.encoder is None:
        return check_bits(circuit, x)
    return check_bits(circuit, circuit.encoder.transform(x))


def scores(circuit: Circuit, x: object) -> Shaped[np.ndarray, "samples classes"]:
    """The readout's scores: int64 (GroupSum), float64 (Affine) or float32 (Linear)."""
    return np.asarray(_engine(circuit).scores(input_bits(circuit, x)))


def predict(circuit: Circuit, x: object) -> Shaped[np.ndarray, " samples"]:
    """Labels if the circuit has them, else class names, else class numbers; float64 values for an Affine readout."""
    if isinstance(circuit.readout, Affine):
        return scores(circuit, x)[:, 0]
    numbers = np.asarray(_engine(circuit).predict(input_bits(circuit, x)))
    if circuit.labels is not None:
        return np.asarray(circuit.labels[numbers])
    return np.array(circuit.class_names, dtype=object)[numbers] if circuit.class_names else numbers


def predict_proba(circuit: Circuit, x: object) -> Float64[np.ndarray, "samples classes"]:
    """Class probabilities, computed without overflow."""
    if isinstance(circuit.readout, Affine):
        raise TypeError("an Affine readout gives a value, not class probabilities; use circuit.predict(x)")
    temperature = circuit.readout.temperature if isinstance(circuit.readout, GroupSum) else 1.0
    values = scores(circuit, x)
    # The difference first: of counts it is exact, and no quotient of it is too large for the exponential.
    powers = np.exp((values - values.max(axis=1, keepdims=True)) / np.float64(temperature))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))


def _engine(circuit: Circuit) -> Any:
    # Kept in the instance's own dictionary: arrays are frozen, so an engine never goes stale.
    engine = circuit.__dict__.get("_engine")
    if engine is None:
        engine = import_module("gatefit.backends.engine").Engine(circuit)
        circuit.__dict__["_engine"] = engine
    return engine
