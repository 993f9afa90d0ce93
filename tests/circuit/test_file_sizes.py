"""What a file costs is bounded by what it weighs: a small file cannot ask for gigabytes or minutes."""

import json
import os
import struct
import subprocess
import sys
import textwrap

import numpy as np
import pytest

from gatefit.backends.json_export import from_json, to_json
from gatefit.circuit.container import FREE_INPUTS
from gatefit.circuit.file import CircuitFileError, dumps, loads
from gatefit.circuit.ir import Circuit
from gatefit.circuit.readout import GroupSum
from mutations import split, with_digest

pytestmark = pytest.mark.outside

resource = pytest.importorskip("resource")

MEMORY = 2 * 2**30
"""Bytes of address space, of which an interpreter with numba takes one half before it does anything."""
EXPORTS = ("c", "verilog", "blif", "aiger", "dot", "json", "html", "arduino")
VERBS = {
    "info": ["info", "{model}"],
    "predict": ["predict", "{model}", "{csv}"],
    **{f"export {to}": ["export", "{model}", "--to", to, "--out", "{out}"] for to in EXPORTS},
}


def sparse(inputs):
    """A circuit of two gates that reads the first and the last of so many inputs."""
    return Circuit(inputs, [1, 6], [[0, inputs - 1], [1, 2]], [inputs, inputs + 1], GroupSum([0, 1], [0, 0]))


def file_with(inputs):
    """The sparse circuit's file, written by somebody who does not ask gatefit whether it may."""
    header, body = split(dumps(sparse(1000)))
    description = json.loads(header["__metadata__"]["circuit"])
    header["__metadata__"]["circuit"] = json.dumps({**description, "inputs": inputs})
    for name, values in (("operands", [0, inputs - 1, 1, 2]), ("outputs", [inputs, inputs + 1])):
        begin, end = header[name]["data_offsets"]
        body = body[:begin] + np.array(values, "<i4").tobytes() + body[end:]
    return with_digest(header, body)


def limited(code, *arguments):
    """The output of a program that may not have more than MEMORY."""
    prelude = f"import resource\nresource.setrlimit(resource.RLIMIT_AS, ({MEMORY}, {MEMORY}))\n"
    result = subprocess.run(
        [sys.executable, "-c", prelude + textwrap.dedent(code), *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
        timeout=600,
    )
    assert result.returncode == 0, result.stderr[-2000:]
    return result.stdout


RUN_VERBS = """
import json, sys, time
from typer.testing import CliRunner
from gatefit.cli import app
for name, arguments in json.loads(sys.argv[1]).items():
    start = time.process_time()
    result = CliRunner().invoke(app, arguments)
    if not isinstance(result.exception, SystemExit | None):
        raise result.exception
    spent = time.process_time() - start
    print(json.dumps([name, result.exit_code, result.stderr, spent]))
"""


def run_verbs(model, folder):
    (folder / "rows.csv").write_text("a,b\n0,1\n")
    fills = {"model": model, "csv": folder / "rows.csv"}
    verbs = {
        name: [word.format(**fills, out=folder / name.replace(" ", "_")) for word in words]
        for name, words in VERBS.items()
    }
    lines = limited(RUN_VERBS, json.dumps(verbs)).splitlines()
    return {name: (code, error, seconds) for name, code, error, seconds in map(json.loads, lines)}


def test_inputs_that_a_small_file_only_claims_are_refused_by_every_verb(tmp_path):
    model = tmp_path / "m.gate"
    model.write_bytes(file_with(2**31 - 3))
    assert model.stat().st_size < 1000
    for name, (code, error, seconds) in run_verbs(model, tmp_path).items():
        assert code == 2, name
        assert error.startswith(f"error: {model}: 2147483645 inputs in "), name
        assert error.endswith("bytes: name them, or leave out those that nothing reads\n"), name
        assert seconds < 10, name


def test_as_many_inputs_as_any_file_may_have_are_served_in_bounded_memory(tmp_path):
    model = tmp_path / "m.gate"
    model.write_bytes(file_with(FREE_INPUTS))
    refused = {"predict": "rows.csv has 2 columns, the circuit needs 1048576", "export arduino": "65535 input bits"}
    for name, (code, error, seconds) in run_verbs(model, tmp_path).items():
        assert (code, error) == (0, "") if name not in refused else refused[name] in error, (name, error)
        assert seconds < 60, name
    code = """
    import sys
    import numpy as np
    from gatefit.circuit.ir import Circuit
    circuit = Circuit.load(sys.argv[1])
    x = np.zeros((100, circuit.inputs), bool)
    x[50:, [0, 1, 2]] = True
    print(circuit.scores(x)[[0, 99]].tolist())
    """
    assert limited(code, model) == "[[0, 0], [1, 1]]\n"


HEADERS = {
    "objects in the header": b'{"a":[' + b"{}," * 8_000_000 + b"{}]}",
    "keys in the header": b"{" + b",".join(b'"%d":0' % i for i in range(2_000_000)) + b"}",
    "objects in the description": b'{"__metadata__":{"format":"gatefit-circuit","version":"1","digest":"","circuit":"['
    + b"{}," * 8_000_000
    + b'{}]"}}',
}


@pytest.mark.parametrize("header", HEADERS)
def test_a_header_is_refused_before_it_is_made_into_objects(header, tmp_path):
    (tmp_path / "m.gate").write_bytes(struct.pack("<Q", len(HEADERS[header])) + HEADERS[header])
    code = """
    import resource, sys, time
    from gatefit.circuit.file import CircuitFileError, load
    before, start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    try:
        load(sys.argv[1])
    except CircuitFileError as error:
        print(error)
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before, time.process_time() - start)
    """
    message, used = limited(code, tmp_path / "m.gate").splitlines()
    kilobytes, seconds = map(float, used.split())
    assert message.endswith("objects, lists and keys: not a circuit's")
    assert kilobytes * 1024 < 10 * len(HEADERS[header])
    assert seconds < 10


def test_a_circuit_that_names_its_inputs_may_have_more():
    inputs = FREE_INPUTS + 1
    circuit = sparse(inputs)
    with pytest.raises(
        CircuitFileError, match=r"1048577 inputs in .* name them, or leave out those that nothing reads"
    ):
        dumps(circuit)
    with pytest.raises(CircuitFileError, match="1048577 inputs in"):
        from_json(to_json(circuit))
    names = tuple(map(str, range(inputs)))
    named = Circuit(inputs, circuit.gates, circuit.operands, circuit.outputs, circuit.readout, names)
    assert loads(dumps(named)).input_names == names
