"""The readout as gates: what a circuit answers is then in its output bits, and any netlist format carries all of it.

    classes    total_k = offset_k + Σ_i w_ki y_i  by adders;  the first largest of them by a tree of comparisons
               outputs: the class number in binary (``ClassCode``), or one bit a class (``OneHot``)
    a value    the total in binary, in two's complement where it can be negative (``Number`` keeps scale and intercept)

    w y = w + |w| ¬y      for w < 0, so that only positive terms are added
    full adder            three bits of one weight as a bit of the same and one of twice the weight: 5 gates
    a >= b                from the lowest bit on:  at_least = a_i ¬b_i ∨ ¬(a_i ⊕ b_i) at_least
    better of a and b     b_i ⊕ at_least (a_i ⊕ b_i):  of equal totals the left one, with the smaller number, wins

Totals of classes are compared as differences from the smallest that can occur, which needs the fewest bits. Gates that
exist are used again (``Netlist``), so that equal circuits are lowered alike.
"""

import itertools
from collections import deque
from dataclasses import dataclass, replace
from typing import Final, Literal

from gatefit.circuit.ir import Circuit
from gatefit.circuit.logic.literals import FALSE, TRUE
from gatefit.circuit.netlist import Netlist
from gatefit.circuit.readout import ClassCode, Number, OneHot, Readout, Sums

Form = Literal["none", "gates", "one-hot"]
FORMS: Final[tuple[Form, ...]] = ("none", "gates", "one-hot")
"""What a netlist holds of a readout: nothing, or the answer, a class as a number in binary or as one bit of many."""


def lower_readout(circuit: Circuit, *, one_hot: bool = False) -> Circuit:
    """The circuit with its readout as gates: ``predict`` answers the same, from the outputs alone.

    ``one_hot`` gives every class an output of its own instead of the class number in binary. A circuit whose outputs
    are the answer already is returned as it is. Sums that may round are refused: they are not sums that gates can add.
    """
    readout = circuit.readout
    if readout.lowered:
        return circuit
    sums = readout.sums_for("a circuit of gates")
    netlist = Netlist(circuit.inputs)
    bits = _literals(netlist, circuit)
    outputs: list[int]
    answer: Readout
    if readout.gives_value:
        outputs, signed = _whole_total(netlist, sums, bits)
        answer = Number(len(outputs), int(signed), sums.scale, sums.intercept)
    else:
        winner = _first_largest(netlist, _totals(netlist, sums, bits))
        outputs = winner.flags(netlist, sums.classes) if one_hot else winner.index
        answer = OneHot(sums.classes) if one_hot else ClassCode(sums.classes)
    made = netlist.finish(outputs)
    return replace(circuit, gates=made.gates, operands=made.operands, outputs=made.outputs, readout=answer)


def with_readout(circuit: Circuit, form: Form) -> Circuit:
    """What a netlist of this ``form`` is written from."""
    if form not in FORMS:
        raise ValueError(f"readout must be one of {', '.join(FORMS)}, got {form!r}")
    return circuit if form == "none" else lower_readout(circuit, one_hot=form == "one-hot")


def in_one_form(spec: Circuit, impl: Circuit) -> tuple[Circuit, Circuit]:
    """Both circuits, the one with sums lowered if the other one's outputs are the answer: then answers are compared."""
    one, two = spec.readout, impl.readout
    if one.lowered == two.lowered or one.gives_value != two.gives_value:
        return spec, impl
    one_hot = OneHot.kind in (one.kind, two.kind)
    return lower_readout(spec, one_hot=one_hot), lower_readout(impl, one_hot=one_hot)


def _literals(netlist: Netlist, circuit: Circuit) -> list[int]:
    """The literals of the circuit's outputs, with its gates in the netlist."""
    literals = [2 * (i + 1) for i in range(circuit.inputs)]
    for kind, a, b in zip(circuit.gates.tolist(), *circuit.operands.tolist(), strict=True):
        literals.append(netlist.gate(kind, literals[a], literals[b]))
    return [literals[node] for node in circuit.outputs.tolist()]


def _totals(netlist: Netlist, sums: Sums, bits: list[int]) -> list[list[int]]:
    """The totals less the smallest that any of them can be, all of one width, lowest bit first."""
    low = sums.low
    least, width = min(low), (max(sums.high) - min(low)).bit_length()
    return [_added(netlist, _terms(sums, k, bits), low[k] - least, width) for k in range(sums.classes)]


