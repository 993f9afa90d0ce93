"""Tables with columns of different kinds, one code a column.

OneHot    categories    x = c         every category c of the column that occurred when the encoder was fitted
Table     numbers       x > t_k       thresholds at quantiles; between all neighbours where there are few values
          categories    x = c         strings, objects, categoricals
          Booleans      x             as they are
both      missing       x missing     one more bit for a column that had missing values
"""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final, Literal

import numpy as np
from jaxtyping import Bool

from gatefit.encoders import specs
from gatefit.encoders.base import Encoder, Rule, WholeRange, whole_ranges
from gatefit.encoders.codes import (
    CategoryCode,
    CodePlan,
    ColumnCode,
    ConstantCode,
    NumberCode,
    code_from_spec,
    drop_constant,
    fit_boolean,
    fit_categories,
    fit_numbers,
)
from gatefit.encoders.frames import Column, Columns, is_missing, read_columns

_PLANS: Final = 16
"""Layouts of tables that are kept ready."""
AUTO_THRESHOLDS: Final = 15
CHOICES: Final = ("thresholds", "category", "bits")
"""How a column can be encoded."""


class CodedColumns(Encoder):
    """Encoders that hold one code per column."""

    takes_missing = True
    _codes: tuple[ColumnCode, ...] = ()
    _total: int = 0

    def _read(self, x: Any) -> Columns:
        return read_columns(x)

    def _become(self, state: tuple[ColumnCode, ...]) -> None:
        self._codes = state
        self._total = sum(code.bits for code in state)
        self._plans: dict[tuple[np.dtype[Any], tuple[int, ...]], CodePlan] = {}

    def _encode(self, frame: Columns, out: Bool[np.ndarray, "samples bits"]) -> None:
        done: set[int] = set()
        for features, matrix in frame.blocks if out.size else ():
            done |= self._code_plan(matrix.dtype, features).run(matrix, out)
        if len(done) == len(self._codes):
            return
        start = 0
        names = self.feature_names
        for feature, code in enumerate(self._codes):
            if code.bits and feature not in done:
                code.encode(frame.read(feature, names[feature]), out[:, start : start + code.bits])
            start += code.bits

    def _ranges(self, frame: Columns) -> tuple[WholeRange, ...]:
        def of(feature: int) -> WholeRange:
            column = frame.read(feature, self.feature_names[feature])
            ranges = whole_ranges(column.numbers()[~column.mask()][:, None])
            return None if ranges is None else ranges[0]

        return tuple(of(i) if isinstance(code, NumberCode) else None for i, code in enumerate(self._codes))

    def _code_plan(self, dtype: np.dtype[Any], features: tuple[int, ...]) -> CodePlan:
        plan = self._plans.get((dtype, features))
        if plan is None:
            if len(self._plans) >= _PLANS:
                self._plans = {}
            self._plans[dtype, features] = plan = CodePlan(self._codes, features, dtype)
        return plan

    def _bits(self) -> int:
        return self._total

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


