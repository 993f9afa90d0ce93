"""The whole flow on small circuits, with the real tools; and what is kept when a step does not come to its end."""

import numpy as np
import pytest

from gatefit.backends.verilog.modules import to_verilog_modules
from gatefit.circuit.ir import Circuit
from gatefit.circuit.readout import Affine
from gatefit.encoders import Threshold
from gatefit.hardware import build as builds
from gatefit.hardware import tools
from gatefit.hardware.bench import harness, harness_bench, make_vectors
from gatefit.hardware.build import Build, Settings
from gatefit.hardware.flow import verdict
from gatefit.hardware.simulation import Registers, run_bench
from gatefit.hardware.targets import TARGETS, Device
from gatefit.hardware.tools import MissingToolError, find_nextpnr, find_simulator
from gatefit.hardware.vectors import pack_features
from patience import HANG
from strategies import layered_circuit
from tools import require_tool

pytestmark = pytest.mark.outside

CIRCUIT = layered_circuit(np.random.default_rng(0), 9, 24, 2, 3, gates=range(1, 15))
BITS = np.random.default_rng(1).random((20, 9)) < 0.5


def built(folder, target="lut4", stages=0, circuit=CIRCUIT, device=None, **settings):
    require_tool("yosys")
    require_tool("iverilog")
    chosen = TARGETS[target]
    device = device or (chosen.device(chosen.default) if chosen.routable else None)
    return Build(circuit, chosen, device, stages, folder, Settings(BITS, **{"timeout": HANG} | settings)).run()


def statuses(content):
    return {step["step"]: step["status"] for step in content["steps"]}


def require_nextpnr(family):
    try:
        find_nextpnr(family)
    except MissingToolError:
        require_tool(f"nextpnr-{family}")


@pytest.mark.parametrize(("target", "stages"), [("ice40", 7), ("ecp5", 0)])
def test_placed_and_routed_netlists_agree(target, stages, tmp_path):
    require_nextpnr(target)
    content = built(tmp_path, target, stages)
    assert set(statuses(content).values()) == {"done"}, content["steps"]
    assert len(content["steps"]) == 8
    assert verdict([content])["status"] == "agrees"
    routed, parts = content["routed"], content["parts"]
    assert list(parts) == ["gates", "popcount", "argmax"]
    assert routed["megahertz"] > 1
    assert routed["latency_ns"] == pytest.approx(max(1, stages) * 1000 / routed["megahertz"])
    assert 0 < routed["routing_share"] < 1
    # The harness: one register an input and two an output, a multiplexer an output.
    outputs = 3 * 4 + 2
    assert content["harness"]["flip_flops"] == 9 + 2 * outputs
    for kind in ("tables", "flip_flops"):
        assert content["core"][kind] == sum(part[kind] for part in parts.values())
        assert content["whole"][kind] == content["core"][kind] + content["harness"][kind]
    assert (content["core"]["flip_flops"] > 0) == (stages > 0)
    assert content["gates_per_table"] == 48 / parts["gates"]["tables"]
    assert content["levels"] >= max(1, parts["gates"]["levels"] if not stages else 1)


def test_generic_tables_are_counted_and_simulated(tmp_path):
    content = built(tmp_path, "lut6", 3)
    assert set(statuses(content).values()) == {"done"}, content["steps"]
    assert "routed" not in content
    assert content["core"] == content["whole"]


@pytest.fixture
def pip_yosys(monkeypatch):
    """The pip package, although the system has a yosys."""
    real = tools.shutil.which
    hidden = {"yosys"}
    monkeypatch.setattr(tools.shutil, "which", lambda name, **more: None if name in hidden else real(name, **more))
    tools.forget()
    try:
        found = tools.find_yosys()
    except MissingToolError:
        require_tool("pyosys")
    yield found
    tools.forget()


def test_the_pip_package_of_yosys_does_as_well(tmp_path, pip_yosys):
    require_tool("iverilog")
    chosen = TARGETS["ice40"]
    settings = Settings(BITS, timeout=HANG, route=False)
    content = Build(CIRCUIT, chosen, chosen.device("hx1k"), 1, tmp_path, settings).run()
    assert pip_yosys.origin.startswith("pip: ")
    assert set(statuses(content).values()) == {"done"}, content["steps"]
    assert "routed" not in content


