"""Finished runs made up from a rule, with every row and diagnostic that a real one has."""

import math
from collections.abc import Callable, Sequence
from typing import Any

from gatefit.experiments.record import RunRecord
from gatefit.paper.outcome import Results, Scale
from gatefit.training.config import RunConfig

Rule = Callable[[RunConfig], float]


def fake_record(config: RunConfig, accuracy: float, *, gap: float = 0.0, **diagnostics: Any) -> RunRecord:
    """A run whose circuit has ``accuracy`` (a fraction) at every evaluation, and is ``gap`` below the soft network."""
    steps = range(config.evaluate_every, config.steps + 1, config.evaluate_every)
    free = config.method.endswith("-free") or config.method in ("mlp", "cnn-3x3", "cnn-2x2")
    rows = [
        {
            "step": step,
            "loss": 0.5,
            "train_hard": None if free else accuracy + 0.01,
            "train_soft": accuracy + 0.01 + gap,
            "train_discretisation_gap": None if free else gap,
            "test_hard": None if free else accuracy,
            "test_soft": accuracy + gap,
            "test_discretisation_gap": None if free else gap,
            "generalisation_gap": None if free else 0.01,
            **({"test_accuracy_whole_batches": accuracy + 0.005} if config.whole_batches else {}),
        }
        for step in steps
    ]
    known = {} if free else {name: dict.fromkeys((0, *steps), value) for name, value in probe(config).items()}
    known |= {name: dict.fromkeys((0, *steps), value) for name, value in diagnostics.items()}
    return RunRecord(config.identity, config, "finished", {"last_10_accuracy": accuracy}, rows, known, seconds=1.0)


def probe(config: RunConfig) -> dict[str, Any]:
    """Diagnostics of the form that gatefit.diagnostics gives, with values of the kind the paper reports."""
    ratio = {"multilinear-ste": 0.24, "multilinear-covjac": 14.0}.get(config.method)
    spread = {"multilinear-ste": 50.0, "multilinear-covjac": 6.0}.get(config.method, 1.0)
    survival = {"soft-mix": 0.29, "multilinear-covjac": 0.99}.get(config.method, 1.0)
    strong = {"multilinear-covjac": 0.26, "multilinear-ste": 0.21}.get(config.method, 0.17)
    constant = 0.004 if config.method == "multilinear-covjac" else 0.06
    gates = [1 / 16] * 16
    return {
        "gradient_norms": {"c_0": 1.0, "c_ab": ratio, "ratio": ratio, "l1_ratio": ratio, "effective": {"ratio": 0.25}},
        "commitment": {"std_c_ab": spread, "max_abs_c_ab": 4 * spread, "by_layer": [],
                       **({"temperatures": [0.02] * config.depth} if config.learnable_temperature else {})},
        "entropy": {"mean": 2.3, "by_layer": [2.3] * config.depth},
        "census": {"constant": constant, "separable": 0.3, "weak": 0.7 - strong - constant, "strong": strong,
                   "gates": gates, "by_layer": []},
        "survival": {"mean": survival, "by_layer": [survival] * config.depth},
    }  # fmt: skip


def fake_results(
    plan: Sequence[RunConfig], rule: Rule, *, scale: Scale, seeds: Sequence[int] = (0,), gap: float = 0.0
) -> Results:
    """All runs of a plan, finished, with accuracies by a rule."""
    records = {config.identity: fake_record(config, rule(config), gap=gap) for config in plan}
    return Results(records.get, scale=scale, seeds=seeds)


def paper_like(config: RunConfig) -> float:
    """Accuracies (fractions) that behave as the paper says: CovJac best, Soft-Mix falling at twelve layers, ..."""
    start = {"adult": 84.9, "splice": 97.0, "mnist": 98.0, "svhn": 67.0, "cifar10": 56.0, "cifar100": 24.0,
             "monks-2": 79.0, "tiny-imagenet": 7.0}.get(config.dataset, 50.0)  # fmt: skip
    gap = {"adult": 0.02, "splice": 0.13, "mnist": 0.21, "svhn": 2.2, "cifar10": 3.0, "cifar100": 4.4,
           "monks-2": 7.5, "tiny-imagenet": 1.5}.get(config.dataset, 1.0)  # fmt: skip
    above_ste = {
        "multilinear-covjac": gap,
        "soft-mix": 0.8 * gap,
        "gumbel-st": 0.7 * gap,
        "iwp-ste": -10.0,
        "iwp": -12.0,
        "multilinear-free": 0.0,
        "iwp-free": 0.3,
        "mlp": -5.0,
        "cnn-3x3": 1.5 + gap,
        "cnn-2x2": 1.2 + gap,
    }.get(config.method, 0.0)
    value = start + above_ste + 0.001 * math.sin(config.seed + 3 * len(config.method))
    if config.backward_basis is not None:
        value -= {"walsh": 9.8 if config.width == 8000 else 3.0}.get(config.backward_basis, 80.0)
    if config.temperature is not None and config.dataset == "mnist":
        value -= 1.3 if config.temperature == 0.1 else 0.1
    if config.method == "multilinear-covjac" and config.dataset == "adult" and config.temperature is None:
        value -= 0.1 if config.learnable_temperature else 0.4
        value -= 1.1 if config.depth == 12 else 0.0
    elif config.learnable_temperature:
        value -= 1.0
    if config.method == "multilinear-covjac" and config.readout_temperature is None and config.dataset in _OPEN:
        value += 0.1  # The rule of thumb is a little less like the paper.
    if config.method == "soft-mix" and config.depth == 12:
        value -= 12.0 if config.steps == 100_000 or config.steps == 8000 else 15.0
    if config.method == "multilinear-free" and config.depth == 12:
        value -= 5.0
    if config.method == "iwp-ste" and config.depth != 6:
        value += 9.8 if config.depth == 1 else -40.0
    if config.depth == 1:
        alpha = 0.42 if config.method in ("multilinear-covjac", "multilinear-ste") else 0.26
        scale = {"multilinear-covjac": 300.0}.get(config.method, 310.0 if alpha > 0.3 else 80.0)
        return 1 - scale * (config.width or 1) ** -alpha / 100 if not _factorial(config) else 0.95
    if config.dataset == "mnist" and config.depth in (3, 6) and config.width is not None:
        value += 0.5 * math.log2(config.width / 64_000) if config.width > 4000 else 0.5 * math.log2(config.width / 2000)
    return min(value, 99.9) / 100


_OPEN = ("adult", "splice", "monks-2")


def _factorial(config: RunConfig) -> bool:
    return config.method in ("iwp-ste", "multilinear-free", "iwp-free")
