"""Diagnostics while a network trains: the same few minibatches at step 0 and at every evaluation.

    probe's samples = the first blocks of permutation(seed)      a stream of its own: training draws what it drew before

Nothing is kept between probes, so that a run killed and resumed writes the same rows, and the last row can be computed
from the saved network. (The paper averages gradient norms over the training minibatches between two evaluations.)
Without this observer nothing is computed.
"""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import torch

from gatefit.datasets import Dataset, load_dataset
from gatefit.datasets.splits import stratified_split
from gatefit.diagnostics.batch import ProbeBatch
from gatefit.diagnostics.probe import probe
from gatefit.randomness import stream
from gatefit.training.checkpoint import TrainingState
from gatefit.training.config import RunConfig
from gatefit.training.data import EncodedRows, TrainingData
from gatefit.training.folder import read_config, read_metrics
from gatefit.training.loop import Observer, loss_of
from gatefit.training.metrics import deployed
from gatefit.training.runs import load_network

BATCHES: Final = 4
LARGEST_BATCH: Final = 512

Row = dict[str, Any]
Write = Callable[[int, Row], None]


def probe_batches(config: RunConfig, data: TrainingData | Dataset) -> list[ProbeBatch]:
    """The minibatches that every probe of this run reads: a pure function of the seed and the training set.

    Of a data set only the samples that are read are encoded.
    """
    if isinstance(data, Dataset):
        data = _unencoded(config, data)
    samples = data.train.samples
    size = min(config.batch_size, LARGEST_BATCH, samples)
    order = torch.randperm(samples, generator=stream(config.seed, "diagnostics")).numpy()
    batches = []
    for start in range(0, min(BATCHES, samples // size) * size, size):
        indices = order[start : start + size]
        weights = None if data.train_weights is None else data.train_weights[indices]
        loss = partial(loss_of, targets=data.train_targets[indices], weights=weights)
        batches.append(ProbeBatch(data.train.batch(indices), loss))
    return batches


def _unencoded(config: RunConfig, dataset: Dataset) -> TrainingData:
    """The sets of ``training_data`` without a copy of their bits."""
    rows, targets = dataset.x_train, torch.as_tensor(dataset.y_train, dtype=torch.int64)
    if config.validation_fraction:
        kept, _ = stratified_split(targets.numpy(), test_fraction=config.validation_fraction, seed=config.seed)
        rows, targets = rows[kept], targets[kept]
    source = EncodedRows(rows, dataset.encoder)
    return TrainingData(source, targets, source, targets, keep_best=bool(config.validation_fraction))


def diagnose(
    config: RunConfig, network: torch.nn.Module, data: TrainingData | Dataset, *, names: Sequence[str] | None = None
) -> Row:
    """The diagnostics of ``network`` now, as ``DiagnosticsObserver`` would write them."""
    return probe(network, probe_batches(config, data), names=names)


def diagnose_folder(
    folder: Path,
    *,
    data_dir: Path | None = None,
    dataset: Dataset | None = None,
    names: Sequence[str] | None = None,
) -> tuple[int, Row]:
    """(step, diagnostics) of the network that a finished run saved in its folder."""
    config = read_config(folder)
    network = load_network(folder / "model.safetensors")
    if dataset is None:
        dataset = load_dataset(config.dataset, data_dir=data_dir, **config.dataset_options())
    rows = read_metrics(folder)
    # With a validation set the network of the best evaluation is kept, the first of equals.
    saved = max(rows, key=partial(deployed, name="test")) if config.validation_fraction else rows[-1]
    return int(saved["step"]), diagnose(config, network, dataset, names=names)


class DiagnosticsObserver(Observer):
    """Calls ``write(step, diagnostics)`` before the first step and at every evaluation.

    A run that goes on from a checkpoint may write a step again: with the same numbers.
    """

    def __init__(self, write: Write, data: TrainingData | Dataset, *, names: Sequence[str] | None = None) -> None:
        self.write, self.data, self.names = write, data, names
        self._batches: list[ProbeBatch] = []

    def started(self, config: RunConfig, network: torch.nn.Module, state: TrainingState) -> None:
        """The untrained network, where it is one."""
        self._batches = probe_batches(config, self.data)
        if state.step == 0:
            self._probe(0, network)

    def evaluated(self, state: TrainingState, network: torch.nn.Module, metrics: dict[str, Any]) -> None:
        """The network of this evaluation."""
        self._probe(state.step, network)

    def _probe(self, step: int, network: torch.nn.Module) -> None:
        self.write(step, probe(network, self._batches, names=self.names))
