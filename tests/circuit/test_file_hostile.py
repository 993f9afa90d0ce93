"""Circuit files that are damaged or hostile: every one is refused, with one class of error and one clear message."""

import json
import os
import re
import struct
import time

import numpy as np
import pytest
import safetensors.numpy

from gatefit.circuit.file import CircuitFileError, digest, dumps, load, loads
from gatefit.circuit.ir import Circuit
from mutations import EXAMPLES, container, damaged_bytes, edited_content, edited_header, split, with_digest


def edit(change, fix_digest=True, of="group_sum"):
    """The example's file with its header, body or description changed by ``change(header, body, description)``."""
    header, body = split(dumps(EXAMPLES[of]))
    description = json.loads(header["__metadata__"]["circuit"])
    body = bytearray(body)
    change(header, body, description)
    header["__metadata__"]["circuit"] = json.dumps(description)
    return with_digest(header, bytes(body)) if fix_digest else container(header, bytes(body))


def put(**fields):
    return lambda header, body, description: description.update(fields)


def metadata(**fields):
    return lambda header, body, description: header["__metadata__"].update(fields)


def at(name, index, value, dtype="<i4"):
    def change(header, body, description):
        begin = header[name]["data_offsets"][0]
        size = np.dtype(dtype).itemsize
        body[begin + index * size : begin + (index + 1) * size] = np.array(value, dtype).tobytes()

    return change


def drop_tensor(name):
    return lambda header, body, description: header.pop(name)


def add_gap(header, body, description):
    last = max((name for name in header if name != "__metadata__"), key=lambda n: header[n]["data_offsets"][1])
    header[last]["data_offsets"] = [n + 4 for n in header[last]["data_offsets"]]
    body += b"0000"


def overlap(header, body, description):
    header["groups"]["data_offsets"] = header["outputs"]["data_offsets"]


