"""The report as one Markdown page."""

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Final

from gatefit.experiments.outcome import Outcome
from gatefit.report.claims import Judged
from gatefit.report.collect import Report, Section
from gatefit.report.markdown import escaped, outcome_body
from gatefit.report.names import figure_names, slug
from gatefit.report.text import MARKS

SCALE_TITLES: Final = {"paper": "At the paper's scale", "small": "At small scale", "tiny": "At tiny scale"}


def markdown_report(
    title: str, introduction: Sequence[str], regenerate: str, report: Report, drawings: Mapping[str, bytes]
) -> str:
    """Introduction, claims, then every label; figures are referred to in figures/ beside the page."""
    parts = [
        f"# {title}",
        "<!-- Generated; change the results or the code, not this file. -->",
        *map(escaped, introduction),
        "Made by:",
        f"```\n{regenerate}\n```",
        _contents(report),
    ]
    if report.claims:
        parts += ['<a id="claims"></a>', "## The paper's claims", *_claims(report.claims)]
    parts += [_section(section, drawings) for section in report.sections]
    return "\n\n".join(parts).rstrip() + "\n"


def _contents(report: Report) -> str:
    lines = ["- [The paper's claims](#claims)"] if report.claims else []
    for section in report.sections:
        note = "" if section.outcomes else " (no runs yet)"
        lines.append(f"- [{escaped(section.label)}: {escaped(section.title)}](#{slug(section.label)}){note}")
    return "\n".join(lines)


def _claims(claims: Sequence[Judged]) -> list[str]:
    parts = []
    for place, group in groupby(claims, key=lambda judged: judged.claim.place):
        parts.append(f"### {escaped(place)}")
        parts += [_claim(judged) for judged in group]
    return parts


def _claim(judged: Judged) -> str:
    claim = judged.claim
    paragraph = f"**{escaped(claim.statement)}** {escaped(judged.sentence)}"
    for extra in (claim.correction, claim.remark):
        paragraph += f" {escaped(extra)}" if extra else ""
    lines = []
    for evidence in judged.evidence:
        mark = f"{MARKS[evidence.holds]} " if evidence.source != "tests" else ""
        lines.append(f"- {mark}{escaped(evidence.source)}: {escaped(evidence.text)}")
    return f"{paragraph}\n\n" + "\n".join(lines)


def _section(section: Section, drawings: Mapping[str, bytes]) -> str:
    parts = [f'<a id="{slug(section.label)}"></a>', f"## {escaped(section.label)}: {escaped(section.title)}"]
    if not section.outcomes:
        made = " or ".join(f"`{command}`" for command in section.commands)
        parts.append(f"No run of this label is finished; {made} makes them.")
    for outcome in section.outcomes:
        if outcome.used:
            parts.append(f"### {SCALE_TITLES[outcome.scale]}")
        parts.append(outcome_body(outcome, _paths(outcome, drawings)).rstrip())
    return "\n\n".join(parts)


def _paths(outcome: Outcome, drawings: Mapping[str, bytes]) -> list[str]:
    return [f"figures/{name}" for name in figure_names(outcome) if name in drawings]
