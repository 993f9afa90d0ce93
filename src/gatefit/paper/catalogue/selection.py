"""Which gates are chosen (paper §5.4, app. codebook-neurons): the deployed gates by kind and by gate."""

from typing import Any

from gatefit.codebook import CODEBOOK
from gatefit.experiments.record import RunRecord
from gatefit.gates import Gate
from gatefit.paper.catalogue.draft import NO_RUNS, Draft, Part, above, best_of, experiment
from gatefit.paper.catalogue.judging_runs import JudgingRuns, judging_runs
from gatefit.paper.catalogue.measures import Metric, diagnostic
from gatefit.paper.outcome import Cell, Experiment, Panel, Series, Value
from gatefit.paper.scales import MAIN_METHODS, METHOD_NAMES
from gatefit.paper.values import paper, paper_number

KINDS = ("constant", "separable", "weak", "strong")
DATASETS = ("adult", "mnist", "cifar10")


def census_changes(dataset: str, method: str) -> dict[str, Any]:
    """CovJac at τ = 1 on Adult too: the paper's census there explains its accuracy at that temperature."""
    return {"temperature": None} if (dataset, method) == ("adult", "multilinear-covjac") else {}


def fraction(*path: str | int) -> Metric:
    """A part of the census at the end of a run, in per cent."""

    def metric(record: RunRecord) -> float | None:
        value = diagnostic(record, "census", *path)
        return 100 * float(value) if isinstance(value, int | float) else None

    return metric


def show_kinds(draft: Draft) -> None:
    """fig:codebook-neurons."""
    block, panels = paper("fig:codebook-neurons"), []
    values: dict[tuple[str, str], dict[str, Value | None]] = {}
    judges = {dataset: _judges(draft, dataset) for dataset in DATASETS}
    for dataset, runs in judges.items():
        for kind in KINDS:
            values[dataset, kind] = {
                METHOD_NAMES[m]: draft.value(
                    runs.dataset, m, fraction(kind), **runs.changes, **census_changes(dataset, m)
                )
                for m in MAIN_METHODS
            }
        series = []
        for kind in KINDS:
            known = {name: value.mean for name, value in values[dataset, kind].items() if value is not None}
            series.append(Series(kind, tuple(known), tuple(known.values())))
        panels.append(Panel(runs.name(draft), "stacked-bars", "method", "gates, %", tuple(series)))
        rows = []
        for m in MAIN_METHODS:
            cells = [
                draft.cell_of(
                    draft.configs(runs.dataset, m, **runs.changes, **census_changes(dataset, m)),
                    block[m, dataset] if kind == "strong" else None,
                    fraction(kind),
                )
                for kind in KINDS
            ]
            rows.append((METHOD_NAMES[m], cells))
        columns = ("constant", "separable", "weak interaction", "strong interaction")
        draft.table(f"{runs.name(draft)}: deployed gates by kind, %", columns, rows, best="none")
    draft.figure("Deployed gates by kind", *panels)
    for dataset, runs in judges.items():
        name = draft.name(dataset)
        draft.claim(
            f"M-CovJac deploys the largest fraction of strong-interaction gates on {name}",
            best_of("strong", values[dataset, "strong"]),
            id=f"most-strong-{dataset}",
            where=runs.where,
        )
        constant = values[dataset, "constant"]
        parts = [
            above("constant", (other, value), ("M-CovJac", constant["M-CovJac"]))
            for other, value in constant.items()
            if other != "M-CovJac"
        ]
        text = f"M-CovJac deploys the fewest constant gates on {name}"
        draft.claim(text, *parts, id=f"fewest-constant-{dataset}", where=runs.where)
        own = constant["M-CovJac"]
        draft.claim(
            f"M-CovJac deploys less than 0.5 % constant gates on {name}",
            Part(None if own is None else own.mean < 0.5, NO_RUNS if own is None else f"{own.mean:.2f} %"),
            id=f"few-constant-{dataset}",
            where=runs.where,
        )
    columns = ("strong-least", "strong-most", "constant-least", "constant-most")
    low, high, few, many = (paper_number("app:codebook-neurons", "others", column) for column in columns)
    draft.note(
        f"The paper gives {low:.0f} to {high:.0f} % strong interaction and {few:.0f} to {many:.0f} % constant gates "
        "for the other methods."
    )
    draft.note("On Adult CovJac is read at τ = 1, for which the paper gives its fraction; accuracies are of τ = 0.1.")


