"""One panel on one pair of matplotlib axes, by its kind.

lines           points joined by lines, errors as a band
bars            categories with the series side by side, errors as whiskers
stacked-bars    categories with the series on top of each other
scatter         points with labels; sizes make bubbles, the largest of a fixed area
scatter3d       points in space
"""

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any, Final

from gatefit.paper.outcome import Panel, Series
from gatefit.paper.report.labels import Label
from gatefit.view.series_styles import BACKGROUND, FOREGROUND, GRID, Style

Axes = Any
Styles = dict[str, Style]
_LARGEST: Final = {"scatter": 900.0, "scatter3d": 260.0}
"""Area of the largest bubble, in points squared."""


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
