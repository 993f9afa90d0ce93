"""Circuit files: exact round trips, atomic writes, the documented layout."""

import json
import os
import re
import struct
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import safetensors
import safetensors.numpy
from hypothesis import given, settings

from gatefit.circuit import file as circuit_file
from gatefit.circuit.file import digest, dumps, load, loads, save
from gatefit.circuit.ir import Circuit
from gatefit.circuit.simulate import scores
from gatefit.encoders import Table
from gatefit.gates import Gate
from mutations import EXAMPLES, content_digest, split
from strategies import all_patterns, build_circuit, circuits, layered_circuit, random_circuit

by_example = pytest.mark.parametrize("circuit", EXAMPLES.values(), ids=EXAMPLES)


@by_example
def test_round_trip_is_exact(circuit, tmp_path):
    save(circuit, tmp_path / "c.gate")
    loaded = load(tmp_path / "c.gate")
    assert digest(loaded) == digest(circuit)
    assert dumps(loaded) == dumps(circuit) == (tmp_path / "c.gate").read_bytes()
    for name in ("inputs", "input_names", "class_names", "metadata", "encoder"):
        assert getattr(loaded, name) == getattr(circuit, name), name
    bits = all_patterns(circuit.inputs)
    assert scores(loaded, bits).tobytes() == scores(circuit, bits).tobytes()


@given(circuits())
@settings(max_examples=80)
def test_round_trip_of_any_circuit(circuit):
    loaded = loads(dumps(circuit))
    assert dumps(loaded) == dumps(circuit)
    bits = all_patterns(circuit.inputs)
    assert scores(loaded, bits).tobytes() == scores(circuit, bits).tobytes()


def test_a_mixed_table_predicts_after_loading(tmp_path):
    x = {"age": [31.0, None, 57.5, 40.25], "job": ["a", "b", "a", "c"], "member": [True, False, True, True]}
    encoder = Table().fit(x)
    circuit = replace(layered_circuit(np.random.default_rng(0), encoder.bits, 10, 2, classes=2), encoder=encoder)
    circuit.save(tmp_path / "t.gate")
    assert np.array_equal(Circuit.load(tmp_path / "t.gate").scores(x), circuit.scores(x))


@by_example
def test_the_safetensors_library_reads_our_files(circuit, tmp_path):
    save(circuit, tmp_path / "c.gate")
    tensors = safetensors.numpy.load_file(tmp_path / "c.gate")
    assert np.array_equal(tensors["gates"], circuit.gates)
    assert np.array_equal(tensors["operands"], circuit.operands)
    assert np.array_equal(tensors["outputs"], circuit.outputs)
    with safetensors.safe_open(tmp_path / "c.gate", framework="numpy") as file:
        assert file.metadata()["format"] == "gatefit-circuit"


@by_example
def test_files_that_the_safetensors_library_wrote_are_read(circuit, tmp_path):
    save(circuit, tmp_path / "c.gate")
    with safetensors.safe_open(tmp_path / "c.gate", framework="numpy") as file:
        metadata = file.metadata()
    safetensors.numpy.save_file(safetensors.numpy.load_file(tmp_path / "c.gate"), tmp_path / "d.gate", metadata)
    assert digest(load(tmp_path / "d.gate")) == digest(circuit)


@by_example
def test_the_layout_is_the_documented_one(circuit):
    data = dumps(circuit)
    length = struct.unpack("<Q", data[:8])[0]
    assert length % 8 == 0
    header, body = split(data)
    assert next(iter(header)) == "__metadata__"
    position = 0
    for name in list(header)[1:]:
        begin, end = header[name]["data_offsets"]
        assert begin == position
        position = end
    assert position == len(body)
    metadata = header["__metadata__"]
    assert metadata["version"] == ("1" if circuit.labels is None else "2")
    assert metadata["digest"] == digest(circuit) == content_digest(metadata["circuit"], header, body)


def test_the_documented_example_is_true():
    page = (Path(__file__).parents[2] / "docs" / "file-format.md").read_text(encoding="utf-8")
    data = dumps(build_circuit(2, [(Gate.AND, 0, 1)], [2]))
    header, body = split(data)
    shown = re.search(r"```\n(\{.*?\})\n```", page, re.DOTALL)
    assert json.loads(shown[1].replace("\n ", "")) == header
    listed = page[shown.end() :]
    assert bytes.fromhex(" ".join(re.findall(r"`((?:[0-9a-f]{2} ?)+)`", listed))) == body


def test_saving_replaces_atomically(tmp_path, monkeypatch):
    path = tmp_path / "c.gate"
    save(EXAMPLES["group_sum"], path)
    before = path.read_bytes()

    def fail(_):
        raise OSError("disk full")

    monkeypatch.setattr(circuit_file.os, "fsync", fail)
    with pytest.raises(OSError, match="disk full"):
        save(EXAMPLES["affine"], path)
    monkeypatch.undo()
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["c.gate"]  # nothing half-written is left
    save(EXAMPLES["affine"], path)
    assert path.read_bytes() == dumps(EXAMPLES["affine"])


def test_data_and_name_are_synced(tmp_path, monkeypatch):
    synced = []
    real = os.fsync
    monkeypatch.setattr(circuit_file.os, "fsync", lambda fd: (synced.append(os.fstat(fd).st_mode), real(fd))[1])
    save(EXAMPLES["group_sum"], tmp_path / "c.gate")
    assert [mode & 0o170000 for mode in synced] == [0o100000, 0o040000]  # the file, then its folder


def test_half_surrogates_cannot_be_saved():
    with pytest.raises(ValueError, match="half of a surrogate pair; replace it"):
        dumps(replace(EXAMPLES["group_sum"], metadata={"a": "\ud800"}))


def test_a_million_gates_are_saved_and_loaded_in_a_second(tmp_path):
    circuit = layered_circuit(np.random.default_rng(0), 784, 170_000, 6)
    start = time.perf_counter()
    save(circuit, tmp_path / "m.gate")
    assert Path(tmp_path / "m.gate").stat().st_size < 11 * circuit.gates.size
    loaded = load(tmp_path / "m.gate")
    assert time.perf_counter() - start < 5
    assert digest(loaded) == digest(circuit)


def test_random_circuits_have_different_digests():
    rng = np.random.default_rng(0)
    digests = {digest(random_circuit(rng, max_inputs=5, max_gates=30)) for _ in range(200)}
    assert len(digests) > 195
