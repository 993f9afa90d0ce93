"""A few gates around two nodes, with free leaves, and a prover for them: what is impossible here is so in the circuit.

    cut          the gates nearest to the nodes, highest first; random values of the leaves tell most pairs apart
    propagate    per gate, the rows of its truth table that are still possible fix what they agree on
    branch       on an operand of a gate whose value is set but not yet implied by its operands
    conflict     the clause "not all of these decisions" follows by unit propagation: one proof step each

It answers the thousands of small questions of a sweep in microseconds; larger ones go to a real solver. Like that
solver's, its steps are checked by ``prove.rup``. A node's gate is ``kinds[node]`` over the nodes ``reads[:, node]``.
"""
# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from typing import Final

import numpy as np

from gatefit.circuit.logic.cnf import DELETE
from gatefit.circuit.logic.words import gate_of_words
from gatefit.compiled import njit

EQUAL: Final = 1
DIFFERENT: Final = 0
OPEN: Final = -1


@njit(cache=True, inner=True, plain=True)
def _push(heap, size, key):
    """Put a key to the first ``size`` ones, the largest of which is in front."""
    at = size
    while at > 0 and heap[(at - 1) >> 1] < key:
        heap[at] = heap[(at - 1) >> 1]
        at = (at - 1) >> 1
    heap[at] = key


@njit(cache=True, inner=True, plain=True)
def _pop(heap, size):
    """Take the largest of the first ``size`` keys."""
    top, last = heap[0], heap[size - 1]
    at, below = 0, 1
    while below < size:
        if below + 1 < size and heap[below + 1] > heap[below]:
            below += 1
        if heap[below] <= last:
            break
        heap[at] = heap[below]
        at, below = below, 2 * below + 1
    heap[at] = last
    return top


@njit(cache=True, plain=True)
def cut_window(roots, limit, inputs, level, kinds, reads, stamp, visited, values, heap, inner, leaves):
    """Cut out at most ``limit`` gates below two roots, highest first, and try random patterns on the leaves.

    Writes the gates to ``inner`` (each before its operands) and the rest to ``leaves``. Returns how many there are of
    each, whether all leaves are circuit inputs, and a bit position at which the two roots differ, -1 if none does;
    the second root is complemented when ``roots[2]`` is one.
    """
    # By hand: numba takes half a second to compile the standard library's heap.
    size, gates, free, full = np.int64(0), np.int64(0), np.int64(0), True
    for k in range(2):
        root = roots[k]
        if visited[root] != stamp:
            visited[root] = stamp
            _push(heap, size, np.int64(level[root]) << 32 | np.int64(root))
            size += 1
    while size:
        node = np.int32(_pop(heap, size) & 0xFFFFFFFF)
        size -= 1
        if node > inputs and gates < limit:
            inner[gates] = node
            gates += 1
            for side in range(2):
                operand = reads[side, node]
                if visited[operand] != stamp:
                    visited[operand] = stamp
                    _push(heap, size, np.int64(level[operand]) << 32 | np.int64(operand))
                    size += 1
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


@njit(cache=True, inner=True, plain=True)
def _propagate(inner, kinds, reads, values, trail, size):
    """Fix what follows, gate by gate, until nothing does; returns (conflict, length of the trail)."""
    changed = True
    while changed:
        changed = False
        for i in range(inner.size - 1, -1, -1):
            node = inner[i]
            a, b = reads[0, node], reads[1, node]
            x, y, z, kind = values[a], values[b], values[node], kinds[node]
            rows = can_a = can_b = can_n = 0
            for row in range(4):
                p, q = row >> 1, row & 1
                r = kind >> (3 - row) & 1
                # -1, open, is the only value that is negative.
                if (x < 0 or x == p) and (y < 0 or y == q) and (z < 0 or z == r):
                    rows += 1
                    can_a |= 1 << p
                    can_b |= 1 << q
                    can_n |= 1 << r
            if rows == 0:
                return True, size
            before = size
            if x < 0 and can_a != 3:
                values[a] = can_a >> 1
                trail[size] = a
                size += 1
            if y < 0 and can_b != 3:
                values[b] = can_b >> 1
                trail[size] = b
                size += 1
            if z < 0 and can_n != 3:
                values[node] = can_n >> 1
                trail[size] = node
                size += 1
            if size > before:
                changed = True
    return False, size


@njit(cache=True, inner=True, plain=True)
def _unjustified(inner, kinds, reads, values):
    """An open operand of a gate whose value its operands do not imply yet; -1 if there is none."""
    for i in range(inner.size):
        node = inner[i]
        z, kind = values[node], kinds[node]
        if z < 0:
            continue
        a, b = reads[0, node], reads[1, node]
        x, y = values[a], values[b]
        for row in range(4):
            possible = (x < 0 or x == row >> 1) and (y < 0 or y == row & 1)
            if possible and kind >> (3 - row) & 1 != z:
                return a if x < 0 else b
    return -1


@njit(cache=True, inner=True, plain=True)
def _literal(node, value):
    """The DIMACS literal that says: node does not have this value."""
    return -node - 1 if value else node + 1


@njit(cache=True, inner=True, plain=True)
def _refute(node, value, other, other_value, inner, kinds, reads, values, trail, decisions, steps, at, limit):
    """Show that node = value and other = other_value is impossible; returns (answer, steps used, trail used).

    ``decisions`` are the node, whether it was flipped, and the trail's length before.
    """
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
            decisions[depth, 0], decisions[depth, 1], decisions[depth, 2] = branch, 0, size
            depth += 1
            values[branch], trail[size] = 0, branch
            conflict, size = _propagate(inner, kinds, reads, values, trail, size + 1)
        while depth and decisions[depth - 1, 1]:
            depth -= 1
        # Decisions that were flipped follow from the steps before: only the others are named.
        first = at
        steps[at] = _literal(node, value)
        at += 1
        if other:
            steps[at] = _literal(other, other_value)
            at += 1
        for i in range(depth):
            if not decisions[i, 1]:
                steps[at] = _literal(decisions[i, 0], np.int64(0))
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
        branch = decisions[depth - 1, 0]
        while size > decisions[depth - 1, 2]:
            size -= 1
            values[trail[size]] = -1
        decisions[depth - 1, 1] = 1
        values[branch], trail[size] = 1, branch
        size += 1
    return OPEN, at, size


@njit(cache=True, plain=True)
def decide_window(roots, inner, leaves, kinds, reads, values, trail, decisions, ones, steps, limit):
    """Whether two roots are equal (complements, if ``roots[2]`` is one) whatever the leaves are.

    ``values`` is -1 for every node but the constant, and is left so; ``decisions`` (gates + 1, 3) is scratch. If they
    are equal, ``steps`` holds the proof; if they are not, ``ones`` holds values of the leaves that show it. Returns the
    answer and the length of the proof.
    """
    node, other, inverted = np.int64(roots[0]), np.int64(roots[1]), np.int64(roots[2])
    at = np.int64(0)
    for value in range(2):
        other_value = 1 - value ^ inverted
        if other == 0 and other_value == 1:
            continue
        answer, at, size = _refute(
            node, value, other, other_value, inner, kinds, reads, values, trail, decisions, steps, at, limit
        )
        for i in range(leaves.size):
            ones[i] = values[leaves[i]] == 1
        for i in range(size):
            values[trail[i]] = -1
        if answer != EQUAL:
            return answer, 0
    return EQUAL, at
