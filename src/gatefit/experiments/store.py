"""The store: every run's configuration, status, rows and figures in one SQLite file, beside the run folders.

    FOLDER/store.sqlite       what is known of every run             (``experiments.database``)
    FOLDER/runs/IDENTITY/     its checkpoints, log and network       (``training.folder``)

    planned -> running -> finished | failed        a run that was stopped or killed goes on, from planned or running

A row is keyed by run, step and name: a resumed run writes the same rows again, never a second time. When a method that
writes returns, what it wrote is on the disk. Who works on a run is decided by the lock of its folder, which the system
frees however a process ends; the status "running" only says that somebody began.

Metrics keep every digit: they decide whether two runs are the same. Diagnostics are statistics of single-precision
numbers and keep seven; what is not finite is null.
"""

import json
import math
import os
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime, timezone
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Literal

from gatefit.experiments.database import FILE, StoreError, connect, explained, transaction
from gatefit.experiments.record import RunRecord
from gatefit.training.config import RunConfig

DIGITS: Final = 7
COLUMNS: Final = (
    "identity, config, status, summary, step, seconds, code_version, data_digest, machine, created, started, "
    "finished, error"
)
STATUSES: Final = ("planned", "running", "finished", "failed")

Taken = Literal["added", "present", "conflict", "skipped"]

__all__ = ["STATUSES", "Store", "StoreError", "Taken", "default_store"]


def default_store() -> Path:
    """$GATEFIT_STORE, or ``gatefit-store`` in the working directory."""
    return Path(os.environ.get("GATEFIT_STORE") or "gatefit-store")


