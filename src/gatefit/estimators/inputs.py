"""What ``fit`` and ``predict`` accept, checked as scikit-learn does, and what becomes of it.

arrays, lists     scikit-learn's own checks; strings stay strings, NaN is a missing value where the encoder allows
data frames       names and number of columns; the encoder reads the columns themselves
"""

import math
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
from jaxtyping import Bool, Float64
from sklearn.utils import assert_all_finite, check_array, check_consistent_length, column_or_1d
from sklearn.utils.validation import validate_data

from gatefit.encoders import Encoder, OneHot, Table
from gatefit.encoders.frames import NamedColumns, is_frame, take
from gatefit.estimators.tails import with_tails

ROWS_AT_ONCE = 1 << 26
"""Bits that are held as bytes at a time while predicting."""


def accepts_missing(encoder: object) -> bool:
    """Whether an encoder, or "auto", has a place for missing values."""
    return not isinstance(encoder, Encoder) or isinstance(encoder, Table | OneHot)


def read_features(estimator: Any, x: Any, *, reset: bool, least: int = 1) -> Any:
    """``x`` as a data frame or two-dimensional array of ``least`` samples or more.

    With ``reset`` it sets the estimator's n_features_in_ and feature_names_in_, else it must agree with them.
    """
    if not reset and _agrees(estimator, x) and x.shape[0] >= least:
        return x
    if is_frame(x) or isinstance(x, NamedColumns):
        validate_data(estimator, x, reset=reset, skip_check_array=True)
        if x.shape[0] < least:
            raise ValueError(f"{type(estimator).__name__} needs {least} samples or more, got {x.shape[0]}")
        return x
    if isinstance(x, list | tuple) and np.asarray(x).dtype.kind == "U":
        x = np.array(x, dtype=object)  # numpy would turn [[1, "a"]] into two strings
    return validate_data(
        estimator,
        x,
        reset=reset,
        dtype=None,
        ensure_all_finite="allow-nan" if accepts_missing(estimator.encoder) else True,
        ensure_min_samples=least,
    )


def _agrees(estimator: Any, x: Any) -> bool:
    """Whether ``x`` is plainly what the estimator was fitted on, so that scikit-learn's checks would say nothing.

    They take many times as long as a circuit does for one row.
    """
    names = getattr(estimator, "feature_names_in_", None)
    pandas = sys.modules.get("pandas")
    if pandas is not None and type(x) is pandas.DataFrame:
        return names is not None and len(x.columns) == len(names) and bool((x.columns.to_numpy() == names).all())
    return (
        type(x) is np.ndarray
        and names is None
        and x.ndim == 2
        and x.shape[1] == estimator.n_features_in_
        and x.dtype.kind in "biuf"
        and (x.dtype.kind != "f" or _sums_up(x))
    )


def _sums_up(x: np.ndarray) -> bool:
    """Whether the sum is finite, and so everything in it; what is not is for scikit-learn to judge."""
    with np.errstate(over="ignore", invalid="ignore"):
        return math.isfinite(float(x.sum(dtype=np.float64)))


def read_targets(estimator: Any, y: Any, x: Any) -> np.ndarray:
    """One target a sample, all there and finite."""
    if y is None:
        raise ValueError(f"{type(estimator).__name__} requires y to be passed, but the target y is None")
    y = column_or_1d(y, warn=True)
    assert_all_finite(y, input_name="y")
    check_consistent_length(x, y)
    return np.asarray(y)


def read_weights(weights: Any, x: Any) -> Float64[np.ndarray, " samples"]:
    """One weight a sample, not negative, not all zero; ones where none are given."""
    samples = x.shape[0]
    if weights is None:
        return np.ones(samples)
    checked = check_array(weights, dtype=np.float64, ensure_2d=False, input_name="sample_weight")
    if checked.shape != (samples,):
        raise ValueError(f"sample_weight must be one number for each of {samples} samples, got shape {checked.shape}")
    if (checked < 0).any():
        raise ValueError(f"sample_weight must not be negative, got {checked.min()}")
    if not checked.any():
        raise ValueError("all of sample_weight is zero; at least one sample needs a weight above zero")
    return np.asarray(checked)


def fit_encoder(encoder: Any, thresholds: Any, x: Any, *, tails: bool = False) -> Encoder:
    """A new encoder with the parameters of the given one, fitted to ``x``; "auto" resolves ``tails`` if told.

    ``Table(thresholds="auto", ...)`` is "auto" but for what its other parameters say.
    """
    if isinstance(encoder, str) and encoder == "auto":
        encoder = Table("auto")
    if type(encoder) is Table and encoder.thresholds == "auto":
        table = Table(**{**encoder.parameters(), "thresholds": thresholds}).fit(x)
        fitted: Encoder = with_tails(table, x) if tails else table
    elif isinstance(encoder, Encoder):
        fitted = type(encoder)(**encoder.parameters()).fit(x)
    else:
        raise ValueError(
            f"encoder must be 'auto' or an encoder such as gatefit.encoders.Thermometer(), got {encoder!r}"
        )
    if fitted.bits < 1:
        raise ValueError("X encodes to no bits at all; give features that vary, or an encoder that makes bits of them")
    return fitted


def encoded_batches(encoder: Encoder, x: Any) -> Iterator[Bool[np.ndarray, "samples bits"]]:
    """The bits of ``x``, some rows at a time."""
    samples = x.shape[0]
    rows = max(1, ROWS_AT_ONCE // encoder.bits)
    for start in range(0, samples, rows):
        part = x if rows >= samples else take(x, slice(start, start + rows))
        yield encoder.transform(part)
