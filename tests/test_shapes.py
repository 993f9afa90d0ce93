"""Networks whose layers differ: widths, wirings and skips by layer, from the command line to a saved state."""

import json

import numpy as np
import pytest
import torch

from command_line import invoke
from gatefit.circuit.simulate import simulate
from gatefit.harden import harden
from gatefit.network import LogicNetwork
from gatefit.training.config import RunConfig
from gatefit.wirings import LearnedWiring, WiringContext, tree_wiring


def bits(samples=90, inputs=20):
    return torch.from_numpy(np.random.default_rng(3).random((samples, inputs)) < 0.5)


def test_a_tree_gives_every_gate_below_to_one_gate():
    pairs = tree_wiring(WiringContext(12, 6, torch.Generator()))
    assert pairs.tolist() == [[0, 2, 4, 6, 8, 10], [1, 3, 5, 7, 9, 11]]
    assert tree_wiring(WiringContext(6, 4, torch.Generator())).tolist() == [[0, 2, 3, 5], [1, 2, 4, 5]]
    for inputs in range(30, 61):
        pairs = tree_wiring(WiringContext(inputs, 30, torch.Generator()))
        assert [*range(inputs)] == sorted({*pairs.flatten().tolist()})
        assert ((pairs[1] - pairs[0]) <= 1).all()


@pytest.mark.parametrize(("widths", "inputs"), [([12, 6], 4), ([18, 12, 6], 6), ([30, 18, 12, 6], 10)])
def test_voters_of_a_tree_are_functions_of_few_inputs(widths, inputs):
    network, x = LogicNetwork(40, 3, widths, wiring=["learned", *["tree"] * (len(widths) - 1)]), bits(inputs=40)
    below, *above = network.gate_layers
    assert isinstance(below.wiring, LearnedWiring)
    assert not any(layer.wiring.learns for layer in above)
    cones = [{*pair} for pair in below.wiring.committed().T.tolist()]
    for layer in above:
        cones = [cones[one] | cones[two] for one, two in layer.wiring.committed().T.tolist()]
    circuit = harden(network)
    given, rng = simulate(circuit, x.numpy()), np.random.default_rng(5)
    for voter, own in enumerate(cones):
        assert len(own) <= inputs
        other = rng.random(x.shape) < 0.5
        other[:, [*own]] = x.numpy()[:, [*own]]
        assert np.array_equal(simulate(circuit, other)[:, voter], given[:, voter])


@pytest.mark.parametrize(
    "options",
    [
        {"wiring": "learned,tree"},
        {"wiring": ["learned", "tree"]},
        {"wiring": "unique,learned", "skips": "inputs"},
        {"wiring": "learned", "skips": "all", "votes": "all"},
    ],
)
def test_a_saved_network_is_made_again(options):
    network, x = LogicNetwork(20, 3, [24, 12], **options), bits()
    network.before_step(0, 10)
    network(x).square().sum().backward()
    network.after_step(torch.optim.Adam(network.parameters()))
    again = LogicNetwork.from_state_dict(network.state_dict())
    assert again.configuration == network.configuration
    assert [type(layer.wiring) for layer in again.gate_layers] == [type(layer.wiring) for layer in network.gate_layers]
    assert torch.equal(again.eval()(x), network.eval()(x))


def test_skips_name_what_layers_read():
    options = {"wiring": "learned", "votes": "last"}
    inputs = LogicNetwork(20, 3, [24, 24, 12], skips="inputs", **options)
    everything = LogicNetwork(20, 3, [24, 24, 12], skips="all", **options)
    assert inputs.reads == ((0,), (0, 1), (0, 2))
    assert everything.reads == ((0,), (0, 1), (0, 1, 2))
    assert everything.gate_layers[2].inputs == 20 + 24 + 24


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"width": [12, 15]}, "15 gates serve 15 to 30 nodes, layer 2 can read 12; use 6 to 12 gates, and no skips"),
        ({"width": [13, 6]}, "6 gates serve 6 to 12 nodes, layer 2 can read 13; use 7 to 13 gates"),
        ({"skips": "inputs"}, "layer 2 can read 32"),
        ({"width": [16, 8]}, "the last width must be a multiple of 3 classes, got 8; use width=6 or 9"),
        ({"wiring": "learned,tree,tree"}, "2 layers need one wiring for all or 2 of them, got 3: learned,tree,tree"),
        ({"wiring": "learned,treee"}, "unknown wiring 'treee'; choose one of .*; did you mean tree\\?"),
        ({"skips": "input"}, "skips is 'inputs', 'all' or None, got 'input'; did you mean 'inputs'\\?"),
    ],
)
def test_shapes_that_cannot_be_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        LogicNetwork(20, 3, **{"width": [12, 6], "wiring": "learned,tree", **options})


def test_reads_and_skips_are_two_ways_to_say_one_thing():
    with pytest.raises(TypeError, match="skips and reads both say what layers read; give one of them"):
        LogicNetwork(20, 3, 12, 2, reads=[[0], [0, 1]], skips="inputs")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"widths": "20,x"}, "widths are numbers of gates layer by layer, as 2000,1000; got '20,x'"),
        ({"widths": "20,,10"}, "widths are numbers of gates"),
        ({"widths": "20,0"}, "widths are numbers of gates"),
        ({"widths": (20, -10)}, "widths are numbers of gates layer by layer, as 2000,1000; got '20,-10'"),
        ({"widths": "20,10", "width": 20}, "widths name the gates of every layer, got width=20 too"),
        ({"widths": "20,10", "depth": 3}, "widths=20,10 are 2 layers, got depth=3 too; leave depth out"),
        ({"widths": "20,10", "wiring": "learned,tree,tree"}, "2 layers need one wiring for all or 2 of them, got 3"),
        ({"wiring": "learned,tree"}, "6 layers need one wiring for all or 6 of them, got 2: learned,tree"),
        ({"skips": "input"}, r"skips must be inputs or all, got 'input'; did you mean inputs\?"),
    ],
)
def test_configurations_that_cannot_be_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        RunConfig(dataset="custom", **options)


def test_widths_say_the_depth_and_older_runs_keep_their_names():
    config = RunConfig(widths=(200, 100), wiring=["learned", "tree"], candidates=4)
    assert (config.widths, config.depth, config.wiring) == ("200,100", 2, "learned,tree")
    assert config.layer_widths == (200, 100)
    assert config == RunConfig(widths="200, 100", wiring="learned, tree", candidates=4).resolved()
    assert RunConfig.from_dict(json.loads(config.to_json())) == config
    assert config.identity != RunConfig(width=200, depth=2).identity
    assert RunConfig().identity == RunConfig(widths=None, skips=None).identity == "44136fa355b3"
    assert RunConfig(width=40, depth=3).layer_widths == (40, 40, 40)


def test_the_command_line_trains_and_resumes_them(tmp_path):
    options = ["train", "--dataset", "iris", "--widths", "24,12", "--wiring", "learned,tree", "--json", "--quiet"]
    options += ["--steps", "20", "--evaluate-every", "10", "--candidates", "4", "--out", str(tmp_path / "run")]
    content = invoke(*options).json
    assert content["network"]["widths"] == [24, 12]
    assert content["config"]["depth"] == 2
    again = invoke("train", "--resume", tmp_path / "run", "--json").json
    assert again["results"] == content["results"]
    refused = invoke(*options[:-2], "--depth", "2", "--out", tmp_path / "other")
    assert refused.code == 2
    assert "--widths says how many layers there are, got --depth too; leave --depth out" in refused.err
    assert not (tmp_path / "other").exists()
