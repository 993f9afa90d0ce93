"""Networks: eval is the deployed circuit, the state_dict says everything, nothing depends on chance."""

import sys

import numpy as np
import pytest
import torch
from torch import nn

from gatefit.circuit.simulate import scores as simulated_scores
from gatefit.encoders import Threshold
from gatefit.harden import harden
from gatefit.layers import GateLayer
from gatefit.methods import METHODS, Method, MultilinearCovJac, NotBooleanError
from gatefit.network import LogicNetwork

BOOLEAN = [name for name in METHODS if "free" not in name]


def random_bits(samples, inputs, seed=0):
    return torch.rand(samples, inputs, generator=torch.Generator().manual_seed(seed)) < 0.5


def small(method="multilinear-covjac", **options):
    return LogicNetwork(12, 3, 60, 3, method=method, seed=5, **options)


def test_layers_compose_in_sequential():
    generator = torch.Generator().manual_seed(0)
    stack = nn.Sequential(GateLayer(9, 20, generator=generator), GateLayer(20, 10, generator=generator))
    x = torch.rand(5, 9, generator=generator, requires_grad=True)
    stack(x).sum().backward()
    assert x.grad.shape == (5, 9)
    assert stack[0].coverage == 1.0
    hard = stack.eval()(random_bits(5, 9).float())
    assert set(hard.unique().tolist()) <= {0.0, 1.0}


@pytest.mark.parametrize("method", BOOLEAN)
@pytest.mark.parametrize("readout", ["group-sum", "linear"])
def test_eval_equals_the_simulated_circuit(method, readout):
    network, x = small(method, readout=readout).eval(), random_bits(200, 12)
    circuit = harden(network)
    expected = simulated_scores(circuit, x.numpy())
    found = network(x)
    if readout == "group-sum":
        found = (found * network.readout.temperature).round().long()
    assert (found.detach().numpy() == expected).all()


def test_eval_of_a_regression_equals_the_simulated_circuit():
    network = LogicNetwork(12, 1, 50, 2, readout="regression", target_range=(-2.0, 5.0)).eval()
    x = random_bits(100, 12)
    found = network(x)
    assert found.dtype == torch.float64
    assert (found.numpy() == simulated_scores(harden(network), x.numpy())).all()


@pytest.mark.parametrize("method", [n for n, m in METHODS.items() if m.boolean_forward and n != "gumbel-st"])
def test_zero_discretisation_gap_of_single_gate_methods(method):
    network, x = small(method), random_bits(64, 12)
    trained = network.train()(x).detach()
    assert torch.equal(trained, network.eval()(x))


@pytest.mark.parametrize("method", ["multilinear-free", "iwp-free"])
def test_free_networks_refuse_eval_but_have_soft_scores(method):
    network, x = small(method).eval(), random_bits(4, 12)
    with pytest.raises(NotBooleanError, match="never snapped"):
        network(x)
    with pytest.raises(NotBooleanError, match="never snapped"):
        harden(network)
    assert network.soft_scores(x).shape == (4, 3)


def test_soft_scores_are_those_of_training_and_carry_no_gradient():
    network, x = small(), random_bits(6, 12)
    soft = network.eval().soft_scores(x)
    assert not soft.requires_grad
    torch.testing.assert_close(soft, network.train()(x).detach())


@pytest.mark.parametrize("method", METHODS)
def test_state_dict_rebuilds_the_network_with_wiring_and_encoder(method):
    encoder = Threshold(0.5).fit(np.random.default_rng(0).random((20, 12)))
    network = small(method, encoder=encoder, class_names=("a", "b", "c"), wiring="random", wiring_seed=9)
    network.get_parameter("layers.1.method.latent").data.add_(0.25)
    again = LogicNetwork.from_state_dict({k: v.clone() for k, v in network.state_dict().items()})
    assert again.encoder == encoder
    assert again.class_names == ("a", "b", "c")
    assert again.configuration == network.configuration
    for name, value in network.state_dict().items():
        assert torch.equal(value, again.state_dict()[name]), name
    x = random_bits(30, 12)
    assert torch.equal(network.train().soft_scores(x), again.train().soft_scores(x))