REFUSED = [
    (b"", "the file has 0 bytes"),
    (b"1234567", "the file has 7 bytes"),
    (struct.pack("<Q", 2**40), "more than the limit of 100000000: not a circuit file"),
    (struct.pack("<Q", 100), "the header claims 100 bytes, but only 0 follow: truncated"),
    (struct.pack("<Q", 2) + b"\xff\xfe", "the header is not UTF-8 text"),
    (struct.pack("<Q", 2) + b" {", "the header does not start with '{'"),
    (struct.pack("<Q", 2) + b"{}", "the header needs a __metadata__ of strings"),
    (struct.pack("<Q", 2) + b"{]", "the header is not valid JSON"),
    (container("[" * 3000, b""), "the header does not start with '{'"),
    (container('{"a":' * 100_000, b""), "the header has more than 256 objects, lists and keys"),
    (container('{"a": [' + "1," * 1000 + "1]}", b""), "the header has more than 256 objects, lists and keys"),
    (container('{"a": "' + "{[:," * 1000 + 2 * "\\\\" + '"}', b""), "the header needs a __metadata__ of strings"),
    (container('{"a": "' + 2 * "\\\\" + '", ' + "[{}, " * 1000, b""), "the header has more than 256 objects"),
    (edit(put(metadata=[{}] * 2**20)), "the circuit's description has more than 1048576 objects, lists and keys"),
    (edit(put(readout={"kind": "group_sum", "temperature": 1e-320})), "cannot be divided by a temperature of 1e-320"),
    (edit(put(inputs=2**31 - 10)), "2147483638 inputs in "),
    (edit(put(inputs=2**20 + 1)), "1048577 inputs in "),
    (container('{"a": 1, "a": 1}', b""), "the header: the key 'a' appears twice"),
    (container('{"__metadata__": {"a": NaN}}', b""), "the header: NaN is not a finite number"),
    (container('{"__metadata__": {"a": 1e999}}', b""), "the header: 1e999 is not a finite number"),
    (container({"__metadata__": {"format": "pt"}}, b""), "the file's format is 'pt', not 'gatefit-circuit'"),
    (safetensors.numpy.save({"a": np.zeros(2, np.float32)}), "the header needs a __metadata__ of strings"),
    (edit(metadata(version="3")), "the file has format version 3, this gatefit reads up to version 2; install"),
    (edit(metadata(version="2")), "must have exactly the fields inputs, readout, input_names, class_names, encoder"),
    (edit(put(labels=None), of="labelled"), "labels must have exactly the fields dtype and values"),
    (edit(put(labels={"dtype": "float64", "values": [1.0]}), of="labelled"), "got 1 labels, the GroupSum readout"),
    (edit(put(labels={"dtype": "float64", "values": [1, True]}), of="labelled"), "must be a list of float"),
    (edit(put(labels={"dtype": "float32", "values": [0.1, 0.5]}), of="labelled"), "float32 cannot hold [0.1, 0.5]"),
    (edit(put(labels={"dtype": "int8", "values": [1, 200]}), of="labelled"), "dtype int8 cannot hold [1, 200]"),
    (edit(put(labels={"dtype": "uint8", "values": [1, -1]}), of="labelled"), "dtype uint8 cannot hold [1, -1]"),
    (edit(put(labels={"dtype": "str", "values": ["a", 1]}), of="labelled"), "dtype str must be a list of str"),
    (edit(put(labels={"dtype": "str", "values": ["a", "b\0"]}), of="labelled"), "labels of dtype str cannot hold"),
    (edit(put(labels={"dtype": "complex64", "values": [0, 1]}), of="labelled"), "the labels' dtype is 'complex64'"),
    (edit(put(labels={"dtype": "object", "values": [{}, {}]}), of="labelled"), "must be a list of str"),
    (edit(metadata(version="01")), "the file's version is '01', which is not a number"),
    (edit(metadata(version="0")), "the file's version is 0; versions start at 1"),
    (edit(metadata(version="²")), "which is not a number"),
    (edit(metadata(extra="x")), "the metadata must be format, version, digest and circuit"),
    (edit(lambda *_: None, fix_digest=False), "the content does not match its digest"),
    (edit(at("gates", 0, 7, "u1"), fix_digest=False), "the content does not match its digest"),
    (dumps(EXAMPLES["group_sum"]) + b"\0", "for them"),
    (edit(add_gap), "overlap or gap"),
    (edit(overlap), "overlap or gap"),
    (edit(drop_tensor("gates")), "bytes, the file has"),
    (edit(lambda h, b, d: h["gates"].update(dtype="F64")), "tensor 'gates' has dtype 'F64'"),
    (edit(lambda h, b, d: h["gates"].update(shape=[1, 1, 3])), "needed are one or two sizes"),
    (edit(lambda h, b, d: h["gates"].update(shape=[3.0])), "needed are one or two sizes"),
    (edit(lambda h, b, d: h["gates"].update(shape=[True])), "needed are one or two sizes"),
    (edit(lambda h, b, d: h["gates"].update(shape=[2**60])), "needed are one or two sizes"),
    (edit(lambda h, b, d: h["gates"].update(shape=[4])), "of shape [4] and dtype U8 cannot take 3 bytes"),
    (edit(lambda h, b, d: h["gates"].update(data_offsets=[-3, 0])), "needed are a begin and an end"),
    (edit(lambda h, b, d: h["gates"].update(more=1)), "needs exactly dtype, shape and data_offsets"),
    (edit(lambda h, b, d: h["operands"].update(shape=[6])), "tensor operands must be I32 with 2 dimensions"),
    (edit(lambda h, b, d: h["operands"].update(shape=[3, 2])), "a circuit needs gates (n,), operands (2, n)"),
    (edit(put(readout={"kind": "sum"})), "the readout's kind is 'sum'"),
    (edit(put(readout=[1])), "the readout's kind is None"),
    (edit(put(readout={"kind": "group_sum"})), "the readout must have exactly the fields kind, temperature"),
    (edit(put(readout={"kind": "linear"})), "a circuit with linear readout has tensors"),
    (edit(put(extra=1)), "the circuit's description must have exactly the fields inputs, readout"),
    (edit(put(inputs=0)), "a circuit needs at least one input"),
    (edit(put(inputs=3.0)), "inputs must be a whole number"),
    (edit(put(inputs=True)), "inputs must be a whole number"),
    (edit(put(input_names="abc")), "input_names must be a list"),
    (edit(put(input_names=["a"])), "got 1 input names for 3 inputs"),
    (edit(put(class_names=[1, 2])), "class_names must be a sequence of strings"),
    (edit(put(class_names=["\ud800", "b"])), "half of a surrogate pair"),
    (edit(put(metadata={"a": 1})), "metadata must map strings to strings"),
    (edit(put(metadata=[])), "metadata must be an object"),
    (edit(put(encoder={"kind": "pickle"})), "an encoder specification needs exactly the fields"),
    (edit(put(readout={"kind": "group_sum", "temperature": -1})), "temperature must be a finite number > 0"),
    (edit(put(readout={"kind": "group_sum", "temperature": "1"})), "temperature must be a number, got '1'"),
    (edit(put(readout={"kind": "group_sum", "temperature": 10**400})), "temperature is too large for a float"),
    (
        edit(put(readout={"kind": "affine", "offset": 0.5, "scale": 1, "intercept": 0}), of="affine"),
        "offset must be an",
    ),
    (edit(at("gates", 1, 16, "u1")), "gate numbers are 0 to 15"),
    (edit(at("operands", 1, 4)), "list gates in topological order"),
    (edit(at("operands", 0, -1)), "operands must be nodes from 0 to 2"),
    (edit(at("outputs", 0, 6)), "output 0 is node 6"),
    (edit(at("groups", 0, 2)), "GroupSum has 2 classes, got groups from 1 to 2"),
    (edit(at("offsets", 0, 2**62, "<i8")), "offsets must be below 2**62"),
    (edit(at("weights", 0, np.nan, "<f4"), of="linear"), "Linear needs finite weights and bias"),
    (edit(at("bias", 0, np.inf, "<f4"), of="linear"), "Linear needs finite weights and bias"),
]


