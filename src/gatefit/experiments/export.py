"""Results as text: files that are small, sorted and exact, to be committed, read by others, and taken in again.

    runs.csv           one line a run: identity, status, every configuration field, figures, machine, version
    metrics.csv        one line an evaluation
    diagnostics.jsonl  one line a run, name and step

Numbers have every digit that the store has; an empty cell is "not known". The same runs always give the same bytes,
and export -> import -> export changes none of them.
"""

import contextlib
import csv
import io
import json
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Literal, Protocol, get_args

from gatefit.experiments.database import FILE, StoreError
from gatefit.experiments.record import RunRecord
from gatefit.experiments.store import Store, run_order
from gatefit.training.config import RunConfig, option_of
from gatefit.training.machine import FIELDS as MACHINE_FIELDS

RUNS: Final = "runs.csv"
METRICS: Final = "metrics.csv"
DIAGNOSTICS: Final = "diagnostics.jsonl"

Kept = Literal["all", "curves", "ends", "none"]
"""Diagnostics of every evaluation, of each run's first and last with what is drawn over time between them (on the first
wiring: no figure looks inside the others), of the first and last alone, or none."""

_CURVES: Final[Mapping[str, tuple[str, ...]]] = {
    "gradient_norms": ("c_0", "c_a", "c_ab", "c_b", "l1_ratio", "ratio"),
    "commitment": ("std_c_ab",),
    "entropy": ("by_layer",),
}
"""What the figures draw over time: a tenth of all that is measured."""

_CONFIG: Final = (
    "dataset", "method", "width", "depth", "steps", "seed", "wiring_seed", "wiring", "readout", "readout_temperature",
    "batch_size", "learning_rate", "beta1", "beta2", "weight_decay", "schedule", "warmup", "evaluate_every",
    "initialisation", "sigma", "temperature", "learnable_temperature", "backward_basis", "epsilon", "corner_activation",
    "noise_scale", "thresholds", "adult_encoding", "validation_fraction", "patience", "noise_in", "noise_steps",
    "reach", "split_seed", "snap", "surrogate", "whole_batches",
)  # fmt: skip
"""The configuration's columns that every export has."""
_LATER: Final = tuple(f for f in fields(RunConfig) if f.name not in _CONFIG)
"""Fields that came later: each has a column, after all others, where a run sets it; older exports stay as they are."""
_WORDS: Final = tuple(f.name for f in fields(RunConfig) if option_of(f).kind in (str, str | None))
_NUMBERS_OR_WORDS: Final = tuple(f.name for f in fields(RunConfig) if {float, str} <= set(get_args(option_of(f).kind)))
_FIGURES: Final = (
    "test_accuracy", "last_10_accuracy", "best_accuracy", "best_step", "train_accuracy", "discretisation_gap_train",
    "discretisation_gap_test", "generalisation_gap", "boolean", "steps",
)  # fmt: skip
_VALIDATION: Final = ("validation_accuracy", "discretisation_gap_validation")
"""The figures of a run with a validation set, in columns that are written where there is such a run."""
_FACTS: Final = ("step", "seconds", "code_version", "data_digest", "created", "started", "finished", "error")
_NUMBERS: Final = ("step", "seconds")
_MACHINE: Final = tuple(f"machine_{name}" for name in MACHINE_FIELDS)
_MACHINE_NUMBERS: Final = ("cores", "memory_gb")
# A figure and a configuration field may have one name; the figure's column says what it is.
_FIGURE_COLUMNS: Final = tuple(f"final_{name}" if name in _CONFIG else name for name in _FIGURES)
_RUN_COLUMNS: Final = ("identity", "status", *_CONFIG, *_FIGURE_COLUMNS, *_FACTS, *_MACHINE)
_METRIC_COLUMNS: Final = (
    "step", "loss", "train_hard", "train_soft", "train_discretisation_gap", "test_hard", "test_soft",
    "test_discretisation_gap", "generalisation_gap",
)  # fmt: skip


