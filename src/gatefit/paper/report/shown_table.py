"""A table's numbers as a reader sees them, the same in text, Markdown and HTML.

84.93 ± 0.03 (3)     ours: mean ± sample standard deviation (runs)
84.91 ± 0.01         the paper's
+0.02                ours less the paper's
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from gatefit.paper.outcome import Cell, Table, Value

MISSING: Final = "–"
MINUS: Final = "−"
_SIGNED: Final = ("pp",)
"""Units of differences, whose sign is always written."""


@dataclass(frozen=True)
class ShownCell:
    """What one cell says; an empty string where there is nothing to say."""

    ours: str
    paper: str = ""
    difference: str = ""
    best: bool = False
    footnote: int | None = None


@dataclass(frozen=True)
class ShownTable:
    """A table in words: cells by row, and the footnotes that cells refer to by number, from 1."""

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[ShownCell, ...]], ...]
    footnotes: tuple[str, ...]
    legend: str
    """What the numbers are."""
    best: str
    """What a marked cell is; empty where none is marked."""

    @property
    def has_paper(self) -> bool:
        """Whether any cell holds a value of the paper."""
        return any(cell.paper for _, cells in self.rows for cell in cells)

    @property
    def has_difference(self) -> bool:
        """Whether any cell holds a number of ours beside one of the paper's."""
        return any(cell.difference for _, cells in self.rows for cell in cells)

    def legend_with(self, mark: str) -> str:
        """What the numbers are, what stands below them, and what a cell with this mark is."""
        said = [self.legend]
        if self.has_paper:
            said.append("below each value the paper's" + (" and the difference" if self.has_difference else ""))
        said.append(self.best and f"{mark} {self.best}")
        words = "; ".join(filter(None, said))
        return words[:1].upper() + words[1:]


def number(value: float, digits: int, unit: str = "") -> str:
    """A number with ``digits`` decimals; whole amounts in full, tiny ones by their first digits, −0.00 as 0.00."""
    if math.isnan(value):
        return "not a number"
    if math.isinf(value):
        return "∞" if value > 0 else f"{MINUS}∞"
    if unit not in ("%", "pp") and value == int(value) and abs(value) < 1e15:
        text = f"{abs(value):,.0f}"
    elif 0 < abs(value) < 0.5 * 10**-digits and unit not in ("%", "pp"):
        text = f"{abs(value):.1e}"
    else:
        text = f"{abs(value):,.{digits}f}"
    positive = float(text.replace(",", "")) != 0
    if value < 0 and positive:
        return MINUS + text
    return f"+{text}" if unit in _SIGNED and positive else text


def shown_value(value: Value | str | None, digits: int, *, runs: bool = True) -> str:
    """A value in words: mean, spread, unit (but for %), and in brackets the number of runs."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    text = number(value.mean, digits, value.unit)
    if value.std is not None and math.isfinite(value.mean):
        text += f" ± {number(value.std, digits, '%')}"
    if value.unit not in ("", "%"):
        text += value.unit if value.unit == "×" else f" {value.unit}"
    return f"{text} ({value.count})" if runs and value.unit in ("%", "pp") else text


def signed(value: float, digits: int) -> str:
    """A difference, with its sign."""
    return number(value, digits, "pp") if math.isfinite(value) else ""


def show_table(table: Table) -> ShownTable:
    """Every cell of a table in words, the best of ours marked, equal notes under one number."""
    best = set(_best(table))
    notes: dict[str, int] = {}
    rows = []
    for i, (name, cells) in enumerate(table.rows):
        shown = []
        for j, cell in enumerate(cells):
            note = cell.note.strip()
            mark = notes.setdefault(note, len(notes) + 1) if note else None
            shown.append(_show_cell(cell, table.digits, (i, j) in best, mark))
        rows.append((name, tuple(shown)))
    marked = f"best of ours in its {table.best.removesuffix('s')}" if best else ""
    return ShownTable(table.caption, table.columns, tuple(rows), tuple(notes), _legend(table), marked)


def _show_cell(cell: Cell, digits: int, best: bool, footnote: int | None) -> ShownCell:
    # A label or a heading has no number on either side, and is no missing value.
    empty = MISSING if cell.paper is not None or cell.note else ""
    difference = "" if cell.difference is None else signed(cell.difference, digits)
    return ShownCell(
        ours=shown_value(cell.ours, digits) or empty,
        paper=shown_value(cell.paper, digits, runs=False),
        difference=difference,
        best=best,
        footnote=footnote,
    )


def _best(table: Table) -> Iterator[tuple[int, int]]:
    """Where our highest percentages are, among two or more, as far as the digits shown can tell."""
    if table.best == "none":
        return
    means: dict[tuple[int, int], float] = {}
    for i, (_, cells) in enumerate(table.rows):
        for j, cell in enumerate(cells):
            if isinstance(cell.ours, Value) and cell.ours.unit == "%" and math.isfinite(cell.ours.mean):
                means[i, j] = round(cell.ours.mean, table.digits)
    axis = 1 if table.best == "columns" else 0
    for line in {place[axis] for place in means}:
        rivals = {place: mean for place, mean in means.items() if place[axis] == line}
        if len(rivals) > 1:
            yield from (place for place, mean in rivals.items() if mean == max(rivals.values()))


def _legend(table: Table) -> str:
    values = [
        value
        for _, cells in table.rows
        for cell in cells
        for value in (cell.ours, cell.paper)
        if isinstance(value, Value)
    ]
    parts = []
    if any(value.unit == "%" for value in values):
        parts.append("in % where no unit is written")
    if any(isinstance(cell.ours, Value) and cell.ours.unit in ("%", "pp") for _, cells in table.rows for cell in cells):
        parts.append("mean ± standard deviation (number of runs)")
    return "; ".join(parts)


def joined_ranges(numbers: Sequence[int]) -> str:
    """0, 1, 2, 5 as "0–2, 5"."""
    parts: list[list[int]] = []
    for value in sorted(set(numbers)):
        if parts and value == parts[-1][-1] + 1:
            parts[-1].append(value)
        else:
            parts.append([value])
    return ", ".join(f"{run[0]}{MISSING}{run[-1]}" if len(run) > 2 else ", ".join(map(str, run)) for run in parts)
