"""How long runs will take: from what runs like them took, else from a model of their cost.

    seconds left     = (steps - steps done) · seconds a step
    seconds a step   = model(config) · measured(similar) / model(similar)        similar: a finished run of the store
    model(config)    = call overhead + batch · gates · step_cost + evaluations   ns a gate and sample, one core

Similar is, first, a run of the same data set and method, the nearest in gates; then, of runs long enough to say how
fast this machine is, one of the same method; then any. Without one the ratio is 1. A method's ``step_cost`` is from
benchmarks of networks of 8,000 and 64,000 gates a layer on MNIST; evaluating reads every sample twice, forward only, at
about a quarter of a step's cost, and probes four batches. A run that failed before its first step is taken to fail
again.
"""

import itertools
import math
from collections.abc import Iterable, Sequence
from typing import Final, Protocol

from gatefit.experiments.outcome import RunRecord
from gatefit.training.config import BASELINES, RunConfig

OVERHEAD: Final = 1e-3
"""Seconds of a step that are not arithmetic."""
TELLING: Final = 5.0
"""Seconds from which on a run tells something about others: start-up no longer counts."""
EVALUATION: Final = 0.05
"""Seconds of an evaluation that are not arithmetic: rows on the disk, a checkpoint."""
_FLOPS: Final = 2e10
"""Floating-point operations a second of the baselines' matrix products, one core."""
_CHANNELS: Final = (32, 64, 128, 256, 256, 256)


class _Records(Protocol):
    def records(self, *, status: str | None = None) -> list[RunRecord]: ...

    def find(self, identity: str) -> RunRecord | None: ...


def estimate(configs: Iterable[RunConfig], store: _Records | None, *, jobs: int = 1) -> float:
    """Seconds until all of these are finished by ``jobs`` processes; without a store, from nothing."""
    return sum(run_seconds(list(configs), store).values()) / max(1, jobs)


def run_seconds(configs: Sequence[RunConfig], store: _Records | None) -> dict[str, float]:
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
                ratios[size] = _ratio(config, kinds.get(kind) or measured)
            left[config.identity] = steps * model_seconds(config) * ratios[size]
        else:
            left[config.identity] = 0.0
    return left


def step_seconds(config: RunConfig, measured: Sequence[RunRecord] = ()) -> float:
    """Seconds a step of this configuration, by the most similar of the ``measured`` runs."""
    return model_seconds(config) * _ratio(config, measured)


def _ratio(config: RunConfig, measured: Sequence[RunRecord]) -> float:
    """measured / model of the run most similar in data set, method and gates; 1 without one."""
    alike = [r for r in measured if (r.config.dataset, r.config.method) == (config.dataset, config.method)]
    measured = alike or [record for record in measured if (record.seconds or 0) >= TELLING]
    if not measured:
        return 1.0
    near = min(measured, key=lambda record: _distance(config, record.config))
    assert near.seconds is not None
    return near.seconds / max(1, near.step) / model_seconds(near.config)


def model_seconds(config: RunConfig) -> float:
    """Seconds a step on one core, as the model has it."""
    from gatefit.datasets import DATASETS
    from gatefit.methods import METHODS, Method

    info = DATASETS.get(config.dataset)
    samples = (info.train, info.test) if info is not None else (50_000, 10_000)
    batch = min(config.batch_size, samples[0])
    if config.method in BASELINES:
        a_sample = 6 * _multiplications(config) / _FLOPS
        evaluation = sum(samples) * a_sample / 3
    else:
        a_sample = gates(config) * METHODS.get(config.method, Method).step_cost * 1e-9
        evaluation = 2 * sum(samples) * a_sample / 4 + 4 * 3 * batch * a_sample
    return OVERHEAD + batch * a_sample + (EVALUATION + evaluation) / config.evaluate_every


def gates(config: RunConfig) -> int:
    """How many gates a run's network has; of a baseline, its hidden units."""
    return (config.resolved().width or 0) * config.depth


def _multiplications(config: RunConfig) -> int:
    """Of one sample's forward pass through a baseline."""
    from gatefit.datasets import DATASETS

    info = DATASETS.get(config.dataset)
    bits, classes = (info.bits, info.classes) if info is not None else (784, 10)
    if config.thresholds is not None and info is not None and info.bits >= info.features:
        bits = info.features * config.thresholds
    if config.method == "mlp":
        width = config.resolved().width or 0
        return bits * width + (config.depth - 1) * width * width + width * classes
    # Images are square: one pixel of every channel and threshold is a plane of bits.
    side = {"mnist": 28, "fashion-mnist": 28, "digits": 8, "tiny-imagenet": 64}.get(config.dataset, 32)
    planes = [max(1, bits // (side * side)), *_CHANNELS[: config.depth]]
    kernel = int(config.method[-1])
    total = 0
    for i, (read, written) in enumerate(itertools.pairwise(planes)):
        pixels = (side // 2 ** (i // 2)) ** 2
        total += pixels * kernel * kernel * read * written
    return total


def _distance(config: RunConfig, other: RunConfig) -> tuple[bool, bool, float]:
    apart = abs(math.log((gates(config) + 1) / (gates(other) + 1)))
    return config.method != other.method, config.dataset != other.dataset, apart
