"""The paper's lemmas, identities and propositions, one test each, named after the statement.

Where the paper contradicts itself, the test states what is true and names the erratum.
"""

import itertools
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st

from gatefit.codebook import (
    BASES,
    CODEBOOK,
    COEFFICIENTS_FROM_CORNERS,
    CORNER_VALUES,
    CORNERS,
    CORNERS_FROM_COEFFICIENTS,
    AffineBasis,
    affine_basis,
)
from gatefit.gates import Gate, GateKind
from gatefit.methods import GumbelST, HardST, MultilinearCovJac, MultilinearSTE, SoftMix
from gatefit.ops.coefficients import codebook, covariance_jacobian, proximity
from gatefit.ops.gate_layer import gate_layer
from gatefit.ops.implementations import NUMBA

G = torch.tensor(CODEBOOK, dtype=torch.float64)
CORNER_INPUTS = torch.tensor([[0.0, 0], [1, 0], [0, 1], [1, 1]], dtype=torch.float64)
unit = st.floats(0, 1)
small = st.fractions(min_value=-3, max_value=3, max_denominator=20)
coefficients_4 = st.lists(st.floats(-3, 3), min_size=4, max_size=4)


def input_gradient(coefficients, a, b):
    """(∂z/∂a, ∂z/∂b) of one gate, by autograd through the operation itself."""
    x = torch.tensor([[a, b]], dtype=torch.float64, requires_grad=True)
    gate_layer(x, torch.tensor([[0], [1]]), coefficients.reshape(1, 4), implementation=NUMBA).sum().backward()
    return x.grad[0]


# ---- Identity 1 (app. identity1)


def test_identity_1__polynomial_collapse_is_unique_with_integer_coefficients():
    assert round(np.linalg.det(CORNERS_FROM_COEFFICIENTS)) == 1
    for gate in Gate:
        c_0, c_a, c_b, c_ab = CODEBOOK[gate].tolist()
        assert c_0 == gate(0, 0)
        assert c_a == gate(1, 0) - gate(0, 0)
        assert c_b == gate(0, 1) - gate(0, 0)
        assert c_ab == gate(1, 1) - gate(1, 0) - gate(0, 1) + gate(0, 0)
    assert set(CODEBOOK[:, 0]) == {0, 1}
    assert set(CODEBOOK[:, 1]) == set(CODEBOOK[:, 2]) == {-1, 0, 1}
    assert set(CODEBOOK[:, 3]) == {-2, -1, 0, 1, 2}
    assert len({tuple(row) for row in CODEBOOK.tolist()}) == 16


def test_identity_1__zero_discretisation_gap_of_multilinear_ste():
    method = MultilinearSTE(500, generator=torch.Generator().manual_seed(0), sigma=2.0, dtype=torch.float64)
    wiring = torch.tensor([[0], [1]]).repeat(1, 500)
    trained = gate_layer(CORNER_INPUTS, wiring, method.coefficients(), implementation=NUMBA)
    deployed = torch.tensor([[Gate(int(g))(int(a), int(b)) for g in method.gates()] for a, b in CORNER_INPUTS])
    assert torch.equal(trained, deployed.double())


# ---- Lemma: coverage (app. coverage)


def test_lemma_coverage__expected_active_components_are_9_quarters_and_1():
    canonical = CORNERS_FROM_COEFFICIENTS != 0  # rows: the four equally likely inputs
    assert canonical.mean(0).tolist() == [1, 0.5, 0.5, 0.25]
    assert canonical.sum(1).mean() == 2.25
    a, b = CORNERS.T
    corner = np.stack([(1 - a) * (1 - b), a * (1 - b), (1 - a) * b, a * b], 1) != 0
    assert corner.mean(0).tolist() == [0.25] * 4
    assert corner.sum(1).tolist() == [1, 1, 1, 1]


def test_lemma_coverage__gradients_of_the_operation_have_that_coverage():
    coefficients = torch.zeros(1, 4, dtype=torch.float64, requires_grad=True)
    active = torch.zeros(4)
    for corner in CORNER_INPUTS:
        coefficients.grad = None
        gate_layer(corner[None], torch.tensor([[0], [1]]), coefficients, implementation=NUMBA).sum().backward()
        active += (coefficients.grad[0] != 0).float() / 4
    assert active.tolist() == [1, 0.5, 0.5, 0.25]


# ---- Lemma: zero sum, Proposition: Soft-Mix cancellation (sec. softmix-cancel)


def test_lemma_zerosum__non_constant_coefficients_sum_to_zero():
    assert CODEBOOK[:, 1:].sum(0).tolist() == [0, 0, 0]
    for gate in Gate:
        assert (CODEBOOK[gate, 1:] + CODEBOOK[gate.complement, 1:] == 0).all()
        assert CODEBOOK[gate, 0] + CODEBOOK[gate.complement, 0] == 1


