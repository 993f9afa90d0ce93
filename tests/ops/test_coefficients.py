"""Snap, proximity, covariance, mixtures: their definitions written out, every tie, and what bad input is told.

That all implementations agree is in test_implementations.
"""

import itertools
import time
from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numba import njit

from gatefit.codebook import CODEBOOK, TIE_ORDER, affine_basis
from gatefit.gates import Gate
from gatefit.methods import MultilinearCovJac, MultilinearSTE
from gatefit.ops.coefficients import (
    codebook,
    covariance_jacobian,
    largest,
    mixture_coefficients,
    proximity,
    snap,
    soft_coefficients,
    straight_through_mixture,
)
from gatefit.ops.implementations import IMPLEMENTATIONS, NUMBA, REFERENCE
from gatefit.ops.simd import _exp_float32
from gatefit.ops.straight_through import straight_through
from gatefit.ops.threads import training_threads

WHOLE_CODEBOOK = CODEBOOK.astype(int).tolist()
vectors = st.lists(st.floats(-4, 4, allow_nan=False), min_size=4, max_size=4)


def nearest_gate(c, implementation=REFERENCE):
    return snap(c, implementation=implementation)[0]


@given(vectors)
def test_nearest_gate_minimises_the_distance(c):
    distances = np.square(np.array(c) - CODEBOOK).sum(-1)
    chosen = int(nearest_gate(torch.tensor([c], dtype=torch.float64)))
    assert distances[chosen] <= distances.min() + 1e-12


@pytest.mark.parametrize("gate", Gate)
def test_every_gate_snaps_to_itself(gate):
    assert int(nearest_gate(codebook()[gate : gate + 1])) == gate
    assert snap(codebook(torch.float64)[gate : gate + 1], implementation=REFERENCE)[1].tolist() == [
        CODEBOOK[gate].tolist()
    ]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_ties_go_to_the_lexicographically_smallest_vector(dtype):
    halves = np.stack(np.meshgrid(*[np.arange(-2, 2.5, 0.5)] * 4), -1).reshape(-1, 4)  # exact in binary
    squared = np.square(halves[:, None] - CODEBOOK).sum(-1)
    expected = [min(np.flatnonzero(row == row.min()), key=lambda j: CODEBOOK[j].tolist()) for row in squared]
    assert (np.sort(squared, 1)[:, 0] == np.sort(squared, 1)[:, 1]).sum() > 100  # the grid has many ties
    assert nearest_gate(torch.tensor(halves, dtype=dtype)).tolist() == expected


