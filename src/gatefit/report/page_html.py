"""The report as one HTML file."""

from collections.abc import Mapping, Sequence
from html import escape
from itertools import groupby

from gatefit.report.claims import Judged
from gatefit.report.collect import Report, Section
from gatefit.report.html import VERDICTS, outcome_html, page_html, rich
from gatefit.report.names import figure_names, slug
from gatefit.report.page_markdown import SCALE_TITLES

_KINDS = {"confirmed": "holds", "partly confirmed": "partly", "not confirmed": "fails", "not testable here": "open"}


def html_report(
    title: str, introduction: Sequence[str], regenerate: str, report: Report, drawings: Mapping[str, bytes]
) -> str:
    """Introduction, contents, claims, then every label."""
    parts = [
        f"<header><h1>{escape(title)}</h1></header>",
        _contents(report),
        '<main id="content">',
        *(f"<p>{rich(text)}</p>" for text in introduction),
        f"<p>Made by:</p><pre><code>{escape(regenerate)}</code></pre>",
    ]
    if report.claims:
        parts += ['<section id="claims">', "<h2>The paper's claims</h2>", *_claims(report.claims), "</section>"]
    parts += [_section(section, drawings) for section in report.sections]
    return page_html(title, "\n".join([*parts, "</main>"]))


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
    extras = "".join(f" {rich(extra)}" for extra in (claim.correction, claim.remark) if extra)
    kind = _KINDS[judged.verdict]
    items = []
    for evidence in judged.evidence:
        source = f"<em>{escape(evidence.source)}</em>: {rich(evidence.text)}"
        mark = "" if evidence.source == "tests" else f' class="{VERDICTS[evidence.holds][0]}"'
        said = "" if evidence.source == "tests" else f'<span class="hidden">{VERDICTS[evidence.holds][1]}: </span>'
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
        parts.append(outcome_html(outcome, f"{name}-{outcome.scale}", shown))
    return "\n".join([*parts, "</section>"])
