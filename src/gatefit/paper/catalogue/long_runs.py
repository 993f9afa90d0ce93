"""Runs of the paper's length: what happens inside at 8,000 gates a layer, and its main row as far as it was run."""

from collections.abc import Mapping
from typing import Any, Final

from gatefit.experiments.record import RunRecord
from gatefit.paper.catalogue.draft import NO_RUNS, Draft, Part, above, best_of, experiment, paper_row
from gatefit.paper.catalogue.extra import NARROW
from gatefit.paper.catalogue.measures import (
    Metric,
    diagnostic,
    discretisation_gap,
    generalisation_gap,
    summarise,
)
from gatefit.paper.catalogue.selection import fraction
from gatefit.paper.outcome import Cell, Experiment, Value
from gatefit.paper.scales import MAIN_METHODS, METHOD_NAMES, SETTINGS
from gatefit.paper.values import paper, paper_number

DEEP: Final = 12
FIRST: Final = ("multilinear-ste", "multilinear-covjac", "soft-mix")
CIFAR_STEPS: Final = 10_000


def number(name: str, *path: str) -> Metric:
    """A diagnostic at the end of a run."""

    def metric(record: RunRecord) -> float | None:
        value = diagnostic(record, name, *path)
        return float(value) if isinstance(value, int | float) else None

    return metric


COLUMNS: Final[Mapping[str, tuple[Metric, str]]] = {
    "DG": (discretisation_gap, "pp"),
    "Gen": (generalisation_gap, "pp"),
    "strong, %": (fraction("strong"), "%"),
    "constant, %": (fraction("constant"), "%"),
    "std(c_ab)": (number("commitment", "std_c_ab"), ""),
    "c_ab/c_0, L2": (number("gradient_norms", "ratio"), ""),
    "c_ab/c_0, L1": (number("gradient_norms", "l1_ratio"), ""),
    "entropy": (number("entropy", "mean"), ""),
}


def show_long(draft: Draft) -> None:
    """Accuracy, gaps, census, commitment, gradient ratios and entropy after all the steps."""
    width = NARROW if draft.scale == "paper" else SETTINGS[draft.scale]["mnist"].width
    accuracy, census = paper("tab:width-scaling"), paper("fig:codebook-neurons")
    typed: dict[tuple[str, str], Value | None] = {}
    for m in MAIN_METHODS:
        typed |= {(m, "strong, %"): census[m, "mnist"], (m, "std(c_ab)"): paper("fig:commitment")[m, "std"]}
        typed |= {(m, "c_ab/c_0, L2"): paper("app:gradnorm")[m, "mean"]}
        typed |= {(m, "DG"): paper("tab:cifar-full")[m, "discretisation"]}
    rows, v = [], dict[tuple[str, str], Value | None]()
    for m in MAIN_METHODS:
        configs = draft.configs("mnist", m, width=width)
        cells = [draft.cell_of(configs, accuracy[f"6/{width}", m])]
        for name, (metric, unit) in COLUMNS.items():
            cell = draft.cell_of(configs, typed.get((m, name)), metric, unit)
            v[METHOD_NAMES[m], name] = cell.value
            cells.append(cell)
        rows.append((METHOD_NAMES[m], cells))
    steps = SETTINGS[draft.scale]["mnist"].steps
    title = f"{draft.name('mnist')}, 6 × {width:,} gates, after {steps:,} steps"
    draft.table(title, ("accuracy, %", *COLUMNS), rows, best="none")
    strong = {METHOD_NAMES[m]: v[METHOD_NAMES[m], "strong, %"] for m in MAIN_METHODS}
    draft.claim("M-CovJac deploys the largest fraction of strong-interaction gates", best_of("strong", strong))
    own = v["M-CovJac", "constant, %"]
    draft.claim(
        "M-CovJac deploys less than 0.5 % constant gates",
        Part(None if own is None else own.mean < 0.5, NO_RUNS if own is None else f"{own.mean:.2f} %"),
    )
    spread = [(METHOD_NAMES[m], v[METHOD_NAMES[m], "std(c_ab)"]) for m in ("multilinear-ste", "multilinear-covjac")]
    last = ("Soft-Mix", v["Soft-Mix", "std(c_ab)"])
    draft.claim(
        "M-STE commits most, CovJac less, Soft-Mix hardly",
        above("std(c_ab)", spread[0], spread[1]),
        above("std(c_ab)", spread[1], last),
    )
    ratio = v["M-STE", "c_ab/c_0, L1"]
    theirs = paper_number("fig:commitment", "multilinear-ste", "ratio")
    text = NO_RUNS if ratio is None else f"{ratio.mean:.3f} by absolute values (paper: {theirs}, theory: 0.25)"
    draft.claim(
        "M-STE's gradient ratio of c_ab to c_0 is near E[ab] = 1/4",
        Part(None if ratio is None else 0.15 <= ratio.mean <= 0.35, text),
    )
    gap = v["M-CovJac", "DG"]
    text = NO_RUNS if gap is None else f"{gap.mean:+.3f} points"
    draft.claim(
        "The discretisation gap of M-CovJac is at most 0.2 points",
        Part(None if gap is None else abs(gap.mean) <= 0.2, text),
    )
    draft.note(
        "The paper's accuracies are those of 8,000 gates; its census is that of MNIST at 64,000, its commitment, "
        "gradient ratios and discretisation gaps those of CIFAR-10 at 128,000."
    )


