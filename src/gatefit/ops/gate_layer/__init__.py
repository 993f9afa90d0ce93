"""One layer of gates: z = c_0 + c_a a + c_b b + c_ab ab for every sample and gate.

Under straight-through methods the gradient to the inputs uses the snapped coefficients, because those are the
coefficients that this operation is given (∂z/∂a = ĉ_a + ĉ_ab b); with a continuous surrogate,
``layers.gates.trained_output``.
"""

from collections.abc import Callable
from typing import Final

from jaxtyping import Float, Int
from torch import Tensor

from gatefit.ops.gate_layer import numba, reference
from gatefit.ops.implementations import Implementation
from gatefit.ops.triton_launch import lazily

GATE_LAYER: Final[dict[str, Callable[[Tensor, Tensor, Tensor], Tensor]]] = {
    "reference": reference.gate_layer,
    "numba": numba.gate_layer,
    "triton": lazily("gate_layer", "gate_layer"),
}


def gate_layer(
    x: Float[Tensor, "batch inputs"],
    wiring: Int[Tensor, "2 gates"],
    coefficients: Float[Tensor, "gates 4"],
    *,
    implementation: Implementation,
) -> Float[Tensor, "batch gates"]:
    """z = c_0 + c_a a + c_b b + c_ab ab for every sample and gate."""
    check_gate_layer(x, wiring, coefficients)
    return implementation.choose(GATE_LAYER)(x, wiring, coefficients)


def check_gate_layer(x: Tensor, wiring: Tensor, coefficients: Tensor) -> None:
    """Refuse shapes and types that no implementation can serve."""
    if x.ndim != 2:
        raise ValueError(f"x must have shape (batch, inputs), got {tuple(x.shape)}; flatten each sample to one row")
    if wiring.ndim != 2 or wiring.shape[0] != 2:
        raise ValueError(f"wiring must have shape (2, gates), got {tuple(wiring.shape)}")
    if coefficients.shape != (wiring.shape[1], 4):
        raise ValueError(
            f"coefficients must have shape (gates, 4) = ({wiring.shape[1]}, 4) for this wiring, "
            f"got {tuple(coefficients.shape)}"
        )
    if wiring.is_floating_point() or wiring.is_complex() or wiring.element_size() == 1:
        raise TypeError(f"wiring must hold int32 or int64 indices, got {wiring.dtype}")
    if not x.is_floating_point():
        raise TypeError(f"x must be floating-point, got {x.dtype}; convert Boolean inputs with .float()")
    if x.dtype != coefficients.dtype:
        raise TypeError(f"x is {x.dtype} but coefficients are {coefficients.dtype}; convert one to the other")
