"""Snap, proximity, covariance: against the definitions written out, ties and bad input included."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from gatefit.codebook import CODEBOOK, TIE_ORDER, affine_basis
from gatefit.gates import Gate
from gatefit.methods import MultilinearCovJac, MultilinearSTE
from gatefit.ops.coefficients import nearest
from gatefit.ops.coefficients import soft_coefficients_torch as closed_form
from gatefit.ops.implementations import NUMBA
from gatefit.quantise import (
    codebook,
    covariance_jacobian,
    nearest_gate,
    proximity,
    snap,
    soft_coefficients,
    straight_through,
)

vectors = st.lists(st.floats(-4, 4, allow_nan=False), min_size=4, max_size=4)


@given(vectors)
def test_nearest_gate_minimises_the_distance(c):
    distances = np.square(np.array(c) - CODEBOOK).sum(-1)
    chosen = int(nearest_gate(torch.tensor([c], dtype=torch.float64)))
    assert distances[chosen] <= distances.min() + 1e-12


@pytest.mark.parametrize("gate", Gate)
def test_every_gate_snaps_to_itself(gate):
    assert int(nearest_gate(codebook()[gate : gate + 1])) == gate
    assert snap(codebook(torch.float64)[gate : gate + 1]).tolist() == [CODEBOOK[gate].tolist()]


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
    """The first in order of ties of the nearest gates, in exact arithmetic."""
    exact = [Fraction(float(value)) for value in c]
    distances = [sum((x - int(g)) ** 2 for x, g in zip(exact, row, strict=True)) for row in CODEBOOK]
    return next(int(j) for j in TIE_ORDER if distances[j] == min(distances))


def test_snap_on_the_boundaries_is_exact_and_the_same_in_training_and_deployment():
    points = torch.tensor(boundary_points())
    expected = [exact_nearest(c) for c in points.tolist()]
    assert expected[-1] == 7
    assert nearest_gate(points).tolist() == expected
    assert nearest(points, implementation=NUMBA)[0].tolist() == expected
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
    assert torch.equal(nearest_gate(c), nearest(c, implementation=NUMBA)[0])


@given(vectors, st.floats(0.05, 20))
def test_proximity_is_the_softmax_of_distances(c, temperature):
    logits = -np.square(np.array(c) - CODEBOOK).sum(-1) / temperature
    weights = np.exp(logits - logits.max())
    found = proximity(torch.tensor([c], dtype=torch.float64), temperature)[0].numpy()
    np.testing.assert_allclose(found, weights / weights.sum(), atol=1e-12)


@given(vectors, st.floats(0.05, 20))
def test_closed_form_backward_equals_autograd_and_the_jacobian(c, temperature):
    upstream = torch.tensor([[0.3, -1.2, 0.7, 2.0]], dtype=torch.float64)
    gradients = []
    for function in (soft_coefficients, closed_form):
        latent = torch.tensor([c], dtype=torch.float64, requires_grad=True)
        tau = torch.tensor(temperature, dtype=torch.float64, requires_grad=True)
        function(latent, tau).backward(upstream)
        gradients.append((latent.grad, tau.grad))
    jacobian = covariance_jacobian(torch.tensor([c], dtype=torch.float64), temperature)
    torch.testing.assert_close(gradients[0][0], gradients[1][0], atol=1e-10, rtol=1e-10)
    torch.testing.assert_close(gradients[0][1], gradients[1][1], atol=1e-10, rtol=1e-8)
    torch.testing.assert_close(gradients[1][0], (upstream[:, None] @ jacobian)[:, 0], atol=1e-10, rtol=1e-10)


def test_straight_through_applies_the_basis_to_the_gradient():
    matrix = torch.tensor(affine_basis("walsh").matrix)
    latent = torch.zeros(2, 4, dtype=torch.float64, requires_grad=True)
    upstream = torch.tensor([[1.0, 2, 3, 4], [0, -1, 0, 5]], dtype=torch.float64)
    value = torch.ones(2, 4, dtype=torch.float64)
    out = straight_through(latent, value, matrix)
    out.backward(upstream)
    assert torch.equal(out, value)
    torch.testing.assert_close(latent.grad, (matrix @ upstream.T).T)


def test_bad_input_is_refused_with_what_to_do():
    good = torch.zeros(3, 4)
    with pytest.raises(ValueError, match=r"temperature must be a finite number > 0, got 0.0"):
        proximity(good, 0.0)
    with pytest.raises(ValueError, match=r"temperature must be a finite number > 0, got nan"):
        closed_form(good, float("nan"))
    with pytest.raises(ValueError, match=r"shape \(gates, 4\), got \(3, 5\)"):
        snap(torch.zeros(3, 5))
    with pytest.raises(TypeError, match=r"must be floating-point, got torch.int64; convert"):
        nearest_gate(torch.zeros(3, 4, dtype=torch.int64))
    with pytest.raises(ValueError, match=r"hold 1 non-finite values; lower the learning rate"):
        nearest_gate(torch.tensor([[0.0, float("nan"), 0, 0]]))
    huge = torch.full((3, 4), 3e38)  # the sum overflows, the values are finite
    assert nearest_gate(huge).shape == (3,)
