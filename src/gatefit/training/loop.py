"""The training loop, the only one: resumable to the bit, observed but never printing.

    step t:  x, y = data[order(t)];   L = cross-entropy(network(x), y)  or  squared error;   Adam

Who computes a step is a ``Strategy``: this process for one network; for several seeds laid side by side as one network
(``side_by_side``); several processes, each with its part of the batch (``parallel``). What is trained is a
``LogicNetwork``, or any ``TrainableModel``.

Everything random is in the checkpoint or a pure function of the configuration, so that a run killed at any moment
and resumed ends with the same bits as one that was not. Results do not depend on the number of threads.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Final, TypeAlias

from gatefit._requires import require

require("torch", "train", "training")

import numpy as np
import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn

from gatefit.network import LogicNetwork
from gatefit.ops.adam import Adam
from gatefit.ops.batches import Batch
from gatefit.ops.cross_entropy import cross_entropy
from gatefit.ops.implementations import Implementation, resolve
from gatefit.ops.threads import training_threads
from gatefit.training.checkpoint import TrainingState, load_checkpoint, save_checkpoint
from gatefit.training.config import EvaluationConfig, OptimiserConfig, RunConfig
from gatefit.training.data import DataOrder, TrainingData
from gatefit.training.metrics import deployed, evaluate, summary

SCORE_EPSILON: Final = 1e-12
"""Adam's ε for the scores of candidates, whose gradients are sums over few samples that matter."""


class TrainingDivergedError(ArithmeticError):
    """The loss is no longer a finite number."""


class NothingToTrainError(RuntimeError):
    """The process that keeps the run's files found it finished, or left without one: there is nothing to share."""


class TrainableModel(nn.Module, ABC):
    """A model of another kind than ``LogicNetwork`` for the loop: scores of bits, and no circuit."""

    gate_layers: ClassVar[tuple[()]] = ()
    file_format: ClassVar[str]
    """What its file says that it is."""

    implementation: Implementation | None = None
    """How the loss is computed; None: by the fastest that serves the scores."""

    @abstractmethod
    def forward(self, x: Batch) -> Tensor:
        """Class scores (batch, classes) while training; ``NotBooleanError`` in eval mode."""

    @abstractmethod
    def soft_scores(self, x: Batch) -> Tensor:
        """Class scores without gradients, whatever the mode."""

    def make_optimiser(self, config: OptimiserConfig) -> torch.optim.Optimizer:
        """What takes the steps; by default what a ``LogicNetwork`` has."""
        return adam(config, self)


Model: TypeAlias = LogicNetwork | TrainableModel


class Observer:
    """What may watch a run. Override what you need; nothing is measured for an observer that is not there."""

    def tried(self, config: RunConfig, temperature: float, accuracy: float) -> None:
        """Before the run, where its temperature is searched for: after every short training, on samples kept apart."""

    def started(self, config: RunConfig, network: nn.Module, state: TrainingState) -> None:
        """Before the first step of this process."""

    def stepped(self, state: TrainingState, network: nn.Module, loss: float) -> None:
        """After every step; gradients are still there."""

    def evaluated(self, state: TrainingState, network: nn.Module, metrics: dict[str, Any]) -> None:
        """After every evaluation."""

    def finished(self, state: TrainingState, network: nn.Module) -> None:
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


def learning_rate(config: OptimiserConfig, step: int) -> float:
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


def make_optimiser(config: OptimiserConfig, network: Model) -> torch.optim.Optimizer:
    """The model's own, or Adam."""
    return network.make_optimiser(config) if isinstance(network, TrainableModel) else adam(config, network)


def adam(config: OptimiserConfig, network: nn.Module) -> torch.optim.Optimizer:
    """Adam over all parameters, with decoupled weight decay where it is asked for.

    A learned wiring's scores are a group of their own: their rate, and an ε that does not drown their small gradients.
    """
    scores = [] if not isinstance(network, LogicNetwork) else network.wiring_parameters()
    own = {id(parameter) for parameter in scores}
    others = [parameter for parameter in network.parameters() if id(parameter) not in own]
    groups: list[dict[str, Any]] = [{"params": others}]
    if scores:
        factor = 1.0 if config.score_learning_rate is None else config.score_learning_rate / config.learning_rate
        groups.append({"params": scores, "factor": factor, "eps": SCORE_EPSILON, "weight_decay": 0.0})
    return Adam(
        groups if scores else others,
        lr=config.learning_rate,
        betas=(config.beta1, config.beta2),
        weight_decay=config.weight_decay,
    )


def loss_of(
    scores: Tensor, targets: Tensor, weights: Tensor | None, implementation: Implementation | None = None
) -> Tensor:
    """Cross-entropy for class indices, squared error for real targets; weighted mean over the batch.

    By the network's implementation, or without one by the fastest that serves the scores, where these are.
    """
    targets, weights = targets.to(scores.device), None if weights is None else weights.to(scores.device)
    if targets.dtype == torch.int64:
        losses = cross_entropy(
            scores, targets, implementation=implementation or resolve("auto", scores.device, scores.dtype)
        )
    else:
        losses = (scores[:, 0] - targets.to(scores.dtype)).square()
    return mean_loss(losses, weights)


