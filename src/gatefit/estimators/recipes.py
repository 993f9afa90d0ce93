"""What "auto" stands for in a fit: settings that follow from the wiring and from the shape of the table."""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Recipe:
    """How a network is made and trained where the user leaves it open."""

    width: int
    """Gates a layer."""
    depth: int
    votes: str
    steps: int
    batch_size: int
    learning_rate: float
    score_learning_rate: float | None
    """Of a learned wiring's candidates; None: there are none."""
    beta2: float
    schedule: str
    calm: float
    """The readout's temperature in units of √(votes per class)."""
    spread: float
    """A regression readout's range in training, in units of the target's."""


FIXED_WIDTH: Final = 1000
FIXED_GATES_PER_CLASS: Final = 200
"""Gates a layer, and for each class, that a network of fixed wiring has at least; also enough to read every bit."""


def recipe_of(wiring: str, *, rows: int, bits: int, classes: int) -> Recipe:
    """The recipe for a table of so many rows to train on, bits and classes (1 for a value)."""
    if wiring == "learned":
        return _learned(rows, bits, classes)
    return Recipe(
        width=_divided(max(FIXED_WIDTH, FIXED_GATES_PER_CLASS * classes, -(-bits // 2)), classes),
        depth=6,
        votes="last",
        steps=1000,
        batch_size=512,
        learning_rate=0.05,
        score_learning_rate=None,
        beta2=0.999,
        schedule="constant",
        calm=1.0,  # three times the paper's rule of thumb: on small tables calm scores generalise better
        spread=1.0,
    )


def _learned(rows: int, bits: int, classes: int) -> Recipe:
    return Recipe(
        width=_divided(max(500, 100 * classes), classes),
        depth=3,
        votes="all",
        steps=2000,
        batch_size=256,
        learning_rate=0.02,
        score_learning_rate=0.03,
        beta2=0.99,
        schedule="cosine",
        calm=0.45,
        spread=1.0,
    )


def _divided(gates: int, classes: int) -> int:
    """The next multiple of the classes."""
    return -(-gates // classes) * classes
