"""The claims of the paper's abstract, contributions and theory, each with what bears on it."""

from typing import Final

from gatefit.paper import theory
from gatefit.paper.claims import Cited, Claim, Opinion

_ABSTRACT: Final = "Abstract"
_THEORY: Final = "Sections 3 and 4: method and theory"
_EXTRA: Final = (
    "Labels that begin with extra: are not in the paper; they follow its protocol with fewer gates or steps, so that "
    "they fit a small machine. They are shown and decide nothing."
)

TWO_PRECISIONS: Final = Opinion(
    "our reading",
    "The runs that differ were made when training snapped coefficients in double and deployment in single precision, "
    "so that a point between two gates could go either way; the identity itself is exact.",
    ("ste-zero", "none-straight-through"),
)
LOW_TEMPERATURE: Final = Opinion(
    "paper",
    "We think that the paper's value for CovJac is that of τ = 0.1, which it does not say.",
    ("survival-multilinear-covjac",),
)

HEADLINES: Final = (
    Claim(
        _ABSTRACT,
        "The codebook of the 16 gates has rank 4: 11 of the 15 directions of Soft-Mix's simplex carry gradient that "
        "does no work.",
        computed=theory.null_directions,
        tests=(
            "test_rank__eleven_of_fifteen_simplex_directions_change_nothing",
            "test_rank__gradient_along_the_null_space_is_zero",
        ),
    ),
    Claim(
        _ABSTRACT,
        "At uniform initialisation the backward signal of Soft-Mix vanishes exactly.",
        computed=theory.uniform_mixture,
        tests=(
            "test_prop_softmix_cancel__uniform_mixture_ignores_its_inputs",
            "test_lemma_zerosum__non_constant_coefficients_sum_to_zero",
        ),
        remark="A run does not start there: its logits are drawn from N(0, 1), where the signal is weak but not zero. "
        "fig:cancellation measures how weak.",
    ),
    Claim(
        _ABSTRACT,
        "No affine product reparameterisation of the basis fixes the starvation of c_ab under STE.",
        computed=theory.basis_futility,
        tests=(
            "test_prop_basis_futility__no_affine_basis_has_all_three",
            "test_prop_basis_futility__part_i_canonical",
            "test_prop_basis_futility__part_ii_full_coverage_costs_coherence_or_bias",
            "test_prop_basis_futility__the_catalogue",
        ),
        remark="What the other bases cost in practice is among the controls below.",
    ),
    Claim(
        _ABSTRACT,
        "The covariance Jacobian of soft vector quantisation couples the starved c_ab to the constant channel, which "
        "is active on every sample.",
        computed=theory.covariance_coupling,
        tests=(
            "test_prop_covjac__jacobian_is_the_covariance",
            "test_prop_covjac__jacobian_is_input_independent",
            "test_prop_covjac__c_ab_learns_on_every_sample_through_j03",
        ),
    ),
    Claim(
        _ABSTRACT,
        "Working in the space of polynomials takes each neuron from 16 to 4 parameters.",
        checks=(Cited("tab:degree-complexity"), Cited("tab:cost", "four-parameters")),
    ),
    Claim(
        _ABSTRACT,
        "On seven data sets at least one 4-parameter method matches or exceeds Soft-Mix on every one.",
        checks=(Cited("tab:mnist-main", "matches-soft-mix"),),
        remark="Our check asks it of M-CovJac itself, as the paper's conclusion does, which is the stronger statement.",
    ),
    Claim(
        _ABSTRACT,
        "The advantage of CovJac over STE grows monotonically with interaction demand across all seven data sets "
        "(+0.02 points on Adult to +7.53 on MONK's-2).",
        checks=(
            Cited("fig:interaction-scaling", "gap-monotone"),
            Cited("fig:interaction-scaling", "gap-larger-on-cifar10"),
            Cited("tab:h7-cross-dataset", "gap-larger-on-monks-2"),
        ),
    ),
    Claim(
        _ABSTRACT,
        "At depth Soft-Mix collapses: -37.3 points on CIFAR-10 from 6 to 12 layers.",
        checks=(
            Cited("tab:cifar-depth", "soft-mix-collapses-cifar10"),
            Cited("tab:depth", "soft-mix-collapses-mnist"),
            Cited("extra:mnist-8k-depth", "soft-mix-loses-more"),
            Cited("extra:adult-depth-20k", "soft-mix-loses-more"),
        ),
        remark=_EXTRA,
    ),
    Claim(
        _ABSTRACT,
        "At depth CovJac holds: -0.5 points on CIFAR-10 from 6 to 12 layers, stable on MNIST.",
        checks=(
            Cited("tab:cifar-depth", "covjac-holds-cifar10"),
            Cited("tab:depth", "covjac-holds-mnist"),
            Cited("extra:mnist-8k-depth", "covjac-holds"),
            Cited("extra:adult-depth-20k", "covjac-holds"),
        ),
        remark=_EXTRA,
    ),
)

