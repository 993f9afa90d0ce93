"""Settings that the paper leaves open: temperature, batch, wirings and splits of runs, and the names of old ones."""

from pathlib import Path

import pytest

from fake_runs import fake_record, paper_like
from gatefit.experiments.export import Export
from gatefit.paper.catalogue.measures import repetition
from gatefit.paper.catalogue.open_settings import paired
from gatefit.paper.outcome import SCALES, Results, Value
from gatefit.paper.registry import EXPERIMENTS, experiment
from gatefit.paper.scales import (
    CLASS_SCORES,
    DATASET_NAMES,
    MAIN_METHODS,
    SETTINGS,
    class_score_temperature,
    repetitions,
    rule_runs,
    runs,
)
from gatefit.training.config import RunConfig

RESULTS = Path(__file__).parents[2] / "results"
SEEDS = (0, 1, 2)


def temperatures(dataset: str, **changes) -> set[float | None]:
    return {config.readout_temperature for m in MAIN_METHODS for config in runs("paper", SEEDS, dataset, m, **changes)}


@pytest.mark.parametrize(
    ("dataset", "expected"),
    [
        ("monks-2", 10.0), ("adult", 80.0), ("splice", 10.0), ("mnist", 30.0), ("cifar10", 100.0), ("svhn", 100.0),
        ("cifar100", 100.0), ("tiny-imagenet", 100.0),
    ],
)  # fmt: skip
def test_class_scores_at_the_papers_scale(dataset, expected):
    assert temperatures(dataset) == {expected}
    assert temperatures(dataset, depth=12, steps=2000) == {expected}
    assert len(CLASS_SCORES[dataset].reason) > 20


def test_on_mnist_the_temperature_belongs_to_the_width():
    assert temperatures("mnist", width=64_000, depth=1) == {30.0}
    for width in (8_000, 16_000, 32_000):
        assert temperatures("mnist", width=width) == {None}
    assert temperatures("cifar100", width=1_280_000) == {100.0}
    assert temperatures("mnist", width=8_000, readout_temperature=7.0) == {7.0}


def test_other_scales_keep_the_rule_of_thumb():
    for scale in ("small", "tiny"):
        for dataset in SETTINGS[scale]:
            expected = 23.0 if (scale, dataset) == ("small", "cifar10") else None
            assert class_score_temperature(scale, dataset) == expected
            assert {c.readout_temperature for c in runs(scale, SEEDS, dataset, "soft-mix")} == {expected}


def test_monks_is_repeated_over_wirings_and_splice_over_splits():
    monks = runs("paper", SEEDS, "monks-2", "multilinear-ste")
    assert {(c.wiring_seed, c.seed) for c in monks} == {(w, s) for w in range(5) for s in range(12)}
    assert {(c.batch_size, c.whole_batches) for c in monks} == {(128, True)}
    splice = runs("paper", SEEDS, "splice", "multilinear-ste")
    assert [(c.split_seed, c.seed) for c in splice] == [(split, 0) for split in range(5)]
    assert [c.seed for c in runs("paper", SEEDS, "adult", "soft-mix")] == [0, 1, 2]
    assert repetitions("small", "splice", SEEDS) == [{"seed": 0}, {"seed": 1}, {"seed": 2}]
    # What a caller fixes is not repeated.
    assert len(runs("paper", SEEDS, "monks-2", "soft-mix", wiring_seed=3)) == 12
    assert len(runs("paper", SEEDS, "splice", "soft-mix", split_seed=0)) == 1


def test_the_rule_of_thumb_is_what_runs_had_before():
    (config,) = rule_runs("paper", (1,), "splice", "soft-mix")
    assert config == RunConfig(dataset="splice", method="soft-mix", width=4095, seed=1)
    assert [c.seed for c in rule_runs("paper", (0,), "monks-2", "iwp")] == [0, 1, 2, 3]
    assert rule_runs("small", SEEDS, "cifar100", "iwp") == []
    assert rule_runs("small", SEEDS, "adult", "soft-mix") == runs("small", SEEDS, "adult", "soft-mix")


def test_every_run_of_the_results_keeps_its_name_and_is_asked_for():
    """Reading checks each identity against its configuration; a run that is in no plan is lost to the page."""
    finished = {record.identity: record.config for record in Export(RESULTS).records(status="finished")}
    assert len(finished) >= 341
    asked = {c.identity for each in EXPERIMENTS.values() for s in SCALES for c in each.plan(s, each.default_seeds[s])}
    lost = [config for identity, config in finished.items() if identity not in asked]
    # One trial of the convolutional baseline with fewer steps.
    assert [(c.method, c.steps) for c in lost] == [("cnn-3x3", 600)]


def test_pages_say_why_each_temperature():
    each = experiment("tab:mnist-main")
    notes = " ".join(each.show(Results(lambda identity: None, scale="paper", seeds=SEEDS)).protocol)
    for dataset in SETTINGS["paper"].keys() - {"tiny-imagenet"}:
        scores = CLASS_SCORES[dataset]
        said = " and ".join(f"{temperature:g}" for temperature in scores.temperatures)
        assert f"{DATASET_NAMES[dataset]} {said} ({scores.reason})" in notes


def test_methods_are_paired_by_wiring_split_and_seed():
    high = [fake_record(c, 0.9 + 0.01 * c.wiring_seed) for c in runs("paper", (0,), "monks-2", "multilinear-covjac")]
    low = [fake_record(c, 0.8 + 0.01 * c.wiring_seed) for c in runs("paper", (0,), "monks-2", "multilinear-ste")]
    assert len({repetition(record) for record in high}) == len(high) == 20
    gap = paired(high, low[::-1])
    assert gap is not None
    assert (round(gap.mean, 9), round(gap.std, 9), gap.count) == (10.0, 0.0, 20)
    assert paired(high, low[:5]).count == 5
    assert paired(high, []) is None


def test_significance_pairs_every_wiring():
    each = experiment("app:significance")
    records = {c.identity: fake_record(c, paper_like(c)) for c in each.plan("paper", SEEDS)}
    outcome = each.show(Results(records.get, scale="paper", seeds=SEEDS))
    (table,) = outcome.tables
    gaps = {name: cells[0].ours for name, cells in table.rows}
    assert isinstance(gaps["MONK's-2"], Value)
    assert (gaps["MONK's-2"].count, gaps["Splice"].count, gaps["Adult"].count) == (60, 5, 3)
