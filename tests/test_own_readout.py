"""A readout of the user's own, defined here and nowhere else, goes wherever gatefit's go.

Votes           score_k = Σ_{i : group_i = k} w_i y_i        whole weights of either sign; deployed
TrainedVotes    the same in training                          what ``harden`` makes a Votes of
"""

import ctypes
import json
import subprocess
from dataclasses import dataclass, replace
from importlib.resources import files
from typing import ClassVar

import numpy as np
import pytest
import torch

from gatefit import LogicGateClassifier
from gatefit.backends.aiger import from_aiger, to_aiger
from gatefit.backends.blif import from_blif, to_blif
from gatefit.backends.c.arduino import to_arduino
from gatefit.backends.c.native import NativeModel
from gatefit.backends.dot import to_dot
from gatefit.backends.html import to_html
from gatefit.backends.json_export import from_json, to_json
from gatefit.backends.verilog import to_testbench, to_verilog
from gatefit.circuit import simulate
from gatefit.circuit.container import CircuitFileError
from gatefit.circuit.engine import Engine
from gatefit.circuit.ir import Circuit
from gatefit.circuit.lower_readout import lower_readout
from gatefit.circuit.optimise import optimise
from gatefit.circuit.passes import PASSES
from gatefit.circuit.prove import Counterexample, Equivalent, prove
from gatefit.circuit.prove.certificate import check_certificate
from gatefit.circuit.readout import Readout, Sums, Tensor
from gatefit.circuit.statistics import statistics
from gatefit.gates import Gate
from gatefit.harden import harden
from gatefit.network import LogicNetwork
from gatefit.readouts import Readout as TrainedReadout
from strategies import all_patterns, layered_circuit, random_circuit
from tools import require_tool


@dataclass(frozen=True, eq=False)
class Votes(Readout):
    groups: np.ndarray
    weights: np.ndarray
    classes: int

    kind = "votes"
    temperature = 8.0
    tensors: ClassVar = {"groups": Tensor("I32", 1), "weights": Tensor("I64", 1)}
    numbers: ClassVar = {"classes": int}

    @property
    def outputs(self):
        return len(self.groups)

    def sums(self):
        return Sums(np.zeros(self.classes, np.int64), self.groups, np.arange(self.outputs), self.weights)


class TrainedVotes(TrainedReadout):
    def __init__(self, gates, classes):
        super().__init__()
        self.gates, self.classes, self.groups = gates, classes, None
        votes = torch.zeros(gates, classes)
        votes[torch.arange(gates), torch.arange(gates) % classes] = (1 + torch.arange(gates) % 3).float()
        self.register_buffer("votes", votes)

    def from_sums(self, sums):
        return sums @ self.votes / Votes.temperature

    def harden(self):
        weights, groups = self.votes.max(dim=1)
        return Votes(groups.int().numpy(), weights.long().numpy(), self.classes)


def voted(circuit, rng, classes=3):
    """The circuit, read by votes of weights from -4 to 4."""
    outputs = circuit.outputs.size
    return replace(circuit, readout=Votes(rng.integers(0, classes, outputs), rng.integers(-4, 5, outputs), classes))


def random_voted(seed, **options):
    rng = np.random.default_rng(seed)
    return voted(random_circuit(rng, **options), rng)


LARGER = voted(layered_circuit(np.random.default_rng(0), 30, 90, 3), np.random.default_rng(1))


def test_scores_are_what_the_definition_says():
    readout = Votes(np.array([0, 1, 0]), np.array([2, -1, 3]), 2)
    assert readout.scores(all_patterns(3)).tolist() == [
        [2 * a + 3 * c, -b] for a, b, c in all_patterns(3).astype(int).tolist()
    ]
    assert readout.probabilities(np.array([[0, 0]])).tolist() == [[0.5, 0.5]]


@pytest.mark.parametrize("optimisation", PASSES, ids=lambda p: p.__name__)
def test_every_pass(optimisation):
    for seed in range(30):
        circuit = random_voted(seed)
        bits, changed = all_patterns(circuit.inputs), optimisation(circuit)
        np.testing.assert_array_equal(simulate.scores(changed, bits), simulate.scores(circuit, bits))


