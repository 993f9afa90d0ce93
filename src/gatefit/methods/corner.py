"""Methods with four weights s, one for each corner of the unit square (Rüttgers et al., 2026; app. bijection).

    IWP        c = M act(s),   act = sigmoid or 1/2 + 1/2 sin           deployed  act(s) > 1/2 at each corner
               act = identity:  z = Σ s_ij φ_ij as the paper writes it    not Boolean
    IWP-STE    c = M ŝ,   ŝ = [act(s) > 1/2],   ∂L/∂act(s) = Mᵀ ∂L/∂c   deployed  ŝ;   act = identity (the paper's)
               snap="codebook":  ŝ the corners of the gate nearest to M act(s) in ‖c - G_j‖, as Multilinear-STE snaps
               surrogate="continuous":  backward that of z = M act(s)·ψ, to inputs too
    IWP-free   c = M s,   z = sigmoid(c·ψ), never snapped                not Boolean

s is ordered as in the paper: (0,0), (1,0), (0,1), (1,1).
"""

from collections.abc import Callable
from typing import ClassVar, Final

import torch
from jaxtyping import Float, UInt8
from torch import Tensor
from torch.nn import functional

from gatefit.codebook import CORNER_VALUES
from gatefit.gates import Gate
from gatefit.methods.base import Method, NotBooleanError, SingleGateForward, sigmoid
from gatefit.ops.coefficients import check_finite, corner_coefficients, gate_numbers, proximity, snap, snap_corners
from gatefit.ops.straight_through import straight_through


def _sin01(s: Tensor) -> Tensor:
    return 0.5 + 0.5 * torch.sin(s)


def _identity(s: Tensor) -> Tensor:
    return s


Activation = Callable[[Tensor], Tensor]
ACTIVATIONS: Final[dict[str, Activation]] = {"sigmoid": torch.sigmoid, "sin01": _sin01}
# How far from 0 the residual initialisation sets s, in the direction of A's corners (the authors' values).
SNAPS: Final = ("corners", "codebook")
RESIDUAL_SHIFT: Final[dict[str, float]] = {"sigmoid": 3.0, "sin01": 1.2}


def _towards_a(shift: float) -> Tensor:
    return shift * (2.0 * torch.tensor(CORNER_VALUES[Gate.A], dtype=torch.float32) - 1.0)


