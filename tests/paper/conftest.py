"""Made-up outcomes that have everything in them that a report must get right."""

import math
from pathlib import Path

import pytest

from command_line import _plain_environment, gatefit, process, refused
from gatefit.experiments.record import RunRecord
from gatefit.paper.outcome import (
    Cell,
    Check,
    Figure,
    Outcome,
    Panel,
    Series,
    Table,
    Value,
)
from gatefit.paper.report.figures import render_svg
from gatefit.training.config import RunConfig

__all__ = ["_plain_environment", "gatefit", "process", "refused"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The reproduction is of the second stage."""
    for item in items:
        if item.path.parent == Path(__file__).parent:
            item.add_marker(pytest.mark.outside)


MACHINE = {"cpu": "Example CPU", "cores": 2, "memory_gb": 8.2, "hostname": "secret-host"}


def record(config: RunConfig, accuracy: float = 0.9) -> RunRecord:
    """A finished run."""
    return RunRecord(
        identity=config.identity,
        config=config,
        status="finished",
        summary={"last_10_accuracy": accuracy},
        seconds=90.0,
        machine=MACHINE,
        code_version="0.1.0+abc1234",
    )


def config(method: str = "multilinear-ste", seed: int = 0, **options: object) -> RunConfig:
    """A configuration of the made-up experiment."""
    given = {"dataset": "monks-2", "method": method, "seed": seed, "steps": 10_000, **options}
    return RunConfig.from_dict(given).resolved()


TABLE = Table(
    caption="Accuracy of <both> methods & the paper's | last 10",
    columns=("Adult", "MONK's-2", "gap"),
    rows=(
        (
            "Soft-Mix",
            (
                Cell(Value(84.71, 0.05, 3), Value(84.68, 0.07, 3)),
                Cell(None, Value(81.32, 1.09, 3), note="no run yet"),
                Cell(Value(-0.004, unit="pp"), Value(0.5, unit="pp")),
            ),
        ),
        (
            "M-STE <ours> | *best*",
            (
                Cell(Value(84.93, 0.03, 3), Value(84.91, 0.01, 3)),
                Cell(Value(math.nan, None, 2), Value(78.53, 1.25, 3), note="no run yet"),
                Cell(Value(1.25, unit="pp"), "≤ 1"),
            ),
        ),
    ),
)

FIGURE = Figure(
    caption="Curves, bars & points",
    panels=(
        Panel(
            "lines",
            "lines",
            "step",
            "accuracy (%)",
            (
                Series("Soft-Mix", (1.0, 2.0, 3.0), (50.0, 60.0, 70.0), error=(1.0, 2.0, 1.0)),
                Series("M-CovJac", (1.0, 2.0, 3.0), (55.0, 75.0, math.nan)),
            ),
        ),
        Panel(
            "bars",
            "bars",
            "",
            "fraction",
            (
                Series("Soft-Mix", ("Adult", "MNIST"), (0.2, 0.3), error=(0.1, 0.05)),
                Series("M-STE", ("Adult", "MNIST"), (0.4, 0.5)),
            ),
        ),
        Panel(
            "stacked",
            "stacked-bars",
            "",
            "fraction",
            (
                Series("constant", ("SM", "STE"), (0.2, 0.3)),
                Series("strong", ("SM", "STE"), (0.8, 0.7)),
            ),
        ),
        Panel(
            "points <a & b>",
            "scatter",
            "x",
            "y",
            (Series("gates", (0.0, 1.0), (0.0, 1.0), labels=("AND", "XOR"), size=(1.0, 4.0)),),
        ),
        Panel("space", "scatter3d", "c_a", "c_b", (Series("gates", (0.0, 1.0), (0.0, 1.0), z=(0.0, -2.0)),)),
    ),
)


@pytest.fixture
def outcome() -> Outcome:
    """Tables with gaps, NaN and characters that mean something in Markdown and HTML; every kind of panel."""
    return Outcome(
        label="tab:made-up",
        title="A made-up <table>",
        scale="small",
        seeds=(0, 1, 2),
        tables=(TABLE,),
        figures=(FIGURE,),
        checks=(
            Check("M-STE beats Soft-Mix on Adult", True, "84.93 against 84.71 (paper: 84.91 against 84.68)", "beats"),
            Check("The gap is < 1 & positive", False, "the gap is 1.25", "gap"),
            Check("MONK's-2 is harder", None, "no run of Soft-Mix on MONK's-2", "harder"),
        ),
        notes=("Width 136 | as in the paper.",),
        used=tuple(record(config(method, seed)) for method in ("soft-mix", "multilinear-ste") for seed in range(3)),
        missing=tuple(config("multilinear-covjac", seed) for seed in range(3)),
    )


@pytest.fixture(scope="session")
def drawing() -> bytes:
    """The figure as SVG, drawn once."""
    return render_svg(FIGURE)
