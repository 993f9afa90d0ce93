"""Runs of the floating-point baselines: the same folders, configurations and logs as those of logic networks.

mlp                 depth × width hidden units (default width 128)
cnn-3x3, cnn-2x2    depth convolutions with the paper's channels; no width
"""

from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Final

from gatefit.datasets import Dataset
from gatefit.ops.threads import training_threads
from gatefit.training.baselines import Baseline, cnn, mlp, train_baseline
from gatefit.training.checkpoint import TrainingState, serialise, write_atomically
from gatefit.training.config import BASELINES, RunConfig
from gatefit.training.folder import locked, read_finished
from gatefit.training.longer import take_folder
from gatefit.training.loop import TrainingResult
from gatefit.training.made import MadeFile
from gatefit.training.runs import log_text, save_result, training_data

MODEL_FORMAT: Final = "gatefit-baseline-1"

_TAKEN: Final = (
    "dataset", "method", "width", "depth", "steps", "seed", "batch_size", "learning_rate", "evaluate_every",
    "thresholds", "adult_encoding",
)  # fmt: skip


@dataclass(frozen=True)
class BaselineRun:
    """A finished or interrupted run of a baseline."""

    folder: Path
    config: RunConfig
    result: TrainingResult


def build_baseline(config: RunConfig, dataset: Dataset) -> Baseline:
    """The untrained baseline of a run; fields that it cannot heed are refused."""
    if config.method not in BASELINES:
        raise ValueError(f"unknown baseline {config.method!r}; choose one of {', '.join(BASELINES)}")
    given = [f.name for f in fields(config) if f.name not in _TAKEN and getattr(config, f.name) != f.default]
    if given:
        raise ValueError(f"{config.method} has no option {', '.join(given)}; it takes {', '.join(_TAKEN)}")
    classes = len(dataset.class_names)
    if config.method == "mlp":
        assert config.width is not None, "resolve the configuration first"
        return mlp(dataset.encoder.bits, classes, config.depth, config.width, seed=config.seed)
    if dataset.image_shape is None:
        raise ValueError(f"{config.method} reads images, and {config.dataset} has none; use mlp")
    rows, columns, _ = dataset.image_shape
    return cnn(
        dataset.encoder.bits // (rows * columns), classes, config.depth, int(config.method[-1]), seed=config.seed
    )


def execute_baseline(
    config: RunConfig,
    dataset: Dataset,
    *,
    folder: Path,
    started: Callable[[TrainingState], None] = lambda state: None,
    evaluated: Callable[[TrainingState], None] = lambda state: None,
    should_stop: Callable[[], bool] = lambda: False,
) -> BaselineRun:
    """Train a baseline in its folder, going on from its last checkpoint; a finished run is read back.

    On one thread: sums of floating-point numbers on more would depend on how many there are.
    """
    config = config.resolved()
    network = build_baseline(config, dataset)
    with locked(folder):
        take_folder(folder, config)
        if (folder / "result.json").exists():
            rows = read_finished(folder)
            state = TrainingState(step=rows[-1]["step"], metrics=rows)
            return BaselineRun(folder, config, TrainingResult(state, finished=True))
        write_atomically(folder / "config.json", config.to_json().encode())
        made = MadeFile(folder, config)

        def begin(state: TrainingState) -> None:
            made.begin(state)
            started(state)

        def write_row(state: TrainingState) -> None:
            write_atomically(folder / "metrics.jsonl", log_text(state))
            made.write()
            evaluated(state)

        with training_threads(1):
            result = train_baseline(
                network,
                training_data(config, dataset),
                folder=folder / "checkpoints",
                started=begin,
                evaluated=write_row,
                should_stop=should_stop,
                config=config,
            )
        made.write()
        if result.finished:
            write_atomically(
                folder / "model.safetensors", serialise(dict(network.state_dict()), {"format": MODEL_FORMAT})
            )
            save_result(folder, config, dataset, result)
    return BaselineRun(folder, config, result)
