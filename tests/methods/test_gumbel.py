"""Gumbel-ST: where its noise enters, how it fades, and that neither costs a bit of reproducibility."""

import hashlib
import json
from dataclasses import replace

import pytest
import torch

from gatefit.codebook import CODEBOOK
from gatefit.datasets import load_dataset
from gatefit.methods import GumbelST, HardST
from gatefit.methods.gate_logits import NOISE_PLACES
from gatefit.ops.gumbel import GumbelNoise
from gatefit.ops.implementations import NUMBA
from gatefit.training.config import RunConfig
from gatefit.training.loop import train
from gatefit.training.runs import build_network, training_data
from gatefit.training.side_by_side import train_side_by_side

G = torch.tensor(CODEBOOK, dtype=torch.float64)
WEIGHTS = torch.tensor([1.0, 2, 3, 4], dtype=torch.float64)
BASE = RunConfig(dataset="monks-2", method="gumbel-st", width=34, depth=3, steps=40, evaluate_every=20, seed=3)


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def make(gates=60, **options):
    return GumbelST(gates, generator=generator(), dtype=torch.float64, **options)


def next_noise(method):
    stream, noise = GumbelNoise(0), torch.empty(method.latent.shape)
    stream.set_state(method.get_extra_state())
    stream.fill(noise, implementation=NUMBA)
    return noise.double()


def expected(method, noise, temperature):
    """Gates and gradient by the table of the class, with autograd's softmax."""
    latent = method.latent.detach().clone().requires_grad_()
    chooser = latent if method.noise_in == "backward" else latent + noise
    mixed = latent if method.noise_in == "forward" else latent + noise
    (torch.softmax(mixed / temperature, -1) @ G @ WEIGHTS).sum().backward()
    return chooser.argmax(-1), latent.grad


@pytest.mark.parametrize("noise_in", NOISE_PLACES)
@pytest.mark.parametrize("temperature", [1.0, 0.4])
def test_noise_enters_where_it_is_told_to(noise_in, temperature):
    method = make(noise_in=noise_in, temperature=temperature, noise_scale=0.7)
    gates, gradient = expected(method, 0.7 * next_noise(method), temperature)
    drawn, coefficients = method.sample()
    (coefficients @ WEIGHTS).sum().backward()
    assert torch.equal(drawn.long(), gates)
    assert torch.equal(coefficients.detach(), G[gates])
    torch.testing.assert_close(method.latent.grad, gradient, rtol=1e-12, atol=1e-12)


def test_noise_in_the_backward_pass_trains_the_deployed_gates():
    method = make(noise_in="backward")
    assert all(torch.equal(method.sample()[0], method.gates()) for _ in range(3))
    gradients = []
    for _ in range(2):
        method.latent.grad = None
        (method.coefficients() @ WEIGHTS).sum().backward()
        gradients.append(method.latent.grad)
    assert not torch.equal(*gradients)


def test_noise_fades_linearly_and_then_it_is_hard_st():
    method = make(sigma=0.0, noise_steps=4, noise_scale=2.0)
    for left in (1.0, 0.75, 0.5, 0.25):
        noise = next_noise(method)
        torch.testing.assert_close(method.logits().detach(), 2.0 * left * noise)
    assert method.scale_now() == 0
    faded, hard = make(noise_steps=1), HardST(60, generator=generator(), dtype=torch.float64)
    faded.sample()
    for method in (faded, hard):
        (method.coefficients() @ WEIGHTS).sum().backward()
    assert torch.equal(faded.sample()[0], hard.gates())
    assert torch.equal(faded.latent.grad, hard.latent.grad)


@pytest.mark.parametrize("options", [{"noise_in": "backward"}, {"noise_in": "forward"}, {"noise_steps": 30}])
def test_resumed_and_side_by_side_runs_end_with_the_same_bits(tmp_path, options):
    config = replace(BASE, **options)
    dataset = load_dataset("monks-2")
    data = training_data(config, dataset)
    whole, stopped = build_network(config, dataset), build_network(config, dataset)
    train(config, whole, data, threads=1)
    train(config, stopped, data, folder=tmp_path, threads=1, should_stop=stop_after(25))
    resumed = build_network(config, dataset)
    train(config, resumed, data, folder=tmp_path, threads=2)
    beside = [build_network(replace(config, seed=seed), dataset) for seed in (7, 3)]
    train_side_by_side([replace(config, seed=seed) for seed in (7, 3)], beside, data)
    for name, value in whole.state_dict().items():
        assert torch.equal(value, resumed.state_dict()[name]), name
        assert torch.equal(value, beside[1].state_dict()[name]), name


def stop_after(steps):
    asked = iter(range(1, 10**6))
    return lambda: next(asked) == steps


@pytest.mark.parametrize("noise_in", NOISE_PLACES)
def test_the_boolean_stack_gives_what_the_layers_give_one_by_one(noise_in):
    config, dataset = replace(BASE, noise_in=noise_in), load_dataset("monks-2")
    fused, plain = build_network(config, dataset).double(), build_network(config, dataset).double()
    plain.implementation = "reference"
    x = dataset.encoder.transform(dataset.x_train)
    for network in (fused, plain):
        network(torch.from_numpy(x)).square().sum().backward()
    for one, two in zip(fused.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(one.grad, two.grad, rtol=1e-10, atol=1e-10)


def test_new_options_leave_the_names_of_older_runs_alone():
    older = hashlib.sha256(json.dumps({"method": "gumbel-st"}).encode()).hexdigest()[:12]
    assert RunConfig(method="gumbel-st").identity == older
    assert replace(RunConfig(method="gumbel-st"), noise_in="backward").identity != older
    options = replace(BASE, noise_in="backward", noise_steps=9).method_options()
    assert (options["noise_in"], options["noise_steps"]) == ("backward", 9)
    assert "noise_in" not in BASE.method_options()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"noise_in": "middle"}, r"unknown noise_in 'middle'; choose one of both, forward, backward"),
        ({"noise_steps": 0}, r"noise_steps must be >= 1, got 0; leave it out for noise that does not fade"),
    ],
)
def test_bad_options_of_the_noise_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        make(**options)
