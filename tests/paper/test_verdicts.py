"""When a difference is one, which runs judge, and what the paper's numbers come from."""

import ast
import math
import re
import statistics
from dataclasses import replace
from pathlib import Path

import pytest

import gatefit
from fake_runs import fake_record, fake_results, paper_like
from gatefit.paper.catalogue.cross_dataset import _same_ranking
from gatefit.paper.catalogue.draft import Draft, Part, above
from gatefit.paper.catalogue.judging_runs import NARROWEST, WHERE, judging_runs
from gatefit.paper.catalogue.standard_errors import difference, error_of, exceeds, single_run_noise
from gatefit.paper.outcome import SCALES, Check, Outcome, Results, Value
from gatefit.paper.registry import experiment, labels
from gatefit.paper.scales import MAIN_METHODS, runs
from gatefit.paper.table_one import table_one

CATALOGUE = Path(gatefit.__file__).parent / "paper" / "catalogue"


def check_of(outcome: Outcome, id: str) -> Check:
    (found,) = [check for check in outcome.checks if check.id == id]
    return found


def shown(label: str, rule=paper_like, *, scale="paper", without=lambda config: False, seeds=None) -> Outcome:
    each = experiment(label)
    seeds = each.default_seeds[scale] if seeds is None else seeds
    plan = [config for config in each.plan(scale, seeds) if not without(config)]
    return each.show(fake_results(plan, rule, scale=scale, seeds=seeds))


@pytest.mark.parametrize(
    ("gap", "error", "by", "expected"),
    [
        (0.54, 0.11, 0.0, (True, "")),
        (-0.15, 0.49, 0.0, (None, "level")),
        (0.05, 0.12, 0.0, (None, "level")),
        (-1.0, 0.1, 0.0, (False, "")),
        (0.05, None, 0.0, (True, "")),  # nothing is known of the noise
        (0.0, None, 0.0, (None, "level")),
        (1.2, 0.3, 1.0, (None, "inconclusive")),
        (1.7, 0.3, 1.0, (True, "")),
        (0.3, 0.3, 1.0, (False, "")),
    ],
)
def test_a_difference_must_exceed_two_standard_errors(gap, error, by, expected):
    assert exceeds(gap, error, by) == expected


def test_the_error_of_a_difference_is_that_of_its_means():
    three, twelve = Value(2.0, 0.6, 3), Value(1.0, 1.2, 12)
    assert error_of(three, twelve) == pytest.approx(math.hypot(0.6 / math.sqrt(3), 1.2 / math.sqrt(12)))
    one = Value(1.0)
    assert error_of(three, one) == pytest.approx(0.6 * math.hypot(1 / math.sqrt(3), 1))  # the other side's spread
    assert error_of(one, one) is None
    assert error_of(one, one, (Value(5.0, 0.3, 3), Value(5.0, 0.4, 3))) == pytest.approx(0.5)  # the paper's
    noisy = replace(one, error=0.1)
    assert error_of(noisy, noisy, (Value(5.0, 3.0, 3), Value(5.0, 4.0, 3))) == pytest.approx(math.hypot(0.1, 0.1))
    gap = difference(three, twelve)
    assert gap is not None
    assert (gap.mean, gap.unit, gap.error) == (1.0, "pp", error_of(three, twelve))
    assert error_of(gap, gap) == pytest.approx(math.sqrt(2) * gap.error)


def test_a_claim_is_level_only_where_nothing_is_missing_or_refuted():
    level, powerless = Part(None, "a", why="level"), Part(None, "b", why="inconclusive")
    missing, yes, no = Part(None, "no run"), Part(True, "yes"), Part(False, "no")
    for parts, expected in (
        ((yes, level), "level"),
        ((level, powerless), "inconclusive"),
        ((level, missing), "open"),
        ((level, no), "fails"),
        ((yes, yes), "holds"),
    ):
        draft = Draft(Results(lambda identity: None, scale="paper"))
        draft.claim("claim", *parts, id="x")
        assert draft.outcome("label", "title").checks[0].finding == expected


