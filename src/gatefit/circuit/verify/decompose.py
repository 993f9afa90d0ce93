"""At most three changes, exactly, by what each output does on the features that it reads.

An output reads few features. On all sets S of at most k moves of its own features (a move gives one feature another
value) it is tabulated; its Moebius coefficients over these sets, summed over all outputs,

    total(base + S) = total(base) + Σ_(T ⊆ S) c(T),       c(T) = Σ_(U ⊆ T) (-1)^(|T| - |U|) y(base + U)

give every total within k changes as a sparse polynomial: c(T) is zero unless some output reads all features of T. Then
the largest value of a form is found among pairs and triples of moves, of which most are cut off by bounds.

``decompose`` is compiled; ``decompose_reference`` follows the definition in plain numpy, shares no kernel with it, and
is what certificates are checked with.
"""
# mypy: disable-error-code="no-untyped-def, no-untyped-call"

import math
from itertools import combinations
from typing import Final

import numpy as np

from gatefit.circuit.logic.graph import Graph, without_dead
from gatefit.circuit.logic.words import gate_of_words, packed, simulate_words, unpacked
from gatefit.circuit.prove.questions import Effort
from gatefit.circuit.verify.encode import Encoding
from gatefit.circuit.verify.exhaust import Found
from gatefit.circuit.verify.problem import Form, Problem
from gatefit.circuit.verify.supports import values_at_base
from gatefit.compiled import njit

MOST_CHANGES: Final = 3
MOST_MOVES: Final = 4096
MOST_SETS: Final = 2**26
"""Sets of moves that are tabulated, over all outputs; and the square of the moves times the totals, in memory."""
_NEVER: Final = -(2**30)
"""Added where two moves are of one feature: no such set counts."""


class Tables:
    """The moves from a problem's base, and the outputs with what they read."""

    def __init__(self, problem: Problem, encoding: Encoding) -> None:
        assert problem.base is not None
        assert problem.changes is not None
        self.problem, self.encoding, self.graph = problem, encoding, encoding.graph
        self.changes = min(problem.changes, problem.free.size)
        self.base_values = values_at_base(encoding)
        literals = encoding.outputs[0]
        # Outputs that are one node count together; constants are part of the totals at the base.
        nodes, which = np.unique(literals >> 1, return_inverse=True)
        weights = np.zeros((nodes.size, problem.models[0].classes), np.int64)
        signed = np.where(literals & 1, -1, 1)[:, None] * problem.models[0].weights.T
        np.add.at(weights, which, signed)
        read = (nodes > 0) & weights.any(axis=1)
        self.nodes, self.weights = nodes[read], weights[read]
        self.reads = encoding.reads(self.nodes)
        feature, value, flips = [], [], []
        for i in problem.free.tolist():
            columns, allowed = encoding.columns[i].values, problem.allowed[i]
            own = columns[problem.base_places[i]]
            for number, row in zip(allowed.tolist(), columns, strict=True):
                if number != problem.base[i]:
                    feature.append(i)
                    value.append(number)
                    flips.append(encoding.first[i] + np.flatnonzero(row != own))
        self.feature, self.value = np.array(feature, np.int64), np.array(value, np.int64)
        self.starts = np.cumsum([0, *(len(f) for f in flips)]).astype(np.int64)
        self.flips = np.concatenate([np.empty(0, np.int64), *flips]).astype(np.int64)
        own = self.reads[:, self.feature]
        self.own_starts = np.cumsum([0, *own.sum(axis=1)]).astype(np.int64)
        self.own = np.nonzero(own)[1].astype(np.int64)

    @property
    def moves(self) -> int:
        """How many there are."""
        return int(self.feature.size)

    def sets(self) -> int:
        """How many sets of moves would be tabulated."""
        sizes = np.diff(self.own_starts).tolist()
        return sum(math.comb(n, j) for n in sizes for j in range(1, self.changes + 1))

    def found(self, alternative: int, moves: list[int]) -> Found:
        """The point that some moves lead to."""
        assert self.problem.base is not None
        point = self.problem.base.copy()
        point[self.feature[moves]] = self.value[moves]
        return Found(alternative, point)


def serves(problem: Problem) -> bool:
    """Whether the problem is of the kind that is decomposed: one circuit, at most three changes, a form each."""
    return (
        problem.base is not None
        and problem.changes is not None
        and problem.changes <= MOST_CHANGES
        and problem.second is None
        and len(problem.models) == 1
        and all(len(alternative.forms) == 1 for alternative in problem.alternatives)
        and problem.base_places.min(initial=0) >= 0
    )