def test_seed_draws_parameters_and_wiring_seed_the_wiring():
    base, other_seed, other_wiring = small(), LogicNetwork(12, 3, 60, 3, seed=6), small(wiring_seed=1)
    assert torch.equal(base.layers[0].wiring.committed(), other_seed.layers[0].wiring.committed())
    assert not torch.equal(base.layers[0].method.latent, other_seed.layers[0].method.latent)
    assert torch.equal(base.layers[0].method.latent, other_wiring.layers[0].method.latent)
    assert not torch.equal(base.layers[0].wiring.committed(), other_wiring.layers[0].wiring.committed())


def test_explicit_wiring_is_used_and_saved():
    wiring = [torch.tensor([[0, 1, 2, 3], [4, 5, 6, 7]]), torch.tensor([[0, 1, 2, 3], [1, 2, 3, 0]])]
    network = LogicNetwork(8, 2, 4, 2, wiring=wiring)
    assert torch.equal(network.layers[1].wiring.committed(), wiring[1].int())
    assert torch.equal(LogicNetwork.from_state_dict(network.state_dict()).layers[0].wiring.committed(), wiring[0].int())


@pytest.mark.parametrize("dtype", [torch.bool, torch.uint8, torch.float32])
def test_input_types_agree(dtype):
    network, x = small(), random_bits(10, 12)
    torch.testing.assert_close(network.soft_scores(x.to(dtype)), network.soft_scores(x))
    assert torch.equal(network.eval()(x.to(dtype)), network(x))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: LogicNetwork(12, 3, 61, 3), r"a multiple of 3 classes, got 61; use width=60 or 63"),
        (lambda: LogicNetwork(12, 3, 60, 0), r"at least one layer, got depth=0"),
        (lambda: LogicNetwork(12, 3, 60, 3, method="nand"), r"unknown method 'nand'; choose one of soft-mix"),
        (lambda: LogicNetwork(5, 3, 60, 3), r"5 inputs have 10 different pairs, got 60 gates"),
        (lambda: LogicNetwork(12, 3, 60, 3, readout="mlp"), r"unknown readout 'mlp'; choose one of group-sum"),
        (
            lambda: LogicNetwork(12, 3, 60, 3, wiring=[torch.zeros(2, 60).int()]),
            r"one tensor a layer: got 1 for depth=3",
        ),
        (lambda: LogicNetwork.from_state_dict({}), r"not of a LogicNetwork: it has no _extra_state"),
        (lambda: small()(random_bits(4, 11)), r"reads 12 bits a sample, got 11"),
        (
            lambda: small(implementation="refrence"),
            r"unknown implementation 'refrence'; choose auto or one of reference",
        ),
        (lambda: small().eval()(torch.full((4, 12), 0.5)), r"deployed network reads bits 0 and 1, got 0.5"),
    ],
)
def test_bad_input_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64])
@pytest.mark.parametrize("implementation", ["auto", "reference"])
@pytest.mark.parametrize("training", [True, False])
def test_whole_numbers_are_bits_or_refused(dtype, implementation, training):
    network, x = small(implementation=implementation).train(training), random_bits(10, 12)
    torch.testing.assert_close(network(x.to(dtype)), network(x))
    pixels = (x * 97).to(dtype)
    with pytest.raises(ValueError, match=rf"reads bits 0 and 1, got {dtype} values from 0 to 97; encode the features"):
        network(pixels)
    with pytest.raises(ValueError, match="reads bits 0 and 1"):
        network.soft_scores(pixels)
    if dtype.is_signed:
        with pytest.raises(ValueError, match="values from -1 to 0"):
            network(-x.to(dtype))
    assert network(x[:0].to(dtype)).shape == (0, 3)


