"""The paper's statistics (app. significance, width-scaling, interaction-demand), computed by scipy.

    mean_and_std    x̄ = Σ x / n,   s = (Σ (x - x̄)² / (n - 1))^½;   of a population σ = (Σ (x - x̄)² / n)^½
    paired_t_test   t = d̄ / (s_d / √n),   d = a - b,   n - 1 degrees of freedom;   p two-sided
    sign_test       p = P(X >= wins),   X ~ Binomial(wins + losses, 1/2);   two-sided: twice that of the larger side
    pearson         r = Σ (x - x̄)(y - ȳ) / (Σ (x - x̄)² Σ (y - ȳ)²)^½
    power_law       A(k) = 100 - B k^-α:   log(100 - A) = log B - α log k  by least squares

scipy is loaded where it is used; nothing here needs torch.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class TTest:
    """A paired t-test: ``difference`` is the mean of a - b, ``p`` two-sided."""

    t: float
    p: float
    dof: int
    difference: float


@dataclass(frozen=True)
class SignTest:
    """A sign test of "better as often as worse".

    ``one_sided`` is against "better more often": the paper's 2⁻⁷ for seven wins of seven. ``two_sided`` is against
    "not as often", and the one to report where the direction was not fixed beforehand.
    """

    wins: int
    losses: int
    one_sided: float
    two_sided: float


@dataclass(frozen=True)
class Correlation:
    """Pearson's r of ``count`` pairs, with the two-sided p of "no correlation" under normality."""

    r: float
    p: float
    count: int


@dataclass(frozen=True)
class PowerLaw:
    """A(k) = 100 - B k^-α in per cent; ``scale`` is B.

    ``r_squared`` is that of log error against log width; None where it says nothing: two widths, or equal errors.
    """

    alpha: float
    scale: float
    r_squared: float | None

    def error(self, width: float) -> float:
        """B k^-α, in per cent."""
        if not 0 < width < math.inf:
            raise ValueError(f"a width is a finite number > 0, got {width}")
        return float(self.scale * width**-self.alpha)

    def predict(self, width: float) -> float:
        """A(k), in per cent."""
        return 100 - self.error(width)

    def width_for_error(self, error: float) -> float:
        """k = (B / error)^(1/α): where the law reaches an error of ``error`` per cent."""
        if not 0 < error < math.inf:
            raise ValueError(f"an error is a finite number > 0 of per cent, got {error}")
        if self.alpha <= 0:
            raise ValueError(
                f"the error does not fall with width (alpha = {self.alpha:.3g}), so no width reaches {error} %"
            )
        return float((self.scale / error) ** (1 / self.alpha))


def mean_and_std(values: Sequence[float], *, population: bool = False) -> tuple[float, float | None]:
    """Mean and sample (or population) standard deviation over seeds; one seed has no spread (None)."""
    x = _numbers("values", values, least=1)
    return float(x.mean()), float(x.std(ddof=0 if population else 1)) if len(x) > 1 else None


def paired_t_test(a: Sequence[float], b: Sequence[float]) -> TTest:
    """Whether ``a`` and ``b`` differ on average, pair by pair (the same seed or data set in the same place)."""
    from scipy import stats

    x, y = _pairs("a", a, "b", b, least=2)
    differences = x - y
    if np.ptp(differences) <= _rounding(x, y):
        raise ValueError(
            f"all {len(x)} differences are {float(differences[0]):.6g}: without spread there is no t; use sign_test"
        )
    found = stats.ttest_rel(x, y)
    return TTest(float(found.statistic), float(found.pvalue), len(x) - 1, float(differences.mean()))


def sign_test(wins: int, losses: int) -> SignTest:
    """Whether winning is more than chance; ties are left out before."""
    from scipy import stats

    for name, count in (("wins", wins), ("losses", losses)):
        if isinstance(count, bool) or not isinstance(count, int) or count < 0:
            raise ValueError(f"{name} must be a whole number >= 0, got {count!r}")
    if wins + losses == 0:
        raise ValueError("a sign test needs at least one comparison that is not a tie")

    def p(alternative: str) -> float:
        return float(stats.binomtest(wins, wins + losses, 0.5, alternative=alternative).pvalue)

    return SignTest(wins, losses, p("greater"), p("two-sided"))


def pearson(x: Sequence[float], y: Sequence[float]) -> Correlation:
    """How well y is a straight line over x."""
    from scipy import stats

    first, second = _pairs("x", x, "y", y, least=3)
    for name, values in (("x", first), ("y", second)):
        if np.ptp(values) <= _rounding(values):
            raise ValueError(f"{name} is {float(values[0]):.6g} throughout: a constant correlates with nothing")
    found = stats.pearsonr(first, second)
    return Correlation(float(found.statistic), float(found.pvalue), len(first))


def power_law(widths: Sequence[float], accuracies: Sequence[float]) -> PowerLaw:
    """The law that fits accuracies in per cent over widths, by log-linear regression."""
    from scipy import stats

    k, accuracy = _pairs("widths", widths, "accuracies", accuracies, least=2)
    if k.min() <= 0:
        raise ValueError(f"widths must be > 0, got {float(k.min()):g}")
    if accuracy.max() >= 100:
        raise ValueError(
            f"accuracies must be below 100 %, got {float(accuracy.max()):g}: no error, no logarithm; leave it out"
        )
    different = len(np.unique(k))
    if different < 2:
        raise ValueError(f"a power law needs at least two different widths, got {float(k[0]):g} only")
    errors = np.log(100 - accuracy)
    fit = stats.linregress(np.log(k), errors)
    meaningful = different > 2 and np.ptp(errors) > _rounding(errors)
    return PowerLaw(-float(fit.slope), math.exp(fit.intercept), float(fit.rvalue) ** 2 if meaningful else None)


def _numbers(name: str, values: Sequence[float], *, least: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or len(array) < least:
        needed = "one number" if least == 1 else f"{least} numbers"
        raise ValueError(f"{name} must hold at least {needed}, got shape {array.shape}")
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite numbers, got {values!r}")
    return array


def _pairs(
    first: str, x: Sequence[float], second: str, y: Sequence[float], *, least: int
) -> tuple[np.ndarray[Any, np.dtype[np.float64]], np.ndarray[Any, np.dtype[np.float64]]]:
    if len(x) != len(y):
        raise ValueError(f"{first} and {second} must be pairs, got {len(x)} and {len(y)} numbers")
    return _numbers(first, x, least=least), _numbers(second, y, least=least)


def _rounding(*arrays: np.ndarray[Any, np.dtype[np.float64]]) -> float:
    """Below this a difference between the numbers is rounding, not spread."""
    return 1e-12 * max(float(np.abs(array).max()) for array in arrays)
