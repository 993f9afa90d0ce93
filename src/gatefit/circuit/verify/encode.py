"""A problem's alternative as a formula: domain, gates and sums as clauses, the same every time.

    constants    features with one value are folded into the gates before anything is written
    two copies   share every gate that the second point cannot reach, because equal gates are hashed into one
    sums         output bits that cancel are gone; what is left is counted by a totalizer, never by adders, and in an
                 order in which those that read the same features are neighbours

Variables: 1 is false, then come the bits that the features' values are told apart by, the gates, and what counts. A
certificate holds this formula, and its checker makes it again from the circuit and the statement: the solver is not
trusted, this module is. It is tested against brute force, with every clause generator mutated.

A totalizer for "at most m of these" (Bailleux and Boufkhad) is a tree of unary counters:

    c_s true if the literals below weigh at least s:     a_i ∧ b_j -> c_(i + j)       and a sum beyond m is a conflict
"""
# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Final

import numpy as np
from jaxtyping import Bool, Int32, Int64, UInt64

from gatefit.circuit.logic.cnf import Cnf, gate_clauses
from gatefit.circuit.logic.graph import Graph, without_dead
from gatefit.circuit.logic.hashing import Network, empty_network, make
from gatefit.circuit.logic.literals import dimacs
from gatefit.circuit.verify.problem import Form, Problem
from gatefit.compiled import njit

MOST_LITERALS: Final = 2**24
"""Literals of a formula beyond which it is not written."""


_KEPT: Final = 64
"""Sets of values of one feature whose columns are kept."""


class TooLargeError(Exception):
    """A formula that would not fit."""


@dataclass(frozen=True, eq=False)
class Columns:
    """The bits of some patterns in terms of as few as tell them apart."""

    literals: Int64[np.ndarray, " bits"]
    """For each bit 0 (false), 1 (true), or 2 · (1 + column) + inverted."""
    values: Bool[np.ndarray, "patterns columns"]


def columns_of(patterns: Bool[np.ndarray, "patterns bits"]) -> Columns:
    """Constant bits as constants, equal and opposite ones as one column."""
    known: dict[bytes, int] = {}
    literals = np.empty(patterns.shape[1], np.int64)
    kept: list[np.ndarray] = []
    for bit, column in enumerate(patterns.T):
        if column.all() or not column.any():
            literals[bit] = int(column.any())
            continue
        literal = known.get(column.tobytes())
        if literal is None:
            literal = 2 * (1 + len(kept))
            known[column.tobytes()], known[(~column).tobytes()] = literal, literal ^ 1
            kept.append(column)
        literals[bit] = literal
    values = np.array(kept, bool).T if kept else np.zeros((len(patterns), 0), bool)
    return Columns(literals, values)


class Clauses:
    """Clauses in the making, and the variables that they use."""

    def __init__(self, variables: int) -> None:
        self.variables = variables
        self.parts: list[np.ndarray] = []
        self.size = 0

    def fresh(self, count: int = 1) -> int:
        """The first of some new variables."""
        self.variables += count
        return self.variables - count + 1

    def add(self, literals: "np.ndarray | list[int]") -> None:
        """Clauses that are flat already, each ended by 0."""
        part = np.asarray(literals, np.int32)
        self.parts.append(part)
        self.size += part.size
        if self.size > MOST_LITERALS:
            raise TooLargeError(f"the formula has more than {MOST_LITERALS:,} literals")

    def add_rows(self, *columns: "np.ndarray | int") -> None:
        """One clause for each row of the columns."""
        rows = np.stack(np.broadcast_arrays(*columns, np.int32(0)), axis=-1)
        self.add(rows.reshape(-1))

    def cnf(self) -> Cnf:
        """The formula."""
        return Cnf(self.variables, np.concatenate([np.empty(0, np.int32), *self.parts]).astype(np.int32))


def at_most(clauses: Clauses, literals: Int32[np.ndarray, " n"], weights: Int64[np.ndarray, " n"], most: int) -> None:
    """Σ of the weights (positive) of the literals (DIMACS) that are true is at most ``most``."""
    if most < 0:
        clauses.add([0])
        return
    if int(weights.sum()) <= most:
        return
    heavy = weights > most
    clauses.add_rows(-literals[heavy])
    literals, weights = literals[~heavy], weights[~heavy]
    # Each counter: (values that it can have, ascending; the variable "at least this" of each).
    queue = [(np.array([weight]), np.array([literal])) for literal, weight in zip(literals, weights, strict=True)]
    if int(weights.sum()) <= most:
        return
    even = bool(np.all(weights == weights[0]))
    while len(queue) > 1:
        merged = [_merge(clauses, a, b, most, even) for a, b in zip(queue[::2], queue[1::2], strict=False)]
        queue = merged + (queue[-1:] if len(queue) % 2 else [])


