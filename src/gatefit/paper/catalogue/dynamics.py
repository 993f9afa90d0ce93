"""What happens inside while training (paper §5.4, app. gradnorm, app. entropy), from the runs' diagnostics.

ratio       ‖∂L/∂c_ab‖ / ‖∂L/∂c_0‖     over the network's gates
commitment  std(c_ab) over gates
survival    s_l, the part of the input gradient that does not cancel within layer l
entropy     H of a gate's distribution over the sixteen, in nats; at most log 16 = 2.77
"""

import math

from gatefit.experiments.record import RunRecord
from gatefit.paper.catalogue.draft import NO_RUNS, Draft, Part, above, experiment
from gatefit.paper.catalogue.judging_runs import JudgingRuns, judging_runs
from gatefit.paper.catalogue.measures import curve, diagnostic, mean_curve, over_steps, summarise
from gatefit.paper.outcome import Cell, Experiment, Panel, Series, Value
from gatefit.paper.scales import METHOD_NAMES
from gatefit.paper.values import paper, paper_number

COMPARED = ("soft-mix", "multilinear-ste", "multilinear-covjac")
DEEP = 12
_PROBE = (
    "Gradients are those of a fixed probe of minibatches at each evaluation; the paper averages over the training "
    "minibatches between two evaluations."
)


def _final(record: RunRecord, name: str, *path: str | int) -> float | None:
    value = diagnostic(record, name, *path)
    return float(value) if isinstance(value, int | float) else None


def _line(name: str, curves: list[list[tuple[int, float]]]) -> Series:
    x, y, error = mean_curve(curves)
    return Series(name, tuple(map(float, x)), tuple(y), tuple(error) if any(error) else None)


def show_commitment(draft: Draft) -> None:
    """fig:commitment."""
    block, main = paper("fig:commitment"), paper("tab:mnist-main")
    judges = judging_runs(draft, "cifar10", COMPARED)
    found = {m: judges.records(draft, m) for m in COMPARED}
    ratio = {m: summarise((_final(r, "gradient_norms", "ratio") for r in found[m]), "") for m in COMPARED}
    spread = {m: summarise((_final(r, "commitment", "std_c_ab") for r in found[m]), "") for m in COMPARED}
    rows = []
    for m in COMPARED:
        own = Cell(ratio[m], block[m, "ratio"], "" if ratio[m] else "no parameter c_ab" if m == "soft-mix" else NO_RUNS)
        std = Cell(spread[m], block[m, "std"], "" if spread[m] else NO_RUNS)
        theirs = main[m, judges.dataset] if not judges.where else None
        rows.append((METHOD_NAMES[m], [own, std, draft.cell(theirs, judges.dataset, m, **judges.changes)]))
    title = f"{judges.name(draft)}, L=6, at the end; the paper's of {draft.name('cifar10')}"
    draft.table(title, ("c_ab/c_0 gradient", "std(c_ab)", "accuracy, %"), rows)
    accuracy, ratios, spreads, paths = [], [], [], []
    for m in COMPARED:
        name = METHOD_NAMES[m]
        accuracy.append(_line(name, [curve(r) for r in found[m]]))
        ratios.append(_line(name, [over_steps(r, "gradient_norms", "ratio") for r in found[m]]))
        spreads.append(_line(name, [over_steps(r, "commitment", "std_c_ab") for r in found[m]]))
        at = dict(zip(accuracy[-1].x, accuracy[-1].y, strict=True))
        both = [(s, at[x]) for x, s in zip(spreads[-1].x, spreads[-1].y, strict=True) if x in at]
        paths.append(Series(name, tuple(s for s, _ in both), tuple(a for _, a in both)))
    draft.figure(
        f"{judges.name(draft)}, L=6: accuracy, gradient of c_ab, and commitment over training",
        Panel("(a) accuracy", "lines", "step", "accuracy, %", tuple(accuracy)),
        Panel("(b) gradient ratio", "lines", "step", "‖∂c_ab‖ / ‖∂c_0‖", tuple(ratios), y_scale="log"),
        Panel("(c) commitment", "lines", "step", "std(c_ab)", tuple(spreads), y_scale="log"),
        Panel("(d) commitment and accuracy", "lines", "std(c_ab)", "accuracy, %", tuple(paths), x_scale="log"),
    )
    ste, covjac = ratio["multilinear-ste"], ratio["multilinear-covjac"]
    absolute = summarise((_final(r, "gradient_norms", "l1_ratio") for r in found["multilinear-ste"]), "")
    _quarter(draft, ste, absolute, "at the end", judges.where)
    factor = None if ste is None or covjac is None or not ste.mean else covjac.mean / ste.mean
    typed = [paper_number("fig:commitment", m, "ratio") for m in ("multilinear-covjac", "multilinear-ste")]
    draft.claim(
        "CovJac feeds c_ab: its gradient ratio is at least ten times M-STE's",
        Part(
            None if factor is None else factor >= 10,
            NO_RUNS if factor is None or covjac is None or ste is None
            else f"M-CovJac {covjac.mean:.2f} (paper: {typed[0]}), M-STE {ste.mean:.3f} ({typed[1]}): "
            f"{factor:.1f} times (paper: {typed[0] / typed[1]:.0f})",
        ),
        id="ten-times",
        where=judges.where,
    )  # fmt: skip
    draft.claim(
        "M-STE commits most, CovJac less, Soft-Mix hardly",
        above(
            "std(c_ab)",
            ("M-STE", spread["multilinear-ste"]),
            ("M-CovJac", spread["multilinear-covjac"]),
            (block["multilinear-ste", "std"], block["multilinear-covjac", "std"]),
        ),
        above(
            "std(c_ab)",
            ("M-CovJac", spread["multilinear-covjac"]),
            ("Soft-Mix", spread["soft-mix"]),
            (block["multilinear-covjac", "std"], block["soft-mix", "std"]),
        ),
        id="commitment",
        where=judges.where,
    )
    accuracies = {m: draft.value(judges.dataset, m, **judges.changes) for m in COMPARED}
    draft.claim(
        "M-STE commits to worse gates than CovJac: it ends less accurate",
        above(
            "",
            ("M-CovJac", accuracies["multilinear-covjac"]),
            ("M-STE", accuracies["multilinear-ste"]),
            (main["multilinear-covjac", "cifar10"], main["multilinear-ste", "cifar10"]),
        ),
        id="worse-gates",
        where=judges.where,
    )
    draft.note(_PROBE)
    appendix = paper_number("app:gradnorm", "multilinear-covjac", "mean")
    draft.note(f"The paper gives CovJac's gradient ratio as {typed[0]} in its text and as {appendix} in its appendix.")