def test_optimise_and_prove(tmp_path):
    smaller, _ = optimise(LARGER)
    assert smaller.gates.size < LARGER.gates.size
    folder = tmp_path / "certificate"
    assert isinstance(prove(LARGER, smaller, certificate=folder), Equivalent)
    assert check_certificate(folder, LARGER, smaller).steps > 0
    readout = LARGER.readout
    heavier = replace(LARGER, readout=replace(readout, weights=readout.weights + 1))
    assert isinstance(prove(LARGER, heavier), Counterexample)


@pytest.mark.parametrize("samples", [1, 63, 64, 65, 512, 1300])
def test_the_engine(samples):
    rng = np.random.default_rng(samples)
    for circuit in (LARGER, random_voted(2, max_outputs=40), optimise(LARGER)[0]):
        bits = rng.random((samples, circuit.inputs)) < 0.5
        engine = Engine(circuit)
        np.testing.assert_array_equal(engine.scores(bits), simulate.scores(circuit, bits))
        np.testing.assert_array_equal(engine.predict(bits), simulate.predict_classes(circuit, bits))


def test_files_need_its_class(tmp_path):
    path = tmp_path / "votes.gate"
    LARGER.save(path)
    message = (
        r"the readout's kind is 'votes'; known are group_sum, .*; if it is a kind of your own, pass its class: read"
    )
    with pytest.raises(CircuitFileError, match=message):
        Circuit.load(path)
    with pytest.raises(CircuitFileError, match=message):
        from_json(to_json(LARGER))
    for back in (Circuit.load(path, readouts=[Votes]), from_json(to_json(LARGER), readouts=[Votes])):
        assert isinstance(back.readout, Votes)
        assert to_json(back) == to_json(LARGER)
    with pytest.raises(TypeError, match="readouts must be subclasses of Readout, got <class 'int'>"):
        Circuit.load(path, readouts=[int])


@pytest.mark.parametrize("style", ["straight", "table"])
def test_c(style):
    for circuit in (*(random_voted(seed) for seed in range(3)), lower_readout(random_voted(7))):
        bits = all_patterns(circuit.inputs)
        model = NativeModel(circuit, style, ("-O1", "-Wall", "-Wextra", "-Werror"), require_tool("gcc"))
        expected = simulate.scores(circuit, bits)
        np.testing.assert_array_equal(model.scores(bits), expected)
        np.testing.assert_array_equal(model.scores_one_by_one(bits), expected)
        np.testing.assert_array_equal(model.predict(bits), expected.argmax(axis=1))
        assert model.self_test() == 0


def test_arduino(tmp_path):
    circuit = random_voted(3, max_outputs=20)
    for name, content in to_arduino(circuit, vectors=all_patterns(circuit.inputs)).items():
        (tmp_path / name).write_text(content)
    command = [require_tool("gcc"), "-std=c99", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]
    subprocess.run([*command, str(tmp_path / "model_model.c"), "-o", str(tmp_path / "model.so")], check=True)
    assert ctypes.CDLL(str(tmp_path / "model.so")).model_self_test() == 0


