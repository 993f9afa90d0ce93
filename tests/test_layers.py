"""Networks of layers: widths, skips, votes, shared gates, and layers, wirings and readouts of the user's own."""

import numpy as np
import pytest
import torch
from torch import nn

from gatefit.circuit import readout as deployed_readouts
from gatefit.circuit.builder import CircuitBuilder
from gatefit.circuit.simulate import scores as simulated_scores
from gatefit.diagnostics.batch import ProbeBatch
from gatefit.diagnostics.probe import probe
from gatefit.gates import Gate
from gatefit.harden import harden
from gatefit.layers import GateLayer
from gatefit.methods import METHODS, MultilinearCovJac
from gatefit.network import LogicNetwork
from gatefit.readouts import Readout
from gatefit.wirings import Wiring
from test_how_to_add import Either

BOOLEAN = [name for name in METHODS if "free" not in name]
INPUTS = 10


def bits(samples=150, inputs=INPUTS, seed=0):
    return torch.rand(samples, inputs, generator=torch.Generator().manual_seed(seed)) < 0.5


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


class Inverted(GateLayer):
    """Gates whose outputs are inverted: a layer of gatefit's, changed."""

    def forward(self, x):
        return 1 - super().forward(x)

    def lower(self, builder, inputs):
        nodes = super().lower(builder, inputs)
        return builder.gates(np.full(self.outputs, Gate.NOT_A), np.stack([nodes, nodes]))


class Candidates(Wiring):
    """Each gate reads the best scored of four candidates; in training straight through a mixture of them."""

    learns = True

    def __init__(self, context):
        super().__init__()
        self.inputs, self.gates = context.inputs, context.gates
        shape = (2, context.gates, 4)
        self.register_buffer("candidates", torch.randint(context.inputs, shape, generator=context.generator))
        self.scores = nn.Parameter(torch.randn(shape, generator=context.generator))

    def committed(self):
        best = self.scores.argmax(-1, keepdim=True)
        return self.candidates.gather(-1, best).squeeze(-1).int()

    def read(self, x):
        mixture = torch.softmax(self.scores, -1)
        soft = (x.float()[:, self.candidates] * mixture).sum(-1)
        hard = x[:, self.committed().long()]
        return (soft + (hard - soft).detach()).unbind(1)


class Margin(Readout):
    """Two classes: twice the ones among the first half of the gates, against those among the second half."""

    def __init__(self, gates):
        super().__init__()
        self.gates, self.classes, self.groups = gates, 2, 2
        self.slope = nn.Parameter(torch.tensor(0.3))

    def from_sums(self, sums):
        return sums * torch.tensor([2.0, 1.0]) * self.slope

    def deployed_from_sums(self, sums):
        return sums * torch.tensor([2.0, 1.0])

    def harden(self):
        half = self.gates // 2
        weights = np.zeros((2, self.gates), dtype=np.float32)
        weights[0, :half], weights[1, half:] = 2, 1
        return deployed_readouts.Linear(weights, np.zeros(2, dtype=np.float32))


class Averse(MultilinearCovJac):
    """A method of the user's own."""

    name = "averse"

    def coefficients(self):
        return 0.9 * super().coefficients()


def stacked(**options):
    """Gates, pooling, gates: the second layer is of the user's own."""
    layers = [
        GateLayer(INPUTS, 40, generator=generator(1), **options),
        Either(40),
        GateLayer(20, 30, generator=generator(2), method="multilinear-ste"),
    ]
    return LogicNetwork(layers=layers, classes=3)


