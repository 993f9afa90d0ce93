"""In which order a stack of layers is computed, and where its activations and gradients lie.

Where every input of a layer is used exactly twice, gates are edges and inputs are nodes of a graph that is nothing but
cycles (all wirings made here give such layers when the width does not change). Walked along its cycles,

    gate k of the walk joins node k and node k + 1;  the last gate of a cycle joins its last node and its first

so each node is read once and kept in registers for its second use. The layer's inputs are stored in the order of the
walk: reads are sequential. The gradient of node k is complete when gate k is done, and takes the place of the gradient
of gate k, which is used up by then: one buffer, half the cache. ``rows`` and ``slots`` say which place that is.

Other layers, and the first, which reads the packed batch, are computed gate by gate in their own order.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor
from torch.utils.weak import WeakTensorKeyDictionary

from gatefit.compiled import njit
from gatefit.ops.tensors import version

FROM_BITS: Final = 0
FROM_CYCLES: Final = 1
FROM_ROWS: Final = 2
"""How a layer finds its inputs: bits of the batch, along cycles, or row by row as wired."""


@dataclass(frozen=True, eq=False)
class StackPlan:
    """A stack's wiring, rearranged. Arrays over gates hold all layers one after another, in order of computation."""

    inputs: int
    widths: tuple[int, ...]
    layers: Int[np.ndarray, "layers 6"]
    """For each layer: how it reads, gates, first gate, first cycle, end of cycles, inputs."""
    order: Int[np.ndarray, "gates"]
    """The gate's number in its layer."""
    swapped: Int[np.ndarray, "gates"]
    """1 where a walk enters the gate by its b: first and second input are b and a."""
    first: Int[np.ndarray, "gates"]
    second: Int[np.ndarray, "gates"]
    """The rows of its two inputs among the activations of the layer below."""
    rows: Int[np.ndarray, "gates"]
    """The row of its output among the activations that the layer above reads."""
    slots: Int[np.ndarray, "gates"]
    """The row of its gradient while the layer is differentiated."""
    cycles: Int[np.ndarray, " cycles+1"]
    """Where each cycle begins, counted from the first gate of its layer; then the layer's number of gates."""

    @property
    def gates(self) -> int:
        """Gates of all layers together."""
        return sum(self.widths)


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


def _layer(wiring: np.ndarray, inputs: int, is_first: bool) -> tuple[int, np.ndarray, np.ndarray, np.ndarray]:
    """How to read, order, swapped, cycles of one layer."""
    gates = wiring.shape[1]
    twice = gates == inputs and bool((np.bincount(wiring.ravel(), minlength=inputs) == 2).all())
    if is_first or not twice:
        plain = np.arange(gates, dtype=np.int32)
        return FROM_BITS if is_first else FROM_ROWS, plain, np.zeros(gates, np.uint8), np.empty(0, np.int32)
    order, swapped = np.empty(gates, np.int32), np.empty(gates, np.uint8)
    cycles = np.empty(gates + 1, np.int32)
    uses = np.argsort(wiring.ravel(), kind="stable").astype(np.int32)
    count = _walk(wiring, uses, order, swapped, cycles)
    return FROM_CYCLES, order, swapped, cycles[: count + 1].copy()


def make_plan(wirings: list[Int[np.ndarray, "2 gates"]], inputs: int) -> StackPlan:
    """The plan of a stack whose first layer reads ``inputs`` bits."""
    sizes = [inputs, *(wiring.shape[1] for wiring in wirings)]
    for number, (wiring, size) in enumerate(zip(wirings, sizes, strict=False)):
        if wiring.size and not 0 <= wiring.min() <= wiring.max() < size:
            raise ValueError(
                f"the wiring of layer {number} reads inputs {wiring.min()} to {wiring.max()}, "
                f"but there are {size}, numbered from 0"
            )
    found = [_layer(wiring, size, i == 0) for i, (wiring, size) in enumerate(zip(wirings, sizes, strict=False))]
    # Where the output of gate i is stored: at its place in the walk of the layer above, if that walks.
    places = [np.arange(size, dtype=np.int32) for size in sizes]
    for place, (kind, order, swapped, _), wiring in zip(places, found, wirings, strict=False):
        if kind == FROM_CYCLES:
            place[wiring[swapped, order]] = np.arange(order.size, dtype=np.int32)
    return _assembled(wirings, found, places)


def _assembled(
    wirings: list[np.ndarray], found: list[tuple[int, np.ndarray, np.ndarray, np.ndarray]], places: list[np.ndarray]
) -> StackPlan:
    layers, first, second, rows, slots = [], [], [], [], []
    gates = cycles = 0
    for i, (kind, order, swapped, starts) in enumerate(found):
        ordered = wirings[i][:, order]
        first.append(places[i][np.where(swapped, ordered[1], ordered[0])])
        second.append(places[i][np.where(swapped, ordered[0], ordered[1])])
        rows.append(places[i + 1][order])
        layers.append((kind, order.size, gates, cycles, cycles + max(0, starts.size - 1), places[i].size))
        gates, cycles = gates + order.size, cycles + starts.size
    # From the last layer down: a layer's nodes inherit the slots of the gates that complete them.
    slot = places[-1]
    for i in reversed(range(len(found))):
        slots.append(slot[found[i][1]])
        slot = slots[-1][places[i]] if found[i][0] == FROM_CYCLES else places[i]
    return StackPlan(
        inputs=places[0].size,
        widths=tuple(place.size for place in places[1:]),
        layers=np.array(layers, dtype=np.int64),
        order=np.concatenate([order for _, order, _, _ in found]),
        swapped=np.concatenate([swapped for _, _, swapped, _ in found]),
        first=np.concatenate(first),
        second=np.concatenate(second),
        rows=np.concatenate(rows),
        slots=np.concatenate(slots[::-1]),
        cycles=np.concatenate([starts for _, _, _, starts in found]),
    )


_PLANS: WeakTensorKeyDictionary = WeakTensorKeyDictionary()
_PLANS_A_WIRING: Final = 4
"""Stacks that may begin with one tensor before the oldest plan is forgotten."""


def stack_plan(wirings: Sequence[Int[Tensor, "2 gates"]], inputs: int) -> StackPlan:
    """The plan of these wirings; made once, and again only after one of the tensors was written to."""
    if not wirings:
        raise ValueError("a stack needs at least one layer, got no wiring")
    known = _PLANS.get(wirings[0])
    if known is None:
        known = _PLANS[wirings[0]] = {}
    state = (inputs, *((id(wiring), version(wiring)) for wiring in wirings))
    if state not in known:
        arrays = [wiring.detach().cpu().to(torch.int32).contiguous().numpy() for wiring in wirings]
        while len(known) >= _PLANS_A_WIRING:
            del known[next(iter(known))]
        # The other tensors are kept alive with the plan, so that no new one can take over an id.
        known[state] = make_plan(arrays, inputs), list(wirings[1:])
    plan: StackPlan = known[state][0]
    return plan
