"""What is known of one run: from its folder, or from a store by its identity; its last diagnostics made up for.

folder of ``gatefit train``   config.json, metrics.jsonl, result.json; diagnostics of the store it lies in
store and identity            everything that the store has
neither has diagnostics       those of the saved network, where torch and the data are there; else what is missing
"""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from gatefit.experiments.export import open_results
from gatefit.experiments.record import RunRecord
from gatefit.training.folder import checkpoints, read_config, read_metrics


def read_run(folder: Path) -> RunRecord:
    """A run from its folder, finished or not."""
    config = read_config(folder)
    finished = (folder / "result.json").exists()
    record = RunRecord(
        identity=config.identity,
        config=config,
        status="finished" if finished else "running",
        summary=json.loads((folder / "result.json").read_text()) if finished else {},
        metrics=tuple(read_metrics(folder)),
    )
    known = _in_store(folder, config.identity)
    if known is not None:
        record = replace(known, metrics=record.metrics or known.metrics, summary=record.summary or known.summary)
    rows = record.metrics
    saved = [int(path.stem.rpartition("-")[2]) for path in checkpoints(folder / "checkpoints")]
    return replace(record, step=max([record.step, *saved, *(int(row["step"]) for row in rows[-1:])]))


def _in_store(folder: Path, identity: str) -> RunRecord | None:
    """The store's record, where the folder is one of a store's."""
    store = folder.resolve().parent.parent
    if folder.resolve().parent.name != "runs" or not (store / "store.sqlite").exists():
        return None
    with open_results(store) as source:
        found: RunRecord | None = source.find(identity)
    return found


def with_diagnostics(record: RunRecord, folder: Path | None, data_dir: Path | None = None) -> tuple[RunRecord, str]:
    """The run with diagnostics, as far as they can be had; and a sentence on those that are not rows of the run."""
    if record.diagnostics:
        return record, ""
    if folder is None or not (folder / "model.safetensors").exists():
        return record, (
            "No diagnostics were recorded, and there is no saved network to compute them from: finish the run, or make "
            "it with `gatefit reproduce`, which records them at every evaluation."
        )
    try:
        from gatefit.training.diagnostics_observer import diagnose_folder

        step, row = diagnose_folder(folder, data_dir=data_dir)
    except ImportError as error:
        return record, f"No diagnostics were recorded, and computing the last ones failed: {error}."
    except (OSError, ValueError) as error:
        return record, f"No diagnostics were recorded, and the saved network's could not be computed: {error}"
    found: dict[str, dict[int, Any]] = {name: {step: value} for name, value in row.items() if value is not None}
    if not found:
        return record, "This method has no gates, so there are no diagnostics."
    return replace(record, diagnostics=found), (
        "No diagnostics were recorded while this run was trained. Those below are of its saved network alone; "
        "`gatefit reproduce` records them at every evaluation."
    )
