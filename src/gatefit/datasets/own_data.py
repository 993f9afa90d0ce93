"""A user's table made ready for an estimator: what each column holds, what is to be learned, what cannot be used.

    text         numbers where every cell is one, true and false where every cell is, else categories
    target       words, truth values and few whole numbers are classes; other numbers a value
    dropped      rows without a target, and columns that the user drops
    refused      dates, free text, numbers with a stray word, classes of one row: with the line, and what to do

Nothing is guessed in silence: ``OwnData.columns`` says of every column what it was taken for.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

import numpy as np
from jaxtyping import Int64, Shaped

from gatefit.datasets.delimited import is_missing_word, is_number
from gatefit.datasets.files import DatasetError
from gatefit.datasets.own_files import CLASS
from gatefit.datasets.raw_table import RawTable, nearest
from gatefit.encoders.frames import HOLDS, Column, NamedColumns, read_column, take
from gatefit.encoders.table import CHOICES, column_choice

Task = Literal["classification", "regression"]

FEW_VALUES: Final = 20
"""Whole numbers are classes where there are so many different ones at most."""
MANY_WORDS: Final = 50
"""Different words from which a column may be free text: where most rows have one of their own."""
MOST_CLASSES: Final = 1_000
STRAY: Final = 0.9
"""Share of numbers among the cells of a column of many values from which the rest are mistakes."""
DROP: Final = "drop"

_DATE: Final = re.compile(
    r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}([T ]\d{1,2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:?\d{2})?)?"
    r"|\d{1,2}[-/.]\d{1,2}[-/.](\d{2}|\d{4})([T ]\d{1,2}:\d{2}(:\d{2})?)?"
    r"|\d{1,2}:\d{2}(:\d{2}(\.\d+)?)?"
)


@dataclass(frozen=True)
class ColumnLook:
    """What a column was taken for."""

    name: str
    holds: str
    distinct: int
    missing: int
    example: str
    choice: str | None = None
    """How the user wants it encoded."""


@dataclass(frozen=True, eq=False)
class OwnData:
    """Features and targets of the rows that can be used; ``rows`` are their numbers in the file."""

    table: RawTable
    target: str
    task: Task
    why: str
    """Why it is that task."""
    x: Any
    y: Shaped[np.ndarray, " samples"]
    rows: Int64[np.ndarray, " samples"]
    columns: tuple[ColumnLook, ...]
    choices: Mapping[str, str] = field(default_factory=dict)
    """What ``gatefit.encoders.Table(columns=...)`` is told."""
    dropped: tuple[tuple[int, str], ...] = ()
    """How many rows were left out, and why."""

    def class_counts(self) -> list[tuple[Any, int]]:
        """Every class and its rows, the most frequent first."""
        values, counts = np.unique(self.y, return_counts=True)
        return sorted(zip(values.tolist(), counts.tolist(), strict=True), key=lambda pair: -pair[1])

    def part(self, rows: Int64[np.ndarray, " some"]) -> tuple[Any, Shaped[np.ndarray, " some"]]:
        """Features and targets of some of the samples."""
        return take(self.x, rows), self.y[rows]


def prepare(
    table: RawTable,
    target: str | None = None,
    *,
    task: str | None = None,
    choices: Mapping[str, str] | None = None,
) -> OwnData:
    """Features and target of a table, with every column looked at."""
    words = dict(choices or {})
    name, raw_target, features = _target(table, target)
    if table.samples == 0:
        raise DatasetError(f"{table.path} has no rows under its header; it needs one line a sample")
    _check_choices(table, words, features, name)
    rows, y, dropped = _read_target(table, name, raw_target)
    found_task, why = _task(table, name, y, task)
    if found_task == "classification":
        _check_classes(table, name, y, rows)
    elif y.dtype.kind not in "iuf":
        row, value = int(rows[0]), y[0]
        raise DatasetError(
            f"{table.where(row)}: a regression needs numbers in {name!r}, got {value!r}; leave out --task"
        )
    elif len(np.unique(y)) < 2:
        raise DatasetError(f"{table.path}: the target {name!r} is {y[0]} in every row; there is nothing to learn")
    looks, columns = [], {}
    pixels = table.image_shape is not None and all(raw.dtype == np.uint8 for raw in features.values())
    for label, raw in features.items():
        word = words.get(label)
        if pixels and word is None:  # a look at every pixel would take longer than it is worth
            columns[label] = raw[rows]
            continue
        if word == DROP:
            looks.append(ColumnLook(label, "dropped", 0, 0, "", DROP))
            continue
        raw, look = _read_feature(table, label, raw, rows, word)
        looks.append(look)
        columns[label] = raw
    if not columns:
        raise DatasetError(f"{table.path} has no column but the target {name!r} to learn from")
    kept = {label: word for label, word in words.items() if word != DROP}
    if table.names is None:
        # Columns without names are numbered as the circuit will count them: without target and what is dropped.
        numbered = dict(zip(columns, (f"x{i}" for i in range(len(columns))), strict=True))
        kept = {numbered[label]: word for label, word in kept.items()}
        columns = {numbered[label]: raw for label, raw in columns.items()}
    return OwnData(table, name, found_task, why, _features(table, columns), y, rows, tuple(looks), kept, dropped)


def _target(table: RawTable, target: str | None) -> tuple[str, Any, dict[str, Any]]:
    """The target's name and column, and all other columns by name."""
    names = table.names or [f"x{i}" for i in range(len(table.columns))]
    columns = dict(zip(names, table.columns, strict=True))
    if target is None and CLASS in table.beside:
        target = CLASS
    if target is None:
        known = [*table.beside, *names]
        raise DatasetError(
            f"say which column of {table.path} is to be learned: --target COLUMN; the columns are "
            f"{', '.join(known[:12])}{f' and {len(known) - 12} more' if len(known) > 12 else ''}"
        )
    if target in table.beside:
        return target, table.beside[target], columns
    if table.beside:
        raise DatasetError(f"{table.path} has no target {target!r}{nearest(target, table.beside)}")
    name = names[table.position(target)]
    return name, columns.pop(name), columns


