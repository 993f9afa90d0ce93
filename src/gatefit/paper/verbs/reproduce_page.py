"""Outcomes as a Markdown page with its figures, and as content for JSON."""

from collections.abc import Sequence
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gatefit.paper.outcome import Outcome


def outcome_content(outcome: "Outcome") -> dict[str, Any]:
    """An outcome without the rows of its runs, which the store has; the same runs give the same content."""
    return {
        "label": outcome.label,
        "title": outcome.title,
        "scale": outcome.scale,
        "seeds": list(outcome.seeds),
        "tables": [asdict(table) for table in outcome.tables],
        "figures": [asdict(figure) for figure in outcome.figures],
        "checks": [asdict(check) | {"finding": check.finding} for check in outcome.checks],
        "notes": [*outcome.notes, *outcome.protocol],
        "used": sorted(record.identity for record in outcome.used),
        "missing": sorted(config.identity for config in outcome.missing),
    }


def write_page(outcomes: "Sequence[Outcome]", page: Path) -> Path:
    """Write the outcomes to one Markdown page, its figures to a folder beside it where matplotlib is installed."""
    from gatefit.paper.report.markdown import render_markdown

    folder = page.parent / f"{page.stem}-figures"
    drawn = find_spec("matplotlib") is not None
    parts = []
    for outcome in outcomes:
        paths = []
        for number, figure in enumerate(outcome.figures if drawn else ()):
            from gatefit.paper.report.figures import render_svg

            name = f"{outcome.label.replace(':', '-')}-{number + 1}.svg"
            folder.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(render_svg(figure))
            paths.append(f"{folder.name}/{name}")
        parts.append(render_markdown(outcome, paths))
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text("\n\n".join(parts), encoding="utf-8")
    return page
