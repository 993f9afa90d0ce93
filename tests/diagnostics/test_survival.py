"""Signal survival and coverage: against their definitions gate by gate, and against the paper's propositions."""

import numpy as np
import pytest
import torch

from gatefit.bits import pack
from gatefit.codebook import BASES, CODEBOOK, affine_basis
from gatefit.datasets import load_dataset
from gatefit.diagnostics.survival import coverage, interaction_row, survival
from gatefit.methods import METHODS
from gatefit.network import LogicNetwork
from gatefit.ops.coefficients import covariance_jacobian
from numpy_network import activations, bits, evaluated_coefficients, mixture, noise_states, small

MIXED = ("soft-mix", "hard-st", "multilinear-ste", "multilinear-covjac", "iwp", "iwp-ste")
EVERY_INPUT = torch.tensor([[i >> k & 1 for k in range(4)] for i in range(16)], dtype=torch.bool)


def expected_survival(name, network, x, temperature=1.0):
    layers = []
    for layer, (a, b, _) in zip(
        network.gate_layers, activations(network, x, evaluated_coefficients(network)), strict=True
    ):
        pi = mixture(name, layer.method.latent.detach().numpy(), temperature)
        terms = [
            pi[:, j] * slope
            for j, (_, c_a, c_b, c_ab) in enumerate(CODEBOOK)
            for slope in (np.stack([c_a + c_ab * b, c_b + c_ab * a]),)
        ]
        layers.append(np.abs(sum(terms)).sum() / sum(np.abs(term) for term in terms).sum())
    return layers


@pytest.mark.parametrize("method", MIXED)
def test_survival_is_the_part_of_the_sum_over_gates_that_signs_leave(method):
    network, x = small(method), bits(100)
    found = survival(network, torch.tensor(x))
    wanted = expected_survival(method, network, x)
    assert found["by_layer"] == pytest.approx(wanted, rel=1e-10)
    assert found["mean"] == pytest.approx(np.mean(wanted), rel=1e-10)
    if METHODS[method].boolean_forward:
        assert wanted == [1, 1, 1]


@pytest.mark.parametrize("temperature", [0.2, 3.0])
def test_survival_of_covjac_follows_its_temperature(temperature):
    network, x = small("multilinear-covjac", temperature=temperature), bits(100)
    wanted = expected_survival("multilinear-covjac", network, x, temperature)
    assert survival(network, torch.tensor(x))["by_layer"] == pytest.approx(wanted, rel=1e-10)


def test_prop_softmix_cancel__nothing_survives_a_uniform_mixture():
    assert survival(small("soft-mix", sigma=0.0), torch.tensor(bits(20)))["by_layer"] == pytest.approx([0, 0, 0])


def test_single_gates_cancel_nothing():
    for method in ("gumbel-st", "hard-st", "multilinear-ste", "iwp-ste"):
        assert survival(small(method), torch.tensor(bits(20)))["by_layer"] == [1, 1, 1], method


def test_survival_at_initialisation_is_the_papers():
    """Paper: Soft-Mix 0.29, M-STE 1.0, CovJac 0.993; the last at a low temperature."""

    def mean(method, **options):
        network = LogicNetwork(200, 10, 1000, 4, method=method, **options)
        return survival(network, torch.tensor(bits(128, inputs=200)))["mean"]

    assert mean("soft-mix") == pytest.approx(0.29, abs=0.02)
    assert mean("multilinear-ste") == 1.0
    assert mean("multilinear-covjac", temperature=0.1) == pytest.approx(0.993, abs=0.005)
    assert 0.65 < mean("multilinear-covjac") < 0.85


@pytest.mark.data
def test_survival_on_mnist_is_the_papers(data_dir):
    dataset = load_dataset("mnist", data_dir=data_dir)
    x = torch.tensor(dataset.encoder.transform(dataset.x_train[:128]))

    def layers(method, **options):
        return survival(LogicNetwork(784, 10, 1000, 12, method=method, **options), x)["by_layer"]

    assert all(0.25 < s < 0.33 for s in layers("soft-mix"))
    assert layers("multilinear-ste") == [1.0] * 12
    assert np.mean(layers("multilinear-covjac", temperature=0.1)) == pytest.approx(0.993, abs=0.003)
    assert 0.68 < np.mean(layers("multilinear-covjac")) < 0.8


