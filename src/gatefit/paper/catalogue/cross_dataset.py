"""The seven data sets (paper §5.1): last-10 and best-checkpoint accuracy, discretisation gap, significance."""

import itertools
from collections.abc import Sequence
from dataclasses import replace

from gatefit.experiments.record import RunRecord
from gatefit.paper.catalogue import remarks
from gatefit.paper.catalogue.draft import NO_RUNS, Draft, Part, above, best_of, experiment, paper_row
from gatefit.paper.catalogue.judging_runs import JudgingRuns, judging_runs
from gatefit.paper.catalogue.measures import (
    Metric,
    best_accuracy,
    discretisation_gap,
    generalisation_gap,
    last_accuracy,
    repetition,
)
from gatefit.paper.catalogue.remarks import number
from gatefit.paper.catalogue.standard_errors import error_of, exceeds
from gatefit.paper.outcome import Cell, Experiment, Value
from gatefit.paper.scales import DATASET_NAMES, DATASETS, MAIN_METHODS, METHOD_NAMES
from gatefit.paper.values import paper, paper_number

COLUMNS = ("adult", "splice", "monks-2", "mnist", "svhn", "cifar10", "cifar100")
"""In the order of the paper's table."""


def accuracy_table(draft: Draft, label: str, caption: str, metric: Metric) -> dict[str, dict[str, Value | None]]:
    """Methods by data sets, ours beside the paper's; returns our values by data set."""
    block = paper(label)
    draft.table(
        caption,
        [draft.name(dataset) for dataset in COLUMNS],
        [
            (METHOD_NAMES[m], [draft.cell(block[m, dataset], dataset, m, metric) for dataset in COLUMNS])
            for m in MAIN_METHODS
        ],
    )
    return {dataset: draft.methods(dataset, MAIN_METHODS, metric) for dataset in COLUMNS}


def best_parts(draft: Draft, label: str, values: dict[str, dict[str, Value | None]]) -> dict[str, Part]:
    """Whether CovJac is best, data set by data set."""
    block = paper(label)
    return {
        dataset: best_of(draft.name(dataset), values[dataset], paper=paper_row(block, MAIN_METHODS, dataset))
        if draft.has(dataset)
        else draft.absent(dataset)
        for dataset in DATASETS
    }


def show_main(draft: Draft) -> None:
    """tab:mnist-main."""
    label = "tab:mnist-main"
    values = accuracy_table(draft, label, f"{draft.measure.capitalize()}, %, by method and data set", last_accuracy)
    parts = best_parts(draft, label, values)
    draft.claim("M-CovJac is the best method on every data set", *parts.values(), id="best-everywhere")
    for dataset, part in parts.items():
        draft.claim(f"M-CovJac is the best method on {draft.name(dataset)}", part, id=f"best-on-{dataset}")
    draft.claim(
        "M-CovJac matches or exceeds Soft-Mix (to 0.1 points) on every data set with a quarter of the parameters",
        *(_pair(draft, label, values, dataset, "M-CovJac", "Soft-Mix", by=-0.1, ties=True) for dataset in DATASETS),
        id="matches-soft-mix",
    )
    draft.claim(
        "On the most interaction-dense images M-STE is worse than Soft-Mix",
        *(_pair(draft, label, values, dataset, "Soft-Mix", "M-STE") for dataset in ("cifar10", "cifar100")),
        id="ste-below-soft-mix",
    )


def _pair(
    draft: Draft,
    label: str,
    values: dict[str, dict[str, Value | None]],
    dataset: str,
    high: str,
    low: str,
    by: float = 0.0,
    ties: bool = False,
) -> Part:
    if not draft.has(dataset):
        return draft.absent(dataset)
    theirs = paper_row(paper(label), MAIN_METHODS, dataset)
    mine = values[dataset]
    pair = (high, mine[high]), (low, mine[low])
    return above(draft.name(dataset), *pair, (theirs[high], theirs[low]), by=by, ties=ties)


def show_best(draft: Draft) -> None:
    """tab:best-acc."""
    label = "tab:best-acc"
    values = accuracy_table(draft, label, "Best-checkpoint accuracy, %, by method and data set", best_accuracy)
    best = best_parts(draft, label, values).values()
    draft.claim("M-CovJac has the best checkpoint on every data set", *best, id="best-everywhere")
    parts = []
    for dataset in DATASETS:
        if not draft.has(dataset):
            parts.append(draft.absent(dataset))
            continue
        parts.append(_same_ranking(draft.name(dataset), draft.methods(dataset, MAIN_METHODS), values[dataset]))
    draft.claim("The methods rank the same by last-10 and by best checkpoint on every data set", *parts, id="ranking")
    draft.note(
        "The paper says both that the rankings are identical on all data sets (best-checkpoint paragraph) and that "
        "Splice reverses M-STE and M-CovJac (training protocol); its own table has M-STE ahead on Splice."
    )
    draft.note("A best checkpoint is chosen on the test set, here as in the paper: it is an optimistic figure.")


