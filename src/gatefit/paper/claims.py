"""The paper's claims against our outcomes: what was found of each, by which runs, and whose failure it is if any.

claim      -> checks of experiments (by label and id), statements computed from the codebook, named tests
verdict    -> of each check the paper's scale if its runs exist, else the small scale; extra: labels decide nothing
whose      -> computed: the error of our runs (noise), runs that are too small or missing (scale); else an opinion
paragraph  -> the verdict, then every check's own numbers; nothing is typed in but the paper's statement and opinions

``CLAIMS`` are the paper's: of its abstract, contributions, theory, experimental sections and appendices.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from gatefit.paper import theory
from gatefit.paper.catalogue.draft import NO_RUNS
from gatefit.paper.outcome import Check, Finding, Outcome, reproduce_command

Verdict = Literal[
    "confirmed", "by definition", "partly confirmed", "level", "inconclusive", "not confirmed", "not testable here"
]
VERDICTS: Final[tuple[Verdict, ...]] = (
    "confirmed",
    "by definition",
    "partly confirmed",
    "level",
    "inconclusive",
    "not confirmed",
    "not testable here",
)
Whose = Literal["paper", "our reading", "scale", "noise"]
WHOSE: Final[tuple[Whose, ...]] = ("paper", "our reading", "scale", "noise")
COMPUTED: Final = "computed"
"""In place of a scale, where no run is needed."""
PAPER: Final = "paper"


class Cited:
    """The checks of ``label`` with these ids; all of them for no ids."""

    def __init__(self, label: str, *ids: str) -> None:
        self.label, self.ids = label, ids

    def __repr__(self) -> str:
        return f"Cited({', '.join(map(repr, (self.label, *self.ids)))})"

    @property
    def beside(self) -> bool:
        """Whether the label stands beside the paper's: what it says is shown, but decides nothing."""
        return self.label.startswith("extra:")

    def among(self, checks: Sequence[Check]) -> list[Check]:
        """The checks that are meant."""
        return [check for check in checks if not self.ids or check.id in self.ids]


@dataclass(frozen=True)
class Opinion:
    """What we think of a failure that cannot be computed: whose it is, and why we think so."""

    whose: Whose
    reason: str
    about: tuple[str, ...] = ()
    """Ids of the checks that it is about; all for none."""


@dataclass(frozen=True)
class Claim:
    """A statement of the paper and what bears on it."""

    place: str
    """Where the paper makes it."""
    statement: str
    checks: tuple[Cited, ...] = ()
    computed: Callable[[], tuple[bool, str]] | None = None
    tests: tuple[str, ...] = ()
    """Names in tests/test_propositions.py."""
    remark: str = ""
    """What a reader must know to read the verdict rightly; no number of ours."""
    correction: str = ""
    """What the paper says that is not so, where the rest of the claim holds."""
    opinion: Opinion | None = None
    """Whose failure it is, should a check fail."""


@dataclass(frozen=True)
class Evidence:
    """One line below a claim."""

    source: str
    """The label and scale of a check, or what else it is."""
    finding: Finding | None
    """None of what is no check."""
    text: str
    label: str = ""


@dataclass(frozen=True)
class Judged:
    """A claim with its verdict, the verdict in a sentence, by which runs, whose failure, and the evidence."""

    claim: Claim
    verdict: Verdict
    sentence: str
    evidence: tuple[Evidence, ...]
    where: tuple[str, ...] = ()
    """The scales or runs that decide, in words."""
    whose: tuple[Whose, ...] = ()
    opinion: bool = False
    """Whether a part of ``whose`` is the claim's opinion, not computed."""


@dataclass(frozen=True)
class _Decided:
    """A check that says something, and what it rests on."""

    scale: str
    finding: Finding
    id: str = ""
    where: str = ""
    partial: bool = False

    @property
    def words(self) -> str:
        if self.where:
            return f"by {self.where}"
        return {COMPUTED: "by computation", PAPER: "at the paper's scale"}.get(self.scale, f"at {self.scale} scale")


