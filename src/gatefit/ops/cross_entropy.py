"""Cross-entropy of each sample: by the kernel whose bits do not depend on the processor, or by torch's own."""

import torch
from jaxtyping import Float, Int64
from torch import Tensor
from torch.nn import functional

from gatefit.ops.cross_entropy_numba import cross_entropy_numba


def cross_entropy(scores: Float[Tensor, "batch classes"], targets: Int64[Tensor, " batch"]) -> Float[Tensor, " batch"]:
    """-log softmax(scores)[target]; scores in float64 or on another device are torch's."""
    if scores.dtype == torch.float32 and scores.device.type == "cpu":
        return cross_entropy_numba(scores, targets)
    return functional.cross_entropy(scores, targets, reduction="none")
