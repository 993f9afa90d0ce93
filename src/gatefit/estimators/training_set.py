"""From bits, targets and weights to the sets that the training loop reads.

    rows equal in bits and target   become one, with the sum of their weights, where all then fit into one batch

So a sample of weight 3 and the same sample three times are one and the same training set, to the bit.
"""

from dataclasses import replace

import numpy as np
import torch
from jaxtyping import Bool, Float64, Int64, Num
from torch import Tensor

from gatefit.estimators.evaluation import measured_rows
from gatefit.training.data import PackedRows, TrainingData


def training_set(
    bits: Bool[np.ndarray, "samples bits"],
    targets: Num[np.ndarray, " samples"],
    weights: Float64[np.ndarray, " samples"],
    apart: Int64[np.ndarray, " apart"] | None,
    batch_size: int,
    seed: int,
) -> tuple[TrainingData, TrainingData]:
    """Training and validation set, and the part of them that scores are measured on.

    Where none is kept apart, one sample stands in for the validation set, and is not to be reported.
    """
    rows = np.arange(len(bits))
    held = rows[:1]
    if apart is not None:
        rows, held = np.setdiff1d(rows, apart), apart
    measured = measured_rows(rows, seed)
    rows, weights = merge_rows(bits, targets, weights, rows, batch_size)
    uniform = weights.max() == weights.min()
    data = TrainingData(
        PackedRows(bits[rows]),
        _tensor(targets[rows]),
        PackedRows(bits[held]),
        _tensor(targets[held]),
        train_weights=None if uniform else torch.as_tensor(weights, dtype=torch.float32),
        keep_best=apart is not None,
    )
    # What was merged is measured as it came: an accuracy is of samples, not of kinds of them.
    return data, replace(data, train=PackedRows(bits[measured]), train_targets=_tensor(targets[measured]))


def merge_rows(
    bits: Bool[np.ndarray, "samples bits"],
    targets: Num[np.ndarray, " samples"],
    weights: Float64[np.ndarray, " samples"],
    rows: Int64[np.ndarray, " rows"],
    most: int,
) -> tuple[Int64[np.ndarray, " merged"], Float64[np.ndarray, " merged"]]:
    """One of each kind of row, in an order that depends on nothing but their content, and the weight of each kind.

    Where there are more than ``most`` kinds, the rows as they are.
    """
    for count in (2 * most, len(rows)):  # Most large sets show it in their first rows.
        some = rows[:count]
        packed = np.packbits(bits[some], axis=1)
        target_bytes = np.ascontiguousarray(targets[some]).view(np.uint8).reshape(len(some), -1)
        content = np.ascontiguousarray(np.concatenate([packed, target_bytes], axis=1))
        keys = content.view(np.dtype((np.void, content.shape[1]))).ravel()
        _, first, kind = np.unique(keys, return_index=True, return_inverse=True)
        if len(first) > most:
            return rows, weights[rows]
    return rows[first], np.bincount(kind, weights=weights[rows])


def _tensor(targets: Num[np.ndarray, " samples"]) -> Tensor:
    return torch.as_tensor(targets, dtype=torch.float32 if targets.dtype.kind == "f" else torch.int64)
