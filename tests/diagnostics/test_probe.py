"""The probe: all diagnostics together, the same bits every time, and no trace in the network."""

import json

import numpy as np
import pytest
import torch

from gatefit.bits import pack
from gatefit.diagnostics.batch import ProbeBatch
from gatefit.diagnostics.probe import DIAGNOSTICS, probe
from gatefit.methods import METHODS
from gatefit.network import LogicNetwork
from gatefit.ops.threads import kernel_threads, training_threads
from gatefit.paper.baselines import mlp
from numpy_network import batch, bits, noise_states, small

BATCHES = [batch(samples, seed)[0] for samples, seed in ((70, 0), (33, 1))]


@pytest.mark.parametrize("method", METHODS)
def test_every_diagnostic_is_there_and_can_be_written(method):
    found = probe(small(method), BATCHES)
    assert list(found) == list(DIAGNOSTICS)
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    missing = {name for name, value in found.items() if value is None}
    assert missing == ({"entropy", "census", "survival"} if method.endswith("-free") else set())
    for value in found.values():
        layers = value and value.get("by_layer")
        assert not layers or len(layers) == 3


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("training", [True, False])
def test_a_probe_leaves_no_trace(method, training):
    network = small(method).train(training)
    for parameter in network.parameters():
        parameter.grad = torch.full_like(parameter, 7.0)
    gradients = [parameter.grad for parameter in network.parameters()]
    before = {name: value.clone() for name, value in network.state_dict().items()}
    noise, generator, threads = (
        noise_states(network),
        torch.get_rng_state(),
        (torch.get_num_threads(), kernel_threads()),
    )
    with torch.no_grad():
        first = probe(network, BATCHES)
    assert probe(network, BATCHES) == first
    assert network.training is training
    assert all(torch.equal(value, before[name]) for name, value in network.state_dict().items())
    for parameter, gradient in zip(network.parameters(), gradients, strict=True):
        assert parameter.grad is gradient
        assert bool((gradient == 7).all())
    assert all(torch.equal(one, other) for one, other in zip(noise, noise_states(network), strict=True))
    assert torch.equal(generator, torch.get_rng_state())
    assert threads == (torch.get_num_threads(), kernel_threads())


def test_the_noise_is_put_back_after_an_error():
    network = small("gumbel-st")
    before = noise_states(network)

    def failing(scores):
        assert not torch.equal(noise_states(network)[1], before[1])
        raise KeyError("the loss")

    with pytest.raises(KeyError, match="the loss"):
        probe(network, [ProbeBatch(BATCHES[0].x, failing)])
    assert all(torch.equal(one, other) for one, other in zip(before, noise_states(network), strict=True))


def test_names_choose_and_change_nothing():
    for method in ("gumbel-st", "multilinear-covjac"):
        network = small(method)
        whole = probe(network, BATCHES)
        for name in DIAGNOSTICS:
            assert probe(network, BATCHES, names=[name]) == {name: whole[name]}
        assert list(probe(network, BATCHES, names=["coverage", "census"])) == ["coverage", "census"]
        assert probe(network, BATCHES, names=[]) == {}


@pytest.mark.parametrize("method", ["soft-mix", "multilinear-ste", "multilinear-covjac", "gumbel-st", "iwp-free"])
def test_the_number_of_threads_changes_no_bit(method):
    # Large enough for several threads to have work: torch shares sums of more than 32,768 numbers.
    network = LogicNetwork(300, 10, 40_000, 1, method=method)
    x, targets = pack(bits(192, inputs=300)), torch.arange(192) % 10
    batches = [ProbeBatch(x, lambda scores: torch.nn.functional.cross_entropy(scores, targets))]
    before, rows = torch.get_num_threads(), []
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            rows.append(probe(network, batches))
            with training_threads(threads):
                rows.append(probe(network, batches))
    finally:
        torch.set_num_threads(before)
    assert all(row == rows[0] for row in rows)


@pytest.mark.parametrize("method", METHODS)
def test_packed_bits_are_the_same_bits(method):
    network = small(method)
    packed = [ProbeBatch(pack(np.asarray(one.x)), one.loss) for one in BATCHES]
    assert probe(network, packed) == probe(network, BATCHES)


def test_readouts_do_not_matter_to_it():
    for options in ({"readout": "linear"}, {"readout": "regression"}):
        classes = 1 if options["readout"] == "regression" else 3
        network = LogicNetwork(8, classes, 24, 2, **options)
        found = probe(network, [ProbeBatch(torch.tensor(bits(40)), lambda scores: scores.square().mean())])
        assert found["gradient_norms"]["c_0"] > 0


def test_a_network_without_gates_has_no_diagnostics():
    assert probe(mlp(8, 3, depth=1, width=4), BATCHES) == {}


def test_bad_input_is_refused():
    with pytest.raises(ValueError, match=r"unknown diagnostic 'entropi'; choose from gradient_norms, commitment"):
        probe(small("soft-mix"), BATCHES, names=["entropi"])
    with pytest.raises(ValueError, match="a probe needs at least one batch"):
        probe(small("soft-mix"), [])
    with pytest.raises(ValueError, match="the network reads 8 bits a sample, got 9"):
        probe(small("soft-mix"), [ProbeBatch(torch.tensor(bits(4, inputs=9)), torch.sum)], names=["survival"])
