"""What the settings that the paper leaves open do: temperatures of the class scores, wirings and splits."""

import math
import statistics
from typing import Any, Final

from gatefit.experiments.record import RunRecord
from gatefit.paper.catalogue.draft import NO_RUNS, Draft, Part, best_of, experiment, paper_row
from gatefit.paper.catalogue.extra import LITERAL_GUMBEL, MONKS_METHODS
from gatefit.paper.catalogue.measures import (
    best_accuracy,
    best_whole_batch_accuracy,
    last_accuracy,
    repetition,
    whole_batch_accuracy,
)
from gatefit.paper.catalogue.standard_errors import difference
from gatefit.paper.outcome import Cell, Experiment, Value
from gatefit.paper.scales import CLASS_SCORES, MAIN_METHODS, METHOD_NAMES
from gatefit.paper.values import paper

OPEN: Final = ("adult", "splice", "monks-2")
"""The data sets that finished runs have with the rule of thumb's class scores too."""


def show_rule(draft: Draft) -> None:
    """The runs with the rule of thumb's class scores, beside those of the tables."""
    block, columns, parts = paper("tab:mnist-main"), [], []
    rows: dict[str, list[Cell]] = {METHOD_NAMES[m]: [] for m in MAIN_METHODS}
    gaps: list[Cell] = []
    for name in OPEN:
        columns += [f"{draft.name(name)}, rule", f"{draft.name(name)}, as in the tables"]
        theirs = paper_row(block, MAIN_METHODS, name)
        typed = difference(theirs["M-CovJac"], theirs["M-STE"])
        found = []
        for place in (draft.rule_configs, draft.configs):
            cells = {METHOD_NAMES[m]: draft.cell_of(place(name, m), block[m, name]) for m in MAIN_METHODS}
            for method, cell in cells.items():
                rows[method].append(cell)
            found.append(difference(cells["M-CovJac"].value, cells["M-STE"].value))
            gaps.append(Cell(found[-1], typed, "" if found[-1] else NO_RUNS))
        parts.append(_nearer(draft.name(name), found, typed))
    rows["M-CovJac less M-STE"] = gaps
    draft.table(f"{draft.measure.capitalize()}, %, by the temperature of the class scores", columns, rows.items())
    others: dict[str, tuple[str, dict[str, Any]]] = {
        **{METHOD_NAMES[m]: (m, {}) for m in MONKS_METHODS if m not in MAIN_METHODS},
        "Gumbel-ST, noise in both passes": ("gumbel-st", LITERAL_GUMBEL),
    }
    monks = [
        (name, [draft.cell_of(draft.rule_configs("monks-2", m, **changes), None)])
        for name, (m, changes) in others.items()
    ]
    adult = draft.cell_of(draft.rule_configs("adult", "iwp-ste")[:1], None)
    table = f"Other methods with the rule of thumb: {draft.measure}, %"
    first = [(f"{name}, {draft.name('monks-2')}", cells) for name, cells in monks]
    draft.table(table, ("accuracy",), [*first, (f"IWP-STE, {draft.name('adult')}", [adult])], best="none")
    draft.claim(
        "M-CovJac less M-STE is nearer to the paper's with the temperatures of the tables (not a claim of the paper)",
        *parts,
    )
    draft.note("The rule of thumb: T = 0.36 √(gates a class), on one wiring and one split, with batches of 512.")


def _nearer(name: str, found: list[Value | None], typed: Value | None) -> Part:
    rule, chosen = found
    if rule is None or chosen is None or typed is None:
        return Part(None, f"{name}: {NO_RUNS}")
    text = f"{name}: {rule.mean:+.2f} by the rule, {chosen.mean:+.2f} in the tables (paper: {typed.mean:+.2f})"
    return Part(abs(chosen.mean - typed.mean) <= abs(rule.mean - typed.mean), text)


