"""Every method against its direct definition, in float64, and its bad input."""

import numpy as np
import pytest
import torch

from gatefit.codebook import CODEBOOK, affine_basis
from gatefit.gates import Gate
from gatefit.methods import METHODS, GumbelST, HardST, NotBooleanError, method_class
from gatefit.ops.gate_layer import gate_layer
from gatefit.ops.gumbel import GumbelNoise
from gatefit.ops.implementations import NUMBA

G = torch.tensor(CODEBOOK, dtype=torch.float64)
SOFT = ["soft-mix", "multilinear-covjac", "iwp", "multilinear-free", "iwp-free"]
GATES, INPUTS, BATCH = 13, 9, 17


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def make(name, gates=GATES, **options):
    return METHODS[name](gates, generator=generator(), dtype=torch.float64, **options)


def corners(a, b):
    return torch.stack([(1 - a) * (1 - b), a * (1 - b), (1 - a) * b, a * b], -1)


def sixteen_gates(a, b):
    return torch.stack([c[0] + c[1] * a + c[2] * b + c[3] * a * b for c in G], -1)


def onehot_straight_through(logits, temperature=1.0):
    soft = torch.softmax(logits / temperature, -1)
    hard = torch.nn.functional.one_hot(logits.argmax(-1), 16).to(soft)
    return soft + (hard - soft).detach()


def explicit_snap(latent):
    nearest = (latent[:, None] - G).square().sum(-1).argmin(-1)
    return latent + (G[nearest] - latent).detach()


def direct(name, method, a, b):
    """The output as the paper writes it, sample by sample: no shared coefficients, no custom backward."""
    latent = method.latent
    if name == "soft-mix":
        return (torch.softmax(latent, -1) * sixteen_gates(a, b)).sum(-1)
    if name == "hard-st":
        return (onehot_straight_through(latent) * sixteen_gates(a, b)).sum(-1)
    if name == "gumbel-st":
        stream, gumbel = GumbelNoise(0), torch.empty(latent.shape)
        stream.set_state(method.get_extra_state())  # what the method will draw next
        stream.fill(gumbel, implementation=NUMBA)
        return (onehot_straight_through(latent + gumbel.double()) * sixteen_gates(a, b)).sum(-1)
    monomials = torch.stack([torch.ones_like(a), a, b, a * b], -1)
    if name == "multilinear-ste":
        return (explicit_snap(latent) * monomials).sum(-1)
    if name == "multilinear-covjac":
        weights = torch.softmax(-(latent[:, None] - G).square().sum(-1), -1)
        return (weights * sixteen_gates(a, b)).sum(-1)
    if name == "multilinear-free":
        return torch.sigmoid((latent * monomials).sum(-1))
    if name == "iwp":
        return (torch.sigmoid(latent) * corners(a, b)).sum(-1)
    if name == "iwp-ste":
        snapped = latent + ((latent > 0.5).double() - latent).detach()
        return (snapped * corners(a, b)).sum(-1)
    assert name == "iwp-free"
    return torch.sigmoid((latent * corners(a, b)).sum(-1))


def example():
    g = generator(7)
    wiring = torch.stack([torch.randperm(INPUTS, generator=g)[:2] for _ in range(GATES)], 1)
    x = torch.rand(BATCH, INPUTS, generator=g, dtype=torch.float64)
    return x, wiring, torch.randn(BATCH, GATES, generator=g, dtype=torch.float64)


@pytest.mark.parametrize("name", METHODS)
def test_outputs_and_gradients_equal_the_direct_definition(name):
    x, wiring, upstream = example()
    method = make(name)
    results = {}
    for way in ("direct", "ours"):  # direct first: it reads the noise generator's state without advancing it
        method.zero_grad()
        inputs = x.clone().requires_grad_()
        if way == "direct":
            z = direct(name, method, inputs[:, wiring[0]], inputs[:, wiring[1]])
        else:
            z = method.activation(
                gate_layer(inputs, wiring, method.coefficients(), implementation=method.implementation)
            )
        z.backward(upstream)
        results[way] = {"z": z.detach(), "grad_x": inputs.grad, "grad_latent": method.latent.grad.clone()}
    for quantity, value in results["ours"].items():
        torch.testing.assert_close(value, results["direct"][quantity], rtol=1e-10, atol=1e-10, msg=quantity)
    assert results["ours"]["grad_latent"].abs().max() > 1e-3


@pytest.mark.parametrize("name", SOFT)
def test_soft_methods_pass_gradcheck(name):
    x, wiring, _ = example()
    method = make(name)

    def forward(latent, inputs):
        method.latent.data.copy_(latent.detach())
        return torch.func.functional_call(_Layer(method, wiring), {"method.latent": latent}, (inputs,))

    assert torch.autograd.gradcheck(forward, (method.latent.detach().clone().requires_grad_(), x.requires_grad_()))


class _Layer(torch.nn.Module):
    def __init__(self, method, wiring):
        super().__init__()
        self.method, self.wiring = method, wiring

    def forward(self, x):
        return self.method.activation(
            gate_layer(x, self.wiring, self.method.coefficients(), implementation=self.method.implementation)
        )