def boundary_points(count=3000):
    """float32 coefficients on the boundary between two gates, and one unit in the last place to either side of it."""
    generator = np.random.default_rng(0)
    points = []
    for one, two in itertools.combinations(range(16), 2):
        normal = CODEBOOK[two] - CODEBOOK[one]
        c = generator.normal(0, 2, (count // 120 + 1, 4))
        c += np.outer((((CODEBOOK[one] + CODEBOOK[two]) / 2 - c) @ normal) / (normal @ normal), normal)
        points.append(c)
    near = np.concatenate(points).astype(np.float32)
    steps = [np.nextafter(near, np.float32(way)) for way in (-np.inf, np.inf)]
    moved = [np.where(np.arange(4) == k, step, near) for step in steps for k in range(4)]
    # Seen in training: float32 arithmetic calls this gate 3.
    seen = np.array([[-0.17704937, 3.0694928, 1.9581033, 0.958103]], dtype=np.float32)
    return np.concatenate([near, *moved, seen])


def exact_nearest(c):
    """The first in order of ties of the nearest gates, in whole numbers of the finest binary place."""
    ratios = [float(value).as_integer_ratio() for value in c]
    unit = max(denominator for _, denominator in ratios)
    exact = [numerator * (unit // denominator) for numerator, denominator in ratios]
    distances = [sum((x - g * unit) ** 2 for x, g in zip(exact, row, strict=True)) for row in WHOLE_CODEBOOK]
    nearest = min(distances)
    return next(int(j) for j in TIE_ORDER if distances[j] == nearest)


def test_snap_on_the_boundaries_is_exact_and_the_same_in_training_and_deployment():
    points = torch.tensor(boundary_points())
    expected = [exact_nearest(c) for c in points.tolist()]
    assert expected[-1] == 7
    for way in IMPLEMENTATIONS.values():
        assert nearest_gate(points, way).tolist() == expected
    for kind in (MultilinearSTE, MultilinearCovJac):
        for implementation in ("auto", "reference", "numba"):
            method = kind(len(points), generator=torch.Generator().manual_seed(0))
            method.latent.data, method.implementation = points, implementation
            assert method.gates().tolist() == expected
    method = MultilinearSTE(len(points), generator=torch.Generator().manual_seed(0))
    method.latent.data = points
    trained, coefficients = method.sample()
    assert trained.tolist() == expected
    assert torch.equal(coefficients.detach(), codebook()[method.gates().long()])


@given(st.lists(st.tuples(*[st.floats(-1e9, 1e9, width=64)] * 4), min_size=1, max_size=50))
def test_both_snaps_agree_to_the_bit_in_float64_too(rows):
    c = torch.tensor(rows, dtype=torch.float64)
    assert torch.equal(nearest_gate(c), nearest_gate(c, NUMBA))


@given(vectors, st.floats(0.05, 20))
def test_proximity_is_the_softmax_of_distances(c, temperature):
    logits = -np.square(np.array(c) - CODEBOOK).sum(-1) / temperature
    weights = np.exp(logits - logits.max())
    found = proximity(torch.tensor([c], dtype=torch.float64), temperature)[0].numpy()
    np.testing.assert_allclose(found, weights / weights.sum(), atol=1e-12)


@given(vectors, st.floats(0.05, 20))
def test_the_backward_pass_is_the_covariance_jacobian(c, temperature):
    upstream = torch.tensor([[0.3, -1.2, 0.7, 2.0]], dtype=torch.float64)
    jacobian = covariance_jacobian(torch.tensor([c], dtype=torch.float64), temperature)
    for way in IMPLEMENTATIONS.values():
        latent = torch.tensor([c], dtype=torch.float64, requires_grad=True)
        soft_coefficients(latent, temperature, implementation=way).backward(upstream)
        torch.testing.assert_close(latent.grad, (upstream[:, None] @ jacobian)[:, 0], atol=1e-10, rtol=1e-10)


@pytest.mark.parametrize("way", IMPLEMENTATIONS.values(), ids=lambda way: way.name)
def test_equal_logits_give_the_first_gate(way):
    logits = torch.zeros(3, 16)
    logits[1, [4, 9]] = 1.0
    logits[2, 15] = 2.0
    assert largest(logits, implementation=way)[0].tolist() == [0, 4, 15]
    assert straight_through_mixture(logits, implementation=way)[0].tolist() == [0, 4, 15]


def test_straight_through_applies_the_basis_to_the_gradient():
    matrix = torch.tensor(affine_basis("walsh").matrix)
    latent = torch.zeros(2, 4, dtype=torch.float64, requires_grad=True)
    upstream = torch.tensor([[1.0, 2, 3, 4], [0, -1, 0, 5]], dtype=torch.float64)
    value = torch.ones(2, 4, dtype=torch.float64)
    out = straight_through(latent, value, matrix)
    out.backward(upstream)
    assert torch.equal(out, value)
    torch.testing.assert_close(latent.grad, (matrix @ upstream.T).T)


@pytest.mark.parametrize("way", IMPLEMENTATIONS.values(), ids=lambda way: way.name)
def test_bad_input_is_refused_with_what_to_do(way):
    for value in (0.0, float("nan")):
        with pytest.raises(ValueError, match=rf"temperature must be a finite number > 0, got {value}; the paper uses"):
            soft_coefficients(torch.zeros(3, 4), value, implementation=way)
    with pytest.raises(ValueError, match=r"coefficients must have shape \(gates, 4\), got \(3, 5\)"):
        snap(torch.zeros(3, 5), implementation=way)
    with pytest.raises(ValueError, match=r"logits must have shape \(gates, 16\), got \(4, 4\)"):
        mixture_coefficients(torch.zeros(4, 4), implementation=way)
    with pytest.raises(TypeError, match=r"must be floating-point, got torch.int64; convert with .float\(\)"):
        snap(torch.zeros(3, 4, dtype=torch.int64), implementation=way)
    with pytest.raises(TypeError, match=r"coefficients must be float32 or float64, got torch.bfloat16"):
        snap(torch.zeros(3, 4, dtype=torch.bfloat16), implementation=NUMBA)


@pytest.mark.parametrize("kind", [MultilinearSTE, MultilinearCovJac])
def test_what_is_no_number_has_no_gate(kind):
    method = kind(3, generator=torch.Generator().manual_seed(0))
    method.latent.data[1, 2] = float("nan")
    with pytest.raises(ValueError, match=r"coefficients of .* hold 1 non-finite values; lower the learning rate"):
        method.gates()
    method.latent.data[:] = 3e38  # the sum overflows, the values are finite
    assert method.gates().shape == (3,)


def parameters(gates, count, dtype=torch.float64, scale=1.5):
    generator = torch.Generator().manual_seed(gates)
    return (scale * torch.randn(gates, count, generator=generator, dtype=torch.float64)).to(dtype).requires_grad_()


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
        soft = soft_coefficients(latent, temperature, implementation=NUMBA)
        torch.testing.assert_close(
            soft.double(), soft_coefficients(latent.detach().double(), temperature, implementation=REFERENCE)
        )
        assert torch.autograd.grad(soft.sum(), latent)[0].isfinite().all()


def test_committed_gates_are_exact_and_no_slower():
    """Weights that are lost beside 1 are 0: numbers of 1e-38 and less take a processor ten times as long."""
    generator = torch.Generator().manual_seed(3)
    near = codebook()[torch.randint(16, (8192,), generator=generator)] + 0.1 * torch.randn(8192, 4, generator=generator)
    latent = near.float().requires_grad_()
    soft = soft_coefficients(latent, 0.005, implementation=NUMBA)
    committed = (soft.detach() == soft.detach().round()).all(-1)
    assert committed.float().mean() > 0.9
    gradient, slope = torch.randn(8192, 4, generator=generator), {}
    for _ in range(60):
        for temperature in (1.0, 0.005):  # by turns: what else the machine does slows both
            value = soft_coefficients(latent, temperature, implementation=NUMBA)
            start = time.perf_counter()
            (found,) = torch.autograd.grad(value, latent, gradient)
            slope[temperature] = min(slope.get(temperature, float("inf")), time.perf_counter() - start)
    tiny = torch.finfo(torch.float32).tiny
    assert not ((found != 0) & (found.abs() < tiny)).any()
    assert slope[0.005] < 3 * slope[1.0]


def test_a_gate_does_not_depend_on_its_neighbours():
    latent, logits = parameters(200, 4, torch.float32), parameters(200, 16, torch.float32)
    for function, of_all in (
        (lambda c: soft_coefficients(c, 0.3, implementation=NUMBA), latent),
        (partial(mixture_coefficients, implementation=NUMBA), logits),
    ):
        whole = function(of_all)
        (gradient,) = torch.autograd.grad(whole.square().sum(), of_all)
        for some in (slice(0, 1), slice(3, 70), slice(131, 200)):
            part = of_all.detach()[some].requires_grad_()
            own = function(part)
            assert torch.equal(own, whole[some])
            assert torch.equal(torch.autograd.grad(own.square().sum(), part)[0], gradient[some])


def test_same_bits_with_one_and_two_threads():
    latent = parameters(10_000, 4, torch.float32)
    tau = torch.tensor(0.7, requires_grad=True)
    results = []
    for threads in (1, 2):
        with training_threads(threads):
            soft = soft_coefficients(latent, tau, implementation=NUMBA)
            results.append(
                [soft, *torch.autograd.grad(soft.square().sum(), (latent, tau)), *snap(latent, implementation=NUMBA)]
            )
    for one, two in zip(*results, strict=True):
        assert torch.equal(one, two)


@pytest.mark.parametrize("way", IMPLEMENTATIONS.values(), ids=lambda way: way.name)
def test_not_a_number_propagates(way):
    latent, logits = parameters(70, 4).detach(), parameters(70, 16).detach()
    latent[66, 2] = logits[66, 7] = float("nan")
    for values in (
        soft_coefficients(latent, 1.0, implementation=way),
        mixture_coefficients(logits, implementation=way),
        snap(latent, implementation=way)[1],
        largest(logits, implementation=way)[1],
        straight_through_mixture(logits, implementation=way)[1],
    ):
        assert values.isnan().any(-1).nonzero().tolist() == [[66]]