@given(unit, unit)
def test_prop_softmix_cancel__uniform_mixture_ignores_its_inputs(a, b):
    method = SoftMix(1, generator=torch.Generator(), sigma=0.0, dtype=torch.float64)
    coefficients = method.coefficients()
    torch.testing.assert_close(coefficients.detach(), torch.tensor([[0.5, 0, 0, 0]], dtype=torch.float64))
    gradient = input_gradient(coefficients.detach(), a, b)
    torch.testing.assert_close(gradient, torch.zeros(2, dtype=torch.float64), atol=1e-15, rtol=0)


def test_prop_softmix_cancel__forward_analogue_is_one_half_everywhere():
    assert CORNER_VALUES.sum(0).tolist() == [8, 8, 8, 8]


@given(st.lists(st.floats(0, 1), min_size=16, max_size=16), st.sampled_from([0, 1]), st.sampled_from([0, 1]))
def test_prop_softmix_cancel__near_uniform_bound(weights, a, b):
    assume(sum(weights) > 1e-3)
    pi = torch.tensor(weights, dtype=torch.float64)
    pi = pi / pi.sum()
    deviation = (pi - 1 / 16).abs().sum()
    assert input_gradient(pi @ G, a, b).abs().max() <= deviation + 1e-12


def test_observation_1__a_normal_initialisation_is_0_72_from_uniform():
    # The paper: E‖π - u‖₁ ≈ 0.72 at σ = 1, so twelve layers attenuate by at most 0.72^12 ≈ 0.019.
    method = SoftMix(20_000, generator=torch.Generator().manual_seed(0))
    deviation = (method.gate_probabilities().detach() - 1 / 16).abs().sum(-1).mean()
    assert float(deviation) == pytest.approx(0.72, abs=0.03)
    assert 0.72**12 == pytest.approx(0.019, abs=0.001)


def test_rank__eleven_of_fifteen_simplex_directions_change_nothing():
    assert np.linalg.matrix_rank(CODEBOOK) == 4
    tangent = np.eye(16)[:, 1:] - 1 / 16  # any basis of the directions that keep Σπ = 1
    tangent -= tangent.mean(0)
    image = tangent.T @ CODEBOOK
    assert np.linalg.matrix_rank(tangent) == 15
    assert np.linalg.matrix_rank(image) == 4
    assert 15 - np.linalg.matrix_rank(image) == 11


