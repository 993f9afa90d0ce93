"""Claims follow the numbers: they hold, fail and stay open as the runs say."""

import math

import pytest

from fake_runs import fake_record, fake_results, paper_like
from gatefit.codebook import CODEBOOK
from gatefit.experiments.record import RunRecord
from gatefit.paper.catalogue import operations
from gatefit.paper.catalogue.draft import Draft, above, best_of
from gatefit.paper.catalogue.measures import (
    accuracy_until,
    best_accuracy,
    best_whole_batch_accuracy,
    diagnostic,
    discretisation_gap,
    last_accuracy,
    mean_curve,
    over_steps,
    soft_accuracy,
    summarise,
    whole_batch_accuracy,
)
from gatefit.paper.outcome import Check, Results, Value
from gatefit.paper.registry import experiment
from gatefit.paper.statistics import mean_and_std
from gatefit.paper.values import paper
from gatefit.training.config import RunConfig


def check_of(label: str, words: str, rule=paper_like, *, without=lambda config: False, scale="paper", **fake) -> Check:
    """The one check of a label whose claim has these words, for runs by a rule, some of them missing."""
    each = experiment(label)
    seeds = each.default_seeds[scale]
    plan = [config for config in each.plan(scale, seeds) if not without(config)]
    outcome = each.show(fake_results(plan, rule, scale=scale, seeds=seeds, **fake))
    (found,) = [check for check in outcome.checks if words in check.claim]
    return found


def changed(by: float, **fields):
    """The paper-like rule, with ``by`` points more where a configuration has these fields."""

    def rule(config: RunConfig) -> float:
        fits = all(getattr(config, name) == value for name, value in fields.items())
        return paper_like(config) + (by / 100 if fits else 0.0)

    return rule


STE_WINS_SPLICE = changed(1.0, dataset="splice", method="multilinear-ste")


