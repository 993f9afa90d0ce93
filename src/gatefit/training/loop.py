"""The training loop: the paper's protocol, resumable to the bit, observed but never printing.

    step t:  x, y = data[order(t)];   L = cross-entropy(network(x), y)  or  squared error;   Adam

Everything random is in the checkpoint or a pure function of the configuration, so that a run killed at any moment
and resumed ends with the same bits as one that was not. Results do not depend on the number of threads.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gatefit._requires import require

require("torch", "train", "training")

import numpy as np
import torch
from jaxtyping import Int64
from torch import Tensor

from gatefit.network import LogicNetwork
from gatefit.ops.adam import Adam
from gatefit.ops.cross_entropy import cross_entropy
from gatefit.ops.implementations import Implementation, resolve
from gatefit.ops.threads import training_threads
from gatefit.training.checkpoint import TrainingState, load_checkpoint, save_checkpoint
from gatefit.training.config import RunConfig
from gatefit.training.data import TrainingData
from gatefit.training.metrics import deployed, evaluate, summary
from gatefit.training.order import DataOrder


class TrainingDivergedError(ArithmeticError):
    """The loss is no longer a finite number."""


class Observer:
    """What may watch a run. Override what you need; nothing is measured for an observer that is not there."""

    def started(self, config: RunConfig, network: LogicNetwork, state: TrainingState) -> None:
        """Before the first step of this process."""

    def stepped(self, state: TrainingState, network: LogicNetwork, loss: float) -> None:
        """After every step; gradients are still there."""

    def evaluated(self, state: TrainingState, network: LogicNetwork, metrics: dict[str, Any]) -> None:
        """After every evaluation."""

    def finished(self, state: TrainingState, network: LogicNetwork) -> None:
        """After the last step of this process."""


@dataclass(frozen=True)
class TrainingResult:
    """How a run ended: ``finished`` is False where it was asked to stop and can be resumed.

    ``validated``: what was evaluated beside the training set is a validation set, and its best network is the one kept.
    """

    state: TrainingState
    finished: bool
    validated: bool = False

    @property
    def summary(self) -> dict[str, Any]:
        """Last-10, best-checkpoint and gap figures."""
        return summary(self.state.metrics, validated=self.validated)


def learning_rate(config: RunConfig, step: int) -> float:
    """The rate of step ``step``, counted from 0: a pure function of the configuration."""
    rate = config.learning_rate
    if step < config.warmup:
        return rate * (step + 1) / (config.warmup + 1)
    progress = (step - config.warmup) / max(1, config.steps - config.warmup)
    if config.schedule == "cosine":
        return rate * 0.5 * (1 + math.cos(math.pi * progress))
    if config.schedule == "linear":
        return rate * (1 - progress)
    return rate


def make_optimiser(config: RunConfig, network: LogicNetwork) -> torch.optim.Optimizer:
    """Adam over all parameters, with decoupled weight decay where it is asked for."""
    return Adam(
        network.parameters(),
        lr=config.learning_rate,
        betas=(config.beta1, config.beta2),
        weight_decay=config.weight_decay,
    )


def loss_of(
    scores: Tensor, targets: Tensor, weights: Tensor | None, implementation: Implementation | None = None
) -> Tensor:
    """Cross-entropy for class indices, squared error for real targets; weighted mean over the batch.

    By the network's implementation, or without one by the fastest that serves the scores.
    """
    if targets.dtype == torch.int64:
        losses = cross_entropy(
            scores, targets, implementation=implementation or resolve("auto", scores.device, scores.dtype)
        )
    else:
        losses = (scores[:, 0] - targets.to(scores.dtype)).square()
    return losses.mean() if weights is None else (losses * weights).sum() / weights.sum().clamp_min(1e-12)


def batch_loss(network: LogicNetwork, data: TrainingData, indices: Int64[np.ndarray, " batch"]) -> Tensor:
    """The mean loss of these samples."""
    weights = None if data.train_weights is None else data.train_weights[indices]
    scores = network(data.train.batch(indices))
    return loss_of(scores, data.train_targets[indices], weights, network.implementation)


class Alone:
    """The only process of a run. Several that share its batches are a ``parallel.Team``."""

    def restore(
        self, folder: Path | None, config: RunConfig, network: LogicNetwork, optimiser: torch.optim.Optimizer
    ) -> TrainingState | None:
        """Take network and optimiser from the newest checkpoint; None if there is none."""
        return load_checkpoint(folder, config, network, optimiser) if folder is not None else None

    def backward(self, network: LogicNetwork, data: TrainingData, indices: Int64[np.ndarray, " batch"]) -> float:
        """The batch's mean loss; its gradient is left in the parameters, where it is finite."""
        loss = batch_loss(network, data, indices)
        value = float(loss.detach())
        if math.isfinite(value):
            loss.backward()
        return value

    def evaluate(
        self, network: LogicNetwork, optimiser: torch.optim.Optimizer, data: TrainingData, state: TrainingState
    ) -> dict[str, Any]:
        """One more row of the log."""
        return evaluation(network, data, state)


