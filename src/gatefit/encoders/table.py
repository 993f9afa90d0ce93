"""Tables with columns of different kinds.

numbers       x > t_k       thresholds at quantiles; between all neighbours where there are few different values
categories    x = c         strings, objects, pandas' and polars' categoricals
Booleans      x             as they are
missing       x missing     one more bit for a column that had missing values
"""

from collections.abc import Sequence

from gatefit.encoders import specs
from gatefit.encoders.codes import ColumnCode, ConstantCode, drop_constant, fit_boolean, fit_categories, fit_numbers
from gatefit.encoders.columns import Column
from gatefit.encoders.frames import Columns
from gatefit.encoders.onehot import CodedColumns


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
    """

    kind = "table"

    def __init__(
        self,
        thresholds: int = 15,
        categorical: Sequence[str | int] | None = None,
        numeric: Sequence[str | int] | None = None,
        max_categories: int = 256,
    ) -> None:
        self.thresholds = specs.integer(thresholds, 1, 2**16, "Table(thresholds=...)")
        self.max_categories = specs.integer(max_categories, 1, 2**24, "Table(max_categories=...)")
        self.categorical = _references(categorical, "categorical")
        self.numeric = _references(numeric, "numeric")

    def _learn(self, frame: Columns, names: tuple[str, ...]) -> tuple[ColumnCode, ...]:
        if frame.samples == 0:
            raise ValueError(f"{self!r} cannot be fitted on no samples")
        categorical = _resolve(self.categorical, names, "categorical")
        numeric = _resolve(self.numeric, names, "numeric")
        if categorical & numeric:
            both = ", ".join(names[i] for i in sorted(categorical & numeric))
            raise ValueError(f"columns given as both categorical and numeric: {both}")
        return tuple(
            self._fit_column(frame.read(i, name), categorical=i in categorical, numeric=i in numeric)
            for i, name in enumerate(names)
        )

    def _fit_column(self, column: Column, *, categorical: bool, numeric: bool) -> ColumnCode:
        if column.kind == "empty":
            return ConstantCode()
        if categorical or (column.kind == "category" and not numeric):
            return drop_constant(fit_categories(column, self.max_categories), column)
        if column.kind == "boolean" and not numeric:
            return fit_boolean(column)
        return fit_numbers(column, self.thresholds)


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
