"""Gate layers one above another, as one operation sees them: ``soft_stack`` and ``boolean_stack`` compute them whole.

layer l reads layer l - 1, the first one the bits of the batch
sums[:, k] = Σ over the layers that vote, Σ over the gates of their group k
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import SimpleNamespace
from typing import Any, cast

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor

from gatefit.ops.implementations import Implementation


class Layered(Sequence[Tensor]):
    """What belongs to the gates of all layers in one tensor, layer after layer; read like one tensor a layer.

    Who can compute with the whole takes it: a gradient is then one tensor too, and nothing is put together from parts.
    """

    def __init__(self, whole: Shaped[Tensor, "gates ..."], sizes: Sequence[int]) -> None:
        self.whole, self.sizes = whole, sizes

    @cached_property
    def parts(self) -> tuple[Tensor, ...]:
        """Each layer's own."""
        return torch.split(self.whole, list(self.sizes))

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        """Of each layer's own."""
        return [(size, *self.whole.shape[1:]) for size in self.sizes]

    def __len__(self) -> int:
        return len(self.sizes)

    def __getitem__(self, layer: Any) -> Any:
        return self.parts[layer]


@dataclass(frozen=True, eq=False)
class Stack:
    """Wirings and votes; gates and coefficients are given beside it."""

    wirings: Sequence[Int[Tensor, "2 _"]]
    groups: int | None = None
    """Into how many equal groups of neighbours the gates of each voting layer are summed; None: each gate by itself."""
    votes: Sequence[int] = ()
    """The layers that vote, counted from 1, in order, the last layer among them; empty: the last alone."""
    owners: Sequence[Int[Tensor, " _"] | None] = ()
    """For each layer which row of coefficients each gate has, so that gates can share one; None, empty: its own."""
    changing: Sequence[bool] = ()
    """For each layer whether its wiring may be another one at the next call; empty: none does."""
    half: bool = False
    """Whether layers hand one another numbers of 16 bits (``handed_on``): half as much to keep and to fetch."""

    def __post_init__(self) -> None:
        if not self.wirings:
            raise ValueError("a stack needs at least one layer, got no wiring")
        depth = len(self.wirings)
        object.__setattr__(self, "votes", tuple(self.votes) or (depth,))
        object.__setattr__(self, "owners", tuple(self.owners) or (None,) * depth)
        object.__setattr__(self, "changing", tuple(self.changing) or (False,) * depth)
        if len(self.owners) != depth or len(self.changing) != depth:
            raise ValueError(
                f"a stack of {depth} layers needs as many owners and changing, "
                f"got {len(self.owners)} and {len(self.changing)}"
            )
        if self.votes[-1] != depth or list(self.votes) != sorted(set(self.votes)) or self.votes[0] < 1:
            raise ValueError(f"votes are layers from 1 to {depth}, in order, with the last; got {list(self.votes)}")
        if self.groups is None and len(self.votes) > 1:
            raise ValueError("several layers vote in groups alone; give the number of groups")
        for gates in (self.widths[number - 1] for number in self.votes):
            if self.groups is not None and (self.groups < 1 or gates % self.groups):
                which = "last" if len(self.votes) == 1 else "voting"
                raise ValueError(
                    f"the {which} layer's {gates} gates cannot be divided into {self.groups} equal groups; "
                    f"use a multiple of the number of classes"
                )
        for owner, gates in zip(self.owners, self.widths, strict=True):
            if owner is not None and owner.shape != (gates,):
                raise ValueError(f"owners name a row for each of {gates} gates, got shape {tuple(owner.shape)}")

    @cached_property
    def widths(self) -> tuple[int, ...]:
        """Gates of each layer."""
        return tuple(int(wiring.shape[1]) for wiring in self.wirings)

    @cached_property
    def shares_rows(self) -> bool:
        """Whether a layer has gates that share a row."""
        return any(owner is not None for owner in self.owners)

    @property
    def columns(self) -> int:
        """How many numbers a sample gets."""
        return self.widths[-1] if self.groups is None else self.groups

    def check(self, what: str, tensors: Sequence[Tensor], *columns: int) -> None:
        """Refuse tensors over gates that do not fit the layers."""
        needed = [
            (gates if owner is None else int(owner.max()) + 1, *columns)
            for gates, owner in zip(self.widths, self.owners, strict=True)
        ]
        shapes = tensors.shapes if isinstance(tensors, Layered) else [tuple(tensor.shape) for tensor in tensors]
        if shapes != needed:
            raise ValueError(f"the layers need {what} of shapes {needed}, got {shapes}")


