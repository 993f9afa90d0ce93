"""An outcome as text for a terminal: ours, the paper's and the difference under each other, then the claims.

             Adult
Soft-Mix     ours      84.71 ± 0.05 (3)
             paper     84.68 ± 0.07
             differ.   +0.03
"""

import textwrap
from collections.abc import Iterator, Sequence
from typing import Final

from gatefit.paper.outcome import Check, Finding, Outcome, reproduce_command
from gatefit.paper.report.provenance import missing_runs, provenance, runs_missing
from gatefit.paper.report.shown_table import ShownCell, ShownTable, show_table

MARKS: Final[dict[Finding, str]] = {
    "holds": "✓",
    "by definition": "≡",
    "level": "=",
    "inconclusive": "~",
    "fails": "✗",
    "open": "?",
}
_GAP: Final = 2


def render_text(outcome: Outcome, *, width: int = 100, store: str | None = None) -> str:
    """The whole outcome; a table wider than ``width`` is split into blocks of columns."""
    facts = "; ".join(f"{name} {value}" for name, value in provenance(outcome))
    parts = [f"{outcome.label}  {outcome.title}\n{_wrap(facts, width)}"]
    parts += ["\n".join(_table(show_table(table), width)) for table in outcome.tables]
    if outcome.figures:
        parts.append("\n".join(_wrap(f"figure: {figure.caption}", width, "  ") for figure in outcome.figures))
    if outcome.checks:
        parts.append("\n".join(["claims", *(_check(check, width) for check in outcome.checks)]))
    if notes := (*outcome.notes, *outcome.protocol):
        parts.append("\n".join(["notes", *(_wrap(f"- {note}", width, "  ") for note in notes)]))
    if outcome.missing:
        head = f"{runs_missing(outcome)}; train with: {reproduce_command(outcome.label, outcome.scale, store)}"
        parts.append("\n".join([head, *(_wrap(f"- {line}", width, "  ") for line in missing_runs(outcome.missing))]))
    return "\n\n".join(parts) + "\n"


def _check(check: Check, width: int) -> str:
    lines = [_wrap(f"{MARKS[check.finding]} {check.claim}{found_words(check)}", width, "  ")]
    if check.evidence:
        lines.append(_wrap(f"  {check.evidence}", width, "  "))
    return "\n".join(lines)


def found_words(check: Check) -> str:
    """What a mark does not say: that it is no yes or no, and which runs judge where they are others."""
    words: list[str] = [check.finding] if check.finding in ("level", "inconclusive", "by definition") else []
    words += [f"judged by {check.where}"] if check.where else []
    return f" ({'; '.join(words)})" if words else ""


def _wrap(text: str, width: int, indent: str = "") -> str:
    return textwrap.fill(text, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def _table(table: ShownTable, width: int) -> list[str]:
    lines = [_wrap(table.caption, width)]
    kinds = ["ours", *(["paper"] if table.has_paper else []), *(["differ."] if table.has_difference else [])]
    names = [name for name, _ in table.rows]
    name_width = max(map(len, names), default=0)
    # One line a row needs no word before its numbers.
    kind_width = max(map(len, kinds)) if len(kinds) > 1 else 0
    widths = [
        max(len(title), *(len(text) for _, cells in table.rows for text in _lines(cells[j], kinds)), 0)
        for j, title in enumerate(table.columns)
    ]
    lead = name_width + _GAP + (kind_width + _GAP if kind_width else 0)
    for block in _blocks(widths, width - lead):
        lines.append(" " * lead + _row([table.columns[j] for j in block], [widths[j] for j in block]))
        for name, cells in table.rows:
            texts = [_lines(cells[j], kinds) for j in block]
            for k, kind in enumerate(kinds):
                if k and not any(column[k] for column in texts):
                    continue
                start = f"{name if k == 0 else '':<{name_width + _GAP}}"
                start += f"{kind:<{kind_width + _GAP}}" if kind_width else ""
                lines.append((start + _row([column[k] for column in texts], [widths[j] for j in block])).rstrip())
        lines.append("")
    lines.pop()
    lines += [_wrap(f"[{i}] {note}", width, "    ") for i, note in enumerate(table.footnotes, 1)]
    legend = "; ".join(filter(None, [table.legend, table.best and f"* {table.best}"]))
    if legend:
        lines.append(_wrap(f"({legend})", width))
    return [line.rstrip() for line in lines]


def _lines(cell: ShownCell, kinds: Sequence[str]) -> list[str]:
    ours = cell.ours + ("*" if cell.best else "") + ("" if cell.footnote is None else f" [{cell.footnote}]")
    texts = {"ours": ours, "paper": cell.paper, "differ.": cell.difference}
    return [texts[kind] for kind in kinds]


def _row(cells: Sequence[str], widths: Sequence[int]) -> str:
    return (" " * _GAP).join(f"{cell:<{width}}" for cell, width in zip(cells, widths, strict=True)).rstrip()


def _blocks(widths: Sequence[int], room: int) -> Iterator[list[int]]:
    """Consecutive columns that fit side by side; at least one at a time."""
    block: list[int] = []
    taken = 0
    for j, width in enumerate(widths):
        if block and taken + _GAP + width > room:
            yield block
            block, taken = [], 0
        taken += width + (_GAP if block else 0)
        block.append(j)
    if block:
        yield block
