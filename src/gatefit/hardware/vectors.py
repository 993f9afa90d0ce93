"""Features as the values of a circuit's input port: whole numbers of a fixed number of bits, the first lowest."""

import math
from typing import Any

import numpy as np
from jaxtyping import Int64, Integer, Shaped

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


def edge_values(encoder: Encoder, bits: int) -> list[list[int]]:
    """For each feature the values on both sides of every comparison, and the port's own ends."""
    top = 2**bits - 1
    found: list[set[int]] = [{0, top} for _ in range(encoder.features)]
    for rule in encoder.rules:
        if rule.test == ">":
            bound = math.floor(float(rule.value or 0))
            found[rule.feature] |= {bound, bound + 1}
        else:
            value = 1 if rule.test == "bit" else int(rule.value or 0)
            found[rule.feature] |= {value - 1, value, value + 1}
    return [sorted(value for value in values if 0 <= value <= top) for values in found]


def edge_features(
    encoder: Encoder, bits: int, rng: np.random.Generator, samples: int = 0
) -> Integer[np.ndarray, "samples features"]:
    """Rows in which every edge value of every feature occurs, others beside it by chance; at least ``samples``.

    A comparison with any other bound answers differently on one of them.
    """
    edges = edge_values(encoder, bits)
    rows = max(samples, *map(len, edges))
    table = np.empty((rows, encoder.features), dtype=np.uint64 if bits > 63 else np.int64)
    for feature, values in enumerate(edges):
        # Each value once, then any of them: enough rows for the longest list.
        rest = rng.integers(0, len(values), rows - len(values)).tolist()
        column = np.array([*values, *(values[i] for i in rest)], dtype=table.dtype)
        table[:, feature] = rng.permutation(column)
    return table


def pack_features(features: Shaped[np.ndarray, "samples features"], bits: int) -> tuple[int, ...]:
    """One number a sample: feature i in bits [i * bits +: bits]."""
    rows = []
    for row in features.tolist():
        digits = "".join(f"{value:0{bits}b}" for value in reversed(row))
        rows.append(int(digits, 2))
    return tuple(rows)
