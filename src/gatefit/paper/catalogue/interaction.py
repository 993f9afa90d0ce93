"""Interaction demand (paper §5.3, app. h7, app. interaction-demand): where M-STE starves, CovJac gains.

starvation   Δ_starv = A_SoftMix - A_STE        the deficit that 25 % coverage of c_ab causes
advantage    Δ_CJ    = A_CovJac - A_STE
"""

import itertools
import math
from typing import TYPE_CHECKING, Final

from gatefit.paper.catalogue.draft import NO_RUNS, NOT_HERE, Draft, Part, above, best_of, experiment
from gatefit.paper.catalogue.standard_errors import difference
from gatefit.paper.outcome import Cell, Experiment, Panel, Series, Value
from gatefit.paper.scales import DATASETS, MAIN_METHODS, METHOD_NAMES
from gatefit.paper.values import paper

if TYPE_CHECKING:
    from gatefit.paper.statistics import Correlation

_STRONG: Final = 0.7
"""A correlation that is called strong."""


def show_h7(draft: Draft) -> None:
    """tab:h7-cross-dataset."""
    label = "tab:h7-cross-dataset"
    block, rows, best, gaps = paper(label), [], [], {}
    for dataset in ("splice", "monks-2"):
        cells = [draft.cell(block[dataset, m], dataset, m) for m in MAIN_METHODS]
        values = draft.methods(dataset, MAIN_METHODS)
        gaps[dataset] = difference(values["M-CovJac"], values["M-STE"])
        note = "" if gaps[dataset] else NO_RUNS
        cells.append(Cell(gaps[dataset], block[dataset, "gap"], note))
        rows.append((draft.name(dataset), cells))
        theirs = {METHOD_NAMES[m]: block[dataset, m] for m in MAIN_METHODS}
        best.append(best_of(draft.name(dataset), values, paper=theirs))
        draft.claim(f"M-CovJac is the best method on {draft.name(dataset)}", best[-1], id=f"best-on-{dataset}")
    columns = [*(METHOD_NAMES[m] for m in MAIN_METHODS), "CovJac - STE"]
    draft.table(f"Splice and MONK's-2: {draft.measure}, %", columns, rows, best="rows")
    draft.claim("M-CovJac is the best method on Splice and on MONK's-2", *best, id="best-on-both")
    names = [f"gap on {draft.name(dataset)}" for dataset in ("monks-2", "splice")]
    draft.claim(
        "The CovJac - STE gap is larger on MONK's-2, which needs every pairwise interaction, than on Splice",
        above(
            "",
            (names[0], gaps["monks-2"]),
            (names[1], gaps["splice"]),
            (block["monks-2", "gap"], block["splice", "gap"]),
        ),
        id="gap-larger-on-monks-2",
    )


def _gaps(draft: Draft) -> dict[str, tuple[Value | None, Value | None]]:
    """Starvation and advantage of every data set."""
    gaps = {}
    for dataset in DATASETS:
        values = draft.methods(dataset, ("soft-mix", "multilinear-ste", "multilinear-covjac"))
        gaps[dataset] = (
            difference(values["Soft-Mix"], values["M-STE"]),
            difference(values["M-CovJac"], values["M-STE"]),
        )
    return gaps


def _growing(draft: Draft, gaps: dict[str, tuple[Value | None, Value | None]]) -> None:
    """The gap grows along the paper's order of the data sets, pair by pair."""
    theirs = paper("tab:starvation-severity")
    present = [dataset for dataset in DATASETS if draft.has(dataset)]
    parts = [
        above(
            "",
            (draft.name(high), gaps[high][1]),
            (draft.name(low), gaps[low][1]),
            (theirs[high, "advantage"], theirs[low, "advantage"]),
        )
        for low, high in itertools.pairwise(present)
    ]
    absent = [draft.absent(dataset) for dataset in DATASETS if not draft.has(dataset)]
    text = "The gap from M-STE to M-CovJac grows monotonically with interaction demand"
    draft.claim(text, *parts, *absent, id="gap-monotone")
    draft.claim(
        "The gap from M-STE to M-CovJac is larger on CIFAR-10 than on MNIST",
        above(
            "",
            (draft.name("cifar10"), gaps["cifar10"][1]),
            (draft.name("mnist"), gaps["mnist"][1]),
            (theirs["cifar10", "advantage"], theirs["mnist", "advantage"]),
        ),
        id="gap-larger-on-cifar10",
    )


