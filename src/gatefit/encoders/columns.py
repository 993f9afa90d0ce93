"""One column of a table, whatever library it came from, as one of four kinds.

    number     1-D numeric array, NaN where missing
    boolean    1-D bool array and a mask of what is missing
    category   list of strings, numbers or Booleans, as given
    empty      nothing but missing values

pandas and polars are never imported: an object can only be theirs if somebody imported them already.
"""

import datetime
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, Final, Literal

import numpy as np
from jaxtyping import Bool, Num

from gatefit.encoders.quantiles import LARGEST_EXACT
from gatefit.encoders.rules import Category

Kind = Literal["number", "boolean", "category", "empty"]

HOLDS: Final[dict[str, str]] = {
    "number": "numbers",
    "boolean": "Booleans",
    "category": "categories",
    "empty": "missing values only",
}
_MISSING_TYPES: Final = frozenset({"NoneType", "NAType", "NaTType"})


@dataclass(frozen=True, eq=False)
class Column:
    """The values of one column and what kind of values they are."""

    name: str
    kind: Kind
    values: Any
    missing: Bool[np.ndarray, " samples"] | None = None
    raw: list[Any] | None = None
    """The objects that numbers or Booleans were read from, which floats may not hold exactly."""

    def numbers(self) -> Num[np.ndarray, " samples"]:
        """The values as numbers, NaN where missing; a TypeError if they are anything but numbers or Booleans."""
        if self.kind == "number":
            self._check_exact()
            return np.asarray(self.values)
        if self.kind == "empty":
            return np.full(len(self.values), np.nan)
        if self.kind == "category":
            column = _from_objects(self.values, self.name)
            if column.kind != "category":
                return column.numbers()
            example = next(value for value in self.values if isinstance(value, str) or not is_missing(value))
            raise TypeError(f"column {self.name!r} needs numbers, got {example!r}; convert it to numbers first")
        if self.missing is None or not self.missing.any():
            return self.values.astype(np.uint8)  # type: ignore[no-any-return]
        return np.where(self.missing, np.nan, self.values)

    def _check_exact(self) -> None:
        """Refuse whole numbers that were turned into other floats, because some values beside them are missing."""
        for i in np.flatnonzero(np.abs(self.values) >= LARGEST_EXACT).tolist() if self.raw is not None else ():
            value = self.raw[i] if self.raw is not None else None
            if isinstance(value, int | np.integer) and int(value) != int(self.values[i]):
                raise ValueError(
                    f"column {self.name!r} holds {value}, a whole number beyond 2^53 that is no float, among objects "
                    f"or beside missing values; subtract an offset, or fill in what is missing and give it as int64"
                )

    def mask(self) -> Bool[np.ndarray, " samples"]:
        """Which values are missing."""
        if self.kind == "empty":
            return np.ones(len(self.values), np.bool_)
        if self.missing is not None:
            return self.missing
        if self.kind == "category":
            return np.fromiter((is_missing(value) for value in self.values), np.bool_, len(self.values))
        values = np.asarray(self.values)
        return np.isnan(values) if values.dtype.kind == "f" else np.zeros(values.shape, np.bool_)

    def objects(self) -> list[Any]:
        """The values as Python objects, missing ones as None or as they were given."""
        if self.kind == "empty":
            return [None] * len(self.values)
        if self.kind == "category" or self.raw is not None:
            return list(self.values if self.raw is None else self.raw)
        values = np.asarray(self.values).tolist()
        for i in np.flatnonzero(self.mask()).tolist():
            values[i] = None
        return values  # type: ignore[no-any-return]


def is_missing(value: Any) -> bool:
    """Whether one object stands for a missing value: None, NaN, pandas' NA and NaT."""
    if isinstance(value, float | np.floating):
        return bool(np.isnan(value))
    return type(value).__name__ in _MISSING_TYPES


def canonical(value: Any, name: str) -> Category:
    """A category as a plain str, bool, int or float; whole floats as int, so that 3 and 3.0 are one category."""
    if isinstance(value, str):
        return str(value)
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, int | np.integer):
        return int(value)
    if isinstance(value, float | np.floating) and np.isfinite(value):
        return int(value) if float(value).is_integer() else float(value)
    raise TypeError(
        f"column {name!r} holds {value!r} of type {type(value).__name__}; categories must be strings, finite numbers "
        f"or Booleans: convert the column first"
    )


def read_column(raw: Any, name: str) -> Column:
    """The column ``raw``: a pandas or polars series, a numpy array or a sequence."""
    for module, reader in _SERIES_READERS.items():
        library = sys.modules.get(module)
        if library is not None and isinstance(raw, library.Series):
            return reader(raw, name, library)
    return _from_array(raw if isinstance(raw, np.ndarray) else _as_array(raw), name)


