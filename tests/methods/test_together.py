"""Coefficients of all layers by one call: the bits of as many calls, for every method that promises them."""

import numpy as np
import pytest
import torch

from gatefit import network as networks
from gatefit.bits import pack
from gatefit.layers import GateLayer
from gatefit.methods import METHODS, Method
from gatefit.methods.multilinear import MultilinearCovJac
from gatefit.network import LogicNetwork
from gatefit.training.loop import loss_of

INDEPENDENT = [name for name, method in METHODS.items() if method.independent_gates]


@pytest.fixture
def asked(monkeypatch):
    """What each pass got: one method for all layers, or None."""
    found = []
    together = Method.together.__func__

    def noted(cls, methods, latent=None):
        found.append(together(cls, methods, latent))
        return found[-1]

    monkeypatch.setattr(Method, "together", classmethod(noted))
    return found


def batch():
    rng = np.random.default_rng(0)
    return pack(rng.random((100, 60)) < 0.4), torch.from_numpy(rng.integers(0, 10, 100))


def bits_after_two_steps(network):
    """The second one draws other noise, where there is any."""
    x, targets = batch()
    for _ in range(2):
        network.zero_grad()
        scores = network(x)
        loss_of(scores, targets, None, network.implementation).backward()
    return [scores.detach().numpy().tobytes(), *(p.grad.numpy().tobytes() for p in network.parameters())]


@pytest.mark.parametrize("method", INDEPENDENT)
@pytest.mark.parametrize("fields", [{}, {"wiring": "learned", "votes": "all"}], ids=["fixed", "learned"])
def test_the_same_bits(method, fields, asked, monkeypatch):
    def made():
        return LogicNetwork(60, 10, 70, 3, method=method, seed=1, **fields)

    together = bits_after_two_steps(made())
    assert len(asked) == 2
    assert all(isinstance(each, METHODS[method]) for each in asked)
    monkeypatch.setattr(networks, "TOGETHER", 0)
    assert bits_after_two_steps(made()) == together
    assert len(asked) == 2


def test_layers_of_different_sizes_with_noise_are_asked_one_by_one():
    network = LogicNetwork(60, 10, (70, 80), method="gumbel-st", seed=1)
    assert METHODS["gumbel-st"].together([layer.method for layer in network.gate_layers]) is None


def test_what_gates_share_is_not_computed_together(asked):
    bits_after_two_steps(LogicNetwork(60, 10, 70, 3, learnable_temperature=True, seed=1))
    assert asked == [None, None]


def test_one_that_joins_in_its_own_way_is_asked_layer_by_layer(asked):
    class Own(MultilinearCovJac):
        name = "own"

        def join(self, methods):
            super().join(methods)

    bits_after_two_steps(LogicNetwork(60, 10, 70, 3, method=Own, seed=1))
    assert asked == [None, None]


def test_given_layers_may_differ_in_their_options(asked):
    layers = [
        GateLayer(size, 70, generator=torch.Generator().manual_seed(0), temperature=temperature)
        for size, temperature in ((60, 1.0), (70, 0.5))
    ]
    bits_after_two_steps(LogicNetwork(layers=layers, classes=10))
    assert not asked


def test_who_listens_to_one_layer_hears_its_own(asked):
    network = LogicNetwork(60, 10, 70, 3, seed=1)
    plain = bits_after_two_steps(network)
    method, heard = network.gate_layers[1].method, []
    own = method.coefficients

    def coefficients():
        heard.append(own())
        return heard[-1]

    method.coefficients = coefficients
    asked.clear()
    assert bits_after_two_steps(network) == plain
    assert asked == [None, None]
    assert [tuple(each.shape) for each in heard] == [(70, 4)] * 2