THEORY: Final = (
    Claim(
        _THEORY,
        "Every gate is one polynomial with integer coefficients, so M-STE has no gap between training and deployment "
        "(Identity 1).",
        tests=(
            "test_identity_1__polynomial_collapse_is_unique_with_integer_coefficients",
            "test_identity_1__zero_discretisation_gap_of_multilinear_ste",
        ),
        computed=theory.corner_bijection,
        checks=(Cited("app:gap-decomp", "ste-zero"),),
        opinion=TWO_PRECISIONS,
    ),
    Claim(
        _THEORY,
        "Under STE c_ab receives gradient on 25 % of uniform inputs only; 2.25 coefficients are updated a sample, "
        "against 1 in the corner basis (Lemma 1).",
        computed=theory.monomial_coverage,
        tests=(
            "test_lemma_coverage__expected_active_components_are_9_quarters_and_1",
            "test_lemma_coverage__gradients_of_the_operation_have_that_coverage",
        ),
    ),
    Claim(
        _THEORY,
        "After the snap a gate that depends on a has max over b of |c_a + c_ab b| >= 1, so M-STE's signal does not "
        "cancel (Proposition 2).",
        computed=theory.committed_gates,
        tests=(
            "test_prop_ste_noncancel__the_twelve_row_enumeration",
            "test_prop_ste_noncancel__erratum_only_the_maximum_over_b_is_at_least_one",
        ),
        checks=(Cited("tab:ste-enumeration", "twelve-gates"),),
        remark="True as stated. The caption of the paper's first figure says that |c_a + c_ab b| >= 1 always; only the "
        "maximum over b is (tab:ste-enumeration).",
    ),
    Claim(
        _THEORY,
        "Any forward pass through a single gate avoids the cancellation, CovJac's among them (corollary).",
        computed=theory.committed_gates,
        tests=(
            "test_single_gate_forward_corollary__committed_gates_do_not_cancel",
            "test_single_gate_forward_corollary__covjac_at_its_symmetric_point_does_cancel",
        ),
        checks=(
            Cited("fig:cancellation", "survival-multilinear-ste"),
            Cited("fig:cancellation", "survival-multilinear-covjac"),
        ),
        correction="It holds for committed gates. CovJac evaluates one polynomial, but that polynomial is an average: "
        "at c = (1/2, 0, 0, 0) its input gradient is zero too. What saves it is that N(0, 1) starts elsewhere.",
        opinion=LOW_TEMPERATURE,
    ),
    Claim(
        _THEORY,
        "CovJac's Jacobian is input-independent, symmetric, positive semi-definite, with a positive diagonal "
        "(Proposition 3).",
        computed=theory.covariance_coupling,
        tests=(
            "test_prop_covjac__jacobian_is_the_covariance",
            "test_prop_covjac__symmetric_psd_positive_diagonal",
            "test_prop_covjac__jacobian_is_input_independent",
        ),
    ),
    Claim(
        _THEORY,
        "A basis with phi(0) = 0 or phi(1) = 0 has coverage 1/4, coherence 1 and no bias; all others have coverage 1 "
        "(Proposition 4 (i)).",
        computed=theory.basis_futility,
        tests=(
            "test_prop_basis_futility__part_i_canonical",
            "test_prop_basis_futility__part_i_prime_erratum_phi_zero_at_one_is_biased",
        ),
        correction="With phi(1) = 0 the coverage is 1/4 and the bias is positive, as the paper's own part (i') says.",
    ),
    Claim(
        _THEORY,
        "Of the 16 gates 2 are constant, 4 separable, 8 interact weakly and 2 strongly; complements mirror each other.",
        checks=(Cited("fig:codebook-3d"),),
        tests=("test_app_degree__degree_is_logical_complexity",),
    ),
)
