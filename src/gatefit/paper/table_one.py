"""The paper's first table (tab:mnist-main), data set by data set, by the best runs that there are.

the paper's scale    else, for MNIST, the paper's length with 8,000 gates a layer    else the small scale

gap        CovJac less STE in points, with its standard error
finding    holds where the gap is more than two errors above 0, level within them, fails below, open without runs
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from gatefit.experiments.record import RunRecord
from gatefit.paper.catalogue.draft import Draft
from gatefit.paper.catalogue.judging_runs import NARROWEST, JudgingRuns, judging_runs
from gatefit.paper.catalogue.standard_errors import difference, exceeds
from gatefit.paper.outcome import Finding, Results, Scale, Value
from gatefit.paper.scales import DATASET_NAMES, DATASETS, MAIN_METHODS, width_name
from gatefit.paper.values import paper

COMPARED: Final = ("multilinear-covjac", "multilinear-ste")
_SEEDS: Final = (0, 1, 2)


@dataclass(frozen=True)
class Row:
    """One data set: our accuracies by method, the paper's, and what each says of CovJac against STE."""

    dataset: str
    ours: Mapping[str, Value | None]
    paper: Mapping[str, Value | None]
    gap: Value | None
    paper_gap: Value | None
    finding: Finding
    where: str
    """The runs in words; empty without any."""
    temperature: str
    """That of the class scores; "rule" for 0.36 √(gates a class)."""
    paper_there: Value | None = None
    """The paper's own gap at the width of our runs, where that is not the one of its first table."""
    comparable: bool = False
    """Whether the size of the gap can be compared: the runs have the paper's steps, and a width that it has too."""
    used: tuple[RunRecord, ...] = ()

    @property
    def name(self) -> str:
        """The data set's name."""
        return DATASET_NAMES[self.dataset]


def table_one(find: Callable[[str], RunRecord | None], scales: tuple[Scale, ...]) -> tuple[Row, ...]:
    """Every data set of the paper, in its order of the gap."""
    drafts = [Draft(Results(find, scale=scale, seeds=_SEEDS)) for scale in scales]
    return tuple(_row(dataset, drafts) for dataset in DATASETS)


def _row(dataset: str, drafts: list[Draft]) -> Row:
    block = paper("tab:mnist-main")
    typed = {m: block[m, dataset] for m in MAIN_METHODS}
    paper_gap = difference(typed[COMPARED[0]], typed[COMPARED[1]])
    for draft in drafts:
        runs = judging_runs(draft, dataset, COMPARED) if dataset == "mnist" else JudgingRuns(dataset)
        ours = {m: draft.value(runs.dataset, m, **runs.changes) for m in MAIN_METHODS}
        high, low = (_typed(runs, m) for m in COMPARED)
        gap = difference(ours[COMPARED[0]], ours[COMPARED[1]], (high, low))
        if gap is None:
            continue
        holds, why = exceeds(gap.mean, gap.error)
        finding: Finding = why or "open" if holds is None else "holds" if holds else "fails"
        found = [record for m in MAIN_METHODS for record in runs.records(draft, m)]
        return Row(
            dataset,
            ours,
            typed,
            gap,
            paper_gap,
            finding,
            _where(draft, runs),
            _temperature(found),
            difference(high, low) if runs.where else None,
            draft.scale == "paper",
            tuple(found),
        )
    return Row(dataset, dict.fromkeys(MAIN_METHODS), typed, None, paper_gap, "open", "", "")


def _where(draft: Draft, runs: JudgingRuns) -> str:
    if runs.where:
        return f"the paper's length, {width_name(NARROWEST)} gates"
    return "the paper's scale" if draft.scale == "paper" else f"{draft.scale} scale"


def _temperature(records: list[RunRecord]) -> str:
    chosen = {record.config.readout_temperature for record in records}
    return ", ".join("rule" if each is None else f"{each:g}" for each in sorted(chosen, key=lambda t: t or 0.0))


def _typed(runs: JudgingRuns, method: str) -> Value | None:
    """The paper's value at the width of our runs."""
    if runs.where:
        return paper("tab:width-scaling")[f"6/{NARROWEST}", method]
    return paper("tab:mnist-main")[method, runs.dataset]
