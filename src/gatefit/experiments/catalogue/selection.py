"""Which gates are chosen (paper §5.4, app. codebook-neurons): the deployed gates by kind and by gate."""

from typing import Any

from gatefit.codebook import CODEBOOK
from gatefit.experiments.catalogue.reading import Metric, diagnostic
from gatefit.experiments.catalogue.sheet import NO_RUNS, Part, Sheet, above, best_of, experiment
from gatefit.experiments.outcome import Cell, Experiment, Panel, RunRecord, Series, Value
from gatefit.experiments.paper_values import paper
from gatefit.experiments.scales import MAIN_METHODS, METHOD_NAMES
from gatefit.gates import Gate

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


def show_kinds(sheet: Sheet) -> None:
    """fig:codebook-neurons."""
    block, panels = paper("fig:codebook-neurons"), []
    values: dict[tuple[str, str], dict[str, Value | None]] = {}
    for dataset in DATASETS:
        for kind in KINDS:
            values[dataset, kind] = {
                METHOD_NAMES[m]: sheet.value(dataset, m, fraction(kind), **census_changes(dataset, m))
                for m in MAIN_METHODS
            }
        series = []
        for kind in KINDS:
            known = {name: value.mean for name, value in values[dataset, kind].items() if value is not None}
            series.append(Series(kind, tuple(known), tuple(known.values())))
        panels.append(Panel(sheet.name(dataset), "stacked-bars", "method", "gates, %", tuple(series)))
        rows = []
        for m in MAIN_METHODS:
            cells = [
                sheet.cell(
                    block[m, dataset] if kind == "strong" else None,
                    dataset,
                    m,
                    fraction(kind),
                    **census_changes(dataset, m),
                )
                for kind in KINDS
            ]
            rows.append((METHOD_NAMES[m], cells))
        columns = ("constant", "separable", "weak interaction", "strong interaction")
        sheet.table(f"{sheet.name(dataset)}: deployed gates by kind, %", columns, rows, best="none")
    sheet.figure("Deployed gates by kind", *panels)
    for dataset in DATASETS:
        name = sheet.name(dataset)
        sheet.claim(
            f"M-CovJac deploys the largest fraction of strong-interaction gates on {name}",
            best_of("strong", values[dataset, "strong"]),
        )
        constant = values[dataset, "constant"]
        parts = [
            above("constant", (other, value), ("M-CovJac", constant["M-CovJac"]))
            for other, value in constant.items()
            if other != "M-CovJac"
        ]
        sheet.claim(f"M-CovJac deploys the fewest constant gates on {name}", *parts)
        own = constant["M-CovJac"]
        sheet.claim(
            f"M-CovJac deploys less than 0.5 % constant gates on {name}",
            Part(None if own is None else own.mean < 0.5, NO_RUNS if own is None else f"{own.mean:.2f} %"),
        )
    sheet.note("The paper gives 16 to 21 % strong interaction and 4 to 10 % constant gates for the other methods.")


def show_gates(sheet: Sheet) -> None:
    """fig:gate-selection."""
    dataset, panels, rows = "cifar10", [], []
    methods = ("soft-mix", "multilinear-ste", "multilinear-covjac")
    shares = {m: [sheet.value(dataset, m, fraction("gates", int(gate))) for gate in Gate] for m in methods}
    for m in methods:
        known = [(gate, share.mean) for gate, share in zip(Gate, shares[m], strict=True) if share is not None]
        points = CODEBOOK[[gate for gate, _ in known]].astype(float) if known else CODEBOOK[:0].astype(float)
        x, y, z = (tuple(points[:, k].tolist()) for k in (1, 2, 3))
        labels = tuple(gate.name.replace("_", " ") for gate, _ in known)
        bubbles = Series(METHOD_NAMES[m], x, y, labels=labels, size=tuple(share for _, share in known), z=z)
        panels.append(Panel(METHOD_NAMES[m], "scatter3d", "c_a", "c_b", (bubbles,), z_label="c_ab"))
    for gate in Gate:
        cells = [sheet.cell(None, dataset, m, fraction("gates", int(gate))) for m in methods]
        rows.append((gate.name.replace("_", " "), cells))
    columns = [METHOD_NAMES[m] for m in methods]
    sheet.table(f"{sheet.name(dataset)}: deployed gates, %", columns, rows, best="none")
    drift = {m: _drift(sheet, dataset, m) for m in methods}
    block, kinds = paper("fig:gate-selection"), paper("fig:codebook-neurons")
    rows = []
    for m in methods:
        theirs = (block[m, "std"], block[m, "largest"])
        note = "" if drift[m][0] else NO_RUNS
        rows.append((METHOD_NAMES[m], [Cell(v, t, note) for v, t in zip(drift[m], theirs, strict=True)]))
    sheet.table("Raw coefficients at the end", ("std(c_ab)", "largest |c_ab|"), rows, best="none")
    sheet.figure("Deployed gates in the space of coefficients; a point's size is its share", *panels)
    sheet.claim(
        "M-STE's coefficients drift far from the codebook, CovJac's stay nearer",
        above(
            "std(c_ab)",
            ("M-STE", drift["multilinear-ste"][0]),
            ("M-CovJac", drift["multilinear-covjac"][0]),
            (block["multilinear-ste", "std"], block["multilinear-covjac", "std"]),
        ),
    )
    strong = sheet.methods(dataset, methods, fraction("strong"))
    pairs = (("multilinear-covjac", "multilinear-ste"), ("multilinear-ste", "soft-mix"))
    sheet.claim(
        "M-CovJac selects more XOR and XNOR gates than M-STE, and M-STE more than Soft-Mix",
        *(
            above(
                "strong",
                (METHOD_NAMES[high], strong[METHOD_NAMES[high]]),
                (METHOD_NAMES[low], strong[METHOD_NAMES[low]]),
                (kinds[high, dataset], kinds[low, dataset]),
            )
            for high, low in pairs
        ),
    )


def _drift(sheet: Sheet, dataset: str, method: str) -> tuple[Value | None, Value | None]:
    def metric(key: str) -> Metric:
        return lambda record: diagnostic(record, "commitment", key)

    return (
        sheet.value(dataset, method, metric("std_c_ab"), ""),
        sheet.value(dataset, method, metric("max_abs_c_ab"), ""),
    )


EXPERIMENTS: tuple[Experiment, ...] = (
    experiment("fig:codebook-neurons", "Deployed gates by kind", show_kinds, small_seeds=(0, 1)),
    experiment("fig:gate-selection", "Deployed gates on CIFAR-10", show_gates, small_seeds=(0, 1)),
)
