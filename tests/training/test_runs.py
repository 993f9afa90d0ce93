"""Run folders: resumed, locked, refused when they belong to another configuration."""

import itertools
import json
import subprocess
import sys
from dataclasses import replace

import pytest
import torch

from gatefit.datasets import load_dataset
from gatefit.training.checkpoint import CheckpointError
from gatefit.training.config import RunConfig
from gatefit.training.folder import RunFolderError, default_folder, locked, read_config, read_made, read_metrics
from gatefit.training.loop import Observer
from gatefit.training.machine import code_version, machine, same_bits_on
from gatefit.training.metrics import evaluate
from gatefit.training.runs import (
    build_network,
    execute,
    load_network,
    own_kernels_alone,
    save_network,
    training_data,
)

CONFIG = RunConfig(dataset="monks-1", width=40, depth=2, steps=60, evaluate_every=20)


class Never(Observer):
    def stepped(self, state, network, loss):
        raise AssertionError("a finished run must not train again")


def test_a_run_leaves_everything_in_its_folder(tmp_path):
    run = execute(CONFIG, folder=tmp_path / "run")
    names = {path.name for path in (tmp_path / "run").iterdir()}
    assert names == {
        "config.json",
        "metrics.jsonl",
        "checkpoints",
        "model.safetensors",
        "result.json",
        "made.json",
        "lock",
    }
    assert read_config(tmp_path / "run") == CONFIG
    assert [row["step"] for row in read_metrics(tmp_path / "run")] == [20, 40, 60]
    result = json.loads((tmp_path / "run" / "result.json").read_text())
    assert result["last_10_accuracy"] == run.result.summary["last_10_accuracy"]
    network = load_network(tmp_path / "run" / "model.safetensors")
    dataset = load_dataset("monks-1")
    bits = torch.from_numpy(network.encoder.transform(dataset.x_test))
    accuracy = float((network(bits).argmax(1).numpy() == dataset.y_test).mean())
    assert accuracy == result["test_accuracy"]


@pytest.mark.parametrize("method", ["multilinear-ste", "multilinear-free"])
def test_whole_batches_are_the_first_samples_and_change_nothing_else(tmp_path, method):
    config = replace(CONFIG, method=method, batch_size=100)
    plain = execute(config, folder=tmp_path / "plain")
    whole = execute(replace(config, whole_batches=True), folder=tmp_path / "whole")
    rows = [dict(row) for row in read_metrics(tmp_path / "whole")]
    accuracies = [row.pop("test_accuracy_whole_batches") for row in rows]
    assert rows == read_metrics(tmp_path / "plain")
    assert "test_accuracy_whole_batches" not in plain.result.state.metrics[-1]
    dataset = load_dataset("monks-1")
    bits = torch.from_numpy(whole.network.encoder.transform(dataset.x_test))
    scores = whole.network.soft_scores(bits) if method.endswith("free") else whole.network(bits)
    right = scores.argmax(1).numpy() == dataset.y_test
    assert (len(right), accuracies[-1]) == (432, right[:400].mean())
    assert accuracies[-1] != right.mean()


def test_whole_batches_of_a_set_smaller_than_one_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"needs at least a batch to evaluate, got 432 samples and batch_size=512; "):
        execute(replace(CONFIG, batch_size=512, whole_batches=True), folder=tmp_path / "run")


def test_a_finished_run_is_read_back_not_repeated(tmp_path):
    first = execute(CONFIG, folder=tmp_path)
    again = execute(CONFIG, folder=tmp_path, observers=[Never()])
    assert again.result.state.metrics == first.result.state.metrics
    assert all(torch.equal(v, again.network.state_dict()[k]) for k, v in first.network.state_dict().items())


@pytest.mark.parametrize(("kept", "words"), [(0, "is empty or missing"), (1, "ends at step")])
def test_a_finished_run_without_its_whole_log_is_not_read_back(tmp_path, kept, words):
    execute(CONFIG, folder=tmp_path)
    log = tmp_path / "metrics.jsonl"
    lines = log.read_text().splitlines(keepends=True)
    log.write_text("".join(lines[:kept]))
    with pytest.raises(RunFolderError, match=f"but its metrics.jsonl {words}.*delete result.json to go on"):
        execute(CONFIG, folder=tmp_path)
    (tmp_path / "result.json").unlink()
    assert execute(CONFIG, folder=tmp_path).result.finished
    assert log.read_text() == "".join(lines)


