"""In which order a stack of layers is computed, and where its activations and gradients lie.

Gates are edges and inputs are nodes of a graph. Where every input is used exactly twice, it is nothing but cycles;
where all but a few are, it is trails between those few, and cycles. Walked along them,

    gate k of the walk joins node k and node k + 1;  the last gate of a cycle joins its last node and its first

and the layer's inputs are stored in the order of the walk: of a layer that is too wide for the caches nothing is read
here and there but what is written here and there. The gradient of the node that gate k is entered by is complete when
gate k is done, and takes the place of the gradient of gate k, which is used up by then: one buffer, half the cache.
``rows`` and ``slots`` say which place that is.

    FROM_CYCLES   each node is read once and kept in registers for its second use; sums follow the walk
    FROM_TRAILS   sums follow the gates' numbers, whichever way the walk goes: the same bits as row by row
    FROM_ROWS     gate by gate in their own order: a layer above one that votes, whose gates stay in the order of their
                  classes; one whose inputs are used unevenly; and one whose wiring changes from step to step. Of such a
                  layer nothing but ``first`` and ``second`` follows from the wiring: ``rewired`` is all there is to do
    FROM_BITS     the first layer, which reads the packed batch
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
FROM_TRAILS: Final = 3
"""How a layer finds its inputs: bits of the batch, along cycles, row by row as wired, or along trails."""

FEW: Final = 8
"""Trails are walked where not more than one in so many uses of inputs lies at a trail's end."""


@dataclass(frozen=True, eq=False)
class StackOrder:
    """What is fixed while a stack is trained. Arrays over gates hold all layers one after another, as computed."""

    inputs: int
    widths: tuple[int, ...]
    layers: Int[np.ndarray, "layers 11"]
    """For each layer: how it reads, gates, first gate, first cycle or trail, end of them, inputs, whether it votes;
    first of its ends and end of them, first use of an end and end of them."""
    order: Int[np.ndarray, " gates"]
    """The gate's number in its layer."""
    swapped: Int[np.ndarray, " gates"]
    """1 where a walk enters the gate by its b: first and second input are b and a."""
    rows: Int[np.ndarray, " gates"]
    """The row of its output among the activations that the layer above reads."""
    slots: Int[np.ndarray, " gates"]
    """The row of its gradient while the layer is differentiated."""
    cycles: Int[np.ndarray, " cycles+1"]
    """Where each cycle or trail begins, counted from the first gate of its layer; then the layer's number of gates."""
    enters: Int[np.ndarray, " gates"]
    """By which input a trail enters the gate: 0 for a, 1 for b."""
    turned: Int[np.ndarray, " gates"]
    """All bits set where the gate's number is below that of the gate walked before it: its part of their common input's
    gradient comes first. For the first gate of a cycle, the one before is the last."""
    closed: Int[np.ndarray, " cycles+1"]
    """1 where a trail is a cycle."""
    ends: Int[np.ndarray, " ends"]
    """The slots of nodes at which trails end: those that are not used by exactly two gates."""
    uses: Int[np.ndarray, "uses 3"]
    """Of every use of such a node, in the order of gates' numbers: the gate's place in the walk, by which input, and
    the number of the end in its layer."""

    @cached_property
    def gates(self) -> int:
        """Gates of all layers together."""
        return sum(self.widths)

    @cached_property
    def numbers(self) -> Int[np.ndarray, " gates"]:
        """The gate's number among those of all layers, layer after layer."""
        numbers: np.ndarray = self.order + np.repeat(self.layers[:, 2], self.layers[:, 1]).astype(self.order.dtype)
        return numbers

    @cached_property
    def kinds(self) -> frozenset[int]:
        """How its layers find their inputs."""
        return frozenset(self.layers[:, 0].tolist())

    @cached_property
    def most_ends(self) -> int:
        """Ends of trails of the layer that has most."""
        return int(np.diff(self.layers[:, 7:9]).max())

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


