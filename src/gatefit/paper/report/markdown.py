"""An outcome as Markdown that GitHub and MkDocs show alike: tables, figures by their paths, claims, missing runs."""

import re
from collections.abc import Sequence
from typing import Final

from gatefit.paper.outcome import Finding, Outcome, reproduce_command
from gatefit.paper.report.figures import describe
from gatefit.paper.report.provenance import missing_runs, provenance, runs_missing
from gatefit.paper.report.shown_table import ShownCell, ShownTable, show_table

VERDICTS: Final[dict[Finding, str]] = {
    "holds": "✓ holds",
    "by definition": "≡ by definition",
    "level": "= level",
    "inconclusive": "~ inconclusive",
    "fails": "✗ does not hold",
    "open": "? cannot be said",
}


def render_markdown(outcome: Outcome, figure_paths: Sequence[str] = (), *, level: int = 2) -> str:
    """A section under a heading; ``figure_paths`` holds one path a figure, as the page will refer to it."""
    heading = f"{'#' * level} {escaped(outcome.label)}: {escaped(outcome.title)} ({outcome.scale} scale)"
    return f"{heading}\n\n{outcome_body(outcome, figure_paths)}"


def outcome_body(outcome: Outcome, figure_paths: Sequence[str] = (), *, whole: bool = True) -> str:
    """Everything below the heading; not ``whole``, without what other pages say: the protocol and the missing runs."""
    parts = [" · ".join(f"{name} {escaped(value)}" for name, value in provenance(outcome))]
    parts += [_table(show_table(table)) for table in outcome.tables]
    for figure, path in zip(outcome.figures, figure_paths, strict=False):
        alternative = escaped(f"{figure.caption}. {describe(figure)}").replace("\n", " ")
        parts.append(f"![{alternative}]({path})\n\n*{escaped(figure.caption)}*")
    if outcome.checks:
        lines = [
            f"- **{VERDICTS[check.finding]}**{' by ' * bool(check.where)}{escaped(check.where)}: {escaped(check.claim)}"
            + (f" — {escaped(check.evidence)}" * bool(check.evidence))
            for check in outcome.checks
        ]
        parts.append("\n".join(lines))
    if notes := (*outcome.notes, *(outcome.protocol if whole else ())):
        parts.append("\n".join(["Notes:", "", *(f"- {escaped(note)}" for note in notes)]))
    if outcome.missing and not whole:
        parts.append(f"{runs_missing(outcome)}: `gatefit runs missing --label {outcome.label}` lists them.")
    elif outcome.missing:
        lines = [f"- {escaped(line)}" for line in missing_runs(outcome.missing)]
        head = f"{runs_missing(outcome)}; `{reproduce_command(outcome.label, outcome.scale)}` trains:"
        parts.append("\n".join([head, "", *lines]))
    return "\n\n".join(parts) + "\n"


def _table(table: ShownTable) -> str:
    titles = ["", *map(escaped, table.columns)]
    lines = [
        f"**{escaped(table.caption)}**",
        "",
        f"| {' | '.join(titles)} |",
        f"|{'|'.join(['---'] * len(titles))}|",
    ]
    for name, cells in table.rows:
        lines.append(f"| {escaped(name)} | {' | '.join(map(_cell, cells))} |")
    said = [table.legend]
    if table.has_paper:
        said.append("below each value the paper's" + (" and the difference" if table.has_difference else ""))
    said.append(table.best and f"bold: {table.best}")
    notes = [f"<sup>{i}</sup> {escaped(note)}" for i, note in enumerate(table.footnotes, 1)]
    legend = "; ".join(filter(None, said))
    below = "<br>".join(filter(None, [legend[:1].upper() + legend[1:], *notes]))
    return "\n".join([*lines, "", below] if below else lines)


def _cell(cell: ShownCell) -> str:
    ours = escaped(cell.ours)
    if cell.best:
        ours = f"**{ours}**"
    if cell.footnote is not None:
        ours += f" <sup>{cell.footnote}</sup>"
    paper = f"paper {escaped(cell.paper)}" if cell.paper else ""
    return "<br>".join(filter(None, [ours, paper, cell.difference]))


def escaped(text: str) -> str:
    """Text that Markdown shows as it is, on one line; what stands between backticks stays code."""
    parts = re.split(r"(`[^`]*`)", " ".join(text.split()))
    return "".join(part if i % 2 else _escape(part) for i, part in enumerate(parts))


def _escape(text: str) -> str:
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    text = re.sub(r"([\\`*\[\]|$])", r"\\\1", text)
    # c_ab needs no backslash; _ab_ would be emphasis.
    return re.sub(r"(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])", r"\\_", text)
