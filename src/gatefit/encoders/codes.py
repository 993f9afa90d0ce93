"""How one column of a table becomes bits.

    number     x > t_1, x > t_2, …       [, missing]
    category   x = c_1, x = c_2, …       [, missing]
    boolean    x                         [, missing]
    constant   no bits: the column never varied when the encoder was fitted

The missing bit is there only if values were missing at fit. Otherwise a value missing later makes every bit of its
column false: no category, below the lowest threshold. So does a category that was never seen.

``CodePlan`` does for many columns at once what ``ColumnCode.encode`` does column by column, in three operations on a
matrix: one comparison of gathered features with the thresholds of all bits serves every number (x > t_k) and Boolean
(x > 1/2, for an x that is 0, 1 or missing), so that a single row costs microseconds however many columns it has.
"""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, ClassVar, Final

import numpy as np
from jaxtyping import Bool, Num, Shaped

from gatefit.encoders import specs
from gatefit.encoders.base import Rule
from gatefit.encoders.frames import HOLDS, Column, canonical, is_missing
from gatefit.encoders.quantiles import quantile_thresholds
from gatefit.encoders.specs import Category
from gatefit.encoders.threshold import compare_gathered, round_down


@dataclass(frozen=True)
class ColumnCode(ABC):
    """The fitted encoding of one column."""

    kind: ClassVar[str]
    missing: bool = False

    @cached_property
    def bits(self) -> int:
        """How many bits, the missing bit included."""
        return len(self._tests()) + self.missing

    def rules(self, feature: int) -> list[Rule]:
        """The rule of each bit of the column numbered ``feature``."""
        return [test._replace(feature=feature) for test in (*self._tests(), *[Rule(0, "missing")] * self.missing)]

    def encode(self, column: Column, out: Bool[np.ndarray, "samples bits"]) -> None:
        """Write the column's bits."""
        self._encode(column, out[:, : out.shape[1] - self.missing])
        if self.missing:
            out[:, -1] = column.mask()

    @abstractmethod
    def _tests(self) -> list[Rule]: ...

    @abstractmethod
    def _encode(self, column: Column, out: Bool[np.ndarray, "samples bits"]) -> None: ...

    def to_spec(self) -> dict[str, Any]:
        """The code as a dictionary fit for JSON."""
        return {"type": self.kind, "missing": self.missing}


@dataclass(frozen=True)
class ConstantCode(ColumnCode):
    """No bits, whatever the column holds."""

    kind = "constant"

    def _tests(self) -> list[Rule]:
        return []

    def _encode(self, column: Column, out: Bool[np.ndarray, "samples bits"]) -> None:
        pass


@dataclass(frozen=True)
class BooleanCode(ColumnCode):
    """The column itself; numbers are accepted if they are 0 or 1."""

    kind = "boolean"

    def _tests(self) -> list[Rule]:
        return [Rule(0, "bit")]

    def _encode(self, column: Column, out: Bool[np.ndarray, "samples bits"]) -> None:
        values = _numbers(column, "boolean")
        wrong = (values != 0) & (values != 1) & ~column.mask()
        if wrong.any():
            raise TypeError(
                f"column {column.name!r} held Booleans when the encoder was fitted, now {values[wrong][0]}; "
                f"give it as Booleans or as 0 and 1"
            )
        out[:, 0] = values == 1


@dataclass(frozen=True)
class NumberCode(ColumnCode):
    """A thermometer over increasing thresholds."""

    kind = "number"
    thresholds: tuple[float, ...] = ()

    def _tests(self) -> list[Rule]:
        return [Rule(0, ">", threshold) for threshold in self.thresholds]

    def _encode(self, column: Column, out: Bool[np.ndarray, "samples bits"]) -> None:
        values = _numbers(column, "number")
        bounds, always = _bounds(self.thresholds, values.dtype)
        np.greater(values[:, None], bounds, out=out)  # NaN exceeds nothing
        if always is not None:
            np.logical_or(out, always, out=out)

    def to_spec(self) -> dict[str, Any]:
        """The code as a dictionary fit for JSON."""
        return {**super().to_spec(), "thresholds": list(self.thresholds)}


@lru_cache(maxsize=4096)
def _bounds(thresholds: tuple[float, ...], dtype: np.dtype[Any]) -> tuple[np.ndarray, np.ndarray | None]:
    """The thresholds made ready for one dtype, which costs more than comparing a single row with them."""
    return round_down(np.array(thresholds, dtype=np.float64), dtype)


