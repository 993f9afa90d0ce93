"""From a list of gates over literals to a circuit: for importers, and for what builds circuits gate by gate.

    literal    as everywhere (``logic.literals``): 0 is false, 1 is true, input i is 2 · (i + 1)

``finish`` hashes and simplifies the gates, and a gate of two gates of the same two nodes becomes one gate of them. So
three ANDs that spell an exclusive or are one again:

    ¬(u ∧ v) ∧ ¬(¬u ∧ ¬v)  =  u ⊕ v

It keeps what the outputs need and absorbs every inverter into a gate that reads or makes the bit, so an
import has at most as many gates as the netlist has ANDs, plus one for an input, a constant or a node that is put out
in a polarity nobody else makes.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import Final, NamedTuple, TypeVar

import numpy as np

from gatefit.circuit.ir import Circuit
from gatefit.circuit.logic.graph import Graph, as_nodes, without_dead
from gatefit.circuit.logic.hashing import empty_network, make
from gatefit.circuit.logic.literals import normal_gate
from gatefit.circuit.logic.words import gate_of_words
from gatefit.circuit.readout import GroupSum
from gatefit.compiled import njit
from gatefit.gates import Gate

Signal = TypeVar("Signal", bound=Hashable)


class Form(NamedTuple):
    """A gate as one of FALSE, A, B, AND and XOR, with inverters before and behind it."""

    core: Gate
    invert_a: int
    invert_b: int
    invert: int


def _form(gate: Gate) -> Form:
    if not (gate.depends_on_a and gate.depends_on_b):
        core = Gate.A if gate.depends_on_a else Gate.B if gate.depends_on_b else Gate.FALSE
        return Form(core, 0, 0, int(gate is not core))
    if gate in (Gate.XOR, Gate.XNOR):
        return Form(Gate.XOR, 0, 0, int(gate is Gate.XNOR))
    # One row of the truth table stands alone: the only 1, or the only 0.
    rare = int(int(gate).bit_count() == 1)
    a, b = next((a, b) for a in (0, 1) for b in (0, 1) if gate(a, b) == rare)
    return Form(Gate.AND, 1 - a, 1 - b, 1 - rare)


FORMS: Final = tuple(_form(gate) for gate in Gate)
"""For every gate how it is made of an AND, an XOR, a wire or a constant."""


class Netlist:
    """A growing list of gates over literals."""

    def __init__(self, inputs: int) -> None:
        self.inputs = inputs
        self._gates: list[int] = []
        self._operands: list[tuple[int, int]] = []

    def gate(self, kind: int, a: int, b: int) -> int:
        """The literal of a gate of two literals."""
        self._gates.append(kind)
        self._operands.append((a, b))
        return 2 * (self.inputs + len(self._gates))

    def conjunction(self, a: int, b: int) -> int:
        """The literal of a ∧ b."""
        return self.gate(Gate.AND, a, b)

    def exclusive(self, a: int, b: int) -> int:
        """The literal of a ⊕ b."""
        return self.gate(Gate.XOR, a, b)

    def disjunction(self, a: int, b: int) -> int:
        """The literal of a ∨ b."""
        return self.gate(Gate.OR, a, b)

    def select(self, condition: int, high: int, low: int) -> int:
        """The literal of condition ? high : low."""
        return self.disjunction(self.conjunction(condition, high), self.conjunction(condition ^ 1, low))

    def finish(self, outputs: Sequence[int], input_names: tuple[str, ...] = (), like: Circuit | None = None) -> Circuit:
        """The circuit with these output literals; readout, names and encoder come from ``like`` if it is given.

        Without ``like`` every output is a class of its own, scored 0 or 1.
        """
        check_counts(self.inputs, len(outputs), like)
        net = empty_network(self.inputs, 1 + self.inputs + len(self._gates))
        literals = np.empty(1 + self.inputs + len(self._gates), np.int64)
        _build(net, np.array(self._gates, np.uint8), np.array(self._operands, np.int64).reshape(-1, 2).T, literals)
        made = slice(net.first, int(net.used[0]))
        roots = np.array(outputs, np.int64)
        graph, nodes = as_nodes(
            Graph(self.inputs, net.gates[made], net.operands[:, made]), literals[roots >> 1] ^ (roots & 1)
        )
        graph, nodes = without_dead(graph, nodes.astype(np.int32))
        gates, operands, outputs_of = graph.gates, graph.operands - 1, nodes - 1
        if like is not None:
            return replace(like, gates=gates, operands=operands, outputs=outputs_of)
        readout = GroupSum(np.arange(len(outputs)), np.zeros(max(1, len(outputs)), np.int64))
        return Circuit(self.inputs, gates, operands, outputs_of, readout, input_names)


@njit(cache=True)
def _build(net, gates, operands, literals):  # type: ignore[no-untyped-def]
    """Fill ``net``; the literal there of every node. A gate of two gates of the same two nodes is one gate of them."""
    for node in range(net.first):
        literals[node] = 2 * node
    for i in range(len(gates)):
        a, b = operands[0, i], operands[1, i]
        a, b = literals[a >> 1] ^ (a & 1), literals[b >> 1] ^ (b & 1)
        done, literal, gate, p, q = normal_gate(gates[i], a, b)
        if not done:
            x, y = net.operands[0, p], net.operands[1, p]
            if p >= net.first and x == net.operands[0, q] and y == net.operands[1, q]:
                tables = np.uint64(net.gates[p]), np.uint64(net.gates[q])
                gate = np.int64(gate_of_words(gate, tables[0], tables[1]) & np.uint64(15))
                p, q = np.int64(x), np.int64(y)
            literal ^= make(net, gate, 2 * p, 2 * q)
        literals[net.first + i] = literal


def check_counts(inputs: int, outputs: int, like: Circuit | None) -> None:
    """Refuse a netlist without inputs, or one whose ports are not those of ``like``."""
    if inputs < 1:
        raise ValueError("a circuit needs at least one input, the netlist has none")
    if like is not None and (inputs, outputs) != (like.inputs, like.outputs.size):
        raise ValueError(
            f"the netlist has {inputs} inputs and {outputs} outputs, the circuit given as like= has {like.inputs} and "
            f"{like.outputs.size}; pass the circuit that was exported"
        )


def in_order(
    reads: Mapping[Signal, Sequence[Signal]], sources: AbstractSet[Signal], describe: Callable[[Signal], str]
) -> list[Signal]:
    """The signals, each after those that it reads; refuses signals that are undefined or depend on themselves."""
    order: list[Signal] = []
    listed, visiting = set(sources), set[Signal]()
    for start in reads:
        stack = [start]
        while stack:
            signal = stack[-1]
            if signal in listed:
                stack.pop()
                continue
            waiting = [below for below in reads[signal] if below not in listed]
            if not waiting:
                listed.add(signal)
                order.append(stack.pop())
                continue
            visiting.add(signal)
            for below in waiting:
                if below not in reads:
                    raise ValueError(f"{describe(below)}, read by {describe(signal)}, is not defined")
                if below in visiting:
                    raise ValueError(f"{describe(below)} depends on itself; only acyclic circuits can be read")
            stack.extend(waiting)
    return order
