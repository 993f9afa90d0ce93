"""What a step reads: training data as bits, packed once where they fit or encoded batch by batch, and their order.

PackedRows    one bit a feature:  CIFAR-10 with 31 thresholds is 0.6 GB instead of 19 GB of floats
EncodedRows   the raw bytes, encoded for each batch:  0.15 GB
DataOrder     a pure function of (seed, epoch), so that a resumed run reads what it would have read: the stream is
              permutation(seed, 0), permutation(seed, 1), ... end to end; step t reads its t-th block of ``batch``
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Int64
from torch import Tensor

from gatefit.bits import PackedBatch, gather, pack, pack_rows
from gatefit.encoders import Encoder
from gatefit.randomness import stream

PACKED_LIMIT = 1 << 29
"""Bytes of packed bits up to which a set is encoded once; beyond, batch by batch."""
PIECE = 4096
"""Samples encoded at a time."""


class BitSource(ABC):
    """Rows of bits, read by index."""

    samples: int
    bits: int

    @abstractmethod
    def batch(self, indices: Int64[np.ndarray, "batch"]) -> PackedBatch:
        """The bits of these samples, 64 samples to a word."""

    def training_batch(
        self, indices: Int64[np.ndarray, "batch"], *, seed: int, step: int, first: int = 0
    ) -> PackedBatch:
        """What step ``step`` of a run reads of these samples, which stand from place ``first`` on in its batch.

        Their bits; a source that shows its samples otherwise in every step does so here, as a function of the seed, the
        step and a sample's place.
        """
        return self.batch(indices)

    def announce(self, indices: Int64[np.ndarray, "batch"], *, seed: int, step: int) -> None:
        """The whole batch of step ``step`` of a run will be these samples: a source that takes long may begin with it.

        Whoever announces need not ask for it, and the batch is the same announced or not.
        """
        return


class PackedRows(BitSource):
    """A Boolean matrix held as bits."""

    def __init__(self, values: Bool[np.ndarray, "samples bits"]) -> None:
        self.samples, self.bits = values.shape
        self.rows = pack_rows(values)

    def batch(self, indices: Int64[np.ndarray, "batch"]) -> PackedBatch:
        """The bits of these samples."""
        return gather(self.rows, indices, self.bits)


class EncodedRows(BitSource):
    """Raw rows and the encoder that makes bits of them."""

    def __init__(self, rows: Any, encoder: Encoder) -> None:
        self.rows, self.encoder = rows, encoder
        self.samples, self.bits = len(rows), encoder.bits

    def batch(self, indices: Int64[np.ndarray, "batch"]) -> PackedBatch:
        """The bits of these samples, made now."""
        return pack(self.encoder.transform(self.rows[indices]))


class Subset(BitSource):
    """Some samples of another source, numbered anew."""

    def __init__(self, source: BitSource, rows: Int64[np.ndarray, " samples"]) -> None:
        self.source, self.rows = source, rows
        self.samples, self.bits = len(rows), source.bits

    def batch(self, indices: Int64[np.ndarray, "batch"]) -> PackedBatch:
        """The bits of these samples."""
        return self.source.batch(self.rows[indices])

    def training_batch(
        self, indices: Int64[np.ndarray, "batch"], *, seed: int, step: int, first: int = 0
    ) -> PackedBatch:
        """What a step reads of these samples."""
        return self.source.training_batch(self.rows[indices], seed=seed, step=step, first=first)

    def announce(self, indices: Int64[np.ndarray, "batch"], *, seed: int, step: int) -> None:
        """Passed on."""
        self.source.announce(self.rows[indices], seed=seed, step=step)


def bit_source(rows: Any, encoder: Encoder, *, limit: int = PACKED_LIMIT) -> BitSource:
    """``rows`` encoded once, a piece at a time, where the packed result stays below ``limit`` bytes."""
    if len(rows) * encoder.bits > 8 * limit:
        return EncodedRows(rows, encoder)
    source = PackedRows(np.empty((0, encoder.bits), dtype=np.bool_))
    # A Boolean matrix takes eight times the memory of its bits: only a piece of it exists at a time.
    pieces = [pack_rows(encoder.transform(rows[i : i + PIECE])) for i in range(0, len(rows), PIECE)]
    source.samples, source.rows = len(rows), np.concatenate(pieces)
    return source


@dataclass(frozen=True)
class TrainingData:
    """What a run reads; ``test`` is the validation set where one is kept apart."""

    train: BitSource
    train_targets: Tensor
    test: BitSource
    test_targets: Tensor
    train_weights: Tensor | None = None
    keep_best: bool = False
    whole_batches: int | None = None
    """How many samples at the beginning of the test set are whole batches, where they are evaluated apart."""
    digest: str = ""
    """Of the data set that it is made from, where that is known: processes that share a run must have the same."""


class DataOrder:
    """Indices of each step's samples; batches run across the ends of epochs, so all have the same size."""

    def __init__(self, samples: int, batch: int, seed: int) -> None:
        if samples < 1:
            raise ValueError("there are no samples to train on")
        self.samples, self.batch, self.seed = samples, min(batch, samples), seed
        self._epoch, self._permutation = -1, np.empty(0, dtype=np.int64)

    def permutation(self, epoch: int) -> Int64[np.ndarray, " samples"]:
        """The order of one epoch."""
        if epoch != self._epoch:
            shuffled = torch.randperm(self.samples, generator=stream(self.seed, f"order/{epoch}"))
            self._epoch, self._permutation = epoch, shuffled.numpy()
        return self._permutation

    def indices(self, step: int) -> Int64[np.ndarray, " batch"]:
        """The samples of step ``step``, counted from 0."""
        start, end = step * self.batch, (step + 1) * self.batch
        parts = []
        while start < end:
            epoch, offset = divmod(start, self.samples)
            part = self.permutation(epoch)[offset : offset + end - start]
            parts.append(part)
            start += len(part)
        return parts[0] if len(parts) == 1 else np.concatenate(parts)
