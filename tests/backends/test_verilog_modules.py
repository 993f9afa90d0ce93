"""The hierarchy of modules, run by iverilog, against the engine; and the counters that sums are made of."""

import re

import numpy as np
import pytest

from gatefit.backends.verilog.modules import plan_stages, to_verilog_modules
from gatefit.backends.verilog.pipeline import Body
from gatefit.backends.verilog.readout import count_ones
from gatefit.circuit.ir import Circuit
from gatefit.circuit.readout import Affine, GroupSum, Linear
from gatefit.encoders import Threshold
from gatefit.hardware.bench import core_bench, make_vectors
from gatefit.hardware.simulation import run_bench
from gatefit.hardware.vectors import pack_features
from strategies import all_patterns, layered_circuit, random_circuit
from tools import require_tool

pytestmark = pytest.mark.outside

NO_GATES = np.empty((2, 0), int)


def differ(folder, circuit, bits, stimulus=None, **options) -> int:
    """Vectors that the modules answer differently from the engine."""
    require_tool("iverilog")
    modules = to_verilog_modules(circuit, **options)
    vectors = make_vectors(circuit, modules, bits, stimulus)
    vectors.write(folder)
    (folder / "design.v").write_text(modules.text, encoding="ascii")
    (folder / "bench.v").write_text(core_bench(modules, vectors), encoding="ascii")
    return run_bench(["bench.v", "design.v"], folder, "simulate", 60)


@pytest.mark.parametrize("seed", range(12))
def test_every_input_of_random_circuits(seed, tmp_path):
    rng = np.random.default_rng(seed)
    circuit = random_circuit(rng, max_outputs=20, readout_kinds=("group_sum", "affine"))
    options = {"counter": (3, 6)[seed % 2], "scores": seed % 4 > 0, "carries": seed % 3 > 0}
    assert differ(tmp_path, circuit, all_patterns(circuit.inputs), **options) == 0


@pytest.mark.parametrize("counter", [3, 6])
def test_every_number_of_pipeline_stages(counter, tmp_path):
    circuit = layered_circuit(np.random.default_rng(counter), 12, 60, 3, 4, gates=range(1, 15))
    bits = np.random.default_rng(0).random((40, 12)) < 0.5
    plan = plan_stages(circuit, 0)
    most = plan.gate_levels + plan.adder_levels + plan.comparison_levels
    for stages in range(0, most + 1, 2):
        assert differ(tmp_path, circuit, bits, pipeline_stages=stages, counter=counter, carries=counter == 6) == 0


def test_features_are_compared_in_a_part_of_their_own(tmp_path):
    encoder = Threshold([2.5, 7.0]).fit(np.zeros((1, 2)))
    circuit = Circuit(2, [6], [[0], [1]], [0, 1, 2], GroupSum([1, 2, 3], [0] * 4), encoder=encoder)
    both = np.arange(256)
    features = np.stack([both % 16, both // 16], axis=1)
    modules = to_verilog_modules(circuit, feature_bits=4)
    assert modules.parts == ("encoder", "gates", "popcount", "argmax")
    bits = encoder.transform(features)
    assert differ(tmp_path, circuit, bits, pack_features(features, 4), feature_bits=4) == 0


def test_the_bench_notices_a_wrong_gate(tmp_path):
    circuit = Circuit(2, [6], [[0], [1]], [2], GroupSum([0], [0]))
    require_tool("iverilog")
    modules = to_verilog_modules(circuit)
    vectors = make_vectors(circuit, modules, all_patterns(2))
    vectors.write(tmp_path)
    wrong = modules.text.replace("x[0] ^ x[1]", "x[0] | x[1]")
    assert wrong != modules.text
    (tmp_path / "design.v").write_text(wrong)
    (tmp_path / "bench.v").write_text(core_bench(modules, vectors))
    assert run_bench(["bench.v", "design.v"], tmp_path, "simulate", 60) == 1


def test_parts_and_their_ports():
    circuit = layered_circuit(np.random.default_rng(0), 8, 20, 2, 4)
    modules = to_verilog_modules(circuit, "net", pipeline_stages=3)
    found = re.findall(r"^module (\w+) \(", modules.text, re.MULTILINE)
    assert found == ["net_gates", "net_popcount", "net_argmax", "net"]
    assert [port.name for port in modules.outputs] == ["scores", "class_index"]
    assert [p.name for p in to_verilog_modules(circuit, scores=False).outputs] == ["class_index"]
    regression = Circuit(2, [], NO_GATES, [0, 1], Affine(2, -3))
    assert to_verilog_modules(regression).parts == ("gates", "popcount")
    assert [(p.name, p.signed) for p in to_verilog_modules(regression).outputs] == [("sum", True)]


def test_automatic_stages_grow_with_the_delay():
    small, large = (layered_circuit(np.random.default_rng(0), 12, 20 * n, n, 10, gates=[6]) for n in (1, 6))
    assert 1 <= plan_stages(small, None).latency < plan_stages(large, None).latency
    one = Circuit(1, [], NO_GATES, [0], GroupSum([0], [0]))
    assert plan_stages(one, None).latency == 0


@pytest.mark.parametrize(("counter", "carries"), [(3, False), (6, False), (6, True)])
@pytest.mark.parametrize("size", range(14))
def test_counters_count(size, counter, carries):
    """The wires are Boolean formulas that Python reads as well, once an addition's rows are numbers."""
    body = Body()
    columns = {0: [f"b{i}" for i in range(size)]}
    terms = count_ones(body, "c", columns, counter, size.bit_length() + 1, carries=carries)
    steps = [re.fullmatch(r"    wire (?:\[2:0\] )?(\w+) = (.*);", line).groups() for line in body.lines]
    steps = [
        (name, re.sub(r"\[(\d)\]$", r" >> \1 & 1", re.sub(r"\{1'b0, (\w+), (\w+)\}", r"(2 * \1 + \2)", formula)))
        for name, formula in steps
    ]
    assert any("+" in formula for _, formula in steps) == (carries and size in (3, 4, 8, 9, 10, 13))
    patterns = all_patterns(size).astype(int) if size else np.zeros((1, 0), int)
    for pattern in patterns[:: max(1, len(patterns) // 300)]:
        values = {f"b{i}": int(bit) for i, bit in enumerate(pattern)}
        for name, formula in steps:
            values[name] = eval(formula.replace("1'b0", "0"), {}, values)
        total = 0
        for term in terms:
            digits = [d.strip() for d in term.strip("{}").split(",")]
            total += sum(0 if d == "1'b0" else values[d] << w for w, d in enumerate(reversed(digits)))
        assert total == pattern.sum()


def test_wrong_options_are_refused():
    circuit = Circuit(1, [], NO_GATES, [0], GroupSum([0], [0]))
    with pytest.raises(ValueError, match=r"a counter takes 3 bits .* got 4"):
        to_verilog_modules(Circuit(3, [], NO_GATES, [0, 1, 2], Affine(3)), counter=4)
    with pytest.raises(ValueError, match="the circuit has no output bits"):
        to_verilog_modules(Circuit(1, [], NO_GATES, [], Affine(0)), readout=False)
    with pytest.raises(ValueError, match="a learned linear readout"):
        to_verilog_modules(Circuit(1, [], NO_GATES, [0], Linear([[1.0]], [0.0])))
    with pytest.raises(ValueError, match="pipeline_stages must be from 0 to 0"):
        to_verilog_modules(circuit, pipeline_stages=1)
