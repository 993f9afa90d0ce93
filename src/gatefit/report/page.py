"""The report as files: report.md, report.html and figures/, or one Markdown page of the documentation.

The same results give the same bytes.
"""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from gatefit.circuit.file import write_atomically
from gatefit.report.claims import VERDICTS
from gatefit.report.collect import Report
from gatefit.report.figures import render_svg
from gatefit.report.names import figure_names, is_figure_of
from gatefit.report.page_html import html_report
from gatefit.report.page_markdown import markdown_report
from gatefit.report.provenance import machines

Drawings = Mapping[str, bytes]
"""SVG by file name."""
FIGURES: Final = "figures"
TITLE: Final = "The paper, reproduced"


def draw_figures(report: Report) -> dict[str, bytes]:
    """Every figure of a report, by file name."""
    return {
        name: render_svg(figure)
        for section in report.sections
        for outcome in section.outcomes
        for name, figure in zip(figure_names(outcome), outcome.figures, strict=True)
    }


def write_report(report: Report, folder: Path, regenerate: str, *, figures: bool = True) -> list[Path]:
    """Write report.md, report.html and figures/ to ``folder``; returns what was written."""
    drawings = draw_figures(report) if figures else {}
    folder.mkdir(parents=True, exist_ok=True)
    introduction = introduce(report)
    markdown, html = folder / "report.md", folder / "report.html"
    written = _write_figures(report, drawings, folder / FIGURES)
    write_atomically(markdown, markdown_report(TITLE, introduction, regenerate, report, drawings).encode())
    write_atomically(html, html_report(TITLE, introduction, regenerate, report, drawings).encode())
    return [markdown, html, *written]


def write_docs(report: Report, path: Path, regenerate: str, *, figures: bool = True) -> list[Path]:
    """Write one Markdown page, with its figures in a folder beside it."""
    drawings = draw_figures(report) if figures else {}
    path.parent.mkdir(parents=True, exist_ok=True)
    written = _write_figures(report, drawings, path.parent / FIGURES)
    write_atomically(path, markdown_report(TITLE, introduce(report), regenerate, report, drawings).encode())
    return [path, *written]


def introduce(report: Report) -> list[str]:
    """What the page is, from how many runs, and how to read it."""
    runs = report.runs
    timed = [record.seconds for record in runs if record.seconds]
    hours = sum(timed) / 3600
    which = "" if len(timed) == len(runs) else f" in the {len(timed):,} whose time is known"
    with_runs = sum(bool(section.outcomes) for section in report.sections)
    verdicts = Counter(judged.verdict for judged in report.claims)
    counted = ", ".join(f"{verdicts[verdict]} {verdict}" for verdict in VERDICTS if verdicts[verdict])
    paragraphs = [
        "Every table and figure of “Fitting Multilinear Polynomials for Logic Gate Networks”, computed by this "
        "program, with the paper's value beside ours. Nothing on this page is typed in by hand but the paper's own "
        "statements and numbers.",
        f"It is made from {len(runs):,} finished run{'' if len(runs) == 1 else 's'}"
        + (f" ({hours:,.1f} hours of training{which})" if hours >= 0.05 else "")
        + f" and shows {with_runs} of {len(report.sections)} labels, in full or in part; those that begin with extra: "
        "are not the paper's." + "".join(f" Machine: {words}." for words in machines(runs)),
        "At the paper's scale a run has the paper's width, depth and steps. At small scale networks are narrower and "
        "train for fewer steps, so that all labels together take a few hours on one machine: there, orderings and "
        "collapses can be compared with the paper's, not accuracies. A value is a mean over seeds ± the sample "
        "standard deviation, with the number of runs in brackets; the difference is ours less the paper's, in the "
        "same unit.",
    ]
    if counted:
        paragraphs.append(f"Of {len(report.claims)} claims of the paper: {counted}.")
    return paragraphs


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
