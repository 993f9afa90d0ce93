"""In which order a stack of layers is computed, and where its activations and gradients lie.

Where every input of a layer is used exactly twice, gates are edges and inputs are nodes of a graph that is nothing but
cycles (all wirings made here give such layers when the width does not change). Walked along its cycles,

    gate k of the walk joins node k and node k + 1;  the last gate of a cycle joins its last node and its first

so each node is read once and kept in registers for its second use. The layer's inputs are stored in the order of the
walk: reads are sequential. The gradient of node k is complete when gate k is done, and takes the place of the gradient
of gate k, which is used up by then: one buffer, half the cache. ``rows`` and ``slots`` say which place that is.

Other layers are computed gate by gate in their own order: the first, which reads the packed batch; one above a layer
that votes, whose gates stay in the order of their classes; and one whose wiring changes from step to step. Of such a
layer nothing but ``first`` and ``second`` follows from the wiring: ``rewired`` is all there is to do.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor
from torch.utils.weak import WeakTensorKeyDictionary

from gatefit.compiled import njit
from gatefit.ops.stacks import Stack
from gatefit.ops.tensors import version

FROM_BITS: Final = 0
FROM_CYCLES: Final = 1
FROM_ROWS: Final = 2
"""How a layer finds its inputs: bits of the batch, along cycles, or row by row as wired."""


@dataclass(frozen=True, eq=False)
class StackOrder:
    """What is fixed while a stack is trained. Arrays over gates hold all layers one after another, as computed."""

    inputs: int
    widths: tuple[int, ...]
    layers: Int[np.ndarray, "layers 7"]
    """For each layer: how it reads, gates, first gate, first cycle, end of cycles, inputs, whether it votes."""
    order: Int[np.ndarray, " gates"]
    """The gate's number in its layer."""
    swapped: Int[np.ndarray, " gates"]
    """1 where a walk enters the gate by its b: first and second input are b and a."""
    rows: Int[np.ndarray, " gates"]
    """The row of its output among the activations that the layer above reads."""
    slots: Int[np.ndarray, " gates"]
    """The row of its gradient while the layer is differentiated."""
    cycles: Int[np.ndarray, " cycles+1"]
    """Where each cycle begins, counted from the first gate of its layer; then the layer's number of gates."""

    @cached_property
    def gates(self) -> int:
        """Gates of all layers together."""
        return sum(self.widths)

    @cached_property
    def ranges(self) -> list[slice]:
        """Where each layer lies in the arrays over gates."""
        return [slice(int(first), int(first + gates)) for gates, first in self.layers[:, 1:3]]


@dataclass(frozen=True, eq=False)
class StackSchedule:
    """A stack's wiring, rearranged: its order of computation, and where each gate finds its inputs."""

    fixed: StackOrder
    first: Int[np.ndarray, " gates"]
    second: Int[np.ndarray, " gates"]
    """The rows of a gate's two inputs among the activations of the layer below."""

    def rewired(self, wirings: dict[int, Int[np.ndarray, "2 _"]]) -> "StackSchedule":
        """The same with other wirings of layers that are read row by row; a pass that is under way keeps its own."""
        first, second = self.first.copy(), self.second.copy()
        for layer, wiring in wirings.items():
            check_range(layer, wiring, int(self.fixed.layers[layer, 5]))
            place = self.fixed.ranges[layer]
            first[place], second[place] = wiring
        return replace(self, first=first, second=second)


@njit(cache=True)
def _walk(wiring, uses, order, swapped, cycles):  # type: ignore[no-untyped-def]
    """Fill ``order`` and ``swapped`` along the cycles; returns how many there are."""
    gates = wiring.shape[1]
    seen = np.zeros(gates, dtype=np.uint8)
    place = count = 0
    for begin in range(gates):
        if seen[begin]:
            continue
        cycles[count] = place
        count += 1
        gate, role = begin, 0
        while not seen[gate]:
            seen[gate] = 1
            order[place], swapped[place] = gate, role
            place += 1
            # Leave by the other input, and enter the other gate that uses it (or this one, if it uses it twice).
            leaving = (1 - role) * gates + gate
            node = wiring[1 - role, gate]
            entering = uses[2 * node] if uses[2 * node] != leaving else uses[2 * node + 1]
            role, gate = entering // gates, entering % gates
    cycles[count] = gates
    return count


def _layer(wiring: np.ndarray, inputs: int, kind: int) -> tuple[int, np.ndarray, np.ndarray, np.ndarray]:
    """How to read, order, swapped, cycles of one layer; along cycles if ``kind`` says so and the wiring has them."""
    gates = wiring.shape[1]
    twice = gates == inputs and bool((np.bincount(wiring.ravel(), minlength=inputs) == 2).all())
    if kind != FROM_CYCLES or not twice:
        plain = np.arange(gates, dtype=np.int32)
        return FROM_BITS if kind == FROM_BITS else FROM_ROWS, plain, np.zeros(gates, np.uint8), np.empty(0, np.int32)
    order, swapped = np.empty(gates, np.int32), np.empty(gates, np.uint8)
    cycles = np.empty(gates + 1, np.int32)
    uses = np.argsort(wiring.ravel(), kind="stable").astype(np.int32)
    count = _walk(wiring, uses, order, swapped, cycles)
    return FROM_CYCLES, order, swapped, cycles[: count + 1].copy()


