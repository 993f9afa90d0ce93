"""The definition of a gate layer, in plain torch: any device, any floating type, gradients by autograd.

z = c_0 + c_a a + c_b b + c_ab ab,   a = x[:, wiring[0]],  b = x[:, wiring[1]]
"""

from jaxtyping import Float, Int
from torch import Tensor


def gate_layer(
    x: Float[Tensor, "batch inputs"], wiring: Int[Tensor, "2 gates"], coefficients: Float[Tensor, "gates 4"]
) -> Float[Tensor, "batch gates"]:
    """z(a, b) for every sample and gate."""
    a, b = x[:, wiring[0]], x[:, wiring[1]]
    c_0, c_a, c_b, c_ab = coefficients.unbind(-1)
    return c_0 + c_a * a + c_b * b + c_ab * a * b