@pytest.mark.parametrize(("data", "message"), REFUSED, ids=[message[:50] for _, message in REFUSED])
def test_bad_files_are_refused_with_one_clear_message(data, message, tmp_path):
    with pytest.raises(CircuitFileError, match=re.escape(message)):
        loads(data)
    path = tmp_path / "bad.gate"
    path.write_bytes(data)
    with pytest.raises(CircuitFileError, match=f"^{re.escape(str(path))}: .*{re.escape(message)}"):
        load(path)


def test_non_finite_thresholds_are_refused():
    text = dumps(EXAMPLES["encoded"]).decode("utf-8", "surrogateescape")
    for bad in ("NaN", "Infinity", "1e999"):
        header, body = split(dumps(EXAMPLES["encoded"]))
        description = json.loads(header["__metadata__"]["circuit"])
        threshold = json.dumps(description["encoder"]["state"]["thresholds"][0][0])
        assert threshold in text
        edited = header["__metadata__"]["circuit"].replace(threshold, bad, 1)
        header["__metadata__"]["circuit"] = edited
        with pytest.raises(CircuitFileError, match="is not a finite number"):
            loads(with_digest(header, body))


def test_a_description_that_is_nested_too_deeply_is_refused():
    header, body = split(dumps(EXAMPLES["group_sum"]))
    header["__metadata__"]["circuit"] = "[" * 100_000
    with pytest.raises(CircuitFileError, match="the circuit's description is nested too deeply"):
        loads(with_digest(header, body))


def test_a_repeated_key_in_the_description_is_refused():
    header, body = split(dumps(EXAMPLES["group_sum"]))
    text = header["__metadata__"]["circuit"]
    header["__metadata__"]["circuit"] = text[:-1] + ',"inputs":3}'
    with pytest.raises(CircuitFileError, match="the circuit's description: the key 'inputs' appears twice"):
        loads(with_digest(header, body))


def test_files_that_are_no_files_are_refused_at_once(tmp_path):
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "missing.gate")
    with pytest.raises(CircuitFileError, match="not a regular file"):
        load(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(CircuitFileError, match="not a regular file"):
        load(tmp_path / "pipe")


def test_a_large_claim_allocates_nothing(tmp_path):
    header, _ = split(dumps(EXAMPLES["group_sum"]))
    for name in ("gates", "operands", "outputs", "groups"):
        header[name]["shape"] = [2, 2**40] if name == "operands" else [2**41]
    start = time.perf_counter()
    with pytest.raises(CircuitFileError):
        loads(container(header, b""))
    assert time.perf_counter() - start < 1


def fuzz(rng, count):
    """Mutate small files; a file is refused with CircuitFileError, or it is a circuit and says what it said before."""
    originals = [(dumps(circuit), digest(circuit)) for circuit in EXAMPLES.values()]
    outcomes = {"refused": 0, "same": 0, "valid": 0}
    for number in range(count):
        data, identity = originals[number % len(originals)]
        kind = (damaged_bytes, edited_header, edited_content)[number % 3]
        mutated = kind(rng, data)
        start = time.perf_counter()
        try:
            circuit = loads(mutated)
        except CircuitFileError:
            outcomes["refused"] += 1
        else:
            assert isinstance(circuit, Circuit)
            if digest(circuit) == identity:
                outcomes["same"] += 1
            else:
                assert kind is edited_content, f"mutation {number} was silently accepted"
                assert dumps(loads(dumps(circuit))) == dumps(circuit)
                outcomes["valid"] += 1
        assert time.perf_counter() - start < 5, f"mutation {number} took too long"
    return outcomes


def test_20000_mutated_files():
    outcomes = fuzz(np.random.default_rng(99), 20_000)
    # The mutations must reach all three ends, or the test proves nothing.
    assert outcomes["refused"] > 12_000
    assert outcomes["valid"] > 200
    assert outcomes["same"] > 10


@pytest.mark.slow
def test_200000_mutated_files():
    fuzz(np.random.default_rng(12_345), 200_000)
