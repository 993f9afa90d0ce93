"""Accuracies of the deployed and of the trained form, and the gaps between them (paper, app. gap-decomp).

    discretisation gap   DG  = A_soft - A_hard          on the training and on the test set
    generalisation gap   Gen = A_hard,train - A_hard,test
    last-10              mean hard test accuracy of the last ten evaluations: the paper's primary metric
    whole batches        A over the first samples of the test set alone, as a loader has it that drops the last batch

For regression A is R², the coefficient of determination.
"""

import contextlib
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from gatefit.methods import NotBooleanError
from gatefit.network import LogicNetwork
from gatefit.randomness import noise_kept
from gatefit.training.data import BitSource

if TYPE_CHECKING:
    from gatefit.training.loop import Model

EVALUATION_BATCH = 1024


def scores_of(network: "Model", source: BitSource, *, soft: bool, batch: int = EVALUATION_BATCH) -> Tensor:
    """Scores of every sample, batch by batch: of the deployed network, or of the network as it is trained."""
    parts = []
    was_training = network.training
    network.eval()
    try:
        with torch.no_grad(), noise_kept(network) if isinstance(network, LogicNetwork) else contextlib.nullcontext():
            for start in range(0, source.samples, batch):
                x = source.batch(np.arange(start, min(start + batch, source.samples)))
                parts.append(network.soft_scores(x) if soft else network(x))
    finally:
        network.train(was_training)
    return torch.cat(parts)


def agreement(scores: Tensor, targets: Tensor) -> float:
    """Accuracy for class indices, R² for real targets."""
    targets = targets.to(scores.device)
    if targets.dtype == torch.int64:
        return float((scores.argmax(1) == targets).double().mean())
    residual = (scores[:, 0].double() - targets.double()).square().sum()
    spread = (targets.double() - targets.double().mean()).square().sum()
    return float(1 - residual / spread) if spread > 0 else 0.0


def evaluate(
    network: "Model", source: BitSource, targets: Tensor, *, whole_batches: int | None = None
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


def deployed(row: dict[str, Any], name: str) -> float:
    """The accuracy on the set ``name`` in a row of the log: of the deployed network.

    The free variants have no circuit; the paper reports their soft network, marked "not Boolean".
    """
    hard, soft = row[f"{name}_hard"], row[f"{name}_soft"]
    return float(soft if hard is None else hard)


def summary(metrics: list[dict[str, Any]], last: int = 10, *, validated: bool = False) -> dict[str, Any]:
    """The figures of a run's log: of the network that is kept, and over the evaluations.

    The network kept is the last, and its figures are called "test". With a validation set (``validated``) it is the
    best, the first of equals; the log's test columns are of that set, and the figures are called "validation".
    """
    if not metrics:
        return {}
    reached = [deployed(row, "test") for row in metrics]
    best = int(np.argmax(reached))
    kept, held_out = (metrics[best], "validation") if validated else (metrics[-1], "test")
    return {
        "steps": metrics[-1]["step"],
        "boolean": kept["test_hard"] is not None,
        f"{held_out}_accuracy": deployed(kept, "test"),
        "last_10_accuracy": float(np.mean(reached[-last:])),
        "best_accuracy": reached[best],
        "best_step": metrics[best]["step"],
        "train_accuracy": deployed(kept, "train"),
        "discretisation_gap_train": kept["train_discretisation_gap"],
        f"discretisation_gap_{held_out}": kept["test_discretisation_gap"],
        "generalisation_gap": deployed(kept, "train") - deployed(kept, "test"),
    }
