"""CSV files as columns of text; cells are separated by commas, or by what alone makes a table of the file.

A word for a missing value ("NA", "?") is a missing value unless somebody knows better: an encoder that has it as a
category.
"""

import csv
import io
from array import array
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from gatefit.datasets.files import DatasetError
from gatefit.datasets.raw_table import RawTable

if TYPE_CHECKING:
    from gatefit.encoders import Encoder

MISSING: Final = frozenset(
    ("", "na", "n/a", "#n/a", "#na", "<na>", "nan", "-nan", "null", "none", "nil", "nat", "missing", "?", ".", "-")
)
"""What stands for a missing value, in lower case: spreadsheets', pandas' and R's words, and those of data archives."""
_SEPARATORS: Final = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
_CHUNK: Final = 4096
"""Rows that are held as rows at a time."""


class Csv(RawTable):
    """The columns of a file as text, with their names if it has a header."""

    text = True

    def __init__(self, path: Path, *, header: bool = True) -> None:
        try:
            # utf-8-sig: spreadsheets write a mark in front, which is not part of the first name.
            with path.open(newline="", encoding="utf-8-sig") as file:
                columns, lines, self._separator, wrong = _split(file.read())
        except (UnicodeDecodeError, csv.Error) as error:
            raise DatasetError(f"{path} is not a CSV file in UTF-8: {error}") from error
        if not lines:
            raise DatasetError(f"{path} is empty; it needs {'a header and ' if header else ''}one line a sample")
        first = [column[0] for column in columns]
        if header and all(map(is_number, first)):
            raise DatasetError(f"{path}: the first line holds numbers, not names; add a header, or say --no-header")
        if wrong is not None:
            raise DatasetError(
                f"{path}, line {wrong[0]}: {wrong[1]} cells, the first line has {len(columns)} (separated by "
                f"{_SEPARATORS[self._separator]})"
            )
        self._lines = lines[1:] if header else lines
        names = [name.strip() for name in first] if header else None
        super().__init__(path, names, [column[1:] for column in columns] if header else columns)

    @property
    def separator(self) -> str:
        """What is between two cells, in words."""
        return _SEPARATORS[self._separator]

    def where(self, row: int) -> str:
        """The file and its line."""
        return f"{self.path}, line {self._lines[row]}"

    def convert(self, column: list[str], name: str, cell: Callable[[str], Any], needed: str) -> list[Any]:
        """A column through ``cell``, which raises ValueError for what it cannot read."""
        values = []
        for row, text in enumerate(column):
            try:
                values.append(cell(text.strip()))
            except ValueError:
                hint = "; write decimals with a point" if is_number(text.replace(",", ".")) else ""
                raise DatasetError(f"{self.where(row)}: column {name!r} needs {needed}, got {text!r}{hint}") from None
        return values

    def refuse_missing(self, column: list[str], name: str, encoder: "Encoder") -> None:
        """Say where a value is missing, for an encoder that has no place for missing values."""
        for row, text in enumerate(column):
            if is_missing_word(text.strip()):
                raise DatasetError(
                    f"{self.where(row)}: column {name!r} is missing ({text!r}), and the circuit's encoder "
                    f"({encoder.kind}) takes no missing values; fill it in, or train with a table encoder"
                )


def _split(text: str) -> tuple[list[list[str]], "array[int]", str, tuple[int, int] | None]:
    """Columns, line numbers and the first separator that makes a table of the text; commas where none does.

    With what is wrong, where nothing does: a line, and how many cells it has.
    """
    found, failed = None, None
    for separator in _SEPARATORS:
        try:
            columns, lines, wrong = _columns(text, separator)
        except csv.Error as error:
            failed = failed or error
            continue
        if wrong is None and len(columns) > 1:
            return columns, lines, separator, None
        if separator == ",":
            found = columns, lines, separator, wrong
    if found is None:
        assert failed is not None, "commas make rows or an error"
        raise failed
    return found


def _columns(text: str, separator: str) -> tuple[list[list[str]], "array[int]", tuple[int, int] | None]:
    """The columns as far as all rows have as many cells as the first; and the line that has not, with its number."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    columns: list[list[str]] = []
    lines = array("q")
    chunk: list[list[str]] = []
    wrong: tuple[int, int] | None = None

    def put_away() -> None:
        for column, cells in zip(columns, zip(*chunk, strict=True), strict=True):
            column.extend(cells)
        chunk.clear()

    for row in reader:
        if not row:
            continue
        columns = columns or [[] for _ in row]
        if len(row) != len(columns):
            wrong = wrong or (reader.line_num, len(row))
            break
        chunk.append(row)
        lines.append(reader.line_num)
        if len(chunk) == _CHUNK:
            put_away()
    if chunk:
        put_away()
    return columns, lines, wrong


def is_number(text: str) -> bool:
    """Whether ``float`` reads it."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def is_missing_word(text: str) -> bool:
    """Whether a cell without spaces around it says that there is no value."""
    return text.lower() in MISSING
