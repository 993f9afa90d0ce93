"""A few gates around two nodes, with free leaves, and a prover for them: what is impossible here is so in the circuit.

    cut          the gates nearest to the nodes, highest first; random values of the leaves tell most pairs apart
    propagate    per gate, the rows of its truth table that are still possible fix what they agree on
    branch       on an operand of a gate whose value is set but not yet implied by its operands
    conflict     the clause "not all of these decisions" follows by unit propagation: one proof step each

It answers the thousands of small questions of a sweep in microseconds; larger ones go to a real solver. Like that
solver's, its steps are checked by ``prove.rup``. A node's gate is ``kinds[node]`` over the nodes ``reads[:, node]``.
"""
# mypy: disable-error-code="no-untyped-def, no-untyped-call"

import heapq
from typing import Final

import numpy as np

from gatefit.circuit.logic.cnf import DELETE
from gatefit.circuit.logic.words import gate_of_words
from gatefit.compiled import njit

EQUAL: Final = 1
DIFFERENT: Final = 0
OPEN: Final = -1


@njit(cache=True)
def cut_window(roots, limit, inputs, level, kinds, reads, stamp, visited, values, inner, leaves):
    """Cut out at most ``limit`` gates below two roots, highest first, and try random patterns on the leaves.

    Writes the gates to ``inner`` (each before its operands) and the rest to ``leaves``. Returns how many there are of
    each, whether all leaves are circuit inputs, and a bit position at which the two roots differ, -1 if none does;
    the second root is complemented when ``roots[2]`` is one.
    """
    heap = [np.int64(0)]
    heap.clear()
    gates, free, full = 0, 0, True
    for root in roots[:2]:
        if visited[root] != stamp:
            visited[root] = stamp
            heapq.heappush(heap, -(np.int64(level[root]) << 32 | np.int64(root)))
    while heap:
        node = np.int32(-heapq.heappop(heap) & 0xFFFFFFFF)
        if node > inputs and gates < limit:
            inner[gates] = node
            gates += 1
            for side in range(2):
                operand = reads[side, node]
                if visited[operand] != stamp:
                    visited[operand] = stamp
                    heapq.heappush(heap, -(np.int64(level[operand]) << 32 | np.int64(operand)))
        elif node:
            leaves[free] = node
            free += 1
            full &= node <= inputs
    state = np.uint64(stamp) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(1)
    words = values.shape[1]
    for i in range(free):
        for w in range(words):
            state ^= state << np.uint64(13)
            state ^= state >> np.uint64(7)
            state ^= state << np.uint64(17)
            values[leaves[i], w] = state
    for i in range(gates - 1, -1, -1):
        node = inner[i]
        kind = np.int64(kinds[node])
        a, b = reads[0, node], reads[1, node]
        for w in range(words):
            values[node, w] = gate_of_words(kind, values[a, w], values[b, w])
    flip = np.uint64(0) - np.uint64(roots[2])
    for w in range(words):
        difference = values[roots[0], w] ^ values[roots[1], w] ^ flip
        if difference:
            bit = 0
            while not difference >> np.uint64(bit) & np.uint64(1):
                bit += 1
            return gates, free, full, 64 * w + bit
    return gates, free, full, -1


@njit(cache=True, inner=True)
def _propagate(inner, kinds, reads, values, trail, size):
    """Fix what follows, gate by gate, until nothing does; returns (conflict, length of the trail)."""
    changed = True
    while changed:
        changed = False
        for i in range(inner.size - 1, -1, -1):
            node = inner[i]
            a, b = reads[0, node], reads[1, node]
            x, y, z = values[a], values[b], values[node]
            rows, can_a, can_b, can_n = 0, 0, 0, 0
            for row in range(4):
                p, q = row >> 1, row & 1
                r = kinds[node] >> (3 - row) & 1
                if x in (-1, p) and y in (-1, q) and z in (-1, r):
                    rows += 1
                    can_a |= 1 << p
                    can_b |= 1 << q
                    can_n |= 1 << r
            if rows == 0:
                return True, size
            for target, now, can in ((a, x, can_a), (b, y, can_b), (node, z, can_n)):
                if now == -1 and can != 3:
                    values[target] = can >> 1
                    trail[size] = target
                    size += 1
                    changed = True
    return False, size


