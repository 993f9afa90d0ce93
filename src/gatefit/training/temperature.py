"""The temperature of the class scores, found by short trainings on a part of the training data.

    τ = f √(votes / classes)        f = 1/4 · 2^(k/2):  0.25, 0.35, 0.5, 0.71, 1, 1.41, 2
    trial(τ)                        a network trained with τ for some hundred steps; all of them with the same seed, the
                                    same samples in the same order, the configured schedule made shorter
    figure(τ)                       min_T cross-entropy(sums / T) of its *deployed* form on samples kept apart

What is judged is the gates that training with τ makes, so the sums are divided by whatever suits them afterwards. Too
low a temperature makes gates that do not survive hardening or fit noise; too high a one does not separate the classes.
Accuracy says the same, but as a count of few errors, in which a short training on some thousand samples shows little.

The figure has one valley. The search begins at f = 0.5 and 0.71 and goes on to the better side until it gets worse:
three to five trials, each as long as 3 % of the training, between 200 and 1,000 steps. The result is the lowest point
of the parabola through the best three over log τ: a function of configuration and data, not of threads or time.
"""

import json
import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from jaxtyping import Float64, Int64

from gatefit.datasets.splits import stratified_split
from gatefit.methods import NotBooleanError
from gatefit.network import LogicNetwork
from gatefit.training.config import RunConfig
from gatefit.training.data import Subset, TrainingData
from gatefit.training.device import placed
from gatefit.training.folder import TEMPERATURE
from gatefit.training.loop import Learner, Model, Strategy, train
from gatefit.training.metrics import scores_of

FACTORS: Final = tuple(0.25 * 2 ** (k / 2) for k in range(7))
"""Temperatures that are tried, over √(votes / classes)."""
_FIRST: Final = (2, 3)
SHARE, SHORTEST, LONGEST = 0.03, 200, 1000
"""A trial's steps: a share of the training's, between bounds."""
APART, MOST_APART, ENOUGH_APART = 0.2, 10_000, 500
"""Samples kept apart: a share, at most so many; fewer than enough of them are drawn several times, up to five."""


class SearchStoppedError(RuntimeError):
    """A search was asked to stop."""


BuildNetwork = Callable[[RunConfig], Model]
"""The untrained network of a configuration whose temperature is a number or None."""


@dataclass(frozen=True)
class TemperatureTrial:
    """What training with one temperature came to, on the samples kept apart."""

    temperature: float
    factor: float
    """The same over √(votes / classes)."""
    cross_entropy: float
    """Of the deployed network, its sums divided by what suits them."""
    accuracy: float


@dataclass(frozen=True)
class TemperatureSearch:
    """The temperature that was chosen, and what was tried, in the order of temperatures."""

    temperature: float
    steps: int
    """Steps of each trial."""
    apart: int
    """Samples that each trial was judged by."""
    trials: tuple[TemperatureTrial, ...]

    def to_json(self) -> str:
        """As a run's folder keeps it."""
        return json.dumps(asdict(self), indent=2)

    @classmethod
    def from_json(cls, text: str) -> "TemperatureSearch":
        """Read back what ``to_json`` wrote; a ``ValueError`` where it is damaged."""
        try:
            content = json.loads(text)
            trials = tuple(TemperatureTrial(**each) for each in content.pop("trials"))
            found = cls(**content, trials=trials)
            if not (isinstance(found.temperature, float) and 0 < found.temperature < math.inf):
                raise ValueError(f"temperature {found.temperature!r}")
        except (ValueError, TypeError, LookupError, AttributeError) as error:
            raise ValueError(f"this is no record of a search for a temperature: {error}") from error
        return found


def search_temperature(config: RunConfig, build: BuildNetwork, data: TrainingData, **options: Any) -> float:
    """The temperature alone of ``find_temperature``, which says more."""
    return find_temperature(config, build, data, **options).temperature


def find_temperature(
    config: RunConfig,
    build: BuildNetwork,
    data: TrainingData,
    *,
    steps: int | None = None,
    threads: int | None = None,
    should_stop: Callable[[], bool] = lambda: False,
    tried: Callable[[TemperatureTrial], None] = lambda trial: None,
    device: torch.device | str = "cpu",
) -> TemperatureSearch:
    """The temperature for training what ``build`` makes of ``config`` on ``data.train``; ``data.test`` is not read.

    ``steps``: of each trial, where not as above. ``tried`` is told of each trial. Where ``should_stop``, there is no
    result but ``SearchStoppedError``. Trials are trained on ``device``.
    """
    unit = _unit(build(replace(config, readout_temperature=None)))
    length = min(config.steps, max(SHORTEST, min(LONGEST, round(SHARE * config.steps)))) if steps is None else steps
    parts = [replace(part, device=device) for part in _parts(data, config.seed)]
    short = replace(
        config,
        steps=length,
        evaluate_every=length,
        warmup=config.warmup * length // config.steps,
        patience=None,
        whole_batches=False,
    )
    found: dict[int, TemperatureTrial] = {}

    def figure(place: int) -> float:
        if place not in found:
            temperature = FACTORS[place] * unit
            found[place] = _trial(
                replace(short, readout_temperature=temperature), build, parts, unit, threads, should_stop
            )
            tried(found[place])
        return found[place].cross_entropy

    best = min(_FIRST, key=figure)
    while beside := [place for place in (best - 1, best + 1) if 0 <= place < len(FACTORS) and place not in found]:
        nearest = min(beside, key=figure)
        best = min((best, nearest), key=figure)
    chosen = unit * 2 ** (math.log2(FACTORS[best]) + _vertex([found.get(best + i) for i in (-1, 0, 1)]) / 2)
    trials = tuple(found[place] for place in sorted(found))
    return TemperatureSearch(float(f"{chosen:.4g}"), length, len(parts) * parts[0].data.test.samples, trials)


