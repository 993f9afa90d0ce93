"""A loss that is expected changes how long a step takes, and no bit of what it computes."""

import numpy as np
import pytest
import torch

from gatefit.bits import PackedBatch, pack
from gatefit.methods import METHODS
from gatefit.network import LogicNetwork
from gatefit.ops.expected_loss import expected_loss
from gatefit.ops.learned_stack import numba as learned_kernels
from gatefit.ops.soft_stack import numba as kernels
from gatefit.readouts import GroupSum
from gatefit.training.loop import loss_of

SOFT = [name for name, method in METHODS.items() if not method.boolean_forward]


@pytest.fixture
def went_back(monkeypatch):
    """How often activations were computed again."""
    calls = []
    for module in (kernels, learned_kernels):
        again = module._sums_of
        monkeypatch.setattr(module, "_sums_of", lambda *arguments, again=again: calls.append(1) or again(*arguments))
    return calls


def batch_of(samples, classes=10, seed=0):
    rng = np.random.default_rng(seed)
    return pack(rng.random((samples, 40)) < 0.4), torch.from_numpy(rng.integers(0, classes, samples))


def gradients(network, x, loss):
    """Scores and all gradients after one pass."""
    network.zero_grad()
    scores = network(x)
    loss(scores).backward()
    return [scores.detach(), *(parameter.grad.clone() for parameter in network.parameters())]


def assert_same_bits(one, other):
    for a, b in zip(one, other, strict=True):
        assert a.numpy().tobytes() == b.numpy().tobytes()


@pytest.mark.parametrize("method", SOFT)
@pytest.mark.parametrize("samples", [1, 37, 64, 130])
@pytest.mark.parametrize("votes", ["last", "all"])
def test_the_same_bits_without_going_forward_twice(method, samples, votes, went_back):
    x, targets = batch_of(samples)
    network = LogicNetwork(40, 10, (60, 80, 60), method=method, votes=votes, seed=1)

    def loss(scores):
        return loss_of(scores, targets, None, network.implementation)

    plain = gradients(network, x, loss)
    assert len(went_back) == 1
    went_back.clear()
    network.expect([targets], [None])
    assert_same_bits(gradients(network, x, loss), plain)
    assert not went_back


def seen(network):
    """What was written down for regrowth."""
    pools = [
        torch.from_numpy(pool.words) if isinstance(pool, PackedBatch) else pool for pool in network.watch.pools.values()
    ]
    return [each.clone() for each in (*network.watch.gradients.values(), *pools)]


@pytest.mark.parametrize("precision", ["single", "half"])
@pytest.mark.parametrize("wiring", ["learned", "learned,tree,learned"])
@pytest.mark.parametrize("samples", [1, 37, 64, 130, 300])
def test_learned_wirings_see_the_same(samples, wiring, precision, went_back):
    x, targets = batch_of(samples)
    network = LogicNetwork(40, 10, (90, 60, 60), wiring=wiring, votes="all", precision=precision, seed=1)

    def loss(scores):
        return loss_of(scores, targets, None, network.implementation)

    network.before_step(0, 100)
    plain = gradients(network, x, loss) + seen(network)
    assert len(went_back) == 1
    went_back.clear()
    network.before_step(0, 100)
    network.expect([targets], [None])
    assert_same_bits(gradients(network, x, loss) + seen(network), plain)
    assert not went_back
    network.expect([targets], [None])
    assert_same_bits(gradients(network, x, lambda scores: 1.0 * loss(scores)), plain[: -len(seen(network))])
    assert not went_back


@pytest.mark.parametrize("wiring", ["unique", "learned"])
def test_a_graph_that_is_kept_is_differentiated_again(wiring, went_back):
    x, targets = batch_of(70)
    network = LogicNetwork(40, 10, 60, 3, wiring=wiring, seed=1)
    network.expect([targets], [None])
    loss = loss_of(network(x), targets, None, network.implementation)
    parameters = list(network.parameters())
    first = torch.autograd.grad(loss, parameters, retain_graph=True)
    assert not went_back
    assert_same_bits(torch.autograd.grad(loss, parameters), first)
    assert len(went_back) == 1


