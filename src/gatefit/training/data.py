"""Training data as bits: packed once where they fit, or encoded batch by batch from the raw rows.

PackedRows    one bit a feature:  CIFAR-10 with 31 thresholds is 0.6 GB instead of 19 GB of floats
EncodedRows   the raw bytes, encoded for each batch:  0.15 GB
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gatefit.encoders import Encoder
from gatefit.ops.stack import Batch

PACKED_LIMIT = 1 << 29
"""Bytes of packed bits up to which a set is encoded once; beyond, batch by batch."""


class BitSource(ABC):
    """Rows of bits, read by index."""

    samples: int
    bits: int

    @abstractmethod
    def batch(self, indices: np.ndarray) -> Batch:
        """The bits of these samples."""


class PackedRows(BitSource):
    """A Boolean matrix held as bits."""

    def __init__(self, rows: np.ndarray) -> None:
        self.samples, self.bits = rows.shape
        self.rows = np.packbits(rows, axis=1)

    def batch(self, indices: np.ndarray) -> Batch:
        """The bits of these samples."""
        return torch.from_numpy(np.unpackbits(self.rows[indices], axis=1, count=self.bits))


class EncodedRows(BitSource):
    """Raw rows and the encoder that makes bits of them."""

    def __init__(self, rows: Any, encoder: Encoder) -> None:
        self.rows, self.encoder = rows, encoder
        self.samples, self.bits = len(rows), encoder.bits

    def batch(self, indices: np.ndarray) -> Batch:
        """The bits of these samples, made now."""
        return torch.from_numpy(self.encoder.transform(self.rows[indices]))


def bit_source(rows: Any, encoder: Encoder, *, limit: int = PACKED_LIMIT) -> BitSource:
    """``rows`` encoded once, piece by piece, where the packed result stays below ``limit`` bytes."""
    if len(rows) * encoder.bits > 8 * limit:
        return EncodedRows(rows, encoder)
    return PackedRows(encoder.transform(rows))


@dataclass(frozen=True)
class TrainingData:
    """What a run reads; ``test`` is the validation set where one is kept apart."""

    train: BitSource
    train_targets: Tensor
    test: BitSource
    test_targets: Tensor
    train_weights: Tensor | None = None
    keep_best: bool = False
