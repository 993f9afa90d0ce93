"""Every label plans the runs that it shows, at every scale, with and without runs."""

import json
from dataclasses import asdict, replace

import pytest

from fake_runs import fake_results, paper_like
from gatefit.datasets import DATASETS
from gatefit.experiments.estimate import estimate
from gatefit.paper.baseline_cost import BASELINES, step_seconds
from gatefit.paper.outcome import SCALES, Outcome, Results, Value
from gatefit.paper.registry import EXPERIMENTS, experiment, labels
from gatefit.paper.scales import MAIN_METHODS, WIDTHS, counted_evaluations
from gatefit.paper.values import TEXT, paper_labels
from gatefit.training.config import RunConfig

EVERY = [(label, scale) for label in labels() for scale in SCALES]
COMPUTED = ("tab:cost", "tab:ste-enumeration", "tab:degree-complexity", "fig:codebook-3d")


def plan_of(label: str, scale: str) -> list[RunConfig]:
    each = experiment(label)
    return each.plan(scale, each.default_seeds[scale])


def shown(label: str, scale: str, rule=paper_like) -> Outcome:
    each = experiment(label)
    seeds = each.default_seeds[scale]
    return each.show(fake_results(plan_of(label, scale), rule, scale=scale, seeds=seeds))


def well_formed(outcome: Outcome) -> None:
    for table in outcome.tables:
        assert all(len(cells) == len(table.columns) for _, cells in table.rows)
        assert len({name for name, _ in table.rows}) == len(table.rows)
        for _, cells in table.rows:
            for cell in cells:
                assert cell.ours is not None or cell.note or cell.paper is None
    for figure in outcome.figures:
        for panel in figure.panels:
            for series in panel.series:
                assert len(series.x) == len(series.y)
                for other in (series.error, series.labels, series.size, series.z):
                    assert other is None or len(other) == len(series.x)
    assert all(check.evidence for check in outcome.checks)
    assert len({check.claim for check in outcome.checks}) == len(outcome.checks)
    assert len({check.id for check in outcome.checks} - {""}) == len(outcome.checks)
    content = [[asdict(each) for each in part] for part in (outcome.tables, outcome.figures, outcome.checks)]
    json.dumps(content, allow_nan=False)


@pytest.mark.parametrize(("label", "scale"), EVERY)
def test_a_label_without_runs_says_what_is_missing(label, scale):
    each = experiment(label)
    outcome = each.show(Results(lambda identity: None, scale=scale, seeds=each.default_seeds[scale]))
    well_formed(outcome)
    assert outcome.used == ()
    assert list(outcome.missing) == plan_of(label, scale)
    if label not in COMPUTED:
        assert {check.holds for check in outcome.checks} == {None}
        assert not any(isinstance(cell.ours, Value) and cell.ours.unit == "%" for table in outcome.tables
                       for _, cells in table.rows for cell in cells)  # fmt: skip


@pytest.mark.parametrize(("label", "scale"), EVERY)
def test_a_label_with_all_its_runs_uses_them_all_and_no_other(label, scale):
    outcome = shown(label, scale)
    well_formed(outcome)
    assert outcome.missing == ()
    assert {record.identity for record in outcome.used} == {config.identity for config in plan_of(label, scale)}
    if scale == "tiny" and label not in COMPUTED:
        assert {check.holds for check in outcome.checks} == {None}
    if scale == "paper":
        assert [check.claim for check in outcome.checks if check.finding == "open"] == []


def test_every_claim_that_is_a_comparison_holds_for_numbers_like_the_papers():
    failed = [
        (label, check.claim, check.evidence)
        for label in ("tab:mnist-main", "tab:best-acc", "tab:depth", "tab:cifar-depth", "tab:cifar100-depth",
                      "tab:depth-100k", "tab:ablation", "tab:basis-constraint-main", "tab:ste-basis-catalogue",
                      "sec:controls", "tab:h7-cross-dataset", "fig:interaction-scaling", "tab:starvation-severity",
                      "fig:commitment", "fig:cancellation", "fig:codebook-neurons", "tab:scaling-exponents",
                      "tab:mlp-cnn-baseline", "tab:wiring-ablation", "app:significance")
        for check in shown(label, "paper").checks
        if check.holds is not True
    ]  # fmt: skip
    assert failed == []


