"""The store: rows once and for good, two processes at a time, and one sentence for whatever is wrong with the file."""

import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest

from gatefit.experiments.record import RunRecord
from gatefit.experiments.store import Store, StoreError, default_store
from gatefit.training.config import RunConfig
from gatefit.training.machine import FIELDS, code_version, machine
from patience import HANG

TESTS = Path(__file__).parents[1]
CONFIG = RunConfig(dataset="monks-1", width=40, depth=2, steps=60, evaluate_every=20)
ROWS = [{"step": 20 * i, "loss": 0.1 * i, "train_hard": None, "test_hard": 1 / 3} for i in (1, 2, 3)]
SUMMARY = {"last_10_accuracy": 1 / 3, "steps": 60}


@pytest.fixture
def store(tmp_path):
    with Store.open(tmp_path / "store") as store:
        yield store


def finished(store, config=CONFIG, rows=ROWS):
    (identity,) = store.plan([config])
    store.begin(identity, code_version="1+abc", data_digest="d", machine={"cpu": "c"})
    store.write_metrics(identity, rows, seconds=2.0)
    store.finish(identity, rows, SUMMARY, seconds=1.0)
    return identity


def test_a_run_from_plan_to_finish(store):
    identity, again = store.plan([replace(CONFIG, width=None), replace(CONFIG, width=136)])
    assert identity == again == replace(CONFIG, width=136).identity
    record = store.find(identity)
    assert (record.status, record.step, record.metrics, record.seconds) == ("planned", 0, (), None)
    assert record.created.endswith("Z")
    store.begin(identity, code_version="1+abc", data_digest="d", machine={"cpu": "c"})
    store.write_metrics(identity, ROWS[:1], seconds=1.5)
    store.write_diagnostics(identity, 0, {"entropy": {"mean": 2.0, "by_layer": [1.0, 3.0]}})
    store.write_diagnostics(identity, 20, {"entropy": {"mean": 1.0}, "census": None})
    record = store.find(identity)
    assert (record.status, record.step, record.seconds) == ("running", 20, 1.5)
    assert record.started >= record.created
    assert record.finished == ""
    store.finish(identity, ROWS, SUMMARY, seconds=0.5)
    record = store.find(identity)
    assert record.config == replace(CONFIG, width=136)
    assert (record.status, record.step, record.seconds) == ("finished", 60, 2.0)
    assert list(record.metrics) == ROWS
    assert record.summary == SUMMARY
    assert record.diagnostics == {
        "census": {20: None},
        "entropy": {0: {"mean": 2.0, "by_layer": [1.0, 3.0]}, 20: {"mean": 1.0}},
    }
    assert (record.machine, record.code_version, record.data_digest) == ({"cpu": "c"}, "1+abc", "d")
    assert record.finished >= record.started


def test_a_finished_run_is_never_changed(store):
    identity = finished(store)
    before = store.find(identity)
    store.write_metrics(identity, [{**ROWS[0], "loss": 9.0}], seconds=5.0)
    store.finish(identity, ROWS, {"last_10_accuracy": 0.0}, seconds=5.0)  # the same log again
    with pytest.raises(ValueError, match=f"run {identity} was finished elsewhere meanwhile with another log"):
        store.finish(identity, [{**ROWS[0], "loss": 9.0}], SUMMARY)
    assert store.find(identity) == before


def test_a_run_is_not_finished_without_a_log(store):
    (identity,) = store.plan([CONFIG])
    store.write_metrics(identity, ROWS[:2])
    with pytest.raises(ValueError, match=f"run {identity} cannot be finished without a log"):
        store.finish(identity, [], {})
    assert len(store.find(identity).metrics) == 2


def test_rows_written_again_are_there_once(store):
    (identity,) = store.plan([CONFIG])
    for _ in range(3):
        store.write_metrics(identity, ROWS)
        store.write_diagnostics(identity, 20, {"entropy": 1.25})
    record = store.find(identity)
    assert list(record.metrics) == ROWS
    assert record.diagnostics == {"entropy": {20: 1.25}}


