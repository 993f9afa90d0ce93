"""How a series looks: a colour, marker, dash and hatch for each name, told apart in colour and in grey print.

Colours are Okabe and Ito's palette, darkest first; yellow, which white paper swallows, comes last.
"""

import re
from dataclasses import dataclass
from typing import Final

FOREGROUND: Final = "#1a1a1b"
GRID: Final = "#d2d2d4"
BACKGROUND: Final = "#fffffe"
"""Not quite black and white, so that a page can find them in a drawing and put its own colours in their place."""

_BLUE, _VERMILLION, _GREEN, _ORANGE = "#0072b2", "#d55e00", "#009e73", "#e69f00"
_SKY, _PURPLE, _YELLOW, _GREY = "#56b4e9", "#cc79a7", "#f0e442", "#7f7f7f"


@dataclass(frozen=True)
class Style:
    """Colour, marker of points, dash of lines, hatch of bars."""

    colour: str
    marker: str
    dash: str | tuple[int, tuple[float, ...]]
    hatch: str
    hollow: bool = False
    """The paper's own values: open markers, dotted lines, unfilled bars."""


METHOD_STYLES: Final[dict[str, Style]] = {
    "Soft-Mix": Style(_VERMILLION, "s", "--", "//"),
    "Gumbel-ST": Style(_ORANGE, "^", "-.", ".."),
    "Hard-ST": Style(_PURPLE, "v", (0, (5, 1, 1, 1, 1, 1)), "xx"),
    "M-STE": Style(_BLUE, "o", (0, (6, 2)), "\\\\"),
    "M-CovJac": Style(_GREEN, "D", "-", ""),
    "IWP": Style(_SKY, "P", (0, (3, 1)), "++"),
    "IWP-STE": Style(_GREY, "X", (0, (1, 1)), "||"),
    "M-free": Style(FOREGROUND, "<", (0, (8, 2, 1, 2)), "--"),
    "IWP-free": Style(_YELLOW, ">", (0, (4, 1, 1, 1)), "oo"),
}
_CYCLE: Final = (
    Style(_BLUE, "o", "-", ""),
    Style(_VERMILLION, "s", "--", "//"),
    Style(_GREEN, "D", "-.", ".."),
    Style(_ORANGE, "^", (0, (6, 2)), "\\\\"),
    Style(_SKY, "v", (0, (1, 1)), "xx"),
    Style(_PURPLE, "P", (0, (5, 1, 1, 1)), "++"),
    Style(FOREGROUND, "X", (0, (8, 2, 1, 2)), "||"),
    Style(_GREY, "<", (0, (3, 1)), "--"),
    Style(_YELLOW, ">", (0, (4, 1, 1, 1)), "oo"),
)


def styles_of(names: list[str]) -> dict[str, Style]:
    """A style for every name: methods have their own, "M-STE (paper)" the one of "M-STE" drawn hollow."""
    if len(names) > 3 and all(re.fullmatch(r"layer \d+", name) for name in names):
        return {name: _in_order(i, len(names)) for i, name in enumerate(names)}
    styles: dict[str, Style] = {}
    methods = {METHOD_STYLES[base].colour for base in map(base_name, names) if base in METHOD_STYLES}
    free = [style for style in _CYCLE if style.colour not in methods] or list(_CYCLE)
    taken = 0
    for name in names:
        base = base_name(name)
        if name.lower() in ("paper", "the paper"):
            style = Style(_GREY, "o", ":", "", hollow=True)
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


def _in_order(i: int, count: int) -> Style:
    """Layers are an order: from blue to orange, which in grey is from dark to light."""
    low, high = _BLUE, _ORANGE
    part = i / max(1, count - 1)
    mixed = [round((1 - part) * int(low[k : k + 2], 16) + part * int(high[k : k + 2], 16)) for k in (1, 3, 5)]
    other = _CYCLE[i % len(_CYCLE)]
    return Style("#" + "".join(f"{value:02x}" for value in mixed), other.marker, other.dash, other.hatch)


def base_name(name: str) -> str:
    """ "M-STE (paper)" and "paper: M-STE" are M-STE's."""
    if name.endswith("(paper)"):
        return name.removesuffix("(paper)").strip()
    if name.lower().startswith("paper"):
        return name[len("paper") :].strip(" :,") or name
    return name
