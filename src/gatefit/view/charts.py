"""Small charts as SVG with their values inside: readable as they are, and by hover or arrow keys where scripts run.

    line_chart     series over a common x, gaps where a value is missing, linear or logarithmic
    area_chart     shares stacked over x
    bar_chart      a value a name; shares stacked where there are several series

No library draws them, so that a page needs no plotting; here is where things are, ``chart.html.jinja`` writes them and
``charts.js`` brings them to life.
"""

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from markupsafe import Markup

from gatefit.backends.templates import render
from gatefit.view.series_styles import Style, styles_of

_WIDTH, _PLOT = 540, 220
"""Width of a chart, and height of its plot, in pixels."""
_LEFT, _RIGHT, _TOP, _BOTTOM = 60, 26, 12, 42
_TURNED: Final = 88
"""Room below the plot for names that are turned."""
_MARKS: Final = 8
"""Markers along a line."""

Values = Sequence[float | None]
Shape = tuple[str, dict[str, str]]
"""A tag of SVG and its attributes."""


@dataclass(frozen=True)
class Chart:
    """What a chart shows."""

    title: str
    x_label: str
    y_label: str
    x: Sequence[float]
    series: Sequence[tuple[str, Values]]
    log: bool = False
    digits: int = 3
    """Significant digits of the values that a reader is told."""


def line_chart(chart: Chart) -> Markup:
    """Lines over a common x; nothing where no value is known."""
    known = [y for _, values in chart.series for y in values if y is not None and _usable(y, chart.log)]
    if not known or not chart.x:
        return Markup()
    frame = _Frame(chart.x, known, log=chart.log)
    styles = styles_of([name for name, _ in chart.series])
    shapes = [shape for name, values in chart.series for shape in _line(frame, chart, values, styles[name])]
    heights = [[frame.y(y) if y is not None and _usable(y, chart.log) else None for y in v] for _, v in chart.series]
    return _figure(chart, frame, shapes, styles, heights, _line_swatch)


def area_chart(chart: Chart) -> Markup:
    """Shares on top of each other over a common x; a missing value counts as none."""
    if len(chart.x) < 2 or not chart.series:
        return Markup()
    frame = _Frame(chart.x, [0.0, max(sum(column) for column in _columns(chart))], flush=True)
    styles = styles_of([name for name, _ in chart.series])
    below = [0.0] * len(chart.x)
    shapes: list[Shape] = []
    heights = []
    for name, values in chart.series:
        above = [low + (value or 0.0) for low, value in zip(below, values, strict=True)]
        edge = [(frame.x(x), frame.y(y)) for x, y in zip(chart.x, above, strict=True)]
        base = [(frame.x(x), frame.y(y)) for x, y in zip(chart.x, below, strict=True)]
        points = " ".join(f"{x:.1f},{y:.1f}" for x, y in [*edge, *reversed(base)])
        shapes.append(("polygon", {"points": points, "fill": styles[name].colour, "stroke": "var(--ground)"}))
        heights.append([y for _, y in edge])
        below = above
    return _figure(chart, frame, shapes, styles, list(heights), _box_swatch)


def bar_chart(chart: Chart, names: Sequence[str]) -> Markup:
    """A bar a name, its series on top of each other; ``chart.x`` is 0, 1, ... under the names."""
    totals = [sum(column) for column in _columns(chart)]
    if not totals:
        return Markup()
    frame = _Frame([-0.6, len(names) - 0.4], [0.0, *totals], flush=True)
    styles = styles_of([name for name, _ in chart.series])
    width = 0.7 * (frame.x(1) - frame.x(0))
    below = [0.0] * len(names)
    shapes: list[Shape] = []
    heights = []
    for name, values in chart.series:
        tops = []
        for i, value in enumerate(values):
            top, low = frame.y(below[i] + (value or 0.0)), frame.y(below[i])
            box = {"x": frame.x(i) - width / 2, "y": top, "width": width, "height": low - top}
            place = {side: f"{pixels:.1f}" for side, pixels in box.items()}
            shapes.append(("rect", {**place, "fill": styles[name].colour, "stroke": "var(--ground)"}))
            tops.append(top)
            below[i] += value or 0.0
        heights.append(tops)
    return _figure(chart, frame, shapes, styles, list(heights), _box_swatch, names)