def fits(problem: Problem, tables: Tables) -> bool:
    """Whether the tables are small enough."""
    classes = problem.models[0].classes
    return tables.moves <= MOST_MOVES and tables.sets() <= MOST_SETS and classes * tables.moves**2 <= MOST_SETS


def decompose(tables: Tables, alternatives: list[int], effort: Effort | None = None) -> Found | bool | None:
    """The first point that satisfies one of the alternatives; None if there is none; False if time ran out."""
    problem = tables.problem
    assert problem.totals is not None
    classes, moves = problem.models[0].classes, tables.moves
    singles = np.zeros((classes, moves), np.int64)
    pairs = np.zeros((classes, moves, moves), np.int32)
    triples = _tabulate(
        tables.graph.inputs + 1, tables.graph.gates, tables.graph.operands, tables.base_values, tables.nodes,
        tables.weights, tables.own_starts, tables.own, tables.feature, tables.starts, tables.flips, tables.changes,
        singles, pairs,
    )  # fmt: skip
    keys, of_class, values = triples
    order = np.argsort(keys, kind="stable")
    keys, of_class, values = keys[order], of_class[order], values[order]
    begins = np.flatnonzero(np.append(True, keys[1:] != keys[:-1])) if keys.size else np.empty(0, np.int64)
    same = tables.feature[:, None] == tables.feature[None, :]
    for number in alternatives:
        if effort is not None and effort.late:
            return False
        form = problem.alternatives[number].forms[0]
        constant = int(form.coefficients @ problem.totals) + form.constant
        ones = form.coefficients @ singles
        twos = np.zeros((moves, moves), np.int64)
        for k in np.flatnonzero(form.coefficients):
            twos += form.coefficients[k] * pairs[k]
        twos[same] = _NEVER
        own = np.add.reduceat(form.coefficients[of_class] * values, begins) if keys.size else values
        chosen = _largest(constant, ones, twos, keys[begins], own, tables.changes)
        if chosen[0] != -2:
            return tables.found(number, [move for move in chosen.tolist() if move >= 0])
    return None


@njit(cache=True)
def _cone(node, first, operands, marked, found):
    """The gates below a node in topological order, written into ``found``; returns how many."""
    count, at = 0, 0
    if node >= first:
        found[0] = node
        marked[node] = True
        count = 1
    while at < count:
        for side in range(2):
            below = operands[side, found[at] - first]
            if below >= first and not marked[below]:
                marked[below] = True
                found[count] = below
                count += 1
        at += 1
    for i in range(count):
        marked[found[i]] = False
    found[:count].sort()
    return count


@njit(cache=True)
def _evaluate(node, first, gates, operands, cone, count, words):
    for i in range(count):
        gate = cone[i] - first
        words[cone[i]] = gate_of_words(np.int64(gates[gate]), words[operands[0, gate]], words[operands[1, gate]])
    return words[node]


@njit(cache=True)
def _flip(move, mask, starts, flips, words):
    for f in range(starts[move], starts[move + 1]):
        words[flips[f]] ^= mask