@pytest.mark.slow
@pytest.mark.parametrize("target", ["xilinx", "lut4", "ice40", "ecp5"])
@pytest.mark.parametrize("stages", [0, 1, 4])
def test_every_target(target, stages, tmp_path):
    content = built(tmp_path, target, stages)
    assert set(statuses(content).values()) == {"done"}, content["steps"]


def test_regression_and_raw_features(tmp_path):
    encoder = Threshold([2.0] * 5).fit(np.zeros((1, 5)))
    circuit = Circuit(5, [6, 1], [[0, 2], [1, 3]], [5, 6, 4, 0], Affine(4, -2), encoder=encoder)
    features = np.random.default_rng(0).integers(0, 8, (30, 5))
    settings = Settings(encoder.transform(features), pack_features(features, 3), 3, timeout=HANG)
    require_tool("yosys")
    require_tool("iverilog")
    content = Build(circuit, TARGETS["lut4"], None, 0, tmp_path, settings).run()
    assert set(statuses(content).values()) == {"done"}, content["steps"]
    assert list(content["parts"]) == ["encoder", "gates", "popcount"]
    assert content["parts"]["encoder"]["tables"] > 0


def test_a_missing_simulator_leaves_the_other_steps(tmp_path, monkeypatch):
    def missing():
        raise MissingToolError("iverilog", "simulation")

    monkeypatch.setattr("gatefit.hardware.simulation.find_simulator", missing)
    require_tool("iverilog")
    content = built(tmp_path)
    found = statuses(content)
    assert found["simulate the export"] == found["simulate the netlist"] == "tool missing"
    assert found["synthesise"] == found["prove the netlist"] == "done"
    summary = verdict([content])
    assert summary["status"] == "incomplete"
    assert "simulation needs iverilog" in summary["text"]


def test_a_timeout_is_labelled_and_what_needs_it_skipped(tmp_path):
    content = built(tmp_path, timeout=0.01)
    found = statuses(content)
    assert found["export"] == "done"
    assert found["synthesise"] == "timed out"
    assert found["simulate the netlist"] == "skipped"
    assert "core" not in content
    assert "did not finish in 0.01 s" in verdict([content])["text"]


def test_too_large_says_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setattr(builds, "find_nextpnr", lambda family: pytest.fail("no need to try"))
    content = built(tmp_path, "ice40", device=Device("tiny", (), 20))
    (step,) = [step for step in content["steps"] if step["status"] == "too large"]
    assert "logic cells are needed, tiny has 20; the largest part is the popcount with" in step["detail"]
    assert "a bigger device (--device lp384), fewer outputs a class (gatefit prune)" in step["detail"]
    assert "gatefit optimise" in step["detail"]
    assert statuses(content)["simulate the netlist"] == "done"


def test_the_harness_finds_a_wrong_circuit(tmp_path):
    """The bench through five pins, on Verilog that no tool has touched: right, and with one gate changed."""
    require_tool("iverilog")
    modules = to_verilog_modules(CIRCUIT, "net", pipeline_stages=2, counter=3)
    vectors = make_vectors(CIRCUIT, modules, BITS)
    vectors.write(tmp_path)
    bench = harness_bench(Registers("net_harness", {}, None), 2, vectors)
    (tmp_path / "bench.v").write_text(bench.replace("t < 2;", f"t < {len(BITS)};").replace("t = 2;", "t = 99;"))
    text = modules.text + harness(modules)
    for changed, differ in ((text, 0), (text.replace(" ^ ", " | ", 1), None)):
        (tmp_path / "design.v").write_text(changed)
        found = run_bench(["bench.v", "design.v"], tmp_path, "simulate", 60)
        assert found == 0 if differ == 0 else found > 0


def test_the_simulator_is_asked_for_first():
    require_tool("iverilog")
    compiler, runtime = find_simulator()
    assert (compiler.name, runtime.name) == ("iverilog", "vvp")