@njit(cache=True, inner=True)
def _unjustified(inner, kinds, reads, values):
    """An open operand of a gate whose value its operands do not imply yet; -1 if there is none."""
    for node in inner:
        if values[node] == -1:
            continue
        a, b = reads[0, node], reads[1, node]
        for row in range(4):
            possible = values[a] in (-1, row >> 1) and values[b] in (-1, row & 1)
            if possible and kinds[node] >> (3 - row) & 1 != values[node]:
                return a if values[a] == -1 else b
    return -1


@njit(cache=True, inner=True)
def _literal(node, value):
    """The DIMACS literal that says: node does not have this value."""
    return -node - 1 if value else node + 1


@njit(cache=True, inner=True)
def _refute(node, value, other, other_value, inner, kinds, reads, values, trail, steps, at, limit):
    """Show that node = value and other = other_value is impossible; returns (answer, steps used, trail used)."""
    chosen = np.empty(inner.size + 1, np.int32)
    flipped = np.zeros(inner.size + 1, np.bool_)
    mark = np.empty(inner.size + 1, np.int64)
    values[node], trail[0], size = value, node, 1
    if other:
        values[other], trail[1], size = other_value, other, 2
    depth, start = 0, at
    for _ in range(limit):
        conflict, size = _propagate(inner, kinds, reads, values, trail, size)
        while not conflict:
            branch = _unjustified(inner, kinds, reads, values)
            if branch < 0:
                return DIFFERENT, at, size
            if depth == inner.size:
                return OPEN, at, size
            chosen[depth], flipped[depth], mark[depth] = branch, False, size
            depth += 1
            values[branch], trail[size] = 0, branch
            conflict, size = _propagate(inner, kinds, reads, values, trail, size + 1)
        while depth and flipped[depth - 1]:
            depth -= 1
        # Decisions that were flipped follow from the steps before: only the others are named.
        first = at
        steps[at] = _literal(node, value)
        at += 1
        if other:
            steps[at] = _literal(other, other_value)
            at += 1
        for i in range(depth):
            if not flipped[i]:
                steps[at] = _literal(chosen[i], np.int64(0))
                at += 1
        steps[at] = 0
        at += 1
        if depth == 0:
            for i in range(start, first):  # the steps on the way are not needed any more
                if i == start or steps[i - 1] == 0:
                    steps[at] = DELETE
                    at += 1
                steps[at] = steps[i]
                at += 1
            return EQUAL, at, size
        while size > mark[depth - 1]:
            size -= 1
            values[trail[size]] = -1
        flipped[depth - 1] = True
        values[chosen[depth - 1]], trail[size] = 1, chosen[depth - 1]
        size += 1
    return OPEN, at, size


@njit(cache=True)
def decide_window(roots, inner, leaves, kinds, reads, values, trail, ones, steps, limit):
    """Whether two roots are equal (complements, if ``roots[2]`` is one) whatever the leaves are.

    ``values`` is -1 for every node but the constant, and is left so. If they are equal, ``steps`` holds the proof; if
    they are not, ``ones`` holds values of the leaves that show it. Returns the answer and the length of the proof.
    """
    node, other, inverted = roots
    at = np.int64(0)
    for value in range(2):
        other_value = 1 - value ^ inverted
        if other == 0 and other_value == 1:
            continue
        answer, at, size = _refute(
            node, value, other, other_value, inner, kinds, reads, values, trail, steps, at, limit
        )
        for i in range(leaves.size):
            ones[i] = values[leaves[i]] == 1
        for i in range(size):
            values[trail[i]] = -1
        if answer != EQUAL:
            return answer, 0
    return EQUAL, at