NETWORKS = {
    "a list of widths": lambda: LogicNetwork(INPUTS, 3, [40, 24, 30]),
    "a list of widths, single gates": lambda: LogicNetwork(INPUTS, 3, [40, 24, 30], method="gumbel-st"),
    "skips": lambda: LogicNetwork(INPUTS, 3, [30, 30, 30], reads=[[0], [1, 0], [1, 2]]),
    "all vote": lambda: LogicNetwork(INPUTS, 3, [30, 15, 30], votes="all"),
    "all vote, single gates": lambda: LogicNetwork(INPUTS, 3, 30, 3, votes="all", method="multilinear-ste"),
    "some vote, linear": lambda: LogicNetwork(INPUTS, 3, 30, 3, votes=[1, 3], readout="linear"),
    "skips and votes": lambda: LogicNetwork(INPUTS, 3, 30, 3, reads=[[0], [0], [2, 1]], votes=[2, 3]),
    "layers": lambda: LogicNetwork(
        layers=[GateLayer(INPUTS, 40, generator=generator()), GateLayer(40, 30, generator=generator())], classes=3
    ),
    "shared gates": lambda: LogicNetwork(
        layers=[
            GateLayer(INPUTS, 40, owners=torch.arange(40) % 7, generator=generator()),
            GateLayer(40, 30, owners=torch.arange(30) // 2, generator=generator(), method="multilinear-ste"),
        ],
        classes=3,
    ),
    "own layer": stacked,
    "own gates": lambda: LogicNetwork(layers=[Inverted(INPUTS, 30, generator=generator())], classes=3),
    "own method": lambda: LogicNetwork(INPUTS, 3, 30, 2, method=Averse),
    "own wiring": lambda: LogicNetwork(INPUTS, 3, [40, 30], wiring=Candidates),
    "own wiring, single gates": lambda: LogicNetwork(INPUTS, 3, [40, 30], wiring=Candidates, method="multilinear-ste"),
    "own readout": lambda: LogicNetwork(INPUTS, 2, [40, 30], readout=Margin(30)),
    "own readout, votes": lambda: LogicNetwork(INPUTS, 2, [40, 30], readout=Margin(70), votes="all"),
}
OWN = {
    "own layer": lambda: {"layers": [*stacked().layers]},
    "own gates": lambda: {"layers": [Inverted(INPUTS, 30, generator=generator(1))]},
    "own method": lambda: {"method": Averse},
    "own wiring": lambda: {"wiring": Candidates},
    "own wiring, single gates": lambda: {"wiring": Candidates},
    "own readout": lambda: {"readout": Margin(30)},
    "own readout, votes": lambda: {"readout": Margin(70)},
}


@pytest.mark.parametrize("name", NETWORKS)
def test_eval_is_the_circuit_that_harden_makes(name):
    network, x = NETWORKS[name]().eval(), bits()
    found = network(x).detach()
    expected = simulated_scores(harden(network), x.numpy())
    scale = getattr(network.readout, "temperature", 1.0) if name.split(",")[-1] != " linear" else 1.0
    np.testing.assert_allclose(found.numpy() * scale, expected, rtol=1e-5)


@pytest.mark.parametrize("name", NETWORKS)
def test_a_network_learns_saves_and_is_made_again(name):
    network, x = NETWORKS[name](), bits()
    target = (x[:, 0] ^ (x[:, 1] & x[:, 2])).long()
    before = {key: value.clone() for key, value in network.named_parameters()}
    optimiser = torch.optim.Adam(network.parameters(), lr=0.05)
    losses = []
    for _ in range(60):
        loss = nn.functional.cross_entropy(network(x), target)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(float(loss.detach()))
    assert np.mean(losses[-10:]) < np.mean(losses[:5])
    assert all(not torch.equal(value, before[key]) for key, value in network.named_parameters())
    state = {key: value.clone() for key, value in network.state_dict().items()}
    again = LogicNetwork.from_state_dict(state, **OWN.get(name, dict)())
    assert again.configuration == network.configuration
    for key, value in state.items():
        assert torch.equal(again.state_dict()[key], value), key
    assert torch.equal(again.eval()(x), network.eval()(x))
    other = NETWORKS[name]()
    other.load_state_dict(state)
    assert torch.equal(other.eval()(x), network(x))


@pytest.mark.parametrize("name", NETWORKS)
def test_layer_by_layer_gives_the_same_scores_and_gradients(name):
    network, x = NETWORKS[name]().double(), bits()
    if "gumbel" in str(network.configuration):
        pytest.skip("noise is drawn anew by every pass")
    results = []
    for scores in (lambda: network(x), lambda: network.layer_by_layer(x), lambda: network(x.double())):
        network.zero_grad()
        found = scores()
        found.square().sum().backward()
        results.append([found.detach(), *(parameter.grad.clone() for parameter in network.parameters())])
    for other in results[1:]:
        for one, two in zip(results[0], other, strict=True):
            torch.testing.assert_close(one, two, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", NETWORKS)
def test_diagnostics_read_any_network(name):
    network, x = NETWORKS[name](), bits()
    target = torch.zeros(len(x), dtype=torch.int64)
    before = {key: value.clone() for key, value in network.state_dict().items()}
    found = probe(network, [ProbeBatch(x, lambda scores: nn.functional.cross_entropy(scores, target))])
    layers = len(network.gate_layers)
    assert layers == (2 if name == "own layer" else network.depth)
    for diagnostic in ("gradient_norms", "survival", "coverage", "census"):
        whole = found[diagnostic]
        assert len((whole.get("effective") or whole)["by_layer"]) == layers, diagnostic
    assert all(torch.equal(value, before[key]) for key, value in network.state_dict().items())


def plain_forward(network, x):
    """Skips and votes by the book."""
    outputs = [x]
    for layer, sources in network.wired_layers:
        read = torch.cat([outputs[source] for source in sources], dim=1)
        a, b = (read[:, nodes.long()] for nodes in layer.wiring.committed())
        c = layer.method.coefficients()
        outputs.append(c[:, 0] + c[:, 1] * a + c[:, 2] * b + c[:, 3] * a * b)
    scores = sum(
        outputs[source].unflatten(1, (network.classes, -1)).sum(-1) for source in network.votes
    )  # every class has a group in every layer that votes
    return scores / network.readout.temperature


@pytest.mark.parametrize("name", ["a list of widths", "skips", "all vote", "skips and votes"])
def test_sources_and_votes_are_those_named(name):
    network, x = NETWORKS[name]().double(), bits()
    torch.testing.assert_close(network(x), plain_forward(network, x.double()), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("votes", ["last", "all"])
@pytest.mark.parametrize("method", BOOLEAN)
def test_unequal_layers_go_through_the_compiled_stack(method, votes, monkeypatch):
    networks = [
        LogicNetwork(INPUTS, 3, [30, 15, 15, 24], votes=votes, method=method, dtype=torch.float64, implementation=each)
        for each in ("numba", "reference")
    ]
    x = bits()
    monkeypatch.setattr(LogicNetwork, "layer_by_layer", None)
    results = []
    for network in networks:
        scores = network(x)
        (scores * torch.linspace(-1, 1, scores.numel(), dtype=torch.float64).view_as(scores)).sum().backward()
        results.append([scores.detach(), *(p.grad for p in network.parameters()), network.eval()(x).detach()])
    for one, two in zip(*results, strict=True):
        torch.testing.assert_close(one, two, rtol=1e-9, atol=1e-9)


def test_shared_gates_have_the_gradient_of_all_their_places():
    owners = torch.arange(30) % 5
    shared = GateLayer(INPUTS, 30, owners=owners, generator=generator(), dtype=torch.float64)
    alone = GateLayer(INPUTS, 30, wiring=shared.wiring, generator=generator(), dtype=torch.float64)
    alone.method.latent.data = shared.method.latent.data[owners]
    x = bits()
    for layer in (shared, alone):
        LogicNetwork(layers=[layer], classes=3).double()(x).square().sum().backward()
    expected = torch.zeros_like(shared.method.latent).index_add(0, owners, alone.method.latent.grad)
    torch.testing.assert_close(shared.method.latent.grad, expected, rtol=1e-10, atol=1e-10)


def test_states_of_before_wirings_were_modules_are_read():
    network = LogicNetwork(INPUTS, 3, 30, 2, seed=4, wiring_seed=4)
    older = {key.removesuffix(".pairs"): value for key, value in network.state_dict().items()}
    assert "layers.0.wiring" in older
    for again in (LogicNetwork.from_state_dict(older), LogicNetwork(INPUTS, 3, 30, 2)):
        again.load_state_dict(older)
        assert torch.equal(again.layers[1].wiring.committed(), network.layers[1].wiring.committed())
        assert torch.equal(again.soft_scores(bits()), network.soft_scores(bits()))


def test_a_learned_wiring_receives_gradients_and_is_deployed_as_committed():
    network, x = LogicNetwork(INPUTS, 3, 30, 2, wiring=Candidates), bits()
    network(x).square().sum().backward()
    assert all(layer.wiring.scores.grad.abs().sum() > 0 for layer in network.gate_layers)
    before = network.eval()(x)
    wiring = network.layers[0].wiring
    wiring.scores.data = wiring.scores.data.roll(1, dims=-1)
    assert not torch.equal(network(x), before)
    assert (network.layers[0].wiring.committed().numpy() == harden(network).operands[:, :30]).all()


def test_a_builder_numbers_gates_as_they_come():
    builder = CircuitBuilder(3)
    first = builder.gates(np.array([Gate.AND, Gate.XOR]), np.array([[0, 1], [1, 2]]))
    assert first.tolist() == [3, 4]
    assert builder.gates(np.array([Gate.OR]), first[:, None]).tolist() == [5]
    circuit = builder.circuit(np.array([5, 3]), deployed_readouts.GroupSum([0, 1], [0, 0]))
    assert circuit.operands.tolist() == [[0, 1, 3], [1, 2, 4]]
    for kinds, operands, message in (
        ([16], [[0], [1]], r"gate numbers are 0 to 15 .*, got 16 to 16"),
        ([1], [[0], [6]], r"gates read nodes 0 to 5 so far, got 0 to 6"),
        ([1], [[0, 1], [1, 0]], r"kinds \(n,\) and operands \(2, n\), got shapes \(1,\) and \(2, 2\)"),
    ):
        with pytest.raises(ValueError, match=message):
            builder.gates(np.array(kinds), np.array(operands))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: LogicNetwork(INPUTS, 3, 30), TypeError, r"needs inputs, classes, width, depth, .* got no depth"),
        (lambda: LogicNetwork(classes=3), TypeError, r"got no inputs and no width"),
        (lambda: LogicNetwork(INPUTS, 3, []), ValueError, r"at least one layer"),
        (lambda: LogicNetwork(INPUTS, 3, [30, 30], 3), ValueError, r"depth=3 needs as many widths, got 2"),
        (lambda: LogicNetwork(INPUTS, 3, [30, 31]), ValueError, r"the last width must be a multiple of 3 classes"),
        (lambda: LogicNetwork(INPUTS, 3, 30, 2, reads=[[0]]), ValueError, r"each of the 2 layers, got 1 entries"),
        (
            lambda: LogicNetwork(INPUTS, 3, 30, 2, reads=[[0], [2]]),
            ValueError,
            r"layer 2 reads sources .* got \[2\]",
        ),
        (lambda: LogicNetwork(INPUTS, 3, 30, 2, reads=[[0], [0]]), ValueError, r"nothing reads layer 1"),
        (lambda: LogicNetwork(INPUTS, 3, 30, 2, votes="most"), ValueError, r"'last', 'all' or the numbers .* 'most'"),
        (lambda: LogicNetwork(INPUTS, 3, 30, 2, votes=[3]), ValueError, r"votes names sources from 0 to 2"),
        (lambda: LogicNetwork(INPUTS, 3, [31, 32], votes="all"), ValueError, r"multiples of 3 classes, got \[31, 32\]"),
        (lambda: LogicNetwork(layers=[], classes=3), ValueError, r"at least one layer, got layers=\[\]"),
        (lambda: LogicNetwork(layers=[nn.Linear(3, 3)], classes=3), TypeError, r"gatefit.layers.Layer, got Linear"),
        (
            lambda: LogicNetwork(layers=[Either(8), Either(8)], classes=2),
            ValueError,
            r"layer 2 has 8 inputs, .*gives 4",
        ),
        (lambda: LogicNetwork(layers=[Either(8)], classes=2, width=4), TypeError, r"own sizes and methods, got width"),
        (lambda: LogicNetwork(layers=[Either(8)]), TypeError, r"needs the number of classes"),
        (
            lambda: LogicNetwork(8, 3, 30, 2, readout=Margin(30)),
            ValueError,
            r"30 gates and 2 classes, .* and 3 classes",
        ),
        (
            lambda: LogicNetwork(8, 3, 30, 2, wiring=stacked().layers[0].wiring),
            ValueError,
            r"one tensor a layer: got 1",
        ),
        (
            lambda: GateLayer(8, 4, owners=torch.zeros(3).int(), generator=generator()),
            ValueError,
            r"\(4,\), got \(3,\)",
        ),
        (lambda: GateLayer(8, 4, owners=torch.zeros(4), generator=generator()), TypeError, r"must hold integers"),
        (
            lambda: LogicNetwork.from_state_dict(stacked().state_dict()),
            ValueError,
            r"has a layer 'Either', which is not one of gates; give the layers",
        ),
        (
            lambda: LogicNetwork.from_state_dict(NETWORKS["own wiring"]().state_dict()),
            ValueError,
            r"a wiring of your own; give its class",
        ),
        (
            lambda: LogicNetwork.from_state_dict(NETWORKS["own readout"]().state_dict()),
            ValueError,
            r"of the readout 'Margin', which is not one of group-sum",
        ),
        (
            lambda: LogicNetwork.from_state_dict(NETWORKS["layers"]().state_dict(), readout=Margin(30)),
            ValueError,
            r"of the readout 'group-sum', got a Margin",
        ),
        (
            lambda: NETWORKS["layers"]().load_state_dict(NETWORKS["shared gates"]().state_dict()),
            ValueError,
            r"another configuration: layers .*",
        ),
    ],
)
def test_bad_input_is_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()
