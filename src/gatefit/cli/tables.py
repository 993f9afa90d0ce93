"""CSV files as the features that a circuit's encoder reads.

    the encoder's rules say what a column holds      >  numbers      =  its categories      bit  true or false

No guessing: "007" stays text where the encoder knows the category "007", and is a number where it compares numbers. A
word for a missing value ("NA") is a missing value, unless the encoder knows it as a category. Cells are separated by
commas, or by semicolons, tabs or bars where these alone make a table of the file.
"""

import csv
import io
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from gatefit.cli.errors import UserError

if TYPE_CHECKING:
    import numpy as np

    from gatefit.circuit.ir import Circuit
    from gatefit.encoders import Encoder

_MISSING: Final = frozenset(
    ("", "na", "n/a", "#n/a", "#na", "<na>", "nan", "-nan", "null", "none", "nil", "nat", "missing", "?", ".", "-")
)
"""What stands for a missing value, in lower case: spreadsheets', pandas' and R's words, and those of data archives."""
_SEPARATORS: Final = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
_BITS: Final = {"0": False, "1": True, "false": False, "true": True, "0.0": False, "1.0": True}


class Csv:
    """The columns of a file as text, with their names if it has a header."""

    def __init__(self, path: Path, *, header: bool = True) -> None:
        self.path = path
        try:
            # utf-8-sig: spreadsheets write a mark in front, which is not part of the first name.
            with path.open(newline="", encoding="utf-8-sig") as file:
                text = file.read()
            rows, self._lines, separator = _split(text)
        except (UnicodeDecodeError, csv.Error) as error:
            raise UserError(f"{path} is not a CSV file in UTF-8: {error}") from error
        if not rows:
            raise UserError(f"{path} is empty; it needs {'a header and ' if header else ''}one line a sample")
        if header and all(map(_is_number, rows[0])):
            raise UserError(f"{path}: the first line holds numbers, not names; add a header, or say --no-header")
        self.names = [name.strip() for name in rows.pop(0)] if header else None
        self._lines = self._lines[1:] if header else self._lines
        columns = len(self.names or rows[0])
        for number, row in zip(self._lines, rows, strict=True):
            if len(row) != columns:
                raise UserError(
                    f"{path}, line {number}: {len(row)} cells, the first line has {columns} (separated by "
                    f"{_SEPARATORS[separator]})"
                )
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
        for line, text in zip(self._lines, column, strict=True):
            try:
                values.append(cell(text.strip()))
            except ValueError:
                hint = "; write decimals with a point" if _is_number(text.replace(",", ".")) else ""
                raise UserError(
                    f"{self.path}, line {line}: column {name!r} needs {needed}, got {text!r}{hint}"
                ) from None
        return values

    def refuse_missing(self, column: list[str], name: str, encoder: "Encoder") -> None:
        """Say where a value is missing, for an encoder that has no place for missing values."""
        for line, text in zip(self._lines, column, strict=True):
            if _is_missing(text.strip()):
                raise UserError(
                    f"{self.path}, line {line}: column {name!r} is missing ({text!r}), and the circuit's encoder "
                    f"({encoder.kind}) takes no missing values; fill it in, or train with a table encoder"
                )


def _split(text: str) -> tuple[list[list[str]], list[int], str]:
    """Rows, their line numbers, and the first separator that makes a table of them; commas where none does."""
    found, failed = None, None
    for separator in _SEPARATORS:
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
        try:
            numbered = [(row, reader.line_num) for row in reader if row]
        except csv.Error as error:
            failed = failed or error
            continue
        rows, lines = [row for row, _ in numbered], [line for _, line in numbered]
        if len(set(map(len, rows))) == 1 and len(rows[0]) > 1:
            return rows, lines, separator
        if separator == ",":
            found = rows, lines, separator
    if found is None:
        assert failed is not None, "commas make rows or an error"
        raise failed
    return found


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
        if not encoder.takes_missing:
            table.refuse_missing(column, name, encoder)
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
    return float("nan") if _is_missing(text) else float(text)


def _is_missing(text: str) -> bool:
    return text.lower() in _MISSING


def _bit(text: str) -> bool | None:
    return None if _is_missing(text) else _whole_bit(text)


def _whole_bit(text: str) -> bool:
    if text.lower() not in _BITS:
        raise ValueError(text)
    return _BITS[text.lower()]


def _category(text: str, known: dict[str, Any]) -> Any:
    """The category that ``text`` stands for; what is not known is kept, as text or as the number it is."""
    if text in known:
        return known[text]
    if _is_missing(text):
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
        return [None if _is_missing(text.strip()) else text.strip() for text in column]
