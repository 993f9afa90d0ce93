"""Readings of the straight-through methods and of IWP: where they snap and what their backward pass differentiates."""

import pytest
import torch

from gatefit.codebook import CODEBOOK, affine_basis
from gatefit.layers.gates import trained_output
from gatefit.methods import METHODS, NotBooleanError
from gatefit.network import LogicNetwork
from gatefit.training.config import RunConfig
from gatefit.training.diagnostics_observer import diagnose
from gatefit.training.runs import build_network, execute, execute_together

G = torch.tensor(CODEBOOK, dtype=torch.float64)
GATES, INPUTS, BATCH = 40, 9, 17
READINGS = {
    "iwp, identity": ("iwp", {"corner_activation": "identity"}),
    "iwp-ste": ("iwp-ste", {}),
    "iwp-ste, codebook": ("iwp-ste", {"snap": "codebook"}),
    "iwp-ste, continuous": ("iwp-ste", {"surrogate": "continuous"}),
    "iwp-ste, both": ("iwp-ste", {"snap": "codebook", "surrogate": "continuous"}),
    "iwp-ste, sigmoid, both": (
        "iwp-ste", {"corner_activation": "sigmoid", "snap": "codebook", "surrogate": "continuous"}
    ),
    "multilinear-ste": ("multilinear-ste", {"snap": "codebook"}),
    "multilinear-ste, continuous": ("multilinear-ste", {"surrogate": "continuous"}),
    "multilinear-ste, walsh, continuous": ("multilinear-ste", {"surrogate": "continuous", "backward_basis": "walsh"}),
    "multilinear-ste, constant, continuous": (
        "multilinear-ste", {"surrogate": "continuous", "backward_basis": "expected-value"}
    ),
}  # fmt: skip
SINGLE = [name for name in READINGS if "identity" not in name]


def make(reading, gates=GATES):
    name, options = READINGS[reading]
    return METHODS[name](gates, generator=torch.Generator().manual_seed(0), dtype=torch.float64, **options)


def monomials(a, b):
    return torch.stack([torch.ones_like(a), a, b, a * b], -1)


def corner_functions(a, b):
    return torch.stack([(1 - a) * (1 - b), a * (1 - b), (1 - a) * b, a * b], -1)


def through(soft, hard):
    return soft + (hard - soft).detach()


def direct(reading, method, a, b):
    """The output as the reading is written down, sample by sample, with autograd's own detach."""
    name, options = READINGS[reading]
    latent, continuous = method.latent, "surrogate" in options
    psi, phi = monomials(a, b), corner_functions(a, b)
    if name == "multilinear-ste":
        snapped = G[(latent[:, None] - G).square().sum(-1).argmin(-1)]
        if not continuous:
            return (through(latent, snapped) * psi).sum(-1)
        basis = affine_basis(options.get("backward_basis", "canonical"))
        alpha, beta = float(basis.alpha), float(basis.beta)
        return through((latent * monomials(alpha + beta * a, alpha + beta * b)).sum(-1), (snapped * psi).sum(-1))
    s = torch.sigmoid(latent) if options.get("corner_activation") == "sigmoid" else latent
    if name == "iwp":
        return (s * phi).sum(-1)
    if options.get("snap") == "codebook":
        # The monomials at the four corners, in the order of s: M is their inverse.
        at_corners = monomials(*torch.tensor([[0.0, 1, 0, 1], [0, 0, 1, 1]], dtype=torch.float64))
        c = s @ torch.linalg.inv(at_corners).T
        snapped = (G @ at_corners.T)[(c[:, None] - G).square().sum(-1).argmin(-1)]
    else:
        snapped = (s > 0.5).double()
    if continuous:
        return through((s * phi).sum(-1), (snapped * phi).sum(-1))
    return (through(s, snapped) * phi).sum(-1)


@pytest.mark.parametrize("bits", [False, True], ids=["between", "bits"])
@pytest.mark.parametrize("reading", READINGS)
def test_outputs_and_gradients_equal_the_direct_definition(reading, bits):
    generator = torch.Generator().manual_seed(7)
    wiring = torch.stack([torch.randperm(INPUTS, generator=generator)[:2] for _ in range(GATES)], 1)
    x = torch.rand(BATCH, INPUTS, generator=generator, dtype=torch.float64)
    x = (x > 0.5).double() if bits else x
    upstream = torch.randn(BATCH, GATES, generator=generator, dtype=torch.float64)
    method, results = make(reading), {}
    for way in ("direct", "ours"):
        method.zero_grad()
        inputs = x.clone().requires_grad_()
        if way == "direct":
            z = direct(reading, method, inputs[:, wiring[0]], inputs[:, wiring[1]])
        else:
            z = trained_output(inputs, wiring, method, implementation=method.implementation)
        z.backward(upstream)
        results[way] = {"z": z.detach(), "grad_x": inputs.grad, "grad_latent": method.latent.grad.clone()}
    for quantity, value in results["ours"].items():
        torch.testing.assert_close(value, results["direct"][quantity], rtol=1e-10, atol=1e-10, msg=quantity)
    if bits and method.boolean_forward:
        assert set(results["ours"]["z"].unique().tolist()) == {0.0, 1.0}  # to the bit, however large c is


