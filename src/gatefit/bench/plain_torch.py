"""What gatefit is measured against, in plain torch: the strongest plain form, and the naive one.

feature-major   x (inputs, batch);  z = c_0 + c_a a + c_b b + c_ab ab by gather and autograd
naive mixture   x (batch, inputs);  z = Σ_j π_j g_j(a, b): all sixteen gates for every sample, as the field writes it
"""

import torch
from torch import Tensor, nn

from gatefit.ops.coefficients import codebook


class FeatureMajor(nn.Module):
    """The same network, same mathematics, one torch operation after another; CovJac or Soft-Mix coefficients."""

    def __init__(self, wirings: list[Tensor], latents: list[Tensor], classes: int, temperature: float) -> None:
        super().__init__()
        self.wirings = [wiring.long() for wiring in wirings]
        self.latents = nn.ParameterList(nn.Parameter(latent.detach().clone()) for latent in latents)
        self.classes, self.temperature = classes, temperature

    def coefficients(self, latent: Tensor) -> Tensor:
        """Four a gate: of sixteen logits, or of four latent numbers."""
        vectors = codebook()
        if latent.shape[1] == 16:
            return torch.softmax(latent, -1) @ vectors
        return torch.softmax(-(latent[:, None] - vectors).square().sum(-1), -1) @ vectors

    def forward(self, x: Tensor) -> Tensor:
        """Scores."""
        x = x.T.contiguous()
        for wiring, latent in zip(self.wirings, self.latents, strict=True):
            c = self.coefficients(latent)
            a, b = x[wiring[0]], x[wiring[1]]
            x = c[:, 0:1] + c[:, 1:2] * a + c[:, 2:3] * b + c[:, 3:4] * (a * b)
        return x.view(self.classes, -1, x.shape[1]).sum(1).T / self.temperature


def sixteen(a: Tensor, b: Tensor) -> list[Tensor]:
    """Every gate's real-valued extension, in the order of their numbers."""
    ab, one = a * b, torch.ones_like(a)
    return [
        torch.zeros_like(a), ab, a - ab, a, b - ab, b, a + b - 2 * ab, a + b - ab,
        one - (a + b - ab), one - (a + b - 2 * ab), one - b, one - b + ab, one - a, one - a + ab, one - ab, one,
    ]  # fmt: skip


class NaiveMixture(nn.Module):
    """Soft-Mix as it is commonly written: batch-major, sixteen gates a sample."""

    def __init__(self, wirings: list[Tensor], latents: list[Tensor], classes: int, temperature: float) -> None:
        super().__init__()
        self.wirings = [wiring.long() for wiring in wirings]
        self.latents = nn.ParameterList(nn.Parameter(latent.detach().clone()) for latent in latents)
        self.classes, self.temperature = classes, temperature

    def forward(self, x: Tensor) -> Tensor:
        """Scores."""
        for wiring, latent in zip(self.wirings, self.latents, strict=True):
            weights = torch.softmax(latent, -1)
            total = torch.zeros(())
            for j, gate in enumerate(sixteen(x[:, wiring[0]], x[:, wiring[1]])):
                total = total + weights[:, j] * gate
            x = total
        return x.view(x.shape[0], self.classes, -1).sum(-1) / self.temperature
