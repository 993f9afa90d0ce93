"""Which features are whole numbers, and between which: what a port of unsigned integers can carry is decided by it.

(low, high)    every value at fit was a whole number, these the least and the largest
()             some value was not
None           not known: the encoder was not fitted on values, or read from a file that does not say
"""

from collections.abc import Iterable
from typing import Any, Final, TypeAlias

import numpy as np
from jaxtyping import Shaped

from gatefit.encoders import specs

WholeRange: TypeAlias = tuple[int, int] | tuple[()] | None
LOWEST: Final = -(2**63)
HIGHEST: Final = 2**64 - 1
"""Beyond these no integer type holds a number, whole or not."""

_ROWS: Final = 2**22
"""Values that are looked at at once: a float matrix is not copied as a whole."""


def whole_ranges(x: Shaped[np.ndarray, "samples features"]) -> tuple[WholeRange, ...] | None:
    """The range of each column of a matrix of numbers or Booleans; None if it has no rows."""
    samples, features = map(int, x.shape)
    if samples == 0:
        return None
    whole = np.ones(features, np.bool_)
    if x.dtype.kind == "f":
        rows = max(1, _ROWS // features)
        for start in range(0, samples, rows):
            part = x[start : start + rows]
            whole &= (part == np.floor(part)).all(axis=0)
            if not whole.any():
                return ((),) * features
    found: list[WholeRange] = []
    for low, high, is_whole in zip(x.min(axis=0).tolist(), x.max(axis=0).tolist(), whole.tolist(), strict=True):
        found.append((int(low), int(high)) if is_whole and LOWEST <= low and high <= HIGHEST else ())
    return tuple(found)


def ranges_to_spec(ranges: Iterable[WholeRange]) -> list[Any]:
    """The ranges as lists fit for JSON."""
    return [None if each is None else list(each) for each in ranges]


def ranges_from_spec(spec: object, features: int) -> tuple[WholeRange, ...]:
    """The ranges that ``ranges_to_spec`` wrote, checked."""
    given = specs.sequence(spec, "whole")
    if len(given) != features:
        raise ValueError(f"whole must have one entry for each of {features} features, got {len(given)}")
    return tuple(_checked(entry) for entry in given)


def _checked(entry: object) -> WholeRange:
    if entry is None:
        return None
    bounds = [specs.integer(value, LOWEST, HIGHEST, "whole") for value in specs.sequence(entry, "whole")]
    if not bounds:
        return ()
    if len(bounds) != 2 or bounds[0] > bounds[1]:
        raise ValueError(f"whole must hold the least and the largest value of a feature, got {bounds}")
    return bounds[0], bounds[1]
