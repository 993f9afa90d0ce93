"""How a series looks: a colour, marker, dash and hatch for each name, told apart in colour and in grey print.

Colours are Okabe and Ito's palette, darkest first; yellow, which white paper swallows, comes last.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

FOREGROUND: Final = "#1a1a1b"
"""Not quite black, so that a page can find it in a drawing and put its own colour in its place."""
BLUE, VERMILLION, GREEN, ORANGE = "#0072b2", "#d55e00", "#009e73", "#e69f00"
SKY, PURPLE, YELLOW, GREY = "#56b4e9", "#cc79a7", "#f0e442", "#7f7f7f"


@dataclass(frozen=True)
class Style:
    """Colour, marker of points, dash of lines, hatch of bars."""

    colour: str
    marker: str
    dash: str | tuple[int, tuple[float, ...]]
    hatch: str
    hollow: bool = False
    """Open markers, unfilled bars: what is shown for comparison."""


CYCLE: Final = (
    Style(BLUE, "o", "-", ""),
    Style(VERMILLION, "s", "--", "//"),
    Style(GREEN, "D", "-.", ".."),
    Style(ORANGE, "^", (0, (6, 2)), "\\\\"),
    Style(SKY, "v", (0, (1, 1)), "xx"),
    Style(PURPLE, "P", (0, (5, 1, 1, 1)), "++"),
    Style(FOREGROUND, "X", (0, (8, 2, 1, 2)), "||"),
    Style(GREY, "<", (0, (3, 1)), "--"),
    Style(YELLOW, ">", (0, (4, 1, 1, 1)), "oo"),
)


def styles_of(names: Sequence[str]) -> dict[str, Style]:
    """A style for every name, in the order of the palette; layers are an order of their own."""
    if are_layers(names):
        return {name: _in_order(i, len(names)) for i, name in enumerate(names)}
    return {name: CYCLE[i % len(CYCLE)] for i, name in enumerate(names)}


def are_layers(names: Sequence[str]) -> bool:
    """Whether these are the layers of a network, and enough of them to be seen as an order."""
    return len(names) > 3 and all(re.fullmatch(r"layer \d+", name) for name in names)


def _in_order(i: int, count: int) -> Style:
    """Layers are an order: from blue to orange, which in grey is from dark to light."""
    low, high = BLUE, ORANGE
    part = i / max(1, count - 1)
    mixed = [round((1 - part) * int(low[k : k + 2], 16) + part * int(high[k : k + 2], 16)) for k in (1, 3, 5)]
    other = CYCLE[i % len(CYCLE)]
    return Style("#" + "".join(f"{value:02x}" for value in mixed), other.marker, other.dash, other.hatch)
