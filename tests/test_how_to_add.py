"""Each "how to add" of ARCHITECTURE.md, done: a toy of each kind, defined here alone, goes the whole way.

A method, a layer and a wiring are trained, probed, saved, hardened, optimised, proven, exported and fitted by an
estimator; a pass, a backend and a data set take their place in the chain. The readout's way is ``test_own_readout``.
"""

import inspect
import re
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn
from typer.testing import CliRunner

import test_own_readout
from gatefit import LogicGateClassifier
from gatefit.backends.c.native import NativeModel
from gatefit.backends.verilog import to_testbench, to_verilog
from gatefit.circuit import simulate
from gatefit.circuit.engine import Engine
from gatefit.circuit.ir import Circuit
from gatefit.circuit.optimise import optimise
from gatefit.circuit.passes import PASSES
from gatefit.circuit.prove import Equivalent, prove
from gatefit.circuit.prove.certificate import check_certificate
from gatefit.cli import app
from gatefit.datasets import DATASETS, Dataset, DatasetInfo
from gatefit.diagnostics.batch import ProbeBatch
from gatefit.diagnostics.probe import probe
from gatefit.encoders import Identity
from gatefit.estimators.export import FORMATS, export_circuit
from gatefit.gates import SWAPPED, TRUTH_TABLES, Gate
from gatefit.harden import harden
from gatefit.layers import GateLayer, Layer
from gatefit.methods import Method
from gatefit.network import LogicNetwork
from gatefit.ops.coefficients import codebook
from gatefit.training.config import RunConfig
from gatefit.training.data import PackedRows, TrainingData
from gatefit.training.loop import train
from gatefit.wirings import Wiring
from strategies import all_patterns, random_circuit
from tools import require_tool

ROOT = Path(__file__).parent.parent


class OrBut(Method):
    """One number a gate: σ(θ) of OR and the rest of a & ~b; deployed, the likelier of the two."""

    name = "or-but"
    parameters_per_gate = 1

    def residual_centre(self):
        return torch.zeros(1)

    def gate_probabilities(self):
        share = torch.sigmoid(self.latent[:, 0])
        likely = torch.zeros(len(share), 16, dtype=share.dtype)
        likely[:, Gate.A_AND_NOT_B], likely[:, Gate.OR] = 1 - share, share
        return likely

    def coefficients(self):
        return self.gate_probabilities() @ codebook(self.latent.dtype, self.latent.device)

    def gates(self):
        return self.gate_probabilities().argmax(-1).to(torch.uint8)


class Either(Layer):
    """OR pooling: output i is 1 where input 2i or 2i + 1 is."""

    def __init__(self, inputs):
        super().__init__()
        self.inputs, self.outputs = inputs, inputs // 2

    def forward(self, x):
        a, b = x[:, ::2], x[:, 1::2]
        return a + b - a * b

    def lower(self, builder, inputs):
        return builder.gates(np.full(self.outputs, Gate.OR), inputs.reshape(-1, 2).T)


class TwoChoices(Wiring):
    """Each gate input has two nodes to choose from, by the sign of a learned number; straight through in training."""

    learns = True

    def __init__(self, context):
        super().__init__()
        self.inputs, self.gates = context.inputs, context.gates
        choices = torch.randint(self.inputs, (2, 2, self.gates), generator=context.generator)
        self.register_buffer("choices", choices)
        self.preference = nn.Parameter(torch.randn(2, self.gates, generator=context.generator))

    def committed(self):
        return torch.where(self.preference > 0, self.choices[1], self.choices[0]).int()

    def read(self, x):
        share = torch.sigmoid(self.preference)
        soft = (1 - share) * x[:, self.choices[0]] + share * x[:, self.choices[1]]
        return (soft + (x[:, self.committed().long()] - soft).detach()).unbind(1)


def sort_operands(circuit):
    """Every gate reads the node with the smaller number first."""
    turned = circuit.operands[0] > circuit.operands[1]
    gates = np.where(turned, SWAPPED[circuit.gates], circuit.gates)
    return replace(circuit, gates=gates, operands=np.sort(circuit.operands, axis=0))


