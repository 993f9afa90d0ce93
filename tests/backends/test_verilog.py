"""Exported Verilog, run by iverilog, against the reference."""

import re
import subprocess
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatefit.backends.verilog import to_verilog
from gatefit.backends.verilog.pipeline import ADDER_DELAY, COMPARISON_DELAY, GATE_DELAY, plan_pipeline
from gatefit.backends.verilog.readout import sum_format
from gatefit.backends.verilog.testbench import to_testbench
from gatefit.circuit import simulate
from gatefit.circuit.ir import Circuit
from gatefit.circuit.readout import Affine, GroupSum, Linear
from gatefit.circuit.statistics import depth, levels
from gatefit.encoders import Identity, OneHot, Table, Threshold
from gatefit.gates import Gate
from strategies import all_patterns, layered_circuit, random_circuit
from tools import require_tool

pytestmark = pytest.mark.outside

NO_GATES = np.empty((2, 0), int)


def run(folder: Path, *texts: str) -> str:
    """What the simulator prints; its own complaints are failures."""
    sources = []
    for i, text in enumerate(texts):
        sources.append(folder / f"source_{i}.v")
        sources[-1].write_text(text, encoding="ascii")
    program = folder / "program"
    compiler = [require_tool("iverilog"), "-g2001", "-Wall", "-Wno-timescale", "-o", str(program)]
    compiled = subprocess.run([*compiler, *map(str, sources)], capture_output=True, text=True, check=False)
    assert (compiled.returncode, compiled.stderr) == (0, "")
    return subprocess.run([require_tool("vvp"), "-n", str(program)], capture_output=True, text=True, check=True).stdout


def assert_same(folder: Path, circuit: Circuit, bits: np.ndarray, **options: object) -> None:
    text = to_verilog(circuit, **options)
    options.pop("counter", None)
    printed = run(folder, text, to_testbench(circuit, bits, **options))
    assert printed == f"PASS: {len(bits)} vectors\n"


@pytest.mark.parametrize("seed", range(25))
def test_every_input_of_random_circuits(seed, tmp_path):
    rng = np.random.default_rng(seed)
    circuit = random_circuit(rng, max_outputs=20, readout_kinds=("group_sum", "affine"))
    options = {"outputs": bool(seed % 2 and circuit.outputs.size), "named_ports": bool(seed % 3)}
    options |= {"counter": (3, 6)[seed % 2]}
    assert_same(tmp_path, circuit, all_patterns(circuit.inputs), **options)


@pytest.mark.parametrize("classes", [1, 2, 5, 10])
def test_every_number_of_pipeline_stages(classes, tmp_path):
    circuit = layered_circuit(np.random.default_rng(classes), 12, 60, 4, classes, gates=range(1, 15))
    sums = sum_format(circuit.readout.sums())
    steps = depth(circuit) + sums.adder_levels + sums.comparison_levels
    bits = np.random.default_rng(0).random((40, 12)) < 0.5
    for stages in range(steps + 1):
        assert_same(tmp_path, circuit, bits, pipeline_stages=stages, outputs=stages % 2 == 0)
    message = f"pipeline_stages must be from 0 to {steps} for this circuit"
    with pytest.raises(ValueError, match=re.escape(message)):
        to_verilog(circuit, pipeline_stages=steps + 1)


def test_every_gate(tmp_path):
    circuit = Circuit(2, np.arange(16), np.tile([[0], [1]], 16), np.arange(2, 18), Affine(16))
    assert_same(tmp_path, circuit, all_patterns(2), outputs=True)


@pytest.mark.parametrize("offsets", [[0, 0, 0], [5, 0, 3], [-4, 7, 0], [-9, -8, -9], [1000, 0, -1000]])
def test_offsets_are_added(offsets, tmp_path):
    """Constant outputs that were folded away live on in the offsets; a score without them would be wrong."""
    circuit = Circuit(5, [], NO_GATES, [0, 1, 2, 3, 4, 0], GroupSum([0, 0, 1, 1, 2, 2], offsets))
    for stages in (0, 2):
        assert_same(tmp_path, circuit, all_patterns(5), pipeline_stages=stages)
    circuit = Circuit(5, [], NO_GATES, [0, 1, 2], Affine(3, offsets[0], 0.5, 1.0))
    assert_same(tmp_path, circuit, all_patterns(5))
    assert "// value = 1.0 + 0.5 * sum" in to_verilog(circuit)


