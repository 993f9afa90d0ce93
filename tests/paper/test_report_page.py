"""The whole report from a made-up source: which outcomes appear, what is written, and the same bytes again."""

from dataclasses import replace
from pathlib import Path

import pytest

from gatefit.paper.claims import Cited, Claim
from gatefit.paper.outcome import Check, Experiment, Outcome, Results
from gatefit.paper.report.contents import Report, build_report, figure_names, is_figure_of, slug
from gatefit.paper.report.files import write_docs, write_report
from gatefit.paper.report.markdown import GENERATED
from page_checks import check_page

CLAIM = Claim("Abstract", "M-STE <beats> Soft-Mix.", checks=(Cited("tab:made-up", "beats"),), remark="Mind `a|b`.")


class Source:
    """Results that hold nothing: the experiments below bring their own."""

    def find(self, identity):
        return None

    def records(self, **_):
        return []


def experiments(outcome: Outcome) -> list[Experiment]:
    def show(results: Results) -> Outcome:
        if results.scale == "small":
            return outcome
        waiting = tuple(replace(check, holds=None, evidence="no run") for check in outcome.checks)
        return replace(outcome, scale=results.scale, checks=waiting, used=())

    def empty(results: Results) -> Outcome:
        return Outcome("tab:none", "No runs", results.scale, (0,), missing=outcome.missing)

    def computed(results: Results) -> Outcome:
        return Outcome("tab:theory", "Theory", results.scale, (0,), checks=(Check("2 = 2", True, "yes"),))

    seeds = {"paper": (0, 1, 2), "small": (0,), "tiny": (0,)}
    return [
        Experiment(label, title, lambda scale, seeds: [], shown, seeds)  # type: ignore[arg-type]
        for label, title, shown in (
            ("tab:made-up", "Made up", show),
            ("tab:none", "No runs", empty),
            ("tab:theory", "Theory", computed),
        )
    ]


@pytest.fixture
def report(outcome: Outcome) -> Report:
    return build_report(Source(), experiments(outcome), [CLAIM])  # type: ignore[arg-type]


@pytest.fixture(autouse=True)
def _drawn_once(monkeypatch: pytest.MonkeyPatch, drawing: bytes) -> None:
    monkeypatch.setattr("gatefit.paper.report.files.render_svg", lambda figure: drawing)


def test_only_scales_with_runs_appear_and_theory_once(report: Report):
    shown = {section.label: [outcome.scale for outcome in section.outcomes] for section in report.sections}
    assert shown == {"tab:made-up": ["small"], "tab:none": [], "tab:theory": ["paper"]}
    assert report.sections[1].commands == (
        "gatefit reproduce tab:none --scale paper",
        "gatefit reproduce tab:none --scale small",
    )
    assert len(report.runs) == 6
    assert report.claims[0].verdict == "confirmed"


def test_a_run_is_read_once(outcome: Outcome):
    asked = []

    class Counting(Source):
        def find(self, identity):
            asked.append(identity)

    def show(results: Results) -> Outcome:
        results.get(outcome.missing[0])
        return replace(outcome, missing=results.missing)

    (first, *_) = experiments(outcome)
    build_report(Counting(), [replace(first, show=show), replace(first, label="tab:other", show=show)])  # type: ignore[arg-type]
    assert asked == [outcome.missing[0].identity]


def test_the_report_is_written_whole_and_again_the_same(report: Report, tmp_path: Path):
    written = write_report(report, tmp_path / "out", "gatefit report --out out")
    names = sorted(path.relative_to(tmp_path / "out").as_posix() for path in written)
    assert names == [
        "figures/tab-made-up-small-1.svg",
        "figures/table-1.svg",
        "report.html",
        "report.md",
        "report/claims.md",
        "report/tab-made-up.md",
        "report/tab-none.md",
        "report/tab-theory.md",
    ]
    html = (tmp_path / "out" / "report.html").read_text()
    page = check_page(html)
    assert len(page.named("svg")) == 1
    pages = {path.name: path.read_text() for path in written if path.suffix == ".md"}
    for text in (html, pages["report.md"]):
        assert "gatefit report --out out" in text
        assert "M-STE &lt;beats&gt; Soft-Mix." in text
        assert "6 finished runs" in text
        assert "1 confirmed" in text
    for text in (html, pages["claims.md"]):
        assert "Confirmed at small scale" in text
    for text in (html, pages["tab-none.md"]):
        assert "gatefit reproduce tab:none --scale small" in text
    assert "](../figures/tab-made-up-small-1.svg)" in pages["tab-made-up.md"]
    assert "](figures/table-1.svg)" in pages["report.md"]
    for text in (html, pages["tab-made-up.md"]):  # Runs that do not exist are another command's.
        assert "3 runs are missing: " in text
        assert "gatefit runs missing --label tab:made-up" in text
        assert "multilinear-covjac, 6" not in text
    before = {path: path.read_bytes() for path in written}
    write_report(report, tmp_path / "out", "gatefit report --out out")
    assert {path: path.read_bytes() for path in written} == before


def test_a_page_of_the_documentation_has_others_behind_it_and_figures(report: Report, tmp_path: Path):
    figures = tmp_path / "docs" / "figures"
    figures.mkdir(parents=True)
    for name in ("tab-made-up-paper-7.svg", "drawing.svg", "tab-made-up-notes.svg"):
        (figures / name).write_text("<svg/>")
    behind = tmp_path / "docs" / "reproduction"
    behind.mkdir()
    (behind / "tab-gone.md").write_text(GENERATED)
    (behind / "notes.md").write_text("somebody else's")
    write_docs(report, tmp_path / "docs" / "reproduction.md", "gatefit report --docs docs/reproduction.md")
    assert sorted(path.name for path in figures.iterdir()) == [
        "drawing.svg",  # somebody else's
        "tab-made-up-notes.svg",
        "tab-made-up-small-1.svg",
        "table-1.svg",
    ]
    names = sorted(path.name for path in behind.iterdir())
    assert names == ["claims.md", "notes.md", "tab-made-up.md", "tab-none.md", "tab-theory.md"]
    assert "(../reproduction.md)" in (behind / "tab-none.md").read_text()
    assert not (tmp_path / "docs" / "report.html").exists()


def test_without_figures_nothing_is_drawn(report: Report, tmp_path: Path):
    write_report(report, tmp_path / "out", "gatefit report", figures=False)
    assert not (tmp_path / "out" / "figures").exists()
    assert "![" not in (tmp_path / "out" / "report.md").read_text()


def test_names_of_anchors_and_files(outcome: Outcome):
    assert slug("tab:mnist-main") == "tab-mnist-main"
    assert figure_names(outcome) == ["tab-made-up-small-1.svg"]
    assert is_figure_of("tab-made-up-small-12.svg", "tab:made-up")
    assert not is_figure_of("tab-made-up-small-12.svg", "tab:made")