def _check_choices(table: RawTable, choices: Mapping[str, str], features: Mapping[str, Any], target: str) -> None:
    for name, word in choices.items():
        if name == target:
            raise DatasetError(f"--column {name}={word} is about the target, which is not encoded; leave it out")
        if name not in features:
            raise DatasetError(f"{table.path} has no column {name!r}{nearest(name, features)}")
        if word != DROP:
            try:
                column_choice(word, name)
            except ValueError:
                raise DatasetError(
                    f"--column {name}={word}: a column can be {', '.join(CHOICES)}, {DROP}, thresholds:N or category:N"
                ) from None


def _features(table: RawTable, columns: dict[str, Any]) -> Any:
    """A matrix where the file holds one, else columns by name."""
    arrays = list(columns.values())
    if (
        table.names is None
        and not table.text
        and all(isinstance(a, np.ndarray) and a.dtype.kind in "biuf" for a in arrays)
    ):
        return np.stack(arrays, axis=1)
    return NamedColumns(columns)


def target_values(
    table: RawTable, target: str | None, labels: Shaped[np.ndarray, " classes"] | None
) -> tuple[RawTable, Int64[np.ndarray, " samples"], Shaped[np.ndarray, " samples"]]:
    """The table without its target, the rows that have one, and these: class numbers among ``labels``, or values.

    A class that ``labels`` does not have is -1. Cells are read as what the labels are: "1" is a word among words.
    """
    name, raw, _ = _target(table, target)
    rest = table if name in table.beside else table.without([name])
    if labels is None:
        rows, y, _ = _read_target(table, name, raw)
        if y.dtype.kind not in "iuf":
            raise DatasetError(f"{table.where(int(rows[0]))}: the model gives numbers, the target {name!r} is {y[0]!r}")
        return rest, rows, y.astype(np.float64)
    number = {label: k for k, label in enumerate(labels.tolist())}
    if table.text:
        by_word = {str(label): k for label, k in number.items()}
        by_word |= {str(label).lower(): k for label, k in number.items() if isinstance(label, bool)}
        numeric = labels.dtype.kind in "iuf"

        def of(cell: str) -> int | None:
            word = cell.strip()
            if word in by_word:
                return by_word[word]
            if is_missing_word(word):
                return None
            if word.lower() in by_word and labels.dtype.kind == "b":
                return by_word[word.lower()]
            return number.get(float(word), -1) if numeric and _plain_number(word) else -1

        found = [of(cell) for cell in raw]
    else:
        column = _column(table, name, raw)
        gone = column.mask().tolist()
        values = column.objects()
        words = labels.dtype.kind in "UO"
        found = [
            None if absent else number.get(str(value) if words else value, -1)
            for value, absent in zip(values, gone, strict=True)
        ]
    rows = np.array([row for row, k in enumerate(found) if k is not None], dtype=np.int64)
    if not rows.size:
        raise DatasetError(f"{table.path}: the target {name!r} is missing in every row")
    return rest, rows, np.array([k for k in found if k is not None], dtype=np.int64)


