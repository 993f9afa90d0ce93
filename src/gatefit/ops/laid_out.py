"""Parameters of several layers in one piece of memory while they are trained, one layer's after another's.

    whole = (θ_1, ..., θ_L);   θ_l = whole[a_l : b_l], a view      ∂L/∂θ_l = (∂L/∂whole)[a_l : b_l], a view

What computes with all of them reads the whole and leaves one gradient: nothing is copied together, and nothing apart.
Sixteen logits of 48,000 gates are three megabytes, which take longer to copy than a layer of Boolean gates to compute.

Only while they are trained: a network that is saved or copied would hold the whole as often as it has layers.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn


class LaidOut:
    """The whole, and whose parts are where."""

    def __init__(self, parameters: Sequence[nn.Parameter]) -> None:
        self.parameters = tuple(parameters)
        self.sizes = [parameter.shape[0] for parameter in parameters]
        self.whole = torch.cat([parameter.detach() for parameter in parameters])
        for parameter, part in zip(self.parameters, self._parts(self.whole), strict=True):
            parameter.data = part
        self._offsets = [parameter.data_ptr() - self.whole.data_ptr() for parameter in self.parameters]

    def _parts(self, whole: Tensor) -> tuple[Tensor, ...]:
        return torch.split(whole, self.sizes)

    def _places(self) -> list[int]:
        """Where in memory the parts are; nobody else's are there while the whole is held."""
        begin = self.whole.data_ptr()
        return [begin + offset for offset in self._offsets]

    def leaf(self, parameters: Sequence[Tensor]) -> Tensor | None:
        """The whole with a gradient of its own; None where it is not what the parameters are.

        Somebody may have given one of them other memory, want no gradient of it, or listen to its gradient alone.
        """
        if len(parameters) != len(self.parameters):
            return None
        for own, parameter, place in zip(self.parameters, parameters, self._places(), strict=True):
            listened_to = own._backward_hooks or own._post_accumulate_grad_hooks
            if own is not parameter or own.data_ptr() != place or not own.requires_grad or listened_to:
                return None
        return self.whole.detach().requires_grad_()

    def hand_out(self, gradient: Tensor) -> None:
        """Leave each parameter its part of the whole's gradient, beside what it has."""
        for parameter, part in zip(self.parameters, self._parts(gradient), strict=True):
            parameter.grad = part if parameter.grad is None else parameter.grad.add_(part)

    def undo(self) -> None:
        """Each parameter has memory of its own again."""
        for parameter, place in zip(self.parameters, self._places(), strict=True):
            if parameter.data_ptr() == place:
                parameter.data = parameter.data.clone()


@contextmanager
def laid_out(parameters: Sequence[nn.Parameter]) -> Iterator[LaidOut]:
    """The parameters, alike but for how many rows they have, one after another while in here."""
    found = LaidOut(parameters)
    try:
        yield found
    finally:
        found.undo()
