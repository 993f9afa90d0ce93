"""The report as one HTML file: what ``templates/report.html.jinja`` shows, put into words here."""

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any, Final

from markupsafe import Markup

from gatefit.backends.templates import render
from gatefit.paper.claims import Judged, Verdict
from gatefit.paper.outcome import Figure, Finding, Outcome
from gatefit.paper.report.contents import (
    SCALE_TITLES,
    Report,
    Section,
    claims_summary,
    figure_names,
    introduction,
    paper_words,
    protocol,
    slug,
    table_legend,
    verdict_words,
    with_error,
)
from gatefit.paper.report.figures import figure_rows, inline_svg
from gatefit.paper.report.provenance import machines, provenance, runs_missing
from gatefit.paper.report.shown_table import MISSING, show_table
from gatefit.paper.table_one import Row
from gatefit.view.page import page, with_code

FINDING_WORDS: Final[dict[Finding, tuple[str, str]]] = {
    "holds": ("holds", "Holds"),
    "by definition": ("holds", "Holds by definition"),
    "level": ("partly", "Level"),
    "inconclusive": ("open", "Inconclusive"),
    "fails": ("fails", "Does not hold"),
    "open": ("open", "Cannot be said"),
}
"""The kind of mark in the style sheet, and the words for those who do not see it."""
VERDICT_KINDS: Final[dict[Verdict, str]] = {
    "confirmed": "holds",
    "by definition": "holds",
    "partly confirmed": "partly",
    "level": "partly",
    "inconclusive": "open",
    "not confirmed": "fails",
    "not testable here": "open",
}
_MOST_NUMBERS: Final = 600
"""Numbers of a figure that are listed below it; a longer list helps nobody."""


def html_report(title: str, regenerate: str, report: Report, drawings: Mapping[str, bytes]) -> str:
    """The whole report; ``drawings`` holds its figures by file name."""
    body = render(
        "gatefit.paper.report",
        "report.html.jinja",
        with_code=with_code,
        title=title,
        regenerate=regenerate,
        introduction=introduction(report),
        first=[_first_table_line(row) for row in report.first],
        first_legend=table_legend(),
        claims_summary=claims_summary(report.claims),
        claims=[
            (place, [_claim(judged) for judged in group])
            for place, group in groupby(report.claims, key=lambda judged: judged.claim.place)
        ],
        machines=machines(report.runs),
        protocol=[(SCALE_TITLES[scale], notes) for scale, notes in protocol(report).items()],
        sections=[_section(section, drawings) for section in report.sections],
    )
    return page(title, Markup(body))


def _first_table_line(row: Row) -> tuple[str, list[str]]:
    verdict = verdict_words(row).replace("*", "")
    cells = (with_error(row.gap), paper_words(row), verdict, row.where, row.temperature)
    return row.name, [cell or MISSING for cell in cells]


def _claim(judged: Judged) -> dict[str, Any]:
    claim = judged.claim
    remarks = [f"Whose: {', '.join(judged.whose)}."] if judged.whose else []
    remarks += [remark for remark in (claim.correction, claim.remark) if remark]
    if judged.opinion and claim.opinion is not None:
        remarks.append(f"In our opinion ({claim.opinion.whose}): {claim.opinion.reason}")
    evidence = []
    for each in judged.evidence:
        kind, verdict = FINDING_WORDS[each.finding] if each.finding is not None else ("", "")
        evidence.append({"kind": kind, "verdict": verdict, "source": each.source, "text": each.text})
    return {
        "statement": claim.statement,
        "kind": VERDICT_KINDS[judged.verdict],
        "verdict": judged.sentence,
        "remarks": remarks,
        "evidence": evidence,
    }


def _section(section: Section, drawings: Mapping[str, bytes]) -> dict[str, Any]:
    name = slug(section.label)
    outcomes = []
    for outcome in section.outcomes:
        drawn = [drawings[each] for each in figure_names(outcome) if each in drawings]
        scale = SCALE_TITLES[outcome.scale] if outcome.used else ""
        outcomes.append((scale, _outcome(outcome, f"{name}-{outcome.scale}", drawn)))
    return {
        "id": name,
        "label": section.label,
        "title": section.title,
        "commands": section.commands,
        "outcomes": outcomes,
    }


def _outcome(outcome: Outcome, prefix: str, drawings: Sequence[bytes]) -> dict[str, Any]:
    """Everything below an outcome's heading; ids start with ``prefix``."""
    checks = []
    for check in outcome.checks:
        kind, words = FINDING_WORDS[check.finding]
        verdict = f"{words} by {check.where}" if check.where else words
        checks.append({"kind": kind, "verdict": verdict, "claim": check.claim, "evidence": check.evidence})
    return {
        "label": outcome.label,
        "facts": provenance(outcome),
        "tables": [show_table(table) for table in outcome.tables],
        "figures": [
            _figure(figure, drawing, f"{prefix}-figure-{i}")
            for i, (figure, drawing) in enumerate(zip(outcome.figures, drawings, strict=False), 1)
        ],
        "checks": checks,
        "notes": outcome.notes,
        "missing": runs_missing(outcome) if outcome.missing else "",
    }


def _figure(figure: Figure, drawing: bytes, prefix: str) -> dict[str, Any]:
    """A drawing, and the numbers behind it for those who cannot see it or want them."""
    numbers = [(panel.title, *row) for panel in figure.panels for row in figure_rows(panel)]
    return {
        "caption": figure.caption,
        "drawing": Markup(inline_svg(drawing, prefix)),
        "numbers": numbers if len(numbers) <= _MOST_NUMBERS else [],
    }