def mean_loss(losses: Float[Tensor, " batch"], weights: Float[Tensor, " batch"] | None) -> Float[Tensor, ""]:
    """The samples' mean, weighted where there are weights."""
    return losses.mean() if weights is None else (losses * weights).sum() / weights.sum().clamp_min(1e-12)


@dataclass
class Learner:
    """One network in training: what trains it, who watches it, where its checkpoints are, how far it has come."""

    config: RunConfig
    network: Model
    folder: Path | None = None
    observers: Sequence[Observer] = ()
    state: TrainingState = field(default_factory=TrainingState)
    optimiser: torch.optim.Optimizer = field(init=False)

    def __post_init__(self) -> None:
        self.optimiser = make_optimiser(self.config, self.network)

    def restore(self, folder: Path | None) -> bool:
        """Take network, optimiser and state from the newest checkpoint in ``folder``, where there is one."""
        found = load_checkpoint(folder, self.config, self.network, self.optimiser) if folder is not None else None
        self.state = found or self.state
        return found is not None


def batch_loss(
    learner: Learner,
    data: TrainingData,
    indices: Int64[np.ndarray, " batch"],
    *,
    first: int = 0,
    share: float | Tensor | None = None,
) -> Tensor:
    """The mean loss of these samples, which stand from place ``first`` on in the batch of the learner's next step.

    With ``share`` as much of it.
    """
    return _loss(learner.network, *_batch(learner, data, indices, first), share)


def _loss(
    network: Model, bits: Batch, targets: Tensor, weights: Tensor | None, share: float | Tensor | None = None
) -> Tensor:
    """``share`` of the mean loss of a batch, with a graph."""
    implementation = None
    if isinstance(network, LogicNetwork):
        implementation = network.implementation
        network.expect([targets], [weights], share=1.0 if share is None else float(share))
    loss = loss_of(network(bits), targets, weights, implementation)
    return loss if share is None else share * loss


def _batch(
    learner: Learner, data: TrainingData, indices: Int64[np.ndarray, " batch"], first: int = 0
) -> tuple[Batch, Tensor, Tensor | None]:
    """Bits, targets and weights of samples that stand from place ``first`` on in the batch of the next step."""
    bits = data.train.training_batch(indices, seed=learner.config.seed, step=learner.state.step, first=first)
    return bits, data.train_targets[indices], None if data.train_weights is None else data.train_weights[indices]


class Strategy:
    """Who computes the steps, and what is evaluated: here this process, one network, both sets.

    The loop calls ``begin``, then ``backward`` for every step and ``evaluate`` for every learner where it is due, then
    ``end``. A strategy leaves the gradients of a step in the parameters of the optimiser that ``begin`` returns.
    """

    tells_steps: bool = True
    """Whether observers are told of single steps."""
    writes: bool = True
    """Whether this process keeps the run's files."""
    alone: bool = True
    """Whether no other process has a part of the steps."""
    apart: bool = True
    """Whether every network's gradients are computed from its own parameters, where these are."""

    def begin(self, learners: Sequence[Learner], data: TrainingData) -> torch.optim.Optimizer:
        """Go on from checkpoints where there are some; returns the optimiser that takes the steps."""
        (learner,) = learners
        learner.restore(learner.folder)
        return learner.optimiser

    def backward(
        self, learners: Sequence[Learner], data: TrainingData, batches: Sequence[Int64[np.ndarray, " batch"]]
    ) -> list[float]:
        """Each learner's mean loss over its batch; gradients are left in the parameters where all are finite."""
        network, (bits, targets, weights) = learners[0].network, _batch(learners[0], data, batches[0])
        losses = network.learn(bits, targets, weights) if isinstance(network, LogicNetwork) else None
        if losses is not None:
            return [float(mean_loss(losses, weights))]
        loss = _loss(network, bits, targets, weights)
        value = float(loss.detach())
        if math.isfinite(value):
            loss.backward()
        return [value]

    def announce(self, learners: Sequence[Learner], data: TrainingData, orders: Sequence[DataOrder]) -> None:
        """Say what the step after this one will read, where one network reads whole batches."""
        if len(learners) == 1 and self.alone:
            config, step = learners[0].config, learners[0].state.step + 1
            data.train.announce(orders[0].indices(step), seed=config.seed, step=step)

    def evaluate(self, learner: Learner, data: TrainingData) -> dict[str, Any]:
        """One more row of the log."""
        return evaluation(learner.network, data, learner.state)

    def end(self, learners: Sequence[Learner]) -> None:
        """After the last step of this process."""

    def agreed(self, should_stop: Callable[[], bool]) -> Callable[[], bool]:
        """``should_stop`` of all that compute."""
        return should_stop

    def announced(self) -> AbstractContextManager[None]:
        """A run begins in here; where it does not, whoever waits for it is told."""
        return nullcontext()


