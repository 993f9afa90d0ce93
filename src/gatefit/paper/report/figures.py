"""Figures as SVG: the same bytes for the same figure, so that a report made again shows no difference.

Text stays text (smaller by a half than outlines, and searchable); no date, no version, ids from a fixed salt.
``inline_svg`` is the form for an HTML page: no header, its own ids, the page's colours in light and dark.
"""

import io
import math
import re
from collections.abc import Iterator
from html import escape
from typing import Any, Final

from gatefit._requires import require
from gatefit.paper.outcome import Figure, Panel, Series
from gatefit.paper.report.labels import place_labels
from gatefit.paper.report.panels import draw_panel
from gatefit.view.series_styles import BACKGROUND, FOREGROUND, GRID, styles_of

_PANEL: Final = (3.5, 2.7)
"""Inches of a panel."""
_RC: Final[dict[str, Any]] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "gatefit",
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 9,
    "axes.titlesize": 9.5,
    "axes.labelsize": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.8,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "legend.fontsize": 8.5,
    "legend.frameon": False,
    "legend.handlelength": 2.8,
    "lines.linewidth": 1.5,
    "lines.markersize": 4.5,
    "hatch.linewidth": 0.6,
    "hatch.color": FOREGROUND,
    "text.color": FOREGROUND,
    "axes.edgecolor": FOREGROUND,
    "axes.labelcolor": FOREGROUND,
    "axes.titlecolor": FOREGROUND,
    "xtick.color": FOREGROUND,
    "ytick.color": FOREGROUND,
    "figure.facecolor": BACKGROUND,
    "axes.facecolor": BACKGROUND,
    "savefig.facecolor": BACKGROUND,
}


def draw(figure: Figure) -> Any:
    """A matplotlib figure: the panels in rows of up to three, one legend for all below them."""
    require("matplotlib", "plots", "drawing figures")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as Canvas

    panels = figure.panels
    columns = len(panels) if len(panels) <= 3 else 2 if len(panels) == 4 else 3
    rows = math.ceil(len(panels) / columns) if panels else 1
    wide = {0: 1.0, 1: 1.6, 2: 1.2}.get(columns, 1.0)
    spatial = any(panel.kind == "scatter3d" for panel in panels)
    high = _PANEL[1] * ((1.7 if len(panels) == 1 else 1.25) if spatial else 1.0)
    inches = (_PANEL[0] * wide * max(1, columns), high * rows + 0.45)
    canvas = Canvas(figsize=inches, layout="constrained")
    FigureCanvasAgg(canvas)
    names = list(dict.fromkeys(series.name for panel in panels for series in panel.series))
    styles = styles_of(names)
    drawn = []
    for i, panel in enumerate(panels):
        space = {"projection": "3d"} if panel.kind == "scatter3d" else {}
        axes: Any = canvas.add_subplot(rows, columns, i + 1, **space)
        draw_panel(axes, panel, styles)
        drawn.append(axes)
    handles: dict[str, Any] = {}
    for axes in drawn:
        for handle, name in zip(*axes.get_legend_handles_labels(), strict=True):
            handles.setdefault(name, handle)
    if len(handles) > 1:
        # A line of 8.5 points: a handle and its gaps take 0.62 inches, a letter about 0.075.
        widest = 0.62 + 0.075 * max(map(len, handles))
        in_row = max(1, min(len(handles), int(inches[0] / widest)))
        legend: Any = canvas.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=in_row)
        for handle in legend.legend_handles:
            if hasattr(handle, "set_sizes"):  # Bubbles of data size would cover the legend.
                handle.set_sizes([36.0])
    canvas.draw_without_rendering()
    for axes in drawn:
        place_labels(axes, getattr(axes, "gatefit_labels", {}))
    canvas.set_layout_engine("none")  # It is laid out; saving need not do it again.
    return canvas