def judge(claim: Claim, outcomes: Mapping[str, Sequence[Outcome]]) -> Judged:
    """Weigh a claim; ``outcomes`` holds those of each label, the paper's scale first."""
    evidence: list[Evidence] = []
    decided: list[_Decided] = []
    untested = 0
    if claim.computed is not None:
        holds, words = claim.computed()
        finding: Finding = "holds" if holds else "fails"
        evidence.append(Evidence("computed", finding, words))
        decided.append(_Decided(COMPUTED, finding))
    for cited in claim.checks:
        found = _by_id(cited, outcomes)
        for checks in found.values():
            said = [(scale, check) for scale, check in checks if check.finding != "open"]
            if said and not cited.beside:
                scale, first = said[0]
                decided.append(_Decided(scale, first.finding, first.id, first.where, first.partial))
            evidence += _lines(cited.label, said or checks[:1])
        if not cited.beside:
            untested += sum(all(c.finding == "open" for _, c in checks) for checks in found.values()) or not found
    if claim.tests:
        evidence.append(Evidence("tests", None, ", ".join(f"`{name}`" for name in claim.tests)))
    partial = any(each.partial for each in decided)
    verdict = _verdict([each.finding for each in decided], bool(claim.correction) or partial or untested > 0)
    whose, opinion = _whose(claim, verdict, decided, untested)
    if not decided:
        return Judged(claim, verdict, _untestable(claim, outcomes), tuple(evidence), (), whose, opinion)
    where = tuple(dict.fromkeys(each.words for each in decided))
    sentence = _sentence(verdict, decided, where, untested, partial)
    return Judged(claim, verdict, sentence, tuple(evidence), where, whose, opinion)


def _untestable(claim: Claim, outcomes: Mapping[str, Sequence[Outcome]]) -> str:
    """Why nothing can be said, and what would let it be: the smallest scale that has runs to make."""
    sentence = "Not testable here: the runs that would say are not finished"
    for cited in claim.checks:
        waiting = [outcome for outcome in outcomes.get(cited.label, ()) if outcome.missing]
        if waiting:
            count = len(waiting[-1].missing)
            made_by = reproduce_command(cited.label, waiting[-1].scale)
            return f"{sentence}; `{made_by}` makes {count} run{'' if count == 1 else 's'}."
    return f"{sentence}."


def _by_id(cited: Cited, outcomes: Mapping[str, Sequence[Outcome]]) -> dict[str, list[tuple[str, Check]]]:
    """What is said at each scale, by the id of the check."""
    found: dict[str, list[tuple[str, Check]]] = {}
    for outcome in outcomes.get(cited.label, ()):
        scale = outcome.scale if outcome.used or outcome.missing else COMPUTED
        for check in cited.among(outcome.checks):
            if (scale, check) not in found.setdefault(check.id, []):
                found[check.id].append((scale, check))
    return found


def _lines(label: str, said: Sequence[tuple[str, Check]]) -> list[Evidence]:
    """One line a check; scales that share their runs, and so their words, share a line."""
    lines: dict[Check, list[str]] = {}
    for scale, check in said:
        lines.setdefault(check, []).append(scale)
    return [
        Evidence(
            f"{label}, {check.where or _scales(scales)}",
            check.finding,
            f"{check.claim}: {_shortened(check)}" if check.evidence else check.claim,
            label,
        )
        for check, scales in lines.items()
    ]


def _scales(scales: Sequence[str]) -> str:
    return COMPUTED if list(scales) == [COMPUTED] else f"{' and '.join(scales)} scale"


def _shortened(check: Check) -> str:
    """The evidence; of a check that is open, only what is known, not a list of everything that is not."""
    if check.finding != "open":
        return check.evidence
    parts = check.evidence.split("; ")
    known = [part for part in parts if NO_RUNS not in part and "no runs" not in part]
    without = len(parts) - len(known)
    return "; ".join(
        [*known, *([f"{without} of {len(parts)} parts without runs" if known else "no runs"] if without else [])]
    )