def test_an_interrupted_run_goes_on(tmp_path):
    calls = iter([False] * 30 + [True])
    first = execute(CONFIG, folder=tmp_path / "a", should_stop=lambda: next(calls))
    assert not first.result.finished
    assert not (tmp_path / "a" / "result.json").exists()
    execute(CONFIG, folder=tmp_path / "a")
    execute(CONFIG, folder=tmp_path / "b")
    for name in ("metrics.jsonl", "model.safetensors", "result.json"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_the_folder_says_what_made_the_run_and_its_seconds_add_up(tmp_path, monkeypatch):
    clock, busy = itertools.count(), itertools.count(0, 2)
    clocks = {"seconds": lambda: float(next(clock)), "processor_seconds": lambda: float(next(busy))}
    monkeypatch.setattr("gatefit.training.runs.CLOCKS", clocks)
    calls = iter([False] * 30 + [True])
    execute(CONFIG, folder=tmp_path, should_stop=lambda: next(calls), threads=2)
    first = read_made(tmp_path)
    assert first["threads"] == 2
    assert first["code_version"] == code_version()
    assert first["machine"] == machine()
    assert json.loads((tmp_path / "made.json").read_text())["same_bits_on"] == same_bits_on(True)
    assert first["seconds"] == 3  # Noted at the start, the evaluation of step 20 and the stop: a second each.
    execute(CONFIG, folder=tmp_path)
    assert (read_made(tmp_path)["seconds"], read_made(tmp_path)["processor_seconds"]) == (7, 14)
    execute(CONFIG, folder=tmp_path)
    assert read_made(tmp_path)["seconds"] == 7


def test_matrix_products_have_the_same_bits_on_the_same_processor_only():
    vectors = torch.backends.cpu.get_cpu_capability()
    assert (same_bits_on(True) == "x86-64 with AVX2") == (vectors in ("AVX2", "AVX512"))
    assert machine()["cpu"] in same_bits_on(False)
    dataset = load_dataset("monks-1")
    assert own_kernels_alone(build_network(CONFIG, dataset))
    for change in ({"readout": "linear"}, {"method": "iwp-free"}, {"learnable_temperature": True}):
        assert not own_kernels_alone(build_network(replace(CONFIG, **change), dataset))
    assert not own_kernels_alone(torch.nn.Linear(2, 2))


@pytest.mark.parametrize("content", [None, "{", "[]", '{"seconds": "long"}'])
def test_seconds_that_were_not_noted_are_not_made_up(tmp_path, content):
    calls = iter([False] * 30 + [True])
    execute(CONFIG, folder=tmp_path, should_stop=lambda: next(calls))
    if content is None:
        (tmp_path / "made.json").unlink()
    else:
        (tmp_path / "made.json").write_text(content)
    assert read_made(tmp_path) == {}
    assert execute(CONFIG, folder=tmp_path).result.finished
    assert set(read_made(tmp_path)) == {"code_version", "machine", "threads"}


def test_another_configuration_is_refused(tmp_path):
    execute(CONFIG, folder=tmp_path)
    with pytest.raises(RunFolderError, match=r"another configuration \(seed: 0 there, 4 here\); use another --out"):
        execute(replace(CONFIG, seed=4), folder=tmp_path)


def test_a_folder_in_use_is_refused(tmp_path):
    code = "import sys; from gatefit.training.folder import locked\nfrom pathlib import Path\n"
    code += "with locked(Path(sys.argv[1])): print('held', flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(RunFolderError, match=r"is in use by another process; wait for it"), locked(tmp_path):
            pass
        holder.communicate("")
    with locked(tmp_path):
        pass


def test_validation_split_is_taken_from_the_training_set(tmp_path):
    run = execute(replace(CONFIG, validation_fraction=0.25), folder=tmp_path)
    assert run.result.finished
    with pytest.raises(ValueError, match=r"validation_fraction=0.0001 of 124 samples is none"):
        execute(replace(CONFIG, validation_fraction=0.0001), folder=tmp_path / "other")


def test_a_run_ended_by_patience_is_read_back_as_it_ended(tmp_path):
    config = replace(CONFIG, validation_fraction=0.25, patience=2, steps=2000, seed=3)
    run = execute(config, folder=tmp_path)
    again = execute(config, folder=tmp_path, observers=[Never()])
    result = json.loads((tmp_path / "result.json").read_text())
    assert again.result.state.step == run.result.state.step == result["steps"] < 2000
    assert again.result.summary == run.result.summary
    data = training_data(config, load_dataset("monks-1"))
    kept = evaluate(load_network(tmp_path / "model.safetensors"), data.test, data.test_targets)
    assert result["validation_accuracy"] == kept["hard"] != read_metrics(tmp_path)[-1]["test_hard"]
    assert "test_accuracy" not in result


def test_default_folder_names_data_set_method_and_identity():
    assert default_folder(CONFIG).as_posix() == f"runs/monks-1-multilinear-covjac-{CONFIG.identity}"


def test_missing_and_damaged_files_are_named(tmp_path):
    with pytest.raises(RunFolderError, match=r"holds no run: there is no config.json"):
        read_config(tmp_path)
    with pytest.raises(CheckpointError, match=r"there is no trained network at"):
        load_network(tmp_path / "model.safetensors")
    run = execute(CONFIG, folder=tmp_path / "run")
    path = tmp_path / "run" / "model.safetensors"
    save_network(run.network, path)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(CheckpointError, match=r"is damaged or not a safetensors file"):
        load_network(path)
    (tmp_path / "run" / "config.json").write_text('{"widht": 3}')
    with pytest.raises(RunFolderError, match=r"config.json is damaged: unknown configuration field 'widht'"):
        read_config(tmp_path / "run")


def test_unknown_data_set_and_width_are_refused_before_anything_is_written(tmp_path):
    with pytest.raises(ValueError, match="unknown data set"):
        execute(replace(CONFIG, dataset="mnits"), folder=tmp_path / "a")
    with pytest.raises(ValueError, match=r"a multiple of 2 classes, got 41; use width=40 or 42"):
        execute(replace(CONFIG, width=41), folder=tmp_path / "b")
    assert not (tmp_path / "a").exists()
    assert not (tmp_path / "b").exists()
