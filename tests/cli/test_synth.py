"""``gatefit synth``."""

import json
import re

import numpy as np
import pytest

from gatefit.circuit.ir import Circuit
from gatefit.circuit.readout import GroupSum, Linear
from gatefit.encoders import Threshold
from gatefit.hardware import tools
from tools import require_tool

pytestmark = pytest.mark.outside

NO_GATES = np.empty((2, 0), int)


@pytest.fixture
def tiny(tmp_path):
    """A circuit without encoder, names or data set."""
    path = tmp_path / "tiny.gate"
    Circuit(3, [6, 1], [[0, 3], [1, 2]], [3, 4], GroupSum([0, 1], [0, 1])).save(path)
    return path


def test_a_report_of_a_trained_model(gatefit, model, tmp_path):
    require_tool("yosys")
    require_tool("iverilog")
    out = tmp_path / "hardware"
    outcome = gatefit("synth", model, "--target", "lut4", "--pipeline", "0,2", "--out", out, "--samples", 30)
    assert outcome.code == 0, outcome
    assert "Verdict: agrees" in outcome.out
    assert "lut4, 2 stages: synthesise" in outcome.err
    report = json.loads((out / "report.json").read_text())
    assert report["vectors"] == {"count": 30, "source": "test set of monks-1"}
    assert 0.5 < report["accuracy"] <= 1
    assert [build["pipeline_stages"] for build in report["builds"]] == [0, 2]
    assert (out / "report.txt").read_text() in outcome.out
    assert (out / "report.html").read_text().startswith("<!doctype html>")


def test_a_model_without_encoder_names_or_data_is_simulated_on_random_bits(gatefit, tiny, tmp_path):
    require_tool("yosys")
    require_tool("iverilog")
    outcome = gatefit("synth", tiny, "--target", "lut6", "--pipeline", "0", "--out", tmp_path / "o", "--json")
    assert outcome.code == 0, outcome
    assert outcome.json["vectors"]["count"] == 200
    assert outcome.json["vectors"]["source"] == (
        f"random, because there is no data set: {tiny} does not say what it was trained on; "
        f"give samples with --vectors FILE.csv"
    )
    assert outcome.err == ""
    assert "accuracy" not in outcome.json


def test_vectors_from_a_file_and_raw_features(gatefit, refused, tmp_path):
    require_tool("yosys")
    require_tool("iverilog")
    encoder = Threshold(2.0).fit(np.zeros((1, 2)), feature_names=["a", "b"])
    path = tmp_path / "raw.gate"
    Circuit(2, [6], [[0], [1]], [2, 0], GroupSum([0, 1], [0, 0]), encoder=encoder).save(path)
    table = tmp_path / "data.csv"
    table.write_text("b,a\n0,1\n3,2\n7,7\n")
    command = ["synth", path, "--target", "lut4", "--pipeline", "0", "--inputs", "raw", "--vectors", table]
    outcome = gatefit(*command, "--feature-bits", 3, "--out", tmp_path / "o", "--json")
    assert outcome.code == 0, outcome
    assert outcome.json["inputs"] == "features of 3 bits"
    source = f"{table}; with values on both sides of every threshold"
    assert outcome.json["vectors"] == {"count": 3 + len([0, 2, 3, 7]), "source": source}
    assert outcome.json["builds"][0]["parts"]["encoder"]["tables"] > 0
    message = refused(*command, "--feature-bits", 2, "--out", tmp_path / "p")
    assert "raw inputs must be whole numbers from 0 to 3, but feature 'a' is 7" in message


def test_steps_that_time_out_are_kept_and_labelled(gatefit, tiny, tmp_path):
    require_tool("yosys")
    out = tmp_path / "o"
    outcome = gatefit("synth", tiny, "--target", "lut4", "--pipeline", "0", "--out", out, "--timeout", "0.1")
    report = json.loads((out / "report.json").read_text())
    found = {step["step"]: step["status"] for step in report["builds"][0]["steps"]}
    assert found["export"] == "done"
    if "timed out" in found.values():
        assert outcome.code == 1
        assert "Verdict: incomplete" in outcome.out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--target", "ice41"], "unknown target 'ice41'; did you mean ice40? choose one of ice40, ecp5, xilinx"),
        (["--device", "hx9k"], "unknown device 'hx9k'; did you mean hx8k? choose one of lp384, hx1k, up5k, hx8k"),
        (["--target", "lut4", "--device", "hx8k"], "--device hx8k is for ice40 and ecp5, got --target lut4"),
        (["--pipeline", "two"], "--pipeline takes numbers of stages or auto, with commas, got 'two'; e.g. 0,auto"),
        (["--pipeline", "50"], "pipeline_stages must be from 0 to 3 for this circuit"),
        (["--inputs", "ram"], "unknown --inputs 'ram'; did you mean raw? choose one of bits, raw"),
        (["--router", "router3"], "unknown --router 'router3'; did you mean router2? choose one of router1, router2"),
        (["--inputs", "raw"], "--inputs raw needs the circuit's encoder, and it was saved without one"),
    ],
)
def test_wrong_options_are_refused(refused, tiny, tmp_path, options, message):
    assert message in refused("synth", tiny, "--out", tmp_path / "o", *options)
    assert not (tmp_path / "o").exists()


def test_models_that_cannot_be_built_are_refused(refused, finished_run, tiny, tmp_path):
    linear = tmp_path / "linear.gate"
    Circuit(1, [], NO_GATES, [0], Linear([[1.0]], [0.0])).save(linear)
    assert "train with the group-sum readout" in refused("synth", linear, "--out", tmp_path / "o")
    message = refused("synth", finished_run, "--out", tmp_path / "o")
    assert message == f"{finished_run} holds no circuit yet; run: gatefit compile {finished_run}"
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    assert "exists; choose another --out" in refused("synth", tiny, "--out", tmp_path / "full")


def test_a_missing_synthesis_tool_is_named(refused, tiny, tmp_path, monkeypatch):
    def missing():
        raise tools.MissingToolError("yosys", "synthesis")

    monkeypatch.setattr("gatefit.hardware.flow.find_yosys", missing)
    message = refused("synth", tiny, "--out", tmp_path / "o")
    assert re.search(r"needs yosys, which is not installed; run: pip install 'gatefit\[hardware\]'", message)
