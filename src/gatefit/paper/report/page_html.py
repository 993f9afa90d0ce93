"""The report as one HTML file."""

from collections.abc import Mapping, Sequence
from html import escape
from itertools import groupby
from typing import Final

from gatefit.paper.claims import Judged, Verdict
from gatefit.paper.report.contents import Report, Section
from gatefit.paper.report.first_page import (
    SCALE_TITLES,
    claims_summary,
    paper_words,
    protocol,
    table_legend,
    verdict_words,
    what,
    with_error,
)
from gatefit.paper.report.html import VERDICTS, outcome_html
from gatefit.paper.report.names import figure_names, slug
from gatefit.paper.report.provenance import machines
from gatefit.paper.report.shown_table import MISSING
from gatefit.paper.table_one import Row
from gatefit.view.page import page_html, rich

_KINDS: Final[dict[Verdict, str]] = {
    "confirmed": "holds",
    "by definition": "holds",
    "partly confirmed": "partly",
    "level": "partly",
    "inconclusive": "open",
    "not confirmed": "fails",
    "not testable here": "open",
}


def html_report(title: str, regenerate: str, report: Report, drawings: Mapping[str, bytes]) -> str:
    """The paper's first table, contents, claims with their evidence, the protocol, then every label."""
    parts = [
        f"<header><h1>{escape(title)}</h1></header>",
        _contents(report),
        '<main id="content">',
        f"<p>{rich(what(report))}</p>",
        f"<p>Made by:</p><pre><code>{escape(regenerate)}</code></pre>",
    ]
    if report.first:
        parts += ['<section id="table-1">', "<h2>Table 1</h2>", _first(report.first), "</section>"]
    if report.claims:
        parts += [
            '<section id="claims">',
            "<h2>The paper's claims</h2>",
            f"<p>{rich(claims_summary(report.claims))}</p>",
        ]
        parts += [*_claims(report.claims), "</section>"]
    parts += ['<section id="protocol">', "<h2>How it differs from the paper's protocol</h2>"]
    parts += [f"<p>Machine: {escape(words)}.</p>" for words in machines(report.runs)]
    for scale, notes in protocol(report).items():
        items = "".join(f"<li>{rich(note)}</li>" for note in notes)
        parts.append(f"<h3>{SCALE_TITLES[scale]}</h3><ul>{items}</ul>")
    parts.append("</section>")
    parts += [_section(section, drawings) for section in report.sections]
    return page_html(title, "\n".join([*parts, "</main>"]))


def _first(rows: Sequence[Row]) -> str:
    titles = ("CovJac − STE ± error", "paper", "verdict", "judged by", "T")
    head = "".join(f'<th scope="col">{escape(title)}</th>' for title in titles)
    lines = []
    for row in rows:
        verdict = verdict_words(row).replace("*", "")
        cells = (with_error(row.gap), paper_words(row), verdict, row.where, row.temperature)
        body = "".join(f"<td>{escape(cell or MISSING)}</td>" for cell in cells)
        lines.append(f'<tr><th scope="row">{escape(row.name)}</th>{body}</tr>')
    caption = "M-CovJac less M-STE, points of accuracy"
    return (
        f'<div class="wide" tabindex="0" role="region" aria-label="{caption}"><table><caption>{caption}</caption>'
        f"<thead><tr><td></td>{head}</tr></thead><tbody>{''.join(lines)}</tbody></table></div>"
        f'<p class="legend">{escape(table_legend())}</p>'
    )


def _contents(report: Report) -> str:
    items = ['<li><a href="#claims">The paper\'s claims</a></li>'] if report.claims else []
    for section in report.sections:
        note = "" if section.outcomes else " (no runs yet)"
        words = f"{escape(section.label)}: {escape(section.title)}"
        items.append(f'<li><a href="#{slug(section.label)}">{words}</a>{note}</li>')
    return f'<nav aria-label="Contents"><ul>{"".join(items)}</ul></nav>'


def _claims(claims: Sequence[Judged]) -> list[str]:
    parts = []
    for place, group in groupby(claims, key=lambda judged: judged.claim.place):
        parts.append(f"<h3>{escape(place)}</h3>")
        parts += [_claim(judged) for judged in group]
    return parts


def _claim(judged: Judged) -> str:
    claim = judged.claim
    extras = f" Whose: {', '.join(judged.whose)}." if judged.whose else ""
    extras += "".join(f" {rich(extra)}" for extra in (claim.correction, claim.remark) if extra)
    if judged.opinion and claim.opinion is not None:
        extras += f" In our opinion ({claim.opinion.whose}): {rich(claim.opinion.reason)}"
    kind = _KINDS[judged.verdict]
    items = []
    for evidence in judged.evidence:
        source = f"<em>{escape(evidence.source)}</em>: {rich(evidence.text)}"
        mark = said = ""
        if evidence.finding is not None:
            kind_of, words = VERDICTS[evidence.finding]
            mark, said = f' class="{kind_of}"', f'<span class="hidden">{words}: </span>'
        items.append(f"<li{mark}>{said}{source}</li>")
    listed = f'<ul class="checks">{"".join(items)}</ul>' if items else ""
    verdict = f'<span class="verdict {kind}">{escape(judged.sentence)}</span>'
    return f"<p><strong>{rich(claim.statement)}</strong> {verdict}{extras}</p>\n{listed}"


def _section(section: Section, drawings: Mapping[str, bytes]) -> str:
    name = slug(section.label)
    parts = [f'<section id="{name}">', f"<h2>{escape(section.label)}: {escape(section.title)}</h2>"]
    if not section.outcomes:
        made = " or ".join(f"<code>{escape(command)}</code>" for command in section.commands)
        parts.append(f'<p class="missing">No run of this label is finished; {made} makes them.</p>')
    for outcome in section.outcomes:
        if outcome.used:
            parts.append(f"<h3>{SCALE_TITLES[outcome.scale]}</h3>")
        shown = [drawings[drawing] for drawing in figure_names(outcome) if drawing in drawings]
        parts.append(outcome_html(outcome, f"{name}-{outcome.scale}", shown, whole=False))
    return "\n".join([*parts, "</section>"])
