"""Outcomes and the report as Markdown that GitHub and MkDocs show alike.

first page    the paper's first table, ours beside it; its claims, a line each; what differs; every label
behind it     a page for the claims' evidence, one for each label: tables, figures by their paths, checks
"""

import re
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Final

from gatefit.paper.claims import Judged
from gatefit.paper.outcome import Finding, Outcome, reproduce_command
from gatefit.paper.report.contents import (
    SCALE_TITLES,
    TABLE_FIGURE,
    Report,
    Section,
    claims_summary,
    figure_names,
    introduction,
    paper_words,
    protocol,
    slug,
    table_legend,
    table_words,
    verdict_words,
    with_error,
)
from gatefit.paper.report.figures import describe
from gatefit.paper.report.provenance import machines, missing_runs, provenance, runs_missing
from gatefit.paper.report.shown_table import MISSING, ShownCell, ShownTable, show_table, shown_value
from gatefit.paper.report.text import MARKS
from gatefit.paper.scales import MAIN_METHODS, METHOD_NAMES
from gatefit.paper.table_one import Row

CLAIMS_PAGE: Final = "claims.md"
GENERATED: Final = "<!-- Generated; change the results or the code, not this file. -->"
FINDING_WORDS: Final[dict[Finding, str]] = {
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
        lines = []
        for check in outcome.checks:
            judged = f"**{FINDING_WORDS[check.finding]}**" + (f" by {escaped(check.where)}" if check.where else "")
            evidence = f" — {escaped(check.evidence)}" if check.evidence else ""
            lines.append(f"- {judged}: {escaped(check.claim)}{evidence}")
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
    notes = [f"<sup>{i}</sup> {escaped(note)}" for i, note in enumerate(table.footnotes, 1)]
    below = "<br>".join(filter(None, [table.legend_with("bold:"), *notes]))
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


def first_page(title: str, regenerate: str, report: Report, details: str, *, figure: bool) -> str:
    """The page; ``details`` is the folder of the others, as the page refers to it."""
    parts = [f"# {title}", GENERATED, escaped(introduction(report))]
    if report.first:
        parts += [table_markdown(report.first), escaped(table_legend())]
        if figure:
            parts.append(f"![{escaped(table_words(report.first))}](figures/{TABLE_FIGURE})")
    if report.claims:
        parts += [
            "## The paper's claims",
            escaped(claims_summary(report.claims)),
            *_claims_tables(report.claims, details),
        ]
    parts += ["## How it differs from the paper's protocol", *_protocol(report)]
    parts += ["## Every table and figure", _contents(report, details), "Made by:", f"```\n{regenerate}\n```"]
    return "\n\n".join(parts).rstrip() + "\n"


def table_markdown(rows: Sequence[Row]) -> str:
    """The paper's first table, a line a data set."""
    names = [METHOD_NAMES[m] for m in MAIN_METHODS]
    head = ["", *names, "CovJac − STE ± error", "paper", "verdict", "judged by", "T"]
    lines = [f"| {' | '.join(head)} |", f"|{'|'.join(['---'] * len(head))}|"]
    for row in rows:
        accuracies = [
            f"{escaped(shown_value(row.ours[m], 2) or MISSING)}<br>{shown_value(row.paper[m], 2, runs=False)}"
            for m in MAIN_METHODS
        ]
        cells = [*accuracies, with_error(row.gap), paper_words(row), verdict_words(row), row.where, row.temperature]
        lines.append(f"| {escaped(row.name)} | {' | '.join(cell or MISSING for cell in cells)} |")
    return "\n".join(lines)


def _claims_tables(claims: Sequence[Judged], details: str) -> list[str]:
    numbers = {id(judged): i for i, judged in enumerate(claims, 1)}
    parts = []
    for place, group in groupby(claims, key=lambda judged: judged.claim.place):
        lines = [f"| {escaped(place)} | verdict | judged by | whose |", "|---|---|---|---|"]
        for judged in group:
            number = numbers[id(judged)]
            link = f"[{number}]({details}/{CLAIMS_PAGE}#claim-{number})"
            cells = [
                f"{link} {escaped(judged.claim.statement)}",
                judged.verdict,
                judged_by(judged),
                whose_words(judged),
            ]
            lines.append(f"| {' | '.join(cells)} |")
        parts.append("\n".join(lines))
    return parts


def judged_by(judged: Judged) -> str:
    """The runs that decide, short enough for a column."""
    words = [escaped(each.removeprefix("by ").removeprefix("at ")) for each in judged.where]
    return ", ".join(words) or MISSING


def whose_words(judged: Judged) -> str:
    """noise, scale; a star where it is our opinion."""
    opinion = judged.claim.opinion.whose if judged.opinion and judged.claim.opinion is not None else None
    return ", ".join(f"{each}\\*" if each == opinion else each for each in judged.whose) or MISSING


def _protocol(report: Report) -> list[str]:
    parts = [f"Machine: {escaped(words)}." for words in machines(report.runs)]
    for scale, notes in protocol(report).items():
        parts.append("\n".join([f"{SCALE_TITLES[scale]}:", "", *(f"- {escaped(note)}" for note in notes)]))
    return parts


def _contents(report: Report, details: str) -> str:
    lines = ["Runs that do not exist are listed by `gatefit runs missing`.", ""]
    for section in report.sections:
        note = "" if section.outcomes else " (no runs yet)"
        path = f"{details}/{slug(section.label)}.md"
        lines.append(f"- [{escaped(section.label)}]({path}): {escaped(section.title)}{note}")
    return "\n".join(lines)


def claims_page(claims: Sequence[Judged], back: str) -> str:
    """Every claim with its evidence; ``back`` is the first page, as this one refers to it."""
    parts = ["# The paper's claims", GENERATED, f"[Back to the first page]({back})"]
    number = 0
    for place, group in groupby(claims, key=lambda judged: judged.claim.place):
        parts.append(f"## {escaped(place)}")
        for judged in group:
            number += 1
            parts += [f'<a id="claim-{number}"></a>', _claim_with_evidence(number, judged)]
    return "\n\n".join(parts).rstrip() + "\n"


def _claim_with_evidence(number: int, judged: Judged) -> str:
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
        parts.append(outcome_body(outcome, _figure_paths(outcome, drawings), whole=False).rstrip())
    return "\n\n".join(parts).rstrip() + "\n"


def _figure_paths(outcome: Outcome, drawings: Mapping[str, bytes]) -> list[str]:
    return [f"../figures/{name}" for name in figure_names(outcome) if name in drawings]
