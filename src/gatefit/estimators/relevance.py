"""Which features of a large table say anything about the class, alone or beside another one.

    G(S)       = 2 Σ n log(n N / (n_S n_k))      the G statistic of the bits S against the class, over all cells
    G(i | j)   = G({i, j}) - G({j})              what bit i adds to bit j: χ² with 2 (classes - 1) degrees if nothing

A feature is relevant if for one of its bits i and any bit j this exceeds what chance gives once in twenty tables, all
pairs together. Conjunctions and exclusive ors of two bits are found; what takes three bits to see is not, so some gates
go on reading everything. With few samples, chance hides what is there: then nothing is preferred.
"""

from typing import Final

import numpy as np
from jaxtyping import Bool, Float64, Int64
from scipy.stats import chi2

from gatefit.encoders import Encoder

LEAST_SAMPLES: Final = 10_000
"""Samples from which features are told apart."""
MOST_BITS: Final = 1_500
"""Bits up to which all pairs are counted."""
CHANCE: Final = 0.05
MOST_ROWS: Final = 20_000
MOST_WORK: Final = 2e10
"""Rows that are counted, and additions: rows times the square of the bits."""


def preferred_bits(
    encoder: Encoder,
    bits: Bool[np.ndarray, "samples bits"],
    classes: Int64[np.ndarray, " samples"],
    rows: Int64[np.ndarray, " rows"],
) -> Int64[np.ndarray, " preferred"] | None:
    """The bits of features that are relevant in ``rows``, if these are some of all; None if none is to be preferred."""
    if len(rows) < LEAST_SAMPLES or bits.shape[1] > MOST_BITS:
        return None
    most = min(MOST_ROWS, int(MOST_WORK / bits.shape[1] ** 2), len(rows))
    rows = rows[np.linspace(0, len(rows) - 1, most).astype(np.int64)]
    features = np.array([rule.feature for rule in encoder.rules])
    chosen = np.flatnonzero(relevant_features(bits[rows], features, classes[rows])[features])
    return chosen if 2 <= len(chosen) < len(features) else None


def relevant_features(
    bits: Bool[np.ndarray, "samples bits"],
    features: Int64[np.ndarray, " bits"],
    classes: Int64[np.ndarray, " samples"],
) -> Bool[np.ndarray, " features"]:
    """Whether each feature is relevant; ``features`` says which one each bit is of."""
    added = added_information(bits, classes)
    other = features[:, None] != features
    degrees = 2 * (len(np.unique(classes)) - 1)
    threshold = chi2.isf(CHANCE / max(1, other.sum()), degrees)
    relevant = np.zeros(features.max() + 1, dtype=np.bool_)
    relevant[features[((added > threshold) & other).any(axis=1)]] = True
    return relevant


def added_information(
    bits: Bool[np.ndarray, "samples bits"], classes: Int64[np.ndarray, " samples"]
) -> Float64[np.ndarray, "bits bits"]:
    """G(i | j) for every i and j."""
    parts = [bits[classes == number].astype(np.float32) for number in np.unique(classes)]
    # Whole numbers below 2^24: exact in float32.
    tables = [_cells((part.T @ part).astype(np.float64), len(part)) for part in parts]
    whole = np.sum(tables, axis=0)
    sizes = _x_log_x(np.array([len(part) for part in parts], dtype=np.float64)).sum()
    constant = _x_log_x(np.array(float(len(bits)))) - sizes
    joint = sum(_x_log_x(table).sum(axis=0) for table in tables) - _x_log_x(whole).sum(axis=0) + constant
    alone = sum(_alone(table, len(part)) for table, part in zip(tables, parts, strict=True))
    alone = alone - _alone(whole, len(bits)) + constant
    return np.asarray(2 * (joint - alone))


def _cells(both: Float64[np.ndarray, "bits bits"], samples: int) -> Float64[np.ndarray, "4 bits bits"]:
    """Samples with both bits, with one, with the other, and with none, from those with both."""
    first, second = np.diag(both)[:, None], np.diag(both)[None, :]
    return np.stack([both, first - both, second - both, samples - first - second + both])


def _alone(table: Float64[np.ndarray, "4 bits bits"], samples: int) -> Float64[np.ndarray, " bits"]:
    """Σ n log n over the two values of each bit."""
    ones = np.diag(table[0])
    return np.asarray(_x_log_x(ones) + _x_log_x(samples - ones))


def _x_log_x(x: Float64[np.ndarray, "*shape"]) -> Float64[np.ndarray, "*shape"]:
    return np.asarray(x * np.log(np.maximum(x, 1.0)))