class Table(CodedColumns):
    """Any data frame or array: numbers to thermometers, categories to one-hot bits, Booleans as they are.

    Missing values (None, NaN, NA, NaT) get a bit of their own in columns that had some at fit. In other columns a
    missing value makes every bit false, as does a category never seen. Columns that did not vary make no bits.
    A column that changes its type between fit and transform is an error, as is one that is gone.

    Arguments:
        thresholds: the most thresholds that a numeric column gets.
        categorical: columns of numbers to be taken as categories, by name or position.
        numeric: columns of categories to be taken as numbers, by name or position; their values must be numbers.
        max_categories: of a column with more categories than this, the most frequent ones are kept.
        columns: how single columns are encoded, by name: "thresholds:16" or "thresholds" (numbers), "category" or
            "category:20" (the 20 most frequent ones), "bits" (true and false, 0 and 1). It matters to ``fit`` alone.

    ``thresholds="auto"`` is 15, and in an estimator what the estimator finds for the table.
    """

    kind = "table"
    fit_parameters = ("columns",)

    def __init__(
        self,
        thresholds: int | str = 15,
        categorical: Sequence[str | int] | None = None,
        numeric: Sequence[str | int] | None = None,
        max_categories: int = 256,
        columns: Mapping[str, str] | None = None,
    ) -> None:
        if thresholds != "auto":
            specs.integer(thresholds, 1, 2**16, "Table(thresholds=...)")
        self.thresholds = thresholds
        self.max_categories = specs.integer(max_categories, 1, 2**24, "Table(max_categories=...)")
        self.categorical = _references(categorical, "categorical")
        self.numeric = _references(numeric, "numeric")
        self.columns = None if columns is None else dict(columns)
        self._choices = {name: column_choice(word, name) for name, word in (columns or {}).items()}

    @property
    def most_thresholds(self) -> int:
        """Thresholds that a column of numbers gets at most, where ``columns`` does not say otherwise."""
        return AUTO_THRESHOLDS if isinstance(self.thresholds, str) else self.thresholds

    def to_spec(self) -> dict[str, Any]:
        """The fitted encoder as a dictionary of numbers, strings, lists and None: exact in JSON."""
        spec = super().to_spec()
        spec["parameters"]["thresholds"] = self.most_thresholds
        return spec

    def _learn(self, frame: Columns, names: tuple[str, ...]) -> tuple[ColumnCode, ...]:
        if frame.samples == 0:
            raise ValueError(f"{self!r} cannot be fitted on no samples")
        categorical = _resolve(self.categorical, names, "categorical")
        numeric = _resolve(self.numeric, names, "numeric")
        if categorical & numeric:
            both = ", ".join(names[i] for i in sorted(categorical & numeric))
            raise ValueError(f"columns given as both categorical and numeric: {both}")
        if unknown := [name for name in self._choices if name not in names]:
            raise ValueError(
                f"columns names what is not there: {', '.join(unknown)}; the columns are {', '.join(names)}"
            )
        return tuple(
            self._fit_column(frame.read(i, name), categorical=i in categorical, numeric=i in numeric)
            for i, name in enumerate(names)
        )

    def _fit_column(self, column: Column, *, categorical: bool, numeric: bool) -> ColumnCode:
        if column.kind == "empty":
            return ConstantCode()
        if column.name in self._choices:
            return self._fit_chosen(column, *self._choices[column.name])
        if categorical or (column.kind == "category" and not numeric):
            return drop_constant(fit_categories(column, self.max_categories), column)
        if column.kind == "boolean" and not numeric:
            return fit_boolean(column)
        return fit_numbers(column, self.most_thresholds)

    def _fit_chosen(self, column: Column, kind: str, count: int | None) -> ColumnCode:
        if kind == "category":
            return drop_constant(fit_categories(column, count or self.max_categories), column)
        if kind == "thresholds":
            return fit_numbers(column, count or self.most_thresholds)
        values = column.numbers()
        present = values[~column.mask()]
        if wrong := [value for value in np.unique(present).tolist() if value not in (0, 1)]:
            raise ValueError(f"column {column.name!r} as bits needs 0 and 1 or true and false, got {wrong[0]:g}")
        return fit_boolean(Column(column.name, "boolean", values == 1, column.mask()))


def column_choice(word: object, name: str) -> tuple[str, int | None]:
    """How a column is to be encoded, and in how many bits: "thresholds:16" as ("thresholds", 16)."""
    kind, _, number = word.partition(":") if isinstance(word, str) else ("", "", "")
    kind = {"bit": "bits", "categories": "category", "threshold": "thresholds"}.get(kind, kind)
    count = int(number) if number.isascii() and number.isdigit() else None
    counted = kind in ("thresholds", "category")
    if kind not in CHOICES or (number and not (counted and count)) or (str(word).endswith(":")):
        raise ValueError(f"column {name!r} can be {', '.join(CHOICES)}, thresholds:N or category:N; got {word!r}")
    if count is not None:
        specs.integer(count, 1, 2**16, f"column {name!r}: {kind}")
    return kind, count


def _references(columns: Sequence[str | int] | None, argument: str) -> tuple[str | int, ...] | None:
    if columns is None:
        return None
    if not isinstance(columns, list | tuple) or not all(
        isinstance(c, str | int) and not isinstance(c, bool) for c in columns
    ):
        raise TypeError(f"{argument} must be a list of column names or positions, got {columns!r}")
    return tuple(columns)


def _resolve(columns: tuple[str | int, ...] | None, names: tuple[str, ...], argument: str) -> set[int]:
    position = {name: i for i, name in enumerate(names)}
    found = {position.get(c, -1) if isinstance(c, str) else c for c in columns or ()}
    if not all(0 <= i < len(names) for i in found):
        raise ValueError(f"{argument} names columns that are not there: {columns}; the columns are {', '.join(names)}")
    return found