@pytest.mark.parametrize("stages", [0, 3])
def test_verilog(tmp_path, stages):
    circuit = LARGER if stages else random_voted(4, max_outputs=12)
    bits = np.random.default_rng(0).random((200, circuit.inputs)) < 0.5
    (tmp_path / "model.v").write_text(to_verilog(circuit, pipeline_stages=stages))
    (tmp_path / "bench.v").write_text(to_testbench(circuit, bits, pipeline_stages=stages))
    compiled = [require_tool("iverilog"), "-g2001", "-Wall", "-Wno-timescale", "-o", "program", "model.v", "bench.v"]
    said = subprocess.run(compiled, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert said.stderr == ""
    run = subprocess.run(
        [require_tool("vvp"), "-n", "program"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert run.stdout == "PASS: 200 vectors\n"
    lint = [require_tool("verilator"), "--lint-only", "-Wall", "--top-module", "gatefit", "model.v"]
    assert subprocess.run(lint, cwd=tmp_path, capture_output=True, text=True, check=False).stderr == ""


def test_netlists_carry_the_whole_model():
    like = lower_readout(LARGER)
    for back in (
        from_aiger(to_aiger(LARGER, binary=True, readout="gates"), like=like),
        from_blif(to_blif(LARGER, readout="gates"), like=like),
        from_blif(to_blif(LARGER), like=LARGER),
    ):
        assert isinstance(prove(LARGER, back), Equivalent)


def test_a_drawing_and_what_it_costs():
    circuit = Circuit(2, [Gate.AND], [[0], [1]], [2, 0], Votes(np.array([0, 1]), np.array([3, -2]), 2))
    text = to_dot(circuit)
    assert '"0 (weighted)"' in text
    assert "g0 -> s0;" in text
    assert "x0 -> s1;" in text
    cost = statistics(LARGER).readout
    assert (cost.comparators, cost.multiplications) == (2, 0)
    assert lower_readout(LARGER).gates.size <= statistics(LARGER).live_gates + cost.gates


def test_a_page_computes_it(tmp_path):
    circuit = random_voted(5, max_outputs=10)
    html = to_html(circuit)
    model = html.split('id="model">')[1].split("</script>")[0]
    script = (tmp_path / "run.js").resolve()
    source = (files("gatefit.backends.html") / "assets" / "bits.js").read_text(encoding="utf-8")
    bits = all_patterns(circuit.inputs).astype(int).tolist()
    script.write_text(
        f"{source}\nconst circuit = new Circuit({model});\n"
        f"const scores = {json.dumps(bits)}.map((bits) => Array.from(circuit.readout.lanes(circuit.run(bits), "
        "new Float64Array(circuit.readout.classes), 1)));\nconsole.log(JSON.stringify(scores));\n"
    )
    run = subprocess.run([require_tool("node"), str(script)], capture_output=True, text=True, check=True)
    assert json.loads(run.stdout) == simulate.scores(circuit, all_patterns(circuit.inputs)).tolist()


def test_a_network_trains_with_it_and_hardens_to_it():
    network = LogicNetwork(inputs=12, classes=3, width=30, depth=2, readout=TrainedVotes(30, 3), seed=0)
    x = (torch.rand(64, 12, generator=torch.Generator().manual_seed(0)) < 0.5).float()
    target = x[:, :3].argmax(dim=1)
    optimiser = torch.optim.Adam(network.parameters(), lr=0.05)
    losses = []
    for _ in range(30):
        optimiser.zero_grad()
        loss = torch.nn.functional.cross_entropy(network.train()(x), target)
        loss.backward()
        optimiser.step()
        losses.append(float(loss.detach()))
    assert losses[-1] < losses[0]
    circuit = harden(network)
    assert isinstance(circuit.readout, Votes)
    with torch.no_grad():
        deployed = network.eval()(x)
    assert (circuit.scores(x.numpy()) / Votes.temperature).tolist() == deployed.tolist()
    assert isinstance(prove(circuit, optimise(circuit)[0]), Equivalent)


def test_the_estimator_takes_it():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 4))
    y = np.array(["low", "middle", "high"])[(x[:, 0] > 0).astype(int) + (x[:, 1] > 0)]
    model = LogicGateClassifier(readout=TrainedVotes, width=60, depth=2, steps=150, random_state=0).fit(x, y)
    assert isinstance(model.circuit_.readout, Votes)
    assert model.score(x, y) > 0.7
    assert model.circuit_.predict(x).tolist() == model.predict(x).tolist()


def test_a_readout_that_says_nothing_says_what_it_lacks():
    class Silent(Votes):
        kind = "silent"

        def sums(self):
            return None

    with pytest.raises(TypeError, match=r"says neither sums\(\) nor scores of its own; give its class sums\(\), or"):
        Silent(np.array([0, 1]), np.array([1, 1]), 2).scores(all_patterns(2))
