"""Methods with sixteen logits θ a gate: a distribution over gate identities (paper §2.1).

    Soft-Mix    c = softmax(θ) G                                    deployed  argmax θ
    Hard-ST     c = G[argmax θ],     ∂c := ∂ softmax(θ/T) G         deployed  argmax θ
    Gumbel-ST   c = G[argmax(θ+γ)],  ∂c := ∂ softmax((θ+γ)/T) G     deployed  argmax θ      γ ~ s Gumbel(0, 1)

Gumbel-ST's noise enters both lines, or one of them: with ``noise_in="backward"`` the forward pass is Hard-ST's.
Since c does not depend on the sample, Soft-Mix costs one polynomial a sample here, like every other method; the
paper's 175 operations are those of the form that evaluates sixteen gates for each sample.
"""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Final

import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from gatefit.gates import Gate
from gatefit.methods.base import Method, SingleGateForward
from gatefit.ops.coefficients import (
    check_finite,
    check_temperature,
    largest,
    mixture_coefficients,
    straight_through_mixture,
)
from gatefit.ops.gumbel import GumbelNoise, noisy
from gatefit.ops.straight_through import straight_through

# Petersen et al. (2024) start every gate with this logit on A and 0 elsewhere: P(A) = 0.91.
RESIDUAL_LOGIT = 5.0
NOISE_PLACES: Final = ("both", "forward", "backward")


def _residual_centre() -> Tensor:
    centre = torch.zeros(16)
    centre[Gate.A] = RESIDUAL_LOGIT
    return centre


def _deployed(method: Method) -> Tensor:
    """argmax θ, as in training where that commits to it."""
    check_finite(method.latent, f"logits of {method.name}")
    return largest(method.latent, implementation=method.implementation)[0]


class SoftMix(Method):
    """The mixture of all sixteen gates (Petersen et al., 2022)."""

    name = "soft-mix"
    parameters_per_gate = 16
    independent_gates = True

    def residual_centre(self) -> Float[Tensor, "16"]:
        """A logit of 5 on the gate A."""
        return _residual_centre()

    def gate_probabilities(self) -> Float[Tensor, "gates 16"]:
        """π = softmax(θ)."""
        return torch.softmax(self.latent, dim=-1)

    def coefficients(self) -> Float[Tensor, "gates 4"]:
        """c = π G."""
        return mixture_coefficients(self.latent, implementation=self.implementation)

    def gates(self) -> UInt8[Tensor, "gates"]:
        """argmax θ."""
        return _deployed(self)


class _LogitStraightThrough(SingleGateForward):
    """One gate forward, the gradient of a softmax mixture backward."""

    parameters_per_gate = 16
    independent_gates = True

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
        return straight_through_mixture(self.logits(), self.temperature, implementation=self.implementation)

    def gates(self) -> UInt8[Tensor, "gates"]:
        """argmax θ."""
        return _deployed(self)


class HardST(_LogitStraightThrough):
    """Argmax forward, softmax backward (paper, Controls)."""

    name = "hard-st"
    step_cost = 0.7

    def logits(self) -> Float[Tensor, "gates 16"]:
        """θ."""
        return self.latent


class GumbelST(_LogitStraightThrough):
    """Gumbel noise on the logits, fresh for every gate at every step (Jang et al., 2017; Kim, 2023).

        noise_in    gate used in training    gradient of          deployed
        both        argmax(θ + γ)            softmax((θ + γ)/T)   argmax θ
        forward     argmax(θ + γ)            softmax(θ/T)         argmax θ
        backward    argmax θ                 softmax((θ + γ)/T)   argmax θ

    γ is ``noise_scale`` times a Gumbel variable, and fades linearly to nothing over ``noise_steps`` steps where that is
    given; without noise this is Hard-ST. The noise stream's position is part of the state_dict, so a resumed run draws
    what the uninterrupted one would have drawn.
    """

    name = "gumbel-st"
    draws_noise = True
    step_cost = 0.85

    def __init__(
        self,
        gates: int,
        *,
        generator: torch.Generator,
        temperature: float = 1.0,
        noise_scale: float = 1.0,
        noise_in: str = "both",
        noise_steps: int | None = None,
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
        if noise_in not in NOISE_PLACES:
            raise ValueError(f"unknown noise_in {noise_in!r}; choose one of {', '.join(NOISE_PLACES)}")
        if noise_steps is not None and noise_steps < 1:
            raise ValueError(f"noise_steps must be >= 1, got {noise_steps}; leave it out for noise that does not fade")
        self.noise_scale, self.noise_in, self.noise_steps = noise_scale, noise_in, noise_steps
        self.noise = GumbelNoise(int(torch.randint(2**62, (), generator=generator)))
        self.streams = [self.noise]
        """Where the noise comes from; networks laid side by side bring one stream each, for equal parts."""

    def scale_now(self) -> float:
        """The factor on the noise that is drawn next, a function of the stream's position."""
        left = 1.0 if self.noise_steps is None else max(0.0, 1 - self.streams[0].step / self.noise_steps)
        return self.noise_scale * left

    def logits(self) -> Float[Tensor, "gates 16"]:
        """θ + γ."""
        scale = self.scale_now()
        if not scale:
            # A stream that has faded stays where it is, at its end.
            return self.latent
        return straight_through(
            self.latent, noisy(self.latent, self.streams, scale, implementation=self.implementation)
        )

    def sample(self) -> tuple[UInt8[Tensor, " gates"], Float[Tensor, "gates 4"]]:
        """A gate and the gradient of a mixture, each with or without noise."""
        logits, way = self.logits(), self.implementation
        if self.noise_in == "both":
            return straight_through_mixture(logits, self.temperature, implementation=way)
        chooser, mixed = (logits, self.latent) if self.noise_in == "forward" else (self.latent, logits)
        gates, chosen = largest(chooser, implementation=way)
        return gates, straight_through(mixture_coefficients(mixed / self.temperature, implementation=way), chosen)

    def join(self, methods: Sequence[Method]) -> None:
        """Each of the methods goes on drawing its own noise."""
        super().join(methods)
        self.streams = [method.noise for method in methods if isinstance(method, GumbelST)]

    @classmethod
    def together(cls, methods: Sequence[Method], latent: Tensor | None = None) -> Method | None:
        """Each of the methods draws its own noise, for equal parts."""
        own = [method for method in methods if isinstance(method, GumbelST) and len(method.streams) == 1]
        sizes = {method.latent.shape[0] for method in own}
        whole = super().together(methods, latent) if len(own) == len(methods) and len(sizes) == 1 else None
        if isinstance(whole, GumbelST):
            whole.streams = [method.noise for method in own]
        return whole

    def get_extra_state(self) -> Tensor:
        """The noise stream's position, saved in the state_dict."""
        return self.noise.get_state()

    def set_extra_state(self, state: Tensor) -> None:
        """Continue the noise where the saved run left it."""
        self.noise.set_state(state)
