"""What a reader of the paper wants first: its first table, ours beside it; its claims, a line each; what differs.

Details are on pages of their own: one for the claims' evidence, one for each label.
"""

import math
from collections import Counter
from collections.abc import Sequence
from itertools import groupby
from typing import Final

from gatefit.paper.catalogue import remarks
from gatefit.paper.catalogue.standard_errors import ERRORS
from gatefit.paper.claims import VERDICTS, Judged
from gatefit.paper.outcome import Figure, Panel, Scale, Series, Value
from gatefit.paper.report.contents import Report
from gatefit.paper.report.markdown import escaped
from gatefit.paper.report.names import slug
from gatefit.paper.report.provenance import machines
from gatefit.paper.report.shown_table import MISSING, shown_value, signed
from gatefit.paper.scales import MAIN_METHODS, METHOD_NAMES, SETTINGS
from gatefit.paper.table_one import Row

TABLE_FIGURE: Final = "table-1.svg"
CLAIMS_PAGE: Final = "claims.md"
NO_RUNS: Final = "no runs"
SCALE_TITLES: Final = {"paper": "At the paper's scale", "small": "At small scale", "tiny": "At tiny scale"}
_FINDINGS: Final = {"holds": "holds", "level": "level", "fails": "does not hold", "open": NO_RUNS}


def first_page(title: str, regenerate: str, report: Report, details: str, *, figure: bool) -> str:
    """The page; ``details`` is the folder of the others, as the page refers to it."""
    parts = [f"# {title}", "<!-- Generated; change the results or the code, not this file. -->", escaped(what(report))]
    if report.first:
        parts += [table_markdown(report.first), escaped(table_legend())]
        if figure:
            parts.append(f"![{escaped(table_words(report.first))}](figures/{TABLE_FIGURE})")
    if report.claims:
        parts += ["## The paper's claims", escaped(claims_summary(report.claims)), *_claims(report.claims, details)]
    parts += ["## How it differs from the paper's protocol", *_protocol(report)]
    parts += ["## Every table and figure", _contents(report, details), "Made by:", f"```\n{regenerate}\n```"]
    return "\n\n".join(parts).rstrip() + "\n"


def what(report: Report) -> str:
    """What the pages are, and from how many runs."""
    runs = report.runs
    timed = [record.seconds for record in runs if record.seconds]
    hours = sum(timed) / 3600
    which = "" if len(timed) == len(runs) else f" in the {len(timed):,} whose time is known"
    return (
        "“Fitting Multilinear Polynomials for Logic Gate Networks”, computed by this program, the paper's value beside "
        f"ours, from {len(runs):,} finished run{'' if len(runs) == 1 else 's'}"
        + (f" ({hours:,.1f} hours of training{which})" if hours >= 0.05 else "")
        + ". Nothing is typed in but the paper's statements and numbers, and opinions, which say so."
    )


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


def with_error(value: Value | None) -> str:
    """+1.73 ± 1.57, the latter its standard error."""
    if value is None:
        return ""
    return signed(value.mean, 2) + (f" ± {value.error:.2f}" if value.error is not None else "")


def paper_words(row: Row) -> str:
    """The paper's gap, and the one that it has at the width of our runs."""
    there = f" (there {with_error(row.paper_there)})" if row.paper_there else ""
    return with_error(row.paper_gap) + there


def verdict_words(row: Row) -> str:
    """What is found of CovJac against STE, and whether the gap is as large as the paper's."""
    words = _FINDINGS[row.finding]
    theirs = row.paper_there or row.paper_gap
    if row.gap is None or theirs is None:
        return words
    if not row.comparable:
        return f"**{words}**"
    apart = row.gap.mean - theirs.mean
    error = ERRORS * ((row.gap.error or 0.0) ** 2 + (theirs.error or 0.0) ** 2) ** 0.5
    size = (
        "as the paper's"
        if abs(apart) <= error
        else "larger than the paper's"
        if apart > 0
        else "smaller than the paper's"
    )
    return f"**{words}**, {size}"


def table_legend() -> str:
    """How to read the table."""
    return (
        "The paper's Table 1 (tab:mnist-main): accuracy in %, mean ± standard deviation (runs), the paper's below; "
        f"then the difference in points ± its standard error. It holds where it is more than {ERRORS:g} errors above "
        "0, and is level within them; the error of single runs is taken from others of the data set, or from the "
        "paper's. T: the temperature of the class scores, which the paper does not give; rule: 0.36 √(gates a class). "
        "Small scale has fewer gates and steps: the order of methods can be compared there, sizes cannot."
    )


def table_figure(rows: Sequence[Row]) -> Figure:
    """The gaps as bars, ours with two errors, beside the paper's."""
    absent = Value(math.nan)  # It keeps the data set's place.
    known = [(row.name, row.gap or absent) for row in rows]
    typed = [(row.name, row.paper_gap or absent) for row in rows]
    series = [
        Series(
            name,
            tuple(dataset for dataset, _ in values),
            tuple(value.mean for _, value in values),
            tuple(ERRORS * (value.error or 0.0) for _, value in values),
        )
        for name, values in (("ours", known), ("paper", typed))
    ]
    panel = Panel("CovJac − STE", "bars", "data set", "points of accuracy", tuple(series))
    return Figure("CovJac less STE by data set, with two standard errors", (panel,))


def table_words(rows: Sequence[Row]) -> str:
    """The figure for those who cannot see it."""
    said = "; ".join(f"{row.name} {with_error(row.gap) or NO_RUNS} (paper {with_error(row.paper_gap)})" for row in rows)
    return f"CovJac less STE in points: {said}"


def claims_summary(claims: Sequence[Judged]) -> str:
    """How many claims have which verdict, and what the words mean."""
    verdicts = Counter(judged.verdict for judged in claims)
    counted = ", ".join(f"{verdicts[verdict]} {verdict}" for verdict in VERDICTS if verdicts[verdict])
    return (
        f"Of {len(claims)} claims: {counted}. Level: not told apart by {ERRORS:g} standard errors; inconclusive: the "
        "test has no power; by definition: it cannot fail. Whose it is that a claim is not confirmed is computed: "
        "noise where runs are level or a test has no power, scale where runs are missing or smaller than the paper's, "
        "paper where a computation contradicts it, paper or our reading where runs of the paper's own scale do. A star "
        "marks our opinion, with its reason on the page of the claims."
    )


def _claims(claims: Sequence[Judged], details: str) -> list[str]:
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


def protocol(report: Report) -> dict[Scale, list[str]]:
    """What differs from the paper's protocol, each remark once, by the first scale that has it."""
    said: dict[Scale, list[str]] = {}
    for scale in report.scales:
        paper = [section for section in report.sections if not section.label.startswith("extra:")]
        outcomes = [each for section in paper for each in section.outcomes if each.scale == scale]
        configs = [record.config for each in outcomes for record in each.used]
        configs += [config for each in outcomes for config in each.missing]
        if configs:
            notes = remarks.notes(scale, list(SETTINGS["paper"]), configs)
            before = [note for others in said.values() for note in others]
            said[scale] = [note for note in notes if note not in before]
    return said


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
