"""Many runs into one store: each once, whatever is killed, however many processes, alone or side by side."""

import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from gatefit.datasets import DatasetError
from gatefit.experiments import crew, work
from gatefit.experiments.estimate import estimate, run_seconds, step_seconds
from gatefit.experiments.outcome import Results, RunRecord
from gatefit.experiments.runner import plan_units, run_all
from gatefit.experiments.store import Store, StoreError
from gatefit.training.config import RunConfig
from gatefit.training.folder import checkpoints, locked, read_metrics
from gatefit.training.loop import TrainingDivergedError

BASE = RunConfig(dataset="monks-1", width=40, depth=2, steps=60, evaluate_every=20)
LONG = replace(BASE, steps=200, seed=7)
"""A run that is killed in the middle; its evaluations take most of its time."""
NAMES = {"gradient_norms", "commitment", "entropy", "census", "distance", "survival", "coverage"}


def facts(record: RunRecord) -> tuple:
    """What must not depend on how a run was made."""
    return record.identity, record.status, record.step, record.summary, record.metrics, record.diagnostics


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> RunRecord:
    """The long run, undisturbed."""
    with Store.open(tmp_path_factory.mktemp("whole")) as store:
        (record,) = run_all([LONG], store, threads=1)
        return record


def test_a_finished_run_has_rows_diagnostics_and_facts(whole):
    assert whole.status == "finished"
    assert [row["step"] for row in whole.metrics] == list(range(20, 201, 20))
    assert set(whole.diagnostics) == NAMES
    assert {tuple(by_step) for by_step in whole.diagnostics.values()} == {tuple(range(0, 201, 20))}
    assert whole.summary["steps"] == 200
    assert whole.seconds > 0
    assert whole.machine["python"] == sys.version.split()[0]
    assert whole.code_version.startswith("0.")
    assert len(whole.data_digest) == 64
    assert whole.started
    assert whole.finished


def test_seeds_side_by_side_are_what_they_are_alone(tmp_path):
    configs = [replace(BASE, seed=s, wiring_seed=s % 2, method=m) for m in ("gumbel-st", "iwp") for s in range(3)]
    events = []
    with Store.open(tmp_path / "together") as store:
        assert [len(unit) for unit in plan_units(configs, store)] == [3, 3]
        together = run_all(configs, store, progress=events.append)
        folders = [store.run_folder(config.identity) for config in configs]
    with Store.open(tmp_path / "alone") as store:
        alone = run_all(reversed(configs), store, side_by_side=False, threads=2)
        for config, folder in zip(configs, folders, strict=True):
            for name in ("config.json", "metrics.jsonl", "model.safetensors", "result.json"):
                assert (store.run_folder(config.identity) / name).read_bytes() == (folder / name).read_bytes()
    assert [facts(record) for record in together] == [facts(record) for record in reversed(alone)]
    assert {record.status for record in together} == {"finished"}
    kinds = [event.kind for event in events if event.identity == configs[0].identity]
    assert kinds == ["started", "evaluated", "evaluated", "evaluated", "finished"]


def test_what_is_finished_is_not_repeated(tmp_path, monkeypatch):
    with Store.open(tmp_path) as store:
        first = run_all([BASE], store, diagnostics=False)
        monkeypatch.setattr(work, "execute", None)
        assert run_all([BASE, BASE, replace(BASE, seed=0)], store) == first
        assert first[0].diagnostics == {}


def test_what_is_finished_in_its_folder_alone_is_read_back(tmp_path):
    with Store.open(tmp_path / "a") as store:
        (whole,) = run_all([BASE], store)
        kept = store.run_folder(BASE.identity)
    with Store.open(tmp_path / "b") as store:
        store.run_folder(BASE.identity).parent.mkdir()
        kept.rename(store.run_folder(BASE.identity))
        (record,) = run_all([BASE], store)
    assert (record.status, record.metrics, record.summary) == ("finished", whole.metrics, whole.summary)
    assert {name: {60: by_step[60]} for name, by_step in whole.diagnostics.items()} == record.diagnostics
    assert record.seconds is None


def test_a_stopped_run_goes_on_to_the_same_rows(tmp_path, whole):
    asked = iter(range(10_000))
    with Store.open(tmp_path) as store:
        (stopped,) = run_all([LONG], store, should_stop=lambda: next(asked) > 70)
        assert (stopped.status, stopped.summary) == ("planned", {})
        assert 60 < stopped.step < 80
        before = stopped.seconds
        (record,) = run_all([LONG], store)
    assert facts(record) == facts(whole)
    assert record.seconds > before


