"""Many runs into one store: each once, whatever is killed, however many processes, alone or side by side."""

import re
import sys
from dataclasses import replace

import pytest

from gatefit.datasets import DatasetError
from gatefit.experiments import worker
from gatefit.experiments.estimate import OVERHEAD, estimate, model_seconds, run_seconds
from gatefit.experiments.runner import plan_units, run_all
from gatefit.experiments.store import Store, StoreError
from gatefit.paper.baseline_cost import step_seconds
from gatefit.paper.outcome import Results
from gatefit.training.folder import read_made
from gatefit.training.loop import TrainingDivergedError
from runner_cases import BASE, LONG, facts

pytestmark = pytest.mark.outside

BUILD = "gatefit.paper.baselines:build_model"
NAMES = {"gradient_norms", "commitment", "entropy", "census", "distance", "survival", "coverage"}


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
        monkeypatch.setattr(worker, "execute_together", None)
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


def test_one_run_that_cannot_be_trained_does_not_stop_the_others(tmp_path, monkeypatch):
    loaded = []
    load = worker.load_dataset

    def absent(name, **options):
        loaded.append(name)
        if name == "cifar10":
            raise DatasetError("the files of cifar10 were not found\nlooked in:\n  nowhere")
        return load(name, **options)

    monkeypatch.setattr(worker, "load_dataset", absent)
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
        records = run_all(configs, store, threads=1, build=BUILD)
        again = run_all(configs, store, threads=1, build=BUILD)
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
    execute = worker.execute_together

    def diverges(configs, **options):
        if any(config.seed == 1 for config in configs):
            raise TrainingDivergedError("the loss is nan at step 9; lower learning_rate=0.01")
        return execute(configs, **options)

    monkeypatch.setattr(worker, "execute_together", diverges)
    with Store.open(tmp_path) as store:
        records = run_all(configs, store, diagnostics=False)
    assert [record.status for record in records] == ["finished", "failed", "finished"]
    assert records[1].error == "the loss is nan at step 9; lower learning_rate=0.01"


def test_a_baseline_is_a_run_like_any_other(tmp_path):
    config = replace(BASE, method="mlp", width=None, depth=2, learning_rate=0.001)
    assert config.resolved().width is None  # A width by default is that of a logic network.
    asked = iter(range(10_000))
    with Store.open(tmp_path / "a") as store:
        (stopped,) = run_all([config], store, should_stop=lambda: next(asked) > 30, build=BUILD)
        assert (stopped.status, len(stopped.metrics)) == ("planned", 1)
        before = read_made(store.run_folder(config.resolved().identity))["seconds"]
        (parts,) = run_all([config], store, build=BUILD)
        assert read_made(store.run_folder(config.resolved().identity))["seconds"] > before > 0
    with Store.open(tmp_path / "b") as store:
        (whole,) = run_all([config], store, threads=2, build=BUILD)
    assert facts(parts) == facts(whole)
    assert whole.summary["boolean"] is False
    assert whole.diagnostics == {}


def test_a_baseline_that_diverges_fails(tmp_path):
    config = replace(BASE, method="mlp", width=8, learning_rate=1e30)
    with Store.open(tmp_path) as store:
        (record,) = run_all([config], store, build=BUILD)
    assert record.status == "failed"
    assert re.match(r"the loss is (nan|inf) at step \d+; lower learning_rate=1e\+30", record.error)


def test_a_builder_that_cannot_be_imported_is_refused(tmp_path):
    with Store.open(tmp_path) as store, pytest.raises(ValueError, match=r'importable as "module:function", got'):
        run_all([BASE], store, build="gatefit.training.runs:build_tree")


@pytest.mark.parametrize("method", [pytest.param("cnn-3x3", marks=pytest.mark.slow), "cnn-2x2"])
def test_convolutions_run_on_images(tmp_path, method):
    config = replace(BASE, dataset="digits", method=method, width=None, steps=2, evaluate_every=1, depth=1)
    with Store.open(tmp_path) as store:
        (record,) = run_all([config], store, build=BUILD, jobs=2)
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
    assert model_seconds(wide) == step_seconds(wide) > 4 * step_seconds(replace(wide, depth=1))
    wide = replace(wide, evaluate_every=10**6)
    learned, first = (replace(wide, wiring=name) for name in ("learned", "learned,tree,tree,tree,tree,tree"))
    assert 2 < (step_seconds(learned) - OVERHEAD) / (step_seconds(wide) - OVERHEAD) < 2.2
    assert step_seconds(wide) < step_seconds(first) < step_seconds(learned) < step_seconds(replace(learned, rotate=8.0))
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
