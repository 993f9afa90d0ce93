"""Kernels of the sweep: bit-parallel simulation, structural hashing up to complement, and cones cut to size.

    simulate    64 patterns a word, on every node
    reduce      g(a, b) over representatives  ->  a constant, a literal, a known node, or a new one
    window      the gates nearest to two nodes, with free leaves: what is unsatisfiable here is so in the circuit

Literals are 2 · node + inverted; node 0 is false. Nothing here decides a verdict: merges are written down as proof
steps and checked by ``circuit.rup``.
"""
# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False, disallow-incomplete-defs=False

import heapq
from typing import Final

import numpy as np

from gatefit.circuit.cnf import DELETE
from gatefit.compiled import njit
from gatefit.gates import DEPENDS_ON_A, DEPENDS_ON_B, NEGATED_A, NEGATED_B, SWAPPED, Gate

XOR: Final = int(Gate.XOR)
_MULTIPLIER: Final = np.uint64(0x9E3779B97F4A7C15)
_EMPTY: Final = np.int64(-1)


@njit(cache=True)
def simulate_words(inputs, gates, operands, values):
    """Fill ``values[node, word]`` for all gates; rows of the constant and the inputs are given."""
    for i in range(gates.size):
        # The gate as a polynomial over GF(2): its Reed-Muller coefficients, spread over a word.
        table = gates[i]
        constant = np.uint64(0) - np.uint64(table >> 3 & 1)
        of_b = constant ^ (np.uint64(0) - np.uint64(table >> 2 & 1))
        of_a = constant ^ (np.uint64(0) - np.uint64(table >> 1 & 1))
        of_ab = constant ^ of_a ^ of_b ^ (np.uint64(0) - np.uint64(table & 1))
        a, b, row = operands[0, i], operands[1, i], 1 + inputs + i
        for w in range(values.shape[1]):
            x, y = values[a, w], values[b, w]
            values[row, w] = constant ^ (of_a & x) ^ (of_b & y) ^ (of_ab & x & y)


@njit(cache=True)
def update_signatures(values, phases, signatures):
    """Mix the words of every node, complemented where its phase is one, into its signature."""
    for node in range(values.shape[0]):
        mask = np.uint64(0) - np.uint64(phases[node])
        signature = signatures[node]
        for w in range(values.shape[1]):
            signature = (signature ^ (values[node, w] ^ mask)) * _MULTIPLIER
            signature ^= signature >> np.uint64(31)
        signatures[node] = signature


@njit(cache=True)
def levels_of(inputs, gates, operands, roots):
    """The level of every gate that some root depends on, 0 for the constant and the inputs, -1 for other gates."""
    first = 1 + inputs
    level = np.zeros(first + gates.size, np.int32)
    level[first:] = -1
    for root in roots:
        level[root] = 0
    for i in range(gates.size - 1, -1, -1):
        if level[first + i] == 0:
            level[operands[0, i]] = 0
            level[operands[1, i]] = 0
    for i in range(gates.size):
        if level[first + i] == 0:
            level[first + i] = 1 + max(level[operands[0, i]], level[operands[1, i]])
    return level


@njit(cache=True)
def write_equality(steps, at, node, literal, helper):
    """Write the steps for node = literal; ``helper`` is a node to split on first, -1 for none."""
    variable, other = node + 1, (literal >> 1) + 1
    for sign in (-1, 1):
        # The clause (±node or ∓literal); a constant literal leaves a unit clause, or nothing to say.
        right = -sign * (-other if literal & 1 else other)
        if other == 1:
            if right == -1:
                continue
            right = 0
        for split in range(3 if helper >= 0 else 1):
            if split == 2:
                steps[at] = DELETE
                at += 1
            steps[at] = sign * variable
            at += 1
            if right:
                steps[at] = right
                at += 1
            if helper >= 0 and split != 1:
                steps[at] = helper + 1
                at += 1
            steps[at] = 0
            at += 1
    return at


