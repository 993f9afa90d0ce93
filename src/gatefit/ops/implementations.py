"""How operations are computed: one object, resolved once, heeded by every operation.

    reference   plain torch: the definition, on any device and in any floating type
    triton      compiled kernels: CUDA devices, in float32 and float64; for tests the CPU too, by Triton's interpreter
    numba       compiled kernels: the CPU, in float32 and float64
    auto        the last of these that serves; resolved again when a network moves

An operation holds its functions in a dict by the implementation's name, and ``choose`` takes its own from it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import torch
from torch import Tensor, nn

from gatefit.ops.triton_launch import installed, interpreted

F = TypeVar("F")


@dataclass(frozen=True)
class Implementation:
    """A way to compute every operation, and where it can."""

    name: str
    devices: tuple[str, ...] = ()
    """Types of device; empty: all."""
    dtypes: tuple[torch.dtype, ...] = ()
    """Floating types; empty: all."""
    by_triton: bool = False
    """Needs Triton, whose interpreter serves the CPU where it is asked for."""
    without_graph: bool = False
    """Stacks can be differentiated as soon as they are computed, without autograd (``stacks.there_and_back``)."""

    def serves(self, device: torch.device | str, dtype: torch.dtype) -> bool:
        """Whether tensors of this type on this device can be computed with."""
        if self.by_triton and not installed():
            return False
        devices = (*self.devices, "cpu") if self.by_triton and interpreted() else self.devices
        return (not devices or torch.device(device).type in devices) and (not self.dtypes or dtype in self.dtypes)

    def choose(self, functions: Mapping[str, F]) -> F:
        """This implementation's function of an operation; the reference's where it has none of its own."""
        return functions[self.name] if self.name in functions else functions[REFERENCE.name]


REFERENCE: Final = Implementation("reference")
TRITON: Final = Implementation("triton", ("cuda",), (torch.float32, torch.float64), by_triton=True)
NUMBA: Final = Implementation("numba", ("cpu",), (torch.float32, torch.float64), without_graph=True)

IMPLEMENTATIONS: Final[dict[str, Implementation]] = {each.name: each for each in (REFERENCE, TRITON, NUMBA)}
"""By name, the fastest last."""


def resolve(given: str | Implementation, device: torch.device | str, dtype: torch.dtype) -> Implementation:
    """The implementation for tensors of this type on this device: "auto", a name, or an object that must serve them."""
    if given == "auto":
        return next(each for each in reversed(IMPLEMENTATIONS.values()) if each.serves(device, dtype))
    if isinstance(given, str) and given not in IMPLEMENTATIONS:
        raise ValueError(f"unknown implementation {given!r}; choose auto or one of {', '.join(IMPLEMENTATIONS)}")
    chosen = IMPLEMENTATIONS[given] if isinstance(given, str) else given
    if not chosen.serves(device, dtype):
        if chosen.by_triton and not installed():
            raise ValueError(f"implementation {chosen.name!r} needs Triton; install it with pip install 'gatefit[gpu]'")
        where = " or ".join(chosen.devices) or "any device"
        types = " and ".join(str(each).removeprefix("torch.") for each in chosen.dtypes) or "any type"
        raise ValueError(
            f"implementation {chosen.name!r} computes {types} on {where}, got {str(dtype).removeprefix('torch.')} on "
            f'{torch.device(device)}; use implementation="auto" or "reference", or stay with what it computes'
        )
    return chosen


class Implemented(nn.Module):
    """A module whose operations are computed by ``implementation``.

    Set as "auto", a name or an object, for the module and all within it; read as the object that it means for the
    module's parameters. Moved to another device or type, "auto" is resolved again and a named one may refuse.
    """

    _asked: str | Implementation = "auto"
    _resolved: Implementation | None = None

    @property
    def implementation(self) -> Implementation:
        """How the operations are computed."""
        if self._resolved is None:
            self._resolved = resolve(self._asked, *_place(self._example()))
        return self._resolved

    @implementation.setter
    def implementation(self, given: str | Implementation) -> None:
        for module in self.modules():
            if isinstance(module, Implemented):
                module._asked, module._resolved = given, resolve(given, *_place(module._example()))

    def _example(self) -> Tensor:
        """An empty tensor of the parameters' type, on their device."""
        for parameter in self.parameters():
            if parameter.is_floating_point():
                return parameter.new_empty(0)
        return torch.empty(0)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Any:
        """What torch moves and converts by; nothing is moved where the implementation cannot follow."""
        resolved = resolve(self._asked, *_place(fn(self._example())))
        super()._apply(fn, recurse)
        self._resolved = resolved
        return self


def _place(tensor: Tensor) -> tuple[torch.device, torch.dtype]:
    return tensor.device, tensor.dtype
