"""Accuracies of the deployed and of the trained form, and the gaps between them (paper, app. gap-decomp).

    discretisation gap   DG  = A_soft - A_hard          on the training and on the test set
    generalisation gap   Gen = A_hard,train - A_hard,test
    last-10              mean hard test accuracy of the last ten evaluations: the paper's primary metric
    whole batches        A over the first samples of the test set alone, as a loader has it that drops the last batch

For regression A is R², the coefficient of determination.
"""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from gatefit.methods import GumbelST, NotBooleanError
from gatefit.network import LogicNetwork
from gatefit.training.data import BitSource

EVALUATION_BATCH = 1024


def scores_of(network: LogicNetwork, source: BitSource, *, soft: bool, batch: int = EVALUATION_BATCH) -> Tensor:
    """Scores of every sample, batch by batch: of the deployed network, or of the network as it is trained."""
    parts = []
    was_training = network.training
    # Soft evaluation of Gumbel-ST draws noise; the noise of training goes on as if nobody had looked.
    noises = [layer.method.noise for layer in network.gate_layers if isinstance(layer.method, GumbelST)]
    before = [noise.get_state() for noise in noises]
    network.eval()
    try:
        with torch.no_grad():
            for start in range(0, source.samples, batch):
                x = source.batch(np.arange(start, min(start + batch, source.samples)))
                parts.append(network.soft_scores(x) if soft else network(x))
    finally:
        network.train(was_training)
        for noise, state in zip(noises, before, strict=True):
            noise.set_state(state)
    return torch.cat(parts)


def agreement(scores: Tensor, targets: Tensor) -> float:
    """Accuracy for class indices, R² for real targets."""
    if targets.dtype == torch.int64:
        return float((scores.argmax(1) == targets).double().mean())
    residual = (scores[:, 0].double() - targets.double()).square().sum()
    spread = (targets.double() - targets.double().mean()).square().sum()
    return float(1 - residual / spread) if spread > 0 else 0.0


def evaluate(
    network: LogicNetwork, source: BitSource, targets: Tensor, *, whole_batches: int | None = None
) -> dict[str, float | None]:
    """Hard and soft agreement on one set; hard is None for a network that is not Boolean.

    With ``whole_batches`` also the agreement of so many first samples: hard, or soft where that is all there is.
    """
    scores = scores_of(network, source, soft=True)
    soft = agreement(scores, targets)
    try:
        scores = scores_of(network, source, soft=False)
        hard: float | None = agreement(scores, targets)
    except NotBooleanError:
        hard = None
    values = {"hard": hard, "soft": soft, "discretisation_gap": None if hard is None else soft - hard}
    if whole_batches is not None:
        values["accuracy_whole_batches"] = agreement(scores[:whole_batches], targets[:whole_batches])
    return values


def summary(metrics: list[dict[str, Any]], last: int = 10) -> dict[str, Any]:
    """Last-10 and best-checkpoint figures of a run's log."""
    if not metrics:
        return {}

    def deployed(row: dict[str, Any], name: str) -> float:
        # The free variants have no circuit; the paper reports their soft network, marked "not Boolean".
        hard, soft = row[f"{name}_hard"], row[f"{name}_soft"]
        return float(soft if hard is None else hard)

    test = [deployed(row, "test") for row in metrics]
    final = metrics[-1]
    return {
        "steps": final["step"],
        "boolean": final["test_hard"] is not None,
        "test_accuracy": test[-1],
        "last_10_accuracy": float(np.mean(test[-last:])),
        "best_accuracy": max(test),
        "best_step": metrics[int(np.argmax(test))]["step"],
        "train_accuracy": deployed(final, "train"),
        "discretisation_gap_train": final["train_discretisation_gap"],
        "discretisation_gap_test": final["test_discretisation_gap"],
        "generalisation_gap": deployed(final, "train") - test[-1],
    }