def _merge(
    clauses: Clauses, a: tuple[np.ndarray, np.ndarray], b: tuple[np.ndarray, np.ndarray], most: int, even: bool
) -> tuple[np.ndarray, np.ndarray]:
    """The counter of two counters: a_i ∧ b_j -> c_(i + j)."""
    (a_values, a_literals), (b_values, b_literals) = a, b
    if a_values.size * b_values.size > MOST_LITERALS:
        raise TooLargeError(f"sums of {a_values.size * b_values.size:,} different values would have to be counted")
    both = a_values[:, None] + b_values[None, :]
    fits = both <= most
    if even:  # all multiples of the weight up to the sum, or to what is allowed
        unit = int(a_values[0])
        values = unit * np.arange(1, min(int(both[-1, -1]), most) // unit + 1)
    else:
        values = np.unique(np.concatenate([a_values, b_values, both[fits]]))
    first = clauses.fresh(values.size)
    literals = first + np.arange(values.size)
    clauses.add_rows(-a_literals, literals[np.searchsorted(values, a_values)])
    clauses.add_rows(-b_literals, literals[np.searchsorted(values, b_values)])
    i, j = np.nonzero(fits)
    clauses.add_rows(-a_literals[i], -b_literals[j], literals[np.searchsorted(values, both[i, j])])
    if not even:  # with equal weights, what is at least s is at least all values below by itself
        clauses.add_rows(-literals[1:], literals[:-1])
    # Of the pairs that weigh too much the lightest say it.
    over = ~fits
    lightest = over & ~np.concatenate([np.zeros((len(both), 1), bool), over[:, :-1]], axis=1)
    i, j = np.nonzero(lightest)
    clauses.add_rows(-a_literals[i], -b_literals[j])
    return values, literals


@njit(cache=True)
def _specialise(net: Network, gates, operands, literals):
    """Add a circuit's gates over input ``literals``, which are continued by the literal of each gate."""
    first = literals.size - gates.size
    for i in range(gates.size):
        literals[first + i] = make(net, gates[i], literals[operands[0, i]], literals[operands[1, i]])


@njit(cache=True)
def _spread(first, operands, found):
    for i in range(operands.shape[1]):
        for w in range(found.shape[1]):
            found[first + i, w] = found[operands[0, i], w] | found[operands[1, i], w]


def _placed(literals: Int64[np.ndarray, " bits"], first: "np.ndarray | int") -> Int64[np.ndarray, " bits"]:
    """The literals of bits whose columns begin at node ``first``, those of each bit or of all."""
    return np.where(literals > 1, literals + 2 * (np.asarray(first, np.int64) - 1), literals)


class Encoding:
    """A problem's space and gates over variables; its forms become clauses one alternative at a time."""

    def __init__(self, problem: Problem) -> None:
        if problem.changes is not None and (problem.base is None or not problem.inside(problem.base)):
            raise ValueError("changes are counted from a point of the space")
        self.problem = problem
        self.columns: list[Columns] = []
        for feature, allowed in zip(problem.domain.features, problem.allowed, strict=True):
            # Kept with the feature: rows of a batch mostly allow the same values.
            known = feature.__dict__.setdefault("_columns", {})
            columns = known.get(allowed.tobytes())
            if columns is None:
                columns = columns_of(feature.patterns[allowed])
                if len(known) < _KEPT:
                    known[allowed.tobytes()] = columns
            self.columns.append(columns)
        self.widths = np.array([columns.values.shape[1] for columns in self.columns], np.int64)
        ends = 1 + np.cumsum(self.widths)  # behind node 0, which is false
        self.first: list[int] = (ends - self.widths).tolist()
        self.second = count = 1 + int(self.widths.sum())
        if problem.second is not None:
            count += self.columns[problem.second].values.shape[1]
        capacity = count + sum(int(model.circuit.gates.size) for model in problem.models)
        self.net = empty_network(count - 1, capacity)
        self.outputs: list[Int64[np.ndarray, " outputs"]] = []
        inputs = np.zeros(problem.domain.inputs, np.int64)
        own = np.concatenate([np.empty(0, np.int64), *(columns.literals for columns in self.columns)])
        firsts = np.repeat(self.first, [columns.literals.size for columns in self.columns])
        inputs[problem.domain.flat_inputs] = _placed(own, firsts)
        for number, model in enumerate(problem.models):
            if number and problem.second is not None:
                own = self.columns[problem.second].literals
                inputs[problem.domain.features[problem.second].inputs] = _placed(own, self.second)
            circuit = model.circuit
            literals = np.empty(circuit.nodes, np.int64)
            literals[: circuit.inputs] = inputs
            _specialise(self.net, circuit.gates, circuit.operands, literals)
            self.outputs.append(literals[circuit.outputs])
        used = int(self.net.used[0])
        kept = slice(self.net.first, used)
        self.graph = Graph(count - 1, self.net.gates[kept], self.net.operands[:, kept])

    def terms(self, form: Form) -> tuple[Int64[np.ndarray, " terms"], Int64[np.ndarray, " terms"], int]:
        """The form as Σ weights · literals >= need: nodes once, weights positive, constants in ``need``."""
        weights = np.zeros(self.graph.nodes, np.int64)
        constant, start = form.constant, 0
        for model, literals in zip(self.problem.models, self.outputs, strict=True):
            own = form.coefficients[start : start + model.classes]
            start += model.classes
            constant += int(own @ model.sums.offsets)
            of_output = own @ model.weights
            inverted = literals & 1 == 1
            constant += int(of_output[inverted].sum())  # w · (1 - x) = w - w · x
            np.add.at(weights, literals >> 1, np.where(inverted, -of_output, of_output))
        weights[0] = 0
        nodes = np.flatnonzero(weights)
        own = weights[nodes]
        # w · x = w + |w| · (1 - x) where w is negative.
        return 2 * nodes + (own < 0), np.abs(own), -constant - int(own[own < 0].sum())

    @cached_property
    def supports(self) -> UInt64[np.ndarray, "nodes words"]:
        """For every node a bit for each feature that it can depend on."""
        features = len(self.columns)
        found = np.zeros((self.graph.nodes, -(-features // 64)), np.uint64)
        owner = np.repeat(np.arange(features), self.widths)
        found[1 + np.arange(owner.size), owner // 64] = np.uint64(1) << (owner % 64).astype(np.uint64)
        second = self.problem.second
        if second is not None:
            found[self.second : 1 + self.graph.inputs, second // 64] |= np.uint64(1) << np.uint64(second % 64)
        _spread(1 + self.graph.inputs, self.graph.operands, found)
        return found

    def reads(self, nodes: Int64[np.ndarray, " some"]) -> Bool[np.ndarray, "some features"]:
        """Which features some nodes can depend on."""
        words = self.supports[nodes].astype("<u8").view(np.uint8)
        return np.unpackbits(words, axis=1, bitorder="little", count=len(self.columns)).astype(bool)

    def neighbours(self, literals: Int64[np.ndarray, " terms"]) -> Int64[np.ndarray, " terms"]:
        """An order of literals in which those that read the same features are next to each other.

        Any order counts the same. In this one a counter of the tree says something about a few features, and a
        refutation is ten times shorter than with the gates in the order in which they were made.
        """
        reads = self.reads(literals >> 1)
        often = np.argsort(reads.sum(axis=0), kind="stable")
        return np.lexsort([np.arange(literals.size), *(~reads[:, feature] for feature in often)])

    def formula(self, forms: tuple[Form, ...]) -> Cnf:
        """Satisfiable exactly if all of the forms hold together at some point of the space."""
        terms = [self.terms(form) for form in forms]
        nodes = np.unique(np.concatenate([np.empty(0, np.int64), *(literals >> 1 for literals, _, _ in terms)]))
        live, outputs = without_dead(self.graph, nodes.astype(np.int32))
        place = dict(zip(nodes.tolist(), outputs.tolist(), strict=True))
        clauses = Clauses(live.nodes)
        clauses.add([-1, 0])
        self.domain_clauses(clauses)
        results = np.arange(live.inputs + 1, live.nodes, dtype=np.int32) + np.int32(1)
        clauses.add(gate_clauses(live.gates, live.operands + np.int32(1), results))
        for literals, weights, need in terms:
            moved = np.array([2 * place[n >> 1] + (n & 1) for n in literals.tolist()], np.int64)
            order = self.neighbours(literals)
            # At least ``need`` of the weight is true: at most the rest of it is false.
            at_most(clauses, -dimacs(moved)[order], weights[order], int(weights.sum()) - need)
        return clauses.cnf()

    def domain_clauses(self, clauses: Clauses) -> None:
        """The variables of features are a point of the space."""
        problem = self.problem
        for i, columns in enumerate(self.columns):
            patterns_clauses(clauses, columns.values, self.first[i] + 1)
        if problem.second is not None:
            values = self.columns[problem.second].values
            patterns_clauses(clauses, values, self.second + 1)
            if problem.rising:  # thresholds that the first point exceeds are exceeded by the second
                one = self.first[problem.second] + 1 + np.arange(values.shape[1])
                clauses.add_rows(-one, one + self.second - self.first[problem.second])
        if problem.changes is not None and problem.base is not None:
            differs = [self._differs(clauses, i) for i in problem.free.tolist()]
            literals = np.array(differs, np.int32)
            at_most(clauses, literals, np.ones(literals.size, np.int64), problem.changes)

    def _differs(self, clauses: Clauses, i: int) -> int:
        """A literal that is true where feature ``i`` is not as at the base."""
        assert self.problem.base is not None
        values, first = self.columns[i].values, self.first[i] + 1
        variables = first + np.arange(values.shape[1])
        away = np.where(values[self.problem.base_places[i]], -variables, variables)
        if away.size == 1:
            return int(away[0])
        literal = clauses.fresh()
        clauses.add_rows(-away, literal)
        return literal

    def point(self, model: list[int]) -> tuple[Int64[np.ndarray, " features"], int | None]:
        """The point of a satisfying assignment, and the second point's own value."""
        true = np.zeros(len(model) + 2, bool)
        true[1 : len(model) + 1] = np.array(model) > 0
        problem = self.problem
        point = np.empty(len(self.columns), np.int64)
        for i in range(len(self.columns)):
            point[i] = self._value(true, i, self.first[i])
        other = None if problem.second is None else self._value(true, problem.second, self.second)
        return point, other

    def _value(self, true: Bool[np.ndarray, " variables"], i: int, first: int) -> int:
        values = self.columns[i].values
        own = true[first + 1 : first + 1 + values.shape[1]]
        return int(self.problem.allowed[i][np.flatnonzero((values == own).all(axis=1))[0]])


def patterns_clauses(clauses: Clauses, values: Bool[np.ndarray, "patterns columns"], first: int) -> None:
    """The columns, variables from ``first``, are one of the patterns.

    Patterns differ, and so do columns: none is constant, none another's inverse (``columns_of``). So columns that are
    nested tell one pattern more apart than there are columns, and nothing more has to be said than that they are.
    """
    patterns, columns = values.shape
    variables = first + np.arange(columns)
    if columns < 63 and patterns == 2**columns:
        return
    counts = values.sum(axis=0)
    order = np.argsort(-counts, kind="stable")
    ordered = values[:, order]
    if not np.any(ordered[:, 1:] & ~ordered[:, :-1]):
        for a, b in pairwise(variables[order].tolist()):  # a chain: each only where the one before is
            clauses.add([-b, a, 0])
        return
    if not np.any(values.sum(axis=1) > 1):
        i, j = np.triu_indices(columns, 1)
        clauses.add_rows(-variables[i], -variables[j])
        if patterns == columns:
            clauses.add([*variables.tolist(), 0])
        return
    alone = np.flatnonzero((counts == 1) & (values.T @ values.sum(axis=1) == 1))
    if alone.size == 1:
        rest = np.delete(np.arange(columns), alone[0])
        chain = rest[np.argsort(-counts[rest], kind="stable")]
        inner = values[:, chain]
        if not np.any(inner[:, 1:] & ~inner[:, :-1]):
            for a, b in pairwise(variables[chain].tolist()):
                clauses.add([-b, a, 0])
            clauses.add([-int(variables[alone[0]]), -int(variables[chain[0]]), 0])  # missing excludes the rest
            return
    # Anything else: one of the patterns, each of which says all of its bits.
    chosen = clauses.fresh(patterns)
    clauses.add([*range(chosen, chosen + patterns), 0])
    row, column = np.nonzero(np.ones_like(values))
    clauses.add_rows(-(chosen + row), np.where(values[row, column], variables[column], -variables[column]))