@njit(cache=True)
def _tabulate(
    first, gates, operands, base, nodes, weights, own_starts, own, feature, starts, flips, changes, singles, pairs
):
    """Add coefficients of all outputs to ``singles`` and ``pairs``; returns those of triples: keys, totals, values."""
    every = ~np.uint64(0)
    words = np.where(base, every, np.uint64(0))
    marked = np.zeros(base.size, np.bool_)
    cone = np.empty(base.size, np.int64)
    moves, classes = feature.size, weights.shape[1]
    room = 1024
    keys, of_class, values = np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room, np.int64)
    used = 0
    largest = 0
    for o in range(nodes.size):
        largest = max(largest, own_starts[o + 1] - own_starts[o])
    y1 = np.zeros(largest, np.int64)
    y2 = np.zeros((largest, largest), np.int64)
    for o in range(nodes.size):
        node = nodes[o]
        count = _cone(node, first, operands, marked, cone)
        mine = own[own_starts[o] : own_starts[o + 1]]
        n = mine.size
        y0 = np.int64(base[node])
        for level in range(changes):
            # Sets of level + 1 moves: the last one runs over the bits of a word.
            for a in range(n if level else 1):
                if level:
                    _flip(mine[a], every, starts, flips, words)
                for b in range(a + 1 if level == 2 else 0, n if level == 2 else 1):
                    if level == 2:
                        if feature[mine[b]] == feature[mine[a]]:
                            continue
                        _flip(mine[b], every, starts, flips, words)
                    begin = 0 if level == 0 else (a + 1 if level == 1 else b + 1)
                    while begin < n:
                        end = min(n, begin + 64)
                        for c in range(begin, end):
                            _flip(mine[c], np.uint64(1) << np.uint64(c - begin), starts, flips, words)
                        word = _evaluate(node, first, gates, operands, cone, count, words)
                        for c in range(begin, end):
                            _flip(mine[c], np.uint64(1) << np.uint64(c - begin), starts, flips, words)
                            y = np.int64(word >> np.uint64(c - begin) & np.uint64(1))
                            if level == 0:
                                y1[c] = y
                                if y != y0:
                                    for k in range(classes):
                                        singles[k, mine[c]] += weights[o, k] * (y - y0)
                                continue
                            if feature[mine[c]] == feature[mine[a]]:
                                continue
                            if level == 1:
                                y2[a, c] = y
                                coefficient = y - y1[a] - y1[c] + y0
                                if coefficient:
                                    for k in range(classes):
                                        pairs[k, mine[a], mine[c]] += weights[o, k] * coefficient
                                        pairs[k, mine[c], mine[a]] += weights[o, k] * coefficient
                                continue
                            if feature[mine[c]] == feature[mine[b]]:
                                continue
                            coefficient = y - y2[a, b] - y2[a, c] - y2[b, c] + y1[a] + y1[b] + y1[c] - y0
                            if coefficient:
                                for k in range(classes):
                                    if weights[o, k]:
                                        if used == room:
                                            room *= 2
                                            keys, of_class, values = _grown(keys), _grown(of_class), _grown(values)
                                        keys[used] = (mine[a] * moves + mine[b]) * moves + mine[c]
                                        of_class[used], values[used] = k, weights[o, k] * coefficient
                                        used += 1
                        begin = end
                    if level == 2:
                        _flip(mine[b], every, starts, flips, words)
                if level:
                    _flip(mine[a], every, starts, flips, words)
        # The columns are as at the base again; so are the gates above them.
        for i in range(count):
            words[cone[i]] = every if base[cone[i]] else np.uint64(0)
    return keys[:used].copy(), of_class[:used].copy(), values[:used].copy()


@njit(cache=True)
def _grown(array):
    larger = np.empty(2 * array.size, array.dtype)
    larger[: array.size] = array
    return larger


@njit(cache=True)
def _largest(constant, ones, twos, keys, values, changes):
    """Up to three moves that make the form at least 0, with -1 for none; (-2, …) if no moves do."""
    chosen = np.full(3, -1, np.int64)
    moves = ones.size
    if constant >= 0:
        return chosen
    for a in range(moves if changes >= 1 else 0):
        if constant + ones[a] >= 0:
            chosen[0] = a
            return chosen
    for a in range(moves if changes >= 2 else 0):
        for b in range(a + 1, moves):
            if constant + ones[a] + ones[b] + twos[a, b] >= 0:
                chosen[0], chosen[1] = a, b
                return chosen
    if changes >= 3:
        for i in range(keys.size):  # triples with a coefficient of their own
            c = keys[i] % moves
            b = keys[i] // moves % moves
            a = keys[i] // moves // moves
            inner = ones[a] + ones[b] + ones[c] + twos[a, b] + twos[a, c] + twos[b, c]
            if constant + inner + values[i] >= 0:
                chosen[0], chosen[1], chosen[2] = a, b, c
                return chosen
        tops = np.empty(moves, np.int64)  # the most that a pair with this and a later move adds
        for b in range(moves):
            top = np.int64(-(2**40))
            for c in range(b + 1, moves):
                top = max(top, twos[b, c])
            tops[b] = top
        given = np.empty(moves, np.int64)
        later = np.empty(moves + 1, np.int64)
        for a in range(moves):
            later[moves] = -(2**40)
            for c in range(moves - 1, a, -1):
                given[c] = ones[c] + twos[a, c]
                later[c] = max(later[c + 1], given[c])
            for b in range(a + 1, moves):
                start = constant + ones[a] + given[b]
                if start + later[b + 1] + tops[b] < 0:
                    continue
                for c in range(b + 1, moves):
                    if start + given[c] + twos[b, c] >= 0:
                        key = (a * moves + b) * moves + c
                        at = np.searchsorted(keys, key)
                        if at < keys.size and keys[at] == key:
                            continue  # looked at above, with its own coefficient
                        chosen[0], chosen[1], chosen[2] = a, b, c
                        return chosen
    chosen[0] = -2
    return chosen


