"""Readouts: what is trained, what is deployed, and that both agree."""

import numpy as np
import pytest
import torch

from gatefit.readouts import GroupSum, LinearReadout, RegressionReadout, automatic_temperature


def bits(samples, gates, seed=0):
    return torch.rand(samples, gates, generator=torch.Generator().manual_seed(seed)) < 0.5


def test_group_sum_counts_consecutive_groups():
    y = torch.tensor([[1.0, 0, 1, 1, 0, 0], [0, 0, 0, 1, 1, 1]])
    assert GroupSum(6, 3, temperature=2.0)(y).tolist() == [[0.5, 1, 0], [0, 0.5, 1]]


def test_automatic_temperature_is_the_fields_value():
    assert automatic_temperature(800) == pytest.approx(10, abs=0.2)  # MNIST, 8,000 gates
    assert automatic_temperature(6400) == pytest.approx(29, abs=0.3)  # MNIST, 64,000 gates
    assert automatic_temperature(68) == pytest.approx(3, abs=0.1)  # MONK's
    assert GroupSum(8000, 10).temperature == automatic_temperature(800)


def test_deployed_group_sum_equals_the_trained_one():
    readout, y = GroupSum(60, 4), bits(50, 60)
    deployed = readout.harden()
    assert (readout(y.float()) * readout.temperature).round().long().tolist() == deployed.scores(y.numpy()).tolist()


def test_linear_readout_starts_as_group_sum():
    y = bits(30, 24).float()
    torch.testing.assert_close(LinearReadout(24, 3)(y), GroupSum(24, 3)(y))


def test_deployed_linear_readout_is_exact_in_any_order_and_close_to_the_trained_one():
    readout = LinearReadout(300, 4)
    generator = torch.Generator().manual_seed(1)
    readout.weight.data = torch.randn(4, 300, generator=generator)
    readout.bias.data = torch.randn(4, generator=generator)
    y = bits(40, 300)
    deployed = readout.harden()
    np.testing.assert_allclose(deployed.scores(y.numpy()), readout(y.float()).detach(), atol=1e-3)
    exact = y.numpy().astype(np.float64) @ deployed.weights.astype(np.float64).T + deployed.bias
    assert (deployed.scores(y.numpy()) == exact).all()
    assert (y.float().numpy() @ deployed.weights.T + deployed.bias == exact).all()


def test_deployed_regression_equals_the_trained_one():
    readout, y = RegressionReadout(50, low=-3.0, high=7.0), bits(20, 50)
    np.testing.assert_allclose(readout.harden().scores(y.numpy()), readout(y.double()), rtol=1e-12)
    assert readout(torch.zeros(1, 50)).item() == -3
    assert readout(torch.ones(1, 50)).item() == pytest.approx(7)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: GroupSum(4096, 3), r"a multiple of 3 classes, got 4096; use width=4095 or 4098"),
        (lambda: GroupSum(2, 3), r"a multiple of 3 classes, got 2; use width=3"),
        (lambda: GroupSum(4, 1), r"at least two classes, got 1"),
        (lambda: GroupSum(4, 2, temperature=0), r"must be 'auto' or a finite number > 0, got 0"),
        (lambda: GroupSum(4, 2, temperature="warm"), r"must be 'auto' or a finite number > 0, got 'warm'"),
        (lambda: RegressionReadout(4, low=1.0, high=1.0), r"finite low < high, got 1.0 and 1.0"),
    ],
)
def test_bad_input_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_non_finite_linear_weights_are_not_deployed():
    readout = LinearReadout(4, 2)
    readout.weight.data[0, 0] = float("inf")
    with pytest.raises(ValueError, match="non-finite weights"):
        readout.harden()
