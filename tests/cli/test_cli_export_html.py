"""``gatefit export --to html``."""

import json
import re

import numpy as np
import pytest

from gatefit.backends.html import to_html
from gatefit.circuit.ir import Circuit
from gatefit.circuit.readout import GroupSum


def page_model(text):
    return json.loads(re.search(r'id="model">(.*?)</script>', text, re.DOTALL)[1])


def test_the_page_is_what_the_backend_writes(gatefit, model, tmp_path):
    circuit = Circuit.load(model)
    assert gatefit("export", model, "--to", "html").out == to_html(circuit, title="MONK's problem 1")
    out = tmp_path / "page.html"
    assert gatefit("export", model, "--to", "html", "--title", "Monks", "--out", out).out.startswith(f"{out} (")
    assert out.read_text() == to_html(circuit, title="Monks")


def test_samples_come_from_the_test_set(gatefit, model):
    content = page_model(gatefit("export", model, "--to", "html", "--samples", 3).out)
    assert sorted(content["samples"]["labels"]) == ["0"] * 3 + ["1"] * 3
    assert all(len(row) == 6 for row in content["samples"]["rows"])


def test_the_view_can_be_chosen(gatefit, model):
    kinds = {
        view: page_model(gatefit("export", model, "--to", "html", "--view", view).out)["input"]["kind"]
        for view in ("auto", "table", "bits")
    }
    assert kinds == {"auto": "table", "table": "table", "bits": "bits"}


def test_bits_of_samples_for_a_circuit_without_encoder(gatefit, model, tmp_path):
    circuit = Circuit.load(model)
    bare = Circuit(circuit.inputs, circuit.gates, circuit.operands, circuit.outputs, circuit.readout)
    bare.save(tmp_path / "bare.gate")
    command = ["export", tmp_path / "bare.gate", "--to", "html", "--samples", 1, "--dataset", "monks-1"]
    content = page_model(gatefit(*command).out)
    assert content["input"] == {"kind": "bits"}
    assert content["notes"][0].startswith("The circuit was saved without its encoder")


def test_proofs_of_samples(gatefit, model):
    content = page_model(gatefit("export", model, "--to", "html", "--samples", 1, "--why", 600).out)
    assert content["proofs"]["seconds"] == 600
    assert len(content["proofs"]["samples"]) == len(content["samples"]["labels"]) == 2
    for proof in content["proofs"]["samples"]:
        assert set(proof) == {"answer", "robust", "nearest", "reason"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--to", "c", "--title", "x"], "--title is for --to html, got --to c; leave it out"),
        (["--to", "c", "--samples", 2], "--samples is for --to html, got --to c; leave it out"),
        (["--to", "html", "--dataset", "iris"], "--dataset and --data-dir are for --samples; give it too"),
        (["--to", "html", "--samples", 1, "--dataset", "digits"], "digits has 10 classes, "),
        (["--to", "html", "--samples", 1, "--dataset", "digit"], "unknown data set 'digit'; did you mean 'digits'?"),
        (["--to", "html", "--samples", 0], "invalid value for '--samples'"),
        (["--to", "html", "--view", "image"], "the 17 features are not the unnamed pixels of a square"),
        (["--to", "html", "--why", 5], "--why proves something about each sample of the page; put some in"),
        (["--to", "html", "--samples", 1, "--why", 0], "seconds that the proofs of one sample may take, > 0, got 0"),
        (["--to", "html", "--samples", 1, "--why", 5, "--tolerance", 1], "tolerance is for regressions"),
        (["--to", "html", "--samples", 1, "--tolerance", 1], "ask for them with why=seconds"),
        (["--to", "c", "--why", 5], "--why is for --to html, got --to c; leave it out"),
        (["--to", "html", "--name", "x"], "--name is for --to c or verilog or blif, got --to html"),
    ],
)
def test_bad_options(refused, model, options, message):
    assert message in refused("export", model, *options)


def test_samples_need_a_data_set(refused, tmp_path):
    circuit = Circuit(2, [6], np.array([[0], [1]]), [2], GroupSum([0], [0, 0]))
    circuit.save(tmp_path / "xor.gate")
    message = refused("export", tmp_path / "xor.gate", "--to", "html", "--samples", 1)
    assert message.endswith("does not say what it was trained on; name a data set with --dataset")