@pytest.mark.parametrize(
    ("label", "words", "against"),
    [
        ("tab:mnist-main", "best method on every", STE_WINS_SPLICE),
        ("tab:mnist-main", "best method on Splice", STE_WINS_SPLICE),
        ("tab:mnist-main", "matches or exceeds", changed(1.0, dataset="adult", method="soft-mix")),
        ("tab:mnist-main", "M-STE is worse than Soft-Mix", changed(-9.0, dataset="cifar10", method="soft-mix")),
        ("tab:best-acc", "has the best checkpoint", STE_WINS_SPLICE),
        ("app:significance", "on CIFAR-10", changed(9.0, dataset="cifar10", method="multilinear-ste")),
        ("app:significance", "sign test", STE_WINS_SPLICE),
        ("tab:depth", "Soft-Mix collapses", changed(15.0, method="soft-mix", depth=12)),
        ("tab:depth", "M-CovJac holds", changed(-3.0, method="multilinear-covjac", depth=12)),
        ("tab:depth", "loses the most", changed(-30.0, method="gumbel-st", depth=12)),
        ("tab:cifar-depth", "every depth", changed(5.0, method="gumbel-st", depth=9)),
        ("tab:depth-100k", "recover", changed(-9.0, method="soft-mix", steps=100_000)),
        ("tab:depth-100k", "stays below", changed(20.0, method="soft-mix", steps=100_000)),
        ("tab:ablation", "under STE on CIFAR-10", changed(20.0, method="iwp-ste", dataset="cifar10")),
        ("tab:ablation", "CovJac gradient", changed(-1.0, method="multilinear-covjac", dataset="mnist")),
        ("tab:basis-constraint-main", "comparable", changed(-30.0, method="multilinear-free")),
        ("tab:basis-constraint-depth", "grows with depth", changed(60.0, method="iwp-ste", depth=12)),
        ("tab:basis-constraint-depth", "IWP-STE collapses", changed(40.0, method="iwp-ste", depth=12)),
        ("tab:basis-constraint-depth", "reverses", changed(20.0, method="multilinear-free", depth=12)),
        ("tab:ste-basis-catalogue", "walsh", changed(5.0, backward_basis="walsh")),
        ("tab:ste-basis-catalogue", "smoothed basis collapses", changed(80.0, backward_basis="smoothed")),
        ("tab:ste-basis-catalogue", "Bias is worse", changed(90.0, backward_basis="smoothed")),
        ("sec:controls", "smoothed basis collapses", changed(80.0, backward_basis="smoothed")),
        ("sec:controls", "Hard-ST, with 16", changed(-30.0, method="hard-st", depth=12)),
        ("tab:scaling-exponents", "M-CovJac falls faster", changed(-30.0, method="multilinear-covjac", width=64_000)),
        ("tab:scaling-exponents", "R²", changed(-30.0, method="gumbel-st", width=16_000)),
        ("tab:param-budget", "every matched", changed(9.0, method="soft-mix", depth=3)),
        ("tab:h7-cross-dataset", "larger on MONK's-2", changed(-9.0, dataset="monks-2", method="multilinear-covjac")),
        ("tab:starvation-severity", "correlate", changed(-40.0, dataset="monks-2", method="soft-mix")),
        ("fig:interaction-scaling", "monotonically", changed(9.0, dataset="mnist", method="multilinear-covjac")),
        ("tab:cifar-full", "M-STE is the worst", changed(9.0, dataset="cifar10", method="multilinear-ste")),
        ("tab:wiring-ablation", "perform alike", changed(9.0, wiring_seed=3)),
        ("tab:mlp-cnn-baseline", "circuit on MNIST", changed(-9.0, method="cnn-3x3", dataset="mnist")),
        ("tab:tau-sensitivity", "not brittle", changed(-3.0, temperature=2.0)),
        ("tab:tau-sensitivity", "low temperature", changed(-3.0, dataset="adult", temperature=0.1)),
        ("tab:tau-sensitivity", "worse than τ = 1 on MNIST", changed(3.0, dataset="mnist", learnable_temperature=True)),
        ("tab:adult-depth", "At τ = 1", changed(9.0, dataset="adult", depth=12, temperature=None)),
        ("extra:splice-splits", "with T = 65", changed(9.0, method="soft-mix", readout_temperature=65.0)),
        ("extra:rule-of-thumb", "nearer", changed(9.0, method="multilinear-covjac", readout_temperature=80.0)),
        ("extra:as-written", "(snapped at the corners)", changed(60.0, method="iwp-ste", depth=12)),
        ("extra:as-written", "without an activation", changed(30.0, corner_activation="identity")),
        ("extra:mnist-8k-bases", "(snapped)", changed(5.0, backward_basis="walsh")),
        ("extra:cifar10-128k", "best of three", changed(9.0, method="soft-mix")),
        ("extra:monks-methods", "best of seven", changed(20.0, method="hard-st")),
        ("extra:mnist-8k-basis", "polynomial basis", changed(30.0, method="iwp-ste")),
        ("extra:class-scores", "best method with softer", changed(9.0, method="soft-mix", dataset="splice")),
        ("extra:adult-depth-20k", "Soft-Mix loses more", changed(20.0, method="soft-mix", depth=12)),
    ],
)
def test_a_claim_flips_with_the_numbers(label, words, against):
    assert check_of(label, words).holds is True
    assert check_of(label, words, against).holds is False


@pytest.mark.parametrize(
    ("label", "words", "gone"),
    [
        ("tab:mnist-main", "best method on every", lambda c: c.dataset == "mnist"),
        ("tab:depth", "Soft-Mix collapses", lambda c: c.depth == 12),
        ("tab:scaling-exponents", "R²", lambda c: c.width == 8000),
        ("app:significance", "on CIFAR-10", lambda c: c.seed > 0),
        ("fig:cancellation", "Soft-Mix cancels", lambda c: c.method == "soft-mix"),
        ("tab:mnist-main", "best method on Adult", lambda c: c.method == "soft-mix"),
    ],
)
def test_a_claim_stays_open_while_runs_are_missing(label, words, gone):
    check = check_of(label, words, without=gone)
    assert check.holds is None
    assert check.evidence


def test_one_counterexample_refutes_although_other_runs_are_missing():
    check = check_of("tab:mnist-main", "best method on every", STE_WINS_SPLICE, without=lambda c: c.dataset == "mnist")
    assert check.holds is False
    assert "Splice: M-CovJac 97.13 ± 0.00, M-STE 98.00 ± 0.00: -0.87 ± 0.00 (paper: +0.13)" in check.evidence


def test_data_sets_that_the_scale_does_not_have_do_not_keep_a_claim_open():
    check = check_of("tab:mnist-main", "best method on every", scale="small")
    assert check.holds is True
    assert "SVHN: data set not part of this scale" in check.evidence


