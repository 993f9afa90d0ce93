"""Width (paper §5.3, app. width-scaling): A(k) = 100 - B k^-α on MNIST, and equal budgets of parameters."""

import itertools

from gatefit.paper.catalogue.draft import NO_RUNS, Draft, Part, above, best_of, experiment
from gatefit.paper.outcome import Cell, Experiment, Panel, Series, Value
from gatefit.paper.scales import MAIN_METHODS, METHOD_NAMES, WIDTHS, width_name
from gatefit.paper.values import paper, paper_number

LAYERS = (1, 3, 6)
_PREDICTED = 4
"""The paper predicts the error at four times its largest width."""


def _row_name(draft: Draft, width: int, theirs: int) -> str:
    own = f"k={width_name(width)}"
    return own if width == theirs else f"{own} (paper: {width_name(theirs)})"


def show_widths(draft: Draft) -> None:
    """tab:width-scaling."""
    block, widths, v = paper("tab:width-scaling"), WIDTHS[draft.scale], {}
    for depth in LAYERS:
        rows = []
        for width, theirs in zip(widths, WIDTHS["paper"], strict=True):
            place = f"{depth}/{theirs}"
            cells = [draft.cell(block[place, m], "mnist", m, depth=depth, width=width) for m in MAIN_METHODS]
            v[depth, width] = draft.methods("mnist", MAIN_METHODS, depth=depth, width=width)
            rows.append((_row_name(draft, width, theirs), cells))
        columns = [METHOD_NAMES[m] for m in MAIN_METHODS]
        draft.table(f"{draft.name('mnist')}, L={depth}: {draft.measure}, %", columns, rows, best="rows")
    first, last = widths[0], widths[-1]
    typed = {w: {METHOD_NAMES[m]: block[f"1/{w}", m] for m in MAIN_METHODS} for w in WIDTHS["paper"]}
    ours = [_gap(v[1, width]) for width in widths]
    paper_gaps = [_gap(typed[width]) for width in WIDTHS["paper"]]
    text = ", ".join(
        f"{width_name(w)}: {'no runs' if g is None else format(g, '+.2f')} ({p:+.2f})"
        for w, g, p in zip(widths, ours, paper_gaps, strict=True)
    )
    known = [gap for gap in ours if gap is not None]
    grows = None if len(known) < len(widths) else all(a < b for a, b in itertools.pairwise(known))
    draft.claim(
        "At L=1 the gap from Soft-Mix to M-CovJac widens with every doubling of the width",
        Part(grows, f"CovJac less Soft-Mix, paper's in brackets: {text}"),
        id="gap-widens",
    )
    ends = ((last, WIDTHS["paper"][-1], "M-CovJac", "Soft-Mix"), (first, WIDTHS["paper"][0], "Soft-Mix", "M-CovJac"))
    for (width, theirs, high, low), where in zip(ends, ("largest", "smallest"), strict=True):
        mine, row = v[1, width], typed[theirs]
        draft.claim(
            f"At L=1 {high} is ahead of {low} at the {where} width",
            above(f"k={width_name(width)}", (high, mine[high]), (low, mine[low]), (row[high], row[low])),
            id=f"ahead-at-{where}",
        )
    for depth in LAYERS[1:]:
        parts = []
        for width, theirs in zip(widths, WIDTHS["paper"], strict=True):
            row = {METHOD_NAMES[m]: block[f"{depth}/{theirs}", m] for m in MAIN_METHODS}
            parts.append(best_of(f"k={width_name(width)}", v[depth, width], paper=row))
        draft.claim(f"M-CovJac is the best method at every width at L={depth}", *parts, id=f"best-everywhere-{depth}")
        text = f"M-CovJac is the best method at the smallest width at L={depth}"
        draft.claim(text, parts[0], id=f"best-at-smallest-{depth}")
    twice = {
        METHOD_NAMES[m]: (paper_number("tab:width-scaling", "6/64000", m), paper_number("tab:mnist-main", m, "mnist"))
        for m in MAIN_METHODS
        if m != "gumbel-st"
    }
    both = ", ".join(f"{name} {here:.2f} and {there:.2f}" for name, (here, there) in twice.items())
    draft.note(
        "The paper's own table has Soft-Mix ahead of M-CovJac at L=6, k=16k, and its figures for k=64k, L=6 differ "
        f"from those of tab:mnist-main ({both})."
    )


def _gap(values: dict[str, Value | None]) -> float | None:
    high, low = values["M-CovJac"], values["Soft-Mix"]
    return None if high is None or low is None else high.mean - low.mean


