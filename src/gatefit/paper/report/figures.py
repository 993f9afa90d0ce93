"""Figures as SVG: the same bytes for the same figure, so that a report made again shows no difference.

Text stays text (smaller by a half than outlines, and searchable); no date, no version, ids from a fixed salt.
``inline_svg`` is the form for an HTML page: no header, its own ids, the page's colours in light and dark.

A panel is drawn on one pair of matplotlib axes, by its kind:

    lines           points joined by lines, errors as a band
    bars            categories with the series side by side, errors as whiskers
    stacked-bars    categories with the series on top of each other
    scatter         points with labels; sizes make bubbles, the largest of a fixed area
    scatter3d       points in space

A method has one colour, marker, dash and hatch in every figure; the paper's own values are drawn hollow. Labels stand
beside points, each at the place where it covers least of the other labels, the points and the edge: in one of eight
directions, at one of four distances from the edge of the point; the farther ones get a thin line.
"""

import io
import itertools
import math
import re
from collections.abc import Callable, Iterator, Sequence
from html import escape
from typing import Any, Final

from gatefit._requires import require
from gatefit.paper.outcome import Figure, Panel, Series
from gatefit.view.series_styles import (
    BLUE,
    CYCLE,
    FOREGROUND,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    SKY,
    VERMILLION,
    YELLOW,
    Style,
    are_layers,
    styles_of,
)

GRID: Final = "#d2d2d4"
BACKGROUND: Final = "#fffffe"
"""Not quite white, as ``FOREGROUND`` is not quite black: a page finds them and puts its own colours in their place."""
Axes = Any
Styles = dict[str, Style]
_LARGEST: Final = {"scatter": 900.0, "scatter3d": 260.0}
"""Area of the largest bubble, in points squared."""
Label = tuple[str, float]
"""Text, and the radius of the point it belongs to."""
Box = tuple[float, float, float, float]

_DIRECTIONS: Final = ((1, 1), (1, -1), (-1, 1), (-1, -1), (1, 0), (-1, 0), (0, 1), (0, -1))
_GAPS: Final = (1.5, 7.0, 15.0, 25.0)
"""Points between the edge of a point and its label."""
_DIAGONAL: Final = 0.75

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
    styles = paper_styles(names)
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


METHOD_STYLES: Final[dict[str, Style]] = {
    "Soft-Mix": Style(VERMILLION, "s", "--", "//"),
    "Gumbel-ST": Style(ORANGE, "^", "-.", ".."),
    "Hard-ST": Style(PURPLE, "v", (0, (5, 1, 1, 1, 1, 1)), "xx"),
    "M-STE": Style(BLUE, "o", (0, (6, 2)), "\\\\"),
    "M-CovJac": Style(GREEN, "D", "-", ""),
    "IWP": Style(SKY, "P", (0, (3, 1)), "++"),
    "IWP-STE": Style(GREY, "X", (0, (1, 1)), "||"),
    "M-free": Style(FOREGROUND, "<", (0, (8, 2, 1, 2)), "--"),
    "IWP-free": Style(YELLOW, ">", (0, (4, 1, 1, 1)), "oo"),
}


def paper_styles(names: list[str]) -> dict[str, Style]:
    """A style for every name: methods have their own, "M-STE (paper)" the one of "M-STE" drawn hollow."""
    if are_layers(names):
        return styles_of(names)
    styles: dict[str, Style] = {}
    methods = {METHOD_STYLES[base].colour for base in map(base_name, names) if base in METHOD_STYLES}
    free = [style for style in CYCLE if style.colour not in methods] or list(CYCLE)
    taken = 0
    for name in names:
        base = base_name(name)
        if name.lower() in ("paper", "the paper"):
            style = Style(GREY, "o", ":", "", hollow=True)
        elif base in METHOD_STYLES:
            style = METHOD_STYLES[base]
        elif base != name and base in styles:
            style = styles[base]
        else:
            style = free[taken % len(free)]
            taken += 1
        if base != name:
            style = Style(style.colour, style.marker, ":", style.hatch, hollow=True)
        styles[name] = style
    return styles


def base_name(name: str) -> str:
    """ "M-STE (paper)" and "paper: M-STE" are M-STE's."""
    if name.endswith("(paper)"):
        return name.removesuffix("(paper)").strip()
    if name.lower().startswith("paper"):
        return name[len("paper") :].strip(" :,") or name
    return name


