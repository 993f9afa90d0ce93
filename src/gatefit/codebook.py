"""The codebook: the sixteen gates as integer points in the space of multilinear polynomials (paper §2.2, §3).

    g(a, b) = c·ψ(a, b),   ψ = (1, a, b, ab),   c = (c_0, c_a, c_b, c_ab)
    c = M s,   s = (g(0,0), g(1,0), g(0,1), g(1,1))          M is COEFFICIENTS_FROM_CORNERS
    G[j] = M s_j  for gate j                                  CODEBOOK, rank 4
    ψ~ = A ψ,  a straight-through basis: ∂L/∂c = A (δ ψ)      BASES

numpy only, exact integers where the statement is exact; what trains is in ``ops.coefficients``.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np
from jaxtyping import Float, Int

from gatefit.gates import TRUTH_TABLES

# The paper's corner order; TRUTH_TABLES' columns are (0,0), (0,1), (1,0), (1,1).
CORNERS: Final[Int[np.ndarray, "4 2"]] = np.array([[0, 0], [1, 0], [0, 1], [1, 1]])
CORNER_VALUES: Final[Int[np.ndarray, "16 4"]] = TRUTH_TABLES[:, 2 * CORNERS[:, 0] + CORNERS[:, 1]].astype(np.int64)
"""Row j holds g_j at the four corners, in the paper's order."""


CORNERS_FROM_COEFFICIENTS: Final[Int[np.ndarray, "4 4"]] = np.array([(1, a, b, a * b) for a, b in CORNERS.tolist()])
"""M⁻¹ (app. bijection): row i holds ψ at corner i, so that s = M⁻¹ c."""

COEFFICIENTS_FROM_CORNERS: Final[Int[np.ndarray, "4 4"]] = (
    np.linalg.inv(CORNERS_FROM_COEFFICIENTS).round().astype(np.int64)
)
"""M (app. bijection): c = M s."""

CODEBOOK: Final[Int[np.ndarray, "16 4"]] = CORNER_VALUES @ COEFFICIENTS_FROM_CORNERS.T
"""G: row j holds the coefficients (c_0, c_a, c_b, c_ab) of gate j."""

SQUARED_DISTANCES: Final[Int[np.ndarray, "16 16"]] = np.square(CODEBOOK[:, None] - CODEBOOK[None]).sum(-1)
"""‖G_i - G_j‖² between every two gates (app. voronoi)."""

TIE_ORDER: Final[Int[np.ndarray, "16"]] = np.lexsort(CODEBOOK.T[::-1])
"""Gate numbers by lexicographically increasing coefficients: a snap between equally near gates takes the first."""

for _constant in (CORNERS, CORNER_VALUES, CORNERS_FROM_COEFFICIENTS, COEFFICIENTS_FROM_CORNERS, CODEBOOK):
    _constant.flags.writeable = False
for _constant in (SQUARED_DISTANCES, TIE_ORDER):
    _constant.flags.writeable = False


@dataclass(frozen=True)
class AffineBasis:
    """The product basis ψ~(a, b) = (1, φ(a), φ(b), φ(a)φ(b)) of φ(x) = α + βx (Prop. basis-futility).

    α and β are kept as fractions, so every property is exact. Expectations are over uniform (a, b) ∈ {0,1}².
    """

    alpha: Fraction
    beta: Fraction

    def __call__(self, a: int, b: int) -> tuple[Fraction, Fraction, Fraction, Fraction]:
        """ψ~(a, b)."""
        phi_a, phi_b = self.alpha + self.beta * a, self.alpha + self.beta * b
        return Fraction(1), phi_a, phi_b, phi_a * phi_b

    @property
    def matrix(self) -> Float[np.ndarray, "4 4"]:
        """A with ψ~ = A ψ."""
        alpha, beta = float(self.alpha), float(self.beta)
        return np.array(
            [
                [1, 0, 0, 0],
                [alpha, beta, 0, 0],
                [alpha, 0, beta, 0],
                [alpha * alpha, alpha * beta, alpha * beta, beta * beta],
            ],
            dtype=np.float64,
        )

    @property
    def coverage(self) -> Fraction:
        """ρ = P(ψ~_ab ≠ 0): on how many samples the interaction coefficient receives gradient."""
        return Fraction(sum(value != 0 for value in self._at_corners(3)), 4)

    @property
    def coherence(self) -> Fraction:
        """κ = |E ψ~_ab| / E|ψ~_ab|: how far the interaction's gradients agree in sign (0 where ψ~_ab ≡ 0)."""
        values = self._at_corners(3)
        magnitude = sum((abs(value) for value in values), Fraction(0))
        return abs(sum(values, Fraction(0))) / magnitude if magnitude else Fraction(0)

    @property
    def bias(self) -> Fraction:
        """B = inf_D E‖ψ~ - Dψ‖² over positive diagonal D: distance to the canonical basis up to rescaling."""
        total = Fraction(0)
        for k in range(4):
            ours, canonical = self._at_corners(k), CORNERS_FROM_COEFFICIENTS[:, k].tolist()
            dot = sum((p * m for p, m in zip(ours, canonical, strict=True)), Fraction(0))
            # The best scale is dot/norm; where that is not positive the infimum is approached as d -> 0.
            scale = max(dot, Fraction(0)) / sum(m * m for m in canonical)
            total += sum(((p - scale * m) ** 2 for p, m in zip(ours, canonical, strict=True)), Fraction(0))
        return total / 4

    def _at_corners(self, k: int) -> list[Fraction]:
        return [self(a, b)[k] for a, b in CORNERS.tolist()]


def smoothed(epsilon: float | Fraction = Fraction(1, 5)) -> AffineBasis:
    """φ(x) = x + ε, the smoothed basis (app. smoothed)."""
    if not 0 < epsilon < float("inf"):
        raise ValueError(f"the smoothed basis needs a finite epsilon > 0, got {epsilon}; the paper uses 0.2")
    return AffineBasis(Fraction(epsilon), Fraction(1))


BASES: Final[dict[str, Callable[[], AffineBasis]]] = {
    "canonical": lambda: AffineBasis(Fraction(0), Fraction(1)),
    "walsh": lambda: AffineBasis(Fraction(-1), Fraction(2)),
    "smoothed": smoothed,
    "expected-value": lambda: AffineBasis(Fraction(1, 2), Fraction(0)),
    "uniform": lambda: AffineBasis(Fraction(1), Fraction(0)),
}
"""The straight-through bases of app. ste-failures; the last two have β = 0 and are degenerate."""


def affine_basis(name: str, epsilon: float | None = None) -> AffineBasis:
    """The basis called ``name``; ``epsilon`` belongs to ``smoothed`` alone."""
    if name not in BASES:
        raise ValueError(f"unknown basis {name!r}; choose one of {', '.join(BASES)}")
    if epsilon is None:
        return BASES[name]()
    if name != "smoothed":
        raise ValueError(f"epsilon={epsilon} belongs to the smoothed basis, got basis {name!r}; leave it out")
    return smoothed(epsilon)