@pytest.mark.parametrize("reading", READINGS)
def test_the_compiled_stack_is_the_plain_one(reading):
    name, options = READINGS[reading]
    x = torch.rand(70, 12, generator=torch.Generator().manual_seed(1)) > 0.5
    results = []
    for implementation in ("auto", "reference"):
        network = LogicNetwork(
            12, 3, 30, 4, method=name, dtype=torch.float64, implementation=implementation, readout_temperature=2.0,
            **options,
        )  # fmt: skip
        scores = network(x if implementation == "auto" else x.double())
        (scores * torch.linspace(-1, 1, scores.numel(), dtype=torch.float64).view_as(scores)).sum().backward()
        results.append([scores.detach(), *(layer.method.latent.grad for layer in network.gate_layers)])
    for place, (fused, plain) in enumerate(zip(*results, strict=True)):
        torch.testing.assert_close(fused, plain, rtol=1e-10, atol=1e-10, msg=f"{place}")
    constant = "constant" in reading
    assert (float(results[0][1].abs().max()) > 0) is not constant  # a constant basis passes nothing to layers below


@pytest.mark.parametrize("reading", SINGLE)
def test_what_is_deployed_is_what_was_trained(reading):
    method = make(reading, gates=500)
    assert torch.equal(method.gates(), method.sample()[0])
    name, options = READINGS[reading]
    network = LogicNetwork(12, 2, 40, 3, method=name, **options)
    x = torch.rand(70, 12, generator=torch.Generator().manual_seed(1)) > 0.5
    assert torch.equal(network.soft_scores(x), network.eval()(x))


def test_the_codebook_and_the_corners_disagree_on_some_gates():
    """‖M (s - ŝ)‖ is not ‖s - ŝ‖: else the option would say nothing."""
    by_corners, by_codebook = (make(reading, gates=2000).gates() for reading in ("iwp-ste", "iwp-ste, codebook"))
    assert 0.05 < (by_corners != by_codebook).double().mean() < 0.8


def test_probabilities_follow_the_snap():
    method = make("iwp-ste, codebook", gates=300)
    assert torch.equal(method.gate_probabilities().argmax(-1).to(torch.uint8), method.gates())


def test_iwp_without_an_activation_has_no_gates():
    method = make("iwp, identity")
    for ask in (method.gates, method.gate_probabilities):
        with pytest.raises(NotBooleanError, match=r"corner_activation='identity' is never rounded to gates"):
            ask()


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("iwp-ste", {"snap": "gate"}, r"unknown snap 'gate'; choose one of corners, codebook"),
        ("iwp-ste", {"surrogate": "soft"}, r"unknown surrogate 'soft'; choose one of snapped, continuous"),
        ("multilinear-ste", {"surrogate": "soft"}, r"unknown surrogate 'soft'; choose one of snapped, continuous"),
        ("multilinear-ste", {"snap": "corners"}, r"multilinear-ste snaps to the codebook, got snap='corners'"),
    ],
)
def test_bad_options_are_refused(name, options, message):
    with pytest.raises(ValueError, match=message):
        METHODS[name](5, generator=torch.Generator(), **options)


CONFIG = RunConfig(dataset="monks-1", width=34, depth=3, steps=20, evaluate_every=10)


@pytest.mark.parametrize("reading", READINGS)
def test_a_run_with_the_option_trains_reports_and_is_read_back(reading, tmp_path):
    name, options = READINGS[reading]
    config = RunConfig(**{**CONFIG.__dict__, "method": name, **options})
    assert config.identity != RunConfig(**{**CONFIG.__dict__, "method": name}).identity or not options
    run = execute(config, folder=tmp_path / "run")
    last = run.result.state.metrics[-1]
    assert (last["test_hard"] is None) is (reading == "iwp, identity")
    assert last["test_discretisation_gap"] in (None, 0.0)
    again = execute(config, folder=tmp_path / "run")
    assert torch.equal(again.network.gate_layers[0].method.latent, run.network.gate_layers[0].method.latent)


@pytest.mark.parametrize("reading", ["iwp, identity", "iwp-ste, both", "multilinear-ste, walsh, continuous"])
def test_seeds_side_by_side_are_the_same_bits(reading, tmp_path):
    from gatefit.datasets import load_dataset

    name, options = READINGS[reading]
    configs = [RunConfig(**{**CONFIG.__dict__, "method": name, "seed": seed, **options}) for seed in (0, 1)]
    dataset = load_dataset("monks-1")
    together = execute_together(configs, dataset=dataset, folders=[tmp_path / str(c.seed) for c in configs])
    alone = execute(configs[1], folder=tmp_path / "alone")
    assert together[1].result.state.metrics == alone.result.state.metrics


@pytest.mark.parametrize("reading", READINGS)
def test_diagnostics_of_every_reading(reading):
    from gatefit.datasets import load_dataset

    name, options = READINGS[reading]
    config = RunConfig(**{**CONFIG.__dict__, "method": name, **options})
    dataset = load_dataset("monks-1")
    row = diagnose(config, build_network(config, dataset), dataset)
    assert (row["census"] is None) is (reading == "iwp, identity")
    assert (row["survival"] is None) is (reading == "iwp, identity")
    assert row["gradient_norms"]["effective"]["c_0"] > 0