def _quarter(draft: Draft, value: Value | None, absolute: Value | None, when: str, where: str) -> None:
    typed = paper_number("fig:commitment", "multilinear-ste", "ratio")
    text = NO_RUNS if value is None else f"{value.mean:.3f} {when} (paper: {typed}, theory: 0.25)"
    if absolute is not None:
        text += f"; by absolute values instead of squares {absolute.mean:.3f}"
    draft.claim(
        "M-STE's gradient ratio of c_ab to c_0 is near E[ab] = 1/4",
        Part(None if value is None else 0.15 <= value.mean <= 0.35, text),
        id="quarter",
        where=where,
    )
    draft.claim(
        "By absolute values, for which E[ab] is exact, M-STE's ratio is near 1/4",
        Part(
            None if absolute is None else 0.15 <= absolute.mean <= 0.35,
            NO_RUNS if absolute is None else f"{absolute.mean:.3f} {when}",
        ),
        id="quarter-l1",
        where=where,
    )


def show_gradients(draft: Draft) -> None:
    """app:gradnorm."""
    block, rows, panels = paper("app:gradnorm"), [], []
    series: dict[tuple[str, str], list[float]] = {}
    absolutes: dict[tuple[str, str], Value | None] = {}
    judges = judging_runs(draft, "cifar10", COMPARED[1:])
    narrow = [judges] if judges.where else []
    for each in (JudgingRuns("cifar10"), JudgingRuns("mnist"), *narrow):
        lines, dataset = [], each.where or each.dataset
        for m in COMPARED[1:]:
            found = each.records(draft, m)
            line = _line(METHOD_NAMES[m], [over_steps(r, "gradient_norms", "ratio") for r in found])
            values = series[dataset, m] = [y for x, y in zip(line.x, line.y, strict=True) if float(x) > 0]
            absolute = [y for r in found for x, y in over_steps(r, "gradient_norms", "l1_ratio") if x > 0]
            lines.append(line)
            own = (min(values), max(values), math.fsum(values) / len(values)) if values else (None,) * 3
            cells = [
                Cell(None if v is None else Value(v, unit=""), block[m, c], "" if values else NO_RUNS)
                for v, c in zip(own, block.columns, strict=True)
            ]
            l1 = absolutes[dataset, m] = summarise(absolute, "")
            cells.append(Cell(l1, block[m, "mean"], "" if l1 else NO_RUNS))
            rows.append((f"{METHOD_NAMES[m]}, {each.name(draft)}", cells))
        panels.append(Panel(each.name(draft), "lines", "step", "‖∂c_ab‖ / ‖∂c_0‖", tuple(lines), y_scale="log"))
    draft.table(
        "Gradient of c_ab over that of c_0, over the evaluations of a run",
        ("lowest", "highest", "mean", "mean of the ratio of L1 norms"),
        rows,
        digits=3,
        best="none",
    )
    early = paper("app:gradnorm/covjac")["ratio", "first"]
    starts = {d: series[d, "multilinear-covjac"][:1] for d in ("cifar10", "mnist")}
    cells = [Cell(Value(s[0], unit="") if s else None, early, "" if s else NO_RUNS) for s in starts.values()]
    first = [("M-CovJac", cells)]
    draft.table("The ratio at the first evaluation", [draft.name(d) for d in starts], first, digits=3, best="none")
    draft.figure("Gradient ratio over training", *panels)
    chosen = judges.where or judges.dataset
    ste, covjac = series[chosen, "multilinear-ste"], series[chosen, "multilinear-covjac"]
    mean = Value(math.fsum(ste) / len(ste), unit="") if ste else None
    average = f"on average on {judges.name(draft)}" if len(ste) > 1 else "at the end"
    _quarter(draft, mean, absolutes[chosen, "multilinear-ste"], average, judges.where)
    typed = paper_number("app:gradnorm", "multilinear-covjac", "mean")
    text = NO_RUNS
    if covjac:
        text = f"{covjac[0]:.2f} at the first evaluation, {covjac[-1]:.2f} at the last (paper: {typed})"
    draft.claim(
        "CovJac's gradient ratio grows during training, from about 1 to several times that",
        Part(covjac[-1] > 2 * covjac[0] if len(covjac) > 1 else None, text),
        id="grows",
        where=judges.where,
    )
    draft.claim(
        "CovJac's gradient ratio is above M-STE's throughout training",
        Part(
            all(a > b for a, b in zip(covjac, ste, strict=False)) if min(len(covjac), len(ste)) > 1 else None,
            f"lowest of CovJac {min(covjac):.2f}, highest of M-STE {max(ste):.2f}" if covjac and ste else NO_RUNS,
        ),
        id="above-throughout",
        where=judges.where,
    )
    draft.note(_PROBE)
    draft.note("The paper names the L2 norm; where signs of δ vary its ratio tends to √E[ab] = 1/2, that of L1 to 1/4.")