def _unit(network: Model) -> float:
    """√(votes / classes)."""
    readout = network.readout if isinstance(network, LogicNetwork) else None
    gates, classes = getattr(readout, "gates", 0), getattr(readout, "classes", 0)
    if not hasattr(readout, "temperature") or not gates or not classes:
        kind = type(network if readout is None else readout).__name__
        raise ValueError(f"readout_temperature='search' needs class scores with a temperature; {kind} has none")
    return math.sqrt(gates / classes)


@dataclass(frozen=True)
class _Part:
    """A training set cut in two: ``data.test`` are the samples kept apart, with their weights."""

    data: TrainingData
    weights: Float64[np.ndarray, " apart"] | None
    device: torch.device | str = "cpu"
    """Where it trains."""


def _parts(data: TrainingData, seed: int) -> list[_Part]:
    """The training set cut in two, several times where it is small."""
    targets = data.train_targets.numpy()
    if data.train_targets.dtype != torch.int64:
        raise ValueError("readout_temperature='search' is for class scores, and the targets are real numbers")
    share = min(APART, MOST_APART / max(1, len(targets)))
    first = stratified_split(targets, test_fraction=share, seed=abs(seed))
    if not len(first[1]):
        raise ValueError(
            f"readout_temperature='search' keeps a fifth of each class apart, and of {len(targets)} samples in "
            f"{len(np.unique(targets))} classes that is none; give a number, or leave it out"
        )
    times = min(5, -(-ENOUGH_APART // len(first[1])))
    # Far from the seeds that people give to their runs.
    seeds = [(abs(seed) << 16) + i for i in range(1, times)]
    splits = [first, *(stratified_split(targets, test_fraction=share, seed=each) for each in seeds)]
    return [_cut(data, *split) for split in splits]


def _cut(data: TrainingData, kept: Int64[np.ndarray, " kept"], apart: Int64[np.ndarray, " apart"]) -> _Part:
    weights = data.train_weights
    part = TrainingData(
        Subset(data.train, kept),
        data.train_targets[kept],
        Subset(data.train, apart),
        data.train_targets[apart],
        train_weights=None if weights is None else weights[kept],
    )
    # Weights of nothing but zeros judge nothing; the samples then count alike.
    own = None if weights is None or not weights[apart].any() else weights[apart].double().numpy()
    return _Part(part, own)


class _Unmeasured(Strategy):
    """Steps alone: a trial is judged when it is over."""

    def evaluate(self, learner: Learner, data: TrainingData) -> dict[str, Any]:
        """Nothing."""
        return {}


def _trial(
    config: RunConfig,
    build: BuildNetwork,
    parts: list[_Part],
    unit: float,
    threads: int | None,
    should_stop: Callable[[], bool],
) -> TemperatureTrial:
    losses, accuracies = [], []
    for part in parts:
        data, targets = part.data, part.data.test_targets
        network = build(config)
        with placed([network], data, part.device, config.batch_size) as there:
            result = train(config, network, there, strategy=_Unmeasured(), threads=threads, should_stop=should_stop)
        if not result.finished:
            raise SearchStoppedError("the search for a temperature was stopped; it begins anew")
        try:
            scores = scores_of(network, data.test, soft=False)
        except NotBooleanError:
            scores = scores_of(network, data.test, soft=True)
        losses.append(least_cross_entropy(scores.double().numpy(), targets.numpy(), part.weights))
        hits = (scores.argmax(1) == targets).double().numpy()
        accuracies.append(float(np.average(hits, weights=part.weights)))
    temperature = config.readout_temperature
    assert isinstance(temperature, float)
    return TemperatureTrial(temperature, temperature / unit, float(np.mean(losses)), float(np.mean(accuracies)))


def least_cross_entropy(
    scores: Float64[np.ndarray, "samples classes"],
    targets: Int64[np.ndarray, " samples"],
    weights: Float64[np.ndarray, " samples"] | None = None,
) -> float:
    """min_β of the mean cross-entropy of softmax(β scores), 1/64 <= β <= 64: convex in β, so its slope is bisected."""
    rows = np.arange(len(targets))
    own = scores[rows, targets]
    low, high = -6.0, 6.0
    for _ in range(40):
        middle = 0.5 * (low + high)
        expected = (_softmax(2**middle * scores) * scores).sum(axis=1)
        low, high = (low, middle) if np.average(expected - own, weights=weights) > 0 else (middle, high)
    reached = np.maximum(_softmax(2**low * scores)[rows, targets], 1e-300)
    return float(-np.average(np.log(reached), weights=weights))


def _softmax(scores: Float64[np.ndarray, "samples classes"]) -> Float64[np.ndarray, "samples classes"]:
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)  # type: ignore[no-any-return]


def _vertex(trials: list[TemperatureTrial | None]) -> float:
    """Where the parabola through three figures at -1, 0 and 1 is lowest; 0 at an end of the range."""
    left, middle, right = (None if trial is None else trial.cross_entropy for trial in trials)
    if left is None or middle is None or right is None or left + right <= 2 * middle:
        return 0.0
    return 0.5 * (left - right) / (left + right - 2 * middle)


def read_search(folder: Path) -> TemperatureSearch | None:
    """The search of the run in ``folder``; None where there was none, or its record is damaged and is made again."""
    try:
        return TemperatureSearch.from_json((folder / TEMPERATURE).read_text())
    except (OSError, ValueError):
        return None