def to_python(circuit):
    """A function of a list of bits, one line a gate; returns the output bits."""
    lines = ["def outputs(x):", "    n = list(x)"]
    for gate, a, b in zip(circuit.gates, *circuit.operands, strict=True):
        lines.append(f"    n.append({TRUTH_TABLES[gate].tolist()}[2 * n[{a}] + n[{b}]])")
    return "\n".join([*lines, f"    return [n[i] for i in {circuit.outputs.tolist()}]", ""])


def load_majority(source):
    """Which of two halves of ten bits has more ones."""
    x = np.random.default_rng(0).random((600, 10)) < 0.5
    y = (x[:, :5].sum(1) > x[:, 5:].sum(1)).astype(np.int64)
    names = tuple(f"bit {i}" for i in range(10))
    encoder = Identity().fit(x)
    return Dataset("majority", x[:500], y[:500], x[500:], y[500:], ("second", "first"), names, encoder, digest="-")


MAJORITY = DatasetInfo("Majority of halves", 500, 100, 10, 10, 2, "made here", "none", load_majority, download=False)

TOYS = {
    "method": (OrBut,),
    "layer": (Either,),
    "wiring": (TwoChoices,),
    "pass": (sort_operands,),
    "backend": (to_python,),
    "readout": (test_own_readout.Votes, test_own_readout.TrainedVotes),
    "data set": (load_majority,),
}


def with_own_method(bits, classes, seed=0):
    return LogicNetwork(bits, classes, 12 * classes, 2, method=OrBut, seed=seed)


def with_own_layer(bits, classes, seed=0):
    generator = torch.Generator().manual_seed(seed)
    gates = [GateLayer(bits, 40, generator=generator), Either(40), GateLayer(20, 12 * classes, generator=generator)]
    return LogicNetwork(layers=gates, classes=classes)


def with_own_wiring(bits, classes, seed=0):
    return LogicNetwork(bits, classes, 12 * classes, 2, wiring=TwoChoices, seed=seed)


OWN = {
    "method": (with_own_method, lambda: {"method": OrBut}),
    "layer": (with_own_layer, lambda: {"layers": list(with_own_layer(10, 2).layers)}),
    "wiring": (with_own_wiring, lambda: {"wiring": TwoChoices}),
}


def goes_the_rest_of_the_way(circuit, folder):
    """Every pass, the pipeline, a checked proof, the engine, a file, every exporter, a C compiler and a simulator."""
    bits = np.random.default_rng(0).random((300, circuit.inputs)) < 0.5
    expected = simulate.scores(circuit, bits)
    for optimisation in PASSES:
        np.testing.assert_array_equal(simulate.scores(optimisation(circuit), bits), expected)
    smaller, _ = optimise(circuit)
    assert isinstance(prove(circuit, smaller, certificate=folder / "certificate"), Equivalent)
    check_certificate(folder / "certificate", circuit, smaller)
    np.testing.assert_array_equal(Engine(smaller).scores(bits), expected)
    smaller.save(folder / "model.gate")
    np.testing.assert_array_equal(Circuit.load(folder / "model.gate").scores(bits), expected)
    for name in FORMATS:
        assert export_circuit(smaller, folder / name / "", name, {}).stat().st_size > 100
    np.testing.assert_array_equal(
        NativeModel(smaller, "straight", ("-O1",), require_tool("gcc")).scores(bits), expected
    )
    (folder / "model.v").write_text(to_verilog(smaller))
    (folder / "bench.v").write_text(to_testbench(smaller, bits))
    compiled = [require_tool("iverilog"), "-g2001", "-o", "program", "model.v", "bench.v"]
    subprocess.run(compiled, cwd=folder, check=True)
    said = subprocess.run(
        [require_tool("vvp"), "-n", "program"], cwd=folder, capture_output=True, text=True, check=True
    )
    assert said.stdout == "PASS: 300 vectors\n"