@pytest.mark.parametrize("basis", ["walsh", "smoothed", "expected-value", "uniform"])
def test_multilinear_ste_uses_its_backward_basis(basis):
    x, wiring, upstream = example()
    x = (x > 0.5).double()
    method = make("multilinear-ste", backward_basis=basis)
    gate_layer(x, wiring, method.coefficients(), implementation=method.implementation).backward(upstream)
    phi = affine_basis(basis)
    expected = torch.zeros(GATES, 4, dtype=torch.float64)
    for i in range(BATCH):
        for n in range(GATES):
            values = phi(int(x[i, wiring[0, n]]), int(x[i, wiring[1, n]]))
            expected[n] += upstream[i, n] * torch.tensor([float(v) for v in values], dtype=torch.float64)
    torch.testing.assert_close(method.latent.grad, expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize(
    ("activation", "value", "slope"),
    [
        ("identity", lambda s: s, torch.ones_like),
        ("sigmoid", torch.sigmoid, lambda s: torch.sigmoid(s) * torch.sigmoid(-s)),
        ("sin01", lambda s: 0.5 + 0.5 * torch.sin(s), lambda s: 0.5 * torch.cos(s)),
    ],
)
def test_iwp_ste_snaps_behind_its_activation(activation, value, slope):
    x, wiring, upstream = example()
    x = (x > 0.5).double()
    method = make("iwp-ste", corner_activation=activation)
    latent = method.latent.detach()
    at = value(latent) > 0.5
    inputs = x.clone().requires_grad_()
    z = gate_layer(inputs, wiring, method.coefficients(), implementation=method.implementation)
    a, b = x[:, wiring[0]], x[:, wiring[1]]
    phi = corners(a, b)
    assert torch.equal(z.detach(), (phi * at).sum(-1))
    z.backward(upstream)
    torch.testing.assert_close(method.latent.grad, (upstream[..., None] * phi).sum(0) * slope(latent))
    values = at.double()
    slope_a = (values[:, 1] - values[:, 0]) * (1 - b) + (values[:, 3] - values[:, 2]) * b
    slope_b = (values[:, 2] - values[:, 0]) * (1 - a) + (values[:, 3] - values[:, 1]) * a
    expected = torch.zeros_like(x)
    for row, part in ((wiring[0], slope_a), (wiring[1], slope_b)):
        expected.index_add_(1, row, upstream * part)
    torch.testing.assert_close(inputs.grad, expected)
    gates = [Gate(int(gate)) for gate in method.gates()]
    assert [[g(0, 0), g(1, 0), g(0, 1), g(1, 1)] for g in gates] == at.int().tolist()
    residual = make("iwp-ste", gates=500, corner_activation=activation, initialisation="residual")
    assert (residual.gates() == Gate.A).double().mean() > 0.8


@pytest.mark.parametrize("name", [n for n in METHODS if "free" not in n])
def test_deployed_gate_is_the_one_the_definition_names(name):
    method = make(name, gates=200)
    latent, gates = method.latent.detach(), method.gates()
    assert gates.dtype == torch.uint8
    if method.parameters_per_gate == 16:
        assert torch.equal(gates.long(), latent.argmax(-1))
    elif name.startswith("iwp"):
        values = torch.sigmoid(latent) if name == "iwp" else latent
        at = values > 0.5
        for i in range(200):
            gate = Gate(int(gates[i]))
            assert [gate(0, 0), gate(1, 0), gate(0, 1), gate(1, 1)] == at[i].int().tolist()
    else:
        assert torch.equal(gates.long(), (latent[:, None] - G).square().sum(-1).argmin(-1))


@pytest.mark.parametrize("name", [n for n, m in METHODS.items() if m.boolean_forward])
def test_single_gate_forward_gives_codebook_rows(name):
    gates, coefficients = make(name, gates=100).sample()
    assert torch.equal(coefficients, G[gates.long()])


@pytest.mark.parametrize("name", METHODS)
def test_residual_initialisation_leans_to_a(name):
    method = make(name, gates=500, initialisation="residual")
    a, b = torch.tensor([0.0, 0, 1, 1], dtype=torch.float64), torch.tensor([0.0, 1, 0, 1], dtype=torch.float64)
    x, wiring = torch.stack([a, b], 1), torch.tensor([[0], [1]]).repeat(1, 500)
    if "free" not in name:
        assert (method.gates() == Gate.A).float().mean() > 0.8
    z = method.activation(gate_layer(x, wiring, method.coefficients(), implementation=method.implementation)).mean(1)
    assert z[2:].min() - z[:2].max() > 0.3


@pytest.mark.parametrize("name", METHODS)
def test_same_seed_same_parameters_and_float64_starts_where_float32_does(name):
    one = METHODS[name](50, generator=generator(3))
    two = METHODS[name](50, generator=generator(3))
    double = METHODS[name](50, generator=generator(3), dtype=torch.float64)
    assert torch.equal(one.latent, two.latent)
    assert torch.equal(one.latent.double(), double.latent)


def test_gumbel_noise_is_fresh_each_step_and_resumes_from_the_state_dict():
    method = GumbelST(300, generator=generator())
    first = method.sample()[0]
    saved = {k: v.clone() for k, v in method.state_dict().items()}
    second = method.sample()[0]
    other = GumbelST(300, generator=generator(99))
    other.load_state_dict(saved)
    assert not torch.equal(first, second)
    assert torch.equal(other.sample()[0], second)


def test_gumbel_noise_has_the_gumbel_distribution():
    method = GumbelST(40_000, generator=generator(), sigma=0.0)
    noise = method.logits().detach()
    assert abs(noise.mean() - 0.5772) < 0.01  # the Euler-Mascheroni constant
    assert abs(noise.var() - np.pi**2 / 6) < 0.02


def test_gumbel_without_noise_is_hard_st():
    gumbel = GumbelST(100, generator=generator(), noise_scale=0.0, temperature=0.7)
    hard = HardST(100, generator=generator(), temperature=0.7)
    for method in (gumbel, hard):
        method.coefficients().sum(0).mul(torch.tensor([1.0, 2, 3, 4])).sum().backward()
    assert torch.equal(gumbel.latent.grad, hard.latent.grad)


def test_learnable_temperature_receives_a_gradient_and_is_saved():
    method = make("multilinear-covjac", learnable_temperature=True, temperature=0.5)
    assert float(method.temperature.detach()) == pytest.approx(0.5)
    method.coefficients().square().sum().backward()
    assert method.log_temperature.grad.abs() > 0
    assert "log_temperature" in method.state_dict()
    assert "log_temperature" not in make("multilinear-covjac").state_dict()


@pytest.mark.parametrize("name", [n for n in METHODS if "free" not in n])
def test_gate_probabilities_are_distributions(name):
    probabilities = make(name, gates=40).gate_probabilities().detach()
    torch.testing.assert_close(probabilities.sum(-1), torch.ones(40, dtype=torch.float64))
    assert probabilities.min() >= 0


@pytest.mark.parametrize("name", ["multilinear-free", "iwp-free"])
def test_free_variants_refuse_to_name_gates(name):
    with pytest.raises(NotBooleanError, match=rf"{name} is never snapped to gates, so it has no circuit; measure"):
        make(name).gates()
    with pytest.raises(NotBooleanError, match="defines no distribution"):
        make(name).gate_probabilities()


@pytest.mark.parametrize(
    ("name", "options", "error", "message"),
    [
        ("soft-mix", {"gates": 0}, ValueError, r"needs a whole number of gates >= 1, got 0"),
        ("soft-mix", {"gates": 2.5}, ValueError, r"needs a whole number of gates >= 1, got 2.5"),
        (
            "soft-mix",
            {"initialisation": "xavier"},
            ValueError,
            r"unknown initialisation 'xavier'; choose one of normal",
        ),
        ("soft-mix", {"sigma": -1.0}, ValueError, r"sigma must be a finite number >= 0, got -1.0"),
        ("soft-mix", {"dtype": torch.int32}, TypeError, r"must be floating-point, got dtype=torch.int32"),
        ("hard-st", {"temperature": 0}, ValueError, r"temperature must be a finite number > 0, got 0.0"),
        ("gumbel-st", {"noise_scale": -1}, ValueError, r"noise_scale must be a finite number >= 0, got -1"),
        ("multilinear-covjac", {"temperature": -1}, ValueError, r"temperature must be a finite number > 0, got -1.0"),
        ("multilinear-ste", {"backward_basis": "haar"}, ValueError, r"unknown basis 'haar'; choose one of canonical"),
        ("multilinear-ste", {"backward_basis": "smoothed", "epsilon": 0}, ValueError, r"epsilon > 0, got 0"),
        ("iwp", {"corner_activation": "tanh"}, ValueError, r"unknown corner_activation 'tanh'; choose one of sigmoid"),
        (
            "iwp-ste",
            {"corner_activation": "tan"},
            ValueError,
            r"unknown corner_activation 'tan'; choose one of identity",
        ),
    ],
)
def test_bad_options_are_refused(name, options, error, message):
    with pytest.raises(error, match=message):
        METHODS[name](**{"gates": 5, "generator": generator(), **options})


@pytest.mark.parametrize("name", [n for n in METHODS if "free" not in n])
def test_non_finite_parameters_are_refused_when_deployed(name):
    method = make(name)
    method.latent.data[3, 2] = float("nan")
    with pytest.raises(ValueError, match=r"hold 1 non-finite values; lower the learning rate"):
        method.gates()


def test_unknown_method_lists_the_choices():
    with pytest.raises(ValueError, match=r"unknown method 'softmix'; choose one of soft-mix, hard-st"):
        method_class("softmix")
    assert all(method_class(name).name == name for name in METHODS)


def test_soft_methods_do_not_sample():
    with pytest.raises(NotBooleanError, match=r"soft-mix mixes gates"):
        make("soft-mix").sample()
    assert "gates=13" in repr(make("soft-mix"))