@pytest.mark.parametrize("scale", SCALES)
def test_planned_runs_can_be_built(scale):
    from gatefit.methods import method_class

    for config in {config for label in labels() for config in plan_of(label, scale)}:
        assert config == config.resolved()
        info = DATASETS[config.dataset]
        assert set(config.dataset_options()) <= set(info.options)
        assert config.steps % config.evaluate_every == 0
        if config.method in BASELINES:
            assert config.learning_rate == 0.001
            continue
        assert config.width is not None
        assert config.width % info.classes == 0
        method_class(config.method)
        config.method_options()


def test_small_and_tiny_plan_only_data_that_can_be_had():
    assert {c.dataset for label in labels() for c in plan_of(label, "small")} == {
        "adult", "splice", "monks-2", "mnist", "cifar10"
    }  # fmt: skip
    # Part of the package, or of scikit-learn: nothing is downloaded.
    tiny = {c.dataset for label in labels() for c in plan_of(label, "tiny")}
    assert tiny == {"monks-1", "monks-2", "monks-3", "digits"}


def test_the_paper_scale_is_the_papers():
    main = plan_of("tab:mnist-main", "paper")
    sizes = {(c.dataset, c.width, c.depth, c.steps, c.evaluate_every, c.batch_size) for c in main}
    assert sizes == {
        ("adult", 4096, 6, 50_000, 1000, 512),
        ("splice", 4095, 6, 50_000, 1000, 512),
        ("monks-2", 136, 6, 10_000, 1000, 128),
        ("mnist", 64_000, 6, 50_000, 1000, 512),
        ("svhn", 128_000, 6, 50_000, 1000, 512),
        ("cifar10", 128_000, 6, 50_000, 1000, 512),
        ("cifar100", 256_000, 6, 100_000, 1000, 512),
    }
    assert {c.method for c in main} == set(MAIN_METHODS)
    assert {c.temperature for c in main if c.method == "multilinear-covjac" and c.dataset == "adult"} == {0.1}
    assert {c.temperature for c in main if c.dataset != "adult" and c.method == "multilinear-covjac"} == {None}
    assert {c.seed for c in main if c.dataset == "adult"} == {0, 1, 2}
    assert {c.seed for c in main if c.dataset == "monks-2"} == set(range(12))
    others = {label: [c for c in plan_of(label, "paper") if c.dataset != "monks-2"] for label in labels()}
    wirings = {label: {c.wiring_seed for c in plan} for label, plan in others.items()}
    assert {label for label, seeds in wirings.items() if seeds - {0}} == {"tab:wiring-ablation"}
    assert wirings["tab:wiring-ablation"] == {0, 1, 2, 3, 4}


def test_runs_trained_by_hand_are_found():
    """What `gatefit train` makes with the options of the paper is what the tables ask for."""
    by_hand = {
        "tab:width-scaling": RunConfig(dataset="mnist", method="soft-mix", width=8000, depth=3, steps=50_000),
        "tab:mnist-main": RunConfig(
            dataset="adult", method="multilinear-covjac", temperature=0.1, readout_temperature=80, seed=2
        ),
        "tab:h7-cross-dataset": RunConfig(
            dataset="monks-2", method="multilinear-ste", steps=10_000, batch_size=128, readout_temperature=10,
            whole_batches=True, seed=11, wiring_seed=4,
        ),
        "tab:depth": RunConfig(dataset="mnist", method="soft-mix", width=64_000, readout_temperature=30, depth=12),
        "extra:splice-splits": RunConfig(dataset="splice", readout_temperature=65, split_seed=3),
        "extra:rule-of-thumb": RunConfig(dataset="monks-2", method="iwp", steps=10_000),
        "extra:mnist-8k-depth": RunConfig(dataset="mnist", method="soft-mix", width=8000, depth=12, steps=20_000),
        "extra:mnist-8k-basis": RunConfig(dataset="mnist", method="iwp-ste", width=8000, steps=50_000),
        "extra:adult-depth-20k": RunConfig(dataset="adult", method="soft-mix", depth=9, steps=20_000),
        "extra:adult-difflogic-encoding": RunConfig(
            dataset="adult", method="multilinear-covjac", temperature=0.1, adult_encoding="difflogic"
        ),
        "extra:class-scores": RunConfig(dataset="splice", method="soft-mix", readout_temperature=65),
        "extra:monks-methods": RunConfig(
            dataset="monks-2", method="iwp", steps=10_000, batch_size=128, readout_temperature=10, whole_batches=True
        ),
    }  # fmt: skip
    assert DATASETS["adult"].width == 4096
    for label, config in by_hand.items():
        assert config.resolved().identity in {c.identity for c in plan_of(label, "paper")}, label


