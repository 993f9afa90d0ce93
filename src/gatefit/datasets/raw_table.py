"""A file of a user's as columns, before anything is decided about what they mean.

    Csv          columns of text, each cell as it is written            (``delimited``)
    other files  columns of values: arrays, or lists with None          (``own_files``)

Every row says where it is from, so that a message can name the line that is wrong.
"""

import copy
import difflib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from gatefit.datasets.files import DatasetError


class RawTable:
    """Columns, with their names if the file has any."""

    text: bool = False
    """Whether cells are text that nobody has read yet."""

    def __init__(
        self,
        path: Path,
        names: list[str] | None,
        columns: list[Any],
        *,
        beside: Mapping[str, Any] | None = None,
        image_shape: tuple[int, int, int] | None = None,
        files: Sequence[str] | None = None,
        remarks: tuple[str, ...] = (),
    ) -> None:
        self.path, self.names, self.columns = path, names, columns
        self.beside = dict(beside or {})
        """Columns that are no features: the arrays beside a matrix, the folders that images lie in."""
        self.image_shape = image_shape
        """(rows, columns, channels) of images, whose pixels are the columns."""
        self.remarks = remarks
        """What was left out of the file, in words."""
        self._files = files
        if names is not None:
            check_names(path, names)

    @property
    def samples(self) -> int:
        """How many rows."""
        return len(self.columns[0]) if self.columns else 0

    def where(self, row: int) -> str:
        """The place of a row, for a message."""
        return self._files[row] if self._files is not None else f"{self.path}, row {row}"

    def select(self, wanted: Sequence[str], what: str, *, by_name: bool) -> list[Any]:
        """The columns called ``wanted``, in that order; all by position, where they have no names of their own."""
        if self.names is not None:
            position = {name: i for i, name in enumerate(self.names)}
            absent = [name for name in wanted if name not in position]
            if not absent:
                return [self.columns[position[name]] for name in wanted]
            if by_name or len(absent) < len(wanted):
                shown = ", ".join(absent[:8]) + (f" and {len(absent) - 8} more" if len(absent) > 8 else "")
                raise DatasetError(
                    f"{self.path} has no column {shown}; {what} needs {len(wanted)} columns, found by name "
                    f"(or by position, in a file without header: --no-header)"
                )
        if len(self.columns) != len(wanted):
            raise DatasetError(f"{self.path} has {len(self.columns)} columns, {what} needs {len(wanted)}")
        return self.columns

    def without(self, names: Iterable[str]) -> "RawTable":
        """The same rows without some columns, given as ``position`` takes them; what is not there is no matter."""
        gone = set()
        for name in names:
            if self.names is None or name in self.names:
                gone.add(self.position(name))
        rest = copy.copy(self)
        kept = [i for i in range(len(self.columns)) if i not in gone]
        rest.columns = [self.columns[i] for i in kept]
        rest.names = None if self.names is None else [self.names[i] for i in kept]
        return rest

    def position(self, name: str) -> int:
        """The number of the column of this name; where columns have no names, of ``x0``, ``0`` or ``-1``."""
        if self.names is not None:
            if name in self.names:
                return self.names.index(name)
            raise DatasetError(f"{self.path} has no column {name!r}{nearest(name, self.names)}")
        word = name.removeprefix("x")
        if word.lstrip("-").isdecimal() and -len(self.columns) <= int(word) < len(self.columns):
            return int(word) % len(self.columns)
        raise DatasetError(
            f"{self.path} has no column {name!r}: its columns have no names, count them from 0 "
            f"(0 to {len(self.columns) - 1}; -1 is the last)"
        )


def nearest(given: str, known: Iterable[str], most: int = 12) -> str:
    """The name that was perhaps meant, and the first of all that there are."""
    known = list(known)
    lower = {name.lower(): name for name in reversed(known)}
    near = difflib.get_close_matches(given.lower(), lower, 1, cutoff=0.5)
    meant = f"; did you mean {lower[near[0]]!r}?" if near else ";"
    more = f" and {len(known) - most} more" if len(known) > most else ""
    return f"{meant} the columns are {', '.join(known[:most])}{more}"


def check_names(path: Path, names: list[str]) -> None:
    """Refuse two columns of one name."""
    if len(set(names)) < len(names):
        repeated = sorted({name for name in names if names.count(name) > 1})
        raise DatasetError(f"{path}: more than one column is called {', '.join(repeated)}")
