"""A gate method: parameters in, four coefficients a gate out (paper §3; NOTES on one kernel for all).

    coefficients()   (gates, 4), differentiable     used while training:  z = act(c_0 + c_a a + c_b b + c_ab ab)
    gates()          (gates,) gate numbers          what is deployed
    sample()         both at once, for methods whose training forward commits to one gate (single-gate forward)

A method knows nothing of inputs, wiring or batches; the same kernel serves all of them.
"""

import copy
import inspect
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import torch
from jaxtyping import Float, UInt8
from torch import Tensor, nn

from gatefit.ops.coefficients import codebook
from gatefit.ops.implementations import Implemented

INITIALISATIONS = ("normal", "residual")
SURROGATES = ("snapped", "continuous")
# Normal: the paper's N(0, 1). Residual: close to the gate A, so that a deep network starts near the identity.
DEFAULT_SIGMA = {"normal": 1.0, "residual": 0.25}


class NotBooleanError(ValueError):
    """Raised when a network that never snaps to gates is asked for its gates."""


def sigmoid(method: "Method", z: Float[Tensor, "batch gates"]) -> Float[Tensor, "batch gates"]:
    """The activation of the free variants, ``activation = sigmoid``: one that compiled kernels know."""
    return torch.sigmoid(z)


class Method(Implemented, ABC):
    """The map from ``parameters_per_gate`` learned numbers to the coefficients of one gate.

    latent ~ N(centre, σ²), with centre = 0 (``normal``) or the method's identity-leaning point (``residual``).
    """

    name: ClassVar[str]
    parameters_per_gate: ClassVar[int]
    boolean_forward: ClassVar[bool] = False
    """Whether the training forward commits to one gate, so that activations of 0 and 1 stay 0 and 1."""

    continuous_backward: bool = False
    """Whether gradients pass straight through at the gate's output: they are those of the polynomial that ``sample``
    gives, not of the gate committed to."""

    has_activation: ClassVar[bool] = False
    """Whether something other than the identity follows the polynomial: whether ``activation`` is overridden."""

    independent_gates: bool = False
    """Whether each gate's part of a training step depends on its own parameters and inputs alone, to the bit and
    wherever it stands: several networks can then be trained side by side as one (``join``). A promise, so not assumed:
    it fails with a parameter that gates share, and with torch's functions of whole arrays, whose last elements round
    differently."""

    step_cost: ClassVar[float] = 1.3
    """About how many nanoseconds a training step takes for each gate and sample, on one core: for estimates."""

    learns_coefficients: ClassVar[bool] = False
    """Whether the parameters of a gate are (c_0, c_a, c_b, c_ab) themselves, not logits, corners or anything else."""

    draws_noise: ClassVar[bool] = False
    """Whether training draws random numbers; get_extra_state and set_extra_state then keep the stream's position."""

    latent: nn.Parameter

    def __init_subclass__(cls, **arguments: Any) -> None:
        super().__init_subclass__(**arguments)
        cls.has_activation = cls.activation is not Method.activation

    @classmethod
    def options(cls) -> dict[str, Any]:
        """The options that the method takes, by name, with their defaults."""
        parameters = inspect.signature(cls.__init__).parameters.values()
        return {
            each.name: each.default for each in parameters if each.default is not each.empty and each.name != "dtype"
        }

    def __init__(
        self,
        gates: int,
        *,
        generator: torch.Generator,
        initialisation: str = "normal",
        sigma: float | None = None,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        super().__init__()
        if not isinstance(gates, int) or isinstance(gates, bool) or gates < 1:
            raise ValueError(f"{self.name} needs a whole number of gates >= 1, got {gates!r}")
        if initialisation not in INITIALISATIONS:
            raise ValueError(f"unknown initialisation {initialisation!r}; choose one of {', '.join(INITIALISATIONS)}")
        sigma = DEFAULT_SIGMA[initialisation] if sigma is None else sigma
        if not 0 <= sigma < float("inf"):
            raise ValueError(f"sigma must be a finite number >= 0, got {sigma}; the paper uses 1")
        if not dtype.is_floating_point:
            raise TypeError(f"parameters must be floating-point, got dtype={dtype}; use torch.float32")
        # Drawn in float32 and then converted, so that a float64 copy of a network starts from the same point.
        latent = sigma * torch.randn(gates, self.parameters_per_gate, generator=generator)
        if initialisation == "residual":
            latent = latent + self.residual_centre()
        self.latent = nn.Parameter(latent.to(dtype))

    @abstractmethod
    def residual_centre(self) -> Float[Tensor, " parameters"]:
        """The parameters of a gate that leans towards A, the identity of its first input."""

    @abstractmethod
    def coefficients(self) -> Float[Tensor, "gates 4"]:
        """The coefficients used while training, differentiable in the parameters."""

    @abstractmethod
    def gates(self) -> UInt8[Tensor, "gates"]:
        """The gate numbers that are deployed."""

    def sample(self) -> tuple[UInt8[Tensor, "gates"], Float[Tensor, "gates 4"]]:
        """The gates that the training forward commits to, and their coefficients with gradients."""
        raise NotBooleanError(
            f"the training forward of {self.name} mixes gates, it does not commit to one; use coefficients()"
        )

    def activation(self, z: Float[Tensor, "batch gates"]) -> Float[Tensor, "batch gates"]:
        """What follows the polynomial; the identity except in the free variants."""
        return z

    @property
    def activation_name(self) -> str | None:
        """What follows the polynomial, for kernels: "identity", "sigmoid", or None for what they do not know."""
        return {Method.activation: "identity", sigmoid: "sigmoid"}.get(type(self).activation)

    def join(self, methods: Sequence["Method"]) -> None:
        """Become all of ``methods``, of this class and with ``independent_gates``, gate after gate in their order."""
        self.latent.data = torch.cat([method.latent.data for method in methods])

    @classmethod
    def together(cls, methods: Sequence["Method"], latent: Tensor | None = None) -> "Method | None":
        """One with the gates of all ``methods`` for a single pass, gate after gate in their order; None: one by one.

        They are alike but for their parameters, which get the gradients, or ``latent`` gets them, where it is these
        parameters in one tensor. What one function computes for all of them takes less time than as many calls, and
        more threads can share it.
        """
        alike = all(type(method) is cls and method.independent_gates for method in methods)
        joined_otherwise = cls.join is not Method.join and cls.together.__func__ is Method.together.__func__  # type: ignore[attr-defined]
        # Whoever listens to a single method's answers, as diagnostics do, is asked in its place.
        listened_to = any({"coefficients", "sample"} & method.__dict__.keys() for method in methods)
        if not alike or joined_otherwise or listened_to:
            return None
        whole = copy.copy(methods[0])
        whole.__dict__["_parameters"] = {}
        whole.__dict__["latent"] = torch.cat([method.latent for method in methods]) if latent is None else latent
        return whole

    def gate_probabilities(self) -> Float[Tensor, "gates 16"]:
        """A distribution over the gates, for the entropy diagnostic (app. entropy); the free variants have none."""
        raise NotBooleanError(f"{self.name} defines no distribution over the sixteen gates")

    def raw_coefficients(self) -> Float[Tensor, "gates 4"]:
        """The coefficients that the parameters stand for, before any snapping or noise, for diagnostics.

        The parameters themselves where a method learns coefficients, else the mean gate π G of its distribution; a
        method that has a better answer overrides this.
        """
        if self.learns_coefficients:
            return self.latent
        return self.gate_probabilities() @ codebook(self.latent.dtype, self.latent.device)

    def learned_temperature(self) -> float | None:
        """The temperature where it is a parameter, for the diagnostics; None where it is fixed or there is none."""
        return None

    def extra_repr(self) -> str:
        """Shown by ``print(network)``."""
        return f"gates={self.latent.shape[0]}, parameters_per_gate={self.parameters_per_gate}"


class SingleGateForward(Method):
    """A method whose training forward commits to one gate, with straight-through gradients.

    surrogate   "snapped"      z = ĉ·ψ in both passes, ∂ĉ/∂c := A                        (A = I: straight through)
                "continuous"   forward ĉ·ψ, backward that of c·ψ~ = (Aᵀ c)·ψ to inputs and parameters
    """

    boolean_forward = True
    surrogate: str = "snapped"

    def choose_surrogate(self, surrogate: str) -> None:
        """Take one of ``SURROGATES``."""
        if surrogate not in SURROGATES:
            raise ValueError(f"unknown surrogate {surrogate!r}; choose one of {', '.join(SURROGATES)}")
        self.surrogate, self.continuous_backward = surrogate, surrogate == "continuous"

    @abstractmethod
    def sample(self) -> tuple[UInt8[Tensor, " gates"], Float[Tensor, "gates 4"]]:
        """The gates of this forward pass, and the coefficients whose polynomial the backward pass differentiates."""

    def coefficients(self) -> Float[Tensor, "gates 4"]:
        """The coefficients of the gates committed to; of a continuous surrogate, its own."""
        return self.sample()[1]
