"""How long runs will take: from what runs like them took, else from a model of their cost.

    seconds left     = (steps - steps done) · seconds a step
    seconds a step   = model(config) · measured(similar) / model(similar)        similar: a finished run of the store
    model(config)    = call overhead + batch · (gates · step_cost + moved values) + evaluations       ns, one core

Similar is, first, a run of the same data set and method, the nearest in gates; then, of runs long enough to say how
fast this machine is, one of the same method; then any. Without one the ratio is 1. A method's ``step_cost`` is a
benchmark of networks of 8,000 and 64,000 gates a layer on MNIST, a wiring's how many times that is where it learns;
evaluating reads every sample twice, forward only, at about a quarter of a step's cost with fixed wiring, and probes
four batches. A run that failed before its first step is taken to fail again.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Final, Protocol, TypeAlias

from gatefit.experiments.record import RunRecord
from gatefit.training.config import RunConfig

OVERHEAD: Final = 1e-3
"""Seconds of a step that are not arithmetic."""
TELLING: Final = 5.0
"""Seconds from which on a run tells something about others: start-up no longer counts."""
EVALUATION: Final = 0.05
"""Seconds of an evaluation that are not arithmetic: rows on the disk, a checkpoint."""
MOVED: Final = 6e-9
"""Seconds to move a value of an image between pixels: rotations, zooms, bends. Shifts and flips read it in place."""


StepSeconds: TypeAlias = Callable[[RunConfig], float]
"""A model of what a step costs; by default ``model_seconds``."""


class _Records(Protocol):
    def records(self, *, status: str | None = None) -> list[RunRecord]: ...

    def find(self, identity: str) -> RunRecord | None: ...


def model_seconds(config: RunConfig) -> float:
    """Seconds a step of a logic network on one core, as the model has it."""
    from gatefit.datasets import DATASETS
    from gatefit.methods import METHODS, Method

    info = DATASETS.get(config.dataset)
    samples = (info.train, info.test) if info is not None else (50_000, 10_000)
    batch = min(config.batch_size, samples[0])
    a_gate = METHODS.get(config.method, Method).step_cost * 1e-9
    a_sample = gates(config) * a_gate
    moved = MOVED * info.features if info is not None and (config.rotate or config.zoom or config.elastic) else 0.0
    evaluation = 2 * sum(samples) * a_sample / 4 + 4 * 3 * batch * a_sample
    return OVERHEAD + batch * (_wired(config) * a_gate + moved) + (EVALUATION + evaluation) / config.evaluate_every


def estimate(
    configs: Iterable[RunConfig], store: _Records | None, *, jobs: int = 1, step_seconds: StepSeconds = model_seconds
) -> float:
    """Seconds until all of these are finished by ``jobs`` processes; without a store, from nothing."""
    return sum(run_seconds(list(configs), store, step_seconds=step_seconds).values()) / max(1, jobs)


def run_seconds(
    configs: Sequence[RunConfig], store: _Records | None, *, step_seconds: StepSeconds = model_seconds
) -> dict[str, float]:
    """Seconds that each run still takes, by identity; 0 for a finished one."""
    records = {} if store is None else {record.identity: record for record in store.records()}
    measured = [record for record in records.values() if record.status == "finished" and record.seconds]
    kinds: dict[tuple[str, str], list[RunRecord]] = {}
    for each in measured:
        kinds.setdefault((each.config.dataset, each.config.method), []).append(each)
    ratios: dict[tuple[str, str, int], float] = {}
    left = {}
    for config in (given.resolved() for given in configs):
        record = records.get(config.identity)
        over = record is not None and (record.status == "finished" or (record.status == "failed" and not record.step))
        steps = 0 if over else max(0, config.steps - (0 if record is None else record.step))
        if steps:
            kind = (config.dataset, config.method)
            size = (*kind, gates(config))
            if size not in ratios:
                ratios[size] = _ratio(config, kinds.get(kind) or measured, step_seconds)
            left[config.identity] = steps * step_seconds(config) * ratios[size]
        else:
            left[config.identity] = 0.0
    return left


def _ratio(config: RunConfig, measured: Sequence[RunRecord], step_seconds: StepSeconds) -> float:
    """measured / model of the run most similar in data set, method and gates; 1 without one."""
    alike = [r for r in measured if (r.config.dataset, r.config.method) == (config.dataset, config.method)]
    measured = alike or [record for record in measured if (record.seconds or 0) >= TELLING]
    if not measured:
        return 1.0
    near = min(measured, key=lambda record: _distance(config, record.config))
    assert near.seconds is not None
    return near.seconds / max(1, near.step) / step_seconds(near.config)


def gates(config: RunConfig) -> int:
    """How many gates a run's network has; 0 of a model without a width."""
    return sum(config.resolved().layer_widths)


def _wired(config: RunConfig) -> float:
    """Gates, each counted as often as its layer's wiring makes it cost."""
    from gatefit.wirings import WIRINGS, Wiring

    resolved = config.resolved()
    widths, names = resolved.layer_widths, resolved.wirings
    costs = [getattr(WIRINGS.get(name), "step_cost", Wiring.step_cost) for name in names]
    return sum(cost * width for cost, width in zip(costs * (len(widths) // len(costs)), widths, strict=True))


def _distance(config: RunConfig, other: RunConfig) -> tuple[bool, bool, float]:
    apart = abs(math.log((gates(config) + 1) / (gates(other) + 1)))
    return config.method != other.method, config.dataset != other.dataset, apart
