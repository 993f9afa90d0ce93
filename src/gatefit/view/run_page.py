"""One training run as one HTML file: curves, entropy, gates over time, the paper's diagnostics, and how it was made."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final

from markupsafe import Markup

from gatefit.backends.templates import render
from gatefit.experiments.record import RunRecord
from gatefit.gates import Gate
from gatefit.training.config import RunConfig
from gatefit.view.charts import Chart, area_chart, bar_chart, line_chart
from gatefit.view.page import with_code

_CURVES = (
    ("test, deployed", "test_hard"),
    ("test, as trained", "test_soft"),
    ("training set, deployed", "train_hard"),
    ("training set, as trained", "train_soft"),
)
_GAPS = (
    ("discretisation, test", "test_discretisation_gap"),
    ("discretisation, training set", "train_discretisation_gap"),
    ("generalisation", "generalisation_gap"),
)
_FIGURES = (
    ("last_10_accuracy", "Mean of the last ten evaluations", "%"),
    ("best_accuracy", "Best evaluation", "%"),
    ("test_accuracy", "Last evaluation", "%"),
    ("validation_accuracy", "Network that is kept", "%"),
    ("train_accuracy", "Training set", "%"),
    ("generalisation_gap", "Generalisation gap", "points"),
    ("discretisation_gap_test", "Discretisation gap, test", "points"),
    ("discretisation_gap_validation", "Discretisation gap, validation", "points"),
    ("discretisation_gap_train", "Discretisation gap, training set", "points"),
)

KINDS: Final = ("constant", "separable", "weak", "strong")
_COEFFICIENTS: Final = ("c_0", "c_a", "c_b", "c_ab")

Column = list[float | None]
_MACHINE: Final = ("cpu", "cores", "memory_gb", "system", "python", "torch")
"""What is said of a machine, in this order, as far as the store knows it."""


def run_page(record: RunRecord, remark: str = "") -> str:
    """The page; ``remark`` says what is to be known of its diagnostics."""
    config = record.config
    size = f"{config.depth} × {config.width:,}" if config.width is not None else f"{config.depth} layers"
    if config.widths is not None:
        size = " + ".join(f"{width:,}" for width in config.layer_widths)
    held_out = config.held_out
    deployed = "of the deployed circuit" if record.summary.get("boolean", True) else "of the soft network: not Boolean"
    return render(
        "gatefit.view",
        "run.html.jinja",
        title=f"{config.dataset}, {config.method}, {size}",
        facts=_facts(record),
        error=record.error,
        final_caption=f"Final figures, {held_out} accuracy {deployed}",
        final=_final(record, held_out),
        curves=_known(_curves(record, held_out)),
        remark=with_code(remark),
        gates=_known(gate_charts(record)),
        diagnostics=_known(diagnostic_charts(record)),
        layers=_known(layer_charts(record)),
        configuration=_configuration(config),
    )


def _known(charts: Sequence[Markup]) -> list[Markup]:
    """Those that show something."""
    return [chart for chart in charts if chart]


def _facts(record: RunRecord) -> list[tuple[str, str]]:
    config = record.config
    done = f"step {record.step:,} of {config.steps:,}"
    state = "finished" if record.status == "finished" else f"{record.status}, {done}"
    facts = [("run", record.identity), ("state", state), ("seed", str(config.seed))]
    if record.seconds:
        facts.append(("training time", f"{record.seconds / 60:.1f} min"))
    facts += [("machine", machine_words(record.machine)), ("code", record.code_version)]
    return [(name, value) for name, value in facts if value]


def machine_words(machine: Mapping[str, Any]) -> str:
    """A machine in one line."""
    parts = []
    for name in _MACHINE:
        value = machine.get(name)
        if value in (None, ""):
            continue
        if name == "cores":
            parts.append(f"{value} core{'' if value == 1 else 's'}")
        elif name == "memory_gb":
            parts.append(f"{value:.0f} GB")
        elif name in ("python", "torch"):
            parts.append(f"{name} {value}")
        else:
            parts.append(str(value))
    return ", ".join(parts)


def _final(record: RunRecord, held_out: str) -> list[tuple[str, str]]:
    rows = []
    for name, words, unit in _FIGURES:
        value = record.summary.get(name)
        if value is not None:
            shown = f"{100 * value:.2f} %" if unit == "%" else f"{100 * value:+.2f} points"
            if name == "best_accuracy" and record.summary.get("best_step") is not None:
                shown += f" at step {record.summary['best_step']:,}"
            rows.append((words.replace("test", held_out), shown))
    return rows


def _curves(record: RunRecord, held_out: str) -> list[Markup]:
    steps = [float(row["step"]) for row in record.metrics]
    accuracy = _series(record.metrics, _CURVES, held_out)
    gaps = _series(record.metrics, _GAPS, held_out)
    loss = [("training loss", [row.get("loss") for row in record.metrics])]
    return [
        line_chart(Chart("Accuracy", "step", "accuracy, %", steps, accuracy, digits=4)),
        line_chart(Chart("Loss", "step", "loss", steps, loss, log=_positive(loss), digits=4)),
        line_chart(Chart("Gaps", "step", "points", steps, gaps)),
    ]


def _series(
    rows: Sequence[Any], names: Sequence[tuple[str, str]], held_out: str
) -> list[tuple[str, list[float | None]]]:
    """The series that have a value, in per cent."""
    found = []
    for words, name in names:
        values = [None if row.get(name) is None else 100 * row[name] for row in rows]
        if any(value is not None for value in values):
            found.append((words.replace("test", held_out), values))
    return found


def _positive(series: Sequence[tuple[str, Sequence[float | None]]]) -> bool:
    """Whether a logarithmic axis shows all of it, and something: more than a factor of five."""
    values = [value for _, column in series for value in column if value is not None]
    return bool(values) and min(values) > 0 and max(values) > 5 * min(values)


def _configuration(config: RunConfig) -> list[tuple[str, str]]:
    default = asdict(RunConfig())
    return [
        (name.replace("_", " "), f"{value}{'' if value == default[name] else ' *'}")
        for name, value in asdict(config).items()
        if value is not None
    ]


def gate_charts(record: RunRecord) -> list[Markup]:
    """Entropy by layer and kinds of gates over time; the sixteen gates at the end."""
    charts = [_by_layer_over_time(record, "entropy", "Gate entropy by layer", "entropy, nats")]
    steps, census = _rows(record, "census")
    kinds = [(kind, [100 * row[kind] for row in census]) for kind in KINDS] if census else []
    charts.append(area_chart(Chart("Deployed gates by kind", "step", "gates, %", steps, kinds)))
    if census:
        shares = [100 * share for share in census[-1]["gates"]]
        names = [gate.name.replace("_", " ").lower() for gate in Gate]
        title = f"Deployed gates at step {int(steps[-1]):,}"
        charts.append(bar_chart(Chart(title, "gate", "gates, %", range(16), [("gates", shares)]), names))
    return charts


def diagnostic_charts(record: RunRecord) -> list[Markup]:
    """Gradient norms, their ratio, commitment, signal survival, coverage and distance over time."""
    steps, rows = _rows(record, "gradient_norms")
    # The methods of sixteen logits have no coefficients of their own: the gradient is that of what they amount to.
    own = bool(rows) and rows[-1].get("c_0") is not None
    norms = rows if own else [row.get("effective") or {} for row in rows]
    of = "parameters" if own else "effective coefficients"
    gradients = [(name, [row.get(name) for row in norms]) for name in _COEFFICIENTS] if norms else []
    ratios = [("c_ab / c_0", [row.get("ratio") for row in norms])] if norms else []
    committed_at, committed = _rows(record, "commitment")
    distance_at, distance = _rows(record, "distance")
    spread = [("std of c_ab", [row["std_c_ab"] for row in committed])] if committed else []
    apart = [(name, [row[name] for row in distance]) for name in ("mean", "median")] if distance else []
    charts = [
        _over_time(Chart(f"Gradient norms of the {of}", "step", "norm", steps, gradients, log=True)),
        _over_time(Chart(f"Gradient ratio c_ab / c_0 of the {of}", "step", "ratio", steps, ratios, log=True)),
        _over_time(Chart("Commitment", "step", "std of c_ab over gates", committed_at, spread)),
        _by_layer_over_time(record, "survival", "Signal survival by layer", "survival s"),
        _by_layer_over_time(record, "coverage", "Coverage of c_ab by layer", "fraction"),
        _over_time(Chart("Distance to the nearest gate", "step", "distance", distance_at, apart)),
    ]
    return [chart for chart in charts if chart]


def layer_charts(record: RunRecord) -> list[Markup]:
    """The last diagnostics by layer."""
    charts = []
    for name, title, y_label, part in (
        ("entropy", "Gate entropy", "entropy, nats", None),
        ("survival", "Signal survival", "survival s", None),
        ("coverage", "Coverage of c_ab", "fraction", None),
        ("commitment", "Commitment", "std of c_ab", "std_c_ab"),
        ("distance", "Distance to the nearest gate", "mean distance", "mean"),
    ):
        layers = _last_layers(record, name)
        if layers:
            values = [layer if part is None else layer[part] for layer in layers]
            charts.append(_bars(title, y_label, [(title, values)], len(layers)))
    census = _last_layers(record, "census")
    if census:
        kinds = [(kind, [100 * layer[kind] for layer in census]) for kind in KINDS]
        charts.append(_bars("Deployed gates by kind", "gates, %", kinds, len(census)))
    return charts


def _bars(title: str, y_label: str, series: Sequence[tuple[str, Column]], layers: int) -> Markup:
    names = [str(i) for i in range(1, layers + 1)]
    return bar_chart(Chart(title, "layer", y_label, range(layers), series), names)


def _rows(record: RunRecord, name: str) -> tuple[list[float], list[Any]]:
    """Steps and values of a diagnostic, where it has any."""
    found = [(float(step), value) for step, value in sorted(record.diagnostics.get(name, {}).items()) if value]
    return [step for step, _ in found], [value for _, value in found]


def _last_layers(record: RunRecord, name: str) -> list[Any]:
    _, rows = _rows(record, name)
    return list(rows[-1].get("by_layer") or ()) if rows else []


def _over_time(chart: Chart) -> Markup:
    """One step is no curve; it is shown by layer instead."""
    return line_chart(chart) if len(chart.x) > 1 else Markup()


def _by_layer_over_time(record: RunRecord, name: str, title: str, y_label: str) -> Markup:
    steps, rows = _rows(record, name)
    layers = [row.get("by_layer") or [] for row in rows]
    if not layers or not layers[-1]:
        return Markup()
    series = [(f"layer {i + 1}", [row[i] if i < len(row) else None for row in layers]) for i in range(len(layers[-1]))]
    return _over_time(Chart(title, "step", y_label, steps, series))
