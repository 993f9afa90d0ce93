"""Categories as one bit each.

bit_i,c = (x_i = c)        for every category c of column i that occurred when the encoder was fitted
"""

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import numpy as np
from jaxtyping import Bool

from gatefit.encoders import specs
from gatefit.encoders.base import Encoder
from gatefit.encoders.codes import CategoryCode, ColumnCode, NumberCode, code_from_spec, fit_categories
from gatefit.encoders.columns import is_missing
from gatefit.encoders.frames import Columns, read_columns
from gatefit.encoders.rules import Rule
from gatefit.encoders.whole import WholeRange, whole_ranges


class CodedColumns(Encoder):
    """Encoders that hold one code per column."""

    takes_missing = True
    _codes: tuple[ColumnCode, ...] = ()

    def _read(self, x: Any) -> Columns:
        return read_columns(x)

    def _become(self, state: tuple[ColumnCode, ...]) -> None:
        self._codes = state

    def _encode(self, frame: Columns, out: Bool[np.ndarray, "samples bits"]) -> None:
        start = 0
        names = self.feature_names
        for feature, code in enumerate(self._codes):
            if code.bits:
                code.encode(frame.read(feature, names[feature]), out[:, start : start + code.bits])
            start += code.bits

    def _ranges(self, frame: Columns) -> tuple[WholeRange, ...]:
        def of(feature: int) -> WholeRange:
            column = frame.read(feature, self.feature_names[feature])
            ranges = whole_ranges(column.numbers()[~column.mask()][:, None])
            return None if ranges is None else ranges[0]

        return tuple(of(i) if isinstance(code, NumberCode) else None for i, code in enumerate(self._codes))

    def _bits(self) -> int:
        return sum(code.bits for code in self._codes)

    def _rules(self) -> list[Rule]:
        return [rule for feature, code in enumerate(self._codes) for rule in code.rules(feature)]

    def _state(self) -> dict[str, Any]:
        return {"columns": [code.to_spec() for code in self._codes]}

    _state_fields: ClassVar[tuple[str, ...]] = ("columns",)

    def _checked_state(self, state: Mapping[str, Any], features: int) -> tuple[ColumnCode, ...]:
        given = specs.sequence(state["columns"], "columns")
        if len(given) != features:
            raise ValueError(f"columns must describe {features} features, got {len(given)}")
        return tuple(code_from_spec(column) for column in given)


class OneHot(CodedColumns):
    """One bit per category of each column, and one for missing values where some were missing.

    A category that was not there at fit makes all bits of its column false, or with ``unseen="error"`` is refused.
    """

    kind = "one-hot"

    def __init__(self, unseen: Literal["ignore", "error"] = "ignore") -> None:
        if unseen not in ("ignore", "error"):
            raise ValueError(f"unseen must be 'ignore' or 'error', got {unseen!r}")
        self.unseen = unseen

    def _learn(self, frame: Columns, names: tuple[str, ...]) -> tuple[ColumnCode, ...]:
        if frame.samples == 0:
            raise ValueError(f"{self!r} cannot be fitted on no samples")
        return tuple(fit_categories(frame.read(i, name)) for i, name in enumerate(names))

    def _encode(self, frame: Columns, out: Bool[np.ndarray, "samples bits"]) -> None:
        if self.unseen == "error":
            for feature, (name, code) in enumerate(zip(self.feature_names, self._codes, strict=True)):
                assert isinstance(code, CategoryCode)
                unseen = code.unseen(frame.read(feature, name))
                if unseen:
                    what = "a missing value" if is_missing(unseen[0]) else repr(unseen[0])
                    raise ValueError(
                        f"column {name!r} holds {what}, which did not occur when the encoder was fitted; fit it on "
                        f"data with every category, or use unseen='ignore'"
                    )
        super()._encode(frame, out)

    def _checked_state(self, state: Mapping[str, Any], features: int) -> tuple[ColumnCode, ...]:
        codes = super()._checked_state(state, features)
        if not all(isinstance(code, CategoryCode) for code in codes):
            raise ValueError("every column of a one-hot encoder must be of type category")
        return codes