def check_range(layer: int, wiring: Int[np.ndarray, "2 gates"], inputs: int) -> None:
    """Refuse a wiring that reads what is not there: kernels do not look."""
    if wiring.size and not 0 <= wiring.min() <= wiring.max() < inputs:
        raise ValueError(
            f"the wiring of layer {layer} reads inputs {wiring.min()} to {wiring.max()}, "
            f"but there are {inputs}, numbered from 0"
        )


def make_schedule(
    wirings: Sequence[Int[np.ndarray, "2 _"]],
    inputs: int,
    votes: Sequence[int] = (),
    changing: Sequence[bool] = (),
) -> StackSchedule:
    """The schedule of a stack whose first layer reads ``inputs`` bits; votes and changing as in ``Stack``."""
    depth = len(wirings)
    voting = [number in (votes or (depth,)) for number in range(1, depth + 1)]
    moving = tuple(changing) or (False,) * depth
    sizes = [inputs, *(wiring.shape[1] for wiring in wirings)]
    found = []
    for i, (wiring, size) in enumerate(zip(wirings, sizes, strict=False)):
        check_range(i, wiring, size)
        as_wired = moving[i] or (i > 0 and voting[i - 1])
        found.append(_layer(wiring, size, FROM_BITS if i == 0 else FROM_ROWS if as_wired else FROM_CYCLES))
    # Where the output of gate i is stored: at its place in the walk of the layer above, if that walks.
    places = [np.arange(size, dtype=np.int32) for size in sizes]
    for place, (kind, order, swapped, _), wiring in zip(places, found, wirings, strict=False):
        if kind == FROM_CYCLES:
            place[wiring[swapped, order]] = np.arange(order.size, dtype=np.int32)
    layers, first, second, rows, slots = [], [], [], [], []
    gates = cycles = 0
    for i, (kind, order, swapped, starts) in enumerate(found):
        ordered = wirings[i][:, order]
        first.append(places[i][np.where(swapped, ordered[1], ordered[0])])
        second.append(places[i][np.where(swapped, ordered[0], ordered[1])])
        rows.append(places[i + 1][order])
        layers.append((kind, order.size, gates, cycles, cycles + max(0, starts.size - 1), places[i].size, voting[i]))
        gates, cycles = gates + order.size, cycles + starts.size
    # From the last layer down: a layer's nodes inherit the slots of the gates that complete them.
    slot = places[-1]
    for i in reversed(range(depth)):
        slots.append(slot[found[i][1]])
        slot = slots[-1][places[i]] if found[i][0] == FROM_CYCLES else places[i]
    fixed = StackOrder(
        inputs=inputs,
        widths=tuple(sizes[1:]),
        layers=np.array(layers, dtype=np.int64),
        order=np.concatenate([order for _, order, _, _ in found]),
        swapped=np.concatenate([swapped for _, _, swapped, _ in found]),
        rows=np.concatenate(rows),
        slots=np.concatenate(slots[::-1]),
        cycles=np.concatenate([starts for _, _, _, starts in found]),
    )
    return StackSchedule(fixed, np.concatenate(first), np.concatenate(second))


_SCHEDULES: WeakTensorKeyDictionary = WeakTensorKeyDictionary()
_OF_SIZES: Final[dict[Any, Any]] = {}
"""Those of stacks whose wirings all change: they follow from the sizes alone."""
_KEPT: Final = 4
"""Stacks that may begin with one tensor before the oldest schedule is forgotten."""


def stack_schedule(stack: Stack, inputs: int) -> StackSchedule:
    """The schedule of these wirings; made once, and again only after one that does not change was written to."""
    fixed = [wiring for wiring, changes in zip(stack.wirings, stack.changing, strict=True) if not changes]
    known = _SCHEDULES.get(fixed[0]) if fixed else _OF_SIZES
    if known is None:
        known = _SCHEDULES[fixed[0]] = {}
    state = (
        inputs, stack.widths, stack.votes, stack.changing, *((id(wiring), version(wiring)) for wiring in fixed),
    )  # fmt: skip
    if state not in known:
        while len(known) >= _KEPT:
            del known[next(iter(known))]
        made = make_schedule([_indices(wiring) for wiring in stack.wirings], inputs, stack.votes, stack.changing)
        # The other tensors are kept alive with the schedule, so that no new one can take over an id.
        known[state] = made, fixed[1:]
    schedule: StackSchedule = known[state][0]
    if len(fixed) == len(stack.wirings):
        return schedule
    return schedule.rewired({i: _indices(stack.wirings[i]) for i, changes in enumerate(stack.changing) if changes})


def _indices(wiring: Tensor) -> Int[np.ndarray, "2 gates"]:
    indices: np.ndarray = wiring.detach().cpu().to(torch.int32).contiguous().numpy()
    return indices
