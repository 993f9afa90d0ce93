"""Runs from elsewhere, taken into a store: exports, other stores, and folders made by ``gatefit train``.

    export folder | store folder | run folder | folder of run folders   ->   added, present, conflict or skipped

A run that is finished here stays as it is. The same run with another log is a conflict: both are named, none is merged.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gatefit.datasets import Dataset, DatasetError, load_dataset
from gatefit.experiments.database import FILE, StoreError
from gatefit.experiments.export import RUNS, open_results
from gatefit.experiments.record import RunRecord
from gatefit.experiments.store import Store, Taken
from gatefit.training.folder import RunFolderError, read_config, read_finished, read_made

Diagnose = Callable[[RunRecord, Path], Mapping[str, Mapping[int, Any]]]
"""Diagnostics of a finished run from its folder: name -> step -> value."""


@dataclass(frozen=True)
class ImportedRun:
    """What became of one run, or of one path that holds none that can be taken."""

    source: str
    identity: str
    outcome: Taken
    reason: str = ""


def import_runs(
    paths: list[Path],
    store: Store,
    *,
    machine: Mapping[str, Any] | None = None,
    code_version: str = "",
    diagnose: Diagnose | None = None,
) -> Iterator[ImportedRun]:
    """Take in every run under ``paths``, one after the other, telling what became of each.

    ``machine`` and ``code_version`` are noted for run folders that do not say what they were made with; ``diagnose``
    measures what a run folder does not hold, where the store does not have it yet.
    """
    check_sources(paths)
    for path in paths:
        if (path / FILE).is_file() or (path / RUNS).is_file():
            yield from _import_results(path, store)
            continue
        for folder in [path] if (path / "config.json").is_file() else _run_folders(path):
            yield _import_folder(folder, store, machine or {}, code_version, diagnose)


def read_run_folder(folder: Path) -> RunRecord:
    """The record of a finished run folder."""
    config = read_config(folder).resolved()
    result = folder / "result.json"
    if not result.exists():
        raise RunFolderError(f"not finished; finish it with `gatefit train --resume {folder}`")
    metrics = read_finished(folder)
    summary = json.loads(result.read_text())
    summary.pop("config", None)  # Computed again below, as this version computes it.
    digest = summary.pop("data", "")
    made = read_made(folder)
    return RunRecord(
        config.identity,
        config,
        "finished",
        summary,
        tuple(metrics),
        data_digest=str(digest),
        step=int(metrics[-1]["step"]),
        seconds=made.get("seconds"),
        code_version=made.get("code_version", ""),
        machine=made.get("machine", {}),
    )


def check_sources(paths: list[Path]) -> None:
    """Refuse what holds no runs."""
    for path in paths:
        if not path.is_dir():
            raise StoreError(f"{path} is no folder; name an export, a store, or run folders made by `gatefit train`")
        if not any((path / name).is_file() for name in (FILE, RUNS, "config.json")) and not _run_folders(path):
            raise StoreError(
                f"{path} holds no runs: no {FILE}, no {RUNS}, no config.json, and no folder with one; "
                "name an export, a store, or run folders made by `gatefit train`"
            )


def _run_folders(path: Path) -> list[Path]:
    return sorted(config.parent for config in path.glob("*/config.json"))


def _import_results(path: Path, store: Store) -> Iterator[ImportedRun]:
    if (path / FILE).is_file() and (path / FILE).resolve() == (store.folder / FILE).resolve():
        raise StoreError(f"{path} is the store itself; name another")
    with open_results(path) as source:
        for record in source.records():
            whole = source.find(record.identity)
            assert whole is not None
            outcome = store.take(whole)
            yield ImportedRun(str(path), record.identity, outcome, _reason(outcome, store))


def _import_folder(
    folder: Path, store: Store, machine: Mapping[str, Any], code_version: str, diagnose: Diagnose | None
) -> ImportedRun:
    try:
        record = read_run_folder(folder)
        known = store.find(record.identity)
        if diagnose is not None and not (known is not None and known.diagnostics):
            record = replace(record, diagnostics=diagnose(record, folder))
    except ValueError as error:
        return ImportedRun(str(folder), "", "skipped", str(error))
    if not record.code_version:
        record = replace(record, machine=machine, code_version=code_version)
    outcome = store.take(record)
    return ImportedRun(str(folder), record.identity, outcome, _reason(outcome, store))


def _reason(outcome: Taken, store: Store) -> str:
    if outcome == "conflict":
        return f"finished in {store.folder} with another log; that one is kept: import this into a store of its own"
    return "known here, and not finished there" if outcome == "skipped" else ""


class FinalDiagnostics:
    """What a finished run's saved network shows, where torch and the data are at hand; else nothing."""

    def __init__(self, data_dir: Path | None = None) -> None:
        self.data_dir = data_dir
        self._loaded: tuple[Any, Any] | None = None
        self._absent: set[str] = set()

    def __call__(self, record: RunRecord, folder: Path) -> dict[str, dict[int, Any]]:
        """name -> step -> value, of the one step whose network was kept."""
        config = record.config
        if config.dataset in self._absent:
            return {}
        try:
            from gatefit.training.diagnostics_observer import diagnose_folder
            from gatefit.training.runs import holds_network
        except ImportError:
            return {}
        if not holds_network(folder / "model.safetensors"):
            return {}
        try:
            dataset = self._dataset(record)
        except DatasetError:
            self._absent.add(config.dataset)
            return {}
        step, values = diagnose_folder(folder, dataset=dataset)
        return {name: {step: value} for name, value in values.items()}

    def _dataset(self, record: RunRecord) -> Dataset:
        key = (record.config.dataset, record.config.dataset_options())
        if self._loaded is None or self._loaded[0] != key:
            self._loaded = None
            self._loaded = (key, load_dataset(key[0], data_dir=self.data_dir, **key[1]))
        dataset: Dataset = self._loaded[1]
        return dataset
