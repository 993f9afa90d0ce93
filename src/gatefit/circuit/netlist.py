"""From a netlist of ANDs, XORs and inverters to a circuit: what the importers share.

    literal    2 · node + inverted;  0 is false, 1 is true;  input i is 2 · (i + 1)

Gates are hashed and simplified as they are made, and three ANDs that spell an exclusive or become one:

    ¬(u ∧ v) ∧ ¬(¬u ∧ ¬v)  =  u ⊕ v

``finish`` keeps what the outputs need and absorbs every inverter into a gate that reads or makes the bit, so an
import has at most as many gates as the netlist has ANDs, plus one for an input, a constant or a node that is put out
in a polarity nobody else makes.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import Final, NamedTuple, TypeVar

import numpy as np

from gatefit.circuit.ir import Circuit
from gatefit.circuit.readout import GroupSum
from gatefit.gates import NEGATED_A, NEGATED_B, Gate

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
    """A growing list of AND and XOR gates over literals."""

    def __init__(self, inputs: int) -> None:
        self.inputs = inputs
        self.gates: list[tuple[Gate, int, int]] = []
        self._known: dict[tuple[Gate, int, int], int] = {}

    def conjunction(self, a: int, b: int) -> int:
        """The literal of a ∧ b."""
        if a > b:
            a, b = b, a
        if a == 0 or a == b ^ 1:
            return 0
        if a in (1, b):
            return b
        if a & b & 1:
            one, two = self._conjuncts(a), self._conjuncts(b)
            if one is not None and two is not None and one in ((two[0] ^ 1, two[1] ^ 1), (two[1] ^ 1, two[0] ^ 1)):
                return self.exclusive(*one)
        return self._made(Gate.AND, a, b)

    def exclusive(self, a: int, b: int) -> int:
        """The literal of a ⊕ b."""
        inverted = (a ^ b) & 1
        a, b = sorted((a & ~1, b & ~1))
        if a == b:
            return inverted
        return (b if a == 0 else self._made(Gate.XOR, a, b)) ^ inverted

    def disjunction(self, a: int, b: int) -> int:
        """The literal of a ∨ b."""
        return self.conjunction(a ^ 1, b ^ 1) ^ 1

    def gate(self, kind: int, a: int, b: int) -> int:
        """The literal of a gate of two literals."""
        form = FORMS[kind]
        if form.core is Gate.AND:
            return self.conjunction(a ^ form.invert_a, b ^ form.invert_b) ^ form.invert
        if form.core is Gate.XOR:
            return self.exclusive(a, b) ^ form.invert
        return (0 if form.core is Gate.FALSE else a if form.core is Gate.A else b) ^ form.invert

    def select(self, condition: int, high: int, low: int) -> int:
        """The literal of condition ? high : low."""
        return self.disjunction(self.conjunction(condition, high), self.conjunction(condition ^ 1, low))

    def _conjuncts(self, literal: int) -> tuple[int, int] | None:
        at = (literal >> 1) - 1 - self.inputs
        return self.gates[at][1:] if at >= 0 and self.gates[at][0] is Gate.AND else None

    def _made(self, gate: Gate, a: int, b: int) -> int:
        key = (gate, a, b)
        if key not in self._known:
            self.gates.append(key)
            self._known[key] = 2 * (self.inputs + len(self.gates))
        return self._known[key]

    def finish(self, outputs: Sequence[int], input_names: tuple[str, ...] = (), like: Circuit | None = None) -> Circuit:
        """The circuit with these output literals; readout, names and encoder come from ``like`` if it is given.

        Without ``like`` every output is a class of its own, scored 0 or 1.
        """
        check_counts(self.inputs, len(outputs), like)
        first = 1 + self.inputs
        live, inverted = bytearray(first + len(self.gates)), bytearray(first + len(self.gates))
        for literal in reversed(outputs):
            live[literal >> 1] = 1
            inverted[literal >> 1] = literal & 1  # the first output that reads a gate chooses its polarity
        inverted[:first] = bytes(first)
        for at in range(len(self.gates) - 1, -1, -1):
            if live[first + at]:
                for literal in self.gates[at][1:]:
                    live[literal >> 1] = 1
        place = list(range(-1, self.inputs))  # of a node among the circuit's nodes
        kinds: list[int] = []
        operands: list[tuple[int, int]] = []

        def emit(kind: int, a: int, b: int) -> int:
            kinds.append(kind)
            operands.append((a, b))
            return self.inputs + len(kinds) - 1

        for at, (gate, a, b) in enumerate(self.gates):
            if not live[first + at]:
                place.append(-1)
                continue
            kind = int(gate) ^ (15 * inverted[first + at])
            kind = int(NEGATED_A[kind]) if (a & 1) ^ inverted[a >> 1] else kind
            kind = int(NEGATED_B[kind]) if (b & 1) ^ inverted[b >> 1] else kind
            place.append(emit(kind, place[a >> 1], place[b >> 1]))
        made: dict[int, int] = {}
        for literal in outputs:
            node = literal >> 1
            if literal not in made:
                if node == 0:
                    made[literal] = emit(int(Gate.TRUE if literal else Gate.FALSE), 0, 0)
                elif (literal & 1) ^ inverted[node]:
                    made[literal] = emit(int(Gate.NOT_A), place[node], place[node])
                else:
                    made[literal] = place[node]
        circuit = Circuit(
            inputs=self.inputs,
            gates=np.array(kinds, np.uint8),
            operands=np.array(operands, np.int32).reshape(-1, 2).T,
            outputs=np.array([made[literal] for literal in outputs], np.int32),
            readout=GroupSum(np.arange(len(outputs)), np.zeros(max(1, len(outputs)), np.int64)),
            input_names=input_names,
        )
        if like is None:
            return circuit
        return replace(like, gates=circuit.gates, operands=circuit.operands, outputs=circuit.outputs)


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