@pytest.mark.parametrize("scale", SCALES)
def test_labels_share_runs(scale):
    plans = {label: {c.identity for c in plan_of(label, scale)} for label in labels()}
    for parts, whole in (
        (("tab:best-acc", "app:significance"), ("tab:mnist-main",)),
        (("app:gap-decomp", "app:gradnorm"), ("tab:mnist-main", "tab:width-scaling")),
        (("tab:h7-cross-dataset", "fig:interaction-scaling", "tab:starvation-severity"), ("tab:mnist-main",)),
        (("fig:depth-scaling",), ("tab:depth", "tab:cifar-depth")),
        (("fig:cancellation", "app:entropy"), ("tab:depth",)),
        (("tab:cifar-full",), ("tab:mnist-main",)),
        (("fig:commitment", "fig:gate-selection"), ("tab:mnist-main", "tab:width-scaling")),
        (("tab:scaling-exponents", "tab:param-budget"), ("tab:width-scaling",)),
        (("fig:codebook-neurons",), ("tab:mnist-main", "tab:width-scaling", "tab:tau-sensitivity")),
    ):
        shared = set().union(*(plans[label] for label in whole))
        for label in parts:
            if (label, scale) != ("fig:codebook-neurons", "small"):  # a second seed of Adult at τ = 1
                assert plans[label] <= shared, label


def test_all_labels_at_small_scale_take_about_three_hours_of_one_core():
    runs = {c.identity: c for label in labels() for c in plan_of(label, "small")}
    assert 60 * 60 < estimate(runs.values(), None, step_seconds=step_seconds) < 220 * 60


def test_tiny_is_tiny():
    runs = {c.identity: c for label in labels() for c in plan_of(label, "tiny")}
    assert len(runs) < 240
    assert max(c.steps * c.depth * (c.width or 0) for c in runs.values()) < 200_000


def test_every_table_of_the_paper_has_a_label_and_every_typed_block_is_used():
    known = {label.partition("/")[0] for label in paper_labels()}
    texts = {"sec:ablation", "app:interaction-demand", "app:tau", "app:basis-futility", *TEXT}
    assert known - texts <= set(labels())
    assert texts <= known


def test_the_width_sweep_contains_the_width_of_other_tables():
    for scale in SCALES:
        width = {c.width for c in plan_of("tab:depth", scale)}
        assert width <= set(WIDTHS[scale])


def test_seeds_asked_for_are_planned():
    each = EXPERIMENTS["tab:depth"]
    assert {c.seed for c in each.plan("small", (4, 7))} == {4, 7}
    assert {c.seed for c in EXPERIMENTS["tab:h7-cross-dataset"].plan("paper", (1,)) if c.dataset == "monks-2"} == {
        4, 5, 6, 7
    }  # fmt: skip


def test_accuracies_are_the_mean_of_the_last_evaluations():
    assert counted_evaluations(RunConfig(steps=50_000)) == 10
    assert counted_evaluations(RunConfig(dataset="monks-2", steps=10_000)) == 10
    assert counted_evaluations(RunConfig(steps=4000, evaluate_every=400)) == 2
    assert counted_evaluations(RunConfig(steps=20_000, evaluate_every=400)) == 10


def test_an_unfinished_run_is_missing():
    each = experiment("tab:h7-cross-dataset")
    records = {c.identity: fake for c in each.plan("small", (0,))
               for fake in fake_results([c], paper_like, scale="small").each([c])}  # fmt: skip
    first = next(iter(records))
    records[first] = replace(records[first], status="running")
    outcome = each.show(Results(records.get, scale="small", seeds=(0,)))
    assert [config.identity for config in outcome.missing] == [first]