def test_metrics_keep_every_digit_and_diagnostics_seven(store):
    (identity,) = store.plan([CONFIG])
    store.write_metrics(identity, [{"step": 1, "loss": 0.1 + 0.2}])
    store.write_diagnostics(identity, 1, {"a": [2 / 3, float("nan"), float("inf"), 3, True, "x", {"b": (1e-9 / 3,)}]})
    record = store.find(identity)
    assert record.metrics[0]["loss"] == 0.1 + 0.2
    assert record.diagnostics["a"][1] == [0.6666667, None, None, 3, True, "x", {"b": [3.333333e-10]}]


def test_planning_again_changes_nothing(store):
    identity = finished(store)
    before = store.find(identity)
    store.plan([CONFIG, replace(CONFIG, seed=1)])
    store.begin(identity, code_version="later")
    store.fail(identity, "no")
    store.interrupt(identity)
    assert store.find(identity) == before
    assert store.status(replace(CONFIG, seed=1).identity) == "planned"


def test_failed_and_interrupted_runs_can_go_on(store):
    (identity,) = store.plan([CONFIG])
    store.begin(identity)
    store.fail(identity, "the disk is full")
    assert (store.find(identity).status, store.find(identity).error) == ("failed", "the disk is full")
    store.begin(identity)
    assert (store.find(identity).status, store.find(identity).error) == ("running", "")
    store.interrupt(identity, step=33)
    assert (store.find(identity).status, store.find(identity).step) == ("planned", 33)


def test_records_are_filtered_and_ordered(store):
    configs = [replace(CONFIG, seed=s, method=m) for s in (1, 0) for m in ("soft-mix", "iwp")]
    store.plan([*configs, replace(CONFIG, dataset="iris")])
    finished(store, configs[0])
    names = [(r.config.dataset, r.config.method, r.config.seed) for r in store.records()]
    assert names == [
        ("iris", "multilinear-covjac", 0),
        ("monks-1", "iwp", 0),
        ("monks-1", "iwp", 1),
        ("monks-1", "soft-mix", 0),
        ("monks-1", "soft-mix", 1),
    ]
    assert [r.identity for r in store.records(status="finished")] == [configs[0].identity]
    assert len(store.records(dataset="monks-1", method="iwp")) == 2
    assert store.records(status="finished")[0].metrics == ()
    assert list(store.records(status="finished", rows=True)[0].metrics) == ROWS
    assert store.find("000000000000") is None
    assert store.status("000000000000") is None


def test_taking_in_never_doubles_nor_overwrites(store):
    record = RunRecord(CONFIG.identity, CONFIG, "finished", SUMMARY, ROWS, {"entropy": {60: 1.0}}, 3.0, step=60)
    assert store.take(replace(record, status="running", metrics=ROWS[:1])) == "added"
    assert store.status(CONFIG.identity) == "planned"
    assert store.take(replace(record, status="planned")) == "skipped"
    assert store.take(record) == "added"
    kept = store.find(CONFIG.identity)
    more = replace(record, code_version="2", seconds=9.0, diagnostics={"entropy": {60: 5.0}, "census": {60: 2.0}})
    assert store.take(more) == "present"
    filled = store.find(CONFIG.identity)
    assert (filled.code_version, filled.seconds) == ("2", 3.0)
    assert filled.diagnostics == {"entropy": {60: 1.0}, "census": {60: 2.0}}
    other = [*ROWS[:2], ROWS[2] | {"loss": 0.5}]
    assert store.take(replace(record, metrics=other)) == "conflict"
    assert store.find(CONFIG.identity).metrics == kept.metrics


def test_rows_of_an_unplanned_run_are_refused(store):
    with pytest.raises(StoreError, match=r"run 123 is not in .*store\.sqlite; plan it first"):
        store.write_metrics("123", ROWS)


def test_the_file_is_in_wal_mode_and_every_commit_is_synced(store):
    assert store._connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert store._connection.execute("PRAGMA synchronous").fetchone() == (2,)
    store.check()


def test_a_reader_sees_what_a_writer_has_committed(store):
    with Store.open(store.folder, read_only=True) as reader:
        identity = finished(store)
        assert reader.find(identity) == store.find(identity)
        with pytest.raises(StoreError, match=r"cannot be written: its disk or folder is read-only"):
            reader.plan([replace(CONFIG, seed=5)])