def show_cancellation(draft: Draft) -> None:
    """fig:cancellation."""
    block, lines, rows, mean = paper("fig:cancellation"), [], [], {}
    for m in COMPARED:
        found = draft.records("mnist", m, depth=DEEP)
        layers = [diagnostic(r, "survival", "by_layer", step=0) for r in found]
        profile = [summarise((run[i] for run in layers if run), "") for i in range(DEEP)] if any(layers) else []
        known = [(i + 1, value) for i, value in enumerate(profile) if value is not None]
        lines.append(Series(METHOD_NAMES[m], tuple(float(i) for i, _ in known), tuple(v.mean for _, v in known)))
        mean[m] = summarise((math.fsum(run) / len(run) for run in layers if run and None not in run), "")
        rows.append((METHOD_NAMES[m], [Cell(mean[m], block[m, "survival"], "" if mean[m] else NO_RUNS)]))
    draft.table(
        f"Signal survival at initialisation, {draft.name('mnist')}, L={DEEP}, mean over layers",
        ("s",),
        rows,
        digits=3,
        best="none",
    )
    draft.figure(
        "The part of the input gradient that does not cancel, layer by layer, before training",
        Panel(f"{draft.name('mnist')}, L={DEEP}", "lines", "layer", "survival s", tuple(lines)),
    )
    for m, low, high in (("soft-mix", 0.2, 0.4), ("multilinear-ste", 1.0, 1.0), ("multilinear-covjac", 0.95, 1.0)):
        value, theirs = mean[m], block[m, "survival"]
        assert theirs is not None
        text = NO_RUNS if value is None else f"{value.mean:.3f} (paper: {theirs.mean})"
        claim = {
            "soft-mix": "Soft-Mix cancels about 70 % of the gradient in every layer at initialisation",
            "multilinear-ste": "M-STE cancels none of it",
            "multilinear-covjac": "M-CovJac cancels next to none of it (at most 5 %)",
        }[m]
        part = Part(None if value is None else low <= value.mean <= high, text)
        # A committed gate's signal is the maximum that it is measured by.
        draft.claim(claim, part, id=f"survival-{m}", definition=m == "multilinear-ste")
    draft.claim(
        "M-CovJac keeps far more of the gradient than Soft-Mix at initialisation",
        above(
            "",
            ("M-CovJac", mean["multilinear-covjac"]),
            ("Soft-Mix", mean["soft-mix"]),
            (block["multilinear-covjac", "survival"], block["soft-mix", "survival"]),
            by=0.2,
        ),
        id="covjac-above-soft-mix",
    )
    draft.note(
        "s_l = Σ|∂z/∂h| / Σ_j π_j Σ|∂g_j/∂h|, which is 1 where nothing cancels, and for a gate that is one of the "
        "sixteen by definition. The paper does not define the maximum that it divides by."
    )


