"""The codebook, its bijection with corners, its bases and distances."""

from fractions import Fraction

import numpy as np
import pytest

from gatefit.codebook import (
    BASES,
    CODEBOOK,
    COEFFICIENTS_FROM_CORNERS,
    CORNER_VALUES,
    CORNERS,
    CORNERS_FROM_COEFFICIENTS,
    SQUARED_DISTANCES,
    AffineBasis,
    affine_basis,
    smoothed,
)
from gatefit.gates import Gate


@pytest.mark.parametrize(
    ("gate", "coefficients"),
    [
        (Gate.AND, [0, 0, 0, 1]),
        (Gate.OR, [0, 1, 1, -1]),
        (Gate.XOR, [0, 1, 1, -2]),
        (Gate.A, [0, 1, 0, 0]),
        (Gate.FALSE, [0, 0, 0, 0]),
        (Gate.XNOR, [1, -1, -1, 2]),
    ],
)
def test_codebook_holds_the_papers_examples(gate, coefficients):
    assert CODEBOOK[gate].tolist() == coefficients


@pytest.mark.parametrize("gate", Gate)
def test_polynomial_agrees_with_the_truth_table(gate):
    c_0, c_a, c_b, c_ab = CODEBOOK[gate].tolist()
    for a in (0, 1):
        for b in (0, 1):
            assert c_0 + c_a * a + c_b * b + c_ab * a * b == gate(a, b)


@pytest.mark.parametrize("name", BASES)
def test_basis_matrix_maps_canonical_to_basis(name):
    basis = affine_basis(name)
    for (a, b), canonical in zip(CORNERS.tolist(), CORNERS_FROM_COEFFICIENTS, strict=True):
        np.testing.assert_allclose(basis.matrix @ canonical, [float(v) for v in basis(a, b)], atol=1e-15)


def test_bases_are_those_of_the_catalogue():
    values = {name: [tuple(map(float, affine_basis(name)(a, b))) for a, b in CORNERS.tolist()] for name in BASES}
    assert values["canonical"] == [(1, 0, 0, 0), (1, 1, 0, 0), (1, 0, 1, 0), (1, 1, 1, 1)]
    assert values["walsh"] == [(1, -1, -1, 1), (1, 1, -1, -1), (1, -1, 1, -1), (1, 1, 1, 1)]
    assert values["expected-value"] == [(1, 0.5, 0.5, 0.25)] * 4
    assert values["uniform"] == [(1, 1, 1, 1)] * 4
    assert values["smoothed"][0] == pytest.approx((1, 0.2, 0.2, 0.04))


def test_bijection_matrices_are_the_papers():
    assert COEFFICIENTS_FROM_CORNERS.tolist() == [[1, 0, 0, 0], [-1, 1, 0, 0], [-1, 0, 1, 0], [1, -1, -1, 1]]
    assert CORNERS_FROM_COEFFICIENTS.tolist() == [[1, 0, 0, 0], [1, 1, 0, 0], [1, 0, 1, 0], [1, 1, 1, 1]]
    assert (CODEBOOK @ CORNERS_FROM_COEFFICIENTS.T == CORNER_VALUES).all()


def test_voronoi_distances__erratum_and_to_a_and_not_b_is_root_five():
    # app. voronoi calls AND and (a and not b) adjacent at distance 1 and names sqrt(11) the largest distance.
    assert SQUARED_DISTANCES[Gate.AND, Gate.A_AND_NOT_B] == 5
    assert SQUARED_DISTANCES[Gate.XOR, Gate.AND] == 11
    assert SQUARED_DISTANCES[~np.eye(16, dtype=bool)].min() == 1
    assert SQUARED_DISTANCES.max() == SQUARED_DISTANCES[Gate.XOR, Gate.XNOR] == 25


def test_bad_names_and_epsilons_are_refused():
    with pytest.raises(ValueError, match=r"unknown basis 'fourier'; choose one of canonical, walsh, smoothed"):
        affine_basis("fourier")
    for epsilon in (0, -0.2, float("nan"), float("inf")):
        with pytest.raises(ValueError, match=r"smoothed basis needs a finite epsilon > 0, got"):
            smoothed(epsilon)
    with pytest.raises(ValueError, match=r"epsilon=0.2 belongs to the smoothed basis, got basis 'walsh'"):
        affine_basis("walsh", 0.2)
    assert affine_basis("smoothed", 0.5) == AffineBasis(Fraction(1, 2), Fraction(1))
