"""The committed page is what the committed figures say, and the figures are of the committed entries."""

from pathlib import Path

import pytest

from gatefit.frontier.entries import read_entries
from gatefit.frontier.page import published, render_page
from gatefit.frontier.results import read_results, write_results

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "results/frontier"


def test_the_page_is_made_from_the_figures():
    assert (ROOT / "docs/frontier.md").read_text() == render_page(read_results(RESULTS).values()), (
        "run: gatefit frontier --table-only --page docs/frontier.md"
    )


def test_the_figures_are_written_as_they_were_read(tmp_path):
    written = write_results(tmp_path, read_results(RESULTS))
    assert written.read_text() == (RESULTS / "frontier.json").read_text()


@pytest.mark.parametrize("row", read_results(RESULTS).values(), ids=lambda row: row.entry.name)
def test_a_row_is_of_its_entry(row):
    entry = read_entries()[row.entry.name]
    assert (row.entry.config, row.entry.prune) == (entry.config, entry.prune)
    for config, figures in zip(row.entry.runs(), row.seeds, strict=True):
        assert figures["run"] == config.identity
        assert figures["steps"] == config.steps
        assert figures["live_gates"] <= figures["trained_gates"]
        assert figures["proofs"][-1]["digest"] == figures["digest"]
        right = figures["test_accuracy"] * figures["test_samples"]
        assert right == pytest.approx(round(right), abs=1e-6)


def test_published_figures_say_what_they_count_and_where_they_are_from():
    for row in published():
        assert set(row) == {"data", "model", "accuracy", "count", "counts", "source"}
        assert row["counts"]
        assert row["source"]
        assert 0 < row["accuracy"] <= 100


def test_a_page_without_rows_shows_none():
    assert "No row has been run yet." in render_page([])
    assert "| row |" not in render_page([])
