"""An outcome as a part of an HTML page, and the page: one file, nothing fetched, readable without eyes and on paper."""

from collections.abc import Iterable, Sequence
from html import escape
from typing import Final

from gatefit.paper.outcome import Figure, Finding, Outcome, reproduce_command
from gatefit.paper.report.figures import figure_rows, inline_svg
from gatefit.paper.report.names import slug
from gatefit.paper.report.provenance import missing_runs, provenance, runs_missing
from gatefit.paper.report.shown_table import ShownCell, ShownTable, show_table
from gatefit.view.page import page_html, rich

VERDICTS: Final[dict[Finding, tuple[str, str]]] = {
    "holds": ("holds", "Holds"),
    "by definition": ("holds", "Holds by definition"),
    "level": ("partly", "Level"),
    "inconclusive": ("open", "Inconclusive"),
    "fails": ("fails", "Does not hold"),
    "open": ("open", "Cannot be said"),
}
_MOST_ROWS: Final = 600
"""Numbers of a figure that are listed below it; a longer list helps nobody."""


def render_html(outcome: Outcome, drawings: Sequence[bytes] = ()) -> str:
    """A self-contained page of one outcome; ``drawings`` holds one SVG a figure."""
    title = f"{outcome.label}: {outcome.title} ({outcome.scale} scale)"
    content = outcome_html(outcome, slug(outcome.label), drawings)
    return page_html(title, f'<main id="content">\n<h1>{escape(title)}</h1>\n{content}\n</main>')


def outcome_html(outcome: Outcome, prefix: str, drawings: Sequence[bytes] = (), *, whole: bool = True) -> str:
    """Everything below an outcome's heading; ids start with ``prefix``; ``whole`` as in Markdown."""
    facts = "".join(f"<span>{escape(name)} {escape(value)}</span>" for name, value in provenance(outcome))
    parts = [f'<p class="facts">{facts}</p>', *(_table(show_table(table)) for table in outcome.tables)]
    for i, (figure, drawing) in enumerate(zip(outcome.figures, drawings, strict=False), 1):
        parts.append(_figure(figure, drawing, f"{prefix}-figure-{i}"))
    if outcome.checks:
        items = []
        for check in outcome.checks:
            kind, words = VERDICTS[check.finding]
            words += f" by {escape(check.where)}" if check.where else ""
            items.append(
                f'<li class="{kind}"><span class="verdict">{words}:</span> {rich(check.claim)}'
                f"{f'<br>{rich(check.evidence)}' if check.evidence else ''}</li>"
            )
        parts.append(f'<ul class="checks">{"".join(items)}</ul>')
    if outcome.notes and not whole:
        parts.append(_list(rich(note) for note in outcome.notes))
    elif whole and (outcome.notes or outcome.protocol):
        parts.append(_list(rich(note) for note in (*outcome.notes, *outcome.protocol)))
    if outcome.missing and not whole:
        listed = f"<code>gatefit runs missing --label {escape(outcome.label)}</code> lists them."
        parts.append(f'<p class="missing">{runs_missing(outcome)}: {listed}</p>')
    elif outcome.missing:
        lines = _list(escape(line) for line in missing_runs(outcome.missing))
        head = (
            f"{runs_missing(outcome)}; <code>{escape(reproduce_command(outcome.label, outcome.scale))}</code> trains:"
        )
        parts.append(f'<div class="missing"><p>{head}</p>{lines}</div>')
    return "\n".join(parts)


def _list(items: Iterable[str]) -> str:
    return f"<ul>{''.join(f'<li>{item}</li>' for item in items)}</ul>"


def _table(table: ShownTable) -> str:
    titles = "".join(f'<th scope="col">{escape(column)}</th>' for column in table.columns)
    rows = "\n".join(
        f'<tr><th scope="row">{escape(name)}</th>{"".join(map(_cell, cells))}</tr>' for name, cells in table.rows
    )
    notes = [f"<sup>{i}</sup> {escape(note)}" for i, note in enumerate(table.footnotes, 1)]
    said = [table.legend]
    if table.has_paper:
        said.append("below each value the paper's" + (" and the difference" if table.has_difference else ""))
    said.append(table.best and f"★ {table.best}")
    legend = "; ".join(filter(None, said))
    below = "<br>".join(filter(None, [escape(legend[:1].upper() + legend[1:]), *notes]))
    caption = escape(table.caption)
    return (
        f'<div class="wide" tabindex="0" role="region" aria-label="{escape(table.caption)}"><table>'
        f"<caption>{caption}</caption>\n<thead><tr><td></td>{titles}</tr></thead>\n<tbody>\n{rows}\n</tbody></table></div>"
        f'\n<p class="legend">{below}</p>'
    )


def _cell(cell: ShownCell) -> str:
    mark = "" if cell.footnote is None else f" <sup>{cell.footnote}</sup>"
    hidden = '<span class="hidden">, best</span>' if cell.best else ""
    parts = []
    if cell.ours or mark:
        parts.append(f'<span class="ours{" best" if cell.best else ""}">{escape(cell.ours)}{hidden}{mark}</span>')
    if cell.paper:
        parts.append(f'<span class="paper">paper {escape(cell.paper)}</span>')
    if cell.difference:
        parts.append(f'<span class="difference"><span class="hidden">difference </span>{cell.difference}</span>')
    return f"<td>{''.join(parts)}</td>"


def _figure(figure: Figure, drawing: bytes, prefix: str) -> str:
    caption = f"<figcaption>{escape(figure.caption)}</figcaption>"
    return f"<figure>{inline_svg(drawing, prefix)}{caption}</figure>\n{_numbers(figure)}"


def _numbers(figure: Figure) -> str:
    """The numbers behind a figure, folded away, for those who cannot see it or want them."""
    rows = [(panel.title, *row) for panel in figure.panels for row in figure_rows(panel)]
    if not rows or len(rows) > _MOST_ROWS:
        return ""
    lines = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    head = "".join(f'<th scope="col">{name}</th>' for name in ("panel", "series", "at", "value"))
    return (
        f"<details><summary>The {len(rows)} numbers of this figure</summary>"
        f'<div class="wide" tabindex="0" role="region" aria-label="Numbers of {escape(figure.caption)}">'
        f"<table><caption>{escape(figure.caption)}</caption><thead><tr>{head}</tr></thead>"
        f"<tbody>{lines}</tbody></table></div></details>"
    )