def _as_array(raw: Any) -> np.ndarray:
    # Asking numpy to guess would turn [1, "a"] into two strings; objects keep their own types.
    values = list(raw)
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def _from_array(array: np.ndarray, name: str) -> Column:
    if array.ndim != 1:
        raise ValueError(f"column {name!r} must be one-dimensional, got shape {array.shape}")
    kind = array.dtype.kind
    if kind in "iuf":
        return _number(array, name)
    if kind == "b":
        return Column(name, "boolean", array)
    if kind in "OU":
        return _from_objects(array.tolist(), name)
    raise _unreadable(name, array.dtype)


def _from_pandas(series: Any, name: str, pandas: Any) -> Column:
    dtype = series.dtype
    kind = dtype.kind
    if isinstance(dtype, pandas.CategoricalDtype):
        return _category(series.tolist(), name)
    if isinstance(dtype, np.dtype) and kind in "biuf":
        return _from_array(series.to_numpy(), name)
    if kind in "iu" and not series.isna().any():
        return _number(series.to_numpy(dtype=np.uint64 if kind == "u" else np.int64), name)
    if kind in "iuf":
        return _with_gaps(series.to_numpy(dtype=np.float64, na_value=np.nan), name, series.tolist)
    if kind == "b":
        missing = series.isna().to_numpy(dtype=np.bool_)
        return _boolean(series.to_numpy(dtype=np.bool_, na_value=False), missing, name)
    if kind in "Mmc" and not series.isna().all():
        raise _unreadable(name, dtype)
    return _from_objects(series.tolist(), name)


def _from_polars(series: Any, name: str, polars: Any) -> Column:
    dtype = series.dtype
    if dtype.is_numeric():
        values = series.cast(polars.Float64).to_numpy() if dtype.is_decimal() else series.to_numpy()
        return _with_gaps(values, name, series.to_list) if dtype.is_integer() else _number(values, name)
    if dtype == polars.Boolean:
        return _boolean(series.fill_null(False).to_numpy(), series.is_null().to_numpy(), name)
    if dtype.is_temporal() or dtype.is_nested():
        raise _unreadable(name, dtype)
    if dtype == polars.Object:
        return _from_objects(series.to_list(), name)
    return _category(series.to_list(), name)


_SERIES_READERS: Final[dict[str, Callable[[Any, str, Any], Column]]] = {
    "pandas": _from_pandas,
    "polars": _from_polars,
}


def _from_objects(values: list[Any], name: str) -> Column:
    types = set(map(type, values))
    absent = {kind for kind in types if kind.__name__ in _MISSING_TYPES}
    present = types - absent
    if any(issubclass(kind, datetime.date | datetime.time | datetime.timedelta | np.datetime64) for kind in present):
        raise _unreadable(name, "date or time")
    if not present or not all(issubclass(kind, int | float | np.number | np.bool_ | Decimal) for kind in present):
        return _category(values, name)
    numbers = np.array([np.nan if type(v) in absent else v for v in values] if absent else values, dtype=np.float64)
    missing = np.isnan(numbers)
    booleans = {kind for kind in present if issubclass(kind, bool | np.bool_)}
    # Floats beside Booleans are allowed if they are all NaN: pandas marks what is missing so.
    if booleans and all(type(values[i]) in booleans for i in np.flatnonzero(~missing).tolist()):
        return replace(_boolean(numbers == 1, missing, name), raw=values)
    return replace(_number(numbers, name), raw=values)


def _number(values: np.ndarray, name: str) -> Column:
    empty = values.dtype.kind == "f" and values.size > 0 and bool(np.isnan(values).all())
    return Column(name, "empty" if empty else "number", values)


def _with_gaps(values: np.ndarray, name: str, objects: Callable[[], list[Any]]) -> Column:
    """Numbers that may be floats only because some are missing; they keep the objects where floats may not be exact."""
    column = _number(values, name)
    inexact = values.dtype.kind == "f" and bool((np.abs(values) >= LARGEST_EXACT).any())
    return replace(column, raw=objects()) if inexact else column


def _boolean(values: np.ndarray, missing: np.ndarray, name: str) -> Column:
    return Column(name, "empty" if missing.size and missing.all() else "boolean", values, missing)


def _category(values: list[Any], name: str) -> Column:
    return Column(name, "empty" if values and all(map(is_missing, values)) else "category", values)


def _unreadable(name: str, dtype: object) -> TypeError:
    return TypeError(
        f"column {name!r} holds {dtype} values, which have no encoding; convert it to numbers first "
        f"(for a date: its year, month, weekday, or days since some date)"
    )
