"""The rows of the frontier as one file that is committed: ``frontier.json``.

    {"format": "gatefit-frontier", "version": 1,
     "rows": [{"name", "note", "config", "prune", "synth", "seeds": [the figures of one run, ...]}, ...]}

A row is an entry that was run: nothing in it is typed in. An entry that has changed since has another row.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec

from gatefit.circuit.file import write_atomically
from gatefit.frontier.entries import Entry, Prune, given_fields
from gatefit.training.config import RunConfig

FILE: Final = "frontier.json"
FORMAT: Final = "gatefit-frontier"
VERSION: Final = 1


@dataclass(frozen=True)
class Row:
    """An entry and the figures of its runs, by seed."""

    entry: Entry
    seeds: tuple[dict[str, Any], ...]

    @property
    def accuracy(self) -> float:
        """The mean over the seeds."""
        return self.mean("test_accuracy")

    def mean(self, name: str) -> float:
        """The mean of a figure over the seeds."""
        return sum(float(each[name]) for each in self.seeds) / len(self.seeds)

    def tables(self, target: str) -> list[int]:
        """Tables of one target, of the seeds that were synthesised for it."""
        return [each["luts"][target]["tables"] for each in self.seeds if target in each["luts"]]


def read_results(folder: Path) -> dict[str, Row]:
    """The rows in a folder by name; none where there is no file."""
    path = folder / FILE
    if not path.exists():
        return {}
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if content["format"] != FORMAT or content["version"] != VERSION:
            raise ValueError(f"format {content['format']!r} version {content['version']!r}, not {FORMAT!r} {VERSION}")
        rows = [_row(each) for each in content["rows"]]
    except (ValueError, LookupError, TypeError) as error:
        raise ValueError(f"{path} cannot be read: {error}; make it again with `gatefit frontier`") from error
    return {row.entry.name: row for row in rows}


def _row(content: dict[str, Any]) -> Row:
    entry = Entry(
        content["name"],
        RunConfig.from_dict(content["config"]),
        tuple(each["seed"] for each in content["seeds"]),
        msgspec.convert(content["prune"], Prune | None),
        tuple(content["synth"]),
        content["note"],
    )
    return Row(entry, tuple(content["seeds"]))


def merged(rows: dict[str, Row], entry: Entry, figures: dict[str, Any]) -> dict[str, Row]:
    """The rows with one run's figures in their place; figures of an entry as it was before are dropped."""
    known = rows.get(entry.name)
    kept = () if known is None or not _same(known.entry, entry) else known.seeds
    seeds = sorted([*(each for each in kept if each["seed"] != figures["seed"]), figures], key=lambda e: int(e["seed"]))
    return {**rows, entry.name: Row(entry, tuple(seeds))}


def _same(one: Entry, other: Entry) -> bool:
    return (one.config, one.prune) == (other.config, other.prune)


def write_results(folder: Path, rows: dict[str, Row]) -> Path:
    """Write all rows, by data set, gates and name: the same rows give the same bytes."""
    content = {"format": FORMAT, "version": VERSION, "rows": [row_content(row) for row in in_order(rows.values())]}
    folder.mkdir(parents=True, exist_ok=True)
    write_atomically(folder / FILE, (json.dumps(content, indent=1, ensure_ascii=False) + "\n").encode())
    return folder / FILE


def row_content(row: Row) -> dict[str, Any]:
    """A row as plain data."""
    entry = row.entry
    return {
        "name": entry.name,
        "note": entry.note,
        "config": given_fields(entry.config) | {"dataset": entry.config.dataset},
        "prune": None if entry.prune is None else msgspec.to_builtins(entry.prune),
        "synth": list(entry.synth),
        "seeds": list(row.seeds),
    }


def in_order(rows: Iterable[Row]) -> list[Row]:
    """Rows by data set, live gates and name."""
    return sorted(rows, key=lambda row: (row.entry.config.dataset, row.mean("live_gates"), row.entry.name))
