"""A step whose gradients come without a graph of stack, readout and loss has every bit that autograd gives it."""

import numpy as np
import pytest
import torch

from gatefit.bits import PackedBatch, pack
from gatefit.methods import METHODS
from gatefit.network import LogicNetwork
from gatefit.ops.boolean_stack import boolean_stack
from gatefit.ops.implementations import REFERENCE
from gatefit.ops.learned_stack import learned_stack
from gatefit.ops.soft_stack import soft_stack
from gatefit.ops.stacks import Stack
from gatefit.ops.threads import training_threads
from gatefit.readouts import GroupSum
from gatefit.training.loop import loss_of, mean_loss


def batch_of(samples, classes=10, seed=0):
    rng = np.random.default_rng(seed)
    return pack(rng.random((samples, 40)) < 0.4), torch.from_numpy(rng.integers(0, classes, samples))


def by_autograd(network, x, targets, weights=None):
    """The loss and all gradients."""
    network.zero_grad()
    loss = loss_of(network(x), targets, weights, network.implementation)
    loss.backward()
    return [loss.detach(), *(parameter.grad.clone() for parameter in network.parameters())]


def at_once(network, x, targets, weights=None):
    network.zero_grad()
    losses = network.learn(x, targets, weights)
    assert not losses.requires_grad
    return [mean_loss(losses, weights), *(parameter.grad.clone() for parameter in network.parameters())]


def assert_same_bits(one, other):
    for a, b in zip(one, other, strict=True):
        assert a.numpy().tobytes() == b.numpy().tobytes()


def rewound(network, x, targets, weights, way):
    """After the same noise: what a pass draws is put back."""
    state = {name: value.clone() for name, value in network.state_dict().items()}
    found = way(network, x, targets, weights)
    network.load_state_dict(state)
    return found


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("samples", [1, 37, 130])
@pytest.mark.parametrize("weighted", [False, True])
def test_every_method(method, samples, weighted):
    x, targets = batch_of(samples)
    weights = torch.from_numpy(np.random.default_rng(5).random(samples, dtype=np.float32)) if weighted else None
    network = LogicNetwork(40, 10, (60, 80, 60), method=method, votes="all", seed=1)
    for threads in (1, 2):
        with training_threads(threads):
            expected = rewound(network, x, targets, weights, by_autograd)
            assert_same_bits(rewound(network, x, targets, weights, at_once), expected)


@pytest.mark.parametrize("method", ["multilinear-covjac", "multilinear-ste", "gumbel-st"])
@pytest.mark.parametrize("precision", ["single", "half"])
@pytest.mark.parametrize("wiring", ["unique", "learned", "learned,tree,learned"])
def test_every_wiring_and_what_is_written_down_for_regrowth(method, wiring, precision):
    x, targets = batch_of(130)
    network = LogicNetwork(40, 10, (90, 60, 60), method=method, wiring=wiring, precision=precision, seed=1)
    found = []
    for way in (by_autograd, at_once):
        network.before_step(0, 100)
        watch = network.watch
        found.append(rewound(network, x, targets, None, way))
        if watch is not None:
            assert watch.gradients
            words = (torch.from_numpy(p.words) if isinstance(p, PackedBatch) else p for p in watch.pools.values())
            found[-1] += [each.clone() for each in (*watch.gradients.values(), *words)]
    assert_same_bits(*found)


def test_options_that_change_the_way_from_parameters_to_coefficients():
    x, targets = batch_of(100)
    for options in (
        {"method": "multilinear-covjac", "learnable_temperature": True},
        {"method": "multilinear-ste", "backward_basis": "walsh"},
        {"method": "iwp-ste", "snap": "codebook", "surrogate": "continuous"},
        {"method": "iwp", "corner_activation": "identity"},
    ):
        network = LogicNetwork(40, 10, 60, 3, seed=1, **options)
        assert_same_bits(at_once(network, x, targets), by_autograd(network, x, targets))


def test_gradients_add_up_as_ever():
    x, targets = batch_of(100)
    network = LogicNetwork(40, 10, 60, 3, seed=1)
    network.learn(x, targets)
    once = [parameter.grad.clone() for parameter in network.parameters()]
    network.learn(x, targets)
    assert_same_bits([parameter.grad for parameter in network.parameters()], [2 * each for each in once])


def nothing_done(network, x, targets):
    network.zero_grad()
    return network.learn(x, targets) is None and all(p.grad is None for p in network.parameters())


def test_autograd_is_left_what_needs_it():
    x, targets = batch_of(70)

    class Doubled(GroupSum):
        def from_sums(self, sums):
            return 2 * super().from_sums(sums)

    class Own(LogicNetwork):
        def forward(self, x):
            return 2 * super().forward(x)

    assert nothing_done(LogicNetwork(40, 10, 60, 3, readout=Doubled(60, 10)), x, targets)
    assert nothing_done(LogicNetwork(40, 10, 60, 3, readout="linear"), x, targets)
    assert nothing_done(Own(40, 10, 60, 3), x, targets)
    assert nothing_done(LogicNetwork(40, 10, 60, 3, dtype=torch.float64), x, targets)
    assert nothing_done(LogicNetwork(40, 10, 60, 3, implementation="reference"), x, targets)
    assert nothing_done(LogicNetwork(40, 10, 60, 3, skips="inputs"), x, targets)
    network = LogicNetwork(40, 10, 60, 3)
    assert nothing_done(network, x, targets.double())  # values, not classes
    assert nothing_done(network.eval(), x, targets)
    seen = []
    network.train().register_forward_hook(lambda *arguments: seen.append(1))
    assert nothing_done(network, x, targets)


def test_a_target_that_is_no_class_is_refused():
    x, targets = batch_of(70)
    network = LogicNetwork(40, 10, 60, 3)
    with pytest.raises(ValueError, match="targets must be classes 0 to 9, got 0 to 10"):
        network.learn(x, torch.cat([targets[:-1], torch.tensor([10])]))


def test_operations_that_cannot_refuse():
    x, _ = batch_of(70)
    wiring, rows = torch.randint(40, (2, 20), dtype=torch.int32), torch.zeros(20, 4)
    stack, options = Stack([wiring], 10), {"back": torch.ones_like, "implementation": REFERENCE}
    for call in (
        lambda: soft_stack(x, stack, [rows], **options),
        lambda: boolean_stack(x, stack, [torch.zeros(20, dtype=torch.uint8)], [rows], **options),
        lambda: learned_stack(x, stack, [None], [None], [rows], **options),
    ):
        with pytest.raises(ValueError, match="'reference' goes back by autograd alone"):
            call()
