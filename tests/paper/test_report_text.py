"""Numbers and text: what a cell, a table and an outcome say."""

import math
from dataclasses import replace

import pytest

from gatefit.paper.outcome import Cell, Outcome, Table, Value
from gatefit.paper.report.shown_table import joined_ranges, number, show_table, shown_value
from gatefit.paper.report.text import render_text

GOLDEN = """\
tab:made-up  A made-up <table>
scale small; seeds 0–2; runs 6 of 9; steps 10,000; time 9 min; machine Example CPU, 2 cores, 8 GB;
code 0.1.0+abc1234

Accuracy of <both> methods & the paper's | last 10
                                Adult              MONK's-2              gap
Soft-Mix               ours     84.71 ± 0.05 (3)   – [1]                 0.00 pp (1)
                       paper    84.68 ± 0.07       81.32 ± 1.09          +0.50 pp
                       differ.  +0.03                                    −0.50
M-STE <ours> | *best*  ours     84.93 ± 0.03 (3)*  not a number (2) [1]  +1.25 pp (1)
                       paper    84.91 ± 0.01       78.53 ± 1.25          ≤ 1
                       differ.  +0.02
[1] no run yet
(in % where no unit is written; mean ± standard deviation (number of runs); * best of ours in its
column)

figure: Curves, bars & points

claims
✓ M-STE beats Soft-Mix on Adult
  84.93 against 84.71 (paper: 84.91 against 84.68)
✗ The gap is < 1 & positive
  the gap is 1.25
? MONK's-2 is harder
  no run of Soft-Mix on MONK's-2

notes
- Width 136 | as in the paper.

3 runs are missing; train with: gatefit reproduce tab:made-up --scale small
- monks-2 multilinear-covjac, 6 × 136 gates, 10,000 steps, seeds 0–2
"""


@pytest.mark.parametrize(
    ("value", "digits", "unit", "text"),
    [
        (84.925, 2, "%", "84.92"),
        (-0.004, 2, "pp", "0.00"),
        (0.004, 2, "pp", "0.00"),
        (0.5, 1, "pp", "+0.5"),
        (-0.5, 1, "", "−0.5"),
        (1_540_000, 2, "", "1,540,000"),
        (25.0, 2, "×", "25"),
        (98.0, 2, "%", "98.00"),
        (0.00012, 2, "", "1.2e-04"),
        (math.nan, 2, "%", "not a number"),
        (math.inf, 2, "", "∞"),
        (-math.inf, 2, "", "−∞"),
    ],
)
def test_a_number_is_written_as_a_reader_expects(value, digits, unit, text):
    assert number(value, digits, unit) == text


def test_values_carry_unit_and_runs():
    assert shown_value(Value(84.9, 0.1, 3), 1) == "84.9 ± 0.1 (3)"
    assert shown_value(Value(84.9, 0.1, 3), 1, runs=False) == "84.9 ± 0.1"
    assert shown_value(Value(97.07, 0.0, 3), 2) == "97.07 ± 0.00 (3)"
    assert shown_value(Value(7, unit="ops"), 2) == "7 ops"
    assert shown_value(Value(25, unit="×"), 2) == "25×"
    assert shown_value("argmax", 2) == "argmax"
    assert shown_value(None, 2) == ""
    assert shown_value(Value(math.nan, 0.1, 3), 2) == "not a number (3)"


def _accuracies(*rows: tuple[float | None, ...], best: str = "columns") -> Table:
    cells = tuple((f"row {i}", tuple(Cell(None if v is None else Value(v)) for v in row)) for i, row in enumerate(rows))
    return Table("t", tuple("abc"[: len(rows[0])]), cells, digits=1, best=best)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("table", "marked"),
    [
        (_accuracies((90.0, 80.0), (91.0, 79.0)), {(1, 0), (0, 1)}),
        (_accuracies((90.0, 80.0), (91.0, 79.0), best="rows"), {(0, 0), (1, 0)}),
        (_accuracies((90.0, 80.0), (91.0, 79.0), best="none"), set()),
        (_accuracies((90.01, None), (90.02, 79.0)), {(0, 0), (1, 0)}),  # equal as shown; a lone value has no rival
        (_accuracies((math.nan, 80.0), (91.0, 79.0)), {(0, 1)}),
    ],
)
def test_the_best_of_ours_is_marked(table, marked):
    shown = show_table(table)
    assert {(i, j) for i, (_, cells) in enumerate(shown.rows) for j, cell in enumerate(cells) if cell.best} == marked
    assert bool(shown.best) == bool(marked)


def test_only_percentages_are_ranked():
    rows = tuple((name, (Cell(Value(cost, unit="ops")),)) for name, cost in (("a", 7.0), ("b", 175.0)))
    assert not show_table(Table("cost", ("ops",), rows)).best


def test_equal_notes_share_a_footnote_and_labels_are_not_missing_values():
    table = Table("t", ("a", "b", "c"), (("r", (Cell(note="n"), Cell("x", note="n"), Cell())),))
    (_, cells), *_ = show_table(table).rows
    assert [cell.footnote for cell in cells] == [1, 1, None]
    assert [cell.ours for cell in cells] == ["–", "x", ""]
    assert show_table(table).footnotes == ("n",)


def test_ranges():
    assert joined_ranges([3, 1, 2, 7, 1]) == "1–3, 7"
    assert joined_ranges([4, 5]) == "4, 5"
    assert joined_ranges([]) == ""


def test_text_golden(outcome: Outcome):
    assert render_text(outcome) == GOLDEN


@pytest.mark.parametrize("width", [40, 60, 80, 200])
def test_text_keeps_to_its_width(outcome: Outcome, width: int):
    long = tuple((f"row {i}", tuple(Cell(Value(50.0 + i, 1.0, 3), Value(50.0)) for _ in range(12))) for i in range(30))
    wide = replace(outcome, tables=(Table("wide", tuple(f"column {j}" for j in range(12)), long),))
    text = render_text(wide, width=width)
    table = text[text.index("wide\n") : text.index("(in %")]
    assert max(map(len, table.splitlines())) <= width
    assert all(table.count(f"column {j}") == 1 for j in (0, 5, 11))
    assert table.count("row 29") == len([line for line in table.splitlines() if line.lstrip().startswith("column")])


def test_text_of_a_computed_label_needs_no_runs(outcome: Outcome):
    text = render_text(replace(outcome, used=(), missing=()))
    assert "runs none needed: computed" in text
    assert "missing" not in text


def test_many_missing_runs_are_counted(outcome: Outcome):
    missing = tuple(replace(outcome.missing[0], width=17 * k) for k in range(1, 30))
    text = render_text(replace(outcome, missing=missing))
    assert "29 runs are missing" in text
    assert "and 21 more configurations" in text
    assert "\n1 run is missing; train with: gatefit reproduce" in render_text(replace(outcome, missing=missing[:1]))


def test_text_names_no_host(outcome: Outcome):
    assert "secret" not in render_text(outcome)
