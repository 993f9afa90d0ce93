"""Cross-entropy of each sample: loss = -log softmax(x)[target]."""

from collections.abc import Callable
from typing import Final

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from gatefit.ops.cross_entropy import numba, reference
from gatefit.ops.implementations import Implementation

CROSS_ENTROPY: Final[dict[str, Callable[[Tensor, Tensor], Tensor]]] = {
    "reference": reference.cross_entropy,
    "numba": numba.cross_entropy,
}


def cross_entropy(
    scores: Float[Tensor, "batch classes"], targets: Int64[Tensor, " batch"], *, implementation: Implementation
) -> Float[Tensor, " batch"]:
    """The loss of each sample."""
    if scores.ndim != 2 or targets.shape != scores.shape[:1] or targets.dtype != torch.int64:
        raise ValueError(
            f"scores must have shape (batch, classes) and targets be int64 of shape (batch,), got "
            f"{tuple(scores.shape)}, {targets.dtype} and {tuple(targets.shape)}"
        )
    return implementation.choose(CROSS_ENTROPY)(scores, targets)