def _judges(draft: Draft, dataset: str) -> JudgingRuns:
    """MNIST is judged by the longest runs; no other data set stands in for Adult or CIFAR-10."""
    return judging_runs(draft, dataset, MAIN_METHODS) if dataset == "mnist" else JudgingRuns(dataset)


def show_gates(draft: Draft) -> None:
    """fig:gate-selection."""
    panels, rows = [], []
    methods = ("soft-mix", "multilinear-ste", "multilinear-covjac")
    runs = judging_runs(draft, "cifar10", methods)
    shares = {
        m: [draft.value(runs.dataset, m, fraction("gates", int(gate)), **runs.changes) for gate in Gate]
        for m in methods
    }
    for m in methods:
        known = [(gate, share.mean) for gate, share in zip(Gate, shares[m], strict=True) if share is not None]
        points = CODEBOOK[[gate for gate, _ in known]].astype(float) if known else CODEBOOK[:0].astype(float)
        x, y, z = (tuple(points[:, k].tolist()) for k in (1, 2, 3))
        labels = tuple(gate.name.replace("_", " ") for gate, _ in known)
        bubbles = Series(METHOD_NAMES[m], x, y, labels=labels, size=tuple(share for _, share in known), z=z)
        panels.append(Panel(METHOD_NAMES[m], "scatter3d", "c_a", "c_b", (bubbles,), z_label="c_ab"))
    for gate in Gate:
        cells = [draft.cell(None, runs.dataset, m, fraction("gates", int(gate)), **runs.changes) for m in methods]
        rows.append((gate.name.replace("_", " "), cells))
    columns = [METHOD_NAMES[m] for m in methods]
    draft.table(f"{runs.name(draft)}: deployed gates, %", columns, rows, best="none")
    drift = {m: _drift(draft, runs, m) for m in methods}
    block, kinds = paper("fig:gate-selection"), paper("fig:codebook-neurons")
    rows = []
    for m in methods:
        theirs = (block[m, "std"], block[m, "largest"])
        note = "" if drift[m][0] else NO_RUNS
        rows.append((METHOD_NAMES[m], [Cell(v, t, note) for v, t in zip(drift[m], theirs, strict=True)]))
    draft.table("Raw coefficients at the end", ("std(c_ab)", "largest |c_ab|"), rows, best="none")
    draft.figure("Deployed gates in the space of coefficients; a point's size is its share", *panels)
    draft.claim(
        "M-STE's coefficients drift far from the codebook, CovJac's stay nearer",
        above(
            "std(c_ab)",
            ("M-STE", drift["multilinear-ste"][0]),
            ("M-CovJac", drift["multilinear-covjac"][0]),
            (block["multilinear-ste", "std"], block["multilinear-covjac", "std"]),
        ),
        id="drift",
        where=runs.where,
    )
    strong = draft.methods(runs.dataset, methods, fraction("strong"), **runs.changes)
    pairs = (("multilinear-covjac", "multilinear-ste"), ("multilinear-ste", "soft-mix"))
    draft.claim(
        "M-CovJac selects more XOR and XNOR gates than M-STE, and M-STE more than Soft-Mix",
        *(
            above(
                "strong",
                (METHOD_NAMES[high], strong[METHOD_NAMES[high]]),
                (METHOD_NAMES[low], strong[METHOD_NAMES[low]]),
                (kinds[high, "cifar10"], kinds[low, "cifar10"]),
            )
            for high, low in pairs
        ),
        id="more-xor",
        where=runs.where,
    )


def _drift(draft: Draft, runs: JudgingRuns, method: str) -> tuple[Value | None, Value | None]:
    def metric(key: str) -> Metric:
        return lambda record: diagnostic(record, "commitment", key)

    return (
        draft.value(runs.dataset, method, metric("std_c_ab"), "", **runs.changes),
        draft.value(runs.dataset, method, metric("max_abs_c_ab"), "", **runs.changes),
    )


EXPERIMENTS: tuple[Experiment, ...] = (
    experiment("fig:codebook-neurons", "Deployed gates by kind", show_kinds, small_seeds=(0, 1)),
    experiment("fig:gate-selection", "Deployed gates on CIFAR-10", show_gates, small_seeds=(0, 1)),
)