def show_severity(draft: Draft) -> None:
    """tab:starvation-severity."""
    from gatefit.paper.statistics import pearson

    block, gaps, rows = paper("tab:starvation-severity"), _gaps(draft), []
    for dataset in DATASETS:
        starvation, advantage = gaps[dataset]
        note = "" if starvation and advantage else NO_RUNS if draft.has(dataset) else NOT_HERE
        ratio: Value | str | None = None
        if starvation and advantage:
            positive = starvation.mean > 0
            ratio = Value(advantage.mean / starvation.mean, unit="×") if positive else "—"
        theirs = [block[dataset, column] for column in block.columns]
        cells = [Cell(value, their, note) for value, their in zip((starvation, advantage), theirs, strict=False)]
        rows.append((draft.name(dataset), [*cells, Cell(ratio, theirs[2] or "—", note)]))
    draft.table(
        "Starvation severity and CovJac's advantage, points",
        ("Soft-Mix - M-STE", "M-CovJac - M-STE", "ratio"),
        rows,
        best="none",
    )
    points = [(s.mean, a.mean) for s, a in gaps.values() if s is not None and a is not None]
    claimed = paper("app:interaction-demand")["all", "pearson"]
    typed = [(block[name, "starvation"], block[name, "advantage"]) for name in block.rows]
    theirs_r = pearson(*zip(*((s.mean, a.mean) for s, a in typed if s and a), strict=True))
    assert claimed is not None
    said = f"paper: {claimed.mean}, from its own table {theirs_r.r:.2f}"
    complete = len(points) == sum(map(draft.has, DATASETS))
    if len(points) < 3:
        part = Part(None, f"needs three data sets, there are runs of {len(points)} ({said})")
    else:
        try:
            found = pearson([s for s, _ in points], [a for _, a in points])
            text = f"r = {found.r:.2f} over {len(points)} data sets, p = {found.p:.2g} ({said})"
            part = _strong(found, text) if complete else Part(None, text)
        except ValueError:
            part = Part(None, f"all {len(points)} data sets have the same gap ({said})")
    statement = f"Starvation severity and CovJac's advantage correlate strongly (Pearson r = {claimed.mean})"
    draft.claim(statement, part, id="pearson")
    _growing(draft, gaps)
    draft.note("Both quantities subtract the same M-STE accuracy, which by itself makes them correlate.")


def _strong(found: "Correlation", text: str) -> Part:
    """r > 0.7: holds if r is also told from 0, fails if the 95 % interval of Fisher's z lies below, else no power."""
    if found.r > _STRONG and found.p < 0.05:
        return Part(True, text)
    width = 1.96 / math.sqrt(found.count - 3) if found.count > 3 else math.inf
    highest = math.tanh(math.atanh(min(found.r, 1 - 1e-12)) + width)
    if highest < _STRONG:
        return Part(False, text)
    return Part(None, f"{text}; with {found.count} points r up to {highest:.2f} is possible", why="inconclusive")


def show_figure(draft: Draft) -> None:
    """fig:interaction-scaling."""
    block, gaps = paper("tab:starvation-severity"), _gaps(draft)
    known = [(draft.name(name), value) for name, (_, value) in gaps.items() if value is not None]
    errors = tuple(value.error or 0.0 for _, value in known)
    typed = [(draft.name(name), block[name, "advantage"]) for name in DATASETS]
    draft.figure(
        "The gap from M-STE to M-CovJac, data sets by the paper's order of interaction demand",
        Panel(
            "CovJac - STE",
            "bars",
            "data set",
            "points of accuracy",
            (
                Series("ours", tuple(name for name, _ in known), tuple(value.mean for _, value in known), errors),
                Series("paper", tuple(n for n, v in typed if v), tuple(v.mean for _, v in typed if v)),
            ),
        ),
    )
    draft.table(
        "The gap from M-STE to M-CovJac, points",
        ("CovJac - STE",),
        [
            (
                draft.name(name),
                [Cell(gaps[name][1], block[name, "advantage"], "" if gaps[name][1] else NO_RUNS)],
            )
            for name in DATASETS
            if draft.has(name)
        ],
        best="none",
    )
    _growing(draft, gaps)


_SEEDS = (0, 1, 2)
EXPERIMENTS: tuple[Experiment, ...] = (
    experiment("tab:h7-cross-dataset", "Splice and MONK's-2", show_h7, small_seeds=_SEEDS),
    experiment("tab:starvation-severity", "Starvation severity against advantage", show_severity, small_seeds=_SEEDS),
    experiment("fig:interaction-scaling", "The gap grows with interaction demand", show_figure, small_seeds=_SEEDS),
)
