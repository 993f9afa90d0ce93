"""When a difference is one: ties by standard error.

    error of a - b     (e_a² + e_b²)^½,   e = s / √n over the runs of each
    a > b + by         holds where a - b > by + 2 errors, fails where a - b < by - 2 errors, else it is a tie

A value of one run has no s of its own. It is given that of the same data set's main runs at the same scale, or the
paper's at its place, or the other side's; where there is none of these, means are compared as they are.
"""

import math
import statistics
from collections.abc import Sequence
from typing import Final

from gatefit.paper.catalogue.measures import last_accuracy
from gatefit.paper.outcome import Results, Undecided, Value
from gatefit.paper.scales import DATASETS, MAIN_METHODS, runs

ERRORS: Final = 2.0
"""Standard errors that a difference must exceed: about 95 %."""
_SEEDS: Final = (0, 1, 2)


def error_of(a: Value, b: Value, paper: tuple[Value | None, Value | None] = (None, None)) -> float | None:
    """The standard error of a - b; None where nothing is known of the noise."""
    errors = [_error(value, theirs) for value, theirs in zip((a, b), paper, strict=True)]
    spreads = [value.std for value in (b, a)]
    known = [
        error if error is not None else None if spread is None else spread / math.sqrt(value.count)
        for value, error, spread in zip((a, b), errors, spreads, strict=True)
    ]
    told = [error for error in known if error is not None]
    return math.hypot(*told) if told else None


def _error(value: Value, theirs: Value | None) -> float | None:
    """The standard error of a value; of a single run of which nothing else is known, what the paper's runs spread."""
    own = value.standard_error
    if own is not None or value.count > 1 or theirs is None or value.unit != theirs.unit:
        return own
    return theirs.std


def exceeds(difference: float, error: float | None, by: float = 0.0) -> tuple[bool | None, Undecided]:
    """Whether a difference is more than ``by``; a tie is level at 0, and inconclusive at any other bound."""
    margin = ERRORS * (error or 0.0)
    if difference > by + margin:
        return True, ""
    if difference < by - margin:
        return False, ""
    return None, "inconclusive" if by else "level"


def difference(
    high: Value | None, low: Value | None, paper: tuple[Value | None, Value | None] = (None, None)
) -> Value | None:
    """A difference of accuracies in points, with its standard error."""
    if high is None or low is None:
        return None
    return Value(high.mean - low.mean, unit="pp", error=error_of(high, low, paper))


def single_run_noise(results: Results, dataset: str) -> float | None:
    """s of one run on a data set: the root mean square of the main methods' standard deviations over seeds."""
    if dataset not in DATASETS:
        return None
    spreads = []
    for method in MAIN_METHODS:
        found = (results.peek(config) for config in runs(results.scale, _SEEDS, dataset, method))
        accuracies = [last_accuracy(record) for record in found if record is not None]
        known = [accuracy for accuracy in accuracies if accuracy is not None]
        if len(known) > 1:
            spreads.append(statistics.stdev(known))
    return math.sqrt(_mean_square(spreads)) if spreads else None


def _mean_square(numbers: Sequence[float]) -> float:
    return math.fsum(number * number for number in numbers) / len(numbers)
