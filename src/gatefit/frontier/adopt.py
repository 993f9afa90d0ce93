"""The circuits that ship with the package: of every row the first seed's and its card; of large ones the card alone."""

from pathlib import Path
from typing import Any

from gatefit import models
from gatefit.circuit.file import digest, dumps
from gatefit.circuit.ir import Circuit
from gatefit.datasets import DATASETS
from gatefit.frontier.entries import Entry
from gatefit.frontier.measure import FrontierError, Place
from gatefit.frontier.results import Row


def adopt(row: Row, store: Path, folder: Path) -> list[Path]:
    """Write a row's model into ``folder``; its circuit is looked for in the store, and must be the row's."""
    figures = row.seeds[0]
    (config,) = row.entry.runs([figures["seed"]])
    content = card(row.entry, list(row.seeds))
    if figures["live_gates"] > models.LARGEST:
        return models.write(folder, content, None)
    place = Place.of(store, row.entry, config)
    if not place.circuit.is_file():
        raise FrontierError(
            f"the circuit of {row.entry.name} is not in {store}; make it: gatefit frontier {row.entry.name}"
        )
    circuit = Circuit.load(place.circuit)
    if digest(circuit) != figures["digest"]:
        raise FrontierError(
            f"{place.circuit} is not the circuit of {row.entry.name} in the results; make both again: gatefit frontier "
            f"{row.entry.name} --measure-again"
        )
    return models.write(folder, content, dumps(circuit))


def card(entry: Entry, rows: list[dict[str, Any]]) -> dict[str, Any]:
    """What a model's card says: of the first seed's circuit, with the accuracies of all seeds beside it."""
    row, info = rows[0], DATASETS[entry.config.dataset]
    return {
        "name": entry.name,
        "title": f"{info.title}: {row['live_gates']:,} gates, {100 * row['test_accuracy']:.2f} %",
        "note": entry.note,
        "dataset": entry.config.dataset,
        "dataset_options": entry.config.dataset_options(),
        "data": row["data"],
        "data_source": info.source,
        "data_terms": info.terms,
        "seed": row["seed"],
        "run": row["run"],
        "commands": entry.commands(row["seed"])[: 2 if entry.prune is None else 3],
        "test_accuracy": row["test_accuracy"],
        "test_samples": row["test_samples"],
        "seeds": {str(each["seed"]): each["test_accuracy"] for each in rows},
        "trained_gates": row["trained_gates"],
        "live_gates": row["live_gates"],
        "depth": row["depth"],
        "outputs": row["outputs"],
        "encoder_comparisons": row["encoder_comparisons"],
        "readout_gates": row["readout_gates"],
        "luts": {target: each["tables"] for target, each in row["luts"].items()},
        "proofs": row["proofs"],
        "digest": row["digest"],
        "made": {
            name: row.get(name)
            for name in ("finished", "code_version", "seconds", "processor_seconds", "threads", "cpu")
        },
    }
