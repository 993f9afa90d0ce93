"""Markdown and HTML: nothing is lost, nothing is fetched, nothing of a name becomes markup."""

import re
from dataclasses import replace

import pytest

from gatefit.paper.outcome import Outcome
from gatefit.paper.report.contents import Report, Section, figure_names
from gatefit.paper.report.html import html_report
from gatefit.paper.report.markdown import escaped, render_markdown
from page_checks import Page, check_page


def render_html(outcome: Outcome, drawings: list[bytes] | None = None) -> str:
    """A report of one label."""
    section = Section(outcome.label, outcome.title, (outcome,))
    named = dict(zip(figure_names(outcome), drawings or [], strict=False))
    return html_report("One label", "gatefit report", Report((section,), (), (outcome.scale,)), named)


def test_html_is_whole_and_fetches_nothing(outcome: Outcome, drawing: bytes):
    html = render_html(outcome, [drawing])
    page = check_page(html)
    pictures = page.named("svg")
    assert len(pictures) == 1
    assert pictures[0]["role"] == "img"
    assert pictures[0]["aria-labelledby"]
    words = " ".join(page.words)
    for text in ("84.93 ± 0.03 (3)", "+0.02", "paper 81.32 ± 1.09", "not a number", "3 runs are missing", "no run yet"):
        assert text in words, text
    assert "secret" not in html


def test_html_escapes_every_name(outcome: Outcome, drawing: bytes):
    html = render_html(outcome, [drawing])
    assert "<table>" not in Page(html).open
    assert "A made-up &lt;table&gt;" in html
    assert "M-STE &lt;ours&gt;" in html
    assert "points &lt;a &amp; b&gt;" in html
    assert "<ours>" not in html
    assert "<both>" not in html


def test_html_has_a_picture_for_both_grounds(outcome: Outcome, drawing: bytes):
    html = render_html(outcome, [drawing])
    assert "prefers-color-scheme:dark" in html
    assert "@media print" in html
    assert "currentColor" in html
    assert "#1a1a1b" not in html  # every ink of the drawing follows the page


def test_html_without_figures(outcome: Outcome):
    assert "<svg" not in render_html(outcome)


def test_markdown_golden_table(outcome: Outcome):
    text = render_markdown(outcome, ["figures/one.svg"])
    assert text.startswith(
        "## tab:made-up: A made-up &lt;table&gt; (small scale)\n\nscale small · seeds 0–2 · runs 6 of 9"
    )
    assert (
        "|  | Adult | MONK's-2 | gap |\n|---|---|---|---|\n"
        "| Soft-Mix | 84.71 ± 0.05 (3)<br>paper 84.68 ± 0.07<br>+0.03 | – <sup>1</sup><br>paper 81.32 ± 1.09 | "
        "0.00 pp (1)<br>paper +0.50 pp<br>−0.50 |\n"
        r"| M-STE &lt;ours&gt; \| \*best\* | **84.93 ± 0.03 (3)**<br>paper 84.91 ± 0.01<br>+0.02 | "
        "not a number (2) <sup>1</sup><br>paper 78.53 ± 1.25 | +1.25 pp (1)<br>paper ≤ 1 |\n"
    ) in text
    assert "- **✓ holds**: M-STE beats Soft-Mix on Adult — 84.93 against 84.71" in text
    assert "- **✗ does not hold**: The gap is &lt; 1 &amp; positive" in text
    assert "- **? cannot be said**: MONK's-2 is harder" in text
    assert "`gatefit reproduce tab:made-up --scale small`" in text


def test_markdown_tables_have_equal_columns(outcome: Outcome):
    lines = [line for line in render_markdown(outcome).splitlines() if line.startswith("|")]
    assert len({len(re.findall(r"(?<!\\)\|", line)) for line in lines}) == 1


def test_markdown_pictures_have_words(outcome: Outcome):
    text = render_markdown(outcome, ["figures/one.svg"])
    (alternative,) = re.findall(r"!\[((?:[^\]\\]|\\.)*)\]\(figures/one\.svg\)", text)
    assert "Soft-Mix from 50 at 1 to 70 at 3" in alternative
    assert "M-CovJac from 55 at 1 to 75 at 2" in alternative  # the NaN at its end is not a value


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a|b", r"a\|b"),
        ("c_ab and _x_", r"c_ab and \_x\_"),
        ("2 * 3 < 7 & [x]", r"2 \* 3 &lt; 7 &amp; \[x\]"),
        ("run `a|b_` now", "run `a|b_` now"),
        ("two\nlines", "two lines"),
    ],
)
def test_markdown_shows_text_as_it_is(text, shown):
    assert escaped(text) == shown


def test_a_long_table_is_whole(outcome: Outcome):
    table = outcome.tables[0]
    long = replace(table, rows=tuple((f"row {i}", table.rows[0][1]) for i in range(300)))
    html = render_html(replace(outcome, tables=(long,)))
    assert sum(attributes.get("scope") == "row" for attributes in check_page(html).named("th")) == 300
    assert render_markdown(replace(outcome, tables=(long,))).count("| row ") == 300
