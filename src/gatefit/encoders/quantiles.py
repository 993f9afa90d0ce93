"""Thresholds that split a sample of numbers into equally heavy parts.

    cut i          between the neighbouring distinct values v_i < v_{i+1}, at their midpoint
    threshold k    the cut whose share of samples below it is nearest to k / (count + 1)

A threshold is always between two values that occurred, so no bit is constant on the sample. Where ties leave fewer
than ``count`` different cuts, the heaviest part that still holds different values is halved until there are enough:
of a column that is mostly zero, the rest is resolved too.
"""

import math
from typing import Final

import numpy as np
from jaxtyping import Float64, Int64, Num

LARGEST_EXACT: Final = 2**53
"""Up to here every whole number is a float."""


def quantile_thresholds(
    values: Num[np.ndarray, " samples"], count: int, name: str = "x"
) -> Float64[np.ndarray, " thresholds"]:
    """At most ``count`` increasing thresholds; all cuts there are if the column ``name`` has no more than that."""
    if values.dtype == np.uint8:  # pixels: as many as fifty million of them
        counts = np.bincount(values, minlength=256)
        distinct = np.flatnonzero(counts).astype(np.uint8)
        counts = counts[distinct]
    else:
        distinct, counts = np.unique(values, return_counts=True)
    cuts = distinct.size - 1
    chosen = np.arange(cuts) if cuts <= count else _choose(np.cumsum(counts), count)
    if distinct.dtype.kind in "iu" and distinct.size and max(-int(distinct[0]), int(distinct[-1])) > LARGEST_EXACT:
        pairs = zip(distinct[chosen].tolist(), distinct[chosen + 1].tolist(), strict=True)
        return np.unique(np.array([_between(low, high, name) for low, high in pairs]))
    return np.unique(midpoints(distinct[chosen].astype(np.float64), distinct[chosen + 1].astype(np.float64)))


def _between(low: int, high: int, name: str) -> float:
    """A float t with low <= t < high, half-way if that is one; beyond 2^53 not every pair of numbers has one."""
    for middle in (float((low + high) // 2), float(low), float(high - 1)):
        for level in (middle, math.nextafter(middle, -math.inf)):
            if low <= int(level) and int(level) < high:
                return level
    raise ValueError(
        f"column {name!r} holds the whole numbers {low} and {high}, beyond 2^53, where no threshold (a float) lies "
        f"between them; subtract an offset, so that the values are smaller, or take the column as categories"
    )


def midpoints(low: Float64[np.ndarray, " cuts"], high: Float64[np.ndarray, " cuts"]) -> Float64[np.ndarray, " cuts"]:
    """Numbers t with low <= t < high, half-way as far as floats allow."""
    middle = 0.5 * low + 0.5 * high  # not 0.5 * (low + high): the sum may overflow
    return np.where((low <= middle) & (middle < high), middle, low)


def _choose(below: Int64[np.ndarray, " distinct"], count: int) -> Int64[np.ndarray, " count"]:
    """The indices of ``count`` of the cuts; ``below[i]`` samples lie below cut i, the last entry is all of them."""
    total = int(below[-1])
    targets = total * np.arange(1, count + 1) / (count + 1)
    right = np.clip(np.searchsorted(below, targets), 1, below.size - 2)
    nearest = np.where(targets - below[right - 1] <= below[right] - targets, right - 1, right)
    chosen = sorted(set(nearest.tolist()))
    while len(chosen) < count:
        chosen = sorted([*chosen, _halve_heaviest(below, chosen)])
    return np.array(chosen)


def _halve_heaviest(below: Int64[np.ndarray, " distinct"], chosen: list[int]) -> int:
    """The cut that best halves the heaviest part with a cut left in it."""
    parts = zip([-1, *chosen], [*chosen, below.size - 1], strict=True)
    weight = {(a, b): below[b] - (below[a] if a >= 0 else 0) for a, b in parts if b - a > 1}
    first, last = max(weight, key=lambda part: weight[part])
    inside = below[first + 1 : last]
    middle = 0.5 * (below[last] + (below[first] if first >= 0 else 0))
    return first + 1 + int(np.argmin(np.abs(inside - middle)))
