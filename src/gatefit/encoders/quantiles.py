"""Thresholds that split a sample of numbers into equally heavy parts.

    cut i          between the neighbouring distinct values v_i < v_{i+1}, at their midpoint
    threshold k    the cut whose share of samples below it is nearest to k / (count + 1)

A threshold is always between two values that occurred, so no bit is constant on the sample. Where ties leave fewer
than ``count`` different cuts, the heaviest part that still holds different values is halved until there are enough:
of a column that is mostly zero, the rest is resolved too.
"""

import numpy as np
from jaxtyping import Float64, Int64, Num


def quantile_thresholds(values: Num[np.ndarray, " samples"], count: int) -> Float64[np.ndarray, " thresholds"]:
    """At most ``count`` increasing thresholds; all cuts there are if the values have no more than that."""
    distinct, counts = np.unique(values, return_counts=True)
    cuts = distinct.size - 1
    chosen = np.arange(cuts) if cuts <= count else _choose(np.cumsum(counts), count)
    return np.unique(midpoints(distinct[chosen].astype(np.float64), distinct[chosen + 1].astype(np.float64)))


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
