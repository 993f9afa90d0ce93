"""The draft of what one label shows: it asks for runs, fills cells, judges claims and says what differs.

    show(draft)  writes tables, figures, checks and notes
    plan         every run that show asks for: found by showing to a store that holds nothing

So the plan and the outcome cannot disagree.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from gatefit.experiments.record import RunRecord
from gatefit.paper.catalogue import remarks
from gatefit.paper.catalogue.measures import Metric, best_accuracy, last_accuracy, summarise
from gatefit.paper.catalogue.standard_errors import error_of, exceeds, single_run_noise
from gatefit.paper.outcome import (
    SCALES,
    Cell,
    Check,
    Experiment,
    Figure,
    Outcome,
    Panel,
    Results,
    Scale,
    Table,
    Undecided,
    Value,
)
from gatefit.paper.scales import METHOD_NAMES, SETTINGS, dataset_name, rule_runs, runs
from gatefit.paper.values import Block
from gatefit.training.config import RunConfig

NOT_HERE: Final = "data set not part of this scale"
NO_RUNS: Final = "no finished run yet"


@dataclass(frozen=True)
class Part:
    """One comparison within a claim; ``holds`` is None where runs are missing, or for the reason in ``why``."""

    holds: bool | None
    evidence: str
    counts: bool = True
    """Whether the claim waits for it: not for a data set that the scale does not have."""
    why: Undecided = ""


class Draft:
    """One label's tables, figures, checks and notes in the making."""

    def __init__(self, results: Results) -> None:
        self.results, self.scale, self.seeds = results, results.scale, results.seeds
        self._tables: list[Table] = []
        self._figures: list[Figure] = []
        self._checks: list[Check] = []
        self._notes: list[str] = []
        self._configs: dict[str, RunConfig] = {}
        self._datasets: list[str] = []
        self._noise: dict[str, float | None] = {}

    def has(self, dataset: str) -> bool:
        """Whether this scale runs the data set."""
        return dataset in SETTINGS[self.scale]

    def name(self, dataset: str) -> str:
        """The data set's name in a table of this scale."""
        return dataset_name(self.scale, dataset)

    def configs(self, dataset: str, method: str, **changes: Any) -> list[RunConfig]:
        """The runs of a method on a data set, one for each repetition."""
        self._mention(dataset)
        return runs(self.scale, self.seeds, dataset, method, **changes)

    def rule_configs(self, dataset: str, method: str, **changes: Any) -> list[RunConfig]:
        """The same with the rule of thumb's class scores, one wiring and one split, one for each seed."""
        self._mention(dataset)
        return rule_runs(self.scale, self.seeds, dataset, method, **changes)

    def _mention(self, dataset: str) -> None:
        if dataset not in self._datasets:
            self._datasets.append(dataset)

    def get(self, configs: Sequence[RunConfig]) -> list[RunRecord]:
        """The finished ones among these runs."""
        self._configs |= {config.identity: config for config in configs}
        return self.results.each(configs)

    def records(self, dataset: str, method: str, **changes: Any) -> list[RunRecord]:
        """The finished runs of a method on a data set."""
        return self.get(self.configs(dataset, method, **changes))

    def value(
        self, dataset: str, method: str, metric: Metric = last_accuracy, unit: str = "%", **changes: Any
    ) -> Value | None:
        """A figure of those runs: mean and standard deviation over seeds."""
        return self._summarise(self.records(dataset, method, **changes), metric, unit)

    def _summarise(
        self, records: Sequence[RunRecord], metric: Metric, unit: str, *, population: bool = False
    ) -> Value | None:
        """The figure; the accuracy of one run gets the noise that several like it have."""
        value = summarise(map(metric, records), unit, population=population)
        if value is None or value.count > 1 or metric not in (last_accuracy, best_accuracy):
            return value
        dataset = records[0].config.dataset
        if dataset not in self._noise:
            self._noise[dataset] = single_run_noise(self.results, dataset)
        return replace(value, error=self._noise[dataset])

    def methods(
        self, dataset: str, methods: Sequence[str], metric: Metric = last_accuracy, **changes: Any
    ) -> dict[str, Value | None]:
        """That figure of several methods, by the names that tables give them."""
        return {METHOD_NAMES[method]: self.value(dataset, method, metric, **changes) for method in methods}

    def cell(
        self,
        paper: Value | str | None,
        dataset: str,
        method: str,
        metric: Metric = last_accuracy,
        unit: str = "%",
        **changes: Any,
    ) -> Cell:
        """That figure beside the paper's, with a note where runs are missing."""
        return self.cell_of(self.configs(dataset, method, **changes), paper, metric, unit)

    def cell_of(
        self,
        configs: Sequence[RunConfig],
        paper: Value | str | None,
        metric: Metric = last_accuracy,
        unit: str = "%",
        *,
        population: bool = False,
    ) -> Cell:
        """The same for an explicit list of runs; ``population``: with the population's standard deviation."""
        if not configs:
            return Cell(None, paper, NOT_HERE)
        found = self.get(configs)
        value = self._summarise(found, metric, unit, population=population)
        diverged = None if found else self.results.diverged(configs)
        if diverged is not None:
            note = f"diverges: {diverged.error.split(';')[0]}"
        elif not found:
            note = NO_RUNS
        elif value is None:
            note = "not recorded by these runs"
        else:
            note = f"{len(found)} of {len(configs)} runs" if len(found) < len(configs) else ""
        return Cell(value, paper, note)

    def table(
        self,
        caption: str,
        columns: Sequence[str],
        rows: Iterable[tuple[str, Sequence[Cell]]],
        *,
        digits: int = 2,
        best: Literal["columns", "rows", "none"] = "columns",
    ) -> None:
        """One more table."""
        self._tables.append(
            Table(caption, tuple(columns), tuple((name, tuple(cells)) for name, cells in rows), digits, best)
        )

    def figure(self, caption: str, *panels: Panel) -> None:
        """One more figure, of the panels that have something to show."""
        drawn = tuple(panel for panel in panels if any(series.x for series in panel.series))
        if drawn:
            self._figures.append(Figure(caption, drawn))

    def note(self, text: str) -> None:
        """One more remark, once."""
        if text not in self._notes:
            self._notes.append(text)

    @property
    def measure(self) -> str:
        """What the accuracy of a run is called: short runs have no ten evaluations at their end to speak of."""
        return "last-10 accuracy" if self.scale == "paper" else "accuracy at the end"

    def claim(self, text: str, *parts: Part, id: str = "", where: str = "", definition: bool = False) -> None:
        """A claim of the paper, cited by ``id``: false if a part is, true if all are, open if one that counts is.

        ``where`` says which runs decide it, where they are not those of the scale.
        """
        waiting = [part for part in parts if part.counts]
        holds: bool | None = None
        why: Undecided = ""
        if any(part.holds is False for part in waiting):
            holds = False
        elif waiting and all(part.holds for part in waiting):
            holds = True
        elif reasons := {part.why for part in waiting if part.holds is None}:
            # What is missing could still refute; what is level cannot.
            why = "" if "" in reasons else "inconclusive" if "inconclusive" in reasons else "level"
        evidence = "; ".join(part.evidence for part in parts) or NO_RUNS
        if self.scale == "tiny":
            # Forty steps on stand-ins show that the machinery works, not what the paper says.
            holds, why, evidence = None, "", f"tiny scale cannot say: {evidence}"
        left_out = len(waiting) < len(parts)
        self._checks.append(Check(text, holds, evidence, id or _slug(text), why, definition, where, left_out))

    def theorem(self, text: str, holds: bool, evidence: str, *, id: str = "", definition: bool = False) -> None:
        """A claim that is computed, at whatever scale; ``definition`` where it cannot fail."""
        self._checks.append(Check(text, holds, evidence, id or _slug(text), definition=definition))

    def absent(self, dataset: str) -> Part:
        """A part for a data set that this scale does not have."""
        return Part(None, f"{self.name(dataset)}: {NOT_HERE}", counts=False)

    def outcome(self, label: str, title: str) -> Outcome:
        """All that was drafted."""
        general = remarks.notes(self.scale, self._datasets, list(self._configs.values()))
        missing = {config.identity for config in self.results.missing}
        return Outcome(
            label,
            title,
            self.scale,
            tuple(self.seeds),
            tuple(self._tables),
            tuple(self._figures),
            tuple(self._checks),
            tuple(self._notes),
            tuple(general),
            tuple(record for record in self.results.used if record.identity in self._configs),
            tuple(config for identity, config in self._configs.items() if identity in missing),
        )