class Store:
    """An open store. One object serves one thread; any number of processes may have one each."""

    def __init__(self, folder: Path, connection: sqlite3.Connection, *, read_only: bool) -> None:
        self.folder, self.read_only = folder, read_only
        self._path, self._connection = folder / FILE, connection

    @classmethod
    def open(cls, folder: Path, *, read_only: bool = False, create: bool = True) -> "Store":
        """The store in ``folder``, made where there is none unless ``read_only`` or ``create=False`` says no."""
        return cls(folder, connect(folder, read_only=read_only, create=create), read_only=read_only)

    def close(self) -> None:
        """Let go of the file."""
        self._connection.close()

    def __enter__(self) -> "Store":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def run_folder(self, identity: str) -> Path:
        """Where a run's checkpoints, log and network are."""
        return self.folder / "runs" / identity

    def find(self, identity: str) -> RunRecord | None:
        """All that is known of a run, with its rows; None where it is unknown."""
        with explained(self._path):
            self._connection.execute("BEGIN")  # One moment for all three tables.
            try:
                row = self._connection.execute(f"SELECT {COLUMNS} FROM runs WHERE identity = ?", (identity,)).fetchone()
                return None if row is None else record_of(row, self._metrics(identity), self._diagnostics(identity))
            finally:
                self._connection.execute("COMMIT")

    def records(
        self, *, dataset: str | None = None, method: str | None = None, status: str | None = None, rows: bool = False
    ) -> list[RunRecord]:
        """Runs by data set, method, depth, width, seed and identity; with metrics and diagnostics where ``rows``."""
        chosen = {"dataset": dataset, "method": method, "status": status}
        given = {name: value for name, value in chosen.items() if value is not None}
        where = f"WHERE {' AND '.join(f'{name} = ?' for name in given)}" if given else ""
        with explained(self._path):
            found = self._connection.execute(f"SELECT {COLUMNS} FROM runs {where}", tuple(given.values())).fetchall()
        records = sorted((record_of(row) for row in found), key=run_order)
        return [self.find(record.identity) or record for record in records] if rows else records

    def status(self, identity: str) -> str | None:
        """planned, running, finished or failed; None where the run is unknown."""
        with explained(self._path):
            found = self._connection.execute("SELECT status FROM runs WHERE identity = ?", (identity,)).fetchone()
        return None if found is None else str(found[0])

    def check(self) -> None:
        """SQLite's own check of the whole file; StoreError where it finds damage."""
        with explained(self._path):
            texts = [text for (text,) in self._connection.execute("PRAGMA integrity_check")]
            # One text may hold a title, "*** in database main ***", and a hundred findings, a line each.
            found = [line for text in texts for line in text.splitlines() if not line.startswith("***")]
            if found != ["ok"]:
                more = f" and {len(found) - 1} more" if len(found) > 1 else ""
                raise sqlite3.DatabaseError(f"malformed: {found[0]}{more}")

    def plan(self, configs: Iterable[RunConfig]) -> list[str]:
        """Make known what will be run; what is known already stays as it is. Returns the identities, in order."""
        configs = [config.resolved() for config in configs]
        new = [config for config in configs if self.status(config.identity) is None]
        if not new:
            return [config.identity for config in configs]
        with transaction(self._connection, self._path) as connection:
            for config in new:
                connection.execute(
                    "INSERT INTO runs (identity, config, dataset, method, status, created) "
                    "VALUES (?, ?, ?, ?, 'planned', ?) ON CONFLICT (identity) DO NOTHING",
                    (config.identity, config_text(config), config.dataset, config.method, now()),
                )
        return [config.identity for config in configs]

    def begin(
        self, identity: str, *, code_version: str = "", data_digest: str = "", machine: Mapping[str, Any] | None = None
    ) -> None:
        """A process begins to work on a planned run, or goes on with it."""
        self._update(
            "status = 'running', error = '', code_version = ?, data_digest = ?, machine = ?, "
            "started = CASE started WHEN '' THEN ? ELSE started END",
            (code_version, data_digest, text_of(machine or {}), now()),
            identity,
            unless="finished",
        )

    def write_metrics(self, identity: str, rows: Sequence[Mapping[str, Any]], *, seconds: float = 0.0) -> None:
        """Rows of a run's log, and the time that was worked on it since the last call."""
        with transaction(self._connection, self._path) as connection:
            changed = self._change(
                connection,
                "step = max(step, ?), seconds = coalesce(seconds, 0) + ?",
                (max((row["step"] for row in rows), default=0), seconds),
                identity,
                unless="finished",
            )
            if changed:
                put_metrics(connection, identity, rows)

    def write_diagnostics(self, identity: str, step: int, values: Mapping[str, Any]) -> None:
        """What was measured of a run at one step, by name; numbers to seven digits, those not finite as null."""
        with transaction(self._connection, self._path) as connection:
            put_diagnostics(connection, identity, {name: {step: value} for name, value in values.items()})

    def finish(
        self, identity: str, metrics: Sequence[Mapping[str, Any]], summary: Mapping[str, Any], *, seconds: float = 0.0
    ) -> None:
        """The end of a run, in one piece: its whole log and its figures. A run is finished once.

        Once it is, with the same log, this changes nothing; with another log it is refused.
        """
        if not metrics:
            raise ValueError(f"run {identity} cannot be finished without a log: it was never evaluated")
        with transaction(self._connection, self._path) as connection:
            changed = self._change(
                connection,
                "status = 'finished', error = '', summary = ?, step = ?, "
                "seconds = CASE WHEN seconds IS NULL AND ? = 0 THEN NULL ELSE coalesce(seconds, 0) + ? END, "
                "finished = CASE finished WHEN '' THEN ? ELSE finished END",
                (text_of(summary), metrics[-1]["step"], seconds, seconds, now()),
                identity,
                unless="finished",
            )
            if not changed:
                if text_of(self._metrics(identity)) != text_of(metrics):
                    raise ValueError(f"run {identity} was finished elsewhere meanwhile with another log; that is kept")
                return
            connection.execute("DELETE FROM metrics WHERE identity = ?", (identity,))
            put_metrics(connection, identity, metrics)

    def fail(self, identity: str, error: str) -> None:
        """A run that cannot go on, and why; it is tried again when it is asked for again."""
        self._update("status = 'failed', error = ?", (error,), identity, unless="finished")

    def interrupt(self, identity: str, *, step: int | None = None) -> None:
        """A run that was asked to stop: it goes on another time."""
        step_set = "" if step is None else f", step = {int(step)}"
        self._update(f"status = 'planned'{step_set}", (), identity, unless="finished")

    def take(self, record: RunRecord) -> Taken:
        """Take in a run from elsewhere; one that is finished here is never changed.

        "added"     it was unknown, or not finished here and is there
        "present"   it is known with the same log; diagnostics and facts that were missing here are filled in
        "conflict"  it is finished on both sides with different logs: nothing is changed
        "skipped"   it is known here and not finished there
        """
        config = record.config.resolved()
        with transaction(self._connection, self._path) as connection:
            row = connection.execute(f"SELECT {COLUMNS} FROM runs WHERE identity = ?", (config.identity,)).fetchone()
            known = None if row is None else record_of(row, self._metrics(config.identity))
            if known is not None and record.status != "finished":
                return "skipped"
            if known is not None and known.status == "finished":
                same = text_of(known.metrics) == text_of(record.metrics)
                if same:
                    fill(connection, known, record)
                return "present" if same else "conflict"
            insert(connection, config, record)
        return "added"

    def _metrics(self, identity: str) -> list[dict[str, Any]]:
        found = self._connection.execute("SELECT row FROM metrics WHERE identity = ? ORDER BY step", (identity,))
        return [json.loads(text) for (text,) in found]

    def _diagnostics(self, identity: str) -> dict[str, dict[int, Any]]:
        values: dict[str, dict[int, Any]] = {}
        for step, name, text in self._connection.execute(
            "SELECT step, name, value FROM diagnostics WHERE identity = ? ORDER BY name, step", (identity,)
        ):
            values.setdefault(name, {})[step] = json.loads(text)
        return values

    def _update(self, change: str, values: tuple[Any, ...], identity: str, *, unless: str = "") -> None:
        with transaction(self._connection, self._path) as connection:
            self._change(connection, change, values, identity, unless=unless)

    def _change(
        self, connection: sqlite3.Connection, change: str, values: tuple[Any, ...], identity: str, *, unless: str = ""
    ) -> bool:
        done = connection.execute(
            f"UPDATE runs SET {change} WHERE identity = ? AND status != ?", (*values, identity, unless)
        )
        if not done.rowcount and self.status(identity) is None:
            raise StoreError(f"run {identity} is not in {self._path}; plan it first")
        return done.rowcount > 0


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
    return (
        config.dataset,
        config.method,
        config.depth,
        max(config.layer_widths, default=0),
        config.seed,
        record.identity,
    )


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