def test_agreement_with_the_paper_is_that_of_the_worst_cell():
    def rule(config, more=0.0):
        theirs = paper("tab:width-scaling")[f"{config.depth}/8000", config.method]
        return (theirs.mean if theirs else 90.0) / 100 + (more if config.depth == 3 else 0.0)

    label, words = "extra:mnist-8k-depth", "within a point"
    assert check_of(label, words, rule).holds is True
    check = check_of(label, words, lambda config: rule(config, -0.02))
    assert check.holds is False
    assert check.evidence.startswith("12 of 12 with runs; farthest apart: ")
    assert check.evidence.endswith("L=3 by -2.00")
    assert check_of(label, words, rule, without=lambda c: c.depth == 1).holds is None


def test_a_sign_test_that_nobody_could_pass_says_nothing():
    """2⁻⁵ = 0.031: five wins of five do not refute p < 0.01; one loss does."""
    words = "sign test"
    assert check_of("app:significance", words, scale="small").holds is None
    assert "best on 5 of 5 data sets, p = 0.0312" in check_of("app:significance", words, scale="small").evidence
    assert check_of("app:significance", words, STE_WINS_SPLICE, scale="small").holds is False


def test_covjac_on_adult_is_judged_from_six_layers_on():
    """As the paper does; from three layers on it would gain."""
    check = check_of("tab:adult-depth", "M-CovJac holds", changed(-3.0, method="multilinear-covjac", depth=3))
    assert check.holds is True
    assert "from L=6 to L=12 (paper: 0.02)" in check.evidence


def test_the_gap_of_a_straight_through_method_must_be_zero():
    words = "M-STE is exactly zero"
    assert check_of("app:gap-decomp", words).holds is True
    assert check_of("app:gap-decomp", words, gap=0.0001).holds is False
    bounded = "M-CovJac is at most 0.2 points"
    assert check_of("app:gap-decomp", bounded, gap=0.001).holds is True
    assert check_of("app:gap-decomp", bounded, gap=0.003).holds is False


@pytest.mark.parametrize(
    ("label", "words", "name", "method", "value"),
    [
        ("fig:commitment", "near E[ab]", "gradient_norms", "multilinear-ste", {"ratio": 0.6}),
        ("fig:commitment", "ten times", "gradient_norms", "multilinear-covjac", {"ratio": 1.0}),
        ("fig:commitment", "commits most", "commitment", "soft-mix", {"std_c_ab": 99.0}),
        ("fig:cancellation", "Soft-Mix cancels", "survival", "soft-mix", {"by_layer": [0.9] * 12}),
        ("fig:cancellation", "M-STE cancels none", "survival", "multilinear-ste", {"by_layer": [0.9] * 12}),
        ("fig:cancellation", "next to none", "survival", "multilinear-covjac", {"by_layer": [0.7] * 12}),
        ("fig:codebook-neurons", "strong-interaction gates on MNIST", "census", "soft-mix", {"strong": 0.5}),
        ("fig:codebook-neurons", "less than 0.5 % constant gates on MNIST", "census", "multilinear-covjac",
         {"constant": 0.02}),
        ("fig:gate-selection", "XOR", "census", "multilinear-ste", {"strong": 0.5}),
        ("tab:tau-sensitivity", "collapse in most layers", "commitment", "multilinear-covjac",
         {"temperatures": [0.5] * 6}),
        ("extra:survival", "At τ = 0.1", "survival", "multilinear-covjac", {"mean": 0.7}),
        ("extra:mnist-8k-long", "strong-interaction", "census", "soft-mix", {"strong": 0.5, "constant": 0.0}),
        ("extra:mnist-8k-long", "near E[ab]", "gradient_norms", "multilinear-ste", {"ratio": 0.2, "l1_ratio": 0.6}),
    ],
)  # fmt: skip
def test_a_claim_about_diagnostics_flips_with_them(label, words, name, method, value):
    assert check_of(label, words).holds is True
    each = experiment(label)
    plan = each.plan("paper", (0, 1))
    records = {c.identity: fake_record(c, paper_like(c), **({name: value} if c.method == method else {})) for c in plan}
    outcome = each.show(Results(records.get, scale="paper", seeds=(0, 1)))
    (check,) = [check for check in outcome.checks if words in check.claim]
    assert check.holds is False