def _verdict(found: Sequence[Finding], incomplete: bool) -> Verdict:
    """What holds by definition confirms nothing, and what is level refutes nothing."""
    if not found:
        return "not testable here"
    telling = [finding for finding in found if finding != "by definition"]
    if not telling:
        return "by definition"
    if "holds" in telling:
        return "partly confirmed" if incomplete or set(telling) != {"holds"} else "confirmed"
    if "fails" in telling:
        return "not confirmed"
    return "level" if set(telling) == {"level"} else "inconclusive"


def _whose(
    claim: Claim, verdict: Verdict, decided: Sequence[_Decided], untested: int
) -> tuple[tuple[Whose, ...], bool]:
    """Whose failure it is that a claim is not confirmed, as far as that can be computed; and whether it is opinion."""
    if verdict in ("confirmed", "by definition"):
        return (), False
    whose: set[Whose] = {"paper"} if claim.correction else set()
    opinion = False
    for each in decided:
        if each.finding in ("level", "inconclusive"):
            whose.add("noise")
        elif each.finding == "fails" and (about := claim.opinion) and (not about.about or each.id in about.about):
            whose.add(about.whose)
            opinion = True
        elif each.finding == "fails":
            whose |= _computed_blame(each)
        if each.partial:
            whose.add("scale")
    if untested:
        whose.add("scale")
    return tuple(each for each in WHOSE if each in whose), opinion


def _computed_blame(failed: _Decided) -> set[Whose]:
    """A computation leaves the paper, small or narrow runs leave the scale, the paper's own scale leaves two."""
    if failed.scale == COMPUTED:
        return {"paper"}
    return {"paper", "our reading"} if failed.scale == PAPER and not failed.where else {"scale"}


def _sentence(verdict: Verdict, decided: Sequence[_Decided], where: Sequence[str], untested: int, partial: bool) -> str:
    """The verdict, at which scale, and how much of the claim it covers."""
    sentence = f"{verdict[0].upper()}{verdict[1:]}"
    if not (verdict == "by definition" and where == ("by computation",)):
        sentence += f" {' and '.join(where)}"
    limits = []
    counts = Counter(each.finding for each in decided)
    telling = len(decided) - counts["by definition"]
    if 0 < counts["holds"] < telling:
        limits.append(f"{counts['holds']} of {telling} parts hold")
    beside: tuple[Finding, ...] = ("level", "inconclusive", "by definition")
    for finding in beside:
        if 0 < counts[finding] < len(decided):
            limits.append(f"{counts[finding]} {'is' if counts[finding] == 1 else 'are'} {finding}")
    if untested:
        limits.append(f"{untested} part{'' if untested == 1 else 's'} could not be tested")
    if partial:
        limits.append("data sets without runs are left out")
    return sentence + (f": {', '.join(limits)}." if limits else ".")


_ABSTRACT: Final = "Abstract"
_THEORY: Final = "Sections 3 and 4: method and theory"
_CROSS: Final = "Section 5.1: cross-dataset comparison"
_DEPTH: Final = "Section 5.2: depth and ablation"
_COST: Final = "Section 5.3: cost, width and interaction demand"
_DIAGNOSTICS: Final = "Section 5.4: diagnostics and controls"
_APPENDIX: Final = "Appendices"
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

