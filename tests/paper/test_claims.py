"""Claims: every reference leads somewhere, and a verdict says no more than the checks do."""

import ast
from dataclasses import replace
from pathlib import Path

import pytest

from gatefit.paper import theory
from gatefit.paper.catalogue.draft import NO_RUNS
from gatefit.paper.claims import CLAIMS, Cited, Claim, Opinion, judge
from gatefit.paper.outcome import Check, Outcome, Results
from gatefit.paper.registry import experiment

PROPOSITIONS = Path(__file__).parent.parent / "test_propositions.py"


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.statement[:40])
def test_every_reference_of_a_claim_exists(claim):
    assert claim.checks or claim.computed
    for cited in claim.checks:
        each = experiment(cited.label)
        outcome = each.show(Results(lambda identity: None, scale="paper", seeds=(0,)))
        found = cited.among(outcome.checks)
        assert found, cited
        assert {check.id for check in found} >= set(cited.ids), cited
    known = {
        check.id
        for cited in claim.checks
        for check in experiment(cited.label).show(Results(lambda identity: None, seeds=(0,))).checks
    }
    assert claim.opinion is None or not claim.opinion.about or known & set(claim.opinion.about)
    tests = {node.name for node in ast.walk(ast.parse(PROPOSITIONS.read_text())) if isinstance(node, ast.FunctionDef)}
    assert set(claim.tests) <= tests


@pytest.mark.parametrize(
    "statement",
    [
        theory.null_directions,
        theory.uniform_mixture,
        theory.committed_gates,
        theory.monomial_coverage,
        theory.basis_futility,
        theory.covariance_coupling,
        theory.corner_bijection,
    ],
)
def test_theory_holds(statement):
    holds, words = statement()
    assert holds, words


def outcome(*checks: Check, scale: str = "paper", label: str = "tab:x") -> Outcome:
    return replace(Outcome(label, "x", "paper", (0,), checks=checks, missing=(_config(),)), scale=scale)


def _config():
    from gatefit.training.config import RunConfig

    return RunConfig()


def verdict(*outcomes: Outcome, **more: object) -> tuple[str, str]:
    claim = Claim("place", "statement", checks=(Cited("tab:x"),), **more)  # type: ignore[arg-type]
    judged = judge(claim, {"tab:x": outcomes})
    return judged.verdict, judged.sentence


YES, NO, OPEN = (
    Check("A is best", True, "1 > 0", "best"),
    Check("B is worst", False, "0 < 1", "worst"),
    Check("A is best", None, "no run", "best"),
)
LEVEL = replace(YES, holds=None, why="level")
POWERLESS = replace(NO, holds=None, why="inconclusive")
DEFINED = Check("2 + 2 = 4", True, "counted", "sum", definition=True)


@pytest.mark.parametrize(
    ("outcomes", "expected"),
    [
        ((outcome(YES),), ("confirmed", "Confirmed at the paper's scale.")),
        ((outcome(NO),), ("not confirmed", "Not confirmed at the paper's scale.")),
        ((outcome(YES, NO),), ("partly confirmed", "Partly confirmed at the paper's scale: 1 of 2 parts hold.")),
        (
            (outcome(OPEN), outcome(YES, scale="small")),
            ("confirmed", "Confirmed at small scale."),
        ),
        (
            (outcome(YES), outcome(replace(YES, holds=False), scale="small")),  # the paper's scale decides
            ("confirmed", "Confirmed at the paper's scale."),
        ),
        (
            (outcome(OPEN, NO), outcome(OPEN, scale="small")),
            ("not confirmed", "Not confirmed at the paper's scale: 1 part could not be tested."),
        ),
        (
            (outcome(OPEN, replace(YES, id="c")),),
            ("partly confirmed", "Partly confirmed at the paper's scale: 1 part could not be tested."),
        ),
        (
            (outcome(replace(YES, partial=True)),),
            ("partly confirmed", "Partly confirmed at the paper's scale: data sets without runs are left out."),
        ),
        ((outcome(LEVEL),), ("level", "Level at the paper's scale.")),
        ((outcome(LEVEL, NO),), ("not confirmed", "Not confirmed at the paper's scale: 1 is level.")),
        (
            (outcome(LEVEL, replace(YES, id="c")),),
            ("partly confirmed", "Partly confirmed at the paper's scale: 1 of 2 parts hold, 1 is level."),
        ),
        (
            (outcome(LEVEL, POWERLESS),),
            ("inconclusive", "Inconclusive at the paper's scale: 1 is level, 1 is inconclusive."),
        ),
        (
            (outcome(LEVEL), outcome(NO, scale="small")),  # level at the paper's scale is an answer
            ("not confirmed", "Not confirmed at the paper's scale and at small scale: 1 is level."),
        ),
        ((outcome(DEFINED),), ("by definition", "By definition at the paper's scale.")),
        (
            (outcome(DEFINED, NO),),  # what cannot fail confirms nothing
            ("not confirmed", "Not confirmed at the paper's scale: 1 is by definition."),
        ),
        (
            (outcome(replace(YES, where="MNIST, 8,000 gates")), outcome(NO, scale="small")),
            ("partly confirmed", "Partly confirmed by MNIST, 8,000 gates and at small scale: 1 of 2 parts hold."),
        ),
        (
            (outcome(OPEN), outcome(OPEN, scale="small")),
            (
                "not testable here",
                "Not testable here: the runs that would say are not finished; "
                "`gatefit reproduce tab:x --scale small` makes 1 run.",
            ),
        ),
        ((), ("not testable here", "Not testable here: the runs that would say are not finished.")),
    ],
)
def test_the_verdict_says_what_the_checks_say(outcomes, expected):
    assert verdict(*outcomes) == expected


