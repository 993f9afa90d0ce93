"""What ``fit`` and ``transform`` accept, brought into two forms: a numeric matrix, or columns of any kind.

    Matrix     2-D array of numbers            threshold, thermometer, identity
    Columns    one raw column per feature      one-hot, table

Both know their column names, if there are any, and can be aligned with what an encoder was fitted on.
"""

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from jaxtyping import Shaped

from gatefit.encoders.columns import Column, read_column

_FRAMES = ("DataFrame", "LazyFrame")
_WORTH_A_BLOCK = 8


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


def read_columns(x: Any) -> Columns:
    """``x`` as columns: a data frame, a mapping of names to columns, or a two-dimensional array."""
    pandas, polars = sys.modules.get("pandas"), sys.modules.get("polars")
    if pandas is not None and isinstance(x, pandas.DataFrame):
        return _from_pandas(x)
    if polars is not None and isinstance(x, polars.LazyFrame):
        raise TypeError("got a polars LazyFrame; call .collect() on it first")
    if polars is not None and isinstance(x, polars.DataFrame):
        return Columns(x.get_columns(), _unique(x.columns))
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
    frame = _is_frame(x)
    if not frame:
        x = _array(x, keep_objects=True)
    mapping = isinstance(x, Mapping)
    samples = len(next(iter(x.values()), ())) if mapping else x.shape[0]
    if samples <= rows:
        yield x
        return
    for start in range(0, samples, rows):
        part = slice(start, start + rows)
        if mapping:
            yield {name: column.iloc[part] if hasattr(column, "iloc") else column[part] for name, column in x.items()}
        else:
            yield x.iloc[part] if hasattr(x, "iloc") else x[part]


def _from_pandas(x: Any) -> Columns:
    names = _unique(map(str, x.columns))
    groups: dict[np.dtype[Any], list[int]] = {}
    for i, dtype in enumerate(x.dtypes.to_numpy().tolist()):
        if isinstance(dtype, np.dtype) and dtype.kind in "biuf":
            groups.setdefault(dtype, []).append(i)
    if len(groups) == 1 and len(every := next(iter(groups.values()))) == len(names):
        array = x.to_numpy()
        return Columns(_Split(array), names, [(tuple(every), array)])
    # A few columns are read faster one by one than cut out of the frame.
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
    if not _is_frame(x):
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


def _is_frame(x: Any) -> bool:
    libraries = (sys.modules.get("pandas"), sys.modules.get("polars"))
    types = tuple(getattr(library, name) for library in libraries for name in _FRAMES if hasattr(library, name))
    return isinstance(x, (Mapping, *types))


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