def show_entropy(draft: Draft) -> None:
    """app:entropy."""
    panels, rows = [], []
    layers: dict[int, list[list[tuple[int, float]]]] = {}
    for depth in (6, DEEP):
        found = draft.records("mnist", "soft-mix", depth=depth)
        layers[depth] = [over_steps(found[0], "entropy", "by_layer", i) for i in range(depth)] if found else []
        lines = [_line(f"layer {i + 1}", [line]) for i, line in enumerate(layers[depth])]
        panels.append(Panel(f"Soft-Mix, L={depth}", "lines", "step", "entropy, nats", tuple(lines)))
        for i in (0, depth - 1):
            ends = layers[depth][i] if layers[depth] and layers[depth][i] else []
            note = "" if ends else NO_RUNS
            cells = [Cell(Value(ends[k][1], unit="") if ends else None, None, note) for k in (0, -1)]
            rows.append((f"L={depth}, layer {i + 1} ({'inputs' if i == 0 else 'outputs'})", cells))
    draft.table(
        f"Gate entropy of Soft-Mix on {draft.name('mnist')}, nats", ("before", "after"), rows, digits=3, best="none"
    )
    draft.figure("Gate entropy of Soft-Mix by layer", *panels)
    every = []
    for m in (*COMPARED, "gumbel-st"):
        means = []
        for depth in (6, DEEP):
            records = draft.records("mnist", m, depth=depth)
            for step in (0, None):
                mean = summarise((diagnostic(r, "entropy", "mean", step=step) for r in records), "")
                means.append(Cell(mean, None, "" if mean else NO_RUNS))
        every.append((METHOD_NAMES[m], means))
    columns = [f"L={depth}, {when}" for depth in (6, DEEP) for when in ("before", "after")]
    title = f"Mean gate entropy of every method on {draft.name('mnist')}, nats"
    draft.table(title, columns, every, digits=3, best="none")
    drops = {d: [line[0][1] - line[-1][1] for line in lines if line] for d, lines in layers.items()}
    shallow, deep = drops[6], drops[DEEP]
    early = [line[0][1] - line[1][1] for line in layers[6] if len(line) > 1]
    draft.claim(
        "Soft-Mix at L=6 settles from the outputs to the inputs: entropy falls first in the last layer",
        Part(
            early[-1] > early[0] if len(early) == 6 else None,
            f"until the first evaluation by {early[-1]:.3f} in the last layer, {early[0]:.3f} in the first"
            if len(early) == 6 else NO_RUNS,
        ),
        id="outputs-first",
    )  # fmt: skip
    ready = len(shallow) == 6 and len(deep) == DEEP
    draft.claim(
        "Soft-Mix at L=12 does not reach its first layers: they keep their entropy",
        Part(
            deep[0] < 0.05 * layers[DEEP][0][0][1] if ready else None,
            f"the first layer loses {deep[0]:.3f} nats at L=12, {shallow[0]:.3f} at L=6" if ready else NO_RUNS,
        ),
        id="first-layers-keep",
    )
    start = layers[DEEP][0][0][1] if ready else None
    draft.claim(
        "Those layers stay near the maximum of log 16 = 2.77 nats",
        Part(
            None if start is None else start > 0.95 * math.log(16),
            NO_RUNS if start is None else f"they begin at {start:.2f}: logits from N(0, 1) are not uniform",
        ),
        id="near-maximum",
    )


EXPERIMENTS: tuple[Experiment, ...] = (
    experiment("fig:commitment", "Commitment on CIFAR-10", show_commitment, small_seeds=(0, 1)),
    experiment("fig:cancellation", "Signal survival before training", show_cancellation),
    experiment("app:gradnorm", "Gradients of the coefficients", show_gradients),
    experiment("app:entropy", "Gate entropy by layer", show_entropy),
)