def test_computed_statements_count_and_errata_are_no_confirmation():
    assert verdict(outcome(YES), computed=lambda: (True, "2 = 2")) == (
        "confirmed",
        "Confirmed by computation and at the paper's scale.",
    )
    assert verdict(outcome(YES), correction="but not for 3")[0] == "partly confirmed"


def test_labels_beside_the_paper_support_a_claim_but_are_not_part_of_it():
    claim = Claim("p", "s", checks=(Cited("tab:x"), Cited("extra:y")))
    for beside in (OPEN, NO):
        judged = judge(claim, {"tab:x": [outcome(YES)], "extra:y": [outcome(beside, label="extra:y")]})
        assert judged.verdict == "confirmed"
        assert any(line.source.startswith("extra:y") for line in judged.evidence)
    small = [outcome(YES, scale="small")]
    sentence = judge(claim, {"tab:x": small, "extra:y": [outcome(YES, label="extra:y")]}).sentence
    assert sentence == "Confirmed at small scale."


def test_evidence_has_the_numbers_of_every_scale_once():
    claim = Claim("p", "s", checks=(Cited("tab:x", "best"),), tests=("test_a",))
    small = outcome(replace(YES, evidence="2 > 0"), scale="small")
    lines = judge(claim, {"tab:x": [outcome(YES, NO), small]}).evidence
    assert [(line.source, line.text) for line in lines] == [
        ("tab:x, paper scale", "A is best: 1 > 0"),
        ("tab:x, small scale", "A is best: 2 > 0"),
        ("tests", "`test_a`"),
    ]
    same = judge(claim, {"tab:x": [outcome(YES), outcome(YES, scale="small")]}).evidence
    assert [line.source for line in same] == ["tab:x, paper and small scale", "tests"]


def test_an_open_check_says_what_is_known_and_counts_the_rest():
    check = Check("A is best", None, f"Adult: +1.2; MNIST: {NO_RUNS} of B; SVHN: {NO_RUNS} of B")
    (line,) = judge(Claim("p", "s", checks=(Cited("tab:x"),)), {"tab:x": [outcome(check)]}).evidence
    assert line.text == "A is best: Adult: +1.2; 2 of 3 parts without runs"
    (line,) = judge(
        Claim("p", "s", checks=(Cited("tab:x"),)), {"tab:x": [outcome(replace(check, evidence=NO_RUNS))]}
    ).evidence
    assert line.text == "A is best: no runs"


@pytest.mark.parametrize(
    ("outcomes", "more", "expected"),
    [
        ((outcome(YES),), {}, ((), False)),
        ((outcome(LEVEL),), {}, (("noise",), False)),
        ((outcome(POWERLESS, YES),), {}, (("noise",), False)),
        ((outcome(NO),), {}, (("paper", "our reading"), False)),  # the paper's own scale: one of the two
        ((outcome(replace(NO, where="MNIST")),), {}, (("scale",), False)),
        ((outcome(NO, scale="small"),), {}, (("scale",), False)),
        ((outcome(OPEN),), {}, (("scale",), False)),
        ((outcome(YES),), {"correction": "but not for 3"}, (("paper",), False)),
        ((outcome(YES),), {"computed": lambda: (False, "1 = 2")}, (("paper",), False)),
        ((outcome(NO),), {"opinion": Opinion("our reading", "why")}, (("our reading",), True)),
        ((outcome(NO, scale="small"),), {"opinion": Opinion("our reading", "why", ("best",))}, (("scale",), False)),
        ((outcome(YES),), {"opinion": Opinion("our reading", "why")}, ((), False)),  # nothing failed
    ],
)
def test_whose_failure_it_is_is_computed_or_marked_as_an_opinion(outcomes, more, expected):
    claim = Claim("place", "statement", checks=(Cited("tab:x"),), **more)
    judged = judge(claim, {"tab:x": outcomes})
    assert (judged.whose, judged.opinion) == expected


def test_checks_are_cited_by_exact_ids():
    """Not by words: "at L=1" is also the beginning of "at L=12"."""
    one, twelve = replace(YES, claim="Alike at L=1", id="one"), replace(NO, claim="Falls at L=12", id="twelve")
    assert Cited("tab:x", "one").among([one, twelve]) == [one]
    assert Cited("tab:x", "on").among([one, twelve]) == []
    assert Cited("tab:x").among([one, twelve]) == [one, twelve]
    claim = next(claim for claim in CLAIMS if claim.statement.startswith("Without the snap"))
    assert [(cited.label, cited.ids) for cited in claim.checks] == [
        ("tab:basis-constraint-main", ("free-comparable",)),
        ("tab:basis-constraint-depth", ("free-reverses", "one-layer-alike")),
    ]
