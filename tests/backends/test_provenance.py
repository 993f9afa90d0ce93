"""Every export says which circuit it is of, and what is said is found again."""

from dataclasses import replace

import numpy as np
import pytest

import gatefit
from gatefit import Circuit
from gatefit.backends.aiger import to_aiger
from gatefit.backends.blif import to_blif
from gatefit.backends.c import to_c
from gatefit.backends.c.arduino import to_arduino
from gatefit.backends.dot import to_dot
from gatefit.backends.html import to_html
from gatefit.backends.json_export import to_json
from gatefit.backends.verilog import to_verilog
from gatefit.circuit.file import digest
from gatefit.circuit.provenance import origin_lines, read_origin, stamped, unmeasured
from gatefit.circuit.readout import GroupSum

WRITERS = {
    "c": to_c,
    "verilog": to_verilog,
    "blif": to_blif,
    "blif, readout": lambda circuit: to_blif(circuit, readout="gates"),
    "aag": to_aiger,
    "aig, readout": lambda circuit: to_aiger(circuit, binary=True, readout="one-hot"),
    "dot": to_dot,
    "html": to_html,
    "arduino header": lambda circuit: to_arduino(circuit, "m")["m_model.h"],
    "arduino readme": lambda circuit: to_arduino(circuit, "m")["README.md"],
}
SAID = {"gatefit": "0.0.9", "run": "0917d689645a", "data": "ab" * 32, "test_accuracy": "0.75", "date": "2030-01-31"}


@pytest.fixture
def circuit():
    return Circuit(2, [6], [[0], [1]], [2, 0], GroupSum([0, 1], [0, 0]), metadata={**SAID, "note": "not of this kind"})


@pytest.mark.parametrize("name", WRITERS)
def test_an_export_says_its_circuit_and_where_that_is_from(name, circuit):
    content = WRITERS[name](circuit)
    origin = read_origin(content if isinstance(content, bytes) else content.encode())
    assert origin.digest == digest(circuit)
    assert origin.version == gatefit.__version__
    assert origin.entries == SAID


@pytest.mark.parametrize("name", WRITERS)
def test_what_metadata_say_cannot_leave_the_comment(name, circuit):
    hostile = '*/ --> "> \n#include <x>\n.latch a b\nendmodule // é\u202e'
    content = WRITERS[name](replace(circuit, metadata={"run": hostile, "data": hostile}))
    text = content.decode("latin-1") if isinstance(content, bytes) else content
    line = next(line for line in text.splitlines() if "gatefit: run=" in line)
    assert "#include <x>" not in line
    assert "-->" not in line.replace("-->", "", name == "arduino readme")
    assert not any(line.startswith((".latch", "endmodule //", "#include <x>")) for line in text.splitlines())
    origin = read_origin(text.encode("latin-1", "replace") if isinstance(content, bytes) else text.encode())
    assert origin.entries == {"run": hostile, "data": hostile}


def test_other_circuits_have_other_digests(circuit):
    changed = replace(circuit, gates=np.array([9], np.uint8))
    assert read_origin(to_c(changed).encode()).digest != digest(circuit)
    assert to_c(circuit) == to_c(circuit)  # no clock in it


def test_a_circuit_that_cannot_be_saved_is_exported_all_the_same(circuit):
    unnamable = replace(circuit, input_names=("a\ud800", "b"))
    assert origin_lines(unnamable) == []
    assert read_origin(to_c(unnamable).encode()) is None


@pytest.mark.parametrize("content", [b"", b"gatefit 0.1: circuit sha256:12", b"circuit sha256:" + b"0" * 64])
def test_what_says_nothing_is_no_export(content):
    assert read_origin(content) is None


def test_a_date_is_there_only_if_asked_for(circuit):
    plain = replace(circuit, metadata={})
    assert "date" not in stamped(plain, {"run": "x"}).metadata
    dated = stamped(plain, {}, dated=True).metadata["date"]
    assert len(dated) == 10
    assert dated.count("-") == 2


def test_a_changed_circuit_says_no_accuracy(circuit):
    assert unmeasured(circuit.metadata).keys() == circuit.metadata.keys() - {"test_accuracy"}


def test_json_is_the_circuit(circuit, tmp_path):
    assert read_origin(to_json(circuit).encode()) is None  # its content is the digest's