def test_a_layer_that_ignores_its_inputs_has_no_survival():
    network = small("multilinear-ste")
    network.gate_layers[1].method.latent.data.zero_()  # FALSE everywhere
    assert survival(network, torch.tensor(bits(20)))["by_layer"] == [1, None, 1]
    assert survival(network, torch.tensor(bits(20)))["mean"] == 1
    for layer in network.gate_layers:
        layer.method.latent.data.zero_()
    assert survival(network, torch.tensor(bits(20))) == {"mean": None, "by_layer": [None] * 3}


@pytest.mark.parametrize("method", ["multilinear-free", "iwp-free"])
def test_the_free_variants_mix_no_gates(method):
    assert survival(small(method), torch.tensor(bits(20))) is None


@pytest.mark.parametrize("method", METHODS)
def test_coverage_counts_the_pairs_that_reach_the_interaction(method):
    network, x = small(method), bits(100)
    layers = []
    for layer, (a, b, _) in zip(
        network.gate_layers, activations(network, x, evaluated_coefficients(network)), strict=True
    ):
        if method == "multilinear-covjac":
            row = covariance_jacobian(layer.method.latent, 1.0)[:, 3].detach().numpy()
            received = row[:, 0] + row[:, 1] * a + row[:, 2] * b + row[:, 3] * a * b
        else:
            received = a * b
        layers.append(np.mean(received != 0))
    found = coverage(network, torch.tensor(x))
    assert found["by_layer"] == pytest.approx(layers, abs=1e-15)
    assert found["mean"] == pytest.approx(np.mean(layers))


def test_what_a_free_layer_reads_has_passed_the_sigmoid():
    network = small("multilinear-free")
    network.gate_layers[0].method.latent.data.zero_()  # sigmoid(0) = 1/2 is read, not 0
    assert coverage(network, torch.tensor(bits(20)))["by_layer"][1:] == [1, 1]


@pytest.mark.parametrize("basis", BASES)
def test_prop_basis_futility__coverage_of_a_basis(basis):
    network = LogicNetwork(4, 2, 6, 1, method="multilinear-ste", backward_basis=basis)
    assert coverage(network, EVERY_INPUT)["mean"] == float(affine_basis(basis).coverage)


def test_lem_coverage__a_quarter_straight_through_and_every_sample_under_covjac():
    found = {name: coverage(LogicNetwork(4, 2, 6, 1, method=name), EVERY_INPUT)["mean"] for name in METHODS}
    assert found == {name: 1.0 if name == "multilinear-covjac" else 0.25 for name in METHODS}


@pytest.mark.parametrize(
    "row", [(-1, 1, 2, 0), (-1, 2, 1, 0), (1, -1, 0, 0), (0, 1, -1, 0), (-4, 1, 1, 2), (0, 0, 0, 0)]
)
def test_coverage_is_where_the_row_times_the_monomials_is_not_zero(monkeypatch, row):
    rows = torch.tensor([row] * 6, dtype=torch.float32)
    monkeypatch.setattr("gatefit.diagnostics.survival.interaction_row", lambda method: rows)
    received = [row[0] + row[1] * a + row[2] * b + row[3] * a * b != 0 for a in (0, 1) for b in (0, 1)]
    assert coverage(LogicNetwork(4, 2, 6, 1), EVERY_INPUT)["mean"] == np.mean(received)


@pytest.mark.parametrize("measure", [survival, coverage])
def test_noise_and_gradients_are_left_alone(measure):
    network = small("gumbel-st")
    before = noise_states(network)
    measure(network, torch.tensor(bits(20)))
    assert all(torch.equal(one, other) for one, other in zip(before, noise_states(network), strict=True))
    assert torch.is_grad_enabled()


@pytest.mark.parametrize("temperature", [1.0, 0.4])
def test_the_interaction_row_is_the_last_of_the_jacobian(temperature):
    method = small("multilinear-covjac", temperature=temperature).gate_layers[0].method
    torch.testing.assert_close(
        interaction_row(method), covariance_jacobian(method.latent, temperature)[:, 3].detach(), rtol=1e-10, atol=1e-12
    )
    walsh = small("multilinear-ste", backward_basis="walsh").gate_layers[0].method
    assert interaction_row(walsh).tolist() == [affine_basis("walsh").matrix[3].tolist()] * 24


def test_only_the_first_samples_are_walked():
    network, x = small("soft-mix"), bits(300)
    for measure in (survival, coverage):
        first = measure(network, torch.tensor(x[:128]))
        assert measure(network, torch.tensor(x)) == first
        assert measure(network, pack(x)) == first
        assert measure(network, pack(x[:100])) == measure(network, torch.tensor(x[:100]))
        assert measure(network, pack(x[:127])) != first
