"""Charts of a run's diagnostics: entropy and gates over time, the paper's measures, and the last of each by layer."""

from collections.abc import Sequence
from typing import Any, Final

from gatefit.experiments.record import RunRecord
from gatefit.gates import Gate
from gatefit.view.charts import Chart, area_chart, bar_chart, line_chart

KINDS: Final = ("constant", "separable", "weak", "strong")
_COEFFICIENTS: Final = ("c_0", "c_a", "c_b", "c_ab")

Column = list[float | None]


def gate_charts(record: RunRecord) -> list[str]:
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


def diagnostic_charts(record: RunRecord) -> list[str]:
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


def layer_charts(record: RunRecord) -> list[str]:
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


def _bars(title: str, y_label: str, series: Sequence[tuple[str, Column]], layers: int) -> str:
    names = [str(i) for i in range(1, layers + 1)]
    return bar_chart(Chart(title, "layer", y_label, range(layers), series), names)


def _rows(record: RunRecord, name: str) -> tuple[list[float], list[Any]]:
    """Steps and values of a diagnostic, where it has any."""
    found = [(float(step), value) for step, value in sorted(record.diagnostics.get(name, {}).items()) if value]
    return [step for step, _ in found], [value for _, value in found]


def _last_layers(record: RunRecord, name: str) -> list[Any]:
    _, rows = _rows(record, name)
    return list(rows[-1].get("by_layer") or ()) if rows else []


def _over_time(chart: Chart) -> str:
    """One step is no curve; it is shown by layer instead."""
    return line_chart(chart) if len(chart.x) > 1 else ""


def _by_layer_over_time(record: RunRecord, name: str, title: str, y_label: str) -> str:
    steps, rows = _rows(record, name)
    layers = [row.get("by_layer") or [] for row in rows]
    if not layers or not layers[-1]:
        return ""
    series = [(f"layer {i + 1}", [row[i] if i < len(row) else None for row in layers]) for i in range(len(layers[-1]))]
    return _over_time(Chart(title, "step", y_label, steps, series))