def decompose_reference(tables: Tables, alternatives: list[int]) -> Found | None:
    """The same by the definition: every set of moves of each output, one by one; then every set of all moves."""
    problem = tables.problem
    assert problem.totals is not None
    coefficients: dict[tuple[int, ...], np.ndarray] = {}
    zero = np.zeros(tables.weights.shape[1], np.int64)
    for o, node in enumerate(tables.nodes.tolist()):
        own = tables.own[tables.own_starts[o] : tables.own_starts[o + 1]].tolist()
        sets = [s for j in range(tables.changes + 1) for s in combinations(own, j) if _distinct(tables, s)]
        value = dict(zip(sets, _outputs(tables, node, sets), strict=True))
        for s in sets[1:]:
            below = [u for j in range(len(s) + 1) for u in combinations(s, j)]
            c = sum((-1) ** (len(s) - len(u)) * value[u] for u in below)
            if c:
                coefficients[s] = coefficients.get(s, zero) + c * tables.weights[o]
    same = tables.feature[:, None] == tables.feature[None, :]
    for number in alternatives:
        form = problem.alternatives[number].forms[0]
        found = _search_reference(tables, form, coefficients, same)
        if found is not None:
            return tables.found(number, found)
    return None


def _distinct(tables: Tables, moves: tuple[int, ...]) -> bool:
    return len({int(tables.feature[m]) for m in moves}) == len(moves)


def _outputs(tables: Tables, node: int, sets: list[tuple[int, ...]]) -> list[int]:
    """One output at the base with each of some sets of moves."""
    graph, output = without_dead(tables.graph, np.array([node], np.int32))
    patterns = np.repeat(tables.base_values[None, 1 : 1 + graph.inputs], len(sets), axis=0)
    for row, moves in enumerate(sets):
        for move in moves:
            patterns[row, tables.flips[tables.starts[move] : tables.starts[move + 1]] - 1] ^= True
    read = Graph(graph.inputs, graph.gates, graph.operands)
    values: list[int] = unpacked(simulate_words(read, packed(patterns))[output])[: len(sets), 0].astype(int).tolist()
    return values


def _search_reference(
    tables: Tables, form: Form, coefficients: dict[tuple[int, ...], np.ndarray], same: np.ndarray
) -> list[int] | None:
    moves = tables.moves
    assert tables.problem.totals is not None
    constant = int(form.coefficients @ tables.problem.totals) + form.constant
    ones, twos = np.zeros(moves, np.int64), np.zeros((moves, moves), np.int64)
    threes: dict[int, list[tuple[int, int, int]]] = {}
    for s, c in coefficients.items():
        value = int(form.coefficients @ c)
        if len(s) == 1:
            ones[s[0]] += value
        elif len(s) == 2:
            twos[s[0], s[1]] += value
            twos[s[1], s[0]] += value
        else:
            threes.setdefault(s[0], []).append((s[1], s[2], value))
    if constant >= 0:
        return []
    two = np.where(same, _NEVER, twos) + ones[:, None] + ones[None, :]
    for values, changes in ((constant + ones, 1), (constant + two, 2)):
        if tables.changes >= changes and moves and values.max() >= 0:
            return [int(i) for i in np.argwhere(values >= 0)[0]]
    if tables.changes >= 3:
        plain = np.where(same, _NEVER, twos)
        best = int(two.max(initial=_NEVER))
        for a in range(moves - 2):
            later = plain[a, a + 1 :]
            more = max((value for _, _, value in threes.get(a, ())), default=0)
            if constant + ones[a] + best + 2 * int(later.max()) + max(0, more) < 0:
                continue  # not even the best pair with the best of what this move adds to each of it
            values = constant + ones[a] + two[a + 1 :, a + 1 :] + later[:, None] + later[None, :]
            for one, other, value in threes.get(a, ()):
                values[one - a - 1, other - a - 1] += value
            if values.max() >= 0:
                values[np.tril_indices(len(values))] = _NEVER  # each pair once, where its own coefficient is
                if values.max() >= 0:
                    return [a, *(a + 1 + int(i) for i in np.argwhere(values >= 0)[0])]
    return None
