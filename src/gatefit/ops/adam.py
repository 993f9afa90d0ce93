"""Adam with decoupled weight decay, in torch's fused form.

    m = β₁ m + (1 - β₁) g;   v = β₂ v + (1 - β₂) g²;   θ = (1 - η λ) θ - η m̂ / (√v̂ + ε)

Measured at 6 × 8,000 gates with four coefficients each, one thread: 0.2 ms fused, 0.5 ms operation by operation, of a
step of some 20 ms. A kernel of our own would not show.
"""

from collections.abc import Iterable

import torch
from torch import Tensor


class Adam(torch.optim.AdamW):
    """torch's AdamW with ``fused=True``: one pass over parameter, gradient and moments."""

    def __init__(
        self,
        parameters: Iterable[Tensor],
        lr: float = 0.01,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
    ) -> None:
        super().__init__(list(parameters), lr=lr, betas=betas, eps=eps, weight_decay=weight_decay, fused=True)
