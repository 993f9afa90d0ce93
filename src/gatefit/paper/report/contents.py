"""What a report is made of and what it says, whatever its form: labels with their outcomes, judged claims, sentences.

paper scale first where any of its runs exist, then the small scale; a label that needs no runs once
"""

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final

from gatefit.experiments.export import ResultSource
from gatefit.experiments.record import RunRecord
from gatefit.paper.catalogue import remarks
from gatefit.paper.catalogue.standard_errors import ERRORS
from gatefit.paper.claims import VERDICTS, Claim, Judged, judge
from gatefit.paper.outcome import Experiment, Figure, Outcome, Panel, Results, Scale, Series, Value, reproduce_command
from gatefit.paper.report.shown_table import signed
from gatefit.paper.scales import SETTINGS
from gatefit.paper.table_one import Row, table_one

DEFAULT_SCALES: tuple[Scale, ...] = ("paper", "small")
TABLE_FIGURE: Final = "table-1.svg"
NO_RUNS: Final = "no runs"
SCALE_TITLES: Final = {"paper": "At the paper's scale", "small": "At small scale", "tiny": "At tiny scale"}
_FINDINGS: Final = {"holds": "holds", "level": "level", "fails": "does not hold", "open": NO_RUNS}


@dataclass(frozen=True)
class Section:
    """A label of the paper: its outcomes, or what would make them."""

    label: str
    title: str
    outcomes: tuple[Outcome, ...]
    commands: tuple[str, ...] = ()
    """Where there is no outcome: what makes one."""


@dataclass(frozen=True)
class Report:
    """All that a page says."""

    sections: tuple[Section, ...]
    claims: tuple[Judged, ...]
    scales: tuple[Scale, ...]
    first: tuple[Row, ...] = ()
    """The paper's first table; empty where single labels were asked for."""

    @property
    def runs(self) -> tuple[RunRecord, ...]:
        """Every run that any outcome uses, once."""
        used = {
            record.identity: record
            for section in self.sections
            for outcome in section.outcomes
            for record in outcome.used
        }
        used |= {record.identity: record for row in self.first for record in row.used}
        return tuple(used.values())


def build_report(
    source: ResultSource,
    experiments: Iterable[Experiment],
    claims: Sequence[Claim] = (),
    scales: Sequence[Scale] = DEFAULT_SCALES,
) -> Report:
    """Show every experiment at every scale with the runs of ``source``, and judge the claims by what they say."""
    find = cache(source.find)  # Labels share runs, and a run with its diagnostics is not small.
    sections, shown = [], dict[str, list[Outcome]]()
    for experiment in experiments:
        outcomes = [
            experiment.show(Results(find, scale=scale, seeds=experiment.default_seeds[scale])) for scale in scales
        ]
        shown[experiment.label] = outcomes
        sections.append(_section(experiment, outcomes))
    first = table_one(find, tuple(scales)) if claims else ()
    return Report(tuple(sections), tuple(judge(claim, shown) for claim in claims), tuple(scales), first)


def _section(experiment: Experiment, outcomes: Sequence[Outcome]) -> Section:
    theory = [outcome for outcome in outcomes if not outcome.used and not outcome.missing]
    kept = [outcome for outcome in outcomes if outcome.used] or theory[:1]
    commands = () if kept else tuple(reproduce_command(outcome.label, outcome.scale) for outcome in outcomes)
    return Section(experiment.label, experiment.title, tuple(kept), commands)


def introduction(report: Report) -> str:
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


def slug(text: str) -> str:
    """Letters, digits and dashes: for anchors and file names."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def figure_names(outcome: Outcome) -> list[str]:
    """File names of an outcome's figures."""
    return [f"{slug(outcome.label)}-{outcome.scale}-{i}.svg" for i in range(1, len(outcome.figures) + 1)]


def is_figure_of(name: str, label: str) -> bool:
    """Whether a file is called as a figure of ``label`` is."""
    return re.fullmatch(rf"{slug(label)}-(?:paper|small|tiny)-\d+\.svg", name) is not None