def above(
    what: str,
    high: tuple[str, Value | None],
    low: tuple[str, Value | None],
    paper: tuple[Value | None, Value | None] = (None, None),
    *,
    by: float = 0.0,
    ties: bool = False,
) -> Part:
    """``high`` is more than ``low`` by more than ``by``; with ``ties``, or not told apart from that."""
    (high_name, a), (low_name, b) = high, low
    where = f"{what}: " if what else ""
    if a is None or b is None:
        return Part(None, f"{where}{NO_RUNS} of {high_name if a is None else low_name}")
    theirs = paper[0].mean - paper[1].mean if paper[0] is not None and paper[1] is not None else None
    said = f" (paper: {theirs:+.2f})" if theirs is not None else ""
    difference, error = a.mean - b.mean, error_of(a, b, paper)
    noise = "" if error is None else f" ± {error:.2f}"
    text = f"{where}{high_name} {remarks.number(a)}, {low_name} {remarks.number(b)}: {difference:+.2f}{noise}{said}"
    holds, why = exceeds(difference, error, by)
    if holds is None and ties:
        holds, why = True, ""
    return Part(holds, text, why=why)


def paper_row(block: Block, methods: Sequence[str], column: object) -> dict[str, Value | None]:
    """The paper's values of several methods in one column, by the names that tables give them."""
    return {METHOD_NAMES[method]: block[method, column] for method in methods}


