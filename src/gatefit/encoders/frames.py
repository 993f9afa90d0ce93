"""What ``fit`` and ``transform`` accept, brought into two forms: a numeric matrix, or columns of any kind.

    Matrix     2-D array of numbers            threshold, thermometer, identity
    Columns    one raw column per feature      one-hot, table

Both know their column names, if there are any, and can be aligned with what an encoder was fitted on. A column,
whatever library it came from, is one of four kinds:

    number     1-D numeric array, NaN where missing
    boolean    1-D bool array and a mask of what is missing
    category   list of strings, numbers or Booleans, as given
    empty      nothing but missing values

narwhals reads data frames and series of every library in polars' own terms. Polars' are therefore read without it, and
what numpy holds of pandas' too: to wrap a column takes longer than to encode a row of it.
"""

import datetime
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, Final, Literal, TypeAlias

import numpy as np
from jaxtyping import Bool, Num, Shaped

from gatefit.encoders.quantiles import LARGEST_EXACT
from gatefit.encoders.specs import Category

Kind = Literal["number", "boolean", "category", "empty"]

HOLDS: Final[dict[str, str]] = {
    "number": "numbers",
    "boolean": "Booleans",
    "category": "categories",
    "empty": "missing values only",
}
_MISSING_TYPES: Final = frozenset({"NoneType", "NAType", "NaTType"})
_WORTH_A_BLOCK: Final = 8
"""Columns of a pandas frame that are read faster as one matrix than one by one."""


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
    """The column ``raw``: a numpy array, a series of any data frame library, or a sequence."""
    if isinstance(raw, np.ndarray):
        return _from_array(raw, name)
    if isinstance(raw, list | tuple):
        return _from_array(_as_array(raw), name)
    import narwhals as nw

    if isinstance(raw, nw.Series) or nw.dependencies.is_polars_series(raw):
        return _from_series(raw, name)
    if nw.dependencies.is_pandas_series(raw):
        if isinstance(raw.dtype, np.dtype) and raw.dtype.kind in "biufcO":
            return _from_array(raw.to_numpy(), name)
        if raw.dtype.name in ("str", "string"):
            return _category(raw.tolist(), name)
    series = nw.from_native(raw, series_only=True, pass_through=True)
    return _from_series(series, name) if isinstance(series, nw.Series) else _from_array(_as_array(raw), name)


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


def _from_series(series: Any, name: str) -> Column:
    """A column from a polars series, or from a narwhals series: what is called here is called the same in both."""
    dtype = series.dtype
    if dtype.is_integer():
        return _with_gaps(series.to_numpy(), name, series.to_list)
    if dtype.is_float():
        return _number(series.to_numpy(), name)
    if dtype.is_decimal():
        return _number(np.array(series.to_list(), dtype=np.float64), name)
    kind = str(dtype)
    if kind == "Boolean":
        return _boolean(series.fill_null(False).to_numpy(), series.is_null().to_numpy(), name)
    if (dtype.is_temporal() or dtype.is_nested()) and not series.is_null().all():
        raise _unreadable(name, series.to_native().dtype if hasattr(series, "to_native") else dtype)
    # What a library has no type for are objects; of strings and categoricals it knows that they are no numbers.
    return (_from_objects if kind in ("Object", "Unknown") else _category)(series.to_list(), name)


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


@dataclass
class Columns:
    """Raw columns, each still in the form its library gave it."""

    raw: Sequence[Any]
    names: tuple[str, ...] | None
    blocks: Sequence[tuple[tuple[int, ...], Shaped[np.ndarray, "samples some"]]] = ()
    """Columns of numbers or Booleans of one type as matrices, with the columns' positions: the fast way to encode."""

    @property
    def samples(self) -> int:
        """How many rows."""
        return len(self.raw[0]) if self.raw else 0

    def __len__(self) -> int:
        return len(self.raw)

    def aligned(self, features: int, names: tuple[str, ...] | None, encoder: object) -> "Columns":
        """The columns that ``encoder`` was fitted on, in its order."""
        order = _order(self, features, names, encoder)
        if order is None:
            return self
        place = {old: new for new, old in enumerate(order)}
        blocks = []
        for held, matrix in self.blocks:
            kept = [i for i, feature in enumerate(held) if feature in place]
            blocks.append((tuple(place[held[i]] for i in kept), matrix[:, kept]))
        return Columns([self.raw[i] for i in order], names, blocks)

    def read(self, feature: int, name: str) -> Column:
        """One column, its kind found out."""
        return read_column(self.raw[feature], name)