def paired(high: list[RunRecord], low: list[RunRecord]) -> Value | None:
    """The mean difference of two methods over the repetitions that both have, with its standard deviation."""
    other = {repetition(record): last_accuracy(record) for record in low}
    both = ((last_accuracy(record), other.get(repetition(record))) for record in high)
    found = [a - b for a, b in both if a is not None and b is not None]
    if not found:
        return None
    return Value(math.fsum(found) / len(found), statistics.stdev(found) if len(found) > 1 else None, len(found), "pp")


def show_evaluation(draft: Draft) -> None:
    """MONK's-2 evaluated on all test samples, and on whole batches with the population's deviation."""
    last, best = paper("tab:mnist-main"), paper("tab:best-acc")
    dataset, rows, parts = "monks-2", [], []
    for m in MAIN_METHODS:
        configs = draft.configs(dataset, m)
        ours, whole = last_accuracy, whole_batch_accuracy
        tops = best_accuracy, best_whole_batch_accuracy
        cells = [
            draft.cell_of(configs, last[m, dataset], ours),
            draft.cell_of(configs, last[m, dataset], whole, population=True),
            draft.cell_of(configs, best[m, dataset], tops[0]),
            draft.cell_of(configs, best[m, dataset], tops[1], population=True),
        ]
        rows.append((METHOD_NAMES[m], cells))
        parts.append(_closer(METHOD_NAMES[m], cells[0], cells[1]))
    columns = (
        draft.measure,
        f"{draft.measure}, whole batches",
        "best checkpoint",
        "best checkpoint, whole batches",
    )
    draft.table(f"{draft.name(dataset)}: accuracy, %", columns, rows)
    draft.claim("On whole batches every method is nearer to the paper (not a claim of the paper)", *parts)
    draft.note(
        "Whole batches: the first 384 of the 432 test samples, as a loader has them that drops its last batch of 128; "
        "± is then the population's standard deviation. The paper's best checkpoints are fractions of 384, with such a "
        "±. Splice is not evaluated so: its test samples lie in the order of their classes."
    )


def _closer(name: str, ours: Cell, whole: Cell) -> Part:
    if ours.difference is None or whole.difference is None:
        return Part(None, f"{name}: {ours.note or whole.note or NO_RUNS}")
    text = f"{name}: {ours.difference:+.2f} from the paper on all, {whole.difference:+.2f} on whole batches"
    return Part(abs(whole.difference) < abs(ours.difference), text)


def show_splits(draft: Draft) -> None:
    """Splice over five splits, for both temperatures."""
    block, columns = paper("tab:mnist-main"), []
    theirs = paper_row(block, MAIN_METHODS, "splice")
    rows: dict[str, list[Cell]] = {METHOD_NAMES[m]: [] for m in MAIN_METHODS}
    gaps = []
    for temperature in CLASS_SCORES["splice"].temperatures:
        columns.append(f"T = {temperature:g}")
        configs = {m: draft.configs("splice", m, readout_temperature=temperature) for m in MAIN_METHODS}
        values = {}
        for m in MAIN_METHODS:
            cell = draft.cell_of(configs[m], block[m, "splice"])
            rows[METHOD_NAMES[m]].append(cell)
            values[METHOD_NAMES[m]] = cell.value
        gap = paired(draft.get(configs["multilinear-covjac"]), draft.get(configs["multilinear-ste"]))
        typed = difference(theirs["M-CovJac"], theirs["M-STE"])
        gaps.append(Cell(gap, typed, "" if gap else NO_RUNS))
        draft.claim(
            f"M-CovJac is the best method on Splice with T = {temperature:g}", best_of("", values, paper=theirs)
        )
    rows["M-CovJac less M-STE, split by split"] = gaps
    draft.table(f"{draft.name('splice')}: {draft.measure}, %, ± over splits", columns, rows.items())


EXPERIMENTS: tuple[Experiment, ...] = (
    experiment("extra:rule-of-thumb", "Class scores by the rule of thumb", show_rule, small_seeds=(0, 1, 2)),
    experiment("extra:whole-batches", "MONK's-2 on whole batches", show_evaluation, small_seeds=(0, 1, 2)),
    experiment("extra:splice-splits", "Splice over five splits", show_splits),
)