def whole_or_parts(stack: Stack, tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """The one tensor of all layers where there is one and each gate has a row of its own, else a tensor a layer."""
    if isinstance(tensors, Layered) and not stack.shares_rows:
        return (tensors.whole,)
    return tuple(tensors)


Back = Callable[[Tensor], Tensor]
"""The gradient of a loss with respect to a stack's sums, from the sums: ``back(sums)``."""


class _Given(torch.autograd.Function):
    """A number whose gradients are these."""

    @staticmethod
    def forward(ctx: Any, found: Sequence[Tensor], *tensors: Tensor) -> Tensor:
        ctx.found = found
        return torch.zeros((), dtype=tensors[0].dtype)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        # Held by nobody else, a gradient that reaches a parameter as it is becomes its own, without a copy.
        found = tuple(ctx.found)
        ctx.found.clear()
        return None, *found


def there_and_back(
    function: type[torch.autograd.Function], arguments: Sequence[Any], tensors: Sequence[Tensor], back: Back | None
) -> Tensor:
    """``function.apply(*arguments, *tensors)``; with ``back`` its gradients are handed on to what ``tensors`` are of.

    The same functions in the same order as autograd calls them, for the same bits; the sums then have no graph. In a
    network of three layers of 1,000 gates that of stack, readout and loss takes a tenth of a step.
    """
    if back is None:
        result = function.apply(*arguments, *tensors)
        assert isinstance(result, Tensor)
        return result
    context: Any = SimpleNamespace(needs_input_grad=(True,))
    found: list[Tensor] = []
    with torch.no_grad():
        sums: Tensor = function.forward(context, *arguments, *tensors)
        found += function.backward(context, back(sums))[len(arguments) :]
    # Given gradients, torch's own backward would first import what its compiler is made of: a second in every process.
    handed: Tensor = _Given.apply(found, *tensors)
    handed.backward()
    return sums


def options_of(back: Back | None, implementation: Implementation) -> dict[str, Any]:
    """What an implementation that can go back at once is given beside the rest."""
    if back is None:
        return {}
    if not implementation.without_graph:
        raise ValueError(f"implementation {implementation.name!r} goes back by autograd alone; leave out back")
    return {"back": back}


class _HandedOn(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, y: Tensor) -> Tensor:
        return y.half().to(y.dtype)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        return gradients[0].bfloat16().to(gradients[0].dtype)


def handed_on(stack: Stack, y: Float[Tensor, "batch gates"]) -> Float[Tensor, "batch gates"]:
    """A layer's outputs as what reads them sees them: where ``stack.half`` says so, rounded.

    forward    to binary16, of eleven bits: a number from 0 to 1 is off by 2^-12 at most
    backward   the gradient to bfloat16, of eight bits: off by 2^-9 of itself, however small it is

    Kernels may round a gradient more than once, where it is a sum.
    """
    return cast(Tensor, _HandedOn.apply(y)) if stack.half else y


def check_half(stack: Stack, coefficients: Sequence[Tensor], implementation: Implementation) -> None:
    """Refuse 16-bit numbers where no kernel computes with them."""
    if stack.half and (implementation.by_triton or coefficients[0].dtype != torch.float32):
        raise ValueError(
            f"layers hand on 16-bit numbers on the CPU and in float32 alone, got {coefficients[0].dtype} on "
            f"{coefficients[0].device}; use precision='single'"
        )


def at_places(rows: Shaped[Tensor, "rows ..."], owners: Int[Tensor, " gates"] | None) -> Shaped[Tensor, "gates ..."]:
    """What belongs to each gate, from what belongs to each row of parameters or coefficients."""
    return rows if owners is None else rows[owners.long()]


def group_sums(y: Float[Tensor, "batch gates"], groups: int) -> Float[Tensor, "batch groups"]:
    """Sums over consecutive groups, read along the batch: activations are stored feature-major."""
    return y.T.reshape(groups, y.shape[1] // groups, y.shape[0]).sum(1).T


def votes_of(stack: Stack, voters: Sequence[Float[Tensor, "batch _"]]) -> Float[Tensor, "batch columns"]:
    """The sums, from the outputs of the layers that vote: their definition."""
    if stack.groups is None:
        return voters[0]
    sums = [group_sums(y, stack.groups) for y in voters]
    return sums[0] if len(sums) == 1 else torch.stack(sums).sum(0)
