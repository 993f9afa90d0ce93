"""What an experiment says: tables and figures as plain data, the paper's number beside ours, and what was found.

    Experiment.plan(scale, seeds)   -> the configurations it needs     (torch-free; runs are shared by identity)
    Experiment.show(results)        -> Outcome                         (torch-free; nothing typed in but the paper)
    report                          -> text, Markdown, HTML, SVG of an Outcome

Accuracies are fractions in the store and per cent in a ``Value``.
"""

import math
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from gatefit.experiments.record import RunRecord
from gatefit.training.config import RunConfig

Scale = Literal["paper", "small", "tiny"]
SCALES: Final[tuple[Scale, ...]] = ("paper", "small", "tiny")


@dataclass(frozen=True)
class Value:
    """A number with its spread over seeds: mean ± sample standard deviation of ``count`` runs, in ``unit``."""

    mean: float
    std: float | None = None
    count: int = 1
    unit: str = "%"
    error: float | None = None
    """The standard error, where it is not std / √count: of a difference, or of one run beside several like it."""

    @property
    def standard_error(self) -> float | None:
        """How far the mean is from what more runs would give; None where nothing is known of it."""
        if self.error is not None:
            return self.error
        return self.std / math.sqrt(self.count) if self.std is not None and self.count > 1 else None


@dataclass(frozen=True)
class Cell:
    """Our value and the paper's; ``note`` says why ours is missing or what kind of value it is."""

    ours: Value | str | None = None
    paper: Value | str | None = None
    note: str = ""

    @property
    def value(self) -> Value | None:
        """Ours, where it is a number."""
        return self.ours if isinstance(self.ours, Value) else None

    @property
    def difference(self) -> float | None:
        """Ours less the paper's, where both are numbers."""
        if isinstance(self.ours, Value) and isinstance(self.paper, Value):
            return self.ours.mean - self.paper.mean
        return None


@dataclass(frozen=True)
class Table:
    """Rows of cells under column names; the first column of the page holds the rows' names."""

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[Cell, ...]], ...]
    digits: int = 2
    best: Literal["columns", "rows", "none"] = "columns"
    """Where a report marks the highest of our percentages: in each column, in each row, or nowhere."""


@dataclass(frozen=True)
class Series:
    """One line, bar group or cloud of points of a figure, with optional errors in y and labels of the points."""

    name: str
    x: tuple[float | str, ...]
    y: tuple[float, ...]
    error: tuple[float, ...] | None = None
    labels: tuple[str, ...] | None = None
    size: tuple[float, ...] | None = None
    z: tuple[float, ...] | None = None
    """A third coordinate, for kind "scatter3d"."""


@dataclass(frozen=True)
class Panel:
    """One pair of axes: ``kind`` says how the series are drawn."""

    title: str
    kind: Literal["lines", "bars", "stacked-bars", "scatter", "scatter3d"]
    x_label: str
    y_label: str
    series: tuple[Series, ...]
    x_scale: Literal["linear", "log"] = "linear"
    y_scale: Literal["linear", "log"] = "linear"
    z_label: str = ""
    links: tuple[tuple[tuple[float, ...], tuple[float, ...]], ...] = ()
    """Thin lines from point to point, for kind "scatter3d"."""


@dataclass(frozen=True)
class Figure:
    """Panels side by side."""

    caption: str
    panels: tuple[Panel, ...]


Finding = Literal["holds", "by definition", "level", "inconclusive", "fails", "open"]
Undecided = Literal["", "level", "inconclusive"]
"""Why a comparison says neither yes nor no: runs are missing (empty), a difference is within its error, no power."""


@dataclass(frozen=True)
class Check:
    """One claim of the paper: ``holds`` is None where our runs cannot say; ``evidence`` gives the numbers."""

    claim: str
    holds: bool | None
    evidence: str
    id: str = ""
    """What it is cited by, unique within its label and the same at every scale."""
    why: Undecided = ""
    """Why ``holds`` is None."""
    definition: bool = False
    """Whether it cannot fail: it compares what is so by construction."""
    where: str = ""
    """Which runs decide it, where they are not those of the outcome's scale."""
    partial: bool = False
    """Whether data sets that the scale does not have are left out of it."""

    @property
    def finding(self) -> Finding:
        """What was found, in a word."""
        if self.holds is None:
            return self.why or "open"
        if not self.holds:
            return "fails"
        return "by definition" if self.definition else "holds"


class Results:
    """Finished runs, looked up by configuration; remembers which were asked for and are missing."""

    def __init__(
        self, find: Callable[[str], RunRecord | None], *, scale: Scale = "paper", seeds: Sequence[int] = (0,)
    ) -> None:
        self._find, self.scale, self.seeds = find, scale, tuple(seeds)
        self._used: dict[str, RunRecord] = {}
        self._missing: dict[str, RunConfig] = {}

    def get(self, config: RunConfig) -> RunRecord | None:
        """The finished run of this configuration, or None, which is remembered as missing where it did not diverge."""
        config = config.resolved()
        record = self._find(config.identity)
        if record is None or record.status != "finished":
            if record is None or not record.diverged:
                self._missing[config.identity] = config
            return None
        self._used[config.identity] = record
        return record

    def peek(self, config: RunConfig) -> RunRecord | None:
        """The same, but nothing is remembered: for what is not shown, as the noise of single runs."""
        record = self._find(config.resolved().identity)
        return record if record is not None and record.status == "finished" else None

    def diverged(self, configs: Sequence[RunConfig]) -> RunRecord | None:
        """The first of these runs, where all of them diverged."""
        found = [self._find(config.resolved().identity) for config in configs]
        return found[0] if found and all(record is not None and record.diverged for record in found) else None

    def each(self, configs: Sequence[RunConfig]) -> list[RunRecord]:
        """The finished ones among these configurations."""
        return [record for record in map(self.get, configs) if record is not None]

    @property
    def used(self) -> tuple[RunRecord, ...]:
        """Every run that was found."""
        return tuple(self._used.values())

    @property
    def missing(self) -> tuple[RunConfig, ...]:
        """Every configuration that was asked for and has no finished run."""
        return tuple(self._missing.values())


@dataclass(frozen=True)
class Outcome:
    """What an experiment shows at one scale with the runs that exist."""

    label: str
    title: str
    scale: Scale
    seeds: tuple[int, ...]
    tables: tuple[Table, ...] = ()
    figures: tuple[Figure, ...] = ()
    checks: tuple[Check, ...] = ()
    notes: tuple[str, ...] = ()
    """What is to be said of this label: where the paper contradicts itself, how a figure is read."""
    protocol: tuple[str, ...] = ()
    """What differs from the paper's setting at this scale, rulings used, data sets that are not at hand."""
    used: tuple[RunRecord, ...] = ()
    missing: tuple[RunConfig, ...] = ()


@dataclass(frozen=True)
class Experiment:
    """One label of the paper."""

    label: str
    title: str
    plan: Callable[[Scale, Sequence[int]], list[RunConfig]]
    """Every run that the outcome reads; empty where the label is computed from theory alone."""
    show: Callable[[Results], Outcome]
    """The outcome from finished runs; cells whose runs are missing stay empty with a note."""
    default_seeds: Mapping[Scale, tuple[int, ...]]


def reproduce_command(label: str, scale: Scale, store: str | None = None) -> str:
    """What makes the runs of a label at a scale; ``store`` is named if it is not the default."""
    where = "" if store is None else f" --store {shlex.quote(store)}"
    return f"gatefit reproduce {label} --scale {scale}{where}"