@dataclass
class Matrix:
    """Numbers; Booleans are kept as bool."""

    values: Shaped[np.ndarray, "samples features"]
    names: tuple[str, ...] | None

    @property
    def samples(self) -> int:
        """How many rows."""
        return int(self.values.shape[0])

    def __len__(self) -> int:
        return int(self.values.shape[1])

    def aligned(self, features: int, names: tuple[str, ...] | None, encoder: object) -> "Matrix":
        """The columns that ``encoder`` was fitted on, in its order."""
        order = _order(self, features, names, encoder)
        return self if order is None else Matrix(self.values[:, order], names)


Frame: TypeAlias = Columns | Matrix
"""Samples by features, with the features' names if they have any."""


class NamedColumns(Mapping[str, Any]):
    """Columns by name with a number of rows: a data frame for where no library of data frames is installed.

    ``columns[name]`` is a column, ``columns.iloc[rows]`` some of the rows.
    """

    def __init__(self, columns: Mapping[str, Any]) -> None:
        self._columns = dict(columns)
        lengths = {len(column) for column in self._columns.values()}
        if len(lengths) != 1:
            raise ValueError(f"a table needs columns of one length, got lengths {sorted(lengths)}")
        (rows,) = lengths
        self.shape = (rows, len(self._columns))

    def __getitem__(self, name: str) -> Any:
        return self._columns[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    def __repr__(self) -> str:
        return f"<NamedColumns: {self.shape[0]} rows of {', '.join(self._columns)}>"

    @property
    def iloc(self) -> "_Rows":
        """The rows, to be chosen from: ``columns.iloc[rows]``."""
        return _Rows(self)


class _Rows:
    def __init__(self, columns: NamedColumns) -> None:
        self._columns = columns

    def __getitem__(self, rows: Any) -> NamedColumns:
        return NamedColumns({name: _some(column, rows) for name, column in self._columns.items()})


def _some(column: Any, rows: Any) -> Any:
    if isinstance(column, list) and not isinstance(rows, slice):
        return [column[i] for i in np.arange(len(column))[rows].tolist()]
    return take(column, rows)


def read_columns(x: Any) -> Columns:
    """``x`` as columns: a data frame, a mapping of names to columns, or a two-dimensional array."""
    if is_frame(x):
        import narwhals as nw

        frame = x
        if not isinstance(x, nw.DataFrame):
            if nw.dependencies.is_pandas_dataframe(x):
                return _from_pandas(x)
            frame = x if nw.dependencies.is_polars_dataframe(x) else nw.from_native(x, eager_only=True)
        return Columns(list(frame.iter_columns()), _unique(frame.columns))
    if isinstance(x, Mapping):
        columns = Columns(list(x.values()), _unique(map(str, x)))
        lengths = {len(column) for column in columns.raw}
        if len(lengths) > 1:
            raise ValueError(f"all columns need the same length, got lengths {sorted(lengths)}")
        return columns
    array = _array(x, keep_objects=True)
    blocks = [(tuple(range(array.shape[1])), array)] if array.dtype.kind in "biuf" else []
    return Columns(_Split(array), None, blocks)


def slices(x: Any, rows: int) -> Iterator[Any]:
    """``x`` in pieces of at most so many rows, each of a kind that encoders read."""
    mapping = isinstance(x, Mapping)
    if not mapping and not is_frame(x):
        x = _array(x, keep_objects=True)
    samples = len(next(iter(x.values()), ())) if mapping else x.shape[0]
    if samples <= rows:
        yield x
        return
    for start in range(0, samples, rows):
        part = slice(start, start + rows)
        if mapping:
            yield {name: take(column, part) for name, column in x.items()}
        else:
            yield take(x, part)


def take(x: Any, rows: Any) -> Any:
    """Some rows of an array, a column or a data frame."""
    return x.iloc[rows] if hasattr(x, "iloc") else x[rows]


def _from_pandas(x: Any) -> Columns:
    names = _unique(map(str, x.columns))
    groups: dict[np.dtype[Any], list[int]] = {}
    for i, dtype in enumerate(x.dtypes.to_numpy().tolist()):
        if isinstance(dtype, np.dtype) and dtype.kind in "biuf":
            groups.setdefault(dtype, []).append(i)
    if len(groups) == 1 and len(every := next(iter(groups.values()))) == len(names):
        array = x.to_numpy()
        return Columns(_Split(array), names, [(tuple(every), array)])
    blocks = [(tuple(group), x.iloc[:, group].to_numpy()) for group in groups.values() if len(group) >= _WORTH_A_BLOCK]
    return Columns(_PandasColumns(x), names, blocks)


class _PandasColumns(Sequence[Any]):
    """The columns of a data frame, made when they are asked for."""

    def __init__(self, frame: Any) -> None:
        self._frame = frame

    def __len__(self) -> int:
        return int(self._frame.shape[1])

    def __getitem__(self, feature: Any) -> Any:
        return self._frame.iloc[:, feature]


class _Split(Sequence[Any]):
    """The columns of a matrix, made when they are asked for."""

    def __init__(self, array: Shaped[np.ndarray, "samples features"]) -> None:
        self._array = array

    def __len__(self) -> int:
        return int(self._array.shape[1])

    def __getitem__(self, feature: Any) -> Any:
        return self._array[:, feature]


def read_matrix(x: Any, encoder: str) -> Matrix:
    """``x`` as a matrix of numbers; a column of anything else is an error."""
    if not isinstance(x, Mapping) and not is_frame(x):
        array = _array(x, keep_objects=False)
        if array.dtype.kind not in "biuf":
            raise TypeError(f"{encoder} needs numbers, got an array of {array.dtype}; see gatefit.encoders.Table")
        return Matrix(array, None)
    columns = read_columns(x)
    parts = []
    for i, name in enumerate(columns.names or ()):
        column = columns.read(i, name)
        if column.kind == "category":
            raise TypeError(f"{encoder} needs numbers, column {name!r} holds categories; see gatefit.encoders.Table")
        parts.append(column.numbers() if column.mask().any() else np.asarray(column.values))
    values = np.stack(parts, axis=1) if parts else np.empty((columns.samples, 0))
    return Matrix(values, columns.names)


def is_frame(x: object) -> bool:
    """Whether ``x`` is a data frame of any library that narwhals knows; one that holds no values yet is refused."""
    if isinstance(x, np.ndarray | list | tuple | Mapping):
        return False
    import narwhals as nw

    if nw.dependencies.is_into_dataframe(x):
        return True
    if isinstance(nw.from_native(x, pass_through=True), nw.LazyFrame):
        library, kind = type(x).__module__.partition(".")[0], type(x).__name__
        raise TypeError(f"got a {library} {kind}; call .collect() on it first")
    return False


def _array(x: Any, *, keep_objects: bool) -> np.ndarray:
    if isinstance(x, np.ma.MaskedArray):
        raise TypeError("got a masked array; fill it first: x.filled(numpy.nan)")
    if hasattr(x, "toarray"):
        raise TypeError(f"got a sparse {type(x).__name__}; make it dense first: x.toarray()")
    array = np.asarray(x, dtype=object if isinstance(x, list | tuple) else None)
    if isinstance(x, list | tuple) and not any(issubclass(kind, str) for kind in set(map(type, array.flat))):
        array = np.asarray(x)  # Only lists that hold strings stay objects: [[1, "a"]] must not become two strings.
    if array.ndim != 2:
        raise ValueError(
            f"expected a two-dimensional array (samples, features), got shape {array.shape}; "
            f"reshape one feature with x.reshape(-1, 1), one sample with x.reshape(1, -1), images to one row each"
        )
    if array.dtype == object and not keep_objects:
        try:
            array = array.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise TypeError(f"expected numbers, got an array of objects that are not: {error}") from None
    return array


def _order(frame: Columns | Matrix, features: int, names: tuple[str, ...] | None, encoder: object) -> list[int] | None:
    if names is not None and frame.names is not None:
        if frame.names == names:
            return None
        position = {name: i for i, name in enumerate(frame.names)}
        absent = [name for name in names if name not in position]
        if absent:
            raise ValueError(
                f"{encoder} was fitted with columns that are missing here: {', '.join(absent)}; "
                f"given: {', '.join(frame.names) or 'none'}"
            )
        return [position[name] for name in names]
    if len(frame) != features:
        raise ValueError(f"{encoder} was fitted on {features} features, got {len(frame)}")
    return None


def _unique(given: Iterable[str]) -> tuple[str, ...]:
    names = tuple(given)
    if len(set(names)) < len(names):
        repeated = sorted({name for name in names if names.count(name) > 1})
        raise ValueError(f"column names must differ, got more than one of: {', '.join(repeated)}")
    return names