def _whole_total(netlist: Netlist, sums: Sums, bits: list[int]) -> tuple[list[int], bool]:
    """The one total in binary, and whether it is in two's complement."""
    (low,), (high,) = sums.low, sums.high
    width = max(1, high.bit_length())
    if low < 0:
        width = 1 + max(max(high, 0).bit_length(), (-low - 1).bit_length())
    return _added(netlist, _terms(sums, 0, bits), low % 2**width, width), low < 0


def _terms(sums: Sums, k: int, bits: list[int]) -> list[tuple[int, int]]:
    """Positive weights and literals whose sum is total k less the smallest that it can be."""
    begin, end = sums.starts[k : k + 2].tolist()
    pairs = zip(sums.weights[begin:end].tolist(), sums.outputs[begin:end].tolist(), strict=True)
    return [(weight, bits[i]) if weight > 0 else (-weight, bits[i] ^ 1) for weight, i in pairs]


def _added(netlist: Netlist, terms: list[tuple[int, int]], constant: int, width: int) -> list[int]:
    """The ``width`` lowest bits, lowest first, of constant + Σ weight · literal."""
    columns: list[deque[int]] = [deque() for _ in range(width + 1)]  # the last one is what is carried too far
    for weight, literal in [*terms, (constant, TRUE)]:
        for place in range(min(width, weight.bit_length())):
            if weight >> place & 1:
                columns[place].append(literal)
    result = []
    for column, next_column in itertools.pairwise(columns):
        while len(column) > 1:
            # The oldest first: a sum goes to the end, so that the tree is about as deep everywhere.
            a, b = column.popleft(), column.popleft()
            total, carry = netlist.exclusive(a, b), netlist.conjunction(a, b)
            if column:
                c = column.popleft()
                carry = netlist.disjunction(carry, netlist.conjunction(total, c))
                total = netlist.exclusive(total, c)
            column.append(total)
            next_column.append(carry)
        result.append(column[0] if column else FALSE)
    return result


@dataclass(frozen=True)
class _Best:
    """The best of some classes: its total, its number in binary, and how it was found."""

    total: list[int]
    index: list[int]
    first: int = 0
    """The class, if it is the only one."""
    won: "tuple[int, _Best, _Best] | None" = None
    """Whether the left one of two is at least as good as the right one; and these two."""

    def flags(self, netlist: Netlist, classes: int) -> list[int]:
        """For each class whether it is the best."""
        found, open_ = [FALSE] * classes, [(TRUE, self)]
        while open_:
            chosen, best = open_.pop()
            if best.won is None:
                found[best.first] = chosen
            else:
                left_wins, left, right = best.won
                open_.append((netlist.conjunction(chosen, left_wins), left))
                open_.append((netlist.conjunction(chosen, left_wins ^ 1), right))
        return found


def _first_largest(netlist: Netlist, totals: list[list[int]]) -> _Best:
    """The first class with the largest total, by a balanced tree that keeps the classes in order."""
    width = max(1, (len(totals) - 1).bit_length())
    found = [_Best(total, [k >> place & 1 for place in range(width)], k) for k, total in enumerate(totals)]
    while len(found) > 1:
        pairs = [_better(netlist, found[i], found[i + 1]) for i in range(0, len(found) - 1, 2)]
        found = pairs + found[2 * len(pairs) :]
    return found[0]


def _better(netlist: Netlist, left: _Best, right: _Best) -> _Best:
    differs = [netlist.exclusive(a, b) for a, b in zip(left.total, right.total, strict=True)]
    at_least = TRUE
    for place, (a, b) in enumerate(zip(left.total, right.total, strict=True)):
        above = netlist.conjunction(a, b ^ 1)
        at_least = (
            netlist.disjunction(above, netlist.conjunction(differs[place] ^ 1, at_least))
            if place
            else netlist.disjunction(a, b ^ 1)
        )
    total = [netlist.exclusive(b, netlist.conjunction(at_least, x)) for b, x in zip(right.total, differs, strict=True)]
    index = [
        netlist.exclusive(b, netlist.conjunction(at_least, netlist.exclusive(a, b)))
        for a, b in zip(left.index, right.index, strict=True)
    ]
    return _Best(total, index, won=(at_least, left, right))
