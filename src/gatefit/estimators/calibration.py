"""The temperature of probabilities: found when training is over, and used for nothing else.

    P(k)    = softmax_k(score_k / f)          scores as trained, over τ;  the circuit divides its counts by T = f τ

    rows kept apart (early stopping)    f = argmin  -Σ w Σ_k t_k log P(k)  over f = 2^(j / 16)
                                        t_k = (n + 1) / (n + 2) for the row's own class, the rest for others alike
    none                                f = 1 + 100 / n

t_k are Platt's targets: rows that are all predicted right say that errors are rarer than one in n, not that there are
none. The cross-entropy is convex in 1 / f, so a search that halves finds its least value; a grid makes the result the
same on machines whose exponentials differ in the last bit.

Without rows kept apart the training set is all there is, and a network that knows it by heart says nothing about its
errors on others. Training on fewer rows would change the model, and training again on parts of them would take as long
again; so the second rule only says how far scores of so many rows are to be believed (``benchmarks/log_loss.py``).
scikit-learn's ``CalibratedClassifierCV(model, ensemble=False)`` spends the time.
"""

from typing import Final

import numpy as np
from jaxtyping import Float64, Int64

STEPS: Final = 16
"""Candidates from one power of two to the next."""
LEAST, MOST = -6 * STEPS, 8 * STEPS
"""The first and the last candidate."""
CAUTION: Final = 100
"""Rows at which scores are believed half as much as they say."""


def cautious_factor(rows: int) -> float:
    """f where all rows were trained on."""
    return 1 + CAUTION / rows


def fitted_factor(
    scores: Float64[np.ndarray, "samples classes"],
    classes: Int64[np.ndarray, " samples"],
    weights: Float64[np.ndarray, " samples"],
) -> float:
    """f by scores of rows that were not trained on."""
    low, high = LEAST, MOST
    while low < high:  # the least of a convex sequence
        middle = (low + high) // 2
        here, next_ = (cross_entropy(scores, classes, weights, 2.0 ** (j / STEPS)) for j in (middle, middle + 1))
        low, high = (low, middle) if here <= next_ else (middle + 1, high)
    return float(2.0 ** (low / STEPS))


def cross_entropy(
    scores: Float64[np.ndarray, "samples classes"],
    classes: Int64[np.ndarray, " samples"],
    weights: Float64[np.ndarray, " samples"],
    factor: float,
) -> float:
    """The weighted mean cross-entropy of Platt's targets."""
    samples, count = scores.shape
    scaled = (scores - scores.max(axis=1, keepdims=True)) / factor
    total = np.log(np.exp(scaled).sum(axis=1))
    other = 1 / ((samples + 2) * (count - 1))
    own = scaled[np.arange(samples), classes] * ((samples + 1) / (samples + 2) - other)
    return float(np.average(total - own - other * scaled.sum(axis=1), weights=weights))
