"""Rows of raw features: read, made again from points, and said in words.

A point says which values features have, as far as the circuit can tell them apart; a row says one raw value of each.
The row of a point keeps what the row that was asked about has, wherever that is part of the point, and is a short
number just beyond the threshold elsewhere. ``encode`` brings it back through the encoder itself, so that no answer
rests on this module being right.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Bool, Int64

from gatefit.circuit.ir import Circuit
from gatefit.circuit.simulate import check_bits
from gatefit.circuit.verify.domain import Domain, Feature, Value

Row = tuple[Any, ...]


def read_row(circuit: Circuit, x: Any) -> tuple[Row, Bool[np.ndarray, " inputs"]]:
    """One row: a mapping of names to values, a sequence, or an array or data frame of one row; and its bits."""
    rows, bits = read_rows(circuit, _as_table(circuit, x))
    if len(rows) != 1:
        raise ValueError(f"this question is about one row, got {len(rows)}; ask its batch form, which ends in _each")
    return rows[0], bits[0]


def read_rows(circuit: Circuit, x: Any) -> tuple[list[Row], Bool[np.ndarray, "samples inputs"]]:
    """The rows of an array, a data frame or a mapping of columns, as plain values; and their bits."""
    if circuit.encoder is None:
        bits = check_bits(circuit, x)
        return [tuple(int(b) for b in row) for row in bits], bits
    from gatefit.encoders.frames import read_columns

    bits = check_bits(circuit, circuit.encoder.transform(x))
    frame = read_columns(x)
    named = frame.names is not None and set(frame.names) >= set(circuit.encoder.feature_names)
    frame = frame.aligned(circuit.encoder.features, circuit.encoder.feature_names if named else None, circuit.encoder)
    columns = [_plain_column(column) for column in frame.raw]
    return list(zip(*columns, strict=True)), bits


def encode(circuit: Circuit, rows: Sequence[Row]) -> Bool[np.ndarray, "samples inputs"]:
    """The bits of rows, by the circuit's own encoder."""
    if circuit.encoder is None:
        return check_bits(circuit, np.array(rows).reshape(len(rows), circuit.inputs))
    if all(type(value) in (int, float) and abs(value) < 2**53 for row in rows for value in row):
        return check_bits(circuit, circuit.encoder.transform(np.array(rows, np.float64)))  # faster than by columns
    columns = {
        name: list(column) for name, column in zip(circuit.encoder.feature_names, zip(*rows, strict=True), strict=True)
    }
    return check_bits(circuit, circuit.encoder.transform(columns))


def _as_table(circuit: Circuit, x: Any) -> Any:
    if isinstance(x, Mapping):
        if circuit.encoder is None:
            raise TypeError("a circuit without an encoder reads a sequence of bits, got a mapping")
        return {str(name): value if _is_column(value) else [value] for name, value in x.items()}
    if type(x).__name__ == "Series" and hasattr(x, "to_dict") and hasattr(x, "index"):
        named = circuit.encoder is not None and set(map(str, x.index)) >= set(circuit.encoder.feature_names)
        return _as_table(circuit, x.to_dict() if named else list(x))
    if isinstance(x, np.ndarray) and x.ndim == 1 and x.dtype != object:
        return x[None]
    if isinstance(x, np.ndarray) and x.ndim == 1:
        x = x.tolist()
    if isinstance(x, list | tuple) and not any(_is_column(value) for value in x):
        if circuit.encoder is None:
            return np.array([x])
        names = circuit.encoder.feature_names
        if len(x) != len(names):
            raise ValueError(f"a row needs {len(names)} features ({', '.join(names[:6])}, …), got {len(x)}")
        return {name: [value] for name, value in zip(names, x, strict=True)}
    return x


def _is_column(value: Any) -> bool:
    return isinstance(value, list | tuple | np.ndarray) or hasattr(value, "to_list")


def _plain_column(column: Any) -> list[Any]:
    values = column.tolist() if hasattr(column, "tolist") else list(column)
    return values if all(type(value) is int for value in values) else [_plain(value) for value in values]


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return None if math.isnan(value) else value
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return None
    return float(value)  # decimals and fractions; the encoder has read it already


def row_of(
    domain: Domain, point: Int64[np.ndarray, " features"], near: tuple[Row, Int64[np.ndarray, " features"]] | None
) -> Row:
    """A row of raw values at a point; as ``near``, a row and its point, wherever that has the same values."""
    if domain.encoder is None:
        bits = domain.bits(point[None])[0]
        if near is not None:  # bits that the circuit does not read stay as they were
            read = np.zeros(domain.inputs, bool)
            for feature in domain.features:
                read[feature.inputs] = True
            bits = np.where(read, bits, np.array(near[0], bool))
        return tuple(int(b) for b in bits)
    row = []
    for i, feature in enumerate(domain.features):
        if near is not None and near[1][i] == point[i]:
            row.append(near[0][i])
        else:
            row.append(raw_value(feature, feature.values[point[i]], None if near is None else near[0][i]))
    return tuple(row)


