"""The file under a store: SQLite in WAL mode, every commit on the disk before it is acknowledged.

meta         key -> value                      the schema's version
runs         identity -> configuration, status, figures, machine, times
metrics      (identity, step) -> row           one row an evaluation
diagnostics  (identity, step, name) -> value

journal_mode=WAL      readers and one writer at a time, none waits for a reader
synchronous=FULL      a committed row survives a kill and a power loss
BEGIN IMMEDIATE       a writer waits its turn before it reads what it will change
"""

import contextlib
import os
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

SCHEMA: Final = 1
FILE: Final = "store.sqlite"
WAIT: Final = 60.0
"""Seconds that a writer waits for another one."""

_TABLES: Final = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE runs (
  identity TEXT PRIMARY KEY, config TEXT NOT NULL, dataset TEXT NOT NULL, method TEXT NOT NULL,
  status TEXT NOT NULL CHECK (status IN ('planned', 'running', 'finished', 'failed')),
  summary TEXT NOT NULL DEFAULT '{}', step INTEGER NOT NULL DEFAULT 0, seconds REAL,
  code_version TEXT NOT NULL DEFAULT '', data_digest TEXT NOT NULL DEFAULT '', machine TEXT NOT NULL DEFAULT '{}',
  created TEXT NOT NULL DEFAULT '', started TEXT NOT NULL DEFAULT '', finished TEXT NOT NULL DEFAULT '',
  error TEXT NOT NULL DEFAULT ''
) WITHOUT ROWID;
CREATE TABLE metrics (
  identity TEXT NOT NULL REFERENCES runs, step INTEGER NOT NULL, row TEXT NOT NULL, PRIMARY KEY (identity, step)
) WITHOUT ROWID;
CREATE TABLE diagnostics (
  identity TEXT NOT NULL REFERENCES runs, step INTEGER NOT NULL, name TEXT NOT NULL, value TEXT NOT NULL,
  PRIMARY KEY (identity, step, name)
) WITHOUT ROWID;
"""


class StoreError(ValueError):
    """A store that cannot be used: absent, damaged, foreign, of a newer version, or not to be written."""


def connect(folder: Path, *, read_only: bool, create: bool) -> sqlite3.Connection:
    """The store's file in ``folder``, made where it is absent and may be, its version checked."""
    path = folder / FILE
    if read_only or not create:
        _must_exist(path)
    with explained(path):
        connection = _open_to_read(path) if read_only else _open_to_write(path)
        try:
            if not read_only:
                _create_tables(connection, path)
            _check_version(connection, path)
        except BaseException:
            connection.close()
            raise
    return connection


@contextlib.contextmanager
def explained(path: Path) -> Iterator[None]:
    """SQLite's errors as one sentence each."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        raise StoreError(_explanation(path, error)) from error
    except PermissionError as error:
        raise StoreError(_explanation(path, error)) from error


@contextlib.contextmanager
def transaction(connection: sqlite3.Connection, path: Path) -> Iterator[sqlite3.Connection]:
    """All of what is written in here, on the disk, or nothing of it."""
    with explained(path):
        connection.execute("BEGIN IMMEDIATE")
        try:
            yield connection
        except BaseException:
            # An error such as a full disk has ended the transaction already.
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
        connection.execute("COMMIT")


def _must_exist(path: Path) -> None:
    if path.is_file():
        return
    if (path.parent / "runs.csv").exists():
        raise StoreError(
            f"{path.parent} is an export, not a store; take it into one with `gatefit runs import {path.parent}`"
        )
    raise StoreError(
        f"there is no store at {path.parent}: no {path.name} in it; name another with --store or $GATEFIT_STORE, "
        "or make one with `gatefit reproduce` or `gatefit runs import`"
    )


def _open_to_write(path: Path) -> sqlite3.Connection:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise StoreError(f"{path.parent} is a file; a store is a folder: name another with --store") from None
    connection = sqlite3.connect(path, timeout=WAIT, isolation_level=None)
    try:
        # Where a log is left SQLite opens a file that it cannot write, and says so only at the first row.
        if not (os.access(path.parent, os.W_OK) and (not path.exists() or os.access(path, os.W_OK))):
            raise sqlite3.OperationalError("attempt to write a readonly database")
        _wal(connection)
        connection.execute("PRAGMA synchronous=FULL")
        connection.execute("PRAGMA foreign_keys=ON")
    except BaseException:
        connection.close()
        raise
    return connection


def _wal(connection: sqlite3.Connection) -> None:
    """Switch to WAL; SQLite does not wait here for another process that does the same."""
    until = time.monotonic() + WAIT
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > until:
                raise
            time.sleep(0.01)


def _open_to_read(path: Path) -> sqlite3.Connection:
    """Beside writers where there are some; as it is where nothing can be written, not even a lock."""
    address = path.resolve().as_uri()
    connection = sqlite3.connect(f"{address}?mode=ro", uri=True, timeout=WAIT, isolation_level=None)
    try:
        connection.execute("SELECT count(*) FROM sqlite_master")
    except sqlite3.OperationalError:
        connection.close()
        log = path.with_name(f"{path.name}-wal")
        if log.exists() and log.stat().st_size:
            raise  # Its newest rows are in the log, which cannot be read here.
        connection = sqlite3.connect(f"{address}?immutable=1", uri=True, isolation_level=None)
    return connection


def _create_tables(connection: sqlite3.Connection, path: Path) -> None:
    if not _is_empty(connection):
        return
    with transaction(connection, path):
        # Of two processes that make the same store, the second finds it made.
        if _is_empty(connection):
            for statement in filter(str.strip, _TABLES.split(";\n")):
                connection.execute(statement)
            connection.execute("INSERT INTO meta VALUES ('schema', ?)", (str(SCHEMA),))


def _is_empty(connection: sqlite3.Connection) -> bool:
    return not connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]


def _check_version(connection: sqlite3.Connection, path: Path) -> None:
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if not {"meta", "runs"} <= tables:
        raise StoreError(f"{path} is not a gatefit store but another SQLite file; name another folder with --store")
    found = connection.execute("SELECT value FROM meta WHERE key = 'schema'").fetchone()
    version = found[0] if found else "?"
    if not version.isdigit() or int(version) < 1:
        raise StoreError(f"{path} is damaged: its version is {version!r}; take it from a backup or an export")
    if int(version) > SCHEMA:
        raise StoreError(
            f"{path} is a store of version {version}, this gatefit reads version {SCHEMA}; "
            "install a newer gatefit, or use another --store"
        )


def _explanation(path: Path, error: Exception) -> str:
    text = str(error)
    if isinstance(error, PermissionError) or "readonly" in text or "unable to open" in text:
        return (
            f"{path} cannot be written: its disk or folder is read-only, or belongs to somebody else; "
            "copy the store to a place that can be written and name that with --store"
        )
    if "not a database" in text:
        return f"{path} is not a gatefit store, or its first bytes are damaged; name another folder with --store"
    if "malformed" in text or "no such" in text:
        return (
            f"{path} is damaged ({text}); keep it aside, and start a new store: finished run folders and exports "
            "go into it with `gatefit runs import`"
        )
    if "full" in text:
        return f"the disk of {path} is full; what was acknowledged is intact: free some space and run it again"
    if "locked" in text or "busy" in text:
        return f"{path} was in use by another process for more than {WAIT:.0f} s; try again when it is done"
    return f"{path} cannot be used: {text}"
