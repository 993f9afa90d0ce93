"""A wiring that learns: what it commits to, watches and regrows, and that training with it ends with the same bits."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from gatefit import LogicGateClassifier
from gatefit.bits import PackedBatch, unpack
from gatefit.circuit.simulate import scores as simulated_scores
from gatefit.harden import harden
from gatefit.methods import MultilinearCovJac
from gatefit.network import LogicNetwork
from gatefit.training.config import RunConfig
from gatefit.training.data import PackedRows, TrainingData
from gatefit.training.loop import train
from gatefit.wirings import LearnedWiring, WiringOptions

METHODS = ["multilinear-covjac", "multilinear-ste", "soft-mix", "gumbel-st"]


def learned(method="multilinear-covjac", inputs=20, widths=(30, 30), votes="all", **options):
    return LogicNetwork(
        inputs, 3, list(widths), method=method, wiring="learned", votes=votes, wiring_options=WiringOptions(**options)
    )


def bits(samples=150, inputs=20, seed=0):
    return torch.rand(samples, inputs, generator=torch.Generator().manual_seed(seed)) < 0.5


def test_candidates_are_different_nodes_and_the_best_one_is_read():
    for inputs, count in ((9, 8), (8, 8), (500, 8), (40, 4)):
        (layer,) = learned(inputs=inputs, widths=(60,), votes="last", candidates=count).gate_layers
        nodes, scores = layer.wiring.candidates_and_scores()
        ordered = nodes.sort(2).values
        assert (ordered[..., 1:] > ordered[..., :-1]).all()
        assert (0 <= nodes.min()) & (nodes.max() < inputs)
        best = nodes.long().gather(2, scores.argmax(2)[..., None])[..., 0]
        assert torch.equal(layer.wiring.committed().long(), best)


@pytest.mark.parametrize("method", METHODS)
def test_the_compiled_stack_and_a_call_of_each_layer_agree(method):
    network, x = learned(method).double(), bits()
    if method == "gumbel-st":
        pytest.skip("noise is drawn anew by every pass")
    found = []
    for scores in (lambda: network(x), lambda: network.layer_by_layer(x)):
        network.zero_grad()
        result = scores()
        result.square().sum().backward()
        found.append([result.detach(), *(parameter.grad.clone() for parameter in network.parameters())])
    for one, two in zip(*found, strict=True):
        torch.testing.assert_close(one, two, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("method", METHODS)
def test_eval_is_the_circuit_that_harden_makes(method):
    network, x = learned(method).eval(), bits()
    with torch.no_grad():
        found = network(x) * network.readout.temperature
    np.testing.assert_allclose(found.numpy(), simulated_scores(harden(network), x.numpy()), rtol=1e-5)


@pytest.mark.parametrize("method", ["multilinear-covjac", "multilinear-ste"])
@pytest.mark.parametrize("implementation", ["numba", "reference"])
@pytest.mark.parametrize("sampled", [None, 7, 1])
def test_regrowth_takes_the_node_that_brute_force_finds(method, implementation, sampled):
    network, x = learned(method, regrow_share=1.0, regrow_every=1, regrow_pool=sampled).double(), bits()
    network.implementation = implementation
    target = torch.zeros(len(x), dtype=torch.int64)
    network.before_step(0, 10)
    before = [layer.wiring.candidates.clone() for layer in network.gate_layers]
    kept = [layer.wiring.scores.detach().clone() for layer in network.gate_layers]
    nn.functional.cross_entropy(network(x), target).backward()
    watch = network.watch
    assert sorted(watch.gradients) == [0, 1]
    network.after_step(torch.optim.Adam(network.parameters()))
    for number, layer in enumerate(network.gate_layers):
        pool, size = watch.pools[number], layer.inputs
        given = torch.from_numpy(unpack(pool)).double().T if isinstance(pool, PackedBatch) else pool
        offered = watch.nodes[number]
        assert len(given) == (sampled or size)
        values = torch.zeros(size, len(x), dtype=torch.float64)
        values[slice(None) if offered is None else offered] = given
        nodes, scores = before[number].flatten(0, 1), kept[number].flatten(0, 1)
        after, now = layer.wiring.candidates.flatten(0, 1), layer.wiring.scores.detach().flatten(0, 1)
        for row, gradient in zip(watch.inputs[number], watch.gradients[number], strict=True):
            sums = values @ gradient
            sums[nodes[row].long()] = torch.inf
            expected, slot = nodes[row].clone(), int(scores[row].argmin())
            if sums.min() < 0:
                expected[slot] = int(sums.argmin())
                assert now[row, slot] == scores[row].max() - 1
            assert torch.equal(after[row], expected)


def test_layers_that_are_called_one_by_one_regrow_too():
    made = []
    for by_layer in (False, True):
        network, x = learned(regrow_share=1.0, regrow_every=1).double(), bits()
        network.before_step(0, 10)
        scores = network.layer_by_layer(x) if by_layer else network(x)
        scores.square().sum().backward()
        network.after_step(torch.optim.Adam(network.parameters()))
        assert all(layer.note is None for layer in network.gate_layers)
        made.append([layer.wiring.candidates.clone() for layer in network.gate_layers])
    assert all(torch.equal(one, two) for one, two in zip(*made, strict=True))
    skipping = LogicNetwork(
        20, 3, 30, 2, reads=[[0], [0, 1]], wiring="learned", wiring_options=WiringOptions(regrow_every=1)
    )
    before = [layer.wiring.candidates.clone() for layer in skipping.gate_layers]
    skipping.before_step(0, 10)
    skipping(bits()).square().sum().backward()
    skipping.after_step(torch.optim.Adam(skipping.parameters()))
    assert all(
        not torch.equal(old, layer.wiring.candidates) for old, layer in zip(before, skipping.gate_layers, strict=True)
    )


def test_a_single_gradient_is_that_of_the_value_that_an_input_reads():
    network, x = learned(regrow_share=1.0, regrow_every=1).double(), bits(70)
    network.before_step(0, 10)
    (network(x) ** 2).sum().backward()
    noted = network.watch.gradients
    other = learned(regrow_share=1.0, regrow_every=1).double()
    other.implementation = "reference"
    other.before_step(0, 10)
    (other(x) ** 2).sum().backward()
    for layer in (0, 1):
        torch.testing.assert_close(noted[layer], other.watch.gradients[layer], rtol=1e-10, atol=1e-10)


def data():
    x = bits(600).numpy()
    y = torch.tensor(np.stack([x[:, :5].sum(1), x[:, 5:10].sum(1), x[:, 10:15].sum(1)]).argmax(0))
    return TrainingData(PackedRows(x), y, PackedRows(x[:100]), y[:100])


def config(**options):
    given = {"steps": 60, "batch_size": 130, "evaluate_every": 20, "learning_rate": 0.02, "score_learning_rate": 0.03}
    return RunConfig(dataset="custom", wiring="learned", **{**given, **options})


def parameters(network):
    return [value.clone() for value in network.state_dict().values()]


@pytest.mark.parametrize("method", METHODS)
def test_training_ends_with_the_same_bits_whatever_the_threads_and_where_it_was_stopped(method, tmp_path):
    options = {"regrow_every": 3, "regrow_share": 0.5}
    ends = []
    for threads in (1, 2):
        network = learned(method, **options)
        train(config(method=method), network, data(), threads=threads)
        ends.append(parameters(network))
    calls = []
    stopped = learned(method, **options)
    train(
        config(method=method), stopped, data(), folder=tmp_path, should_stop=lambda: len(calls) == 31 or calls.append(1)
    )
    resumed = learned(method, **options)
    train(config(method=method), resumed, data(), folder=tmp_path)
    ends.append(parameters(resumed))
    for end in ends[1:]:
        assert all(torch.equal(one, two) for one, two in zip(ends[0], end, strict=True))


def test_it_finds_the_few_inputs_that_matter_among_many():
    x = bits(2000, 300).numpy()
    y = torch.tensor(np.stack([x[:, :5].sum(1), x[:, 5:10].sum(1), x[:, 10:15].sum(1)]).argmax(0))
    sets = TrainingData(PackedRows(x[:1500]), y[:1500], PackedRows(x[1500:]), y[1500:])
    reached = {}
    for wiring in ("learned", "unique"):
        network = LogicNetwork(300, 3, [150, 150], wiring=wiring, votes="all")
        settings = config() if wiring == "learned" else RunConfig(dataset="custom", learning_rate=0.02, batch_size=130)
        result = train(replace(settings, steps=300, evaluate_every=300), network, sets, threads=1)
        reached[wiring] = result.state.metrics[-1]["test_hard"]
    assert reached["learned"] > reached["unique"] + 0.05


def test_few_inputs_have_as_many_candidates():
    network = learned(inputs=3, widths=(30, 30))
    assert [layer.wiring.candidates.shape[2] for layer in network.gate_layers] == [3, 8]
    network.before_step(0, 10)
    assert len(network.watch.inputs[0]) == 0  # All of its inputs are candidates already.


def test_an_estimator_learns_its_wiring():
    x = np.random.default_rng(0).normal(size=(400, 6))
    y = (x[:, 0] > 0) ^ (x[:, 1] > 0)
    model = LogicGateClassifier(wiring="learned", width=60, depth=2, steps=300, random_state=0).fit(x, y)
    assert model.score(x, y) > 0.9
    assert model.circuit_.predict(x).tolist() == model.predict(x).tolist()


def test_a_saved_network_is_made_again():
    network, x = learned(), bits()
    again = LogicNetwork.from_state_dict(network.state_dict())
    assert isinstance(again.gate_layers[0].wiring, LearnedWiring)
    assert torch.equal(again.eval()(x), network.eval()(x))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"candidates": 21},
            "each gate input chooses among candidates=1 to 20 nodes, as many as its layer can read; got 21",
        ),
        ({"candidates": 0}, "candidates=1 to 20 nodes"),
        ({"regrow_share": -0.1}, "regrow_share must be a number from 0 to 1, got -0.1"),
        ({"regrow_every": -1}, "regrow_every must be a number of steps >= 0, got -1"),
        ({"regrow_pool": 0}, "regrow_pool must be a number of nodes >= 1, got 0; regrow_every=0 never regrows"),
        (
            {"widths": (31, 32)},
            r"layers that vote together need widths that are multiples of 3 classes, got \[31, 32\]",
        ),
    ],
)
def test_what_cannot_be_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        learned(**options)


def test_regrowth_with_one_node_to_read_is_refused():
    with pytest.raises(
        ValueError, match="regrowth needs at least two nodes to choose among, got a layer that can read 1"
    ):
        learned(inputs=1)
    assert learned(inputs=1, regrow_every=0).gate_layers[0].wiring.committed().max() == 0


class Blind(MultilinearCovJac):
    """Gates that do not look at what they read: their output is a constant that is learned."""

    name = "blind"

    def coefficients(self):
        return super().coefficients() * torch.tensor([1.0, 0.0, 0.0, 0.0])


class Cut(MultilinearCovJac):
    """Gates whose output is cut off from what they read."""

    name = "cut"
    activation_name = None

    def activation(self, z):
        return (z > 0.5).to(z.dtype)


class Learnt(MultilinearCovJac):
    """The same, but for what the gates learn themselves."""

    name = "learnt"
    activation_name = None

    def activation(self, z):
        return (z > 0.5).to(z.dtype) + self.latent[:, 0]


@pytest.mark.parametrize("method", [Blind, Cut, Learnt])
def test_a_method_without_a_gradient_to_its_inputs_cannot_learn_its_wiring(method):
    network = LogicNetwork(20, 3, [30, 30], method=method, wiring="learned")
    with pytest.raises(ValueError, match=f"the method '{method.name}' gives no gradient to the inputs of its gates"):
        train(config(steps=3), network, data())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"score_learning_rate": 0.1}, "score_learning_rate is of the learned wiring, got wiring='unique'"),
        ({"candidates": 4}, "candidates is of the learned wiring, got wiring='unique'"),
        ({"wiring": "learned", "score_learning_rate": 0.0}, "score_learning_rate must be"),
        ({"votes": "some"}, "votes must be last or all, got 'some'"),
    ],
)
def test_a_configuration_that_cannot_be_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        RunConfig(dataset="custom", **options)


@pytest.mark.parametrize("write", ["regrown", "loaded"])
def test_gradients_are_of_the_candidates_that_are_there_now(write):
    """Kernels keep candidates laid out: after they changed, scores get the gradients of the new ones."""
    x = torch.rand(70, 30, generator=torch.Generator().manual_seed(0)) < 0.5
    networks = [
        LogicNetwork(30, 2, (40, 20), wiring="learned", seed=1, dtype=torch.float64, implementation=each)
        for each in ("numba", "reference")
    ]

    def gradients(network):
        network.zero_grad()
        network(x)[:, 0].sum().backward()
        return [layer.wiring.scores.grad.clone() for layer in network.gate_layers]

    before = [gradients(network) for network in networks]
    for network in networks:
        wiring = network.gate_layers[0].wiring
        if write == "loaded":
            state = network.state_dict()
            state["layers.0.wiring.candidates"] = (state["layers.0.wiring.candidates"] + 1) % 30
            network.load_state_dict(state)
            continue
        watched = np.arange(80)
        pool = torch.from_numpy(np.ascontiguousarray(x.T.double().numpy()))
        noise = torch.randn(80, 70, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
        assert wiring.regrow(watched, None, noise, pool, {}) > 40
    after = [gradients(network) for network in networks]
    for ours, reference in zip(*after, strict=True):
        torch.testing.assert_close(ours, reference, rtol=1e-10, atol=1e-12)
    assert not torch.equal(before[0][0], after[0][0])