def raw_value(feature: Feature, value: Value, near: Any = None) -> Any:
    """A raw value that is part of ``value``: a number near ``near``, a category that was seen."""
    if value.levels is not None:
        return _short_number(value.low, value.high, near, feature.whole)
    if value.categories:
        return value.categories[0]
    if value.missing:
        return None
    known = [category for other in feature.values for category in other.categories]
    if all(isinstance(category, str) for category in known):
        return "(never seen)" + "*" * max((len(c) for c in known), default=0)
    return 1 + max((float(c) for c in known if not isinstance(c, str)), default=0.0)


def _short_number(low: float, high: float, near: Any, whole: tuple[int, int] | None) -> float | int:
    """A number of few digits with low < number <= high, at the end that is nearer to ``near``."""
    if isinstance(near, str | bool) or not isinstance(near, int | float):
        near = None
    if near is None and low == -math.inf and high == math.inf:
        return 0
    if near is not None and low < near <= high:
        return int(near) if whole is not None and float(near).is_integer() else float(near)
    from_below = low > -math.inf if near is None else near <= low
    edge = low if from_below else high
    # Three digits of the edge are near enough to it; whole numbers have none behind the point.
    size = 0 if edge == 0 or not math.isfinite(edge) else math.floor(math.log10(abs(edge)))
    for digits in range(2 - size, 20 - size) if whole is None else (0,):
        step = 10.0**digits
        scaled = edge * step
        if not math.isfinite(scaled):
            break
        candidate = (math.floor(scaled) + 1 if from_below else math.floor(scaled)) / step
        if low < candidate <= high:
            return int(candidate) if whole is not None and candidate.is_integer() else candidate
    return math.nextafter(low, math.inf) if from_below else high


def condition(feature: Feature, allowed: Int64[np.ndarray, " some"]) -> str:
    """What is said of a feature whose values are among ``allowed``, in words."""
    values = [feature.values[i] for i in allowed.tolist()]
    parts = []
    numbers = [value for value in values if value.levels is not None]
    if numbers:
        parts += [_interval(feature, low, high) for low, high in _joined(numbers)]
    elif feature.kind == "bit" and all(value.categories for value in values):
        parts.append(
            f"{feature.name} = {values[0].categories[0]}" if len(values) == 1 else f"{feature.name} is any bit"
        )
    elif feature.kind == "category":
        rest = [value for i, value in enumerate(feature.values) if i not in set(allowed.tolist()) and value.usual]
        if 0 < len(rest) < len(values):  # fewer to name: what it is not
            return f"{feature.name} is not {_listed(_names(rest))}"
        return f"{feature.name} {'=' if len(values) == 1 and not values[0].missing else 'is'} {_listed(_names(values))}"
    if any(value.missing for value in values):
        parts.append(f"{feature.name} is missing")
    return " or ".join(parts)


def _names(values: list[Value]) -> list[str]:
    """What categories are called; missing and never seen ones last."""
    names = [str(category) for value in values for category in value.categories]
    names += ["missing"] * any(value.missing for value in values)
    return names + ["a value never seen"] * any(value.other and not value.categories for value in values)


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + " or " + names[-1]


def _joined(numbers: list[Value]) -> list[tuple[float, float]]:
    found: list[tuple[float, float]] = []
    for value in sorted(numbers, key=lambda v: v.low):
        if found and found[-1][1] >= value.low:
            found[-1] = (found[-1][0], value.high)
        else:
            found.append((value.low, value.high))
    return found


def _interval(feature: Feature, low: float, high: float) -> str:
    name = feature.name
    if feature.whole is not None:
        least = None if low == -math.inf else math.floor(low) + 1
        most = None if high == math.inf else math.floor(high)
        if least is not None and most is not None:
            return f"{name} = {least}" if least == most else f"{name} from {least} to {most}"
        if least is None and most is None:
            return f"{name} is any number"
        return f"{name} <= {most}" if least is None else f"{name} >= {least}"
    if low == -math.inf and high == math.inf:
        return f"{name} is any number"
    if low == -math.inf:
        return f"{name} <= {high:.10g}"
    if high == math.inf:
        return f"{name} > {low:.10g}"
    return f"{low:.10g} < {name} <= {high:.10g}"
