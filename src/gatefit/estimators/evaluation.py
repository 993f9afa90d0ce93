"""What the scores of a fit are measured on: a bounded number of samples, however many there are.

train_score         of the training samples, or of a fixed choice of ``MOST_EVALUATED`` among more
validation_score    of the samples kept apart, ``MOST_EVALUATED`` at most

Twenty evaluations of a large table would otherwise take many times longer than its training. With n samples the
standard error of an accuracy is √(p (1 - p) / n), 0.5 % at most.
"""

from typing import Any, Final

import numpy as np
import torch
from jaxtyping import Int64

from gatefit.network import LogicNetwork
from gatefit.randomness import stream
from gatefit.training.checkpoint import TrainingState
from gatefit.training.data import TrainingData
from gatefit.training.loop import Alone, evaluation

MOST_EVALUATED: Final = 10_000


class SampledEvaluation(Alone):
    """Trains on all samples, and measures on some."""

    def __init__(self, measured: TrainingData) -> None:
        self.measured = measured

    def evaluate(
        self, network: LogicNetwork, optimiser: torch.optim.Optimizer, data: TrainingData, state: TrainingState
    ) -> dict[str, Any]:
        """One more row of the log."""
        return evaluation(network, self.measured, state)


def measured_rows(rows: Int64[np.ndarray, " rows"], seed: int) -> Int64[np.ndarray, " measured"]:
    """``rows``, or ``MOST_EVALUATED`` of them where there are more: a choice that follows from ``seed``."""
    if len(rows) <= MOST_EVALUATED:
        return rows
    order = torch.randperm(len(rows), generator=stream(seed, "evaluation"))
    return np.sort(rows[order[:MOST_EVALUATED].numpy()])
