"""The pages behind the first one, in Markdown: the claims with their evidence, and every label."""

from collections.abc import Mapping, Sequence
from itertools import groupby

from gatefit.paper.claims import Judged
from gatefit.paper.outcome import Outcome
from gatefit.paper.report.contents import Section
from gatefit.paper.report.first_page import SCALE_TITLES
from gatefit.paper.report.markdown import escaped, outcome_body
from gatefit.paper.report.names import figure_names, slug
from gatefit.paper.report.text import MARKS

GENERATED = "<!-- Generated; change the results or the code, not this file. -->"


def claims_page(claims: Sequence[Judged], back: str) -> str:
    """Every claim with its evidence; ``back`` is the first page, as this one refers to it."""
    parts = ["# The paper's claims", GENERATED, f"[Back to the first page]({back})"]
    number = 0
    for place, group in groupby(claims, key=lambda judged: judged.claim.place):
        parts.append(f"## {escaped(place)}")
        for judged in group:
            number += 1
            parts += [f'<a id="claim-{number}"></a>', _claim(number, judged)]
    return "\n\n".join(parts).rstrip() + "\n"


def _claim(number: int, judged: Judged) -> str:
    claim = judged.claim
    paragraph = f"**{number}. {escaped(claim.statement)}** {escaped(judged.sentence)}"
    if judged.whose:
        paragraph += f" Whose: {', '.join(judged.whose)}."
    for extra in (claim.correction, claim.remark):
        paragraph += f" {escaped(extra)}" if extra else ""
    if judged.opinion and claim.opinion is not None:
        paragraph += f" In our opinion ({claim.opinion.whose}): {escaped(claim.opinion.reason)}"
    lines = []
    for evidence in judged.evidence:
        mark = "" if evidence.finding is None else f"{MARKS[evidence.finding]} {evidence.finding}: "
        source = escaped(evidence.source)
        if evidence.label:
            link = f"[{escaped(evidence.label)}]({slug(evidence.label)}.md)"
            source = source.replace(escaped(evidence.label), link, 1)
        lines.append(f"- {mark}{source}: {escaped(evidence.text)}")
    return f"{paragraph}\n\n" + "\n".join(lines)


def label_page(section: Section, back: str, drawings: Mapping[str, bytes]) -> str:
    """A label's tables, figures and checks at every scale with runs; figures are in figures/ beside the first page."""
    parts = [f"# {escaped(section.label)}: {escaped(section.title)}", GENERATED, f"[Back to the first page]({back})"]
    if not section.outcomes:
        made = " or ".join(f"`{command}`" for command in section.commands)
        parts.append(f"No run of this label is finished; {made} makes them.")
    for outcome in section.outcomes:
        if outcome.used:
            parts.append(f"## {SCALE_TITLES[outcome.scale]}")
        parts.append(outcome_body(outcome, _paths(outcome, drawings), whole=False).rstrip())
    return "\n\n".join(parts).rstrip() + "\n"


def _paths(outcome: Outcome, drawings: Mapping[str, bytes]) -> list[str]:
    return [f"../figures/{name}" for name in figure_names(outcome) if name in drawings]