def test_gradient_ratio_and_entropy_are_read_over_training():
    each = experiment("app:gradnorm")
    records = {}
    for config in each.plan("paper", (0,)):
        record = fake_record(config, 0.5)
        if config.method == "multilinear-covjac":
            steps = sorted(record.diagnostics["gradient_norms"])
            grown = {step: {"ratio": 1 + i / 10, "l1_ratio": 1.0} for i, step in enumerate(steps)}
            record = fake_record(config, 0.5)
            record.diagnostics["gradient_norms"].clear()
            record.diagnostics["gradient_norms"].update(grown)
        records[config.identity] = record
    outcome = each.show(Results(records.get, scale="paper", seeds=(0,)))
    (check,) = [check for check in outcome.checks if "grows during training" in check.claim]
    assert check.holds is True
    assert check.evidence == "1.10 at the first evaluation, 6.00 at the last (paper: 7.3)"


def test_exports_with_the_first_and_last_diagnostics_alone_are_enough_for_the_tables():
    each = experiment("fig:commitment")
    records = {}
    for config in each.plan("paper", (0,)):
        record = fake_record(config, paper_like(config))
        for steps in record.diagnostics.values():
            for step in [s for s in steps if s not in (0, config.steps)]:
                del steps[step]
        records[config.identity] = record
    outcome = each.show(Results(records.get, scale="paper", seeds=(0,)))
    assert all(check.holds is True for check in outcome.checks)


def test_above_and_best_of_compare_means_and_wait_for_every_rival():
    low, high = Value(1.0, 0.1, 3), Value(2.0, 0.5, 3)
    assert above("", ("a", high), ("b", low)).holds is True
    assert above("", ("a", high), ("b", low), by=2.0).holds is False
    assert above("", ("a", high), ("b", None)).holds is None
    assert above("x", ("a", high), ("b", low), (Value(3.0), Value(1.5))).evidence == (
        "x: a 2.00 ± 0.50, b 1.00 ± 0.10: +1.00 ± 0.29 (paper: +1.50)"
    )
    assert best_of("", {"M-CovJac": high, "b": low}).holds is True
    assert best_of("", {"M-CovJac": high, "b": low, "c": None}).holds is None
    assert best_of("", {"M-CovJac": low, "b": high, "c": None}).holds is False
    assert best_of("", {"M-CovJac": None, "b": high}).holds is None


def test_a_claim_without_parts_is_open():
    draft = Draft(Results(lambda identity: None, scale="paper"))
    draft.claim("nothing")
    assert draft.outcome("label", "title").checks[0].holds is None


def rows(*accuracies: float, every: int = 1000) -> RunRecord:
    config = RunConfig(steps=every * len(accuracies), evaluate_every=every)
    metrics = [
        {"step": every * (i + 1), "test_hard": a, "test_soft": a + 0.5, "test_discretisation_gap": 0.5}
        for i, a in enumerate(accuracies)
    ]
    return RunRecord("", config, "finished", {}, metrics)


def test_readings_of_a_run():
    record = rows(*(0.1 * (i % 10) for i in range(20)))
    assert last_accuracy(record) == pytest.approx(45.0)
    assert best_accuracy(record) == pytest.approx(90.0)
    assert soft_accuracy(record) == pytest.approx(95.0)
    assert discretisation_gap(record) == pytest.approx(50.0)
    assert accuracy_until(12_000)(record) == pytest.approx(100 * (sum(range(2, 10)) + 1) / 100)
    assert accuracy_until(12_500)(record) is None
    assert last_accuracy(rows(*([0.0] * 8), 0.4, 0.6, every=400)) == pytest.approx(50.0)
    assert last_accuracy(RunRecord("", RunConfig(), "finished", {"last_10_accuracy": 0.5})) == 50.0
    assert whole_batch_accuracy(record) is None
    assert best_whole_batch_accuracy(record) is None
    for i, row in enumerate(record.metrics):
        row["test_accuracy_whole_batches"] = i / 20
    assert whole_batch_accuracy(record) == pytest.approx(5 * 14.5)
    assert best_whole_batch_accuracy(record) == pytest.approx(95.0)


def test_summaries_over_runs():
    assert summarise([1.0, None, 3.0]) == Value(2.0, math.sqrt(2), 2)
    assert summarise([1.0], "pp") == Value(1.0, None, 1, "pp")
    assert summarise([None, math.nan]) is None
    assert summarise([1.0, None, 3.0], population=True) == Value(2.0, 1.0, 2)
    assert mean_and_std([1.0, 3.0], population=True) == (2.0, 1.0)
    assert mean_and_std([1.0, 3.0]) == (2.0, math.sqrt(2))
    assert mean_curve([[(0, 1.0), (5, 3.0)], [(5, 5.0)]]) == ([5], [4.0], [math.sqrt(2)])
    assert mean_curve([]) == ([], [], [])