@njit(cache=True)
def reduce_nodes(nodes, inputs, gates, operands, literals, kinds, reads, keys, found, steps):
    """Give every node its literal: a constant, another representative up to complement, or itself.

    ``kinds`` and ``reads`` receive the gate over representatives of a node that stays; ``keys`` and ``found`` are the
    hash table. Returns the length of ``steps`` used.
    """
    at = 0
    for node in nodes:
        own = node - inputs - 1
        left, right = literals[operands[0, own]], literals[operands[1, own]]
        kind = gates[own]
        kind = NEGATED_A[kind] if left & 1 else kind
        kind = NEGATED_B[kind] if right & 1 else kind
        a, b = left >> 1, right >> 1
        splits = a != 0 and b != 0
        if a == 0:
            kind = (kind >> 2) * 0b0101
        if b == 0:
            kind = (kind >> 3) * 0b1100 + (kind >> 1 & 1) * 0b0011
        splits &= kind in (XOR, 15 - XOR)
        if a == b:
            kind = (kind >> 3) * 0b1100 + (kind & 1) * 0b0011
        if not (DEPENDS_ON_A[kind] or DEPENDS_ON_B[kind]):
            literal = np.int32(kind & 1)
        elif not DEPENDS_ON_B[kind]:
            literal = np.int32(2 * a + (kind >> 3))
        elif not DEPENDS_ON_A[kind]:
            literal = np.int32(2 * b + (kind >> 3))
        else:
            if a > b:
                a, b, kind = b, a, SWAPPED[kind]
            phase = kind >> 3
            normal = kind ^ 15 if phase else kind
            key = (np.int64(a) << 33) | (np.int64(b) << 3) | np.int64(normal)
            slot = np.int64((np.uint64(key) * _MULTIPLIER) >> np.uint64(20)) & (keys.size - 1)
            while keys[slot] not in (_EMPTY, key):
                slot = (slot + 1) & (keys.size - 1)
            if keys[slot] == _EMPTY:
                keys[slot], found[slot] = key, 2 * node + phase
                kinds[node], reads[0, node], reads[1, node] = kind, a, b
                continue
            known = found[slot]
            literal = np.int32(literals[known >> 1] ^ (known & 1) ^ phase)
        literals[node] = literal
        at = write_equality(steps, at, node, literal, operands[0, own] if splits else -1)
    return at


@njit(cache=True)
def follow_literals(nodes, literals, steps):
    """Bring literals up to date after representatives were merged; returns the length of ``steps`` used."""
    at = 0
    for node in nodes:
        literal = literals[node]
        latest = literals[literal >> 1] ^ (literal & 1)
        if latest != literal:
            literals[node] = latest
            at = write_equality(steps, at, node, latest, -1)
    return at


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
    state = np.uint64(stamp) * _MULTIPLIER + np.uint64(1)
    words = values.shape[1]
    for i in range(free):
        for w in range(words):
            state ^= state << np.uint64(13)
            state ^= state >> np.uint64(7)
            state ^= state << np.uint64(17)
            values[leaves[i], w] = state
    for i in range(gates - 1, -1, -1):
        node = inner[i]
        table = kinds[node]
        a, b = reads[0, node], reads[1, node]
        for w in range(words):
            x, y = values[a, w], values[b, w]
            result = np.uint64(0)
            if table & 8:
                result |= ~x & ~y
            if table & 4:
                result |= ~x & y
            if table & 2:
                result |= x & ~y
            if table & 1:
                result |= x & y
            values[node, w] = result
    flip = np.uint64(0) - np.uint64(roots[2])
    for w in range(words):
        difference = values[roots[0], w] ^ values[roots[1], w] ^ flip
        if difference:
            bit = 0
            while not difference >> np.uint64(bit) & np.uint64(1):
                bit += 1
            return gates, free, full, 64 * w + bit
    return gates, free, full, -1


@njit(cache=True)
def unloaded_below(node, other, inputs, reads, loaded):
    """The gates below two nodes that are not marked as loaded, which they are from now on."""
    found = [np.int32(0)]
    found.clear()
    for root in (node, other):
        if root > inputs and not loaded[root]:
            loaded[root] = True
            found.append(np.int32(root))
    at = 0
    while at < len(found):
        for side in range(2):
            operand = reads[side, found[at]]
            if operand > inputs and not loaded[operand]:
                loaded[operand] = True
                found.append(operand)
        at += 1
    return np.array(found, dtype=np.int32)