CLAIMS: Final = (
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
    Claim(
        _CROSS,
        "CovJac is the best method on all seven data sets, by last-10 accuracy and by best checkpoint.",
        checks=(
            Cited("tab:mnist-main", "best-everywhere"),
            Cited("tab:best-acc", "best-everywhere"),
            Cited("extra:monks-methods", "best-of-seven"),
            Cited("extra:class-scores", "best"),
            Cited("extra:mnist-64k"),
            Cited("extra:cifar10-128k"),
        ),
    ),
    Claim(
        _CROSS,
        "On CIFAR-10 and CIFAR-100 STE falls below even Soft-Mix (56.02 and 24.02 against 58.13 and 27.92 %).",
        checks=(
            Cited("tab:mnist-main", "ste-below-soft-mix"),
            Cited("tab:cifar-full", "ste-worst"),
            Cited("extra:monks-methods", "ste-behind-soft-mix"),
        ),
    ),
    Claim(
        _CROSS,
        "A sign test over seven data sets gives p < 0.01, and the gap on CIFAR-10 is significant by itself (p = "
        "0.013).",
        checks=(Cited("app:significance", "cifar10", "sign-test"),),
    ),
    Claim(
        _CROSS,
        "The methods rank the same by last-10 and by best checkpoint.",
        checks=(Cited("tab:best-acc", "ranking"),),
    ),
    Claim(
        _DEPTH,
        "From 6 to 12 layers Soft-Mix loses 15.4 points on MNIST, and more than any other method on every data set.",
        checks=(
            Cited("tab:depth", "soft-mix-loses-most-mnist"),
            Cited("tab:adult-depth", "soft-mix-loses-most-adult"),
            Cited("tab:cifar-depth", "soft-mix-loses-most-cifar10"),
            Cited("tab:cifar100-depth", "soft-mix-loses-most-cifar100"),
        ),
    ),
    Claim(
        _DEPTH,
        "On CIFAR-100 Soft-Mix falls by 23.3 points from 6 to 12 layers and CovJac by 0.76; on Adult by 0.04.",
        checks=(
            Cited("tab:cifar100-depth", "soft-mix-collapses-cifar100"),
            Cited("tab:cifar100-depth", "covjac-holds-cifar100"),
            Cited("tab:adult-depth", "covjac-holds-adult"),
        ),
    ),
    Claim(
        _DEPTH,
        "CovJac is the best method at every depth.",
        checks=tuple(
            Cited(label, "best-everywhere")
            for label in ("tab:depth", "tab:adult-depth", "tab:cifar-depth", "tab:cifar100-depth")
        ),
    ),
    Claim(
        _DEPTH,
        "Twice the steps recover a part of Soft-Mix's loss and leave it 6 points below: the penalty is structural.",
        checks=(Cited("tab:depth-100k"),),
    ),
    Claim(
        _DEPTH,
        "The basis matters under STE: M-STE is ahead of IWP-STE by 17.25 points on MNIST, 22.65 on CIFAR-10, 8.50 on "
        "Adult.",
        checks=(
            Cited("tab:ablation", "basis-mnist", "basis-cifar10", "basis-adult"),
            Cited("tab:basis-constraint-main", "basis-by-far"),
            Cited("tab:basis-constraint-depth", "lead-grows", "iwp-ste-collapses"),
            Cited("extra:mnist-8k-basis"),
            Cited("extra:as-written"),
            Cited("extra:monks-methods", "basis"),
        ),
        remark="IWP-STE is the paper's construction for this ablation, with an L2 snap: here each corner weight goes "
        "to the nearer of 0 and 1, and its gradient passes unchanged.",
        opinion=Opinion(
            "our reading",
            "The paper defines one snap, onto the codebook, and speaks of a derivative by continuous coefficients. A "
            "corner basis that is read so is another method than ours, and the one that may show the effect.",
        ),
    ),
    Claim(
        _DEPTH,
        "In the same basis CovJac is ahead of STE by 0.21 points on MNIST, and without the snap it is as accurate as "
        "with it.",
        checks=(Cited("tab:ablation", "covjac-beats-ste", "free-as-accurate"),),
    ),
    Claim(
        _DEPTH,
        "Without the snap the two bases are comparable at 6 layers, and at 12 the ranking reverses (92.95 against "
        "97.80 %).",
        checks=(
            Cited("tab:basis-constraint-main", "free-comparable"),
            Cited("tab:basis-constraint-depth", "free-reverses", "one-layer-alike"),
        ),
    ),
    Claim(
        _COST,
        "M-STE is 25 times cheaper to train than Soft-Mix, with a quarter of the optimiser's memory.",
        checks=(Cited("tab:cost", "naive-factor", "four-parameters", "soft-mix-shared"),),
        remark="The factor is against evaluating all sixteen gates for every sample. A mixture's coefficients do not "
        "depend on the sample, so Soft-Mix too can be trained with one polynomial a gate, as it is here.",
    ),
    Claim(
        _COST,
        "With width CovJac's error decays 61 % faster than Soft-Mix's (exponent 0.42 against 0.26 at one layer).",
        checks=(
            Cited("tab:scaling-exponents"),
            Cited("tab:width-scaling", "gap-widens", "ahead-at-largest", "ahead-at-smallest"),
        ),
    ),
    Claim(
        _COST,
        "At the same number of parameters CovJac, four times as wide, is ahead by 3.3 points at one layer.",
        checks=(Cited("tab:param-budget"),),
    ),
    Claim(
        _COST,
        "The deficit of STE against Soft-Mix correlates with CovJac's advantage (Pearson r = 0.85).",
        checks=(Cited("tab:starvation-severity", "pearson"),),
    ),
    Claim(
        _COST,
        "The advantage persists at larger scale: CIFAR-100 with 1,280,000 and Tiny-ImageNet with 2,560,000 gates a "
        "layer.",
        checks=(Cited("tab:scale-up"),),
    ),
    Claim(
        _DIAGNOSTICS,
        "The ratio of the gradient norms of c_ab and c_0 stays near 0.227 under STE and reaches 14.27 under CovJac; "
        "STE commits fast (std of c_ab 50.7), CovJac slowly (5.9), Soft-Mix never (1.1).",
        checks=(Cited("fig:commitment"), Cited("app:gradnorm")),
        remark="The paper gives 14.27 in its text and 7.3 in its appendix for the same ratio. It averages over the "
        "minibatches of a window; we use a fixed probe, so that a resumed run measures the same.",
        opinion=Opinion(
            "paper",
            "The paper names the L2 norm, whose ratio tends to 1/2 where signs vary; its value of about 1/4 is that of "
            "absolute values.",
            ("quarter", "ten-times"),
        ),
    ),
    Claim(
        _DIAGNOSTICS,
        "At initialisation with 12 layers Soft-Mix keeps 0.29 of its signal in each layer, M-STE 1.0 and CovJac 0.993.",
        checks=(Cited("fig:cancellation"), Cited("extra:survival")),
        opinion=LOW_TEMPERATURE,
    ),
    Claim(
        _DIAGNOSTICS,
        "CovJac chooses the most strong-interaction gates (26 to 36 %) and the fewest constants (below 0.5 %).",
        checks=(Cited("fig:codebook-neurons"), Cited("fig:gate-selection")),
    ),
    Claim(
        _DIAGNOSTICS,
        "Controls: Hard-ST survives depth but not starvation; Walsh (94.92 %) and smoothed (10.14 %) bases fail.",
        checks=(Cited("sec:controls"), Cited("tab:ste-basis-catalogue"), Cited("extra:mnist-8k-bases")),
    ),
    Claim(
        _APPENDIX,
        "What is done once a batch costs less than 0.4 operations a sample at 512 samples, for every method.",
        checks=(Cited("tab:cost", "batch-overhead"),),
    ),
    Claim(
        _APPENDIX,
        "The discretisation gap is zero for M-STE and at most 0.2 points for CovJac (1 on MONK's-2).",
        checks=(
            Cited("app:gap-decomp"),
            Cited("tab:cifar-full", "gap"),
            Cited("tab:method-summary"),
        ),
        opinion=TWO_PRECISIONS,
    ),
    Claim(
        _APPENDIX,
        "In Soft-Mix entropy falls first near the output, and at 12 layers early layers stay near its maximum.",
        checks=(Cited("app:entropy"),),
    ),
    Claim(
        _APPENDIX,
        "CovJac is not brittle in its temperature (within 0.22 points of the peak from 0.3 to 5), and learning the "
        "temperature does not help.",
        checks=(Cited("tab:tau-sensitivity"),),
    ),
    Claim(
        _APPENDIX,
        "The wiring is not the bottleneck: five random wirings vary by 0.28 points.",
        checks=(Cited("tab:wiring-ablation"),),
    ),
    Claim(
        _APPENDIX,
        "On the same bits a CNN is ahead of the gates (by 16.2 points on CIFAR-10): the cost is that of two-input "
        "gates.",
        checks=(Cited("tab:mlp-cnn-baseline"),),
    ),
)
