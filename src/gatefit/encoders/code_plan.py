"""Many columns at once: what ``ColumnCode.encode`` does column by column, in three operations on a matrix.

    number     x > t_k                        boolean    x > 1/2, for an x that is 0, 1 or missing
    missing    x is NaN                       constant   no bits

One comparison of gathered features with the thresholds of all bits serves every number and Boolean, so that a single
row costs microseconds however many columns it has.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Bool, Num, Shaped

from gatefit.encoders.codes import BooleanCode, ColumnCode, ConstantCode, NumberCode
from gatefit.encoders.threshold import compare_gathered, round_down


class CodePlan:
    """The codes of some columns of a table, made ready for matrices that hold them in one dtype.

    Arguments:
        codes: the codes of all columns, whose bits lie side by side in this order.
        features: the numbers of the columns that a matrix holds, in its order.
        dtype: the matrices'.
    """

    def __init__(self, codes: Sequence[ColumnCode], features: Sequence[int], dtype: np.dtype[Any]) -> None:
        starts = np.cumsum([0, *(code.bits for code in codes)])
        gather: list[int] = []
        thresholds: list[float] = []
        places: list[int] = []
        missing: list[int] = []
        self._booleans: list[int] = []
        self._served: set[int] = set()
        for column, feature in enumerate(features):
            code = codes[feature]
            if not isinstance(code, NumberCode | BooleanCode | ConstantCode):
                continue
            self._served.add(feature)
            if isinstance(code, BooleanCode):
                self._booleans.append(column)
            thresholds += code.thresholds if isinstance(code, NumberCode) else [0.5] * isinstance(code, BooleanCode)
            if code.missing:
                missing.append(len(thresholds))
                thresholds.append(0.0)  # its place in the row of bits; compared with, then written over
            gather += [column] * code.bits
            places += range(starts[feature], starts[feature + 1])
        self._gather = np.array(gather, dtype=np.int64)
        bounds_dtype = np.dtype(np.uint8) if dtype == np.bool_ else dtype
        self._bounds, self._always = round_down(np.array(thresholds, dtype=np.float64)[None], bounds_dtype)
        self._missing = np.array(missing, dtype=np.int64)
        self._missing_columns = self._gather[self._missing]
        self._places = None if places == list(range(starts[-1])) else np.array(places, dtype=np.int64)

    def run(self, matrix: Shaped[np.ndarray, "samples some"], out: Bool[np.ndarray, "samples bits"]) -> set[int]:
        """Write the bits of the columns that this plan serves, and say which; none if one of them holds wrong values.

        Those are for the column's own code to refuse.
        """
        x = matrix.view(np.uint8) if matrix.dtype == np.bool_ else matrix
        if self._booleans and not _are_bits(x[:, self._booleans]):
            return set()
        if self._gather.size == 0:
            return self._served
        bits = out if self._places is None else np.empty((len(x), self._gather.size), np.bool_)
        compare_gathered(x, self._gather, self._bounds, self._always, bits)
        if self._missing.size:
            bits[:, self._missing] = np.isnan(x[:, self._missing_columns]) if x.dtype.kind == "f" else False
        if self._places is not None:
            out[:, self._places] = bits
        return self._served


def _are_bits(values: Num[np.ndarray, "samples booleans"]) -> bool:
    allowed = (values == 0) | (values == 1)
    return bool(allowed.all() or (values.dtype.kind == "f" and (allowed | np.isnan(values)).all()))