def test_rank__gradient_along_the_null_space_is_zero():
    method = SoftMix(1, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    pi = method.gate_probabilities().detach()
    null_space = torch.tensor(np.linalg.svd(np.c_[CODEBOOK, np.ones(16)].T)[2][4:])  # δ with δG = 0; Σδ = 0 follows
    assert null_space.shape[0] in (11, 12)
    for direction in null_space:
        if direction.sum().abs() < 1e-9:
            torch.testing.assert_close((pi + 0.01 * direction) @ G, pi @ G, atol=1e-14, rtol=0)


def test_single_gate_forward_corollary__committed_gates_do_not_cancel():
    generator = torch.Generator().manual_seed(0)
    for method_class in (MultilinearSTE, HardST, GumbelST):
        method = method_class(400, generator=generator, dtype=torch.float64)
        gates, coefficients = method.sample()
        for gate, c in zip(gates.tolist(), coefficients.detach(), strict=True):
            largest = max(float(input_gradient(c, 0.0, b)[0].abs()) for b in (0.0, 1.0))
            assert (largest >= 1) == Gate(gate).depends_on_a


def test_single_gate_forward_corollary__covjac_at_its_symmetric_point_does_cancel():
    # The paper counts CovJac among the single-gate forwards because it evaluates one polynomial. That polynomial is
    # still an average: at the centre (1/2, 0, 0, 0), fixed under complementation, its input gradient is zero too.
    # What saves CovJac is that N(0, 1) starts away from that point, not the number of polynomials.
    centre = torch.tensor([[0.5, 0, 0, 0]], dtype=torch.float64)
    soft = proximity(centre, 1.0) @ G
    torch.testing.assert_close(soft, centre, atol=1e-12, rtol=0)
    generator = torch.Generator().manual_seed(0)
    committed = MultilinearCovJac(4000, generator=generator).coefficients().detach()
    mixed = SoftMix(4000, generator=generator).coefficients().detach()
    assert committed[:, 1:3].abs().mean() > 2 * mixed[:, 1:3].abs().mean()


# ---- Proposition: STE non-cancellation (app. ste-covjac, tab:ste-enumeration)

STE_ENUMERATION = {
    Gate.A: (1, 0, 1, 1),
    Gate.NOT_A: (-1, 0, -1, -1),
    Gate.AND: (0, 1, 0, 1),
    Gate.NAND: (0, -1, 0, -1),
    Gate.OR: (1, -1, 1, 0),
    Gate.NOR: (-1, 1, -1, 0),
    Gate.XOR: (1, -2, 1, -1),
    Gate.XNOR: (-1, 2, -1, 1),
    Gate.A_AND_NOT_B: (1, -1, 1, 0),
    Gate.NOT_A_AND_B: (0, -1, 0, -1),
    Gate.A_OR_NOT_B: (0, 1, 0, 1),
    Gate.NOT_A_OR_B: (-1, 1, -1, 0),
}


def test_prop_ste_noncancel__the_twelve_row_enumeration():
    assert {gate for gate in Gate if gate.depends_on_a} == set(STE_ENUMERATION)
    for gate, (c_a, c_ab, at_0, at_1) in STE_ENUMERATION.items():
        assert (CODEBOOK[gate, 1], CODEBOOK[gate, 3]) == (c_a, c_ab)
        assert [float(input_gradient(G[gate], 0.0, b)[0]) for b in (0.0, 1.0)] == [at_0, at_1]


def test_prop_ste_noncancel__erratum_only_the_maximum_over_b_is_at_least_one():
    # Fig. 1 says |c_a + c_ab b| >= 1 always; the proposition says max over b, and AND at b = 0 shows the difference.
    for gate in STE_ENUMERATION:
        assert max(abs(CODEBOOK[gate, 1] + CODEBOOK[gate, 3] * b) for b in (0, 1)) == 1
    assert any(0 in row[2:] for row in STE_ENUMERATION.values())


# ---- Proposition: CovJac (sec. covjac)


@given(coefficients_4, st.floats(0.1, 10))
def test_prop_covjac__jacobian_is_the_covariance(c, tau):
    latent = torch.tensor([c], dtype=torch.float64)
    weights = proximity(latent, tau)[0]
    mean = weights @ G
    expected = (2 / tau) * ((G * weights[:, None]).T @ G - torch.outer(mean, mean))
    torch.testing.assert_close(covariance_jacobian(latent, tau)[0], expected, atol=1e-10, rtol=1e-8)
    numeric = torch.autograd.functional.jacobian(lambda v: proximity(v[None], tau)[0] @ G, latent[0])
    torch.testing.assert_close(numeric, expected, atol=1e-10, rtol=1e-8)


@given(coefficients_4, st.floats(0.3, 10))
def test_prop_covjac__symmetric_psd_positive_diagonal(c, tau):
    jacobian = covariance_jacobian(torch.tensor([c], dtype=torch.float64), tau)[0]
    torch.testing.assert_close(jacobian, jacobian.T, atol=1e-12, rtol=0)
    assert torch.linalg.eigvalsh(jacobian).min() >= -1e-10
    assert jacobian.diagonal().min() > 0


def test_prop_covjac__jacobian_is_input_independent():
    # The same latent seen through every corner: ∂L/∂c = J ψ(a, b) with one and the same J.
    method = MultilinearCovJac(3, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    jacobian = covariance_jacobian(method.latent.detach(), 1.0)
    wiring = torch.tensor([[0] * 3, [1] * 3])
    for corner, psi in zip(CORNER_INPUTS, torch.tensor(CORNERS_FROM_COEFFICIENTS).double(), strict=True):
        method.zero_grad()
        gate_layer(corner[None], wiring, method.coefficients(), implementation=NUMBA).sum().backward()
        torch.testing.assert_close(method.latent.grad, jacobian @ psi, atol=1e-12, rtol=1e-10)


def test_prop_covjac__c_ab_learns_on_every_sample_through_j03():
    method = MultilinearCovJac(2000, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    jacobian = covariance_jacobian(method.latent.detach(), 1.0)
    assert (jacobian[:, 0, 3].abs() > 1e-6).float().mean() > 0.99  # generically non-zero
    wiring = torch.tensor([[0], [1]]).repeat(1, 2000)
    # At (0, 0) only the constant monomial is active: STE gives c_ab nothing, CovJac gives exactly J_03.
    gate_layer(CORNER_INPUTS[:1], wiring, method.coefficients(), implementation=NUMBA).sum().backward()
    torch.testing.assert_close(method.latent.grad[:, 3], jacobian[:, 0, 3], atol=1e-12, rtol=1e-10)
    ste = MultilinearSTE(2000, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    gate_layer(CORNER_INPUTS[:1], wiring, ste.coefficients(), implementation=NUMBA).sum().backward()
    assert ste.latent.grad[:, 3].abs().max() == 0
    assert ste.latent.grad[:, 0].abs().min() == 1


# ---- Proposition: basis futility (app. basis-futility)


@given(small, small)
def test_prop_basis_futility__no_affine_basis_has_all_three(alpha, beta):
    assume(beta != 0)
    basis = AffineBasis(alpha, beta)
    assert (basis.coverage, basis.coherence, basis.bias) != (1, 1, 0)
    assert (basis.bias == 0) == (alpha == 0 and beta > 0)


@given(small)
def test_prop_basis_futility__part_i_canonical(beta):
    assume(beta > 0)
    basis = AffineBasis(Fraction(0), beta)
    assert (basis.coverage, basis.coherence, basis.bias) == (Fraction(1, 4), 1, 0)


@given(small)
def test_prop_basis_futility__part_i_prime_erratum_phi_zero_at_one_is_biased(alpha):
    # The appendix' statement (i) gives B = 0 here too, and the main text "all other bases have ρ = 1"; its own part
    # (i') and the definition give B > 0 and ρ = 1/4.
    assume(alpha != 0)
    basis = AffineBasis(alpha, -alpha)
    assert (basis.coverage, basis.coherence) == (Fraction(1, 4), 1)
    assert basis.bias > 0
    assert AffineBasis(Fraction(1), Fraction(-1)).bias == Fraction(5, 4)


@given(small, small)
def test_prop_basis_futility__part_ii_full_coverage_costs_coherence_or_bias(p, q):
    assume(p != 0 and q != 0 and p != q)
    basis = AffineBasis(p, q - p)
    assert basis.coverage == 1
    assert basis.bias > 0
    if p * q > 0:
        assert basis.coherence == 1
    else:
        assert basis.coherence == (p + q) ** 2 / (p - q) ** 2 < 1


def test_prop_basis_futility__the_catalogue():
    table = {name: (affine_basis(name).coverage, affine_basis(name).coherence) for name in BASES}
    assert table["canonical"] == (Fraction(1, 4), 1)
    assert table["walsh"] == (1, 0)  # exact coherence cancellation
    assert table["smoothed"] == (1, 1)
    assert all(affine_basis(name).bias > 0 for name in BASES if name != "canonical")


# ---- Bijection (app. bijection) and the fuzzy, probabilistic and SPN views (app. background)


def test_prop_bijection__corners_and_coefficients_are_one_to_one():
    assert (COEFFICIENTS_FROM_CORNERS @ CORNERS_FROM_COEFFICIENTS == np.eye(4)).all()
    assert {tuple(row) for row in CODEBOOK @ CORNERS_FROM_COEFFICIENTS.T} == set(itertools.product((0, 1), repeat=4))


@given(st.lists(st.floats(-5, 5), min_size=4, max_size=4), unit, unit)
def test_app_corner_spn__corner_form_equals_polynomial_form(s, a, b):
    corner_form = np.dot(s, [(1 - a) * (1 - b), a * (1 - b), (1 - a) * b, a * b])
    polynomial_form = np.dot(COEFFICIENTS_FROM_CORNERS @ np.array(s), [1, a, b, a * b])
    assert polynomial_form == pytest.approx(corner_form, abs=1e-10)


@given(unit, unit)
def test_app_fuzzy__the_extension_is_the_product_t_norm(a, b):
    def z(gate):
        return float(np.dot(CODEBOOK[gate], [1, a, b, a * b]))

    assert z(Gate.AND) == pytest.approx(a * b)
    assert z(Gate.OR) == pytest.approx(a + b - a * b)
    assert z(Gate.NOT_A) == pytest.approx(1 - a)
    assert z(Gate.XOR) == pytest.approx(a + b - 2 * a * b)
    # Connectives compose: NAND is the negation of AND, OR is De Morgan's.
    assert z(Gate.NAND) == pytest.approx(1 - z(Gate.AND))
    assert z(Gate.OR) == pytest.approx(1 - (1 - a) * (1 - b))


@pytest.mark.parametrize("gate", Gate)
@given(unit, unit)
def test_app_wmc__the_extension_is_the_weighted_model_count(gate, a, b):
    count = sum(gate(x, y) * (a if x else 1 - a) * (b if y else 1 - b) for x, y in itertools.product((0, 1), repeat=2))
    assert float(np.dot(CODEBOOK[gate], [1, a, b, a * b])) == pytest.approx(count, abs=1e-12)


def test_app_degree__degree_is_logical_complexity():
    for gate in Gate:
        _, c_a, c_b, c_ab = CODEBOOK[gate].tolist()
        degree = 2 if c_ab else 1 if c_a or c_b else 0
        kinds = {GateKind.CONSTANT: 0, GateKind.SEPARABLE: 1}
        assert degree == kinds.get(gate.kind, 2)
        assert abs(c_ab) == {GateKind.WEAK_INTERACTION: 1, GateKind.STRONG_INTERACTION: 2}.get(gate.kind, 0)


def test_codebook_tensor_is_the_codebook():
    assert codebook(torch.float64).tolist() == CODEBOOK.tolist()
