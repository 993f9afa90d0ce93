"""Compiled coefficients: the definitions in torch, their autograd, and every tie."""

import itertools
import time

import numpy as np
import pytest
import torch
from numba import njit

from gatefit.codebook import CODEBOOK, TIE_ORDER
from gatefit.ops.coefficients_numba import (
    mixture_coefficients_numba,
    snap_numba,
    soft_coefficients_numba,
    straight_through_mixture_numba,
)
from gatefit.ops.sixteen_numba import _exp_float32
from gatefit.ops.threads import training_threads

G = torch.tensor(CODEBOOK, dtype=torch.float64)
SIZES = [1, 63, 64, 65, 4097]


def covjac(latent, temperature):
    distances = (latent[:, None] - G).square().sum(-1)
    return torch.softmax(-distances / temperature, -1) @ G


def mixture(logits, temperature=1.0):
    return torch.softmax(logits / temperature, -1) @ G


def parameters(gates, count, dtype=torch.float64, scale=1.5):
    generator = torch.Generator().manual_seed(gates)
    return (scale * torch.randn(gates, count, generator=generator, dtype=torch.float64)).to(dtype).requires_grad_()


def direction(gates):
    return torch.randn(gates, 4, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


@pytest.mark.parametrize("gates", SIZES)
@pytest.mark.parametrize("temperature", [0.1, 1.0, 5.0])
def test_soft_coefficients_match_their_definition(gates, temperature):
    latent = parameters(gates, 4)
    tau = torch.tensor(temperature, dtype=torch.float64, requires_grad=True)
    fused, expected = soft_coefficients_numba(latent, tau), covjac(latent, tau)
    torch.testing.assert_close(fused, expected, rtol=1e-10, atol=1e-12)
    for name, value, reference in zip(
        ("grad_latent", "grad_temperature"),
        torch.autograd.grad(fused, (latent, tau), direction(gates)),
        torch.autograd.grad(expected, (latent, tau), direction(gates)),
        strict=True,
    ):
        torch.testing.assert_close(value, reference, rtol=1e-9, atol=1e-10, msg=lambda m, name=name: f"{name}: {m}")


@pytest.mark.parametrize("gates", SIZES)
@pytest.mark.parametrize("temperature", [0.5, 1.0])
def test_mixtures_match_their_definition(gates, temperature):
    logits = parameters(gates, 16)
    expected = mixture(logits, temperature)
    (reference,) = torch.autograd.grad(expected, logits, direction(gates))
    fused = mixture_coefficients_numba(logits, temperature)
    torch.testing.assert_close(fused, expected, rtol=1e-10, atol=1e-12)
    chosen, hard = straight_through_mixture_numba(logits, temperature)
    assert torch.equal(chosen.long(), logits.argmax(-1))
    assert torch.equal(hard, G[chosen.long()])
    for value in (fused, hard):
        (gradient,) = torch.autograd.grad(value, logits, direction(gates))
        torch.testing.assert_close(gradient, reference, rtol=1e-10, atol=1e-12)


def test_gradcheck():
    latent, logits = parameters(5, 4), parameters(5, 16)
    tau = torch.tensor(0.7, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(soft_coefficients_numba, (latent, tau))
    assert torch.autograd.gradcheck(mixture_coefficients_numba, (logits,))


def test_float32_is_as_accurate_as_torch():
    latent, logits = parameters(3000, 4, torch.float32), parameters(3000, 16, torch.float32)
    for fused, definition, given in (
        (lambda c: soft_coefficients_numba(c, 0.5), lambda c: covjac(c, 0.5), latent),
        (mixture_coefficients_numba, mixture, logits),
    ):
        exact = given.detach().double().requires_grad_()
        value, expected = fused(given), definition(exact)
        assert (value - expected).abs().max() < 3e-6
        (gradient,) = torch.autograd.grad(value, given, direction(3000).float())
        (reference,) = torch.autograd.grad(expected, exact, direction(3000))
        assert (gradient - reference).abs().max() < 1e-5 * reference.abs().max()


def test_exponential_is_good_to_two_units_in_the_last_place():
    @njit
    def all_of(x):
        return np.array([_exp_float32(value) for value in x])

    x = np.concatenate([np.linspace(-87, 0, 200_001), -np.logspace(-30, 0, 10_001)]).astype(np.float32)
    exact = np.exp(x.astype(np.float64))
    units = np.abs(all_of(x) - exact) / np.spacing(exact.astype(np.float32))
    assert units.max() < 2
    assert all_of(np.array([0.0, -1e4, np.nan], dtype=np.float32)).tolist()[0] == 1.0
    assert np.isnan(all_of(np.array([np.nan], dtype=np.float32))).all()


def test_far_coefficients_do_not_overflow():
    latent = torch.tensor([[240.0, -240.0, 240.0, -240.0], [0.0, 0.0, 0.0, 1e6]], requires_grad=True)
    for temperature in (0.01, 1.0):
        soft = soft_coefficients_numba(latent, temperature)
        torch.testing.assert_close(soft.double(), covjac(latent.detach().double(), temperature))
        assert torch.autograd.grad(soft.sum(), latent)[0].isfinite().all()


def test_committed_gates_are_exact_and_no_slower():
    """Weights that are lost beside 1 are 0: numbers of 1e-38 and less take a processor ten times as long."""
    generator = torch.Generator().manual_seed(3)
    near = G[torch.randint(16, (8192,), generator=generator)] + 0.1 * torch.randn(8192, 4, generator=generator)
    latent = near.float().requires_grad_()
    soft = soft_coefficients_numba(latent, 0.005)
    committed = (soft.detach() == soft.detach().round()).all(-1)
    assert committed.float().mean() > 0.9
    gradient, slope = torch.randn(8192, 4, generator=generator), {}
    for _ in range(60):
        for temperature in (1.0, 0.005):  # by turns: what else the machine does slows both
            value = soft_coefficients_numba(latent, temperature)
            start = time.perf_counter()
            (found,) = torch.autograd.grad(value, latent, gradient)
            slope[temperature] = min(slope.get(temperature, float("inf")), time.perf_counter() - start)
    tiny = torch.finfo(torch.float32).tiny
    assert not ((found != 0) & (found.abs() < tiny)).any()
    assert slope[0.005] < 3 * slope[1.0]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("gates", SIZES)
def test_snap_finds_the_nearest_gate(gates, dtype):
    c = parameters(gates, 4, dtype).detach()
    found, snapped = snap_numba(c)
    distances = (c.double()[:, None] - G).square().sum(-1)
    assert torch.equal(found.long(), distances.argmin(-1))
    assert torch.equal(snapped.double(), G[found.long()])
    assert snapped.dtype == dtype


def test_every_tie_goes_to_the_lexicographically_smallest_coefficients():
    # Midpoints of all pairs, triples and quadruples of gates, and half-integer points: exact in float32.
    points = [np.mean(CODEBOOK[list(some)], axis=0) for n in (1, 2, 4) for some in itertools.combinations(range(16), n)]
    points += list(itertools.product(np.arange(-2, 2.5, 0.5), repeat=4))
    c = np.array(points, dtype=np.float64)
    distances = np.square(c[:, None] - CODEBOOK).sum(-1)
    nearest = np.isclose(distances, distances.min(-1, keepdims=True), rtol=0, atol=1e-9)
    expected = TIE_ORDER[nearest[:, TIE_ORDER].argmax(-1)]
    for dtype in (torch.float32, torch.float64):
        assert snap_numba(torch.tensor(c, dtype=dtype))[0].tolist() == expected.tolist()
    assert nearest.sum(-1).max() >= 8


def test_equal_logits_give_the_first_gate():
    logits = torch.zeros(3, 16)
    logits[1, [4, 9]] = 1.0
    logits[2, 15] = 2.0
    assert straight_through_mixture_numba(logits)[0].tolist() == [0, 4, 15]


def test_a_gate_does_not_depend_on_its_neighbours():
    latent, logits = parameters(200, 4, torch.float32), parameters(200, 16, torch.float32)
    for function, given in ((lambda c: soft_coefficients_numba(c, 0.3), latent), (mixture_coefficients_numba, logits)):
        whole = function(given)
        (gradient,) = torch.autograd.grad(whole.square().sum(), given)
        for some in (slice(0, 1), slice(3, 70), slice(131, 200)):
            part = given.detach()[some].requires_grad_()
            own = function(part)
            assert torch.equal(own, whole[some])
            assert torch.equal(torch.autograd.grad(own.square().sum(), part)[0], gradient[some])


def test_same_bits_with_one_and_two_threads():
    latent = parameters(10_000, 4, torch.float32)
    tau = torch.tensor(0.7, requires_grad=True)
    results = []
    for threads in (1, 2):
        with training_threads(threads):
            soft = soft_coefficients_numba(latent, tau)
            results.append([soft, *torch.autograd.grad(soft.square().sum(), (latent, tau)), *snap_numba(latent)])
    for one, two in zip(*results, strict=True):
        assert torch.equal(one, two)


def test_not_a_number_propagates():
    latent, logits = parameters(70, 4).detach(), parameters(70, 16).detach()
    latent[66, 2] = logits[66, 7] = float("nan")
    for values in (
        soft_coefficients_numba(latent, 1.0),
        mixture_coefficients_numba(logits),
        snap_numba(latent)[1],
        straight_through_mixture_numba(logits)[1],
    ):
        assert values.isnan().any(-1).nonzero().tolist() == [[66]]


def test_errors_say_what_was_given_and_needed():
    with pytest.raises(ValueError, match=r"latent must have shape \(gates, 4\), got \(3, 5\)"):
        soft_coefficients_numba(torch.zeros(3, 5), 1.0)
    with pytest.raises(ValueError, match=r"logits must have shape \(gates, 16\), got \(4, 4\)"):
        mixture_coefficients_numba(torch.zeros(4, 4))
    with pytest.raises(ValueError, match=r"temperature must be a finite number > 0, got 0.0; the paper uses 1"):
        soft_coefficients_numba(torch.zeros(3, 4), 0.0)
    with pytest.raises(TypeError, match=r"coefficients must be float32 or float64, got torch.int64"):
        snap_numba(torch.zeros(3, 4, dtype=torch.int64))
