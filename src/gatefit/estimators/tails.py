"""Thresholds in the tails of a column: where a few samples of extreme x decide how well extreme y are predicted.

    quantiles    at k / (count + 1): the outermost parts hold 1 / (count + 1) of the samples each
    tails        the outermost parts halved, again and again, until one would hold fewer than ``LEAST`` samples

A class hardly depends on how far out a sample lies; a value may grow with it without bound. With y = exp(2 x) and x
normal, most of the variance of y lies above the highest of fifteen quantiles, where no bit could tell samples apart.
"""

from typing import Any, Final

import numpy as np
from jaxtyping import Float64, Num

from gatefit.encoders import Table, encoder_from_spec
from gatefit.encoders.frames import read_columns
from gatefit.encoders.quantiles import midpoints

LEAST: Final = 8
"""Samples beyond the outermost threshold."""
HALVINGS: Final = 4
"""How often each tail is halved at most."""


def with_tails(encoder: Table, x: Any) -> Table:
    """The encoder, fitted to ``x``, with thresholds added in the tails of columns that have more values than cuts."""
    spec, frame = encoder.to_spec(), read_columns(x)
    for i, (column, name) in enumerate(zip(spec["state"]["columns"], encoder.feature_names, strict=True)):
        chosen = name in (encoder.columns or {})
        if column["type"] == "number" and len(column["thresholds"]) >= encoder.most_thresholds and not chosen:
            numbers = frame.read(i, name).numbers()
            added = tail_thresholds(numbers[~np.isnan(numbers)], np.array(column["thresholds"]))
            column["thresholds"] = sorted({*column["thresholds"], *added.tolist()})
    most = max(len(column.get("thresholds", ())) for column in spec["state"]["columns"])
    spec["parameters"]["thresholds"] = max(encoder.most_thresholds, most)
    fitted = encoder_from_spec(spec)
    assert isinstance(fitted, Table)
    return fitted


def tail_thresholds(
    values: Num[np.ndarray, " samples"], thresholds: Float64[np.ndarray, " thresholds"]
) -> Float64[np.ndarray, " added"]:
    """Cuts between neighbouring values that halve what lies beyond the last threshold, on either side."""
    distinct, counts = np.unique(values, return_counts=True)
    below = np.cumsum(counts)[:-1]  # samples below each cut between neighbours
    if not len(below):
        return np.empty(0)
    cuts = midpoints(distinct[:-1].astype(np.float64), distinct[1:].astype(np.float64))
    added = []
    for beyond, outermost in ((below, thresholds[0]), (len(values) - below, thresholds[-1])):
        part = int((values <= outermost).sum() if beyond is below else (values > outermost).sum())
        for _ in range(HALVINGS):
            part //= 2
            nearest = int(np.argmin(np.abs(beyond - part)))
            if part < LEAST or beyond[nearest] < LEAST:
                break
            added.append(cuts[nearest])
    return np.unique(added)