def test_diagnostics_are_followed_by_path_and_step():
    record = RunRecord("", RunConfig(), "finished", diagnostics={"x": {0: {"a": [1, {"b": 2}]}, 10: {"a": None}}})
    assert diagnostic(record, "x", "a", 1, "b", step=0) == 2
    assert diagnostic(record, "x", "a", 7, step=0) is None
    assert diagnostic(record, "x", "a", "b") is None
    assert diagnostic(record, "y") is None
    assert over_steps(record, "x", "a", 0) == [(0, 1.0)]


class Counted:
    """A number that counts the operations it goes through."""

    count = 0

    def __add__(self, other: object) -> "Counted":
        Counted.count += 1
        return self

    __radd__ = __mul__ = __rmul__ = __truediv__ = __add__

    def exp(self) -> "Counted":
        return self + self


def operations_of(algorithm) -> int:
    Counted.count = 0
    algorithm()
    return Counted.count


def polynomial(c, a, b, ab):
    return c[0] + c[1] * a + c[2] * b + c[3] * ab


def total(values):
    first, *rest = values
    for value in rest:
        first = first + value
    return first


def softmax(values):
    powers = [value.exp() for value in values]
    whole = total(powers)
    return [power / whole for power in powers]


def test_operation_counts_are_those_of_the_algorithms():
    x = Counted()
    sixteen, four = [x] * 16, [x] * 4
    codebook = CODEBOOK.tolist()

    def soft_mix():
        ab, weights = x * x, softmax(sixteen)
        return total([weight * polynomial(four, x, x, ab) for weight in weights])

    def mixture():
        return [total([weight * codebook[j][k] for j, weight in enumerate(sixteen)]) for k in range(4)]

    assert operations_of(soft_mix) == operations.naive("soft-mix").sample == 175
    assert operations_of(lambda: polynomial(four, x, x, x * x)) == operations.polynomial() == 7
    assert operations_of(lambda: softmax(sixteen)) == operations.softmax(16) == 47
    assert operations_of(mixture) == operations.mixture() == 124
    assert operations_of(lambda: [total([c * g for c, g in zip(four, row, strict=True)]) + 1 for row in codebook]) == (
        operations.distances()
    )


@pytest.mark.parametrize("name", ["mlp-3x64", "mlp-6x128", "cnn-3x3-3", "cnn-2x2-6", "cnn-3x3-6"])
def test_sizes_of_baselines_are_the_networks_own(name):
    import torch

    from gatefit.paper.baselines import cnn, mlp

    kind, _, rest = name.partition("-")
    network = mlp(784, 10, *map(int, rest.split("x"))) if kind == "mlp" else cnn(1, 10, int(rest[-1]), int(rest[0]))
    size = operations.baseline_size(name)
    assert size.parameters == sum(parameter.numel() for parameter in network.parameters())
    counted = []

    def count(module, inputs, output):
        reads = module.weight[0].numel()
        counted.append(reads * output.numel())

    for module in network.modules():
        if isinstance(module, torch.nn.Linear | torch.nn.Conv2d):
            module.register_forward_hook(count)
    network(torch.zeros(1, 784))
    assert size.multiplications == sum(counted)


def test_the_papers_circuit_has_192_kilobytes_of_gates():
    size = operations.circuit_size(784, 64_000, 6)
    assert (size.parameters, size.gate_bytes) == (1_536_000, 192_000)
    assert size.wiring_bytes == 64_000 * (2 * 10 + 5 * 2 * 16) / 8


def test_parameters_per_gate_are_the_methods_own():
    from gatefit.methods import METHODS

    assert {name: method.parameters_per_gate for name, method in METHODS.items()} == operations.PARAMETERS


def test_computed_tables_agree_with_the_paper_and_correct_it():
    checks = {check.claim: check.holds for label in ("tab:cost", "tab:ste-enumeration", "fig:codebook-3d")
              for check in experiment(label).show(Results(lambda identity: None, scale="small")).checks}  # fmt: skip
    wrong = {claim for claim, holds in checks.items() if not holds}
    assert wrong == {
        "What is done once a batch costs less than 0.4 operations a sample",
        "|∂z/∂a| is at least 1 for every b (the caption of the paper's first figure)",
    }