def _same_ranking(where: str, last: dict[str, Value | None], best: dict[str, Value | None]) -> Part:
    """The same order by both; two orders differ where two methods are apart in both, the other way round."""
    ours = [{name: value for name, value in values.items() if value is not None} for values in (last, best)]
    if any(len(values) < len(last) for values in ours):
        return Part(None, f"{where}: {NO_RUNS}")
    orders = [sorted(values, key=lambda name: -values[name].mean) for values in ours]
    words = [" > ".join(order) for order in orders]
    if orders[0] == orders[1]:
        return Part(True, f"{where}: {words[0]}")
    swapped = [
        (high, low)
        for high, low in itertools.combinations(orders[0], 2)
        if all(
            (error := error_of(values[high], values[low])) is not None
            and exceeds(sign * (values[high].mean - values[low].mean), error)[0]
            for sign, values in zip((1, -1), ours, strict=True)
        )
    ]
    said = f"{where}: {words[0]} by last-10, {words[1]} by best checkpoint"
    return Part(False, said) if swapped else Part(None, f"{said}, within the error", why="level")


def show_gaps(draft: Draft) -> None:
    """app:gap-decomp."""
    for caption, metric in (
        ("Discretisation gap on the test set, points: soft less deployed", discretisation_gap),
        ("Generalisation gap of the deployed circuit, points: train less test", generalisation_gap),
    ):
        rows = [
            (METHOD_NAMES[m], [draft.cell(None, dataset, m, metric, "pp") for dataset in COLUMNS]) for m in MAIN_METHODS
        ]
        draft.table(caption, [draft.name(dataset) for dataset in COLUMNS], rows, digits=3, best="none")
    zero, small, where = [], [], []
    for dataset in DATASETS:
        if not draft.has(dataset):
            zero.append(draft.absent(dataset))
            small.append(draft.absent(dataset))
            continue
        # Gates commit slowly: MNIST is read from the longest runs.
        runs = judging_runs(draft, dataset, ("multilinear-ste", "multilinear-covjac")) if dataset == "mnist" else None
        runs = runs or JudgingRuns(dataset)
        where += [f"MNIST by {runs.where}"] if runs.where else []
        zero.append(_no_gap(runs.name(draft), runs.records(draft, "multilinear-ste")))
        covjac = draft.value(runs.dataset, "multilinear-covjac", discretisation_gap, "pp", **runs.changes)
        small.append(_bound(runs.name(draft), covjac, 1.0 if dataset == "monks-2" else 0.2))
    decided = [tuple(replace(part, counts=part.holds is not None) for part in parts) for parts in (zero, small)]
    draft.claim("The discretisation gap of M-STE is exactly zero", *decided[0], id="ste-zero")
    text = "The discretisation gap of M-CovJac is at most 0.2 points, and at most 1 on MONK's-2"
    draft.claim(text, *decided[1], id="covjac-small")
    if where:
        draft.note(f"{remarks.listed(where)}: the paper's own width has no finished run.")
    draft.note("The paper gives bounds here and, for CIFAR-10, a table of its own (tab:cifar-full).")


def _no_gap(name: str, records: Sequence[RunRecord]) -> Part:
    """No evaluation of any run, on either set, differs."""
    if not records:
        return Part(None, f"{name}: {NO_RUNS}")
    sets = ("test_discretisation_gap", "train_discretisation_gap")
    gaps = [max(abs(row[each] or 0.0) for each in sets) for record in records for row in record.metrics]
    apart = sum(gap > 0 for gap in gaps)
    most = f", by at most {100 * max(gaps):.3f} points" if apart else ""
    return Part(not apart, f"{name}: {apart} of {len(gaps):,} evaluations differ{most}")


def _bound(name: str, value: Value | None, bound: float) -> Part:
    if value is None:
        return Part(None, f"{name}: no finished run yet")
    return Part(abs(value.mean) <= bound, f"{name}: {value.mean:+.3f} points (bound {bound:g})")


