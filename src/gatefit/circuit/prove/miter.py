"""Two circuits over shared inputs, and what has to hold for their scores to be equal.

    nodes               the constant, the inputs, the gates of spec, then of impl, then adders where sums must be
                        compared bit by bit

Suppose every output bit is *claimed* to equal some literal. Then the difference of two group sums is a polynomial,

    score_spec - score_impl = d + Σ_n c_n x_n         (an inverted literal counts 1 - x)

and scores are equal by construction when every c_n and d are zero. What does not cancel is added up on both sides by
adders made of gates, and the sums' bits are claimed equal as well. ``equalities_cnf`` is unsatisfiable exactly when
all claims hold on every input: that formula is what a proof refutes.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Int32, Int64

from gatefit.circuit.ir import Circuit
from gatefit.circuit.logic.cnf import Cnf, gate_clauses
from gatefit.circuit.logic.graph import Graph
from gatefit.circuit.logic.literals import TRUE, absorb_inverters, dimacs
from gatefit.circuit.readout import Difference, FloatTerms, Readout, difference
from gatefit.gates import Gate


@dataclass(frozen=True, eq=False)
class Remainder:
    """``constant + Σ coefficients · nodes``, which must be zero on every input."""

    constant: int
    nodes: Int64[np.ndarray, " terms"]
    coefficients: Int64[np.ndarray, " terms"]


def join(spec: Circuit, impl: Circuit) -> tuple[Graph, Int32[np.ndarray, " outputs"]]:
    """Both circuits over the same inputs, and the nodes of spec's outputs followed by impl's."""

    def moved(nodes: Int32[np.ndarray, "..."]) -> Int32[np.ndarray, "..."]:
        return np.where(nodes < impl.inputs, nodes + 1, nodes + 1 + spec.gates.size).astype(np.int32)

    gates = np.concatenate([spec.gates, impl.gates])
    operands = np.concatenate([spec.operands + 1, moved(impl.operands)], axis=1).astype(np.int32)
    return Graph(spec.inputs, gates, operands), np.concatenate([spec.outputs + 1, moved(impl.outputs)]).astype(np.int32)


@dataclass(frozen=True, eq=False)
class Obligations:
    """Pairs of literals that must be equal on every input: outputs with what is claimed of them, and bits of sums."""

    graph: Graph
    claims: Int32[np.ndarray, "claims 2"]
    sums: Int32[np.ndarray, "bits 2"]

    @property
    def pairs(self) -> Int32[np.ndarray, "pairs 2"]:
        """All pairs of literals that are not the same literal twice."""
        pairs = np.concatenate([self.claims, self.sums])
        return np.asarray(pairs[pairs[:, 0] != pairs[:, 1]])


def obligations(spec: Circuit, impl: Circuit, claims: Int32[np.ndarray, " outputs"]) -> Obligations | None:
    """What must be equal for all scores to be equal on every input.

    ``claims`` gives for every output, spec's first, a literal of ``join(spec, impl)`` that it is said to equal; they
    need not be trusted, because they are among the pairs. None means that this readout cannot be settled this way.
    """
    graph, outputs = join(spec, impl)
    parts = remainders(spec.readout, impl.readout, claims)
    if parts is None:
        return None
    graph, sums = add_sums(graph, parts)
    return Obligations(graph, np.stack([2 * outputs, claims], axis=1).astype(np.int32), sums)


def remainders(spec: Readout, impl: Readout, claims: Int32[np.ndarray, " outputs"]) -> list[Remainder] | None:
    """What must be zero for the scores to be equal if the claims hold: nothing if they are equal by construction.

    None means that the two readouts cannot be compared as integers: linear scores whose sums may round and that add up
    different terms or add them in a different order, or affine values that are not the same function of a shifted sum.
    """
    if spec.kind != impl.kind:
        raise TypeError(f"cannot compare {type(spec).__name__} with {type(impl).__name__}")
    of_spec, of_impl = claims[: spec.outputs], claims[spec.outputs :]
    floats = spec.float_terms(), impl.float_terms()
    if floats[0] is not None and floats[1] is not None and _same_terms(floats[0], of_spec, floats[1], of_impl):
        return []
    values = _fixed_value(spec, of_spec), _fixed_value(impl, of_impl)
    if values[0] is not None and values[0] == values[1]:
        return []
    total = difference(spec, impl)
    return None if total is None else _reduced(total, claims)


def _reduced(total: Difference, claims: Int32[np.ndarray, " outputs"]) -> list[Remainder]:
    """What is left of the sums when every output is what it is claimed to be: w · ¬x = w - w · x."""
    claimed = claims[total.outputs].astype(np.int64)
    nodes, inverted = claimed >> 1, claimed & 1
    constants = total.constants.astype(np.int64).copy()
    np.add.at(constants, total.sums, total.weights * inverted)
    keys, inverse = np.unique(total.sums.astype(np.int64) << 32 | nodes, return_inverse=True)
    coefficients = np.zeros(keys.size, np.int64)
    np.add.at(coefficients, inverse, total.weights * (1 - 2 * inverted))
    coefficients[(keys & 0xFFFFFFFF) == 0] = 0  # the constant false adds nothing
    keys, coefficients = keys[coefficients != 0], coefficients[coefficients != 0]
    result = []
    for k in range(constants.size):
        own = keys >> 32 == k
        if constants[k] or own.any():
            result.append(Remainder(int(constants[k]), keys[own] & 0xFFFFFFFF, coefficients[own]))
    return result


def _fixed_value(readout: Readout, claims: Int32[np.ndarray, " outputs"]) -> float | None:
    """The value, if the readout gives one and it is the same on every input."""
    sums = readout.sums() if readout.gives_value else None
    if sums is None:
        return None
    left = _reduced(Difference(sums.offsets, sums.sums, sums.outputs, sums.weights), claims)
    if sums.scale != 0 and any(part.nodes.size for part in left):
        return None
    return float(readout.from_totals(np.array([[sum(part.constant for part in left)]]))[0, 0])


def _same_terms(
    spec: FloatTerms, of_spec: Int32[np.ndarray, " _"], impl: FloatTerms, of_impl: Int32[np.ndarray, " _"]
) -> bool:
    """Whether both readouts add the same numbers in the same order; terms that add zero are left out."""

    def terms(readout: FloatTerms, claims: Int32[np.ndarray, " _"]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        counts: Bool[np.ndarray, " _"] = (claims != 0) & readout.weights.any(axis=0)
        claims, weights = claims[counts], readout.weights[:, counts]
        bias = readout.bias.copy()
        while claims.size and claims[0] == TRUE:  # always one, and added first: part of the bias
            bias, claims, weights = bias + weights[:, 0], claims[1:], weights[:, 1:]
        return bias, claims, weights

    return all(np.array_equal(a, b) for a, b in zip(terms(spec, of_spec), terms(impl, of_impl), strict=True))


def add_sums(graph: Graph, parts: list[Remainder]) -> tuple[Graph, Int32[np.ndarray, "bits 2"]]:
    """Adders for the positive and the negative terms of each remainder, and the pairs of bits that must be equal."""
    adders = _Adders(graph)
    pairs: list[tuple[int, int]] = []
    for part in parts:
        sides = []
        for sign in (1, -1):
            weights = [(int(sign * c), 2 * int(n)) for n, c in zip(part.nodes, part.coefficients, strict=True)]
            sides.append(adders.total([(w, x) for w, x in [*weights, (sign * part.constant, TRUE)] if w > 0]))
        width = max(map(len, sides))
        left, right = (side + [0] * (width - len(side)) for side in sides)
        pairs.extend(zip(left, right, strict=True))
    operands = np.array(adders.operands, np.int32).reshape(-1, 2).T
    gates = np.concatenate([graph.gates, np.array(adders.gates, np.uint8)])
    larger = Graph(graph.inputs, gates, np.concatenate([graph.operands, operands], axis=1))
    return larger, np.array(pairs, np.int32).reshape(-1, 2)


class _Adders:
    """Builds carry-save adder trees out of two-input gates."""

    def __init__(self, graph: Graph) -> None:
        self.first = graph.nodes
        self.gates: list[int] = []
        self.operands: list[tuple[int, int]] = []

    def gate(self, gate: Gate, a: int, b: int) -> int:
        # Constant operands stay, and no gate is shared: certificates hold this very formula.
        kind, a, b = absorb_inverters(int(gate), a, b)
        self.gates.append(kind)
        self.operands.append((a >> 1, b >> 1))
        return 2 * (self.first + len(self.gates) - 1)

    def total(self, terms: list[tuple[int, int]]) -> list[int]:
        """The bits, lowest first, of the sum of weight · literal."""
        columns: list[list[int]] = [[]]
        for weight, literal in terms:
            columns.extend([] for _ in range(weight.bit_length() - len(columns)))
            for i in range(weight.bit_length()):
                if weight >> i & 1:
                    columns[i].append(literal)
        bits = []
        i = 0
        while i < len(columns):
            column = columns[i]
            if len(column) > 1 and i + 1 == len(columns):
                columns.append([])
            at = 0
            while len(column) - at > 1:
                three = column[at : at + 3]
                at += len(three)
                partial = self.gate(Gate.XOR, three[0], three[1])
                carry = self.gate(Gate.AND, three[0], three[1])
                if len(three) == 3:
                    rest = self.gate(Gate.AND, partial, three[2])
                    carry = self.gate(Gate.OR, carry, rest)
                    partial = self.gate(Gate.XOR, partial, three[2])
                column.append(partial)
                columns[i + 1].append(carry)
            bits.append(column[at] if column else 0)
            i += 1
        return bits


def equalities_cnf(graph: Graph, pairs: Int32[np.ndarray, "pairs 2"]) -> Cnf:
    """A formula with a model exactly when some input makes the two literals of some pair differ.

    Variable n + 1 is node n; variable nodes + 1 + i says that pair i differs. No pair may hold one literal twice.
    """
    results = np.arange(1 + graph.inputs, graph.nodes, dtype=np.int32) + 1
    gates = gate_clauses(graph.gates, graph.operands + 1, results)
    left, right = (dimacs(pairs[:, i]) for i in (0, 1))
    differ = graph.nodes + 1 + np.arange(len(pairs), dtype=np.int32)
    zero = np.zeros_like(differ)
    either = np.stack([-differ, left, right, zero, -differ, -left, -right, zero], axis=1).ravel()
    literals = [gates, [-1, 0], either, differ, [0]]
    return Cnf(graph.nodes + len(pairs), np.concatenate([np.asarray(x, np.int32) for x in literals]))
