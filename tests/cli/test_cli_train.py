"""``gatefit train``, ``evaluate``, ``info`` and ``datasets`` on a small run."""

import json
import re
from pathlib import Path

import pytest

from gatefit.training.config import RunConfig


def test_train_reports_every_evaluation_and_a_summary(gatefit, small, tmp_path):
    outcome = gatefit("train", *small, "--out", tmp_path / "run")
    assert outcome.code == 0
    lines = outcome.out.splitlines()
    assert [line.split()[1] for line in lines[:3]] == ["20/60", "40/60", "60/60"]
    assert re.fullmatch(
        r"step 20/60  loss 0\.\d{4}  train \d+\.\d\d %  test \d+\.\d\d %  [\d.]+ steps/s  .* left", lines[0]
    )
    names = [re.split(r"  +", line)[0] for line in lines[3:]]
    assert names == [
        "test accuracy",
        "last 10 evaluations",
        "best evaluation",
        "train accuracy",
        "discretisation gap, test",
        "discretisation gap, train",
        "generalisation gap",
        "gates",
        "inputs read",
        "readout temperature",
        "wall time",
        "folder",
    ]
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == [
        "checkpoints",
        "config.json",
        "lock",
        "made.json",
        "metrics.jsonl",
        "model.safetensors",
        "result.json",
    ]


def test_train_json_is_one_object_with_the_figures_of_the_log(gatefit, small, tmp_path):
    content = gatefit("train", *small, "--out", tmp_path / "run", "--json").json
    rows = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert content["finished"] is True
    assert content["step"] == 60
    assert content["results"]["test_accuracy"] == rows[-1]["test_hard"]
    assert content["network"]["gates"] == 68
    assert content["network"]["coverage"] == 1.0
    assert content["network"]["readout_temperature"] == pytest.approx(0.36 * 17**0.5)
    assert RunConfig(**content["config"]) == RunConfig(
        dataset="monks-1", width=34, depth=2, steps=60, evaluate_every=20
    )


def test_a_temperature_that_is_searched_for_is_shown_with_what_was_tried(gatefit, small, tmp_path):
    options = (*small, "--readout-temperature", "search", "--steps", "20", "--out", tmp_path / "run")
    outcome = gatefit("train", *options)
    assert outcome.code == 0
    searching = [line for line in outcome.out.splitlines() if line.startswith("searching the readout temperature: ")]
    assert 3 <= len(searching) <= 7
    (row,) = [line for line in outcome.out.splitlines() if line.startswith("readout temperature")]
    assert "(searched, tried " in row
    content = gatefit("train", *options, "--json").json  # of the finished run
    search = content["temperature_search"]
    assert search == json.loads((tmp_path / "run" / "temperature.json").read_text())
    assert content["config"]["readout_temperature"] == "search"
    assert content["network"]["readout_temperature"] == search["temperature"]
    number = gatefit("train", *small, "--readout-temperature", "2.5", "--out", tmp_path / "number", "--json").json
    assert number["config"]["readout_temperature"] == 2.5


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--shift", "1"], "monks-1 has no images to move by shift; leave shift out"),
        (["--threshold-rule", "quantile"], "monks-1 has no option threshold_rule; its options are: none"),
        (["--readout-temperature", "hot"], "readout_temperature must be 'search', a number or None, got 'hot'"),
        (["--readout-temperature", "0"], "readout_temperature must be a finite number > 0, got 0.0"),
    ],
)
def test_options_that_do_not_fit_the_data_are_one_line(gatefit, small, tmp_path, options, message):
    outcome = gatefit("train", *small, *options, "--out", tmp_path / "run")
    assert outcome.code != 0
    assert outcome.err == f"error: {message}\n"
    assert not (tmp_path / "run").exists()


def test_options_reach_the_configuration(gatefit, small, tmp_path):
    options = [
        "--seed",
        "3",
        "--learning-rate",
        "0.02",
        "--learnable-temperature",
        "--readout",
        "linear",
        "--schedule",
        "cosine",
    ]
    config = gatefit("train", *small, *options, "--out", tmp_path / "run", "--json").json["config"]
    assert (config["seed"], config["learning_rate"], config["learnable_temperature"]) == (3, 0.02, True)
    assert (config["readout"], config["schedule"]) == ("linear", "cosine")


