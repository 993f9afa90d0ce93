"""``gatefit export`` and ``gatefit demo``."""

import json
import shutil

import numpy as np
import pytest

from gatefit.backends.aiger import from_aiger, to_aiger
from gatefit.backends.blif import from_blif
from gatefit.backends.c import to_c
from gatefit.backends.dot import to_dot
from gatefit.backends.json_export import to_json
from gatefit.backends.verilog import to_verilog
from gatefit.circuit.ir import Circuit
from gatefit.circuit.lower_readout import lower_readout
from gatefit.circuit.prove import Equivalent, prove
from gatefit.circuit.readout import GroupSum
from gatefit.circuit.simulate import predict_classes, simulate
from gatefit.encoders import Threshold

FORMATS = ["c", "verilog", "blif", "aiger", "dot", "json"]
BITS = np.random.default_rng(0).random((300, 17)) < 0.5


def test_exports_are_what_the_backends_write(gatefit, model):
    circuit = Circuit.load(model)
    assert gatefit("export", model, "--to", "c").out == to_c(circuit)
    assert gatefit("export", model, "--to", "verilog").out == to_verilog(circuit)
    assert gatefit("export", model, "--to", "dot").out == to_dot(circuit)
    assert gatefit("export", model, "--to", "json").out == to_json(circuit)


def test_netlists_compute_the_circuit(gatefit, model, tmp_path):
    circuit = Circuit.load(model)
    expected = simulate(circuit, BITS)
    ascii_text = gatefit("export", model, "--to", "aiger").out
    assert ascii_text.startswith("aag ")
    assert np.array_equal(simulate(from_aiger(ascii_text, circuit), BITS), expected)
    assert gatefit("export", model, "--to", "aiger", "--out", tmp_path / "m.aig").code == 0
    assert (tmp_path / "m.aig").read_bytes() == to_aiger(circuit, binary=True)
    assert np.array_equal(simulate(from_blif(gatefit("export", model, "--to", "blif").out, circuit), BITS), expected)


@pytest.mark.parametrize("form", ["gates", "one-hot"])
def test_netlists_carry_the_whole_model_on_request(gatefit, refused, model, tmp_path, form):
    circuit = Circuit.load(model)
    lowered = lower_readout(circuit, one_hot=form == "one-hot")
    command = ["export", model, "--readout", form, "--to"]
    assert gatefit(*command, "aiger", "--out", tmp_path / "m.aig").code == 0
    expected = predict_classes(circuit, BITS)
    for back in (
        from_aiger((tmp_path / "m.aig").read_bytes(), lowered),
        from_blif(gatefit(*command, "blif").out, lowered),
    ):
        assert np.array_equal(predict_classes(back, BITS), expected)
        assert isinstance(prove(circuit, back), Equivalent)
    assert refused(*command, "c") == "--readout is for --to aiger or blif, got --to c; leave it out"


def test_names_of_modules(gatefit, model):
    assert "int monks_predict(" in gatefit("export", model, "--to", "c", "--name", "monks").out
    assert "module monks" in gatefit("export", model, "--to", "verilog", "--name", "monks").out
    assert ".model monks\n" in gatefit("export", model, "--to", "blif", "--name", "monks").out


def test_a_large_drawing_is_made_on_request_only(gatefit, refused, tmp_path):
    circuit = random_circuit(gates=501)
    circuit.save(tmp_path / "big.gate")
    command = ["export", tmp_path / "big.gate", "--to", "dot"]
    assert refused(*command) == (
        "a drawing of 501 gates cannot be read; optimise the circuit first, "
        "or draw it all the same with --max-gates 501"
    )
    assert gatefit(*command, "--max-gates", 501).out == to_dot(circuit, 501)


def random_circuit(gates):
    rng = np.random.default_rng(0)
    operands = np.stack([rng.integers(0, np.arange(4, 4 + gates)) for _ in range(2)])
    readout = GroupSum(np.array([0, 1]), np.zeros(2, dtype=int))
    return Circuit(4, rng.integers(0, 16, gates), operands, np.array([2 + gates, 3 + gates]), readout)