def train(
    config: RunConfig,
    network: Model,
    data: TrainingData,
    *,
    folder: Path | None = None,
    observers: Sequence[Observer] = (),
    should_stop: Callable[[], bool] = lambda: False,
    threads: int | None = None,
    strategy: Strategy | None = None,
) -> TrainingResult:
    """Train ``network`` for ``config.steps`` steps; with ``folder``, from and to its checkpoints.

    ``should_stop`` is asked after every step; a run that is stopped saves first, and can be resumed.
    """
    learner = Learner(config, network, folder, observers)
    return train_together([learner], data, strategy=strategy, should_stop=should_stop, threads=threads)[0]


def train_together(
    learners: Sequence[Learner],
    data: TrainingData,
    *,
    strategy: Strategy | None = None,
    should_stop: Callable[[], bool] = lambda: False,
    threads: int | None = None,
) -> list[TrainingResult]:
    """Train learners step by step with one another, as ``strategy`` has it (None: one, by this process)."""
    strategy = strategy or Strategy()
    should_stop = strategy.agreed(should_stop)
    with strategy.announced():
        for each in learners:
            each.config.check_patience()
        optimiser = strategy.begin(learners, data)
        orders = [DataOrder(data.train.samples, each.config.batch_size, each.config.seed) for each in learners]
        # They stand at the same step, and their configurations differ in nothing that this loop asks for.
        config, first = learners[0].config, learners[0].state
        finished = True
        with training_threads(threads), ExitStack() as laid_out:
            for each in learners:
                if isinstance(each.network, LogicNetwork) and strategy.apart and strategy.alone:
                    laid_out.enter_context(each.network.laid_out())
                each.network.train()
                for observer in each.observers:
                    observer.started(each.config, each.network, each.state)
            while first.step < config.steps and not _patience_is_over(config, first):
                _step(learners, optimiser, data, orders, strategy)
                due = first.step % config.evaluate_every == 0 or first.step == config.steps
                for each in learners if due else ():
                    row = strategy.evaluate(each, data)
                    for observer in each.observers:
                        observer.evaluated(each.state, each.network, row)
                stopping = should_stop()
                for each in learners if due or stopping else ():
                    if each.folder is not None:
                        save_checkpoint(each.folder, each.config, each.network, each.optimiser, each.state)
                if stopping and first.step < config.steps:
                    finished = False
                    break
            strategy.end(learners)
            for each in learners:
                if finished and each.state.best is not None:
                    each.network.load_state_dict(each.state.best)
                each.network.eval()
                for observer in each.observers:
                    observer.finished(each.state, each.network)
    return [TrainingResult(each.state, finished, validated=data.keep_best) for each in learners]


def _step(
    learners: Sequence[Learner],
    optimiser: torch.optim.Optimizer,
    data: TrainingData,
    orders: Sequence[DataOrder],
    strategy: Strategy,
) -> None:
    config, step = learners[0].config, learners[0].state.step
    rate = learning_rate(config, step)
    for group in optimiser.param_groups:
        group["lr"] = rate * group.get("factor", 1.0)
    optimiser.zero_grad(set_to_none=True)
    for each in learners:
        if isinstance(each.network, LogicNetwork):
            each.network.before_step(step, config.steps)
    batches = [order.indices(step) for order in orders]
    if step + 1 < config.steps:
        strategy.announce(learners, data, orders)
    losses = strategy.backward(learners, data, batches)
    for each, value in zip(learners, losses, strict=True):
        if not math.isfinite(value):
            whose = f" of seed {each.config.seed}" if len(learners) > 1 else ""
            raise TrainingDivergedError(
                f"the loss{whose} is {value} at step {step + 1}; lower learning_rate={config.learning_rate}, "
                "or check the targets for NaN"
            )
    optimiser.step()
    for each in learners:
        if isinstance(each.network, LogicNetwork):
            each.network.after_step(each.optimiser)
    for each, value in zip(learners, losses, strict=True):
        state = each.state
        state.step, state.loss_sum, state.loss_count = step + 1, state.loss_sum + value, state.loss_count + 1
        for observer in each.observers if strategy.tells_steps else ():
            observer.stepped(state, each.network, value)


def evaluation(network: Model, data: TrainingData, state: TrainingState) -> dict[str, Any]:
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


def record(row: dict[str, Any], network: nn.Module, data: TrainingData, state: TrainingState) -> dict[str, Any]:
    """Add a row to the log, and keep the network where it is the best so far and that is asked for."""
    state.loss_sum, state.loss_count = 0.0, 0
    if data.keep_best:
        reached = deployed(row, "test")
        if state.best is None or reached > state.best_score:
            state.best_score = reached
            state.best = {name: value.detach().clone() for name, value in network.state_dict().items()}
    state.metrics.append(row)
    return row


def _patience_is_over(config: EvaluationConfig, state: TrainingState) -> bool:
    if config.patience is None or not state.metrics:
        return False
    reached = [deployed(row, "test") for row in state.metrics]
    return len(reached) - 1 - int(np.argmax(reached)) >= config.patience