class _Frame:
    """Where values are in the drawing, and the ticks."""

    def __init__(self, x: Sequence[float], y: Sequence[float], *, log: bool = False, flush: bool = False) -> None:
        self.log = log
        self.low_x, self.high_x = min(x), max(x)
        if self.high_x == self.low_x:
            self.low_x, self.high_x = self.low_x - 0.5, self.high_x + 0.5
        low, high = min(y), max(y)
        if log:
            low, high = math.log10(low), math.log10(high)
        margin = 0.06 * (high - low) or 0.5 * abs(high) or 0.5
        self.low_y, self.high_y = (low, high or 1.0) if flush else (low - margin, high + margin)
        self.x_ticks = _ticks(self.low_x, self.high_x)
        self.y_ticks = _decades(self.low_y, self.high_y) if log else _ticks(self.low_y, self.high_y)

    def x(self, value: float) -> float:
        """Pixels from the left."""
        return _LEFT + (value - self.low_x) / (self.high_x - self.low_x) * (_WIDTH - _LEFT - _RIGHT)

    def y(self, value: float) -> float:
        """Pixels from the top."""
        value = math.log10(value) if self.log else value
        return _TOP + _PLOT - (value - self.low_y) / (self.high_y - self.low_y) * _PLOT


def _ticks(low: float, high: float, about: int = 6) -> list[float]:
    step = 10 ** math.floor(math.log10((high - low) / about))
    step *= next(factor for factor in (1, 2, 2.5, 5, 10) if (high - low) / (factor * step) <= about)
    first = math.ceil(low / step - 1e-9)
    return [round(k * step, 12) for k in range(first, math.floor(high / step + 1e-9) + 1)]


def _decades(low: float, high: float) -> list[float]:
    """Powers of ten, with 2 and 5 between them where they are few."""
    factors = (1, 2, 5) if high - low < 2.5 else (1,)
    places = [f * 10.0**k for k in range(math.floor(low), math.ceil(high) + 1) for f in factors]
    return [place for place in places if low <= math.log10(place) <= high]


def _columns(chart: Chart) -> list[tuple[float, ...]]:
    return [tuple(value or 0.0 for value in column) for column in zip(*(v for _, v in chart.series), strict=True)]


def _usable(value: float, log: bool) -> bool:
    return math.isfinite(value) and (value > 0 or not log)