WRITER = """
import sys
from pathlib import Path
from gatefit.experiments.store import Store
from gatefit.training.config import RunConfig
place, count = int(sys.argv[2]), int(sys.argv[3])
configs = [RunConfig(dataset="monks-1", width=40, depth=2, seed=seed) for seed in range(3)]
with Store.open(Path(sys.argv[1])) as store:
    common, *own = store.plan(configs)
    for step in range(1, count + 1):
        store.write_metrics(own[place], [{"step": step, "loss": step / 7}], seconds=1.0)
        store.write_metrics(common, [{"step": 2 * step + place, "loss": step / 9}], seconds=1.0)
"""


def test_two_processes_lose_and_double_nothing(tmp_path):
    count = 25
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path / "new"), str(place), str(count)])
        for place in range(2)
    ]
    assert [writer.wait(timeout=HANG) for writer in writers] == [0, 0]
    with Store.open(tmp_path / "new", read_only=True) as store:
        store.check()
        common, first, second = store.records(rows=True)
        assert [row["step"] for row in common.metrics] == list(range(2, 2 * count + 2))
        assert common.seconds == 2 * count
        for own in (first, second):
            assert list(own.metrics) == [{"step": step, "loss": step / 7} for step in range(1, count + 1)]
            assert own.seconds == count


def kill_writers(kills, folder=None):
    within = ["--within", folder] if folder and Path(folder).is_dir() else []
    command = [sys.executable, str(TESTS / "kill_store.py"), "--kills", str(kills), *within]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    words = done.stdout.split()
    assert int(words[0]) == kills
    assert int(words[3]) >= kills  # Most writers had acknowledged something when they were killed.


def test_a_hundred_killed_writers_lose_and_double_nothing():
    kill_writers(100, "/dev/shm")


@pytest.mark.slow
def test_a_thousand_killed_writers_lose_and_double_nothing():
    kill_writers(1000)


def test_a_store_that_is_not_there(tmp_path):
    for options in ({"read_only": True}, {"create": False}):
        with pytest.raises(StoreError, match=r"there is no store at .*nowhere: no store\.sqlite in it; name another"):
            Store.open(tmp_path / "nowhere", **options)
    assert not (tmp_path / "nowhere").exists()
    (tmp_path / "runs.csv").write_text("identity\n")
    with pytest.raises(StoreError, match=r"is an export, not a store; take it into one with `gatefit runs import"):
        Store.open(tmp_path, read_only=True)
    (tmp_path / "file").write_text("x")
    with pytest.raises(StoreError, match=r"file is a file; a store is a folder"):
        Store.open(tmp_path / "file")


@pytest.mark.parametrize("read_only", [False, True])
def test_a_store_of_a_newer_version(store, read_only):
    store._connection.execute("UPDATE meta SET value = '2'")
    with pytest.raises(StoreError, match=r"is a store of version 2, this gatefit reads version 1; install a newer"):
        Store.open(store.folder, read_only=read_only)
    store._connection.execute("UPDATE meta SET value = 'x'")
    with pytest.raises(StoreError, match=r"is damaged: its version is 'x'"):
        Store.open(store.folder, read_only=read_only)


@pytest.mark.parametrize("read_only", [False, True])
def test_a_file_that_is_no_store(tmp_path, read_only):
    (tmp_path / "store.sqlite").write_bytes(b"gone with the wind" * 100)
    with pytest.raises(StoreError, match=r"is not a gatefit store, or its first bytes are damaged"):
        Store.open(tmp_path, read_only=read_only)
    (tmp_path / "store.sqlite").unlink()
    other = sqlite3.connect(tmp_path / "store.sqlite")
    other.execute("CREATE TABLE songs (name TEXT)")
    other.close()
    with pytest.raises(StoreError, match=r"is not a gatefit store but another SQLite file"):
        Store.open(tmp_path, read_only=read_only)