@pytest.mark.parametrize("kind", OWN)
def test_a_method_a_layer_and_a_wiring_go_the_whole_way(kind, tmp_path):
    make, again = OWN[kind]
    data = load_majority(None)
    x, y = data.x_train, torch.from_numpy(data.y_train)
    network = make(10, 2)
    before = [parameter.detach().clone() for parameter in network.parameters()]
    config = RunConfig(dataset="custom", steps=300, batch_size=100, evaluate_every=100, learning_rate=0.05)
    sets = TrainingData(PackedRows(x), y, PackedRows(data.x_test), torch.from_numpy(data.y_test))
    result = train(config, network, sets, folder=tmp_path / "checkpoints", threads=1)
    assert result.summary["last_10_accuracy"] > 0.75
    assert all(not torch.equal(old, new) for old, new in zip(before, network.parameters(), strict=True))
    found = probe(network, [ProbeBatch(torch.from_numpy(x), lambda s: nn.functional.cross_entropy(s, y))])
    assert found["census"] is not None
    saved = LogicNetwork.from_state_dict(network.state_dict(), **again()).eval()
    circuit = harden(network)
    with torch.no_grad():
        scores = saved(torch.from_numpy(x)) * network.readout.temperature
    np.testing.assert_allclose(scores.numpy(), simulate.scores(circuit, x), rtol=1e-5)
    goes_the_rest_of_the_way(circuit, tmp_path)


@pytest.mark.parametrize("kind", OWN)
def test_an_estimator_fits_them(kind):
    data = load_majority(None)
    model = LogicGateClassifier(network=OWN[kind][0], steps=300, random_state=0).fit(data.x_train, data.y_train)
    assert model.score(data.x_test, data.y_test) > 0.75
    assert model.circuit_.predict(data.x_test).tolist() == model.predict(data.x_test).tolist()


def test_a_pass_preserves_every_score_and_takes_its_place_among_the_others(tmp_path):
    for seed in range(30):
        circuit = random_circuit(np.random.default_rng(seed))
        changed = sort_operands(circuit)
        assert (changed.operands[0] <= changed.operands[1]).all()
        bits = all_patterns(circuit.inputs)
        np.testing.assert_array_equal(simulate.scores(changed, bits), simulate.scores(circuit, bits))
        assert isinstance(prove(circuit, sort_operands(optimise(circuit)[0])), Equivalent)


def test_a_backend_computes_what_simulate_says():
    for seed in range(10):
        circuit = random_circuit(np.random.default_rng(seed))
        space = {}
        exec(to_python(circuit), space)
        bits = all_patterns(circuit.inputs)
        outputs = np.array([space["outputs"](row) for row in bits.astype(int).tolist()], dtype=bool)
        np.testing.assert_array_equal(circuit.readout.scores(outputs), simulate.scores(circuit, bits))


def test_a_data_set_is_trained_and_compiled_by_its_name(tmp_path, monkeypatch):
    monkeypatch.setitem(DATASETS, "majority", MAJORITY)
    run, circuit = tmp_path / "run", tmp_path / "majority.gate"
    options = "--width 40 --depth 3 --steps 300 --evaluate-every 100 --quiet"
    for line in (
        f"train --dataset majority {options} --out {run}",
        f"evaluate {run}",
        f"compile {run} --out {circuit}",
        f"export {circuit} --to verilog --out {tmp_path / 'majority.v'}",
    ):
        result = CliRunner().invoke(app, line.split())
        assert result.exit_code == 0, result.output
    loaded, data = Circuit.load(circuit), load_majority(None)
    assert (loaded.predict(data.x_test) == np.array(data.class_names, dtype=object)[data.y_test]).mean() > 0.8


def lines_of(toys) -> int:
    """Lines of code, without the empty ones and the docstrings' own."""
    text = "".join(inspect.getsource(toy) for toy in toys)
    return sum(bool(line.strip()) and not line.strip().startswith(('"""', "#")) for line in text.splitlines())


def test_architecture_says_how_many_lines_each_toy_needs():
    page = (ROOT / "ARCHITECTURE.md").read_text()
    said = {kind: int(count) for kind, count in re.findall(r"^\| an? ([a-z ]+) \| (\d+) \|", page, flags=re.MULTILINE)}
    assert said == {kind: lines_of(toys) for kind, toys in TOYS.items()}


@pytest.mark.parametrize("kind", TOYS)
def test_architecture_adds_each_in_at_most_five_steps(kind):
    page = (ROOT / "ARCHITECTURE.md").read_text()
    section = re.search(rf"^### An? {kind}\n(.*?)(?=^##)", page, flags=re.MULTILINE | re.DOTALL)
    assert section is not None
    steps = re.findall(r"^(\d)\. ", section[1], flags=re.MULTILINE)
    assert 1 <= len(steps) <= 5
