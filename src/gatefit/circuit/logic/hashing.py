"""Structural hashing: a growing graph in which every gate exists once and counts its readers, for kernels.

    gate     in normal form (see ``literals``): inversion is in the literals
    make     a literal for g(a, b): a constant, an operand, a gate that exists, or a new one
    readers  a gate without readers is dead: it does not read its operands; it may come to life again

Nodes are numbered in the order in which they are made, which is a topological order.
"""
# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from typing import NamedTuple

import numpy as np
from jaxtyping import Int32, Int64, UInt8

from gatefit.circuit.logic.graph import Graph
from gatefit.circuit.logic.literals import normal_gate
from gatefit.compiled import njit
from gatefit.gates import COMPLEMENT


class Network(NamedTuple):
    """Arrays with room for ``capacity`` nodes; ``used[0]`` of them are in use, ``first`` of which are no gates."""

    first: int
    gates: UInt8[np.ndarray, " capacity"]
    operands: Int32[np.ndarray, "2 capacity"]
    levels: Int32[np.ndarray, " capacity"]
    readers: Int32[np.ndarray, " capacity"]
    used: Int64[np.ndarray, "1"]
    table: Int32[np.ndarray, " slots"]
    stack: Int32[np.ndarray, " depth"]


def empty_network(inputs: int, capacity: int) -> Network:
    """The network of the constant and the inputs alone; ``capacity`` counts all nodes."""
    return Network(
        first=1 + inputs,
        gates=np.zeros(capacity, np.uint8),
        operands=np.zeros((2, capacity), np.int32),
        levels=np.zeros(capacity, np.int32),
        readers=np.zeros(capacity, np.int32),
        used=np.array([1 + inputs], np.int64),
        table=empty_table(capacity),
        stack=np.zeros(2 * capacity + 2, np.int32),
    )


def empty_table(nodes: int) -> Int32[np.ndarray, " slots"]:
    """A hash table for so many gates, at most half full."""
    return np.full(1 << max(4, int(2 * nodes - 1).bit_length()), -1, np.int32)


@njit(cache=True, inner=True, plain=True)
def _hash(gate, a, b):
    h = np.uint64(a) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(b) * np.uint64(0xC2B2AE3D27D4EB4F)
    h += np.uint64(gate) * np.uint64(0x165667B19E3779F9)
    h ^= h >> np.uint64(29)
    h *= np.uint64(0xBF58476D1CE4E5B9)
    return np.int64(h >> np.uint64(24))


@njit(cache=True, inner=True, plain=True)
def find(table, gates, operands, gate, a, b):
    """(node or -1, slot): where the normal gate of nodes a and b, or its inverse, is in ``table``, or belongs.

    ``gates`` and ``operands`` are indexed by node; the table holds nodes and -1.
    """
    mask = len(table) - 1
    slot = _hash(gate, a, b) & mask
    node = table[slot]
    while node >= 0:
        same = gates[node] == gate or gates[node] == COMPLEMENT[gate]
        if same and operands[0, node] == a and operands[1, node] == b:
            break
        slot = (slot + 1) & mask
        node = table[slot]
    return node, slot


# Arrays of a network are taken out of it once in a function, and given one by one to what needs a few: numba makes a
# hundred instructions of every mention of a tuple's array, and of every tuple that is given on.


@njit(cache=True, inner=True, plain=True)
def make(net, gate, a, b):
    """The literal of g(a, b) for literals a and b; a new gate has no readers yet."""
    done, literal, gate, a, b = normal_gate(gate, a, b)
    if done:
        return literal
    table, gates, operands = net.table, net.gates, net.operands
    node, slot = find(table, gates, operands, gate, a, b)
    if node < 0:
        used, levels = net.used, net.levels
        node = used[0]
        used[0] = node + 1
        gates[node] = gate
        operands[0, node] = a
        operands[1, node] = b
        below, other = levels[a], levels[b]
        levels[node] = (below if below > other else other) + 1
        net.readers[node] = 0
        table[slot] = node
    return 2 * node + literal


@njit(cache=True, inner=True, plain=True)
def reference(readers, operands, stack, first, node, times):
    """Give a node of a network more readers; returns how many gates came to life."""
    revived = top = 0
    before = readers[node]
    readers[node] = before + times
    if before == 0 and times > 0 and node >= first:
        stack[0] = node
        top = 1
    while top:
        top -= 1
        node = stack[top]
        revived += 1
        for k in range(2):
            below = operands[k, node]
            before = readers[below]
            readers[below] = before + 1
            if before == 0 and below >= first:
                stack[top] = below
                top += 1
    return revived


@njit(cache=True, inner=True, plain=True)
def dereference(readers, operands, stack, first, node, times):
    """Take readers away from a node of a network; returns how many gates died."""
    died = top = 0
    left = readers[node] - times
    readers[node] = left
    if left == 0 and times > 0 and node >= first:
        stack[0] = node
        top = 1
    while top:
        top -= 1
        node = stack[top]
        died += 1
        for k in range(2):
            below = operands[k, node]
            left = readers[below] - 1
            readers[below] = left
            if left == 0 and below >= first:
                stack[top] = below
                top += 1
    return died


def share(graph: Graph, merged: Int64[np.ndarray, " nodes"] | None = None) -> tuple[Graph, Int64[np.ndarray, " nodes"]]:
    """A graph with every gate once, in normal form, and the literal there that each node has become.

    ``merged`` gives nodes that are known to equal a literal of a smaller node, or a constant; others their own literal.
    """
    net = empty_network(graph.inputs, graph.nodes)
    merged = 2 * np.arange(graph.nodes) if merged is None else merged
    literals = np.empty(graph.nodes, np.int64)
    _share(net, graph.gates, graph.operands, merged, literals)
    kept = slice(net.first, int(net.used[0]))
    return Graph(graph.inputs, net.gates[kept], net.operands[:, kept]), literals


@njit(cache=True, plain=True)
def _share(net, gates, operands, merged, literals):
    first = net.first
    for node in range(len(literals)):
        known = merged[node]
        if node < first:
            literals[node] = 2 * node
        elif known == 2 * node:
            i = node - first
            literals[node] = make(net, np.int64(gates[i]), literals[operands[0, i]], literals[operands[1, i]])
        else:
            literals[node] = literals[known >> 1] ^ (known & 1)