def draw_panel(axes: Axes, panel: Panel, styles: Styles) -> None:
    """Draw a panel, its title, labels and scales."""
    _KINDS[panel.kind](axes, panel, styles)
    axes.set_title(panel.title)
    axes.set_xlabel(panel.x_label)
    axes.set_ylabel(panel.y_label)
    if panel.kind == "scatter3d":
        axes.set_zlabel(panel.z_label)
        return
    if _numeric(panel) and panel.kind in ("lines", "scatter"):
        if panel.x_scale == "log":
            axes.set_xscale("log", nonpositive="mask")
        _plain_ticks(axes, panel)
    if panel.y_scale == "log":
        axes.set_yscale("log", nonpositive="mask")
        _plain_decades(axes, panel)
    axes.grid(True, axis="both" if panel.kind in ("lines", "scatter") else "y", color=GRID, linewidth=0.6)
    axes.set_axisbelow(True)


def _plain_ticks(axes: Axes, panel: Panel) -> None:
    """A few depths or widths are their own ticks; thousands are written with a k."""
    places = sorted({float(x) for series in panel.series for x in series.x if isinstance(x, int | float)})
    log = panel.x_scale == "log"
    if log:
        places = [math.log(x) for x in places if x > 0]
    apart = min((b - a for a, b in itertools.pairwise(places)), default=0.0)
    if panel.kind == "lines" and 2 <= len(places) <= 8 and apart >= (places[-1] - places[0]) / 12:
        ticks = [round(math.exp(x), 9) for x in places] if log else places
        axes.set_xticks(ticks, labels=[_thousands(x) for x in ticks])
        axes.minorticks_off()
    elif not log and places and max(map(abs, places)) >= 10_000:
        axes.xaxis.set_major_formatter(lambda x, _: _thousands(x))


def _plain_decades(axes: Axes, panel: Panel) -> None:
    """Within two decades, 8 reads better than 8 × 10⁰."""
    values = [y for series in panel.series for y in series.y if math.isfinite(y) and y > 0]
    if values and max(values) < 100 * min(values) and max(values) < 10_000 and min(values) > 1e-3:
        axes.yaxis.set_major_formatter(lambda y, _: f"{y:g}")
        few = "23456789" if max(values) < 6 * min(values) else "25"
        axes.yaxis.set_minor_formatter(lambda y, _: f"{y:g}" if f"{y:.0e}"[0] in few else "")


def _thousands(x: float) -> str:
    return f"{x:g}" if abs(x) < 1000 else f"{x / 1000:g}k"


def _numeric(panel: Panel) -> bool:
    return not any(isinstance(x, str) for series in panel.series for x in series.x)


def _categories(panel: Panel) -> list[str]:
    return list(dict.fromkeys(str(x) for series in panel.series for x in series.x))


def _places(panel: Panel, series: Series) -> list[float]:
    """x as numbers: names count from 0 in the order in which they first appear."""
    if _numeric(panel):
        return [float(x) for x in series.x]
    order = _categories(panel)
    return [float(order.index(str(x))) for x in series.x]


def _name_ticks(axes: Axes, names: Sequence[str]) -> None:
    crowded = sum(map(len, names)) > 28 or max(map(len, names), default=0) > 12
    extra: dict[str, Any] = {"rotation": 30, "ha": "right", "rotation_mode": "anchor"} if crowded else {}
    axes.set_xticks(range(len(names)), labels=list(names), **extra)