def show_significance(draft: Draft) -> None:
    """app:significance."""
    from gatefit.paper.statistics import paired_t_test, sign_test

    block = paper("app:significance")
    rows, wins, significant = [], {}, {}
    for dataset in DATASETS:
        values = draft.methods(dataset, MAIN_METHODS)
        wins[dataset] = best_of(draft.name(dataset), values)
        pairs = _paired(draft, dataset)
        theirs = (block[dataset, "t"], block[dataset, "p"])
        if len(pairs) < 2:
            reason = "needs two seeds of both methods" if draft.has(dataset) else "data set not part of this scale"
            rows.append((draft.name(dataset), [Cell(None, each, reason) for each in (None, *theirs)]))
            significant[dataset] = Part(None, f"{draft.name(dataset)}: {reason}", counts=draft.has(dataset))
            continue
        gap = Value(sum(high - low for high, low in pairs) / len(pairs), None, len(pairs), "pp")
        try:
            test = paired_t_test([high for high, _ in pairs], [low for _, low in pairs])
        except ValueError:
            reason = "every seed has the same difference: no t"
            rows.append((draft.name(dataset), [Cell(gap), *(Cell(None, each, reason) for each in theirs)]))
            significant[dataset] = Part(None, f"{draft.name(dataset)}: {reason}")
            continue
        cells = [Cell(gap), Cell(Value(test.t, unit=""), theirs[0]), Cell(Value(test.p, unit=""), theirs[1])]
        rows.append((draft.name(dataset), cells))
        said = f" (paper: {number(theirs[1], 3)})" if theirs[1] is not None else ""
        text = f"{draft.name(dataset)}: {gap.mean:+.2f} points over {len(pairs)} pairs, p = {test.p:.2g}{said}"
        # Two or three seeds seldom have the power to say no.
        apart = test.p < 0.05
        significant[dataset] = Part(gap.mean > 0 if apart else None, text, why="" if apart else "inconclusive")
    draft.table(
        "M-CovJac against M-STE, paired over repetitions", ("CovJac - STE", "t", "p"), rows, digits=3, best="none"
    )
    for dataset, more in (("cifar10", ""), ("monks-2", " with more seeds")):
        text = f"M-CovJac beats M-STE significantly (p < 0.05) on {DATASET_NAMES[dataset]}{more}"
        draft.claim(text, significant[dataset], id=dataset)
    known = [part for dataset, part in wins.items() if draft.has(dataset) and part.holds is not None]
    level = [dataset for dataset, part in wins.items() if part.why == "level"]
    won = sum(part.holds is True for part in known)
    p = sign_test(won, len(known) - won).one_sided if known else None
    every = len(DATASETS)
    text = f"best on {won} of {len(known)} data sets, p = {p:.3g}" if p else NO_RUNS
    text += f", level on {len(level)}" if level else ""
    text += f" (paper: {every} of {every}, p = {sign_test(every, 0).one_sided:.2g})"
    complete = len(known) + len(level) == sum(map(draft.has, DATASETS))
    able = 0.5 ** len(known) < 0.01  # With fewer data sets nothing could, whoever wins.
    decided = complete and p is not None and (able or won < len(known))
    part = Part(p < 0.01 if decided and p is not None else None, text, why="inconclusive" if complete else "")
    draft.claim("A sign test over the data sets gives p < 0.01", part, id="sign-test")
    draft.note(
        "The sign test's p is that of a fair coin, one-sided, as in the paper; ties are left out. With five data sets "
        "it cannot fall below 2⁻⁵ = 0.031. The best of four methods wins by chance one time in four, not one in two."
    )
    three = paper_number("app:significance", "monks-2", "p")
    draft.note(
        "With two or three seeds a paired t-test has one or two degrees of freedom. The paper says that MONK's-2 does "
        f"not reach p < 0.05 with its three seeds ({three}); with more it can be asked again."
    )


def _paired(draft: Draft, dataset: str) -> list[tuple[float, float]]:
    """(CovJac, M-STE) of every repetition that has both."""
    both = []
    for method in ("multilinear-covjac", "multilinear-ste"):
        found = draft.records(dataset, method)
        both.append({repetition(record): last_accuracy(record) for record in found})
    pairs = ((both[0][each], both[1][each]) for each in sorted(set(both[0]) & set(both[1])))
    return [(high, low) for high, low in pairs if high is not None and low is not None]


_SEEDS = (0, 1, 2)
EXPERIMENTS: tuple[Experiment, ...] = (
    experiment("tab:mnist-main", "Four methods on seven data sets", show_main, small_seeds=_SEEDS),
    experiment("tab:best-acc", "Best-checkpoint accuracy on seven data sets", show_best, small_seeds=_SEEDS),
    experiment("app:gap-decomp", "Discretisation and generalisation gaps", show_gaps, small_seeds=_SEEDS),
    experiment("app:significance", "Significance of CovJac's advantage", show_significance, small_seeds=_SEEDS),
)
