"""Names that a report gives to its parts: anchors and files."""

import re

from gatefit.paper.outcome import Outcome


def slug(text: str) -> str:
    """Letters, digits and dashes: for anchors and file names."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def figure_names(outcome: Outcome) -> list[str]:
    """File names of an outcome's figures."""
    return [f"{slug(outcome.label)}-{outcome.scale}-{i}.svg" for i in range(1, len(outcome.figures) + 1)]


def is_figure_of(name: str, label: str) -> bool:
    """Whether a file is called as a figure of ``label`` is."""
    return re.fullmatch(rf"{slug(label)}-(?:paper|small|tiny)-\d+\.svg", name) is not None
