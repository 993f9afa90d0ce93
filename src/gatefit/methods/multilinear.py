"""Methods with the four coefficients c themselves as parameters (paper §3).

Multilinear-STE      forward   ĉ = G_j*,  j* = argmin ‖c - G_j‖²      backward  ∂L/∂c = A ∂L/∂ĉ   (§3.1)
                     surrogate="continuous": backward that of z = c·ψ~, ψ~ = A ψ, to inputs too (app. ste-noncancel)
Multilinear-CovJac   forward   c_soft = Σ_j ω_j G_j                   backward  ∂c_soft/∂c = (2/τ) Cov_ω(G)   (§3.2)
                     ω = softmax(-‖c - G_j‖² / τ)
both                 deployed  argmin_j ‖c - G_j‖²
Multilinear-free     forward   z = sigmoid(c·ψ), never snapped        not Boolean   (app. basis-constraint)
"""

import math

import torch
from jaxtyping import Float, UInt8
from torch import Tensor, nn

from gatefit.codebook import CODEBOOK, affine_basis
from gatefit.gates import Gate
from gatefit.methods.base import Method, NotBooleanError, SingleGateForward, sigmoid
from gatefit.ops.coefficients import check_finite, check_temperature, proximity, snap, soft_coefficients
from gatefit.ops.straight_through import rows_times, straight_through


def _residual_centre() -> Tensor:
    return torch.tensor(CODEBOOK[Gate.A], dtype=torch.float32)


def _deployed(method: Method) -> Tensor:
    """The nearest gates, by the snap that trains: what is deployed is what was trained, on every boundary."""
    check_finite(method.latent, f"coefficients of {method.name}")
    return snap(method.latent, implementation=method.implementation)[0]


class MultilinearSTE(SingleGateForward):
    """Snap to the nearest gate; gradients pass straight through, in any affine basis (app. ste-failures)."""

    name = "multilinear-ste"
    parameters_per_gate = 4
    learns_coefficients = True
    independent_gates = True
    step_cost = 0.6

    def __init__(
        self,
        gates: int,
        *,
        generator: torch.Generator,
        backward_basis: str = "canonical",
        epsilon: float | None = None,
        snap: str = "codebook",
        surrogate: str = "snapped",
        initialisation: str = "normal",
        sigma: float | None = None,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        super().__init__(gates, generator=generator, initialisation=initialisation, sigma=sigma, dtype=dtype)
        if snap != "codebook":
            raise ValueError(
                f"{self.name} snaps to the codebook, got snap={snap!r}; use snap='codebook' or leave it out"
            )
        self.choose_surrogate(surrogate)
        matrix = affine_basis(backward_basis, epsilon).matrix
        self.backward_basis = backward_basis
        self.basis: Tensor | None
        # Not saved: it follows from the configuration, and the identity needs no product.
        basis = None if backward_basis == "canonical" else torch.tensor(matrix, dtype=dtype)
        self.register_buffer("basis", basis, persistent=False)

    def residual_centre(self) -> Float[Tensor, "4"]:
        """The codebook's A."""
        return _residual_centre()

    def gate_probabilities(self) -> Float[Tensor, "gates 16"]:
        """Proximity weights at τ = 1, as the paper derives π from distances (app. entropy)."""
        return proximity(self.latent, 1.0)

    def sample(self) -> tuple[UInt8[Tensor, "gates"], Float[Tensor, "gates 4"]]:
        """The nearest gates."""
        gates, snapped = snap(self.latent, implementation=self.implementation)
        if self.continuous_backward:
            # c·Aψ = (Aᵀ c)·ψ: a polynomial like any other, whose gradient to c autograd brings back by A.
            return gates, self.latent if self.basis is None else rows_times(self.latent, self.basis.T)
        return gates, straight_through(self.latent, snapped, self.basis)

    def gates(self) -> UInt8[Tensor, "gates"]:
        """The nearest gates."""
        return _deployed(self)


class MultilinearCovJac(Method):
    """Soft vector quantisation against the codebook: c_ab learns from every sample through J_03 (Eq. cab-gradient).

    ``learnable_temperature`` makes log τ a parameter of the layer (app. tau: a negative result, kept for study).
    """

    name = "multilinear-covjac"
    parameters_per_gate = 4
    learns_coefficients = True
    independent_gates = True

    def __init__(
        self,
        gates: int,
        *,
        generator: torch.Generator,
        temperature: float = 1.0,
        learnable_temperature: bool = False,
        initialisation: str = "normal",
        sigma: float | None = None,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        super().__init__(gates, generator=generator, initialisation=initialisation, sigma=sigma, dtype=dtype)
        check_temperature(temperature)
        self.fixed_temperature = temperature
        self.log_temperature = (
            nn.Parameter(torch.tensor(math.log(temperature), dtype=dtype)) if learnable_temperature else None
        )
        self.independent_gates = not learnable_temperature

    @property
    def temperature(self) -> float | Float[Tensor, ""]:
        """τ: a number, or a tensor that requires gradients where it is learned."""
        return self.fixed_temperature if self.log_temperature is None else self.log_temperature.exp()

    def learned_temperature(self) -> float | None:
        """τ where it is learned."""
        return None if self.log_temperature is None else float(self.log_temperature.detach().exp())

    def residual_centre(self) -> Float[Tensor, "4"]:
        """The codebook's A."""
        return _residual_centre()

    def gate_probabilities(self) -> Float[Tensor, "gates 16"]:
        """ω."""
        return proximity(self.latent, self.temperature)

    def coefficients(self) -> Float[Tensor, "gates 4"]:
        """c_soft."""
        return soft_coefficients(self.latent, self.temperature, implementation=self.implementation)

    def gates(self) -> UInt8[Tensor, "gates"]:
        """The nearest gates."""
        return _deployed(self)


class MultilinearFree(Method):
    """z = sigmoid(c·ψ), never snapped: an ablation, not a circuit (app. basis-constraint)."""

    name = "multilinear-free"
    parameters_per_gate = 4
    learns_coefficients = True
    step_cost = 5.5
    activation = sigmoid

    def residual_centre(self) -> Float[Tensor, "4"]:
        """sigmoid(6a - 3) leans to a."""
        return torch.tensor([-3.0, 6.0, 0.0, 0.0])

    def coefficients(self) -> Float[Tensor, "gates 4"]:
        """c."""
        return self.latent

    def gates(self) -> UInt8[Tensor, "gates"]:
        """Refused: there is none."""
        raise NotBooleanError(
            f"{self.name} is never snapped to gates, so it has no circuit; "
            "measure its soft accuracy, or train multilinear-ste or multilinear-covjac"
        )