RUNNER = """
import sys
from pathlib import Path
from gatefit.experiments.runner import run_all
from gatefit.experiments.store import Store
from gatefit.training.config import RunConfig
if __name__ == "__main__":
    configs = [RunConfig.from_dict(eval(text)) for text in sys.argv[3:]]
    with Store.open(Path(sys.argv[1])) as store:
        run_all(configs, store, jobs=int(sys.argv[2]), threads=1, progress=lambda e: print(e.identity, e.kind, e.step,
                flush=True))
"""


def start(folder: Path, jobs: int, *configs: RunConfig) -> "subprocess.Popen[str]":
    texts = [repr({f: getattr(config, f) for f in config.__dataclass_fields__}) for config in configs]
    command = [sys.executable, "-c", RUNNER, str(folder), str(jobs), *texts]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def until(process: "subprocess.Popen[str]", kind: str, step: int) -> None:
    for line in process.stdout:
        _, said, at = line.split()
        if said == kind and int(at) >= step:
            return
    raise AssertionError(f"the runner ended before {kind} {step}")


def test_a_killed_run_goes_on_to_the_same_rows(tmp_path, whole):
    with start(tmp_path, 1, LONG) as process:
        until(process, "evaluated", 80)
        os.kill(process.pid, signal.SIGKILL)
    with Store.open(tmp_path) as store:
        store.check()
        record = store.find(LONG.identity)
        assert record.status == "running"
        assert 4 <= len(record.metrics) < 10
        assert record.metrics == whole.metrics[: len(record.metrics)]
        events = []
        (record,) = run_all([LONG], store, progress=events.append)
        assert events[0].kind == "started"
        assert events[0].step >= 60
        assert read_metrics(store.run_folder(LONG.identity)) == list(whole.metrics)
    assert facts(record) == facts(whole)


def test_two_runners_share_the_work(tmp_path):
    configs = [replace(BASE, seed=s, readout="linear") for s in range(4)]
    runners = [start(tmp_path, 1, *configs) for _ in range(2)]
    lines = []
    for process in runners:
        out, _ = process.communicate(timeout=120)
        assert process.returncode == 0
        lines += out.splitlines()
    for config in configs:
        assert lines.count(f"{config.identity} started 0") == 1
        assert lines.count(f"{config.identity} evaluated 60") == 1
    with Store.open(tmp_path) as store:
        store.check()
        records = store.records(rows=True)
    assert [(record.status, len(record.metrics)) for record in records] == [("finished", 3)] * 4


def test_a_killed_worker_is_reported_and_the_others_go_on(tmp_path, monkeypatch, whole):
    others = [replace(BASE, seed=s, method="iwp-ste") for s in range(2)]
    workers = {}
    give = crew._Hand.give

    def spy(hand, unit):
        workers.update({config.identity: hand.process.pid for config in unit})
        give(hand, unit)

    monkeypatch.setattr(crew._Hand, "give", spy)

    def kill(event):
        if event.identity == LONG.identity and event.kind == "evaluated" and event.step == 80:
            os.kill(workers[LONG.identity], signal.SIGKILL)

    with Store.open(tmp_path) as store:
        killed, *rest = run_all([LONG, *others], store, jobs=2, threads=2, progress=kill)
        assert killed.status == "failed"
        assert killed.error == (
            "its process was killed by SIGKILL; it goes on from its last checkpoint when it is run again"
        )
        assert len(killed.metrics) >= 4
        assert [record.status for record in rest] == ["finished", "finished"]
        # Here, in one process and side by side: the same rows as in workers.
        (record, *_) = run_all([LONG, *others], store)
        assert (facts(record), record.error) == (facts(whole), "")
    with Store.open(tmp_path / "here") as store:
        assert [facts(each) for each in run_all(others, store)] == [facts(each) for each in rest]


def test_workers_that_die_at_once_leave_nothing_open_and_say_why(tmp_path):
    configs = [replace(BASE, seed=seed) for seed in range(12)]
    held, events = [], []

    def tell(event):
        events.append(event)
        held.append(psutil.Process().num_fds())

    with Store.open(tmp_path) as store:
        store.plan(configs)
        store.fail(configs[0].identity, "the download failed")  # earlier, and no longer the reason
        team = crew.Crew(store, 2, data_dir=None)
        team._command = [sys.executable, "-c", "raise SystemExit('no memory')"]
        team.work([[config] for config in configs], tell=tell)
        reasons = {store.find(config.identity).error for config in configs}
    text = "its process ended with exit code 1 (no memory); it goes on from its last checkpoint when it is run again"
    assert reasons == {text}
    assert [(event.kind, event.text) for event in events] == [("failed", text)] * len(configs)
    assert max(held) < min(held) + 12  # three a worker that is alive


