"""A run's page from a made-up record: every chart that its diagnostics allow, and a word on what is missing."""

from dataclasses import replace
from typing import Any

import pytest

from gatefit.experiments.record import RunRecord
from gatefit.training.config import RunConfig
from gatefit.view.run_page import run_page
from page_checks import check_page

LAYERS = 3
STEPS = (0, 20, 40)


def diagnostics(own: bool = True) -> dict[str, dict[int, Any]]:
    """Rows as ``gatefit.diagnostics`` writes them."""
    norms = {"c_0": 2.0, "c_a": 1.0, "c_b": 1.0, "c_ab": 0.5, "ratio": 0.25, "l1_ratio": 0.2}
    census = {"constant": 0.1, "separable": 0.2, "weak": 0.4, "strong": 0.3, "gates": [1 / 16] * 16}
    commitment = {"std_c_ab": 1.5, "max_abs_c_ab": 3.0}
    distance = {"mean": 0.5, "median": 0.4}
    row = {
        "gradient_norms": {
            **(norms if own else dict.fromkeys(norms)),
            "by_layer": [norms] * LAYERS if own else None,
            "effective": {**norms, "by_layer": [norms] * LAYERS},
        },
        "commitment": {**commitment, "by_layer": [commitment] * LAYERS},
        "entropy": {"mean": 2.0, "by_layer": [2.5, 2.0, 1.5]},
        "census": {**census, "by_layer": [census] * LAYERS},
        "distance": {**distance, "by_layer": [distance] * LAYERS},
        "survival": {"mean": 0.5, "by_layer": [0.3, None, 0.7]},
        "coverage": {"mean": 0.25, "by_layer": [0.25] * LAYERS},
    }
    return {name: dict.fromkeys(STEPS, value) for name, value in row.items()}


def metrics(step: int, hard: float | None = 0.8) -> dict[str, Any]:
    gap = None if hard is None else 0.01
    return {
        "step": step,
        "loss": 1.0 / (step or 1),
        **{f"{name}_hard": hard for name in ("train", "test")},
        **{f"{name}_soft": 0.81 for name in ("train", "test")},
        **{f"{name}_discretisation_gap": gap for name in ("train", "test")},
        "generalisation_gap": 0.02,
    }


@pytest.fixture
def run() -> RunRecord:
    return RunRecord(
        identity="abc123abc123",
        config=RunConfig(dataset="monks-2", width=34, depth=LAYERS, steps=40, evaluate_every=20),
        status="finished",
        summary={"last_10_accuracy": 0.8, "best_accuracy": 0.8, "best_step": 40, "generalisation_gap": 0.02},
        metrics=(metrics(20), metrics(40)),
        diagnostics=diagnostics(),
        seconds=75.0,
        machine={"cpu": "Example <CPU>", "cores": 2, "hostname": "secret-host"},
        step=40,
    )


OVER_TIME = (
    "Accuracy",
    "Loss",
    "Gaps",
    "Gate entropy by layer",
    "Deployed gates by kind",
    "Gradient norms of the parameters",
    "Gradient ratio c_ab / c_0 of the parameters",
    "Commitment",
    "Signal survival by layer",
    "Coverage of c_ab by layer",
)


def titles(html: str) -> list[str]:
    page = check_page(html)
    return [
        attributes["aria-label"].split(";")[0]
        for attributes in page.named("div")
        if "aria-roledescription" in attributes
    ]


def test_a_page_has_every_chart(run: RunRecord):
    html = run_page(run)
    shown = titles(html)
    assert set(OVER_TIME) <= set(shown)
    assert "Deployed gates at step 40" in shown
    for text in (
        "80.00 % at step 40",
        "+2.00 points",
        "monks-2, multilinear-covjac, 3 × 34",
        "Example &lt;CPU&gt;",
        "1.2 min",
    ):
        assert text in html, text
    assert "secret" not in html
    assert "prefers-color-scheme:dark" in html


def test_every_chart_can_be_reached_by_the_keyboard(run: RunRecord):
    page = check_page(run_page(run))
    plots = [attributes for attributes in page.named("div") if attributes.get("class") == "plot"]
    assert plots
    assert all(attributes["tabindex"] == "0" and attributes["role"] == "group" for attributes in plots)


def test_the_gradient_of_logit_methods_is_that_of_their_coefficients(run: RunRecord):
    shown = titles(run_page(replace(run, diagnostics=diagnostics(own=False))))
    assert "Gradient norms of the effective coefficients" in shown


def test_one_step_is_shown_by_layer(run: RunRecord):
    last = {name: {40: rows[40]} for name, rows in run.diagnostics.items()}
    shown = titles(run_page(replace(run, diagnostics=last), "Only the last `ones`."))
    assert "Gate entropy by layer" not in shown
    assert {"Gate entropy", "Signal survival", "Coverage of c_ab", "Commitment"} <= set(shown)
    assert "Only the last <code>ones</code>." in run_page(replace(run, diagnostics=last), "Only the last `ones`.")


def test_a_run_that_has_just_begun(run: RunRecord):
    html = run_page(replace(run, status="running", summary={}, metrics=(), diagnostics={}, step=0))
    check_page(html)
    assert "There is no evaluation yet." in html
    assert "running, step 0 of 40" in html


def test_a_network_that_is_not_boolean(run: RunRecord):
    soft = {**run.diagnostics, "census": dict.fromkeys(STEPS), "entropy": dict.fromkeys(STEPS)}
    rows = (metrics(20, None), metrics(40, None))
    html = run_page(replace(run, metrics=rows, diagnostics=soft, summary={**run.summary, "boolean": False}))
    shown = titles(html)
    assert "Deployed gates by kind" not in shown
    assert "of the soft network: not Boolean" in html
    assert "test, deployed" not in html


def test_a_failed_run_and_a_validation_set(run: RunRecord):
    config = replace(run.config, validation_fraction=0.2)
    html = run_page(replace(run, status="failed", error="loss is <nan>", config=config))
    check_page(html)
    assert "It failed: loss is &lt;nan&gt;" in html
    assert "validation, deployed" in html