class ResultSource(Protocol):
    """What results are read from: a store or an export."""

    def find(self, identity: str) -> RunRecord | None:
        """All that is known of a run."""

    def records(
        self, *, dataset: str | None = None, method: str | None = None, status: str | None = None, rows: bool = False
    ) -> list[RunRecord]:
        """Runs in their order."""

    def __enter__(self) -> Any: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class Export:
    """An export folder, read whole."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._records = _read(folder)

    def find(self, identity: str) -> RunRecord | None:
        """All that is known of a run; None where it is unknown."""
        return self._records.get(identity)

    def records(
        self, *, dataset: str | None = None, method: str | None = None, status: str | None = None, rows: bool = False
    ) -> list[RunRecord]:
        """Runs by data set, method, depth, width, seed and identity; with metrics and diagnostics where ``rows``."""
        chosen = [
            record
            for record in self._records.values()
            if dataset in (None, record.config.dataset)
            and method in (None, record.config.method)
            and status in (None, record.status)
        ]
        chosen.sort(key=run_order)
        return chosen if rows else [replace(record, metrics=(), diagnostics={}) for record in chosen]

    def __enter__(self) -> "Export":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Nothing is held."""


def open_results(path: Path) -> ResultSource:
    """The results in a store's folder or in an export's, to be read."""
    if (path / RUNS).is_file() and not (path / FILE).exists():
        return Export(path)
    return Store.open(path, read_only=True)


def write_export(records: Iterable[RunRecord], folder: Path, *, diagnostics: Kept = "all") -> dict[str, int]:
    """Write runs with their rows to ``folder``; returns how many lines each file has under its title."""
    records = sorted(records, key=run_order)
    folder.mkdir(parents=True, exist_ok=True)
    validation = _VALIDATION if any(name in record.summary for record in records for name in _VALIDATION) else ()
    later = [f.name for f in _LATER if any(getattr(record.config, f.name) != f.default for record in records)]
    runs = [
        (
            *_run_line(record),
            *(_cell(record.summary.get(name)) for name in validation),
            *(_cell(getattr(record.config, name)) for name in later),
        )
        for record in records
    ]
    extra = sorted({name for record in records for row in record.metrics for name in row} - set(_METRIC_COLUMNS))
    columns = (*_METRIC_COLUMNS, *extra)
    rows = [(record.identity, *(_cell(row.get(c)) for c in columns)) for record in records for row in record.metrics]
    _replace(folder / METRICS, _csv(("identity", *columns), rows))
    lines = [line for record in records for line in _diagnostic_lines(record, diagnostics)]
    if diagnostics == "none":
        (folder / DIAGNOSTICS).unlink(missing_ok=True)
    else:
        _replace(folder / DIAGNOSTICS, "".join(f"{line}\n" for line in lines))
    _replace(
        folder / RUNS, _csv((*_RUN_COLUMNS, *validation, *later), runs)
    )  # Last: it says what the others must hold.
    return {RUNS: len(runs), METRICS: len(rows), DIAGNOSTICS: len(lines)}


def public_error(text: str) -> str:
    """An error's first line without addresses and paths, which are nobody else's business."""
    line = text.strip().splitlines()[0] if text.strip() else ""
    return re.sub(r"(?:\w+:/|(?<![\w.])~?)/[^\s,;:)]+", "…", line)[:200]


def _run_line(record: RunRecord) -> tuple[str, ...]:
    facts = {name: getattr(record, name) for name in _FACTS} | {"error": public_error(record.error)}
    return (
        record.identity,
        record.status,
        *(_cell(getattr(record.config, name)) for name in _CONFIG),
        *(_cell(record.summary.get(name)) for name in _FIGURES),
        *(_cell(facts[name]) for name in _FACTS),
        *(_cell(record.machine.get(name)) for name in MACHINE_FIELDS),
    )


def _diagnostic_lines(record: RunRecord, kept: Kept) -> list[str]:
    lines = []
    if kept == "curves" and record.config.wiring_seed:
        kept = "none"
    for name in sorted(record.diagnostics):
        by_step = record.diagnostics[name]
        steps = sorted(by_step)
        ends = {*steps[:1], *steps[-1:]}
        if kept == "ends" or (kept == "curves" and name not in _CURVES):
            steps = sorted(ends)
        for step in [] if kept == "none" else steps:
            value = by_step[step]
            if kept == "curves" and step not in ends and isinstance(value, Mapping):
                value = {key: value[key] for key in _CURVES[name] if key in value}
            content = {"identity": record.identity, "name": name, "step": step, "value": value}
            lines.append(json.dumps(content, sort_keys=True, separators=(",", ":")))
    return lines


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value)