def show_main_row(draft: Draft) -> None:
    """The paper's main row on MNIST, seed 0."""
    _row(draft, "mnist", {})


def show_cifar_row(draft: Draft) -> None:
    """CIFAR-10 at the paper's width with fewer steps."""
    steps = min(CIFAR_STEPS, SETTINGS[draft.scale]["cifar10"].steps)
    _row(draft, "cifar10", {"steps": steps})


def _row(draft: Draft, dataset: str, changes: dict[str, Any]) -> None:
    block, setting = paper("tab:mnist-main"), SETTINGS[draft.scale][dataset]
    cells = {m: draft.cell(block[m, dataset], dataset, m, **changes) for m in FIRST}
    steps = changes.get("steps", setting.steps)
    title = f"{draft.name(dataset)}, 6 × {setting.width:,} gates, {steps:,} steps: {draft.measure}, %"
    draft.table(title, ("accuracy",), [(METHOD_NAMES[m], [cell]) for m, cell in cells.items()])
    values = {METHOD_NAMES[m]: cell.value for m, cell in cells.items()}
    draft.claim(f"M-CovJac is the best of three methods on {draft.name(dataset)}",
                best_of("", values, paper=paper_row(block, FIRST, dataset)), id="best-of-three")  # fmt: skip


def show_survival(draft: Draft) -> None:
    """Survival in the untrained network, which one step is enough to measure; CovJac at both its temperatures."""
    block, rows, mean = paper("fig:cancellation"), [], {}
    kinds: dict[str, tuple[str, dict[str, Any]]] = {
        "Soft-Mix": ("soft-mix", {}),
        "M-STE": ("multilinear-ste", {}),
        "M-CovJac, τ = 1": ("multilinear-covjac", {}),
        "M-CovJac, τ = 0.1": ("multilinear-covjac", {"temperature": 0.1}),
    }
    for name, (m, changes) in kinds.items():
        found = draft.records("mnist", m, depth=DEEP, steps=1, evaluate_every=1, **changes)
        mean[name] = summarise((diagnostic(r, "survival", "mean", step=0) for r in found), "")
        rows.append((name, [Cell(mean[name], block[m, "survival"], "" if mean[name] else NO_RUNS)]))
    width = SETTINGS[draft.scale]["mnist"].width
    title = f"Signal survival at initialisation, {draft.name('mnist')}, {DEEP} × {width:,} gates, mean over layers"
    draft.table(title, ("s",), rows, digits=3, best="none")
    for tau in ("0.1", "1"):
        value, theirs = mean[f"M-CovJac, τ = {tau}"], block["multilinear-covjac", "survival"]
        said = f" (paper: {theirs.mean}, without its τ)" if theirs else ""
        draft.claim(
            f"At τ = {tau} M-CovJac cancels at most 5 % of the gradient in a layer",
            Part(
                None if value is None else value.mean >= 0.95, NO_RUNS if value is None else f"{value.mean:.3f}{said}"
            ),
        )
    draft.note("s_l as in fig:cancellation. It is measured before the first step; these runs end after it.")


EXPERIMENTS: tuple[Experiment, ...] = (
    experiment("extra:mnist-8k-long", "Inside networks of the paper's length", show_long),
    experiment("extra:mnist-64k", "The main row on MNIST", show_main_row, paper_seeds=(0,)),
    experiment("extra:cifar10-128k", "CIFAR-10 at the paper's width", show_cifar_row, paper_seeds=(0,)),
    experiment("extra:survival", "Signal survival at both temperatures", show_survival),
)