@njit(cache=True, plain=True)
def _walk(partners, seen, order, enters, starts, closed):  # type: ignore[no-untyped-def]
    """Fill ``order``, ``enters``, ``starts`` and ``closed``; returns how many cycles and trails there are.

    ``seen`` is scratch, zero for each gate. Use 2 g + r is that of gate g's input r; its partner is the other use of
    the same input, -1 where a trail ends.
    """
    gates = order.size
    place = count = 0
    for use in range(4 * gates):
        # Trails from either end first; what is left then are cycles.
        begin, role = (use >> 1, use & 1) if use < 2 * gates else ((use - 2 * gates) >> 1, 0)
        if seen[begin] or (use < 2 * gates and partners[use] >= 0):
            continue
        starts[count] = place
        gate = begin
        while True:
            seen[gate] = 1
            order[place], enters[place] = gate, role
            place += 1
            # Leave by the other input, and enter the other gate that uses it (or this one, if it uses it twice).
            entering = partners[2 * gate + 1 - role]
            if entering < 0 or seen[entering >> 1]:
                break
            gate, role = entering >> 1, entering & 1
        closed[count] = entering >= 0
        count += 1
    starts[count] = gates
    return count


@dataclass
class _Layer:
    """One layer's walk: the arrays of ``StackOrder`` that do not depend on other layers."""

    kind: int
    order: np.ndarray
    swapped: np.ndarray
    enters: np.ndarray
    turned: np.ndarray
    starts: np.ndarray
    closed: np.ndarray
    ends: np.ndarray
    """Nodes at which trails end."""
    uses: np.ndarray


