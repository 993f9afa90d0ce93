"""Commitment, distance and entropy: against their definitions, for every method."""

import math

import numpy as np
import pytest
import torch

from gatefit.codebook import CODEBOOK, COEFFICIENTS_FROM_CORNERS, CORNER_VALUES
from gatefit.diagnostics.parameters import commitment, distance, entropy, raw_coefficients
from gatefit.diagnostics.probe import probe
from gatefit.methods import METHODS, IWPFree, Method
from gatefit.network import LogicNetwork
from numpy_network import batch, mixture, proximity, sigmoid, small, softmax

FREE = [name for name in METHODS if name.endswith("-free")]


def latents(network):
    return [layer.method.latent.detach().numpy() for layer in network.gate_layers]


def raw(method, latent):
    if METHODS[method].parameters_per_gate == 16:
        return softmax(latent) @ CODEBOOK
    if method.startswith("iwp"):
        return (sigmoid(latent) if method == "iwp" else latent) @ COEFFICIENTS_FROM_CORNERS.T
    return latent


@pytest.mark.parametrize("method", METHODS)
def test_commitment_is_the_spread_of_the_raw_interaction(method):
    network = small(method)
    layers = [raw(method, latent)[:, 3] for latent in latents(network)]
    found = commitment(network)
    for part, values in ((found, np.concatenate(layers)), *zip(found["by_layer"], layers, strict=True)):
        assert part["std_c_ab"] == pytest.approx(math.sqrt(np.mean((values - values.mean()) ** 2)), rel=1e-12)
        assert part["max_abs_c_ab"] == pytest.approx(max(abs(values)), rel=1e-12)
    assert len(found["by_layer"]) == 3


@pytest.mark.parametrize("method", METHODS)
def test_distance_is_to_the_nearest_of_all_gates(method):
    network = small(method)
    layers = [
        np.sqrt(np.square(raw(method, latent)[:, None] - CODEBOOK).sum(-1)).min(-1) for latent in latents(network)
    ]
    found = distance(network)
    for part, values in ((found, np.concatenate(layers)), *zip(found["by_layer"], layers, strict=True)):
        assert part["mean"] == pytest.approx(values.mean(), rel=1e-12)
        assert part["median"] == pytest.approx(np.median(values), rel=1e-12)
    assert len(found["by_layer"]) == 3


def distribution(method, latent):
    if METHODS[method].parameters_per_gate == 16:
        return softmax(latent)
    if method == "iwp":
        return mixture("iwp", latent)
    return proximity(latent, CORNER_VALUES if method == "iwp-ste" else CODEBOOK)


@pytest.mark.parametrize("method", [name for name in METHODS if name not in FREE])
def test_entropy_is_that_of_the_methods_distribution(method):
    network = small(method)
    layers = []
    for latent in latents(network):
        pi = distribution(method, latent)
        layers.append(-(pi * np.log(pi)).sum(-1).mean())
    found = entropy(network)
    assert found["by_layer"] == pytest.approx(layers, rel=1e-10)
    assert found["mean"] == pytest.approx(np.mean(layers), rel=1e-10)


def test_entropy_runs_from_log_16_to_zero():
    network = small("soft-mix", sigma=0.0)
    assert entropy(network)["mean"] == pytest.approx(math.log(16))
    network.gate_layers[0].method.latent.data[:, 6] = 2000.0
    assert entropy(network)["by_layer"] == pytest.approx([0, math.log(16), math.log(16)])


@pytest.mark.parametrize("method", FREE)
def test_the_free_variants_have_no_distribution(method):
    assert entropy(small(method)) is None


def test_settled_gates_have_no_distance():
    network = small("multilinear-covjac")
    for layer in network.gate_layers:
        layer.method.latent.data = torch.tensor(CODEBOOK, dtype=torch.float64)[torch.arange(24) % 16]
    assert distance(network) == {"mean": 0, "median": 0, "by_layer": [{"mean": 0, "median": 0}] * 3}
    assert commitment(network)["max_abs_c_ab"] == 2


@pytest.mark.parametrize("method", METHODS)
def test_raw_coefficients_carry_no_gradient(method):
    assert not raw_coefficients(small(method).gate_layers[0].method).requires_grad


class Thermometer(Method):
    """Somebody's own method: four parameters a gate, none of them a coefficient, and no distribution over gates."""

    name = "thermometer"
    parameters_per_gate = 4
    draws_noise = True
    drawn = 0

    def residual_centre(self):
        return torch.zeros(4)

    def coefficients(self):
        self.drawn += 1
        return torch.cat([torch.sigmoid(self.latent[:, :1]), torch.zeros_like(self.latent[:, 1:])], dim=1)

    def gates(self):
        return torch.where(self.latent[:, 0] > 0, 15, 0).to(torch.uint8)

    def get_extra_state(self):
        return torch.tensor(self.drawn)

    def set_extra_state(self, state):
        self.drawn = int(state)


class Corners(Thermometer):
    """One that does answer."""

    name = "corners"
    raw_coefficients = IWPFree.coefficients


def test_a_method_of_ones_own_is_not_taken_to_learn_coefficients():
    network = small(Thermometer)
    found = probe(network, [batch(64)[0]])
    assert found["commitment"] is found["distance"] is found["entropy"] is found["survival"] is None
    assert found["gradient_norms"]["c_ab"] is None
    assert found["gradient_norms"]["effective"]["c_0"] > 0
    assert found["census"]["constant"] == 1
    assert [layer.method.drawn for layer in network.gate_layers] == [0, 0, 0]
    answering = small(Corners)
    c_ab = np.concatenate([latent @ COEFFICIENTS_FROM_CORNERS[3] for latent in latents(answering)])
    assert commitment(answering)["std_c_ab"] == pytest.approx(c_ab.std())


def test_learned_temperatures_are_told_layer_by_layer():
    learned = LogicNetwork(6, 2, 10, 3, method="multilinear-covjac", learnable_temperature=True, temperature=0.5)
    with torch.no_grad():
        learned.gate_layers[1].method.log_temperature.fill_(-4.0)
    assert commitment(learned)["temperatures"] == pytest.approx([0.5, math.exp(-4.0), 0.5])
    assert "temperatures" not in commitment(LogicNetwork(6, 2, 10, 3, method="multilinear-covjac"))
