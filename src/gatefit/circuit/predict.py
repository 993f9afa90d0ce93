"""From what a user has to what a user wants: raw features or bits in, labels, probabilities or values out.

    bits = encoder(x)      scores = readout(gates(bits))      P(k) = softmax_k(score / temperature)
    score                  share of rows whose class is the target;   of values R² = 1 - Σ (y - value)² / Σ (y - mean)²

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


def answers(circuit: Circuit, bits: Bool[np.ndarray, "samples inputs"]) -> Float64[np.ndarray, "samples answers"]:
    """Class probabilities of input bits, or the values of a regression in one column."""
    found = _engine(circuit).scores(bits)
    return found if circuit.readout.gives_value else circuit.readout.probabilities(found)


def score(circuit: Circuit, x: object, y: object) -> float:
    """Accuracy of the classes, or R² of the values (0 where the targets are all the same)."""
    targets, predicted = np.asarray(y), predict(circuit, x)
    if targets.shape != predicted.shape:
        raise ValueError(f"y must be one target for each of {len(predicted)} rows, got shape {targets.shape}")
    if circuit.readout.gives_value:
        numbers = targets.astype(np.float64)
        spread = float(np.square(numbers - numbers.mean()).sum()) if len(numbers) else 0.0
        return 1 - float(np.square(numbers - predicted).sum()) / spread if spread > 0 else 0.0
    known = np.arange(circuit.readout.classes) if circuit.labels is None else circuit.labels
    if circuit.labels is None and circuit.class_names and targets.dtype.kind not in "iub":
        known = np.array(circuit.class_names, dtype=object)
    elif circuit.labels is None and circuit.class_names:  # numbers are those of the classes
        order = {name: number for number, name in reversed([*enumerate(circuit.class_names)])}
        predicted = np.array([order[name] for name in predicted], dtype=np.int64)
    among = set(known.tolist())
    if len(targets) and not among & set(targets.tolist()):
        raise ValueError(
            f"no target is a class of this circuit: y holds {_some(targets)}, the classes are {_some(known)}; "
            f"give targets as the model was trained with"
        )
    return float(np.mean(predicted == targets)) if len(targets) else 0.0


def _some(values: np.ndarray) -> str:
    distinct = list(dict.fromkeys(values.tolist()))
    return ", ".join(map(repr, distinct[:4])) + (", …" if len(distinct) > 4 else "")


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
