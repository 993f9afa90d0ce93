"""Cross-entropy by torch's own function, on any device and in any floating type."""

from jaxtyping import Float, Int64
from torch import Tensor
from torch.nn import functional


def cross_entropy(scores: Float[Tensor, "batch classes"], targets: Int64[Tensor, " batch"]) -> Float[Tensor, " batch"]:
    """-log softmax(scores)[target]."""
    return functional.cross_entropy(scores, targets, reduction="none")