def test_matching_is_not_being_told_apart():
    a, b = Value(84.9, 0.3, 3), Value(85.2, 0.3, 3)
    assert above("", ("a", a), ("b", b), by=-0.1).why == "inconclusive"
    assert above("", ("a", a), ("b", b), by=-0.1, ties=True).holds is True
    assert above("", ("a", Value(83.0, 0.3, 3)), ("b", b), by=-0.1, ties=True).holds is False


def test_single_runs_have_the_noise_of_the_data_sets_main_runs():
    """tab:adult-depth has one seed a method at small scale; tab:mnist-main has three."""

    def rule(config):
        return paper_like(config) + 0.01 * math.sin(7 * config.seed)

    seeds = (0, 1, 2)
    main = [config for m in MAIN_METHODS for config in runs("small", seeds, "adult", m)]
    each = experiment("tab:adult-depth")
    plan = each.plan("small", (0,))
    alone = {config.identity: fake_record(config, rule(config)) for config in plan}
    beside = {config.identity: fake_record(config, rule(config)) for config in main}
    noise = single_run_noise(Results(beside.get, scale="small"), "adult")
    assert noise == pytest.approx(statistics.stdev(math.sin(7 * seed) for seed in seeds), rel=0.05)
    assert single_run_noise(Results(alone.get, scale="small"), "adult") is None
    outcome = each.show(Results((alone | beside).get, scale="small", seeds=(0,)))
    assert check_of(outcome, "best-everywhere").finding == "level"
    assert {record.identity for record in outcome.used} == set(alone)  # the others are not shown


def test_a_correlation_of_few_points_is_inconclusive():
    """Five data sets, r below 0.7 but with an interval that reaches far above it."""

    def rule(config):
        return paper_like(config) + (0.015 if (config.dataset, config.method) == ("splice", "soft-mix") else 0.0)

    check = check_of(shown("tab:starvation-severity", rule, scale="small"), "pearson")
    assert check.finding in ("holds", "inconclusive")
    weak = check_of(
        shown(
            "tab:starvation-severity",
            lambda c: paper_like(c) + (-0.05 if (c.dataset, c.method) == ("monks-2", "soft-mix") else 0.0),
            scale="small",
        ),
        "pearson",
    )
    assert weak.finding == "inconclusive"
    assert "over 5 data sets" in weak.evidence


def test_networks_at_chance_say_nothing_of_recovery():
    def chance(config):
        return 0.08 if config.method == "soft-mix" else paper_like(config)

    assert check_of(shown("tab:depth-100k", chance), "steps-recover").finding == "inconclusive"
    assert check_of(shown("tab:depth-100k"), "steps-recover").finding == "holds"


def test_two_rankings_differ_only_where_methods_are_apart_in_both():
    def values(spread, **means):
        return {name: Value(mean, spread, 3 if spread is not None else 1) for name, mean in means.items()}

    last, best = {"a": 90.0, "b": 89.0}, {"a": 91.0, "b": 92.0}
    assert _same_ranking("x", values(0.1, **last), values(0.1, **last)).holds is True
    assert _same_ranking("x", values(0.1, **last), values(0.1, **best)).holds is False
    assert _same_ranking("x", values(5.0, **last), values(0.1, **best)).why == "level"
    assert (
        _same_ranking("x", values(None, **last), values(None, **best)).why == "level"
    )  # nothing is known of the noise
    assert _same_ranking("x", values(0.1, **last), {"a": None, "b": None}).why == ""


def test_what_cannot_fail_is_so_by_definition():
    assert check_of(shown("fig:cancellation"), "survival-multilinear-ste").finding == "by definition"
    assert check_of(shown("fig:cancellation"), "survival-multilinear-covjac").finding == "holds"
    assert check_of(shown("tab:cost"), "four-parameters").finding == "by definition"
    assert [check.finding for check in shown("tab:degree-complexity").checks] == ["by definition"]