def best_of(
    what: str,
    values: Mapping[str, Value | None],
    method: str = "M-CovJac",
    paper: Mapping[str, Value | None] | None = None,
) -> Part:
    """``method`` has the highest value; compared with the best of the others."""
    mine = values[method]
    others = {name: value for name, value in values.items() if name != method}
    missing = [name for name, value in values.items() if value is None]
    known = {name: value for name, value in others.items() if value is not None}
    if mine is None or not known:
        return Part(None, f"{what}: {NO_RUNS} of {', '.join(missing)}")
    rival = max(known, key=lambda name: known[name].mean)
    theirs: tuple[Value | None, Value | None] = (None, None)
    if paper is not None:
        theirs = paper.get(method), paper.get(rival)
    part = above(what, (method, mine), (rival, known[rival]), theirs)
    # One better rival refutes; to be best, or level with the best, every rival must have been run.
    waiting = part.holds is not False and missing
    return Part(None, f"{part.evidence}, without {', '.join(missing)}") if waiting else part


def loss(
    name: str, before: Value | None, after: Value | None, paper: tuple[Value | None, Value | None], where: str = ""
) -> tuple[float | None, str]:
    """How many points are lost from ``before`` to ``after``, and that in words beside the paper's."""
    theirs = paper[0].mean - paper[1].mean if paper[0] is not None and paper[1] is not None else None
    if before is None or after is None:
        return None, f"{name}: {NO_RUNS}{where}"
    said = f" (paper: {theirs:.2f})" if theirs is not None else ""
    return before.mean - after.mean, f"{name} loses {before.mean - after.mean:.2f} points{where}{said}"


def _slug(text: str) -> str:
    """A name for a check that was given none."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def experiment(
    label: str,
    title: str,
    show: Callable[[Draft], None],
    *,
    small_seeds: Sequence[int] = (0,),
    paper_seeds: Sequence[int] = (0, 1, 2),
) -> Experiment:
    """The experiment whose draft ``show`` fills in."""

    def outcome(results: Results) -> Outcome:
        draft = Draft(results)
        show(draft)
        return draft.outcome(label, title)

    def plan(scale: Scale, seeds: Sequence[int]) -> list[RunConfig]:
        return list(outcome(Results(lambda identity: None, scale=scale, seeds=seeds)).missing)

    seeds: dict[Scale, tuple[int, ...]] = dict.fromkeys(SCALES, (0,))
    seeds |= {"paper": tuple(paper_seeds), "small": tuple(small_seeds)}
    return Experiment(label, title, plan, outcome, seeds)