def test_equal_scores_go_to_the_first_class(tmp_path):
    for classes in range(1, 9):
        circuit = Circuit(4, [], NO_GATES, [k % 4 for k in range(classes)], GroupSum(np.arange(classes), [0] * classes))
        assert_same(tmp_path, circuit, all_patterns(4))


def test_a_circuit_of_constants_and_no_outputs(tmp_path):
    constant = Circuit(1, [Gate.TRUE, Gate.FALSE], [[0, 0], [0, 0]], [1, 2, 1], GroupSum([0, 0, 1], [0, 0]))
    assert_same(tmp_path, constant, all_patterns(1), pipeline_stages=1, outputs=True)
    assert_same(tmp_path, Circuit(1, [], NO_GATES, [], GroupSum([], [2, 3])), all_patterns(1))


def test_larger_network(tmp_path):
    circuit = layered_circuit(np.random.default_rng(0), 100, 400, 5)
    bits = np.random.default_rng(1).random((50, 100)) < 0.5
    assert_same(tmp_path, circuit, bits, pipeline_stages=4)


def test_the_testbench_notices_a_wrong_gate(tmp_path):
    circuit = Circuit(2, [Gate.XOR], [[0], [1]], [2], GroupSum([0], [0]))
    text = to_verilog(circuit, outputs=True)
    wrong = text.replace("x[0] ^ x[1]", "x[0] | x[1]")
    assert wrong != text
    printed = run(tmp_path, wrong, to_testbench(circuit, all_patterns(2), outputs=True))
    assert printed == "FAIL: 2 of 4 vectors and outputs differ\n"


def without_comments(text: str) -> str:
    return "\n".join(line for line in text.splitlines() if not line.startswith("//"))


def test_names_cannot_become_code(tmp_path):
    names = ('a"; endmodule', "b\nassign y = 1;", "c // d", "e */ `include", "module", "x[0]", "clk", "\\esc ", "é", "")
    inputs = len(names)
    circuit = Circuit(
        inputs,
        [Gate.AND],
        [[0], [inputs - 1]],
        [inputs] * inputs,
        GroupSum(np.arange(inputs), [0] * inputs),
        input_names=names,
        class_names=names,
    )
    plain = Circuit(inputs, circuit.gates, circuit.operands, circuit.outputs, circuit.readout)
    assert without_comments(to_verilog(circuit)) == without_comments(to_verilog(plain))
    bits = np.random.default_rng(0).random((30, inputs)) < 0.7
    assert_same(tmp_path, circuit, bits)
    assert_same(tmp_path, circuit, bits, named_ports=True, pipeline_stages=1, module="hostile")


def feature_bench(bits: int, features: int, classes: int) -> str:
    """Prints the class of every combination of features."""
    width = bits * features
    return f"""module bench;
    reg [{width}:0] t; wire [{max(1, (classes - 1).bit_length()) - 1}:0] k;
    gatefit dut (.features(t[{width - 1}:0]), .class_index(k));
    initial begin
        for (t = 0; t < {2**width}; t = t + 1) begin #1 $display("%0d", k); #1; end
        $finish;
    end
endmodule
"""