def _lines(axes: Axes, panel: Panel, styles: Styles) -> None:
    for series in panel.series:
        style = styles[series.name]
        places = _places(panel, series)
        every = max(1, len(places) // 12)
        axes.plot(
            places,
            series.y,
            color=style.colour,
            linestyle=style.dash,
            marker=style.marker,
            markevery=every,
            markerfacecolor=BACKGROUND if style.hollow else style.colour,
            label=series.name,
        )
        if series.error is not None:
            low = [y - e for y, e in zip(series.y, series.error, strict=True)]
            high = [y + e for y, e in zip(series.y, series.error, strict=True)]
            axes.fill_between(places, low, high, color=style.colour, alpha=0.18, linewidth=0)
    if not _numeric(panel):
        _name_ticks(axes, _categories(panel))


def _bars(axes: Axes, panel: Panel, styles: Styles) -> None:
    names = _categories(panel)
    width = 0.8 / max(1, len(panel.series))
    for k, series in enumerate(panel.series):
        shift = (k - (len(panel.series) - 1) / 2) * width
        places = [names.index(str(x)) + shift for x in series.x]
        axes.bar(places, series.y, width, label=series.name, **_fill(styles[series.name]))
        if series.error is not None:
            axes.errorbar(places, series.y, series.error, fmt="none", ecolor=FOREGROUND, elinewidth=0.9, capsize=2)
    _name_ticks(axes, names)


def _stacked(axes: Axes, panel: Panel, styles: Styles) -> None:
    names = _categories(panel)
    bottom = [0.0] * len(names)
    for series in panel.series:
        heights = [0.0] * len(names)
        for x, y in zip(series.x, series.y, strict=True):
            heights[names.index(str(x))] = y if math.isfinite(y) else 0.0
        axes.bar(range(len(names)), heights, 0.75, bottom=bottom, label=series.name, **_fill(styles[series.name]))
        bottom = [low + height for low, height in zip(bottom, heights, strict=True)]
    _name_ticks(axes, names)


def _fill(style: Style) -> dict[str, Any]:
    inside = BACKGROUND if style.hollow else style.colour
    return {"facecolor": inside, "edgecolor": FOREGROUND, "linewidth": 0.6, "hatch": style.hatch}


def _sizes(panel: Panel, series: Series) -> list[float]:
    if series.size is None:
        return [36.0] * len(series.y)
    largest = max((size for other in panel.series for size in other.size or () if math.isfinite(size)), default=0.0)
    return [
        max(4.0, _LARGEST[panel.kind] * size / largest) if size > 0 and largest > 0 else 0.0 for size in series.size
    ]


def _scatter(axes: Axes, panel: Panel, styles: Styles) -> None:
    labels: dict[tuple[float, ...], Label] = {}
    for series in panel.series:
        style, places = styles[series.name], _places(panel, series)
        bubbles = series.size is not None
        axes.scatter(
            places,
            series.y,
            s=_sizes(panel, series),
            marker="o" if bubbles else style.marker,
            facecolors="none" if style.hollow else style.colour,
            edgecolors=style.colour if style.hollow else FOREGROUND,
            linewidths=0.6,
            alpha=0.75 if bubbles else 1.0,
            label=series.name,
        )
        if series.error is not None:
            axes.errorbar(places, series.y, series.error, fmt="none", ecolor=style.colour, elinewidth=0.9, capsize=2)
        _remember(labels, series, _sizes(panel, series), places, series.y)
    axes.margins(0.15)
    if not _numeric(panel):
        _name_ticks(axes, _categories(panel))
    axes.gatefit_labels = labels


def _scatter3d(axes: Axes, panel: Panel, styles: Styles) -> None:
    from matplotlib.ticker import MaxNLocator

    labels: dict[tuple[float, ...], Label] = {}
    for link in panel.links:
        axes.plot(*zip(*link, strict=True), color=FOREGROUND, alpha=0.35, linewidth=0.7)
    for series in panel.series:
        style, places = styles[series.name], _places(panel, series)
        depth = series.z or (0.0,) * len(series.y)
        axes.scatter(
            places,
            series.y,
            depth,
            s=_sizes(panel, series),
            marker=style.marker if series.size is None else "o",
            color=style.colour,
            edgecolors=FOREGROUND,
            linewidths=0.5,
            alpha=1.0 if series.size is None else 0.8,
            depthshade=False,
            label=series.name,
        )
        _remember(labels, series, _sizes(panel, series), places, series.y, depth)
    for axis in (axes.xaxis, axes.yaxis, axes.zaxis):
        axis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))
        axis.set_pane_color(BACKGROUND)
        axis._axinfo["grid"].update(color=GRID, linewidth=0.5)
    axes.view_init(elev=16, azim=-62)
    axes.set_box_aspect((1, 1, 1), zoom=0.9)
    axes.gatefit_labels = labels