def test_default_folder_and_width_come_from_the_configuration(gatefit, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    content = gatefit("train", "--dataset", "monks-1", "--depth", 1, "--steps", 2, "--json").json
    assert content["config"]["width"] == 136
    assert content["folder"] == f"runs/monks-1-multilinear-covjac-{RunConfig(**content['config']).identity}"
    assert Path(content["folder"], "result.json").exists()


def test_quiet_says_nothing(gatefit, small, tmp_path):
    outcome = gatefit("train", *small, "--out", tmp_path / "run", "--quiet")
    assert (outcome.code, outcome.out, outcome.err) == (0, "", "")


def test_a_finished_run_is_shown_not_trained(gatefit, small, finished_run):
    before = (finished_run / "model.safetensors").stat().st_mtime_ns
    outcome = gatefit("train", *small, "--out", finished_run)
    assert outcome.out.startswith(f"{finished_run} is finished already:\ntest accuracy ")
    assert (finished_run / "model.safetensors").stat().st_mtime_ns == before
    again = gatefit("train", "--resume", finished_run, "--json").json
    assert again["results"] == gatefit("info", finished_run, "--json").json["results"]


def test_method_without_gates_says_so(gatefit, small, tmp_path):
    outcome = gatefit("train", *small, "--method", "multilinear-free", "--out", tmp_path / "run")
    assert "(soft: this method has no gates to deploy)" in outcome.out


def test_validation_is_called_validation(gatefit, small, tmp_path):
    outcome = gatefit("train", *small, "--validation-fraction", 0.2, "--out", tmp_path / "run")
    assert "validation accuracy" in outcome.out
    assert "validation accuracy" in gatefit("train", "--resume", tmp_path / "run").out
    assert gatefit("info", tmp_path / "run").code == 0


def test_a_finished_run_goes_on_to_more_steps(gatefit, small, tmp_path):
    assert gatefit("train", *small, "--out", tmp_path / "run").code == 0
    outcome = gatefit("train", "--resume", tmp_path / "run", "--steps", 100)
    assert outcome.code == 0
    assert "resumed at step 60 of 100" in outcome.out
    longer = [*small, "--steps", 100]
    assert gatefit("train", *longer, "--out", tmp_path / "whole", "--quiet").code == 0
    for name in ("config.json", "metrics.jsonl", "model.safetensors", "result.json"):
        assert (tmp_path / "run" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    again = gatefit("train", *longer, "--out", tmp_path / "run")
    assert "is finished already" in again.out
    refused = gatefit("train", "--resume", tmp_path / "run", "--steps", 80)
    assert refused.code == 2
    assert "steps: 100 there, 80 here" in refused.err
    assert gatefit("train", "--resume", tmp_path / "run", "--steps", 0).code == 2


def test_stopping_early_needs_a_validation_set(gatefit, small, tmp_path):
    outcome = gatefit("train", *small, "--patience", 2, "--out", tmp_path / "run")
    assert outcome.code == 2
    assert "patience=2 needs a validation set" in outcome.err
    assert "Traceback" not in outcome.err
    assert not (tmp_path / "run").exists()


def test_tensorboard_writes_curves(gatefit, small, tmp_path):
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    assert gatefit("train", *small, "--tensorboard", "--out", tmp_path / "run", "--quiet").code == 0
    events = EventAccumulator(str(tmp_path / "run" / "tensorboard"))
    events.Reload()
    assert [event.step for event in events.Scalars("test_hard")] == [20, 40, 60]
    assert len(events.Scalars("loss")) == 60


def test_evaluate_gives_what_training_measured(gatefit, finished_run):
    content = gatefit("evaluate", finished_run, "--json").json
    last = json.loads((finished_run / "metrics.jsonl").read_text().splitlines()[-1])
    for split in ("train", "test"):
        measured = [last[f"{split}_{key}"] for key in ("hard", "soft", "discretisation_gap")]
        assert [content[split][key] for key in ("hard", "soft", "discretisation_gap")] == measured
    assert content["generalisation_gap"] == last["generalisation_gap"]
    assert (content["train"]["samples"], content["test"]["samples"]) == (124, 432)


def test_evaluate_one_split(gatefit, finished_run):
    outcome = gatefit("evaluate", finished_run, "--split", "test")
    assert "432" in outcome.out
    assert "124" not in outcome.out
    assert "generalisation" not in outcome.out


def test_evaluate_of_a_circuit_is_the_hard_accuracy_of_its_run(gatefit, finished_run, model):
    run, circuit = (gatefit("evaluate", path, "--json").json for path in (finished_run, model))
    assert circuit["dataset"] == "monks-1"
    for split in ("train", "test"):
        assert circuit[split]["hard"] == run[split]["hard"]
    other = gatefit("evaluate", model, "--dataset", "monks-2", "--split", "test", "--json").json
    assert other["dataset"] == "monks-2"
    assert other["test"]["hard"] != circuit["test"]["hard"]


def test_info_of_a_run(gatefit, finished_run):
    text = gatefit("info", finished_run).out
    assert "finished, step 60 of 60" in text
    assert re.search(r"^  method +multilinear-covjac$", text, re.MULTILINE)
    content = gatefit("info", finished_run, "--json").json
    assert [row["step"] for row in content["metrics"]] == [20, 40, 60]
    assert content["checkpoints"] == [40, 60]


def test_datasets_lists_sizes_and_places(gatefit, monkeypatch):
    monkeypatch.delenv("GATEFIT_DATA", raising=False)
    rows = {row["name"]: row for row in gatefit("datasets", "--json").json["datasets"]}
    assert (rows["monks-1"]["train"], rows["monks-1"]["test"], rows["monks-1"]["bits"]) == (124, 432, 17)
    assert rows["monks-1"]["found"].endswith("embedded")
    assert rows["digits"]["found"] == "scikit-learn"
    text = gatefit("datasets").out
    assert [name for name in rows if name not in text] == []


def test_datasets_shows_where_files_are_looked_for(gatefit, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("GATEFIT_DATA", raising=False)
    text = gatefit("datasets", "mnist", "--data-dir", tmp_path).out
    assert "not here; downloaded when first used" in text
    assert f"{tmp_path} (data_dir)" in text
    (tmp_path / "iris").mkdir()
    (tmp_path / "iris" / "iris.data").write_text("not read here")
    assert gatefit("datasets", "iris", "--data-dir", tmp_path, "--json").json["found"] == str(tmp_path / "iris")


@pytest.mark.filterwarnings("default")
def test_warnings_are_one_line(gatefit, tmp_path):
    options = ["--dataset", "monks-1", "--width", "4", "--depth", "1", "--steps", "1", "--quiet"]
    outcome = gatefit("train", *options, "--out", tmp_path / "run")
    assert outcome.code == 0
    assert outcome.err.startswith("warning: 4 gates read at most 8 of 17 inputs")
    assert outcome.err.count("\n") == 1
