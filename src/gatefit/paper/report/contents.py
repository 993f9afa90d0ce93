"""What a report is made of: every label with the outcomes that finished runs allow, and the judged claims.

paper scale first where any of its runs exist, then the small scale; a label that needs no runs once
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from gatefit.experiments.export import ResultSource
from gatefit.experiments.record import RunRecord
from gatefit.paper.claims import Claim, Judged, judge
from gatefit.paper.outcome import Experiment, Outcome, Results, Scale, reproduce_command
from gatefit.paper.table_one import Row, table_one

DEFAULT_SCALES: tuple[Scale, ...] = ("paper", "small")


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
    known: dict[str, RunRecord | None] = {}

    def find(identity: str) -> RunRecord | None:
        # Labels share runs, and a run with its diagnostics is not small.
        if identity not in known:
            known[identity] = source.find(identity)
        return known[identity]

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