def show_exponents(draft: Draft) -> None:
    """tab:scaling-exponents."""
    from gatefit.paper.statistics import power_law

    block, widths = paper("tab:scaling-exponents"), WIDTHS[draft.scale]
    beyond = _PREDICTED * widths[-1]
    rows, fits, series = [], {}, []
    for m in MAIN_METHODS:
        values = [draft.value("mnist", m, depth=1, width=width) for width in widths]
        accuracies = [value.mean for value in values if value is not None]
        theirs = [block[m, column] for column in block.columns]
        complete = len(accuracies) == len(widths)
        if not complete or max(accuracies) >= 100:
            note = "no error left to fit" if complete else NO_RUNS
            rows.append((METHOD_NAMES[m], [Cell(None, their, note) for their in (*theirs, None)]))
            continue
        fit = fits[m] = power_law(widths, accuracies)
        own = [Value(fit.alpha, unit=""), Value(fit.scale, unit=""), Value(fit.error(beyond), unit="")]
        cells = [Cell(value, their) for value, their in zip(own, theirs, strict=True)]
        squared = Cell("—") if fit.r_squared is None else Cell(Value(fit.r_squared, unit=""))
        rows.append((METHOD_NAMES[m], [*cells, squared]))
        series.append(Series(METHOD_NAMES[m], tuple(map(float, widths)), tuple(100 - a for a in accuracies)))
    draft.table(
        f"A(k) = 100 - B k^-α fitted at L=1 on {draft.name('mnist')}",
        ("α", "B", f"error at k={width_name(beyond)}, % (paper: 256k)", "R²"),
        rows,
        digits=3,
        best="none",
    )
    draft.figure(
        "Error by width at L=1",
        Panel(draft.name("mnist"), "lines", "gates", "error, %", tuple(series), "log", "log"),
    )
    alphas = {m: Value(fits[m].alpha, unit="") if m in fits else None for m in MAIN_METHODS}
    for m in ("multilinear-covjac", "multilinear-ste"):
        draft.claim(
            f"The error of {METHOD_NAMES[m]} falls faster with width than Soft-Mix's",
            above(
                "exponents",
                (METHOD_NAMES[m], alphas[m]),
                ("Soft-Mix", alphas["soft-mix"]),
                (block[m, "alpha"], block["soft-mix", "alpha"]),
            ),
            id=f"falls-faster-{m}",
        )
    squares = {METHOD_NAMES[m]: fit.r_squared or 0.0 for m, fit in fits.items()}
    text = ", ".join(f"{name} {value:.4f}" for name, value in squares.items()) or NO_RUNS
    fitted = len(fits) == len(MAIN_METHODS)
    draft.claim(
        "The power law fits every method with R² > 0.99",
        Part(min(squares.values()) > 0.99 if fitted else None, text),
        id="r-squared",
    )
    again = {m: power_law(WIDTHS["paper"], _typed(m)) for m in MAIN_METHODS}
    words = (f"{METHOD_NAMES[m]} α = {fit.alpha:.3f}, R² = {fit.r_squared:.3f}" for m, fit in again.items())
    draft.note(f"The same fit to the paper's own table gives {', '.join(words)}.")
    one = {m: again[m].width_for_error(1.0) / 1e6 for m in ("soft-mix", "multilinear-covjac")}
    label = "app:width-scaling"
    said = paper_number(label, "multilinear-covjac", "k"), paper_number(label, "soft-mix", "M")
    draft.note(
        f"The paper says that 1 % error needs {said[0]:.0f}k neurons of CovJac and {said[1]}M of Soft-Mix; its own "
        "table gives "
        f"{one['multilinear-covjac']:.1f}M and {one['soft-mix']:.0f}M."
    )


def _typed(method: str) -> list[float]:
    block = paper("tab:width-scaling")
    values = (block[f"1/{width}", method] for width in WIDTHS["paper"])
    return [value.mean for value in values if value is not None]


def show_budget(draft: Draft) -> None:
    """tab:param-budget."""
    block, widths = paper("tab:param-budget"), WIDTHS[draft.scale]
    factor, parts, rows = 4, [], []
    pairs = [(wide, narrow) for wide in widths for narrow in widths if wide == factor * narrow]
    for depth in LAYERS:
        for (wide, narrow), theirs in zip(pairs, WIDTHS["paper"][2:], strict=False):
            place = f"{depth}/{theirs}"
            cells = [
                draft.cell(block[place, "multilinear-covjac"], "mnist", "multilinear-covjac", depth=depth, width=wide),
                draft.cell(block[place, "soft-mix"], "mnist", "soft-mix", depth=depth, width=narrow),
            ]
            name = f"L={depth}, {4 * wide * depth:,} parameters: k={width_name(wide)} and {width_name(narrow)}"
            rows.append((name, cells))
            parts.append(
                above(
                    f"L={depth}, k={width_name(wide)}",
                    ("M-CovJac", draft.value("mnist", "multilinear-covjac", depth=depth, width=wide)),
                    ("Soft-Mix", draft.value("mnist", "soft-mix", depth=depth, width=narrow)),
                    (block[place, "multilinear-covjac"], block[place, "soft-mix"]),
                )
            )
    draft.table(
        f"{draft.name('mnist')}: equal numbers of parameters, {draft.measure}, %",
        ("M-CovJac", "Soft-Mix"),
        rows,
        best="rows",
    )
    draft.claim("M-CovJac beats Soft-Mix at every matched budget of parameters", *parts, id="every-budget")
    same = ("3/64000", "multilinear-covjac")
    draft.note(
        f"The paper's row for L=3, k=64k has {paper_number('tab:param-budget', *same)} %, its width table "
        f"{paper_number('tab:width-scaling', *same)} %. Its budgets are those of one layer, for every depth."
    )
    draft.note("A circuit four times as wide also has four times the gates when deployed.")


EXPERIMENTS: tuple[Experiment, ...] = (
    experiment("tab:width-scaling", "Width on MNIST", show_widths),
    experiment("tab:scaling-exponents", "Power laws of width", show_exponents),
    experiment("tab:param-budget", "Equal budgets of parameters", show_budget),
)
