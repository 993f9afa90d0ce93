"""Figures read from one finished run, and their mean over runs.

    last accuracy   mean test accuracy of the deployed circuit over the last evaluations (``counted_evaluations``), %
    whole batches   the same over the first samples of the test set that are whole batches, where a run recorded it
    DG, Gen         soft less hard on the test set, train less test of the circuit: percentage points, same evaluations

The free variants and the floating-point baselines have no circuit: their accuracy is that of the soft network.
"""

import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from gatefit.experiments.record import RunRecord
from gatefit.paper.outcome import Value
from gatefit.paper.scales import counted_evaluations

Metric = Callable[[RunRecord], float | None]
_WHOLE = "test_accuracy_whole_batches"


def last_accuracy(record: RunRecord) -> float | None:
    """The mean of the last evaluations: last-10 where the run evaluates as often as the paper's."""
    if not record.metrics:
        return _per_cent(record.summary.get("last_10_accuracy"))
    return _mean(map(_test, _last(record)))


def best_accuracy(record: RunRecord) -> float | None:
    """The best evaluation."""
    if not record.metrics:
        return _per_cent(record.summary.get("best_accuracy"))
    return max(map(_test, record.metrics))


def accuracy_until(step: int) -> Metric:
    """The accuracy as if the run had ended at ``step``: the mean of the last evaluations up to there."""

    def metric(record: RunRecord) -> float | None:
        rows = [row for row in record.metrics if row["step"] <= step]
        if not rows or rows[-1]["step"] != step:
            return None
        return _mean(map(_test, rows[-counted_evaluations(record.config) :]))

    return metric


def whole_batch_accuracy(record: RunRecord) -> float | None:
    """The last accuracy as a loader has it that drops the last batch; None where the run did not record it."""
    values = [row.get(_WHOLE) for row in _last(record)]
    return None if None in values else _mean(100 * float(value) for value in values if value is not None)


def best_whole_batch_accuracy(record: RunRecord) -> float | None:
    """The best evaluation on whole batches."""
    values = [row.get(_WHOLE) for row in record.metrics]
    return None if not values or None in values else max(100 * float(value) for value in values if value is not None)


def soft_accuracy(record: RunRecord) -> float | None:
    """The last accuracy of the network as it is trained, before it is made Boolean."""
    return _mean(100 * row["test_soft"] for row in _last(record))


def discretisation_gap(record: RunRecord) -> float | None:
    """Soft less hard test accuracy, in percentage points; None without a circuit."""
    return _mean_of(record, "test_discretisation_gap")


def generalisation_gap(record: RunRecord) -> float | None:
    """Train less test accuracy of the circuit, in percentage points."""
    return _mean_of(record, "generalisation_gap")


def repetition(record: RunRecord) -> tuple[int, int, int]:
    """What tells a run from the others of its configuration: methods are compared where these agree."""
    config = record.config
    return config.wiring_seed, config.split_seed, config.seed


def diagnostic(record: RunRecord, name: str, *path: str | int, step: int | None = None) -> Any:
    """A diagnostic at ``step`` (default: the last), followed along ``path``; None where it was not recorded."""
    steps = record.diagnostics.get(name)
    if not steps:
        return None
    value: Any = steps.get(max(steps) if step is None else step)
    for key in path:
        if isinstance(value, Mapping):
            value = value.get(key)
        elif isinstance(value, Sequence) and isinstance(key, int) and key < len(value):
            value = value[key]
        else:
            return None
    return value


def over_steps(record: RunRecord, name: str, *path: str | int) -> list[tuple[int, float]]:
    """(step, value) of a diagnostic at every evaluation where it is a number."""
    found = ((step, diagnostic(record, name, *path, step=step)) for step in sorted(record.diagnostics.get(name, ())))
    return [(step, float(value)) for step, value in found if _is_number(value)]


def curve(record: RunRecord) -> list[tuple[int, float]]:
    """(step, test accuracy in per cent) of every evaluation."""
    return [(row["step"], _test(row)) for row in record.metrics]


def summarise(values: Iterable[float | None], unit: str = "%", *, population: bool = False) -> Value | None:
    """Mean and standard deviation of those that are numbers; None of none.

    The sample's deviation, (Σ (x - x̄)² / (n - 1))^½, or the ``population``'s, with n below, as numpy's std has it.
    """
    numbers = [float(value) for value in values if value is not None and math.isfinite(value)]
    if not numbers:
        return None
    deviation = statistics.pstdev if population else statistics.stdev
    return Value(_exact_mean(numbers), deviation(numbers) if len(numbers) > 1 else None, len(numbers), unit)


def mean_curve(curves: Sequence[Sequence[tuple[int, float]]]) -> tuple[list[int], list[float], list[float]]:
    """Steps, means and standard deviations over runs, at the steps that every run has."""
    if not curves:
        return [], [], []
    tables = [dict(each) for each in curves]
    steps = sorted(set.intersection(*map(set, tables)))
    values = [[table[step] for table in tables] for step in steps]
    return steps, [_exact_mean(v) for v in values], [statistics.stdev(v) if len(v) > 1 else 0.0 for v in values]


def _last(record: RunRecord) -> Sequence[Mapping[str, Any]]:
    return record.metrics[-counted_evaluations(record.config) :]


def _test(row: Mapping[str, Any]) -> float:
    return 100 * float(row["test_soft"] if row["test_hard"] is None else row["test_hard"])


def _mean_of(record: RunRecord, name: str) -> float | None:
    values = [row[name] for row in _last(record)]
    return None if any(value is None for value in values) else _mean(100 * value for value in values)


def _mean(values: Iterable[float]) -> float | None:
    numbers = list(values)
    return _exact_mean(numbers) if numbers else None


def _exact_mean(numbers: Sequence[float]) -> float:
    return math.fsum(numbers) / len(numbers)


def _per_cent(value: Any) -> float | None:
    return 100 * float(value) if _is_number(value) else None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