def test_workers_that_are_told_to_end_save_and_leave(tmp_path, whole):
    """A batch system ends a job with SIGTERM to every process of it."""

    def end(event):
        if event.kind == "evaluated" and event.step == 80:
            for worker in psutil.Process().children():
                worker.terminate()

    with Store.open(tmp_path) as store:
        (stopped,) = run_all([LONG], store, jobs=2, threads=1, progress=end)
        assert (stopped.status, stopped.error) == ("planned", "")
        assert 80 <= stopped.step < 200
        (record,) = run_all([LONG], store)
    assert facts(record) == facts(whole)


@pytest.mark.slow
def test_workers_of_a_killed_runner_save_and_leave(tmp_path):
    endless = replace(BASE, steps=1_000_000, evaluate_every=50, seed=9)
    with start(tmp_path, 2, endless) as process:
        until(process, "evaluated", 50)
        os.kill(process.pid, signal.SIGKILL)
    with Store.open(tmp_path) as store:
        folder = store.run_folder(endless.identity)
        left = time.monotonic() + 60
        while time.monotonic() < left:
            try:
                with locked(folder):
                    break
            except ValueError:
                time.sleep(0.05)
        else:
            pytest.fail("a worker whose runner was killed goes on working")
        deadline = time.monotonic() + 20
        while store.status(endless.identity) != "planned" and time.monotonic() < deadline:
            time.sleep(0.05)
        record = store.find(endless.identity)
        assert record.status == "planned"
        assert checkpoints(folder / "checkpoints")[-1].name == f"checkpoint-{record.step:09d}.safetensors"


def test_one_run_that_cannot_be_trained_does_not_stop_the_others(tmp_path, monkeypatch):
    loaded = []
    load = work.load_dataset

    def absent(name, **options):
        loaded.append(name)
        if name == "cifar10":
            raise DatasetError("the files of cifar10 were not found\nlooked in:\n  nowhere")
        return load(name, **options)

    monkeypatch.setattr(work, "load_dataset", absent)
    configs = [
        replace(BASE, dataset="cifar10", width=100),
        replace(BASE, dataset="cifar10", width=200),
        replace(BASE, width=41),
        replace(BASE, method="multilinear-kan"),
        replace(BASE, method="cnn-3x3"),
        replace(BASE, method="mlp", wiring="random"),
        replace(BASE, method="mlp", width=16, learning_rate=0.001),
        BASE,
    ]
    with Store.open(tmp_path) as store:
        records = run_all(configs, store, threads=1)
        again = run_all(configs, store, threads=1)
        assert estimate(configs, store) == 0
    assert [record.status for record in records] == ["failed"] * 6 + ["finished"] * 2
    assert records[0].error.startswith("the files of cifar10 were not found")
    assert "a multiple of 2 classes, got 41" in records[2].error
    assert "unknown method 'multilinear-kan'" in records[3].error
    assert records[4].error == "cnn-3x3 reads images, and monks-1 has none; use mlp"
    assert records[5].error.startswith("mlp has no option wiring; it takes dataset, method, width")
    assert [facts(record) for record in again] == [facts(record) for record in records]
    assert loaded.count("cifar10") == 2  # Once a call: a download that fails is not waited for again.


def test_a_diverging_seed_does_not_take_the_others_with_it(tmp_path, monkeypatch):
    configs = [replace(BASE, seed=s) for s in range(3)]
    execute = work.execute

    def together(*_, **__):
        raise TrainingDivergedError("the loss of seed 1 is nan at step 9")

    def alone(config, **options):
        if config.seed == 1:
            raise TrainingDivergedError("the loss is nan at step 9; lower learning_rate=0.01")
        return execute(config, **options)

    monkeypatch.setattr(work, "execute_side_by_side", together)
    monkeypatch.setattr(work, "execute", alone)
    with Store.open(tmp_path) as store:
        records = run_all(configs, store, diagnostics=False)
    assert [record.status for record in records] == ["finished", "failed", "finished"]
    assert records[1].error == "the loss is nan at step 9; lower learning_rate=0.01"