def _remember(
    labels: dict[tuple[float, ...], Label], series: Series, sizes: list[float], *coordinates: Sequence[float]
) -> None:
    """Points that share a place share a label, which keeps clear of the larger of them."""
    for label, size, *place in zip(series.labels or (), sizes, *coordinates, strict=False):
        if not label or not all(map(math.isfinite, place)):
            continue
        radius = math.sqrt(size / math.pi)
        known, reach = labels.get(tuple(place), ("", 0.0))
        text = label if known in ("", label) else f"{known}, {label}"
        labels[tuple(place)] = (text, max(reach, radius))


_KINDS: Final[dict[str, Callable[[Axes, Panel, Styles], None]]] = {
    "lines": _lines,
    "bars": _bars,
    "stacked-bars": _stacked,
    "scatter": _scatter,
    "scatter3d": _scatter3d,
}


def place_labels(axes: Any, labels: dict[tuple[float, ...], Label]) -> None:
    """Write ``labels`` beside their points, given in two or three coordinates; the figure has been laid out."""
    if not labels:
        return
    flat = {_projected(axes, place): label for place, label in labels.items()}
    renderer = axes.figure.canvas.get_renderer()
    frame = axes.get_window_extent(renderer)
    edges = (frame.x0, frame.y0, frame.x1, frame.y1)
    scale = axes.figure.dpi / 72
    centres = {place: axes.transData.transform(place) for place in flat}
    taken = []
    for place, (_, radius) in flat.items():
        (x, y), r = centres[place], 0.8 * radius * scale
        taken.append((x - r, y - r, x + r, y + r))
    for place, (words, radius) in sorted(flat.items()):
        ground = {"facecolor": BACKGROUND, "edgecolor": "none", "alpha": 0.75, "pad": 0.4}
        text = axes.annotate(words, place, xytext=(0, 0), textcoords="offset points", fontsize=7.5, bbox=ground)
        extent = text.get_window_extent(renderer)
        _, gap, offset, direction, box = min(
            (
                _candidate(centres[place], radius, gap, direction, (extent.width, extent.height), scale, taken, edges)
                for gap in _GAPS
                for direction in _DIRECTIONS
            ),
            key=lambda candidate: (round(candidate[0], 3), candidate[1]),
        )
        taken.append(box)
        text.set_position(offset)
        text.set_horizontalalignment({1: "left", 0: "center", -1: "right"}[direction[0]])
        text.set_verticalalignment({1: "bottom", 0: "center", -1: "top"}[direction[1]])
        if gap > _GAPS[0]:
            arrow = {"arrowstyle": "-", "color": FOREGROUND, "linewidth": 0.5, "shrinkA": 0, "shrinkB": radius}
            axes.annotate("", place, xytext=offset, textcoords="offset points", arrowprops=arrow)


def _candidate(
    centre: tuple[float, float],
    radius: float,
    gap: float,
    direction: tuple[int, int],
    size: tuple[float, float],
    scale: float,
    taken: list[Box],
    edges: Box,
) -> tuple[float, float, tuple[float, float], tuple[int, int], Box]:
    """What a place costs in covered area, with everything that is needed to use it."""
    right, up = direction
    reach = (radius + gap) * (_DIAGONAL if right and up else 1.0)
    offset = (right * reach, up * reach)
    left = centre[0] + offset[0] * scale - size[0] * (1 - right) / 2
    low = centre[1] + offset[1] * scale - size[1] * (1 - up) / 2
    box = (left, low, left + size[0], low + size[1])
    outside = size[0] * size[1] - _overlap(box, edges)
    # A label far from its point is a cost too, in the same coin.
    cost = sum(_overlap(box, other) for other in taken) + 4 * outside + 2.0 * gap * scale
    return cost, gap, offset, direction, box


def _projected(axes: Any, place: tuple[float, ...]) -> tuple[float, float]:
    if len(place) == 2:
        return place[0], place[1]
    from mpl_toolkits.mplot3d.proj3d import proj_transform  # type: ignore[import-untyped]

    x, y, _ = proj_transform(*place, axes.get_proj())
    return float(x), float(y)


def _overlap(one: Box, other: Box) -> float:
    width = min(one[2], other[2]) - max(one[0], other[0])
    height = min(one[3], other[3]) - max(one[1], other[1])
    return width * height if width > 0 and height > 0 else 0.0