def test_a_linear_readout_stays_outside_verilog(gatefit, refused, small, tmp_path):
    gatefit("train", *small, "--readout", "linear", "--out", tmp_path / "run", "--quiet")
    gatefit("compile", tmp_path / "run", "--level", 0)
    command = ["export", tmp_path / "run" / "model.gate", "--to", "verilog"]
    assert "end the module at the gates' outputs with --no-readout" in refused(*command)
    circuit = Circuit.load(tmp_path / "run" / "model.gate")
    assert gatefit(*command, "--no-readout").out == to_verilog(circuit, readout=False)


def test_pipeline_adds_registers(gatefit, model):
    plain, piped = (gatefit("export", model, "--to", "verilog", *o).out for o in ([], ["--pipeline", 2]))
    assert "posedge" not in plain
    assert "posedge" in piped


@pytest.mark.parametrize("format", FORMATS)
def test_existing_output_is_refused_unless_told(gatefit, refused, model, tmp_path, format):
    out = tmp_path / "exported"
    assert gatefit("export", model, "--to", format, "--out", out).out.startswith(f"{out} (")
    first = out.read_bytes()
    assert "exists; choose another --out" in refused("export", model, "--to", format, "--out", out)
    assert gatefit("export", model, "--to", format, "--out", out, "--overwrite").code == 0
    assert out.read_bytes() == first
    assert [path.name for path in tmp_path.iterdir()] == ["exported"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--to", "vhdl"], "invalid value for '--to'"),
        (["--to", "c", "--pipeline", 2], "--pipeline is for --to verilog, got --to c; leave it out"),
        (["--to", "verilog", "--pipeline", 0], "invalid value for '--pipeline'"),
        (["--to", "dot", "--name", "x"], "--name is for --to c or verilog or blif, got --to dot; leave it out"),
        (["--to", "c", "--name", "int"], "'int' cannot name anything in C"),
        (["--to", "verilog", "--name", "a b"], "'a b' cannot name anything in Verilog"),
    ],
)
def test_bad_options(refused, model, options, message):
    assert message in refused("export", model, *options)


def test_demo_tells_the_whole_story_and_can_be_told_again(gatefit, tmp_path):
    out = tmp_path / "demo"
    for steps in (20, 30):
        outcome = gatefit("demo", "--out", out, "--steps", steps)
        assert outcome.code == 0
        text = outcome.out
        assert f"step {steps}/{steps}" in text
        assert "proof          equivalent" in text
        assert "same as in torch   359 of 359 predictions" in text
        assert "samples/s" in text
        if shutil.which("cc"):
            assert "compiled C gives the same class for 359 of 359 images" in text
        assert text.count("true for ") == 3
        assert "pixel(" in text
        assert sorted(path.name for path in out.iterdir()) == ["digits.gate", "digits.h", "digits.v", "run"]
    assert json.loads((out / "run" / "config.json").read_text())["steps"] == 30


def test_demo_deletes_nothing_of_others(refused, tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "thesis.tex").write_text("mine")
    assert refused("demo", "--out", tmp_path) == (
        f"{tmp_path / 'run'} is not from an earlier demo; choose another --out"
    )
    assert (tmp_path / "run" / "thesis.tex").read_text() == "mine"


def test_c_compares_doubles_on_request(gatefit, refused, tmp_path):
    path = tmp_path / "m.gate"
    encoder = Threshold(0.1).fit(np.zeros((1, 1)))
    circuit = Circuit(1, [], np.empty((2, 0), int), [0], GroupSum([0], [0]), encoder=encoder)
    circuit.save(path)
    text = gatefit("export", path, "--to", "c", "--feature-type", "double").out
    assert text == to_c(circuit, feature_type="double")
    assert "_predict_features(const double *v);" in text
    assert gatefit("export", path, "--to", "c").out == to_c(circuit)
    message = refused("export", path, "--to", "verilog", "--feature-type", "double")
    assert message == "--feature-type is for --to c, got --to verilog; leave it out"


def test_a_run_is_exported_by_its_folder(gatefit, refused, finished_run, model, tmp_path):
    message = refused("export", finished_run, "--to", "c")
    assert message == f"{finished_run} holds no circuit yet; run: gatefit compile {finished_run}"
    run = tmp_path / "run"
    shutil.copytree(finished_run, run)
    shutil.copy(model, run / "model.gate")
    assert gatefit("export", run, "--to", "c").out == to_c(Circuit.load(model))
    assert gatefit("export", run, "--to", "arduino", "--out", tmp_path / "sketch").code == 0