def _csv(columns: Iterable[str], lines: Iterable[Iterable[str]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(lines)
    return text.getvalue()


def _replace(path: Path, text: str) -> None:
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    temporary.write_text(text, encoding="utf-8", newline="")
    temporary.replace(path)


def _read(folder: Path) -> dict[str, RunRecord]:
    runs = _read_csv(folder / RUNS, known=(*_RUN_COLUMNS, *_VALIDATION, *(f.name for f in _LATER)))
    records: dict[str, RunRecord] = {}
    metrics: dict[str, list[dict[str, Any]]] = {}
    diagnostics: dict[str, dict[str, dict[int, Any]]] = {}
    with _located(folder):
        for line in _read_csv(folder / METRICS) if (folder / METRICS).exists() else ():
            # A column that only some runs have is no part of the others' rows.
            row = {n: _number(cell) for n, cell in line.items() if n in _METRIC_COLUMNS or (cell and n != "identity")}
            metrics.setdefault(line["identity"], []).append(row)
        if (folder / DIAGNOSTICS).exists():
            for text in (folder / DIAGNOSTICS).read_text(encoding="utf-8").splitlines():
                entry = json.loads(text)
                by_name = diagnostics.setdefault(entry["identity"], {})
                by_name.setdefault(entry["name"], {})[int(entry["step"])] = entry["value"]
        for line in runs:
            record = _run_record(line)
            identity, log = record.identity, metrics.get(record.identity, [])
            if record.status == "finished" and (not log or log[-1].get("step") != record.step):
                until = f"ends at step {log[-1].get('step')}" if log else "is missing"
                raise ValueError(f"run {identity} is finished at step {record.step}, and its log in {METRICS} {until}")
            records[identity] = replace(record, metrics=tuple(log), diagnostics=diagnostics.get(identity, {}))
    return records


class _located:
    """Errors in a file's content, as one sentence that names the folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if isinstance(error, StoreError) or not isinstance(error, ValueError | KeyError | TypeError):
            return
        raise StoreError(f"the export in {self.folder} is damaged: {error}; export the runs again") from error


def _read_csv(path: Path, known: tuple[str, ...] | None = None) -> list[dict[str, str]]:
    if not path.is_file():
        raise StoreError(f"there is no export at {path.parent}: no {path.name} in it")
    with _located(path.parent), path.open(encoding="utf-8", newline="") as file:
        lines = list(csv.reader(file))
        columns = lines[0] if lines else []
        if "identity" not in columns:
            raise ValueError(f"{path.name} has no column identity")
        if known is not None and (unknown := [name for name in columns if name not in known]):
            raise StoreError(
                f"{path} has a column {unknown[0]!r} that this gatefit does not know; install a newer gatefit"
            )
        return [dict(zip(columns, line, strict=True)) for line in lines[1:]]


def _run_record(line: Mapping[str, str]) -> RunRecord:
    config = {f.name: _field(f.name, line[f.name]) for f in fields(RunConfig) if f.name in line}
    figures = {
        name: _number(line[column])
        for name, column in zip(_FIGURES, _FIGURE_COLUMNS, strict=True)
        if line["status"] == "finished"
    }
    if line.get("validation_accuracy"):
        # These take the place of the test set's, which was not looked at.
        del figures["test_accuracy"], figures["discretisation_gap_test"]
        figures |= {name: _number(line[name]) for name in _VALIDATION}
    facts: dict[str, Any] = {name: _number(line[name]) if name in _NUMBERS else line[name] for name in _FACTS}
    machine: dict[str, Any] = {}
    for name, column in zip(MACHINE_FIELDS, _MACHINE, strict=True):
        if line.get(column):
            machine[name] = _number(line[column]) if name in _MACHINE_NUMBERS else line[column]
    record = RunRecord(line["identity"], RunConfig.from_dict(config), line["status"], figures, machine=machine, **facts)
    if record.config.identity != record.identity:
        raise ValueError(f"run {record.identity} has the configuration of {record.config.identity}")
    return record


def _field(name: str, cell: str) -> Any:
    """A configuration's value as it was before ``_cell``."""
    if name in _NUMBERS_OR_WORDS:
        with contextlib.suppress(ValueError):
            return _number(cell)
        return cell
    return (cell or None) if name in _WORDS else _number(cell)


def _number(cell: str) -> Any:
    return json.loads(cell) if cell else None