def _layer(wiring: np.ndarray, inputs: int, kind: int) -> _Layer:
    """One layer, along cycles or trails if ``kind`` says so and the wiring has them."""
    gates = wiring.shape[1]
    nothing = np.empty(0, np.int32)
    plain = np.arange(gates, dtype=np.int32)
    none = np.zeros(gates, np.uint8)
    as_wired = _Layer(
        FROM_BITS if kind == FROM_BITS else FROM_ROWS, plain, none, none, none.astype(np.uint32), nothing,
        none[:0], nothing, np.empty((0, 3), np.int32),
    )  # fmt: skip
    if kind != FROM_CYCLES:
        return as_wired
    flat = wiring.T.ravel()
    counts = np.bincount(flat, minlength=inputs)
    uses = np.argsort(flat, kind="stable").astype(np.int32)
    first = np.concatenate([[0], np.cumsum(counts)[:-1]])
    twice = np.flatnonzero(counts == 2)
    one, two = uses[first[twice]], uses[first[twice] + 1]
    cycles = gates == inputs == twice.size
    if not cycles:
        apart = one >> 1 != two >> 1
        twice, one, two = twice[apart], one[apart], two[apart]
        if FEW * (2 * gates - 2 * twice.size) > 2 * gates:
            return as_wired
    partners = np.full(2 * gates, -1, np.int32)
    partners[one], partners[two] = two, one
    order, enters = np.empty(gates, np.int32), np.empty(gates, np.uint8)
    starts, closed = np.empty(gates + 1, np.int32), np.zeros(gates + 1, np.uint8)
    count = _walk(partners, np.zeros(gates, np.uint8), order, enters, starts, closed)
    starts, closed = starts[: count + 1].copy(), closed[: count + 1].copy()
    if cycles:
        return replace(as_wired, kind=FROM_CYCLES, order=order, swapped=enters, starts=starts, closed=closed)
    before = np.roll(order, 1)
    before[starts[:-1]] = order[starts[1:] - 1]
    ends = np.setdiff1d(np.arange(inputs, dtype=np.int32), twice)
    numbers = np.full(inputs, -1, np.int32)
    numbers[ends] = np.arange(ends.size)
    places = np.empty(gates, np.int32)
    places[order] = plain
    ending = np.flatnonzero(numbers[flat] >= 0)
    return _Layer(
        FROM_TRAILS, order, none, enters, np.where(order < before, np.uint32(0xFFFFFFFF), np.uint32(0)), starts, closed,
        ends, np.stack([places[ending >> 1], ending & 1, numbers[flat[ending]]], axis=1).astype(np.int32),
    )  # fmt: skip


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
    for place, layer, wiring in zip(places, found, wirings, strict=False):
        if layer.kind == FROM_CYCLES:
            place[wiring[layer.swapped, layer.order]] = np.arange(layer.order.size, dtype=np.int32)
        elif layer.kind == FROM_TRAILS:
            place[:] = _by_appearance(wiring[[layer.enters, 1 - layer.enters], layer.order].T.ravel(), place.size)
    layers, first, second, rows, slots, ends = [], [], [], [], [], []
    gates = cycles = 0
    for i, layer in enumerate(found):
        ordered = wirings[i][:, layer.order]
        first.append(places[i][np.where(layer.swapped, ordered[1], ordered[0])])
        second.append(places[i][np.where(layer.swapped, ordered[0], ordered[1])])
        rows.append(places[i + 1][layer.order])
        layers.append(
            [
                *(layer.kind, layer.order.size, gates, cycles, cycles + max(0, layer.starts.size - 1)),
                *(places[i].size, voting[i]),
            ]
        )
        gates, cycles = gates + layer.order.size, cycles + layer.starts.size
    # From the last layer down: a layer's nodes inherit the slots of the gates that complete them, ends what is left.
    slot = places[-1]
    for i in reversed(range(depth)):
        layer, own = found[i], slot[found[i].order]
        slots.append(own)
        ends.append(np.empty(0, np.int32))
        if layer.kind == FROM_CYCLES:
            slot = own[places[i]]
        elif layer.kind == FROM_TRAILS:
            slot = np.full(places[i].size, -1, np.int32)
            entered = np.ones(own.size, bool)
            entered[layer.starts[:-1]] = layer.closed[:-1]
            slot[wirings[i][layer.enters, layer.order][entered]] = own[entered]
            left = np.setdiff1d(np.arange(max(sizes[1:]), dtype=np.int32), slot)
            slot[layer.ends] = ends[-1] = left[: layer.ends.size]
        else:
            slot = places[i]
    slots, ends = slots[::-1], ends[::-1]
    for sizes_of in ([each.size for each in ends], [len(layer.uses) for layer in found]):
        for row, stop, size in zip(layers, np.cumsum(sizes_of), sizes_of, strict=True):
            row += [stop - size, stop]
    fixed = StackOrder(
        inputs=inputs,
        widths=tuple(sizes[1:]),
        layers=np.array(layers, dtype=np.int64),
        order=np.concatenate([layer.order for layer in found]),
        swapped=np.concatenate([layer.swapped for layer in found]),
        rows=np.concatenate(rows),
        slots=np.concatenate(slots),
        cycles=np.concatenate([layer.starts for layer in found]),
        enters=np.concatenate([layer.enters for layer in found]),
        turned=np.concatenate([layer.turned for layer in found]),
        closed=np.concatenate([layer.closed for layer in found]),
        ends=np.concatenate(ends),
        uses=np.concatenate([layer.uses for layer in found]),
    )
    return StackSchedule(fixed, np.concatenate(first), np.concatenate(second))


def _by_appearance(nodes: np.ndarray, count: int) -> np.ndarray:
    """The rank of each of ``count`` nodes by its first appearance in a list; then those that do not appear."""
    seen = np.full(count, nodes.size, np.int64)
    seen[nodes[::-1]] = np.arange(nodes.size)[::-1]
    ranks = np.empty(count, np.int32)
    ranks[np.argsort(seen, kind="stable")] = np.arange(count, dtype=np.int32)
    return ranks


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
