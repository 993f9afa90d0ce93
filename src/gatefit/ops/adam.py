"""Adam with decoupled weight decay, in torch's fused form.

    m = β₁ m + (1 - β₁) g;   v = β₂ v + (1 - β₂) g²;   θ = (1 - η λ) θ - η m̂ / (√v̂ + ε)

Measured at 6 × 8,000 gates with four coefficients each, one thread: 0.2 ms fused, 0.5 ms operation by operation, of a
step of some 20 ms. A kernel of our own would not show. In a network of a few thousand gates what torch does around its
fused function takes longer than the function: it is called directly, for the same bits. Threads take whole parameters,
so that none is cut at another place than by one thread.

torch wraps an optimiser's functions so that its compiler leaves them alone, and the first call of each loads that
compiler: two seconds in every process, of which small fits in worker processes take a few hundredths to train. Nothing
is compiled by torch here, so the functions inside the wrappers are called.
"""

import inspect
import operator
from collections.abc import Iterable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any, Final

import torch
from torch import Tensor

from gatefit.ops.threads import WORTH_A_THREAD, kernel_threads, parallel_torch

EACH: Final = 0.75
"""Nanoseconds that a number of a parameter takes."""

_add_param_group: Any = inspect.unwrap(torch.optim.AdamW.add_param_group)
_load_state_dict: Any = inspect.unwrap(torch.optim.AdamW.load_state_dict)
_state_dict: Any = inspect.unwrap(torch.optim.AdamW.state_dict)
_zero_grad: Any = inspect.unwrap(torch.optim.AdamW.zero_grad)


class Adam(torch.optim.AdamW):
    """torch's AdamW with ``fused=True``: one pass over parameter, gradient and moments."""

    _counts: Mapping[int, tuple[Tensor, list[Tensor]]] = MappingProxyType({})

    def __init__(
        self,
        parameters: Iterable[Tensor] | Iterable[dict[str, Any]],
        lr: float = 0.01,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
    ) -> None:
        groups: list[Any] = list(parameters)
        super().__init__(groups, lr=lr, betas=betas, eps=eps, weight_decay=weight_decay, fused=True)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """As torch's."""
        _add_param_group(self, param_group)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """As torch's."""
        if not set_to_none:
            _zero_grad(self, set_to_none)
            return
        for group in self.param_groups:
            for parameter in group["params"]:
                parameter.grad = None

    def state_dict(self) -> dict[str, Any]:
        """As torch's."""
        return dict(_state_dict(self))

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """As torch's."""
        _load_state_dict(self, state_dict)
        self._join_counts()

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """As torch's, without a closure."""
        assert closure is None
        for group in self.param_groups:
            found = self._found(group)
            if not found[0]:
                continue
            self._count(group, found[5])
            # A device has threads of its own.
            threads = kernel_threads() if found[0][0].device.type == "cpu" else 1
            shares = _shares([parameter.numel() for parameter in found[0]], threads)
            parallel_torch(partial(_step_share, found, shares, group), len(shares))

    def _count(self, group: dict[str, Any], counts: list[Tensor]) -> None:
        """One step more of each parameter: by one call, where their numbers are parts of one tensor.

        torch's function for lists takes ten times as long for numbers on the CPU as a call for each of them.
        """
        whole, parts = self._counts.get(id(group), (None, []))
        if whole is not None and len(parts) == len(counts) and all(map(operator.is_, parts, counts)):
            whole.add_(1)
            return
        for count in counts:
            count.add_(1)

    def _join_counts(self) -> None:
        """Make each group's numbers of steps parts of one tensor."""
        found: dict[int, tuple[Tensor, list[Tensor]]] = {}
        for group in self.param_groups:
            states = [self.state[parameter] for parameter in group["params"] if self.state.get(parameter)]
            if states and all(state["step"].device.type == "cpu" for state in states):
                whole = torch.stack([state["step"] for state in states])
                parts = list(whole.unbind())
                for state, part in zip(states, parts, strict=True):
                    state["step"] = part
                found[id(group)] = whole, parts
        self._counts = found

    def _found(self, group: dict[str, Any]) -> list[list[Tensor]]:
        """Parameters that have gradients, these, both moments, the largest (none here) and the numbers of steps."""
        own = [parameter for parameter in group["params"] if parameter.grad is not None]
        states = [self.state[parameter] for parameter in own]
        if not all(states):  # the first step: torch makes the moments, and checks what it is given
            self._init_group(group, *([] for _ in range(6)))
            self._join_counts()
            states = [self.state[parameter] for parameter in own]
        kept = [[state[name] for state in states] for name in ("exp_avg", "exp_avg_sq", "step")]
        return [own, [parameter.grad for parameter in own], *kept[:2], [], kept[2]]

    step.hooked = True  # type: ignore[attr-defined]  # torch would wrap it for its profiler


def _step_share(found: list[list[Tensor]], shares: list[list[int]], group: dict[str, Any], share: int) -> None:
    """The step of the parameters at some places."""
    own = [[tensors[place] for place in shares[share] if tensors] for tensors in found]
    torch._fused_adamw_(
        *own,
        amsgrad=False,
        lr=group["lr"],
        beta1=group["betas"][0],
        beta2=group["betas"][1],
        weight_decay=group["weight_decay"],
        eps=group["eps"],
        maximize=False,
    )


def _shares(sizes: list[int], threads: int) -> list[list[int]]:
    """Whole parameters for each thread, about as many numbers to each; a single share where threads do not pay."""
    count = min(threads, len(sizes))
    if count < 2 or EACH * sum(sizes) < WORTH_A_THREAD:
        return [[*range(len(sizes))]]
    shares: list[list[int]] = [[] for _ in range(count)]
    for place in sorted(range(len(sizes)), key=lambda place: -sizes[place]):
        min(shares, key=lambda share: sum(sizes[other] for other in share)).append(place)
    return shares
