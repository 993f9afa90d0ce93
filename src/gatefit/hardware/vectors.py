"""Features as the values of a circuit's input port: whole numbers of a fixed number of bits, the first lowest."""

from typing import Any

import numpy as np
from jaxtyping import Int64, Shaped

from gatefit.encoders import Encoder


def feature_matrix(x: Any, encoder: Encoder, bits: int) -> Int64[np.ndarray, "samples features"]:
    """The features as whole numbers; anything that ``bits`` bits do not hold is refused."""
    if isinstance(x, dict):
        x = np.stack([np.asarray(x[name]) for name in encoder.feature_names], axis=1)
    try:
        values = np.asarray(x, dtype=np.float64).reshape(len(x), -1)
    except (TypeError, ValueError):
        raise ValueError("raw inputs must be numbers, and these features are not; use --inputs bits") from None
    if values.shape[1] != encoder.features:
        raise ValueError(f"the encoder reads {encoder.features} features, got {values.shape[1]}")
    wrong = ~((values == np.floor(values)) & (values >= 0) & (values < 2**bits))
    if wrong.any():
        row, column = np.argwhere(wrong)[0]
        raise ValueError(
            f"raw inputs must be whole numbers from 0 to {2**bits - 1}, but feature "
            f"{encoder.feature_names[column]!r} is {values[row, column]:g}; raise --feature-bits, scale the features "
            f"before training, or use --inputs bits"
        )
    return values.astype(np.int64)


def random_features(
    encoder: Encoder, samples: int, bits: int, rng: np.random.Generator
) -> Int64[np.ndarray, "samples features"]:
    """Any values that the port can have."""
    return rng.integers(0, 2 ** min(bits, 62), (samples, encoder.features))


def pack_features(features: Shaped[np.ndarray, "samples features"], bits: int) -> tuple[int, ...]:
    """One number a sample: feature i in bits [i * bits +: bits]."""
    rows = []
    for row in features.tolist():
        digits = "".join(f"{value:0{bits}b}" for value in reversed(row))
        rows.append(int(digits, 2))
    return tuple(rows)
