"""What of the paper's theory can be computed here and now, from the codebook alone; the tests check the rest.

Each function returns whether the statement holds, and the numbers in words.
"""

import itertools
from fractions import Fraction

import numpy as np

from gatefit.codebook import BASES, CODEBOOK, CORNERS_FROM_COEFFICIENTS, AffineBasis, affine_basis


def null_directions() -> tuple[bool, str]:
    """How many of the simplex' directions leave the coefficients alone."""
    rank = int(np.linalg.matrix_rank(CODEBOOK))
    # Directions that keep the sum of the probabilities.
    tangent = np.eye(16)[:, 1:] - np.eye(16)[:, :1]
    moving = int(np.linalg.matrix_rank(tangent.T @ CODEBOOK))
    idle = tangent.shape[1] - moving
    words = (
        f"the codebook has rank {rank}; of {tangent.shape[1]} directions of the simplex {idle} change no coefficient"
    )
    return rank == 4 and idle == 11, words


def uniform_mixture() -> tuple[bool, str]:
    """The coefficients of the uniform mixture: a constant."""
    mean = CODEBOOK.mean(0)
    words = ", ".join(f"{value:g}" for value in mean)
    return bool(
        (mean[1:] == 0).all()
    ), f"(c_0, c_a, c_b, c_ab) of the uniform mixture is ({words}): no input is left in it"


def committed_gates() -> tuple[bool, str]:
    """The steepest slope of each gate that depends on a."""
    slopes = np.stack([CODEBOOK[:, 1], CODEBOOK[:, 1] + CODEBOOK[:, 3]], 1)
    depends = (slopes != 0).any(1)
    steepest = np.abs(slopes[depends]).max(1)
    flat = int((slopes[depends] == 0).any(1).sum())
    words = (
        f"the larger of |∂z/∂a| at b = 0 and at b = 1 is {steepest.min():g} for each of the {int(depends.sum())} gates "
        f"that depend on a; at one of the two it is 0 for {flat} of them"
    )
    return bool((steepest >= 1).all()), words


def monomial_coverage() -> tuple[bool, str]:
    """On how many of the four corners each monomial is active."""
    active = (CORNERS_FROM_COEFFICIENTS != 0).mean(0)
    shares = ", ".join(f"{100 * value:g} %" for value in active)
    words = f"1, a, b and ab are active on {shares} of uniform inputs, {active.sum():g} of the four on average"
    return bool(np.allclose(active, [1, 0.5, 0.5, 0.25])), words


def basis_futility() -> tuple[bool, str]:
    """No basis on a grid of affine ones has full coverage, full coherence and no bias."""
    grid = [Fraction(k, 4) for k in range(-12, 13)]
    tried = [AffineBasis(alpha, beta) for alpha, beta in itertools.product(grid, grid) if beta != 0]
    good = sum(basis.coverage == basis.coherence == 1 and basis.bias == 0 for basis in tried)
    shown = []
    for name in ("canonical", "walsh", "smoothed"):
        basis = affine_basis(name)
        shown.append(f"{name} ({basis.coverage}, {basis.coherence}, {float(basis.bias):.3g})")
    words = f"{good} of {len(tried)} affine bases have (ρ, κ, B) = (1, 1, 0); {', '.join(shown)}"
    return good == 0 and set(BASES) >= {"canonical", "walsh", "smoothed"}, words


def covariance_coupling() -> tuple[bool, str]:
    """J_03 of (2/τ) Cov_ω(G) at points of an initialisation: the gradient that c_ab gets on every sample."""
    points = np.random.default_rng(0).standard_normal((4000, 4))
    logits = -np.square(points[:, None] - CODEBOOK[None]).sum(-1)
    weights = np.exp(logits - logits.max(1, keepdims=True))
    weights /= weights.sum(1, keepdims=True)
    centred = CODEBOOK[None] - (weights @ CODEBOOK)[:, None]
    jacobian = 2 * np.einsum("pj,pji,pjk->pik", weights, centred, centred)
    coupled = float((np.abs(jacobian[:, 0, 3]) > 1e-6).mean())
    least = float(np.linalg.eigvalsh(jacobian).min())
    words = (
        f"of {len(points):,} gates at an N(0, 1) initialisation (τ = 1) J_03 is non-zero for {100 * coupled:.1f} %, "
        f"with a median of |J_03| = {np.median(np.abs(jacobian[:, 0, 3])):.2f}; no eigenvalue of J is below {least:.0e}"
    )
    return coupled > 0.99 and least > -1e-9, words


def corner_bijection() -> tuple[bool, str]:
    """The determinant of the map between coefficients and corners."""
    determinant = round(float(np.linalg.det(CORNERS_FROM_COEFFICIENTS)))
    return determinant == 1, f"the map from coefficients to corners has determinant {determinant}"
