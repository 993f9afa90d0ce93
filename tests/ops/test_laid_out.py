"""Parameters in one piece of memory: the same bits, and nobody who looks at one of them sees another thing."""

import copy

import numpy as np
import pytest
import torch

from gatefit.bits import pack
from gatefit.methods import METHODS
from gatefit.network import LogicNetwork
from gatefit.ops.adam import Adam
from gatefit.ops.laid_out import laid_out
from gatefit.ops.threads import training_threads
from gatefit.training.loop import loss_of

RNG = np.random.default_rng(0)
X, TARGETS = pack(RNG.random((100, 40)) < 0.4), torch.from_numpy(RNG.integers(0, 10, 100))
TOGETHER = [name for name, method in METHODS.items() if method.independent_gates]


def latents(network):
    return [layer.method.latent for layer in network.gate_layers]


def in_one_piece(network):
    return len({latent.untyped_storage().data_ptr() for latent in latents(network)}) == 1


def learnt(network, steps=1):
    """Gradients of the last step, with Adam's between them, and parameters, as bytes."""
    optimiser = Adam(network.parameters(), lr=0.1)
    for _ in range(steps):
        network.zero_grad()
        if network.learn(X, TARGETS) is None:  # sigmoids above learned wires
            loss_of(network(X), TARGETS, None, network.implementation).backward()
        optimiser.step()
    return [tensor.detach().numpy().tobytes() for p in network.parameters() for tensor in (p.grad, p)]


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("fields", [{}, {"wiring": "learned", "votes": "all"}], ids=["fixed", "learned"])
def test_the_same_bits(method, fields, threads):
    apart, whole = (LogicNetwork(40, 10, 70, 3, method=method, seed=1, **fields) for _ in range(2))
    with training_threads(threads):
        expected = learnt(apart, 3)
        with whole.laid_out():
            assert in_one_piece(whole) == (method in TOGETHER)
            assert learnt(whole, 3) == expected
    assert not in_one_piece(whole)
    assert [p.detach().numpy().tobytes() for p in whole.parameters()] == expected[1::2]
    assert learnt(whole) == learnt(apart)


def test_wide_networks_are_computed_whole_too(monkeypatch):
    monkeypatch.setattr("gatefit.network.TOGETHER", 0)
    asked, together = [], METHODS["soft-mix"].together.__func__

    def noted(cls, methods, latent=None):
        asked.append(latent is not None)
        return together(cls, methods, latent)

    network = LogicNetwork(40, 10, 70, 3, method="soft-mix")
    with network.laid_out():
        monkeypatch.setattr(METHODS["soft-mix"], "together", classmethod(noted))
        learnt(network, 2)
    assert asked == [True, True]


def test_gradients_add_up_as_ever():
    network = LogicNetwork(40, 10, 70, 3, seed=1)
    with network.laid_out():
        network.learn(X, TARGETS)
        once = [parameter.grad.clone() for parameter in network.parameters()]
        network.learn(X, TARGETS)
        assert all(torch.equal(p.grad, 2 * one) for p, one in zip(network.parameters(), once, strict=True))


def test_autograd_finds_the_parameters_as_ever():
    network, other = (LogicNetwork(40, 10, 70, 3, seed=1) for _ in range(2))
    with network.laid_out():
        network(X).square().sum().backward()
        other(X).square().sum().backward()
        assert all(torch.equal(p.grad, q.grad) for p, q in zip(network.parameters(), other.parameters(), strict=True))


def test_who_listens_to_one_parameters_gradient_hears_it():
    network = LogicNetwork(40, 10, 70, 3, seed=1)
    expected = learnt(copy.deepcopy(network))
    for listen in ("register_hook", "register_post_accumulate_grad_hook"):
        other, heard = copy.deepcopy(network), []
        with other.laid_out():
            getattr(latents(other)[1], listen)(lambda found, heard=heard: heard.append(found.shape))
            assert learnt(other) == expected
        assert [tuple(shape) for shape in heard] == [(70, 4)]


def test_a_frozen_layer_stays_as_it_is():
    network = LogicNetwork(40, 10, 70, 3, seed=1)
    with network.laid_out():
        latents(network)[1].requires_grad_(False)
        network.learn(X, TARGETS)
        assert [latent.grad is None for latent in latents(network)] == [False, True, False]


def test_parameters_that_get_other_memory_are_those_that_count():
    network = LogicNetwork(40, 10, 70, 3, seed=1)
    with network.laid_out():
        latent = latents(network)[1]
        latent.data = latent.data + 1
        other = copy.deepcopy(network)
        assert learnt(network) == learnt(other)
        place = latent.data_ptr()
    assert latent.data_ptr() == place


def test_a_network_that_got_another_layer_is_computed_as_it_is():
    parameters = [torch.nn.Parameter(torch.ones(rows, 2)) for rows in (3, 1)]
    with laid_out(parameters) as found:
        assert found.leaf(parameters) is not None
        assert found.leaf(parameters[:1]) is None
        assert found.leaf(parameters[::-1]) is None


def test_a_copy_is_a_network_of_its_own():
    network = LogicNetwork(40, 10, 70, 3, seed=1)
    with network.laid_out():
        other = copy.deepcopy(network)
        before = [latent.detach().clone() for latent in latents(other)]
        learnt(network, 2)
        assert all(torch.equal(one, now) for one, now in zip(before, latents(other), strict=True))
        learnt(other, 2)
        assert all(torch.equal(*pair) for pair in zip(latents(network), latents(other), strict=True))


def test_memory_is_given_back_where_something_fails():
    parameters = [torch.nn.Parameter(torch.full((rows, 2), float(rows))) for rows in (3, 1)]

    def fails():
        with laid_out(parameters) as found:
            found.whole += 1
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fails()
    assert [parameter.tolist() for parameter in parameters] == [[[4.0, 4.0]] * 3, [[2.0, 2.0]]]
    assert parameters[0].untyped_storage().nbytes() == 24
