"""Methods with sixteen logits θ a gate: a distribution over gate identities (paper §2.1).

    Soft-Mix    c = softmax(θ) G                                    deployed  argmax θ
    Hard-ST     c = G[argmax θ],     ∂c := ∂ softmax(θ/T) G         deployed  argmax θ
    Gumbel-ST   c = G[argmax(θ+γ)],  ∂c := ∂ softmax((θ+γ)/T) G     deployed  argmax θ      γ ~ Gumbel(0, 1)

Since c does not depend on the sample, Soft-Mix costs one polynomial a sample here, like every other method; the
paper's 175 operations are those of the form that evaluates sixteen gates for each sample.
"""

from abc import abstractmethod

import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from gatefit.gates import Gate
from gatefit.methods.base import Method, SingleGateForward
from gatefit.ops.coefficients import mixture_coefficients, straight_through_mixture
from gatefit.ops.gumbel_numba import GumbelNoise
from gatefit.quantise import check_finite, check_temperature

# Petersen et al. (2024) start every gate with this logit on A and 0 elsewhere: P(A) = 0.91.
RESIDUAL_LOGIT = 5.0


def _residual_centre() -> Tensor:
    centre = torch.zeros(16)
    centre[Gate.A] = RESIDUAL_LOGIT
    return centre


def _argmax_gate(logits: Tensor, name: str) -> Tensor:
    check_finite(logits, f"logits of {name}")
    return logits.argmax(-1).to(torch.uint8)


class SoftMix(Method):
    """The mixture of all sixteen gates (Petersen et al., 2022)."""

    name = "soft-mix"
    parameters_per_gate = 16

    def residual_centre(self) -> Float[Tensor, "16"]:
        """A logit of 5 on the gate A."""
        return _residual_centre()

    def gate_probabilities(self) -> Float[Tensor, "gates 16"]:
        """π = softmax(θ)."""
        return torch.softmax(self.latent, dim=-1)

    def coefficients(self) -> Float[Tensor, "gates 4"]:
        """c = π G."""
        return mixture_coefficients(self.latent)

    def gates(self) -> UInt8[Tensor, "gates"]:
        """argmax θ."""
        return _argmax_gate(self.latent, self.name)


class _LogitStraightThrough(SingleGateForward):
    """One gate forward, the gradient of a softmax mixture backward."""

    parameters_per_gate = 16

    def __init__(
        self,
        gates: int,
        *,
        generator: torch.Generator,
        temperature: float = 1.0,
        initialisation: str = "normal",
        sigma: float | None = None,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        super().__init__(gates, generator=generator, initialisation=initialisation, sigma=sigma, dtype=dtype)
        check_temperature(temperature)
        self.temperature = temperature

    @abstractmethod
    def logits(self) -> Float[Tensor, "gates 16"]:
        """The logits of this forward pass."""

    def residual_centre(self) -> Float[Tensor, "16"]:
        """A logit of 5 on the gate A."""
        return _residual_centre()

    def gate_probabilities(self) -> Float[Tensor, "gates 16"]:
        """π = softmax(θ), without noise."""
        return torch.softmax(self.latent, dim=-1)

    def sample(self) -> tuple[UInt8[Tensor, "gates"], Float[Tensor, "gates 4"]]:
        """argmax of the logits, with the gradient of softmax(logits / T) G."""
        return straight_through_mixture(self.logits(), self.temperature)

    def gates(self) -> UInt8[Tensor, "gates"]:
        """argmax θ."""
        return _argmax_gate(self.latent, self.name)


class HardST(_LogitStraightThrough):
    """Argmax forward, softmax backward (paper, Controls)."""

    name = "hard-st"

    def logits(self) -> Float[Tensor, "gates 16"]:
        """θ."""
        return self.latent


class GumbelST(_LogitStraightThrough):
    """One gate drawn by Gumbel noise, fresh for every gate at every step (Jang et al., 2017; Kim, 2023).

    ``noise_scale`` multiplies γ; at 0 this is Hard-ST. The noise stream's position is part of the state_dict, so a
    resumed run draws what the uninterrupted one would have drawn.
    """

    name = "gumbel-st"

    def __init__(
        self,
        gates: int,
        *,
        generator: torch.Generator,
        temperature: float = 1.0,
        noise_scale: float = 1.0,
        initialisation: str = "normal",
        sigma: float | None = None,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        super().__init__(
            gates,
            generator=generator,
            temperature=temperature,
            initialisation=initialisation,
            sigma=sigma,
            dtype=dtype,
        )
        if not 0 <= noise_scale < float("inf"):
            raise ValueError(f"noise_scale must be a finite number >= 0, got {noise_scale}; 1 is the Gumbel trick")
        self.noise_scale = noise_scale
        self.noise = GumbelNoise(int(torch.randint(2**62, (), generator=generator)))
        self.streams = [self.noise]
        """Where the noise comes from; networks laid side by side bring one stream each, for equal parts."""

    def logits(self) -> Float[Tensor, "gates 16"]:
        """θ + γ."""
        noise = torch.empty(self.latent.shape, dtype=torch.float32)
        for part, stream in zip(noise.chunk(len(self.streams)), self.streams, strict=True):
            stream.fill(part)
        return torch.add(self.latent, noise.to(self.latent), alpha=self.noise_scale)

    def get_extra_state(self) -> Tensor:
        """The noise stream's position, saved in the state_dict."""
        return self.noise.get_state()

    def set_extra_state(self, state: Tensor) -> None:
        """Continue the noise where the saved run left it."""
        self.noise.set_state(state)