def test_a_damaged_store(tmp_path):
    with Store.open(tmp_path) as store:
        store.plan([replace(CONFIG, seed=seed) for seed in range(100)])
        identity = finished(store)
    path = tmp_path / "store.sqlite"
    content = path.read_bytes()
    path.write_bytes(content[:8192] + b"\xff" * (len(content) - 8192))
    with pytest.raises(StoreError, match=r"store\.sqlite is damaged \(.*malformed.*\); keep it aside, and start a new"):
        Store.open(tmp_path).check()
    path.write_bytes(content)
    connection = sqlite3.connect(path)
    connection.execute("UPDATE runs SET config = '{\"flux\": 3}' WHERE identity = ?", (identity,))
    connection.commit()
    connection.close()
    with Store.open(tmp_path) as store, pytest.raises(StoreError, match=r"unknown configuration field 'flux'; install"):
        store.find(identity)


READ_ONLY = """
import json, os, sys
from pathlib import Path
from gatefit.experiments.store import Store, StoreError
from gatefit.training.config import RunConfig
if os.getuid() == 0:
    os.setuid(65534)  # Root may write anywhere.
folder, said = Path(sys.argv[1]), {}
with Store.open(folder, read_only=True) as store:
    said["runs"] = len(store.records(rows=True))
    said["rows"] = len(store.records(rows=True)[0].metrics)
    try:
        store.plan([RunConfig(dataset="iris", width=300)])
    except StoreError as error:
        said["plan"] = str(error)
for name, place in (("open", folder), ("make", folder / "new")):
    try:
        Store.open(place)
    except StoreError as error:
        said[name] = str(error)
print(json.dumps(said))
"""


@pytest.mark.parametrize("log", [False, True], ids=["closed", "killed-writer"])
def test_a_store_on_a_read_only_disk_is_read_and_not_written(log):
    # Not pytest's folder, which only its owner may enter.
    place = Path(tempfile.mkdtemp())
    try:
        store = Store.open(place / "store")
        finished(store)
        if log:  # A killed writer leaves rows in the log.
            shutil.copytree(place / "store", place / "copy")
        store.close()
        folder = place / ("copy" if log else "store")
        assert (folder / "store.sqlite-wal").exists() == log
        for path in folder.iterdir():
            path.chmod(0o444)
        folder.chmod(0o555)
        place.chmod(0o755)
        done = subprocess.run(
            [sys.executable, "-c", READ_ONLY, str(folder)], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        said = json.loads(done.stdout)
        assert (said["runs"], said["rows"]) == (1, 3)
        for name in ("plan", "open", "make"):
            assert "cannot be written: its disk or folder is read-only" in said[name]
            assert "copy the store to a place that can be written" in said[name]
    finally:
        for path in (place, *place.iterdir()):
            path.chmod(0o755)
        shutil.rmtree(place)


def test_a_full_disk_is_named(store):
    (identity,) = store.plan([CONFIG])
    pages = store._connection.execute("PRAGMA page_count").fetchone()[0]
    store._connection.execute(f"PRAGMA max_page_count = {pages + 2}")
    written = []

    def fill():
        for step in range(1, 1000):
            store.write_metrics(identity, [{"step": step, "text": "x" * 2000}])
            written.append(step)

    with pytest.raises(StoreError, match=r"is full; what was acknowledged is intact: free some space"):
        fill()
    store._connection.execute("PRAGMA max_page_count = 100000")
    assert [row["step"] for row in store.find(identity).metrics] == written
    store.check()


def test_a_writer_that_never_comes_to_its_turn(store):
    other = Store.open(store.folder)
    other._connection.execute("PRAGMA busy_timeout = 10")
    store._connection.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreError, match=r"was in use by another process for more than 60 s"):
        other.plan([CONFIG])
    store._connection.execute("ROLLBACK")
    other.close()


def test_the_default_place(monkeypatch):
    monkeypatch.delenv("GATEFIT_STORE", raising=False)
    assert default_store() == Path("gatefit-store")
    monkeypatch.setenv("GATEFIT_STORE", "elsewhere")
    assert default_store() == Path("elsewhere")


def test_the_machine_has_no_names_or_paths():
    facts = machine()
    assert tuple(facts) == FIELDS
    assert facts["cores"] >= 1
    assert facts["memory_gb"] > 0.1
    text = json.dumps(facts)
    assert os.uname().nodename not in text
    assert str(Path.home()) not in text
    assert code_version().startswith("0.")