def test_a_baseline_is_a_run_like_any_other(tmp_path):
    config = replace(BASE, method="mlp", width=None, depth=2, learning_rate=0.001)
    assert config.resolved().width == 128
    assert replace(config, method="cnn-2x2", width=64).resolved().width is None
    asked = iter(range(10_000))
    with Store.open(tmp_path / "a") as store:
        (stopped,) = run_all([config], store, should_stop=lambda: next(asked) > 30)
        assert (stopped.status, len(stopped.metrics)) == ("planned", 1)
        (parts,) = run_all([config], store)
    with Store.open(tmp_path / "b") as store:
        (whole,) = run_all([config], store, threads=2)
    assert facts(parts) == facts(whole)
    assert whole.summary["boolean"] is False
    assert whole.diagnostics == {}


def test_a_baseline_that_diverges_fails(tmp_path):
    config = replace(BASE, method="mlp", width=8, learning_rate=1e30)
    with Store.open(tmp_path) as store:
        (record,) = run_all([config], store)
    assert record.status == "failed"
    assert re.match(r"the loss is (nan|inf) at step \d+; lower the learning rate", record.error)


@pytest.mark.parametrize("method", ["cnn-3x3", "cnn-2x2"])
def test_convolutions_run_on_images(tmp_path, method):
    config = replace(BASE, dataset="digits", method=method, steps=2, evaluate_every=1, depth=1, batch_size=16)
    with Store.open(tmp_path) as store:
        (record,) = run_all([config], store)
    assert (record.status, record.error, len(record.metrics)) == ("finished", "", 2)


def test_large_networks_and_single_positions_are_not_put_together(tmp_path):
    with Store.open(tmp_path) as store:
        big = [replace(BASE, width=5000, seed=s) for s in range(2)]
        small = [replace(BASE, seed=s) for s in range(20)]
        shared = [replace(BASE, seed=s, learnable_temperature=True) for s in range(2)]
        apart = [replace(BASE, seed=s, validation_fraction=0.2) for s in range(2)]
        sizes = [len(unit) for unit in plan_units([*big, *small, *shared, *apart], store)]
        assert sizes == [1, 1, 16, 4, 1, 1, 1, 1]
        assert [len(unit) for unit in plan_units(small[:6], store, jobs=2)] == [3, 3]
        assert [len(unit) for unit in plan_units(small[:2], store, jobs=4)] == [2]
        assert len(plan_units(small, store, side_by_side=False)) == 20
        (store.run_folder(small[1].identity) / "checkpoints").mkdir(parents=True)
        (store.run_folder(small[1].identity) / "checkpoints" / "checkpoint-000000020.safetensors").touch()
        assert [len(unit) for unit in plan_units(small[:4], store)] == [3, 1]


def test_the_time_left_is_measured_where_it_can_be(tmp_path):
    long = replace(BASE, steps=1000, method="soft-mix")
    with Store.open(tmp_path) as store:
        guessed = estimate([long], store)
        assert 0.5 < guessed < 60
        assert estimate([long], None, jobs=2) == guessed / 2
        (identity,) = store.plan([replace(long, width=80)])
        rows = [{"step": 1000, "loss": 0.0}]
        store.write_metrics(identity, rows, seconds=500.0)
        store.finish(identity, rows, {})
        assert run_seconds([replace(long, width=80)], store) == {identity: 0.0}
        # Half a second a step of 160 gates was measured; 80 gates take a little less, another method the same ratio.
        assert 250 < estimate([long], store) < 500
        assert 100 < estimate([replace(long, method="iwp-ste")], store) < 500
        (half,) = store.plan([replace(long, width=80, seed=1)])
        store.write_metrics(half, [{"step": 500, "loss": 0.0}])
        assert estimate([replace(long, width=80, seed=1)], store) == pytest.approx(250)
    wide, deep = replace(BASE, dataset="mnist", width=8000, depth=6), replace(BASE, dataset="mnist", method="mlp")
    assert step_seconds(wide) > 4 * step_seconds(replace(wide, depth=1))
    assert step_seconds(replace(deep, method="cnn-3x3")) > step_seconds(deep) > 0


def test_results_find_what_was_run(tmp_path):
    with Store.open(tmp_path) as store:
        run_all([BASE], store, diagnostics=False)
        results = Results(store.find, scale="tiny")
        assert results.get(BASE).config == BASE
        assert results.get(replace(BASE, seed=1)) is None
        assert results.missing == (replace(BASE, seed=1),)


def test_bad_input_is_refused(tmp_path):
    with Store.open(tmp_path) as store, pytest.raises(ValueError, match=r"jobs must be a whole number >= 1, got 0"):
        run_all([BASE], store, jobs=0)
    with Store.open(tmp_path, read_only=True) as store, pytest.raises(StoreError, match=r"cannot be written"):
        run_all([BASE], store)