def _read_target(
    table: RawTable, name: str, raw: Any
) -> tuple[Int64[np.ndarray, " samples"], Shaped[np.ndarray, " samples"], tuple[tuple[int, str], ...]]:
    """Rows that have a target, their targets, and what was dropped."""
    column = _column(table, name, raw)
    missing = column.mask()
    if missing.all():
        raise DatasetError(f"{table.path}: the target {name!r} is missing in every row")
    rows = np.flatnonzero(~missing)
    if column.kind == "category":
        values = [column.values[i] for i in rows.tolist()]
        if all(map(_DATE.fullmatch, map(str, set(values)))):
            raise DatasetError(
                f"{table.where(int(rows[0]))}: the target {name!r} holds dates ({values[0]!r}), which are no classes; "
                f"replace them by numbers"
            )
        if not all(isinstance(value, str) for value in values):
            values = [str(value) for value in values]
        y = np.array(values, dtype=object)
    elif column.kind == "boolean":
        y = np.asarray(column.values)[rows].astype(np.bool_)
    else:
        y = np.asarray(column.numbers())[rows]
        if not np.isfinite(y).all():
            row = int(rows[np.flatnonzero(~np.isfinite(y))[0]])
            raise DatasetError(f"{table.where(row)}: the target {name!r} is infinite; give a number")
    lost = int(missing.sum())
    return rows, y, ((lost, f"no {name}"),) if lost else ()


def _task(table: RawTable, name: str, y: Shaped[np.ndarray, " samples"], asked: str | None) -> tuple[Task, str]:
    """What is to be learned, and why."""
    if asked == "regression":
        return "regression", "as --task says"
    words = y.dtype.kind not in "iuf"
    distinct = len(set(y.tolist()))
    whole = not words and bool((y == np.floor(y)).all())
    if asked == "classification":
        if not words and not whole:
            raise DatasetError(
                f"{table.path}: the target {name!r} holds numbers with decimals, a value and no class; leave out "
                f"--task classification"
            )
        return "classification", "as --task says"
    if words:
        return "classification", "truth values" if y.dtype.kind == "b" else "words"
    if whole and distinct <= FEW_VALUES:
        return "classification", f"{distinct} different whole numbers; --task regression takes them as values"
    return "regression", f"{distinct:,} different numbers"


def _check_classes(
    table: RawTable, name: str, y: Shaped[np.ndarray, " samples"], rows: Int64[np.ndarray, " samples"]
) -> None:
    counts = Counter(y.tolist())
    if len(counts) < 2:
        raise DatasetError(
            f"{table.path}: the target {name!r} is {y.tolist()[0]!r} in every row; there is nothing to learn"
        )
    if len(counts) > MOST_CLASSES or (len(counts) >= MANY_WORDS and len(counts) > len(y) / 2):
        advice = "; if it is a value, say --task regression" if y.dtype.kind in "iuf" else "; choose another --target"
        raise DatasetError(
            f"{table.where(int(rows[0]))}: the target {name!r} holds {len(counts):,} different values in {len(y):,} "
            f"rows ({_shown(y.tolist()[0])}): names or free text, not classes{advice}"
        )
    rare = [value for value, count in counts.items() if count == 1]
    if rare:
        row = int(rows[y.tolist().index(rare[0])])
        more = f" (so have {len(rare) - 1} other classes)" if len(rare) > 1 else ""
        raise DatasetError(
            f"{table.where(row)}: class {rare[0]!r} of {name!r} has one row only{more}, and a class needs one to learn "
            f"from and one to test with; add rows, leave it out, or give it the name of another class"
        )