def test_a_state_of_another_configuration_is_refused_by_its_fields():
    saved = small(temperature=0.5).state_dict()
    before = {name: value.clone() for name, value in small().state_dict().items()}
    for network, fields in (
        (small(), r"temperature 0\.5 there, 1\.0 here"),
        (small("multilinear-ste"), r"method 'multilinear-covjac' there, 'multilinear-ste' here"),
        (LogicNetwork(12, 3, 66, 3), r"width 60 there, 66 here"),
        (small(temperature=0.5, readout="linear"), r"readout 'group-sum' there, 'linear' here"),
        (small(temperature=0.5, readout_temperature=3.0), r"readout_temperature 1\.6.* there, 3\.0 here"),
    ):
        with pytest.raises(ValueError, match=f"another configuration: .*{fields}.*from_state_dict"):
            network.load_state_dict(saved)
    network = small()
    with pytest.raises(ValueError, match="another configuration"):
        network.load_state_dict(saved)
    assert all(torch.equal(value, before[name]) for name, value in network.state_dict().items())


def test_a_state_of_other_seeds_or_with_defaults_written_out_is_taken():
    saved = LogicNetwork(12, 3, 60, 3, seed=8, wiring_seed=3, wiring="random", sigma=2.0).state_dict()
    for network in (small(), small(temperature=1.0, learnable_temperature=False)):
        network.load_state_dict(saved)
        assert all(torch.equal(value, saved[name]) for name, value in network.state_dict().items())


class Averse(MultilinearCovJac):
    """A method of the user's own, not registered."""

    name = "averse"

    def coefficients(self):
        return 0.9 * super().coefficients()


def test_a_method_of_the_users_own_is_saved_and_made_again():
    network, x = LogicNetwork(12, 3, 60, 3, method=Averse, temperature=0.7), random_bits(30, 12)
    saved = network.state_dict()
    again = LogicNetwork.from_state_dict(saved, method=Averse)
    assert isinstance(again.gate_layers[0].method, Averse)
    assert torch.equal(again.soft_scores(x), network.soft_scores(x))
    small_again = LogicNetwork(12, 3, 60, 3, method=Averse, temperature=0.7)
    small_again.load_state_dict(saved)
    with pytest.raises(ValueError, match=r"method 'averse', which is not one of soft-mix.*method=YourMethod"):
        LogicNetwork.from_state_dict(saved)
    with pytest.raises(ValueError, match=r"of the method 'averse', got method=MultilinearCovJac"):
        LogicNetwork.from_state_dict(saved, method=MultilinearCovJac)


def test_classes_that_are_no_methods_of_ones_own_are_refused():
    for kind, error, message in (
        (nn.Linear, TypeError, "a name or a subclass of gatefit.methods.Method"),
        (type("Nameless", (Method,), {}), TypeError, "Nameless needs a name"),
        (type("Twin", (MultilinearCovJac,), {}), ValueError, "has the name of gatefit's own multilinear-covjac"),
    ):
        with pytest.raises(error, match=message):
            LogicNetwork(12, 3, 60, 3, method=kind)


@pytest.mark.parametrize("method", METHODS)
def test_the_reference_runs_no_compiled_kernel_and_agrees(method, monkeypatch):
    compiled = small(method, dtype=torch.float64)
    reference = small(method, dtype=torch.float64, implementation="reference")
    x = random_bits(40, 12)
    scores = compiled.train()(x)
    scores.square().sum().backward()
    expected = None if "free" in method else compiled.eval()(x)

    def refuse(*_):
        raise AssertionError("a compiled kernel ran")

    for module in [module for name, module in sys.modules.items() if name.startswith("gatefit.ops.")]:
        for name, value in list(vars(module).items()):
            if name in ("kernels", "parallel_for", "run"):
                monkeypatch.setattr(module, name, refuse)
            if isinstance(value, dict) and callable(value.get("numba")):
                monkeypatch.setitem(value, "numba", refuse)
    found = reference.train()(x)
    found.square().sum().backward()
    torch.testing.assert_close(found, scores, rtol=1e-10, atol=1e-10)
    for one, two in zip(reference.parameters(), compiled.parameters(), strict=True):
        torch.testing.assert_close(one.grad, two.grad, rtol=1e-9, atol=1e-10)
    if expected is not None:
        assert torch.equal(reference.eval()(x), expected)
