"""What the scores of a fit are measured on: a bounded number of samples, however many there are.

train_score         of the training samples, or of a fixed choice of ``MOST_EVALUATED`` among more
validation_score    of the samples kept apart, ``MOST_EVALUATED`` at most

Twenty evaluations of a large table would otherwise take many times longer than its training. With n samples the
standard error of an accuracy is √(p (1 - p) / n), 0.5 % at most.

Early stopping keeps the network of the best validation score. Where ``ONE_SIDED`` of the samples are of one class, the
accuracy hangs on a few samples and hardly moves: there it keeps the network of the least cross-entropy.
"""

from dataclasses import replace
from typing import Any, Final

import numpy as np
import torch
from jaxtyping import Bool, Float64, Int64, Num
from torch import Tensor

from gatefit.bits import PackedBatch
from gatefit.network import LogicNetwork
from gatefit.randomness import stream
from gatefit.training.checkpoint import TrainingState
from gatefit.training.data import BitSource, PackedRows, TrainingData
from gatefit.training.loop import Learner, Strategy, evaluation, loss_of
from gatefit.training.metrics import scores_of

MOST_EVALUATED: Final = 10_000
ONE_SIDED: Final = 0.9


class SampledEvaluation(Strategy):
    """Trains on all samples, and measures on some."""

    def __init__(self, measured: TrainingData) -> None:
        self.by_loss = measured.keep_best and is_one_sided(measured.train_targets)
        self.measured = replace(measured, keep_best=False) if self.by_loss else measured

    def evaluate(self, learner: Learner, data: TrainingData) -> dict[str, Any]:
        """One more row of the log."""
        network, state = learner.network, learner.state
        row = evaluation(network, self.measured, state)
        if self.by_loss:
            scores = scores_of(network, self.measured.test, soft=False)
            reached = -float(loss_of(scores, self.measured.test_targets, None))
            if state.best is None or reached > state.best_score:
                state.best_score = reached
                state.best = {name: value.detach().clone() for name, value in network.state_dict().items()}
        return row


def measured_on(
    measured: TrainingData, bits: Bool[np.ndarray, "samples bits"], targets: Num[np.ndarray, " samples"]
) -> TrainingData:
    """The same with other samples in place of the one that stands in for a validation set: they are looked at only."""
    some = slice(0, MOST_EVALUATED)
    kind = torch.float32 if targets.dtype.kind == "f" else torch.int64
    return replace(measured, test=PackedRows(bits[some]), test_targets=torch.as_tensor(targets[some], dtype=kind))


def keep_so_far(network: LogicNetwork, state: TrainingState, measured: TrainingData) -> None:
    """Make a network that was stopped the best one so far, or leave the last; its log ends with what it reaches."""
    if not state.metrics or state.metrics[-1]["step"] < state.step:
        evaluation(network, replace(measured, keep_best=False), state)
    if state.best is not None:
        network.load_state_dict(state.best)


class ChosenRows(BitSource):
    """Some rows of a source."""

    def __init__(self, source: BitSource, rows: Int64[np.ndarray, " rows"]) -> None:
        self.source, self.rows, self.samples = source, rows, len(rows)

    def batch(self, indices: Int64[np.ndarray, " batch"]) -> PackedBatch:
        """The bits of these of them."""
        return self.source.batch(self.rows[indices])


def mean_shift(network: LogicNetwork, data: TrainingData, seed: int) -> Float64[Tensor, " classes"]:
    """What the deployed network's scores are below the trained one's: the weighted mean over training samples."""
    rows = measured_rows(np.arange(data.train.samples), seed)
    source = ChosenRows(data.train, rows)
    soft, hard = (scores_of(network, source, soft=soft).double() for soft in (True, False))
    weights = torch.ones(len(rows)) if data.train_weights is None else data.train_weights[rows]
    return weights.double() @ (soft - hard) / weights.double().sum()


def is_one_sided(targets: Tensor) -> bool:
    """Whether nearly all targets are of one class."""
    return targets.dtype == torch.int64 and int(targets.bincount().max()) >= ONE_SIDED * len(targets)


def measured_rows(rows: Int64[np.ndarray, " rows"], seed: int) -> Int64[np.ndarray, " measured"]:
    """``rows``, or ``MOST_EVALUATED`` of them where there are more: a choice that follows from ``seed``."""
    if len(rows) <= MOST_EVALUATED:
        return rows
    order = torch.randperm(len(rows), generator=stream(seed, "evaluation"))
    return np.sort(rows[order[:MOST_EVALUATED].numpy()])