class _Corners(Method):
    """The value at each corner is act(s), act one of ``activations``; the first of them unless another is asked for."""

    parameters_per_gate = 4
    independent_gates = True
    activations: ClassVar[dict[str, Activation]]

    def __init__(
        self,
        gates: int,
        *,
        generator: torch.Generator,
        corner_activation: str | None = None,
        initialisation: str = "normal",
        sigma: float | None = None,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        self.corner_activation = next(iter(self.activations)) if corner_activation is None else corner_activation
        if self.corner_activation not in self.activations:
            choices = ", ".join(self.activations)
            raise ValueError(f"unknown corner_activation {corner_activation!r}; choose one of {choices}")
        super().__init__(gates, generator=generator, initialisation=initialisation, sigma=sigma, dtype=dtype)

    def residual_centre(self) -> Float[Tensor, "4"]:
        """A's corner values, or as near to them as the activation's slope allows."""
        if self.corner_activation in RESIDUAL_SHIFT:
            return _towards_a(RESIDUAL_SHIFT[self.corner_activation])
        return torch.tensor(CORNER_VALUES[Gate.A], dtype=torch.float32)

    def corners(self) -> Float[Tensor, "gates 4"]:
        """act(s)."""
        # torch rounds the elements after the last whole vector differently. A whole number of vectors gives each gate
        # the same bits wherever it stands, alone or among other networks' gates.
        gates, activation = self.latent.shape[0], self.activations[self.corner_activation]
        if gates % 16 == 0 or activation is _identity:
            return activation(self.latent)
        return activation(functional.pad(self.latent, (0, 0, 0, -gates % 16)))[:gates]

    def raw_coefficients(self) -> Float[Tensor, "gates 4"]:
        """M act(s)."""
        return corner_coefficients(self.corners(), implementation=self.implementation)

    def gates(self) -> UInt8[Tensor, "gates"]:
        """act(s) rounded at each corner."""
        check_finite(self.latent, f"corner weights of {self.name}")
        return gate_numbers(self.corners().detach() > 0.5)


class IWP(_Corners):
    """Input-wise parametrisation: the value at each corner is learned through a squashing activation.

    Without one (the paper's forward pass as it is written) the values may be any number, and no gate is deployed.
    """

    name = "iwp"
    activations: ClassVar = {**ACTIVATIONS, "identity": _identity}

    def coefficients(self) -> Float[Tensor, "gates 4"]:
        """M act(s)."""
        return self.raw_coefficients()

    def gate_probabilities(self) -> Float[Tensor, "gates 16"]:
        """π_j = Π_i act(s_i) or 1 - act(s_i): independent corners."""
        self._check_boolean()
        values = torch.as_tensor(CORNER_VALUES.copy(), device=self.latent.device).bool()
        corners = self.corners()[:, None, :]
        return torch.where(values, corners, 1 - corners).prod(-1)

    def gates(self) -> UInt8[Tensor, "gates"]:
        """act(s) rounded at each corner; refused where act(s) is no value between 0 and 1."""
        self._check_boolean()
        return super().gates()

    def _check_boolean(self) -> None:
        if self.corner_activation == "identity":
            raise NotBooleanError(
                "iwp with corner_activation='identity' is never rounded to gates, so it has no circuit; "
                "measure its soft accuracy, or train it with sigmoid"
            )


class IWPSTE(_Corners, SingleGateForward):
    """Snap each corner to 0 or 1, gradients straight through: the ablation that shows what the basis does.

    The paper snaps the weights themselves, act = identity. With another activation they are snapped where IWP rounds,
    and the gradient passes through its slope.
    """

    name = "iwp-ste"
    step_cost = 0.7
    activations: ClassVar = {"identity": _identity, **ACTIVATIONS}

    def __init__(
        self,
        gates: int,
        *,
        generator: torch.Generator,
        corner_activation: str | None = None,
        snap: str = "corners",
        surrogate: str = "snapped",
        initialisation: str = "normal",
        sigma: float | None = None,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        super().__init__(
            gates,
            generator=generator,
            corner_activation=corner_activation,
            initialisation=initialisation,
            sigma=sigma,
            dtype=dtype,
        )
        if snap not in SNAPS:
            raise ValueError(f"unknown snap {snap!r}; choose one of {', '.join(SNAPS)}")
        self.snap = snap
        self.choose_surrogate(surrogate)

    def sample(self) -> tuple[UInt8[Tensor, " gates"], Float[Tensor, "gates 4"]]:
        """The gates at the nearest corners of the unit cube, or nearest in the space of coefficients."""
        check_finite(self.latent, f"corner weights of {self.name}")
        corners = self.corners()
        if self.snap == "codebook":
            c = corner_coefficients(corners, implementation=self.implementation)
            gates, snapped = snap(c, implementation=self.implementation)
            return gates, c if self.continuous_backward else straight_through(c, snapped)
        gates, snapped = snap_corners(corners, implementation=self.implementation)
        if self.continuous_backward:
            return gates, corner_coefficients(corners, implementation=self.implementation)
        return gates, snapped

    def gates(self) -> UInt8[Tensor, "gates"]:
        """Those of the forward pass."""
        with torch.no_grad():
            return self.sample()[0]

    def gate_probabilities(self) -> Float[Tensor, "gates 16"]:
        """Proximity of act(s) to the sixteen corner vectors, softmax(-‖act(s) - s_j‖²); as it snaps, of M act(s)."""
        corners = self.corners()
        if self.snap == "codebook":
            return proximity(corner_coefficients(corners, implementation=self.implementation), 1.0)
        values = torch.as_tensor(CORNER_VALUES.copy(), device=corners.device).to(corners)
        return torch.softmax(-(corners[:, None, :] - values).square().sum(-1), dim=-1)


class IWPFree(Method):
    """z = sigmoid(Ms·ψ), never snapped: an ablation, not a circuit (app. basis-constraint)."""

    name = "iwp-free"
    parameters_per_gate = 4
    step_cost = 5.5
    activation = sigmoid

    def residual_centre(self) -> Float[Tensor, "4"]:
        """sigmoid(±3) at A's corners."""
        return _towards_a(3.0)

    def coefficients(self) -> Float[Tensor, "gates 4"]:
        """M s."""
        return corner_coefficients(self.latent, implementation=self.implementation)

    raw_coefficients = coefficients

    def gates(self) -> UInt8[Tensor, "gates"]:
        """Refused: there is none."""
        raise NotBooleanError(
            f"{self.name} is never snapped to gates, so it has no circuit; "
            "measure its soft accuracy, or train iwp, multilinear-ste or multilinear-covjac"
        )