def render_svg(figure: Figure) -> bytes:
    """An SVG file on a white ground, with a title and a description for those who cannot see it."""
    matplotlib = require("matplotlib", "plots", "drawing figures")
    buffer = io.BytesIO()
    with matplotlib.rc_context(_RC):
        draw(figure).savefig(
            buffer, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None}
        )
    text = buffer.getvalue().decode()
    text = re.sub(r"<!DOCTYPE.*?>\s*", "", text, flags=re.DOTALL)
    text = re.sub(r"\s*<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    used = set(re.findall(r'(?:url\(#|href="#)([^")]+)', text))
    text = re.sub(r' id="([^"]*)"', lambda found: found[0] if found[1] in used else "", text)
    text = "\n".join(line.rstrip() for line in text.splitlines()) + "\n"
    words = f"\n <title>{escape(figure.caption)}</title>\n <desc>{escape(describe(figure))}</desc>"
    return re.sub(r"(<svg [^>]*)>", rf'\1 role="img">{_literal(words)}', text, count=1).encode()


def inline_svg(drawing: bytes, prefix: str) -> str:
    """A drawing of ``render_svg`` as a part of a page: ids start with ``prefix``, ink and ground are the page's."""
    text = drawing.decode()
    text = text[text.index("<svg") :].replace("xlink:href", "href")
    text = re.sub(r'\s+xmlns(:\w+)?="[^"]*"', "", text)
    text = re.sub(r'<svg [^>]*?viewBox="([^"]*)"[^>]*>', r'<svg viewBox="\1" role="img">', text, count=1)
    text = re.sub(r' id="', f' id="{prefix}-', text)
    text = re.sub(r'(url\(#|href="#)', rf"\1{_literal(prefix)}-", text)
    for colour, variable in ((FOREGROUND, "currentColor"), (GRID, "var(--rule)"), (BACKGROUND, "var(--ground)")):
        text = text.replace(colour, variable)
    title, words = f"{prefix}-title", f"{prefix}-words"
    text = text.replace("<title>", f'<title id="{title}">', 1).replace("<desc>", f'<desc id="{words}">', 1)
    return text.replace('role="img"', f'role="img" aria-labelledby="{title}" aria-describedby="{words}"', 1).strip()


def describe(figure: Figure) -> str:
    """What a figure shows, in words."""
    return " ".join(_panel_words(panel) for panel in figure.panels)


def _panel_words(panel: Panel) -> str:
    kinds = {"lines": "Lines", "bars": "Bars", "stacked-bars": "Stacked bars", "scatter": "Points"}
    axes = " over ".join(filter(None, (panel.y_label, panel.x_label)))
    said = "; ".join(_series_words(panel, series) for series in panel.series) or "no data"
    return f"{panel.title}: {kinds.get(panel.kind, 'Points in space')}, {axes}: {said}."


def _series_words(panel: Panel, series: Series) -> str:
    points = [(x, y) for x, y in zip(series.x, series.y, strict=True) if math.isfinite(y)]
    if not points:
        return f"{series.name} no data"
    if panel.kind in ("bars", "stacked-bars") or len(points) == 1:
        return f"{series.name} " + ", ".join(f"{_plain(x)} {y:.4g}" for x, y in points)
    if panel.kind == "lines":
        (first_x, first), (last_x, last) = points[0], points[-1]
        return f"{series.name} from {first:.4g} at {_plain(first_x)} to {last:.4g} at {_plain(last_x)}"
    return f"{series.name}, {len(points)} points"


def _plain(x: float | str) -> str:
    return x if isinstance(x, str) else f"{x:g}"


def _literal(text: str) -> str:
    return text.replace("\\", r"\\")


def figure_rows(panel: Panel) -> Iterator[tuple[str, str, str]]:
    """The numbers of a panel: series, x and y as text."""
    for series in panel.series:
        for i, (x, y) in enumerate(zip(series.x, series.y, strict=True)):
            name = series.labels[i] if series.labels and i < len(series.labels) and series.labels[i] else _plain(x)
            yield series.name, name, f"{y:.4g}" if math.isfinite(y) else "–"
