"""One training run as one HTML file: curves, entropy, gates over time, the paper's diagnostics, and how it was made."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from html import escape
from typing import Any, Final

from gatefit.experiments.record import RunRecord
from gatefit.training.config import RunConfig
from gatefit.view.charts import Chart, line_chart
from gatefit.view.page import page_html, rich
from gatefit.view.run_diagnostics import diagnostic_charts, gate_charts, layer_charts
from gatefit.view.run_script import SCRIPT, STYLE

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

_MACHINE: Final = ("cpu", "cores", "memory_gb", "system", "python", "torch")
"""What is said of a machine, in this order, as far as the store knows it."""


def run_page(record: RunRecord, remark: str = "") -> str:
    """The page; ``remark`` says what is to be known of its diagnostics."""
    config = record.config
    size = f"{config.depth} × {config.width:,}" if config.width is not None else f"{config.depth} layers"
    title = f"{config.dataset}, {config.method}, {size}"
    held_out = config.held_out
    parts = [
        f"<header><h1>{escape(title)}</h1></header>",
        '<main id="content">',
        _facts(record),
        _final(record, held_out),
        _section("Accuracy and loss", _curves(record, held_out), "There is no evaluation yet."),
        *([f'<p class="missing">{rich(remark)}</p>'] if remark else []),
        _section("Gates", gate_charts(record), "Which gates the network has at each evaluation was not recorded."),
        _section("The paper's diagnostics", diagnostic_charts(record), "They were not recorded over time."),
        _section("By layer, at the last evaluation", layer_charts(record), "Nothing by layer is known."),
        _configuration(config),
        "</main>",
    ]
    return page_html(title, "\n".join(parts), style=STYLE, script=SCRIPT)


def _section(title: str, charts: Sequence[str], otherwise: str) -> str:
    shown = [chart for chart in charts if chart]
    body = f'<div class="charts">{"".join(shown)}</div>' if shown else f"<p>{escape(otherwise)}</p>"
    return f"<section><h2>{escape(title)}</h2>{body}</section>"


def _facts(record: RunRecord) -> str:
    config = record.config
    done = f"step {record.step:,} of {config.steps:,}"
    state = "finished" if record.status == "finished" else f"{record.status}, {done}"
    facts = [("run", record.identity), ("state", state), ("seed", str(config.seed))]
    if record.seconds:
        facts.append(("training time", f"{record.seconds / 60:.1f} min"))
    facts += [("machine", machine_words(record.machine)), ("code", record.code_version)]
    spans = "".join(f"<span>{escape(name)} {escape(value)}</span>" for name, value in facts if value)
    error = f'<p class="missing">It failed: {escape(record.error)}</p>' if record.error else ""
    return f'<p class="facts">{spans}</p>{error}'


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


def _final(record: RunRecord, held_out: str) -> str:
    rows = []
    for name, words, unit in _FIGURES:
        value = record.summary.get(name)
        if value is not None:
            shown = f"{100 * value:.2f} %" if unit == "%" else f"{100 * value:+.2f} points"
            if name == "best_accuracy" and record.summary.get("best_step") is not None:
                shown += f" at step {record.summary['best_step']:,}"
            rows.append((words.replace("test", held_out), shown))
    if not rows:
        return ""
    deployed = "of the deployed circuit" if record.summary.get("boolean", True) else "of the soft network: not Boolean"
    return _pairs(f"Final figures, {held_out} accuracy {deployed}", rows)


def _pairs(caption: str, rows: Sequence[tuple[str, str]]) -> str:
    lines = "".join(f'<tr><th scope="row">{escape(name)}</th><td>{escape(value)}</td></tr>' for name, value in rows)
    return (
        f'<div class="wide" tabindex="0" role="region" aria-label="{escape(caption)}">'
        f'<table class="facts-table"><caption>{escape(caption)}</caption><tbody>{lines}</tbody></table></div>'
    )


def _curves(record: RunRecord, held_out: str) -> list[str]:
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


def _configuration(config: RunConfig) -> str:
    default = asdict(RunConfig())
    rows = [
        (name.replace("_", " "), f"{value}{'' if value == default[name] else ' *'}")
        for name, value in asdict(config).items()
        if value is not None
    ]
    table = _pairs("Configuration; * is not the default", rows)
    return f"<section><h2>Configuration</h2>{table}</section>"
