"""What "auto" stands for in a fit: settings that follow from the shape of the table (``benchmarks/tables.py``).

wiring        learned; fixed for values of heavy tails, where it would learn what marks a few extreme samples
thresholds    many, where there are samples to tell neighbouring ones apart and few columns
temperature   2.8 √votes / classes: two classes that are hard to tell want a calm vote, many classes a sharp one
steps         20 √samples: the more samples, the later a network begins to learn them by heart
width         twice as large from 3,000 samples on, and again from 100,000: what few gates cannot tell apart, more can
"""

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Num

HEAVY: Final = 10.0
"""Excess kurtosis of a value from which its tails are heavy; of an exponential variable it is 6, of a normal one 0."""
FIXED_WIDTH, FIXED_GATES_PER_CLASS = 1000, 200
"""Gates a layer, and for each class, that a network of fixed wiring has at least; also enough to read every bit."""
LEARNED_WIDTH, LEARNED_GATES_PER_CLASS, MANY_ROWS = 500, 100, (3_000, 100_000)
"""The same of a learned wiring; from each of these numbers of samples on both are twice as large."""
FEWEST_THRESHOLDS, MOST_THRESHOLDS, MOST_BITS = 15, 47, 5_000
"""Thresholds a column, and the bits that columns of numbers should not have more of in all for it."""
FEWEST_STEPS, MOST_STEPS = 300, 6_000


@dataclass(frozen=True)
class Recipe:
    """How a network is made and trained where the user leaves it open."""

    width: int
    """Gates a layer."""
    depth: int
    votes: str
    steps: int
    learning_rate: float
    score_learning_rate: float | None
    """Of a learned wiring's candidates; None: there are none."""
    beta2: float
    schedule: str
    calm: float
    """The readout's temperature in units of √(votes per class)."""
    calibrated: bool
    """Whether class scores get back the means that they had before gates were snapped."""
    spread: float = 1.0
    """A regression readout's range in training, in units of the target's."""


def wiring_of(wiring: str, targets: Num[np.ndarray, " samples"]) -> str:
    """The network's name for an estimator's wiring."""
    if wiring == "auto":
        wiring = "fixed" if targets.dtype.kind == "f" and excess_kurtosis(targets) > HEAVY else "learned"
    return "auto" if wiring == "fixed" else wiring


def excess_kurtosis(values: Num[np.ndarray, " samples"]) -> float:
    """m₄ / m₂² - 3; of a constant 0."""
    centred = values.astype(np.float64) - values.mean()
    spread = float(np.abs(centred).max(initial=0.0))
    if spread == 0:
        return 0.0
    squares = (centred / spread) ** 2
    return float((squares**2).mean() / squares.mean() ** 2 - 3)


def thresholds_of(wiring: str, rows: int, columns: int) -> int:
    """Thresholds a column of numbers."""
    if wiring != "learned":
        return FEWEST_THRESHOLDS
    return max(FEWEST_THRESHOLDS, min(MOST_THRESHOLDS, rows // 20, MOST_BITS // columns))


def batch_size_of(wiring: str) -> int:
    """Samples a step."""
    return 256 if wiring == "learned" else 512


def recipe_of(wiring: str, *, rows: int, bits: int, classes: int) -> Recipe:
    """The recipe for a table of so many rows to train on, bits and classes (1 for a value)."""
    if wiring == "learned":
        return Recipe(
            width=_divided(
                max(LEARNED_WIDTH, LEARNED_GATES_PER_CLASS * classes) * 2 ** sum(rows >= many for many in MANY_ROWS),
                classes,
            ),
            depth=3,
            votes="all",
            steps=min(MOST_STEPS, max(FEWEST_STEPS, round(20 * math.sqrt(rows)))),
            learning_rate=0.02,
            score_learning_rate=0.03,
            beta2=0.99,
            schedule="cosine",
            calm=2.8 / math.sqrt(classes),
            calibrated=True,
        )
    return Recipe(
        width=_divided(max(FIXED_WIDTH, FIXED_GATES_PER_CLASS * classes, -(-bits // 2)), classes),
        depth=6,
        votes="last",
        steps=1000,
        learning_rate=0.05,
        score_learning_rate=None,
        beta2=0.999,
        schedule="constant",
        calm=1.0,
        calibrated=False,
    )


def _divided(gates: int, classes: int) -> int:
    """The next multiple of the classes."""
    return -(-gates // classes) * classes
