"""Cross-entropy: its definition, torch's bits on AVX-512, and the same bits everywhere."""

import hashlib

import numpy as np
import pytest
import torch
from torch.nn import functional

from gatefit.ops import cross_entropy as operation
from gatefit.ops.implementations import NUMBA
from gatefit.training.loop import loss_of

CLASSES = (1, 2, 3, 7, 8, 9, 10, 15, 16, 17, 31, 32, 33, 47, 100, 200)


def case(classes, samples=77, scale=5.0):
    rng = np.random.default_rng(classes)
    # Whole numbers and one product: the same on every machine.
    scores = (
        np.float32(scale) * rng.integers(-(2**22), 2**22, (samples, classes)).astype(np.float32) / np.float32(2**22)
    )
    targets, upstream = rng.integers(classes, size=samples), rng.integers(1, 2**20, samples).astype(np.float32)
    return torch.tensor(scores), torch.tensor(targets), torch.tensor(upstream / np.float32(2**20))


def found(function, scores, targets, upstream):
    scores = scores.clone().requires_grad_()
    losses = function(scores, targets)
    losses.backward(upstream.to(scores))
    return losses.detach(), scores.grad


def cross_entropy(scores, targets):
    return operation.cross_entropy(scores, targets, implementation=NUMBA)


def of_torch(scores, targets):
    return functional.cross_entropy(scores, targets, reduction="none")


@pytest.mark.parametrize("scale", [0.01, 5.0, 300.0])
@pytest.mark.parametrize("classes", CLASSES)
def test_losses_and_gradients_are_those_of_the_definition(classes, scale):
    scores, targets, upstream = case(classes, scale=scale)
    losses, gradient = found(cross_entropy, scores, targets, upstream)
    exact, exact_gradient = found(of_torch, scores.double(), targets, upstream)
    torch.testing.assert_close(losses.double(), exact, rtol=3e-7, atol=3e-7 * scale)
    torch.testing.assert_close(gradient.double(), exact_gradient, rtol=1e-5, atol=3e-7)


@pytest.mark.skipif(torch.backends.cpu.get_cpu_capability() != "AVX512", reason="torch's own sums are other ones here")
@pytest.mark.parametrize("samples", [1, 16, 509])
@pytest.mark.parametrize("scale", [0.01, 5.0, 300.0])
@pytest.mark.parametrize("classes", CLASSES)
def test_the_bits_are_those_of_torch_on_avx512(classes, scale, samples):
    given = case(classes, samples, scale)
    for ours, theirs in zip(found(cross_entropy, *given), found(of_torch, *given), strict=True):
        assert torch.equal(ours, theirs)


def test_the_bits_are_the_same_on_every_processor():
    digest = hashlib.sha256()
    for classes in CLASSES:
        for part in found(cross_entropy, *case(classes)):
            digest.update(part.numpy().tobytes())
    assert digest.hexdigest()[:16] == "c2cf8d1b795fd0d1"


def test_a_column_of_scores_side_by_side_is_read_as_it_stands():
    scores, targets, _ = case(10)
    both = torch.cat([scores, scores + 1], dim=1)
    assert torch.equal(cross_entropy(both.chunk(2, dim=1)[0], targets), cross_entropy(scores, targets))


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_scores_that_are_not_finite_give_no_finite_loss(value):
    scores = torch.zeros(3, 4)
    scores[1, 2] = value
    assert torch.isfinite(cross_entropy(scores, torch.zeros(3, dtype=torch.int64))).tolist() == [True, False, True]


@pytest.mark.parametrize("target", [-1, 4])
def test_targets_that_are_no_class_are_refused(target):
    with pytest.raises(ValueError, match=rf"targets must be classes 0 to 3, got .*{target}"):
        cross_entropy(torch.zeros(2, 4), torch.tensor([1, target]))


def test_double_precision_is_torchs():
    scores, targets, _ = case(10)
    assert torch.equal(cross_entropy(scores.double(), targets), of_torch(scores.double(), targets))
    assert loss_of(scores.double(), targets, None).dtype == torch.float64