@dataclass(frozen=True)
class CategoryCode(ColumnCode):
    """One bit per category, in sorted order; what was never seen has no bit, or is refused."""

    kind = "category"
    categories: tuple[Category, ...] = ()

    def _tests(self) -> list[Rule]:
        return [Rule(0, "=", category) for category in self.categories]

    def _encode(self, column: Column, out: Bool[np.ndarray, "samples bits"]) -> None:
        out[:] = False
        values = column.objects()
        numbers = {category: i for i, category in enumerate(self.categories)}
        try:
            codes = np.fromiter((numbers.get(value, -1) for value in values), np.int64, len(values))
        except TypeError:
            for value in values:
                if not is_missing(value):
                    canonical(value, column.name)
            raise
        self._check_types(column.name, (values[i] for i in np.flatnonzero(codes < 0).tolist()))
        known = np.flatnonzero(codes >= 0)
        out[known, codes[known]] = True

    def unseen(self, column: Column) -> list[Any]:
        """The column's values that have no bit."""
        known = set(self.categories)
        return [v for v in column.objects() if v not in known and not (self.missing and is_missing(v))]

    def _check_types(self, name: str, unseen: Iterable[Any]) -> None:
        """An unseen category of a type that the column never had means that the column is not the same any more."""
        types = {isinstance(category, str) for category in self.categories}
        for value in unseen:
            if not is_missing(value) and types and isinstance(value, str) not in types:
                raise TypeError(
                    f"column {name!r} held {'strings' if True in types else 'numbers'} such as {self.categories[0]!r} "
                    f"when the encoder was fitted, now {value!r}; convert it to the same type"
                )

    def to_spec(self) -> dict[str, Any]:
        """The code as a dictionary fit for JSON."""
        return {**super().to_spec(), "categories": list(self.categories)}


def fit_numbers(column: Column, count: int) -> ColumnCode:
    """A code with at most ``count`` thresholds at the quantiles of the column."""
    values = column.numbers()
    missing = column.mask()
    present = values[~missing]
    if not np.isfinite(present).all():
        raise ValueError(f"column {column.name!r} holds infinite values; replace them by numbers or by NaN (missing)")
    thresholds = tuple(quantile_thresholds(present, count, column.name).tolist()) if present.size else ()
    return _unless_constant(NumberCode(bool(missing.any()), thresholds), column)


def fit_boolean(column: Column) -> ColumnCode:
    """A code that copies the column; no bit but the missing one if it never varied."""
    missing = column.mask()
    present = np.asarray(column.values)[~missing]
    if present.size and present.any() and not present.all():
        return BooleanCode(bool(missing.any()))
    return _unless_constant(NumberCode(bool(missing.any())), column)


def fit_categories(column: Column, most: int | None = None) -> CategoryCode:
    """A code for the categories that occur, only the ``most`` frequent ones if there are more."""
    values = column.objects()
    counts = Counter(canonical(value, column.name) for value in values if not is_missing(value))
    ordered = sorted(counts, key=_order)
    kept = sorted(ordered, key=lambda category: -counts[category])[:most]  # stable: ties in sorted order
    return CategoryCode(bool(column.mask().any()), tuple(sorted(kept, key=_order)))


def drop_constant(code: CategoryCode, column: Column) -> ColumnCode:
    """The code, or none at all for a column with a single category and nothing missing."""
    return ConstantCode() if len(code.categories) <= 1 and not code.missing else _unless_constant(code, column)


def _unless_constant(code: ColumnCode, column: Column) -> ColumnCode:
    return ConstantCode() if code.bits == 0 or column.kind == "empty" else code


def _order(category: Category) -> tuple[bool, Category]:
    return (isinstance(category, str), category)


def _numbers(column: Column, kind: str) -> np.ndarray:
    try:
        return column.numbers()
    except TypeError as error:
        raise TypeError(f"a column that held {HOLDS[kind]} when the encoder was fitted has changed: {error}") from None


CODES: Final[dict[str, type[ColumnCode]]] = {
    "constant": ConstantCode,
    "boolean": BooleanCode,
    "number": NumberCode,
    "category": CategoryCode,
}


def code_from_spec(spec: object) -> ColumnCode:
    """The code that ``to_spec`` wrote, checked."""
    kind = spec.get("type") if isinstance(spec, Mapping) else None
    if not isinstance(kind, str) or kind not in CODES:
        raise ValueError(f"a column must have a type, one of {', '.join(CODES)}, got {kind!r}")
    extra = {"number": ("thresholds",), "category": ("categories",)}.get(kind, ())
    checked = specs.fields(spec, ("type", "missing", *extra), f"a {kind} column")
    missing = specs.boolean(checked["missing"], "missing")
    if kind == "number":
        return NumberCode(missing, tuple(specs.thresholds(checked["thresholds"], "thresholds")))
    if kind == "category":
        return CategoryCode(missing, tuple(specs.categories(checked["categories"], "categories")))
    if kind == "constant" and missing:
        raise ValueError("a constant column has no missing bit")
    return CODES[kind](missing)


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
