"""What the circuit of an estimator says of where it is from (``gatefit.circuit.provenance``).

data    sha256 of the rows as bits, of the targets as they are trained on, and of the weights: the same table gives the
        same digest, however it was read, as long as the encoder makes the same bits of it
"""

import hashlib

import numpy as np
import torch
from jaxtyping import Bool, Float64, Num

from gatefit._version import VERSION
from gatefit.estimators.growth import Fitted
from gatefit.training.data import TrainingData
from gatefit.training.metrics import agreement, scores_of


def provenance(
    fit: Fitted,
    data: TrainingData,
    bits: Bool[np.ndarray, "samples bits"],
    targets: Num[np.ndarray, " samples"],
    weights: Float64[np.ndarray, " samples"],
) -> dict[str, str]:
    """The metadata of a fit: version, configuration, data, and of classes the accuracy of the network that was kept."""
    measured: dict[str, float] = {}
    if data.train_targets.dtype == torch.int64 and data.keep_best:
        measured["validation_accuracy"] = agreement(scores_of(fit.network, data.test, soft=False), data.test_targets)
    elif data.train_targets.dtype == torch.int64:
        measured["train_accuracy"] = fit.metrics[-1]["train_hard"]
    return {
        "gatefit": VERSION,
        "run": fit.name,
        "data": data_digest(bits, targets, weights),
        **{name: repr(float(value)) for name, value in measured.items()},
    }


def data_digest(
    bits: Bool[np.ndarray, "samples bits"],
    targets: Num[np.ndarray, " samples"],
    weights: Float64[np.ndarray, " samples"],
) -> str:
    """What identifies a training set."""
    found = hashlib.sha256(f"{bits.shape[0]} {bits.shape[1]}".encode())
    found.update(np.packbits(bits, axis=1).data)
    for values in (targets, weights):
        found.update(np.ascontiguousarray(values.astype("<f8")).data)
    return found.hexdigest()
