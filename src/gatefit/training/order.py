"""The data order: a pure function of (seed, epoch), so that a resumed run reads what it would have read.

the stream is permutation(seed, 0), permutation(seed, 1), ... end to end; step t reads its t-th block of ``batch``
"""

import numpy as np
import torch
from jaxtyping import Int64

from gatefit.randomness import stream


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