@pytest.mark.parametrize("label", labels())
def test_ids_of_checks_are_the_same_at_every_scale(label):
    each = experiment(label)
    ids = [{c.id for c in each.show(Results(lambda identity: None, scale=s, seeds=(0,))).checks} for s in SCALES]
    assert ids[1] == ids[2] <= ids[0]


@pytest.mark.parametrize(
    ("label", "id"),
    [
        ("fig:commitment", "commitment"),
        ("fig:commitment", "ten-times"),
        ("app:gradnorm", "quarter-l1"),
        ("fig:gate-selection", "drift"),
        ("fig:codebook-neurons", "few-constant-mnist"),
    ],
)
def test_runs_of_the_papers_length_judge_where_its_width_was_not_run(label, id):
    wide = shown(label)
    assert check_of(wide, id).where == ""
    narrow = shown(label, without=lambda config: config.width in (64_000, 128_000))
    check = check_of(narrow, id)
    assert (check.finding, check.where) == ("holds", WHERE)
    neither = shown(label, without=lambda config: config.width in (NARROWEST, 64_000, 128_000))
    assert check_of(neither, id).finding == "open"
    assert check_of(shown(label, scale="small"), id).where == ""


def test_gaps_are_read_from_the_longest_runs_and_of_data_sets_that_have_any():
    check = check_of(shown("app:gap-decomp", without=lambda config: (config.width or 0) > 60_000), "covjac-small")
    assert check.finding == "holds"
    assert check.partial
    assert f"{WHERE}: +0.000 points" in check.evidence


def test_census_on_adult_is_of_temperature_one():
    each = experiment("fig:codebook-neurons")
    adult = [c for c in each.plan("paper", (0,)) if (c.dataset, c.method) == ("adult", "multilinear-covjac")]
    assert {config.temperature for config in adult} == {None}


def test_no_runs_at_a_small_scale_stand_in():
    draft = Draft(Results(lambda identity: None, scale="small"))
    assert judging_runs(draft, "cifar10", MAIN_METHODS).where == ""


def test_the_first_table_takes_the_best_runs_of_each_data_set():
    def records(scale, dataset, **changes):
        configs = [c for m in MAIN_METHODS for c in runs(scale, (0, 1, 2), dataset, m, **changes)]
        return {c.identity: fake_record(c, paper_like(c)) for c in configs}

    known = records("paper", "adult") | records("small", "adult") | records("small", "cifar10")
    known |= records("paper", "mnist", width=NARROWEST) | records("small", "mnist")
    rows = {row.dataset: row for row in table_one(known.get, ("paper", "small"))}
    assert {name: row.where for name, row in rows.items() if row.where} == {
        "adult": "the paper's scale",
        "mnist": "the paper's length, 8k gates",
        "cifar10": "small scale",
    }
    assert {name: row.finding for name, row in rows.items()} == {
        "adult": "holds", "splice": "open", "mnist": "holds", "svhn": "open", "cifar10": "holds", "cifar100": "open",
        "monks-2": "open",
    }  # fmt: skip
    assert rows["mnist"].paper_there is not None
    assert rows["mnist"].paper_there.mean == pytest.approx(97.37 - 96.59)
    assert rows["splice"].paper_gap is not None
    assert rows["splice"].paper_gap.error == pytest.approx(0.23 / math.sqrt(3))


@pytest.mark.parametrize("path", sorted(CATALOGUE.glob("*.py")), ids=lambda path: path.stem)
def test_no_number_of_the_papers_is_written_in_a_label(path):
    """They come from paper.values: no text says "paper:" and then a number of its own."""
    tree = ast.parse(path.read_text())
    said = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}  # docstrings
    texts = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and id(node) not in said]
    number = r"paper: [^)]*?\d\.\d|paper: (by|about) \d|\b\d\d\.\d\d\b"
    found = [text for text in texts if isinstance(text, str) and re.search(number, text)]
    assert found == []
