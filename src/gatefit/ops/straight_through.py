"""Straight-through gradients: forward one value, backward as if it were another (paper §3.1).

forward ĉ,  backward ∂L/∂c = A ∂L/∂ĉ         A = I in the canonical basis
"""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor


def rows_times(rows: Float[Tensor, "gates 4"], matrix: Float[Tensor, "4 4"]) -> Float[Tensor, "gates 4"]:
    """Each row r as A r, term by term: a matrix product may round a row differently beside other rows."""
    columns = rows.unbind(-1)
    products = [sum(weight * column for weight, column in zip(row, columns, strict=True)) for row in matrix.tolist()]
    return torch.stack([torch.as_tensor(product) for product in products], dim=-1)


class _StraightThrough(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, latent: Tensor, value: Tensor, matrix: Tensor | None) -> Tensor:
        ctx.matrix = matrix
        return value.view_as(value)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        (gradient,) = gradients
        return gradient if ctx.matrix is None else rows_times(gradient, ctx.matrix), None, None


def straight_through(
    latent: Float[Tensor, "*shape"],
    value: Float[Tensor, "*shape"],
    basis: Float[Tensor, "4 4"] | None = None,
) -> Float[Tensor, "*shape"]:
    """Forward ``value``; backward ∂L/∂latent = A ∂L/∂value, with A = ``basis`` on rows of four (None: the identity)."""
    result = _StraightThrough.apply(latent, value.detach(), basis)
    assert isinstance(result, Tensor)
    return result
