"""CSV files as the features that a circuit's encoder reads.

    the encoder's rules say what a column holds      >  numbers      =  its categories      bit  true or false

No guessing: "007" stays text where the encoder knows the category "007", and is a number where it compares numbers.
"""

import csv
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from gatefit.cli.errors import UserError

if TYPE_CHECKING:
    import numpy as np

    from gatefit.circuit.ir import Circuit
    from gatefit.encoders import Encoder

_BITS: Final = {"0": False, "1": True, "false": False, "true": True, "0.0": False, "1.0": True}


class Csv:
    """The columns of a file as text, with their names if it has a header."""

    def __init__(self, path: Path, *, header: bool = True) -> None:
        self.path = path
        try:
            # utf-8-sig: spreadsheets write a mark in front, which is not part of the first name.
            with path.open(newline="", encoding="utf-8-sig") as file:
                rows = [row for row in csv.reader(file, strict=True) if row]
        except (UnicodeDecodeError, csv.Error) as error:
            raise UserError(f"{path} is not a CSV file in UTF-8: {error}") from error
        if not rows:
            raise UserError(f"{path} is empty; it needs {'a header and ' if header else ''}one line a sample")
        self.first_line = 2 if header else 1
        if header and all(map(_is_number, rows[0])):
            raise UserError(f"{path}: the first line holds numbers, not names; add a header, or say --no-header")
        self.names = [name.strip() for name in rows.pop(0)] if header else None
        columns = len(self.names or rows[0])
        for number, row in enumerate(rows, start=self.first_line):
            if len(row) != columns:
                raise UserError(f"{path}, line {number}: {len(row)} cells, the first line has {columns}")
        self.rows = rows
        self.columns: list[list[str]] = [[row[i] for row in rows] for i in range(columns)]
        if self.names is not None and len(set(self.names)) < columns:
            repeated = sorted({name for name in self.names if self.names.count(name) > 1})
            raise UserError(f"{path}: more than one column is called {', '.join(repeated)}")

    def select(self, wanted: Sequence[str], what: str, *, by_name: bool) -> list[list[str]]:
        """The columns called ``wanted``, in that order; all by position, where they have no names of their own."""
        if self.names is not None:
            position = {name: i for i, name in enumerate(self.names)}
            absent = [name for name in wanted if name not in position]
            if not absent:
                return [self.columns[position[name]] for name in wanted]
            if by_name or len(absent) < len(wanted):
                shown = ", ".join(absent[:8]) + (f" and {len(absent) - 8} more" if len(absent) > 8 else "")
                raise UserError(
                    f"{self.path} has no column {shown}; {what} needs {len(wanted)} columns, found by name "
                    f"(or by position, in a file without header: --no-header)"
                )
        if len(self.columns) != len(wanted):
            raise UserError(f"{self.path} has {len(self.columns)} columns, {what} needs {len(wanted)}")
        return self.columns

    def convert(self, column: list[str], name: str, cell: Callable[[str], Any], needed: str) -> list[Any]:
        """A column through ``cell``, which raises ValueError for what it cannot read."""
        values = []
        for i, text in enumerate(column):
            try:
                values.append(cell(text.strip()))
            except ValueError:
                raise UserError(
                    f"{self.path}, line {i + self.first_line}: column {name!r} needs {needed}, got {text!r}"
                ) from None
        return values


def read_features(table: Csv, encoder: "Encoder") -> dict[str, Any]:
    """The columns that ``encoder`` reads, by name, each converted to what its rules compare it with."""
    import numpy as np

    from gatefit.encoders.base import default_names

    names = encoder.feature_names
    columns = table.select(names, "the circuit's encoder", by_name=names != default_names(encoder.features))
    categories: list[dict[str, Any]] = [{} for _ in names]
    tests: list[set[str]] = [set() for _ in names]
    for rule in encoder.rules:
        tests[rule.feature].add(rule.test)
        if rule.test == "=":
            categories[rule.feature][str(rule.value)] = rule.value
    features: dict[str, Any] = {}
    for name, column, known, compared in zip(names, columns, categories, tests, strict=True):
        if ">" in compared:
            numbers = table.convert(column, name, _number, "numbers")
            features[name] = np.array(numbers, dtype=np.float64)
        elif "bit" in compared:
            features[name] = table.convert(column, name, _bit, "0 or 1")
        elif known:
            features[name] = [_category(text.strip(), known) for text in column]
        else:
            features[name] = _numbers_or_text(column)
    return features


def read_bits(table: Csv, circuit: "Circuit") -> "np.ndarray":
    """A file that holds the circuit's input bits themselves."""
    import numpy as np

    names = circuit.input_names or tuple(f"x{i}" for i in range(circuit.inputs))
    columns = table.select(names, "the circuit", by_name=bool(circuit.input_names))
    bits = np.empty((len(table.rows), len(names)), dtype=np.bool_)
    for i, (name, column) in enumerate(zip(names, columns, strict=True)):
        bits[:, i] = table.convert(column, name, _whole_bit, "bits (0 or 1)")
    return bits


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _number(text: str) -> float:
    return float(text) if text else float("nan")


def _bit(text: str) -> bool | None:
    return _whole_bit(text) if text else None


def _whole_bit(text: str) -> bool:
    if text.lower() not in _BITS:
        raise ValueError(text)
    return _BITS[text.lower()]


def _category(text: str, known: dict[str, Any]) -> Any:
    """The category that ``text`` stands for; what is not known is kept, as text or as the number it is."""
    if text in known:
        return known[text]
    if not text:
        return None
    if all(isinstance(value, str) for value in known.values()):
        return text
    if text.lower() in _BITS and any(isinstance(value, bool) for value in known.values()):
        return _BITS[text.lower()]
    try:
        return float(text)
    except ValueError:
        return text


def _numbers_or_text(column: list[str]) -> list[Any]:
    try:
        return [_number(text.strip()) for text in column]
    except ValueError:
        return [text.strip() or None for text in column]
