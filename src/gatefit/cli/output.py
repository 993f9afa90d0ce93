"""What verbs print: aligned tables for people, one JSON object for machines.

Names and metadata come from anybody's files. What a terminal would obey (escape sequences, line breaks in a name, marks
that reverse the order of writing) is printed as its code, ``\\x1b``; what goes to a file or a pipe is exact.
"""

import json
import math
import re
import sys
from collections.abc import Iterable, Sequence
from typing import Any, Final, Literal

import typer
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table

PIPE_WIDTH = 240
"""Columns where nobody looks at the edge: a file or a pipe should not be wrapped."""
_NAME = 24
"""Characters up to which a cell is a name or a number, which is worth nothing in pieces."""


# Control characters, line and paragraph separators, marks of writing direction, halves of characters.
_UNPRINTABLE: Final = re.compile(
    "[\\x00-\\x1f\\x7f-\\x9f\\u061c\\u200e\\u200f\\u2028-\\u202e\\u2066-\\u2069\\ud800-\\udfff]"
)


def printable(text: str, keep: str = "") -> str:
    """The text with every character that a terminal would obey as its code, but for those in ``keep``."""
    return _UNPRINTABLE.sub(
        lambda match: match[0] if match[0] in keep else match[0].encode("unicode_escape").decode("ascii"), text
    )


def write_data(text: str) -> None:
    """Text for machines on stdout: exact in a file or a pipe, harmless on a terminal."""
    # Not typer.echo, which would take escape sequences out of what goes to a pipe.
    sys.stdout.write(printable(text, keep="\n\t") if sys.stdout.isatty() else text)


def console(*, stderr: bool = False) -> Console:
    """A console that wraps on a terminal only."""
    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else PIPE_WIDTH
    return Console(stderr=stderr, width=width, highlight=False, markup=False, emoji=False)


def json_text(content: dict[str, Any]) -> str:
    """One JSON object, strict: no NaN; what a terminal would obey is escaped, which JSON reads back as it was."""
    text = json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False)
    return _UNPRINTABLE.sub(lambda match: match[0] if match[0] == "\n" else json.dumps(match[0])[1:-1], text)


def print_json(content: dict[str, Any]) -> None:
    """One JSON object on stdout."""
    typer.echo(json_text(content))


def print_pairs(pairs: Iterable[tuple[str, str]]) -> None:
    """Names and values in two columns."""
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 3, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in pairs:
        table.add_row(printable(name), printable(value))
    _print(table)


def print_table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Rows under titles; columns whose every cell is a number are aligned to the right.

    Only prose is folded: where names and numbers alone do not fit, the lines are longer than the terminal.
    """
    rows = [tuple(map(printable, row)) for row in rows]
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0))
    for i, title in enumerate(titles):
        numeric = all(row[i][:1].isdigit() or row[i] in ("", "-") for row in rows)
        width = max((len(row[i]) for row in rows), default=0)
        justify: Literal["left", "right"] = "right" if numeric else "left"
        table.add_column(
            title,
            justify=justify,
            overflow="fold",
            no_wrap=width <= _NAME,
            min_width=min(max(width, len(title)), _NAME),
        )
    for row in rows:
        table.add_row(*row)
    _print(table)


def _print(table: Table) -> None:
    target = console()
    if target.is_terminal:
        room = target.options.update(max_width=PIPE_WIDTH)
        target.width = max(target.width, Measurement.get(target, room, table).minimum)
        target.print(table)
        return
    with target.capture() as capture:
        target.print(table)
    typer.echo("\n".join(line.rstrip() for line in capture.get().splitlines()))


def percent(value: float | None) -> str:
    """0.9543 as "95.43 %"."""
    return "-" if value is None else f"{100 * value:.2f} %"


def points(value: float | None) -> str:
    """A difference of accuracies in percentage points, signed."""
    return "-" if value is None else f"{100 * value:+.2f} points"


def duration(seconds: float) -> str:
    """Seconds as "0.42 s", "12 s", "3:05" or "2:03:05"."""
    if seconds < 10:
        return f"{seconds:.2f} s"
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes, rest = divmod(math.floor(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
