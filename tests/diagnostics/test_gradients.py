"""Gradient norms: against backpropagation written out in numpy, for every method."""

import numpy as np
import pytest
import torch

from gatefit.codebook import CODEBOOK, affine_basis
from gatefit.diagnostics.batch import ProbeBatch
from gatefit.diagnostics.gradients import COEFFICIENTS, gradient_norms
from gatefit.methods import METHODS
from gatefit.network import LogicNetwork
from numpy_network import batch, coefficient_gradients, evaluated_coefficients, proximity, small

BATCHES = ((40, 0), (17, 1), (64, 2))
OWN = ("multilinear-ste", "multilinear-covjac", "multilinear-free")


def expected(gradients):
    """The summary of per-batch lists of per-layer gradients (gates, 4)."""

    def named(norms, sums):
        return {
            **dict(zip(COEFFICIENTS, norms, strict=True)),
            "ratio": norms[3] / norms[0],
            "l1_ratio": sums[3] / sums[0],
        }

    def mean(pick, measure):
        return np.mean([measure(pick(layers)) for layers in gradients], axis=0)

    def both(pick):
        norms = mean(pick, lambda g: np.sqrt(np.square(g).sum(0)))
        return named(norms, mean(pick, lambda g: np.abs(g).sum(0)))

    depth = len(gradients[0])
    return {**both(np.concatenate), "by_layer": [both(lambda layers, i=i: layers[i]) for i in range(depth)]}


def assert_same(found, wanted):
    assert set(found) - {"effective"} == set(wanted)
    for name, value in wanted.items():
        if name == "by_layer":
            assert len(found[name]) == len(value)
            for one, other in zip(found[name], value, strict=True):
                assert_same(one, other)
        else:
            assert found[name] == pytest.approx(value, rel=1e-9), name


def effective_gradients(network):
    return [
        coefficient_gradients(network, probe.x.numpy(), targets, evaluated_coefficients(network))
        for probe, targets in (batch(*which) for which in BATCHES)
    ]


@pytest.mark.parametrize("method", [name for name in METHODS if name != "gumbel-st"])
def test_effective_gradients_are_those_of_backpropagation(method):
    network = small(method)
    found = gradient_norms(network, [batch(*which)[0] for which in BATCHES])
    assert_same(found["effective"], expected(effective_gradients(network)))
    if method not in OWN:
        assert all(found[name] is None for name in (*COEFFICIENTS, "ratio", "l1_ratio", "by_layer"))


def test_gumbel_draws_fresh_noise_for_each_batch():
    network = small("gumbel-st")
    one, targets = batch(40)
    found = gradient_norms(network, [one])["effective"]
    wanted = [coefficient_gradients(network, one.x.numpy(), targets, evaluated_coefficients(small("gumbel-st")))]
    assert_same(found, expected(wanted))
    assert gradient_norms(network, [one])["effective"] == found
    assert gradient_norms(network, [one, one])["effective"] != found


@pytest.mark.parametrize("basis", ["canonical", "walsh", "smoothed"])
def test_parameters_of_ste_receive_the_basis_times_the_gradient(basis):
    network = small("multilinear-ste", backward_basis=basis)
    matrix = affine_basis(basis).matrix
    found = gradient_norms(network, [batch(*which)[0] for which in BATCHES])
    assert_same(found, expected([[g @ matrix.T for g in layers] for layers in effective_gradients(network)]))


@pytest.mark.parametrize("temperature", [1.0, 0.3])
def test_parameters_of_covjac_receive_the_covariance_times_the_gradient(temperature):
    network = small("multilinear-covjac", temperature=temperature)
    jacobians = []
    for layer in network.gate_layers:
        weights = proximity(layer.method.latent.detach().numpy(), CODEBOOK, temperature)
        jacobians.append([2 / temperature * np.cov(CODEBOOK.T, aweights=w, ddof=0) for w in weights])
    effective = effective_gradients(network)
    wanted = [[np.einsum("nij,nj->ni", j, g) for j, g in zip(jacobians, layers, strict=True)] for layers in effective]
    assert_same(gradient_norms(network, [batch(*which)[0] for which in BATCHES]), expected(wanted))


def test_parameters_of_the_free_polynomial_are_what_is_evaluated():
    found = gradient_norms(small("multilinear-free"), [batch(40)[0]])
    assert {name: found[name] for name in found if name != "effective"} == found["effective"]


@pytest.mark.parametrize("seed", range(3))
def test_lem_coverage__the_ratio_is_a_quarter_where_a_gates_signals_agree(seed):
    """∂L/∂c = Σ δ (1, a, b, ab): δ = 1 on all sixteen inputs gives E[ab] = 1/4 exactly, in both norms."""
    network = LogicNetwork(4, 2, 6, 1, method="multilinear-ste", seed=seed)
    x = torch.tensor([[i >> k & 1 for k in range(4)] for i in range(16)], dtype=torch.bool)
    found = gradient_norms(network, [ProbeBatch(x, lambda scores: scores.sum())])
    assert (found["ratio"], found["l1_ratio"]) == (0.25, 0.25)
    assert found["c_a"] == found["c_b"] == found["c_0"] / 2


def test_without_signal_there_is_no_ratio():
    found = gradient_norms(small("multilinear-ste"), [ProbeBatch(batch(9)[0].x, lambda scores: 0 * scores.sum())])
    assert (found["c_0"], found["ratio"], found["l1_ratio"]) == (0.0, None, None)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("method", ["multilinear-ste", "soft-mix"])
def test_the_reference_implementation_agrees(method, dtype):
    probes = [batch(*which)[0] for which in BATCHES]
    fast = gradient_norms(small(method, dtype=dtype), probes)["effective"]
    plain = gradient_norms(small(method, dtype=dtype, implementation="reference"), probes)["effective"]
    for name in COEFFICIENTS:
        assert fast[name] == pytest.approx(plain[name], rel=1e-4 if dtype == torch.float32 else 1e-10)