def _line(frame: _Frame, chart: Chart, values: Values, style: Style) -> list[Shape]:
    pieces: list[list[tuple[float, float]]] = [[]]
    for x, y in zip(chart.x, values, strict=True):
        if y is not None and _usable(y, chart.log):
            pieces[-1].append((frame.x(x), frame.y(y)))
        elif pieces[-1]:
            pieces.append([])
    points = [point for piece in pieces for point in piece]
    path = " ".join("M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in piece) for piece in pieces if piece)
    every = max(1, math.ceil(len(points) / _MARKS))
    line = {"d": path, "fill": "none", "stroke": style.colour, "stroke-width": "1.8", **_dash(style)}
    return [("path", line), *(marker(x, y, style) for x, y in points[::every])]


def _dash(style: Style) -> dict[str, str]:
    named = {"-": "", "--": "7 4", "-.": "8 3 2 3", ":": "2 3"}
    if isinstance(style.dash, str):
        lengths = named[style.dash]
    else:
        lengths = " ".join(f"{1.8 * length:g}" for length in style.dash[1])
    return {"stroke-dasharray": lengths} if lengths else {}


def marker(x: float, y: float, style: Style) -> Shape:
    """A mark of the style's shape."""
    corners = {
        "s": "-3,-3 3,-3 3,3 -3,3",
        "D": "0,-4.2 4.2,0 0,4.2 -4.2,0",
        "^": "0,-4 4,3 -4,3",
        "v": "0,4 4,-3 -4,-3",
        "<": "-4,0 3,-4 3,4",
        ">": "4,0 -3,-4 -3,4",
        "P": "-1.5,-4 1.5,-4 1.5,-1.5 4,-1.5 4,1.5 1.5,1.5 1.5,4 -1.5,4 -1.5,1.5 -4,1.5 -4,-1.5 -1.5,-1.5",
        "X": "-4,-2.5 -2.5,-4 0,-1.5 2.5,-4 4,-2.5 1.5,0 4,2.5 2.5,4 0,1.5 -2.5,4 -4,2.5 -1.5,0",
    }
    if style.marker not in corners:
        return "circle", {"cx": f"{x:.1f}", "cy": f"{y:.1f}", "r": "3.2", "fill": style.colour}
    place = f"translate({x:.1f} {y:.1f})"
    return "polygon", {"transform": place, "points": corners[style.marker], "fill": style.colour}


def _line_swatch(style: Style) -> tuple[int, list[Shape]]:
    line = {"d": "M1 6H33", "stroke": style.colour, "stroke-width": "2", **_dash(style)}
    return 34, [("path", line), marker(17, 6, style)]


def _box_swatch(style: Style) -> tuple[int, list[Shape]]:
    return 14, [("rect", {"width": "14", "height": "12", "fill": style.colour})]


def short_number(value: float | None, digits: int = 3) -> str:
    """A value in words."""
    if value is None or not math.isfinite(value):
        return "–"
    if value == int(value) and abs(value) < 1e9:
        return f"{int(value):,}"
    return f"{value:.{digits}g}" if abs(value) < 10**digits else f"{value:,.0f}"


def _figure(
    chart: Chart,
    frame: _Frame,
    shapes: Sequence[Shape],
    styles: dict[str, Style],
    heights: Sequence[Sequence[float | None]],
    swatch: Callable[[Style], tuple[int, list[Shape]]],
    names: Sequence[str] | None = None,
) -> Markup:
    """Axes, legend and values around a drawing."""
    places = [float(i) for i in range(len(names))] if names is not None else list(chart.x)
    titles = list(names) if names is not None else [f"{chart.x_label} {short_number(x, 6)}" for x in chart.x]
    height = _TOP + _PLOT + (_TURNED if _crowded(names) else _BOTTOM)
    content = {
        "top": _TOP,
        "bottom": _TOP + _PLOT,
        "x": [round(frame.x(x), 1) for x in places],
        "at": titles,
        "series": [
            {
                "name": name,
                "color": styles[name].colour,
                "y": [None if y is None else round(y, 1) for y in tops],
                "text": [short_number(value, chart.digits) for value in values],
            }
            for (name, values), tops in zip(chart.series, heights, strict=True)
        ],
    }
    ends = "; ".join(f"{name} {short_number(_last(values), chart.digits)}" for name, values in chart.series)
    words = f"{chart.title}: {chart.y_label} by {chart.x_label}. Last values: {ends}."
    drawn = render(
        "gatefit.view",
        "chart.html.jinja",
        title=chart.title,
        words=words,
        data=json.dumps(content, separators=(",", ":"), ensure_ascii=False),
        width=_WIDTH,
        height=height,
        axes=_axes(chart, frame, names),
        shapes=shapes,
        swatches=[(name, *swatch(style)) for name, style in styles.items()],
    )
    return Markup(drawn)


def _crowded(names: Sequence[str] | None) -> bool:
    """Whether names under bars must be turned to fit."""
    return names is not None and sum(map(len, names)) > 60


def _last(values: Values) -> float | None:
    return next((value for value in reversed(values) if value is not None), None)


def _axes(chart: Chart, frame: _Frame, names: Sequence[str] | None) -> list[tuple[str, dict[str, str]]]:
    """Text and where it stands; without text, a line."""
    right, low = _WIDTH - _RIGHT, _TOP + _PLOT
    parts = []
    for y in frame.y_ticks:
        place = frame.y(y)
        parts.append(("", {"class": "grid", "d": f"M{_LEFT} {place:.1f}H{right}"}))
        parts.append((short_number(y, 4), {"x": f"{_LEFT - 7}", "y": f"{place + 4:.1f}", "text-anchor": "end"}))
    if names is None:
        ticks = [(frame.x(x), short_number(x, 6)) for x in frame.x_ticks]
    else:
        ticks = [(frame.x(i), name) for i, name in enumerate(names)]
    crowded = _crowded(names)
    for place, name in ticks:
        turn = {"transform": f"rotate(-38 {place:.1f} {low + 13})"} if crowded else {}
        anchor = "end" if crowded else "middle"
        parts.append((name, {"x": f"{place:.1f}", "y": f"{low + 15}", "text-anchor": anchor, **turn}))
    parts.append(("", {"class": "axis", "d": f"M{_LEFT} {_TOP}V{low}H{right}"}))
    if not crowded:
        middle = f"{(_LEFT + right) / 2}"
        parts.append((chart.x_label, {"x": middle, "y": f"{low + _BOTTOM - 6}", "text-anchor": "middle"}))
    middle = f"{(_TOP + low) / 2}"
    upward = {"x": "13", "y": middle, "text-anchor": "middle", "transform": f"rotate(-90 13 {middle})"}
    return [*parts, (chart.y_label, upward)]
