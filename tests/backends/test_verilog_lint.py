"""Exported Verilog under ``verilator --lint-only -Wall``: not one warning, whatever the options."""

import re
import subprocess

import numpy as np
import pytest

from gatefit.backends.verilog import to_verilog
from gatefit.backends.verilog.modules import to_verilog_modules
from gatefit.circuit.ir import Circuit
from gatefit.circuit.readout import Affine, GroupSum, Linear
from gatefit.encoders import OneHot, Thermometer, Threshold
from gatefit.gates import Gate
from gatefit.hardware.bench import harness
from strategies import layered_circuit, random_circuit
from tools import require_tool

pytestmark = pytest.mark.outside

NO_GATES = np.empty((2, 0), int)


def complaints(folder, text, top="gatefit"):
    """What the linter says; nothing if it is content."""
    (folder / "another_name.v").write_text(text, encoding="ascii")
    command = [require_tool("verilator"), "--lint-only", "-Wall", "--top-module", top, "another_name.v"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False).stderr


@pytest.mark.parametrize("seed", range(16))
def test_random_circuits(seed, tmp_path):
    circuit = random_circuit(np.random.default_rng(seed), max_outputs=20, readout_kinds=("group_sum", "affine"))
    options = {"outputs": bool(seed % 2 and circuit.outputs.size), "named_ports": bool(seed % 3), "counter": 3}
    assert complaints(tmp_path, to_verilog(circuit, **options)) == ""


@pytest.mark.parametrize("counter", [3, 6])
@pytest.mark.parametrize("stages", [0, 3, 8])
def test_networks(stages, counter, tmp_path):
    circuit = layered_circuit(np.random.default_rng(stages), 40, 300, 3, 10, gates=range(1, 15))
    for outputs in (False, True):
        text = to_verilog(circuit, pipeline_stages=stages, outputs=outputs, counter=counter)
        assert complaints(tmp_path, text) == ""


@pytest.mark.parametrize("counter", [3, 6])
def test_every_size_of_a_sum(counter, tmp_path):
    """Offsets make the sum wider than its terms, or signed; a class may have one output, or none."""
    for size in (1, 2, 3, 4, 5, 7, 8, 12, 13, 31, 33, 64):
        groups = np.append(np.zeros(size, int), [1])
        for offsets in ([0, 0, 0], [5, -100, 3]):
            circuit = Circuit(size + 1, [], NO_GATES, np.arange(size + 1), GroupSum(groups, offsets))
            assert complaints(tmp_path, to_verilog(circuit, counter=counter)) == "", (size, offsets)


FEATURES = Thermometer(3).fit(np.array([[0, 0, 7, 1], [15, 9, 7, 200]]))
"""The third never varied, so nothing compares it."""
GATES = Circuit(9, [Gate.XOR], [[0], [4]], [9, 1, 2], GroupSum([0, 1, 1], [0, 0]), encoder=FEATURES)
CONSTANT = Circuit(3, [Gate.TRUE], [[0], [0]], [3, 3], GroupSum([0, 1], [0, 0]))


@pytest.mark.parametrize(
    ("circuit", "options"),
    [
        (GATES, {"feature_bits": 8}),
        (GATES, {"feature_bits": 8, "named_ports": True, "pipeline_stages": 2, "outputs": True}),
        (GATES, {"named_ports": True, "readout": False}),
        (CONSTANT, {}),
        (CONSTANT, {"pipeline_stages": 1, "outputs": True}),
        (Circuit(4, [], NO_GATES, [], GroupSum([], [2, 3])), {}),
        (Circuit(4, [], NO_GATES, [], GroupSum([], [2, 3])), {"named_ports": True}),
        (Circuit(4, [], NO_GATES, [], Affine(0, -5)), {}),
        (Circuit(2, [Gate.AND], [[0], [1]], [2], Affine(1)), {"pipeline_stages": 1}),
        (Circuit(2, [Gate.AND], [[0], [1]], [2, 0], Linear([[1.0, 2.0]], [0.0])), {"readout": False}),
        (Circuit(1, [], NO_GATES, [0], GroupSum([0], [0])), {}),
        (
            Circuit(1, [], NO_GATES, [0], GroupSum([0], [0]), encoder=Threshold(0.5).fit([[0], [1]])),
            {"feature_bits": 1},
        ),
        (
            Circuit(2, [], NO_GATES, [0, 1], Affine(2), encoder=Threshold([-1.0, 900.0]).fit([[0, 0]])),
            {"feature_bits": 4},
        ),
        (Circuit(2, [], NO_GATES, [0, 1], Affine(2), encoder=OneHot().fit({"k": [3, 5]})), {"feature_bits": 3}),
    ],
)
def test_odd_circuits(circuit, options, tmp_path):
    assert complaints(tmp_path, to_verilog(circuit, **options)) == ""


def test_the_linter_is_asked(tmp_path):
    """A sum whose terms are narrower than itself is what it must find."""
    circuit = layered_circuit(np.random.default_rng(0), 8, 20, 2, 4)
    text = to_verilog(circuit)
    wrong = re.sub(r"sum_0 = \{[^}]*\}", "sum_0 = y[0]", text, count=1)
    assert wrong != text
    assert "WIDTH" in complaints(tmp_path, wrong)


def test_what_is_synthesised_is_clean_too(tmp_path):
    circuit = layered_circuit(np.random.default_rng(0), 12, 60, 3, 4)
    for scores in (False, True):
        modules = to_verilog_modules(circuit, pipeline_stages=2, scores=scores, counter=6, carries=True)
        assert complaints(tmp_path, modules.text + harness(modules), "gatefit_harness") == ""
    one = Circuit(1, [], NO_GATES, [0], GroupSum([0], [0]))
    assert complaints(tmp_path, to_verilog_modules(one, scores=False).text) == ""


def test_export_and_synthesis_write_the_same():
    circuit = layered_circuit(np.random.default_rng(0), 12, 60, 3, 4)
    for stages, counter in ((0, 3), (4, 6)):
        text = to_verilog(circuit, pipeline_stages=stages, counter=counter)
        assert text == to_verilog_modules(circuit, pipeline_stages=stages, counter=counter).text