def train(
    config: RunConfig,
    network: LogicNetwork,
    data: TrainingData,
    *,
    folder: Path | None = None,
    observers: Sequence[Observer] = (),
    should_stop: Callable[[], bool] = lambda: False,
    threads: int | None = None,
    worker: Alone | None = None,
) -> TrainingResult:
    """Train ``network`` for ``config.steps`` steps; with ``folder``, from and to its checkpoints.

    ``should_stop`` is asked after every step; a run that is stopped saves first, and can be resumed. ``worker`` is
    this process among several that train one network together (``training.parallel``).
    """
    worker = worker or Alone()
    config.check_patience()
    optimiser = make_optimiser(config, network)
    state = worker.restore(folder, config, network, optimiser) or TrainingState()
    order = DataOrder(data.train.samples, config.batch_size, config.seed)
    finished = True
    with training_threads(threads):
        network.train()
        for observer in observers:
            observer.started(config, network, state)
        while state.step < config.steps and not _patience_is_over(config, state):
            loss = _step(config, network, optimiser, data, order, state, worker)
            for observer in observers:
                observer.stepped(state, network, loss)
            due = state.step % config.evaluate_every == 0 or state.step == config.steps
            if due:
                row = worker.evaluate(network, optimiser, data, state)
                for observer in observers:
                    observer.evaluated(state, network, row)
            stopping = should_stop()
            if folder is not None and (due or stopping):
                save_checkpoint(folder, config, network, optimiser, state)
            if stopping and state.step < config.steps:
                finished = False
                break
        if finished and state.best is not None:
            network.load_state_dict(state.best)
        network.eval()
        for observer in observers:
            observer.finished(state, network)
    return TrainingResult(state, finished, validated=data.keep_best)


def _step(
    config: RunConfig,
    network: LogicNetwork,
    optimiser: torch.optim.Optimizer,
    data: TrainingData,
    order: DataOrder,
    state: TrainingState,
    worker: Alone,
) -> float:
    rate = learning_rate(config, state.step)
    for group in optimiser.param_groups:
        group["lr"] = rate
    optimiser.zero_grad(set_to_none=True)
    value = worker.backward(network, data, order.indices(state.step))
    if not math.isfinite(value):
        raise TrainingDivergedError(
            f"the loss is {value} at step {state.step + 1}; lower learning_rate={config.learning_rate}, "
            "or check the targets for NaN"
        )
    optimiser.step()
    state.step += 1
    state.loss_sum += value
    state.loss_count += 1
    return value


def evaluation(network: LogicNetwork, data: TrainingData, state: TrainingState) -> dict[str, Any]:
    """One row of the log: both sets, hard and soft, with the gaps."""
    row: dict[str, Any] = {"step": state.step, "loss": state.loss_sum / max(1, state.loss_count)}
    for name, source, targets, whole in (
        ("train", data.train, data.train_targets, None),
        ("test", data.test, data.test_targets, data.whole_batches),
    ):
        values = evaluate(network, source, targets, whole_batches=whole)
        row |= {f"{name}_{key}": value for key, value in values.items()}
    row["generalisation_gap"] = None if row["test_hard"] is None else row["train_hard"] - row["test_hard"]
    return record(row, network, data, state)


def record(row: dict[str, Any], network: LogicNetwork, data: TrainingData, state: TrainingState) -> dict[str, Any]:
    """Add a row to the log, and keep the network where it is the best so far and that is asked for."""
    state.loss_sum, state.loss_count = 0.0, 0
    if data.keep_best:
        reached = deployed(row, "test")
        if state.best is None or reached > state.best_score:
            state.best_score = reached
            state.best = {name: value.detach().clone() for name, value in network.state_dict().items()}
    state.metrics.append(row)
    return row


def _patience_is_over(config: RunConfig, state: TrainingState) -> bool:
    if config.patience is None or not state.metrics:
        return False
    reached = [deployed(row, "test") for row in state.metrics]
    return len(reached) - 1 - int(np.argmax(reached)) >= config.patience