@pytest.mark.parametrize("classes", [2, 16, 21])
@pytest.mark.parametrize("share", [1.0, 0.3])
def test_weights_shares_and_many_classes(classes, share, went_back):
    x, targets = batch_of(100, classes)
    weights = torch.from_numpy(np.random.default_rng(5).random(100, dtype=np.float32))
    network = LogicNetwork(40, classes, 20 * classes, 2, seed=1)

    def loss(scores):
        return share * loss_of(scores, targets, weights, network.implementation)

    plain = gradients(network, x, loss)
    went_back.clear()
    network.expect([targets], [weights], share=share)
    assert_same_bits(gradients(network, x, loss), plain)
    assert not went_back


def test_blocks_of_columns(went_back):
    """As seeds that are trained side by side have them."""
    x, first = batch_of(90, 5)
    _, second = batch_of(90, 5, seed=1)
    network = LogicNetwork(40, 10, 60, 2, seed=1)

    def loss(scores):
        return sum(
            loss_of(own, targets, None, network.implementation)
            for own, targets in zip(scores.chunk(2, dim=1), (first, second), strict=True)
        )

    plain = gradients(network, x, loss)
    went_back.clear()
    network.expect([first, second], [None, None])
    assert_same_bits(gradients(network, x, loss), plain)
    assert not went_back


@pytest.mark.parametrize("wiring", ["unique", "learned"])
def test_another_loss_than_expected_is_computed_as_ever_and_expected_no_more(wiring, went_back):
    x, targets = batch_of(70)
    network = LogicNetwork(40, 10, 60, 3, wiring=wiring, seed=1)

    def loss(scores):
        return loss_of(scores, targets, None, network.implementation) * 3

    plain = gradients(network, x, loss)
    went_back.clear()
    for passes in (1, 2):
        network.expect([targets], [None])
        assert_same_bits(gradients(network, x, loss), plain)
        assert len(went_back) == passes
    assert network._expected is None  # said in vain: it would be computed twice at every step


def test_an_expectation_is_of_one_pass(went_back):
    x, targets = batch_of(70)
    network = LogicNetwork(40, 10, 60, 3, seed=1)

    def loss(scores):
        return loss_of(scores, targets, None, network.implementation)

    network.expect([targets], [None])
    gradients(network, x, loss)
    gradients(network, x, loss)
    assert len(went_back) == 1


def test_a_target_that_is_no_class_is_refused_as_ever():
    x, targets = batch_of(70)
    network = LogicNetwork(40, 10, 60, 3, seed=1)
    targets[3] = 10
    network.expect([targets], [None])
    with pytest.raises(ValueError, match="targets must be classes 0 to 9, got"):
        loss_of(network(x), targets, None, network.implementation)


@pytest.mark.parametrize("wiring", ["unique", "learned"])
def test_batches_of_another_size_and_other_types_are_computed_as_ever(wiring, went_back):
    x, targets = batch_of(70)
    for dtype, wanted in ((torch.float32, targets[:60]), (torch.float64, targets)):
        network = LogicNetwork(40, 10, 60, 3, wiring=wiring, seed=1, dtype=dtype)
        network.expect([wanted], [None])
        gradients(network, x, lambda scores, own=network: loss_of(scores, targets, None, own.implementation))
    assert len(went_back) == 2


def test_what_kernels_cannot_expect():
    whole, real = torch.zeros(3, dtype=torch.int64), torch.zeros(3)
    options = {"temperature": 1.0, "columns": 10}
    assert expected_loss([whole], [None], **options) is not None
    assert expected_loss([real], [None], **options) is None
    assert expected_loss([whole], [real.double()], **options) is None
    assert expected_loss([whole] * 3, [None] * 3, **options) is None


def test_a_readout_that_does_more_is_computed_as_ever(went_back):
    class Doubled(GroupSum):
        divisor = None

        def from_sums(self, sums):
            return 2 * super().from_sums(sums)

    x, targets = batch_of(70)
    network = LogicNetwork(40, 10, 60, 3, seed=1, readout=Doubled(60, 10))
    network.expect([targets], [None])
    gradients(network, x, lambda scores: loss_of(scores, targets, None, network.implementation))
    assert len(went_back) == 1
    assert network._expected is None