def _read_feature(
    table: RawTable, name: str, raw: Any, rows: Int64[np.ndarray, " samples"], choice: str | None
) -> tuple[Any, ColumnLook]:
    """The column of the rows that are used, in the form that encoders read, and what it holds."""
    values = typed_cells(raw, table, name, choice) if table.text else raw
    if len(rows) < table.samples:
        values = [values[i] for i in rows.tolist()] if isinstance(values, list) else take(values, rows)
    column = _column(table, name, values, ready=True)
    missing = column.mask()
    present = int(len(missing) - missing.sum())
    if column.kind == "category":
        counts = Counter(value for value, gone in zip(column.values, missing.tolist(), strict=True) if not gone)
        distinct, example = len(counts), ", ".join(str(value) for value, _ in counts.most_common(3))
        if choice is None:
            _refuse_text(table, name, counts, present, int(rows[int(np.argmin(missing))]))
    elif column.kind == "empty":
        distinct, example = 0, ""
    else:
        numbers = np.asarray(column.numbers())[~missing]
        if numbers.dtype.kind == "f" and not np.isfinite(numbers).all():
            row = int(rows[np.flatnonzero(~missing)[np.flatnonzero(~np.isfinite(numbers))[0]]])
            raise DatasetError(
                f"{table.where(row)}: column {name!r} is infinite; give a number, or leave the cell empty"
            )
        found = np.unique(numbers)
        distinct, example = len(found), f"{found[0]:.6g} to {found[-1]:.6g}"
        if column.kind == "boolean":
            example = "false, true" if distinct == 2 else "true" if found[0] else "false"
    look = ColumnLook(name, HOLDS[column.kind], distinct, int(missing.sum()), _shown(example, 40), choice)
    return values, look


def _column(table: RawTable, name: str, raw: Any, *, ready: bool = False) -> Column:
    """A column read by its type; what no encoder reads (dates, lists) is refused in the file's own terms."""
    if table.text and not ready:
        raw = typed_cells(raw, table, name, None)
    try:
        return read_column(raw, name)
    except (TypeError, ValueError) as error:
        raise DatasetError(f"{table.path}: {error}, or drop it (--column {name}=drop)") from error


def _refuse_text(table: RawTable, name: str, counts: Counter[Any], present: int, row: int) -> None:
    """Dates and free text have no encoding that would be of use."""
    example = next(iter(counts))
    if all(map(_DATE.fullmatch, map(str, counts))):
        raise DatasetError(
            f"{table.where(row)}: column {name!r} holds dates or times ({example!r}), which have no encoding; drop it "
            f"(--column {name}=drop), or replace it by numbers such as year, month, weekday or hour"
        )
    if len(counts) >= MANY_WORDS and len(counts) > present / 2:
        raise DatasetError(
            f"{table.where(row)}: column {name!r} holds free text or names: {len(counts):,} different words in "
            f"{present:,} rows ({_shown(example)!r}); drop it (--column {name}=drop), or keep the most frequent words "
            f"(--column {name}=category:100)"
        )


def typed_cells(cells: Sequence[str], table: RawTable, name: str, choice: str | None) -> Any:
    """A column of text as numbers, truth values or categories; missing values as NaN or None."""
    known: dict[str, str | None] = {}
    values: list[str | None] = []
    for cell in cells:
        if cell not in known:
            text = cell.strip()
            known[cell] = None if is_missing_word(text) else text
        values.append(known[cell])
    words = {word for word in known.values() if word is not None}
    if not words:
        return np.full(len(values), np.nan)
    gaps = None in known.values()
    if all(word.lower() in ("true", "false") for word in words):
        found = [None if value is None else value.lower() == "true" for value in values]
        return found if gaps else np.array(found, dtype=np.bool_)
    strays = [word for word in words if not _plain_number(word)]
    if not strays:
        if not gaps:
            try:
                return np.array(values, dtype=np.int64)
            except (ValueError, OverflowError):
                pass
        return np.array(["nan" if value is None else value for value in values], dtype=np.float64)
    if choice is None and len(words) - len(strays) > FEW_VALUES:
        odd = set(strays)
        wrong = [row for row, value in enumerate(values) if value in odd]
        present = sum(value is not None for value in values)
        if len(wrong) <= (1 - STRAY) * present:
            value = values[wrong[0]]
            more = f" (and in {len(wrong) - 1:,} other rows)" if len(wrong) > 1 else ""
            hint = "; write decimals with a point" if is_number(str(value).replace(",", ".")) else ""
            raise DatasetError(
                f"{table.where(wrong[0])}: column {name!r} holds numbers, but here {value!r}{more}; correct it, leave "
                f"the cell empty where it is not known, or take all as words (--column {name}=category){hint}"
            )
    return values


def _plain_number(word: str) -> bool:
    return "_" not in word and is_number(word)


def _shown(value: object, most: int = 30) -> str:
    text = str(value)
    return text if len(text) <= most else f"{text[: most - 1]}…"
