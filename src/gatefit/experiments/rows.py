"""A run's record as rows of the store's tables, and back.

Metrics keep every digit: they decide whether two runs are the same. Diagnostics are statistics of single-precision
numbers and keep seven; what is not finite is null.
"""

import json
import math
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime, timezone
from typing import Any, Final

from gatefit.experiments.database import StoreError
from gatefit.experiments.record import RunRecord
from gatefit.training.config import RunConfig

DIGITS: Final = 7
COLUMNS: Final = (
    "identity, config, status, summary, step, seconds, code_version, data_digest, machine, created, started, "
    "finished, error"
)


def now() -> str:
    """The time of day, UTC, to the second."""
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def record_of(
    row: tuple[Any, ...],
    metrics: Sequence[Mapping[str, Any]] = (),
    diagnostics: Mapping[str, Mapping[int, Any]] | None = None,
) -> RunRecord:
    """The record in a row of ``COLUMNS``."""
    named = dict(zip(COLUMNS.split(", "), row, strict=True))
    try:
        named |= {name: json.loads(named[name]) for name in ("config", "summary", "machine")}
        named["config"] = RunConfig.from_dict(named["config"])
    except ValueError as error:
        raise StoreError(
            f"run {named['identity']} of the store cannot be read: {error}; install the gatefit that wrote it"
        ) from error
    return RunRecord(**named, metrics=tuple(metrics), diagnostics=diagnostics or {})


def run_order(record: RunRecord) -> tuple[Any, ...]:
    """Runs are listed by data set, method, depth, width, seed and identity."""
    config = record.config
    return config.dataset, config.method, config.depth, config.width or 0, config.seed, record.identity


def insert(connection: sqlite3.Connection, config: RunConfig, record: RunRecord) -> None:
    """Put a record in place of whatever was known of its run."""
    identity = config.identity
    for table in ("metrics", "diagnostics", "runs"):
        connection.execute(f"DELETE FROM {table} WHERE identity = ?", (identity,))
    status = "planned" if record.status == "running" else record.status  # Nobody is at work on it here.
    values = {
        "identity": identity, "config": config_text(config), "dataset": config.dataset, "method": config.method,
        "status": status, "summary": text_of(record.summary), "step": record.step, "seconds": record.seconds,
        "code_version": record.code_version, "data_digest": record.data_digest, "machine": text_of(record.machine),
        "created": record.created or now(), "started": record.started, "finished": record.finished,
        "error": record.error,
    }  # fmt: skip
    places = ", ".join("?" * len(values))
    connection.execute(f"INSERT INTO runs ({', '.join(values)}) VALUES ({places})", tuple(values.values()))
    put_metrics(connection, identity, record.metrics)
    put_diagnostics(connection, identity, record.diagnostics)


def fill(connection: sqlite3.Connection, known: RunRecord, record: RunRecord) -> None:
    """Facts that were not known of a finished run; none that is known is replaced."""
    for name in ("seconds", "code_version", "data_digest", "machine", "started", "finished"):
        value = getattr(record, name)
        if value and not getattr(known, name):
            text = text_of(value) if name == "machine" else value
            connection.execute(f"UPDATE runs SET {name} = ? WHERE identity = ?", (text, known.identity))
    put_diagnostics(connection, known.identity, record.diagnostics, replace=False)


def put_metrics(connection: sqlite3.Connection, identity: str, rows: Sequence[Mapping[str, Any]]) -> None:
    """One row an evaluation; a row that is there is replaced."""
    connection.executemany(
        "INSERT OR REPLACE INTO metrics VALUES (?, ?, ?)", [(identity, row["step"], text_of(row)) for row in rows]
    )


def put_diagnostics(
    connection: sqlite3.Connection, identity: str, values: Mapping[str, Mapping[int, Any]], *, replace: bool = True
) -> None:
    """name -> step -> value; a value that is there is replaced, or kept."""
    connection.executemany(
        f"INSERT OR {'REPLACE' if replace else 'IGNORE'} INTO diagnostics VALUES (?, ?, ?, ?)",
        [
            (identity, int(step), name, json.dumps(_rounded(value), sort_keys=True))
            for name, by_step in values.items()
            for step, value in by_step.items()
        ],
    )


def config_text(config: RunConfig) -> str:
    """A configuration as it is stored."""
    return json.dumps(asdict(config), sort_keys=True)


def text_of(value: Any) -> str:
    """Canonical JSON, every digit kept."""
    return json.dumps(value, sort_keys=True)


def _rounded(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(name): _rounded(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(each) for each in value]
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}") if math.isfinite(value) else None
    return value