def test_integer_features_are_compared_inside(tmp_path):
    thresholds = [-1.0, 0.0, 2.5, 3.0, 14.999, 15.0, 900.0]
    for a, b in zip(thresholds, reversed(thresholds), strict=True):
        encoder = Threshold([a, b]).fit(np.zeros((1, 2)))
        circuit = Circuit(2, [Gate.XOR], [[0], [1]], [0, 1, 2], GroupSum([1, 2, 3], [0, 0, 0, 0]), encoder=encoder)
        both = np.arange(256)
        features = np.stack([both % 16, both // 16], axis=1).astype(np.uint8)
        expected = simulate.predict_classes(circuit, encoder.transform(features))
        printed = run(tmp_path, to_verilog(circuit, feature_bits=4), feature_bench(4, 2, 4))
        assert [int(line) for line in printed.split()] == expected.tolist()


def test_integer_categories_and_bits_are_compared_inside(tmp_path):
    codes = OneHot().fit({"code": [3, 5, 6]})
    circuit = Circuit(3, [], NO_GATES, [0, 1, 2], GroupSum([1, 2, 3], [0] * 4), encoder=codes)
    printed = run(tmp_path, to_verilog(circuit, feature_bits=3), feature_bench(3, 1, 4))
    assert [int(line) for line in printed.split()] == [0, 0, 0, 1, 0, 2, 3, 0]
    bit = Identity().fit(np.array([[0], [1]]))
    circuit = Circuit(1, [], NO_GATES, [0], GroupSum([1], [0, 0]), encoder=bit)
    printed = run(tmp_path, to_verilog(circuit, feature_bits=1), feature_bench(1, 1, 2))
    assert [int(line) for line in printed.split()] == [0, 1]


def test_named_feature_ports():
    encoder = Threshold(0.5).fit(np.zeros((1, 2)), feature_names=["Age (years)", "in"])
    circuit = Circuit(2, [], NO_GATES, [0, 1], GroupSum([0, 1], [0, 0]), encoder=encoder)
    text = to_verilog(circuit, feature_bits=8, named_ports=True)
    assert "input wire [7:0] in_Age_years," in text
    assert "input wire [7:0] in_in," in text
    assert "// input 0: Age (years) > 0.5" in text


def linear() -> Circuit:
    return Circuit(2, [Gate.AND], [[0], [1]], [2, 0], Linear([[1.0, 2.0]], [0.0]))


def test_linear_readouts_end_at_the_outputs(tmp_path):
    with pytest.raises(ValueError, match="train with the GroupSum readout, or use readout=False"):
        to_verilog(linear())
    with pytest.raises(ValueError, match="use readout=False"):
        to_testbench(linear(), all_patterns(2))
    assert_same(tmp_path, linear(), all_patterns(2), readout=False)
    assert_same(tmp_path, linear(), all_patterns(2), readout=False, pipeline_stages=1)


PLAIN = Circuit(1, [], NO_GATES, [0], GroupSum([0], [0]))
STRINGS = Circuit(2, [], NO_GATES, [0, 1], Affine(2), encoder=OneHot().fit({"k": ["a", "b"]}))
MISSING = Circuit(2, [], NO_GATES, [0, 1], Affine(2), encoder=Table().fit({"k": [1.0, 2.0, np.nan]}))


@pytest.mark.parametrize(
    ("circuit", "options", "message"),
    [
        (PLAIN, {"module": "wire"}, "'wire' cannot name anything in Verilog"),
        (PLAIN, {"pipeline_stages": 1}, "pipeline_stages must be from 0 to 0 for this circuit (0 gate levels"),
        (PLAIN, {"pipeline_stages": -1}, "got -1"),
        (PLAIN, {"feature_bits": 8}, "feature_bits needs the circuit's encoder"),
        (STRINGS, {"feature_bits": 65}, "feature_bits must be from 1 to 64"),
        (STRINGS, {"feature_bits": 8}, "feature 'k' is compared with the string 'a'; use feature_bits=0"),
        (MISSING, {"feature_bits": 8}, "feature 'k' may be missing, and an integer cannot say so"),
        (Circuit(1, [], NO_GATES, [], Affine(0)), {"outputs": True}, "the circuit has no output bits"),
    ],
)
def test_wrong_options_are_refused(circuit, options, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        to_verilog(circuit, **options)


def test_a_testbench_needs_vectors():
    with pytest.raises(ValueError, match="at least one vector"):
        to_testbench(PLAIN, np.empty((0, 1), bool))


@given(st.integers(0, 12), st.integers(0, 10), st.integers(0, 5), st.data())
def test_stages_are_even(gates, adders, comparisons, data):
    delays = [GATE_DELAY] * gates + [ADDER_DELAY] * adders + [COMPARISON_DELAY] * comparisons
    stages = data.draw(st.integers(0, len(delays)))
    pipeline = plan_pipeline(stages, gates, adders, comparisons)
    cuts = pipeline.cuts
    assert len(cuts) == pipeline.latency == stages
    assert list(cuts) == sorted(set(cuts))
    if stages:
        assert cuts[-1] == len(delays)
        slowest = max(sum(delays[a:b]) for a, b in zip((0, *cuts[:-1]), cuts, strict=True))
        assert slowest <= sum(delays) / stages + 2 * COMPARISON_DELAY
    assert pipeline.gate_stages + len(pipeline.adder_cuts) + len(pipeline.comparison_cuts) == stages


def test_levels_count_gates_that_read_two_nodes():
    kinds = [Gate.NOT_A, Gate.AND, Gate.A, Gate.XOR, Gate.TRUE, Gate.B]
    circuit = Circuit(2, kinds, [[0, 2, 3, 4, 5, 5], [1, 1, 0, 3, 5, 4]], [7], Affine(1))
    assert levels(circuit).tolist() == [0, 0, 0, 1, 1, 2, 0, 1]
