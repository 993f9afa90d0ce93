"""Runs: train what a configuration describes in a folder of its own (``training.folder``), or go on there."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gatefit._requires import require

require("torch", "train", "training")

import numpy as np
import torch
from torch import Tensor

from gatefit.datasets import Dataset, load_dataset
from gatefit.datasets.splits import stratified_split
from gatefit.network import LogicNetwork
from gatefit.training.checkpoint import CheckpointError, TrainingState, read_tensors, serialise, write_atomically
from gatefit.training.config import RunConfig
from gatefit.training.data import TrainingData, bit_source
from gatefit.training.folder import (
    RunFolderError,
    default_folder,
    locked,
    read_config,
    read_finished,
    read_metrics,
)
from gatefit.training.longer import take_folder
from gatefit.training.loop import Alone, Observer, TrainingResult, train
from gatefit.training.made import MadeFile
from gatefit.wirings import WiringOptions
from gatefit.wirings.local import image_order

MODEL_FORMAT = "gatefit-network-1"

__all__ = [
    "MetricsFile",
    "Run",
    "RunFolderError",
    "build_network",
    "default_folder",
    "execute",
    "load_network",
    "log_text",
    "read_config",
    "read_finished",
    "read_metrics",
    "save_network",
    "save_result",
    "training_data",
]


@dataclass(frozen=True)
class Run:
    """A finished or interrupted run."""

    folder: Path
    config: RunConfig
    network: LogicNetwork
    result: TrainingResult


def build_network(config: RunConfig, dataset: Dataset) -> LogicNetwork:
    """The untrained network of a run."""
    assert config.width is not None, "resolve the configuration first"
    return LogicNetwork(
        dataset.encoder.bits,
        len(dataset.class_names),
        config.width,
        config.depth,
        method=config.method,
        wiring=config.wiring,
        wiring_options=_wiring_options(config, dataset),
        readout=config.readout,
        readout_temperature="auto" if config.readout_temperature is None else config.readout_temperature,
        seed=config.seed,
        wiring_seed=config.wiring_seed,
        encoder=dataset.encoder,
        class_names=dataset.class_names,
        **config.method_options(),
    )


def _wiring_options(config: RunConfig, dataset: Dataset) -> WiringOptions:
    if config.wiring != "local" or dataset.image_shape is None:  # the order takes a while for many bits
        return WiringOptions(reach=config.reach)
    features = np.array([rule.feature for rule in dataset.encoder.rules])
    return WiringOptions(order=image_order(features, dataset.image_shape), reach=config.reach)


def training_data(config: RunConfig, dataset: Dataset) -> TrainingData:
    """The sets a run reads: train and test, or train and validation where a part is kept apart."""
    y_train, y_test = (torch.as_tensor(y, dtype=torch.int64) for y in (dataset.y_train, dataset.y_test))
    if not config.validation_fraction:
        return TrainingData(
            bit_source(dataset.x_train, dataset.encoder),
            y_train,
            bit_source(dataset.x_test, dataset.encoder),
            y_test,
            whole_batches=_whole_batches(config, len(y_test)),
        )
    kept, apart = stratified_split(y_train.numpy(), test_fraction=config.validation_fraction, seed=config.seed)
    if not len(apart):
        raise ValueError(
            f"validation_fraction={config.validation_fraction} of {len(y_train)} samples is none; use a larger one"
        )
    return TrainingData(
        bit_source(dataset.x_train[kept], dataset.encoder),
        y_train[kept],
        bit_source(dataset.x_train[apart], dataset.encoder),
        y_train[apart],
        keep_best=True,
        whole_batches=_whole_batches(config, len(apart)),
    )


def _whole_batches(config: RunConfig, samples: int) -> int | None:
    if not config.whole_batches:
        return None
    if samples < config.batch_size:
        raise ValueError(
            f"whole_batches needs at least a batch to evaluate, got {samples} samples and "
            f"batch_size={config.batch_size}; leave it out, or use batch_size={samples} or less"
        )
    return samples // config.batch_size * config.batch_size


def execute(
    config: RunConfig,
    *,
    folder: Path | None = None,
    data_dir: Path | None = None,
    observers: Sequence[Observer] = (),
    should_stop: Callable[[], bool] = lambda: False,
    threads: int | None = None,
    dataset: Dataset | None = None,
    worker: Alone | None = None,
) -> Run:
    """Train what ``config`` describes in its folder, going on from its last checkpoint; a finished run is read back.

    A run that was trained there for fewer steps, at a constant learning rate, goes on to more (``training.longer``).
    """
    config = config.resolved()
    folder = folder or default_folder(config)
    if dataset is None:
        dataset = load_dataset(config.dataset, data_dir=data_dir, **config.dataset_options())
    # Before the folder is made: a configuration that cannot be built leaves nothing behind.
    network = build_network(config, dataset)
    with locked(folder):
        take_folder(folder, config)
        if (folder / "result.json").exists():
            network = load_network(folder / "model.safetensors")
            rows = read_finished(folder)
            state = TrainingState(step=rows[-1]["step"], metrics=rows)
            validated = bool(config.validation_fraction)
            return Run(folder, config, network, TrainingResult(state, finished=True, validated=validated))
        write_atomically(folder / "config.json", config.to_json().encode())
        result = train(
            config,
            network,
            training_data(config, dataset),
            folder=folder / "checkpoints",
            observers=[*observers, MetricsFile(folder), MadeFile(folder, config)],
            should_stop=should_stop,
            threads=threads,
            worker=worker,
        )
        if result.finished:
            save_network(network, folder / "model.safetensors")
            save_result(folder, config, dataset, result)
    return Run(folder, config, network, result)


def save_result(folder: Path, config: RunConfig, dataset: Dataset, result: TrainingResult) -> None:
    """Write a run's figures, last of all its files: it is finished."""
    content = {"config": config.identity, "data": dataset.digest, **result.summary}
    write_atomically(folder / "result.json", json.dumps(content, indent=2).encode())


def log_text(state: TrainingState) -> bytes:
    """metrics.jsonl: one row an evaluation."""
    return "".join(json.dumps(row) + "\n" for row in state.metrics).encode()


class MetricsFile(Observer):
    """Keeps a run folder's metrics.jsonl."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def _write(self, state: TrainingState) -> None:
        write_atomically(self.folder / "metrics.jsonl", log_text(state))

    def started(self, config: RunConfig, network: LogicNetwork, state: TrainingState) -> None:
        """Rows written after the checkpoint that the run resumes from will be computed again."""
        self._write(state)

    def evaluated(self, state: TrainingState, network: LogicNetwork, metrics: dict[str, Any]) -> None:
        """One more row."""
        self._write(state)


def save_network(network: LogicNetwork, path: Path) -> None:
    """Write a network's state_dict: parameters, wiring, encoder and configuration in one safetensors file."""
    tensors: dict[str, Tensor] = dict(network.state_dict())
    write_atomically(path, serialise(tensors, {"format": MODEL_FORMAT}))


def load_network(path: Path) -> LogicNetwork:
    """Read a network written by ``save_network``; in eval mode."""
    if not path.exists():
        raise CheckpointError(f"there is no trained network at {path}; finish the run with `gatefit train`")
    tensors, metadata = read_tensors(path)
    if metadata.get("format") != MODEL_FORMAT:
        raise CheckpointError(f"{path} is not a gatefit network: format {metadata.get('format')!r}")
    try:
        network = LogicNetwork.from_state_dict(tensors)
    except (KeyError, TypeError, RuntimeError, ValueError) as error:
        raise CheckpointError(f"{path} is damaged: {error}") from error
    return network.eval()
