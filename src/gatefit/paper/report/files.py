"""The report as files: a first page, a folder of the same name with a page a label, and figures/; or one HTML file.

The same results give the same bytes.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from gatefit.circuit.file import write_atomically
from gatefit.paper.report.contents import TABLE_FIGURE, Report, figure_names, is_figure_of, slug, table_figure
from gatefit.paper.report.figures import render_svg
from gatefit.paper.report.html import html_report
from gatefit.paper.report.markdown import CLAIMS_PAGE, GENERATED, claims_page, first_page, label_page

Drawings = Mapping[str, bytes]
"""SVG by file name."""
FIGURES: Final = "figures"
TITLE: Final = "The paper, reproduced"


def draw_figures(report: Report) -> dict[str, bytes]:
    """Every figure of a report, by file name."""
    drawings = {
        name: render_svg(figure)
        for section in report.sections
        for outcome in section.outcomes
        for name, figure in zip(figure_names(outcome), outcome.figures, strict=True)
    }
    return {TABLE_FIGURE: render_svg(table_figure(report.first)), **drawings} if report.first else drawings


def write_report(report: Report, folder: Path, regenerate: str, *, figures: bool = True) -> list[Path]:
    """Write report.md with its pages, report.html and figures/ to ``folder``; returns what was written."""
    drawings = draw_figures(report) if figures else {}
    html = folder / "report.html"
    first, *others = _write_pages(report, folder / "report.md", regenerate, drawings)
    write_atomically(html, html_report(TITLE, regenerate, report, drawings).encode())
    return [first, html, *others]


def write_docs(report: Report, path: Path, regenerate: str, *, figures: bool = True) -> list[Path]:
    """Write a Markdown page, those behind it in a folder of its name, and its figures in figures/ beside it."""
    return _write_pages(report, path, regenerate, draw_figures(report) if figures else {})


def _write_pages(report: Report, path: Path, regenerate: str, drawings: Drawings) -> list[Path]:
    details = path.with_suffix("")
    details.mkdir(parents=True, exist_ok=True)
    back = f"../{path.name}"
    pages = {f"{slug(section.label)}.md": label_page(section, back, drawings) for section in report.sections}
    if report.claims:
        pages[CLAIMS_PAGE] = claims_page(report.claims, back)
        # A label that is gone leaves no page behind; a page that is not ours stays.
        for old in sorted(details.glob("*.md")):
            if old.name not in pages and GENERATED in old.read_text():
                old.unlink()
    written = _write_figures(report, drawings, path.parent / FIGURES)
    for name, text in pages.items():
        write_atomically(details / name, text.encode())
    figure = TABLE_FIGURE in drawings
    write_atomically(path, first_page(TITLE, regenerate, report, details.name, figure=figure).encode())
    return [path, *(details / name for name in pages), *written]


def _write_figures(report: Report, drawings: Drawings, folder: Path) -> list[Path]:
    """Write the drawings, and remove those of the same labels that are no longer made."""
    if drawings:
        folder.mkdir(parents=True, exist_ok=True)
    for path in folder.glob("*.svg") if folder.is_dir() and drawings else ():
        if path.name not in drawings and any(is_figure_of(path.name, section.label) for section in report.sections):
            path.unlink()
    for name, content in drawings.items():
        write_atomically(folder / name, content)
    return [folder / name for name in drawings]
