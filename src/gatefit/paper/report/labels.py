"""Labels beside points, each at the place where it covers least of the other labels, the points and the edge.

Places are in eight directions, at four distances from the edge of the point; the farther ones get a thin line.
"""

from typing import Any, Final

from gatefit.view.series_styles import BACKGROUND, FOREGROUND

Label = tuple[str, float]
"""Text, and the radius of the point it belongs to."""
Box = tuple[float, float, float, float]

_DIRECTIONS: Final = ((1, 1), (1, -1), (-1, 1), (-1, -1), (1, 0), (-1, 0), (0, 1), (0, -1))
_GAPS: Final = (1.5, 7.0, 15.0, 25.0)
"""Points between the edge of a point and its label."""
_DIAGONAL: Final = 0.75


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
