"""The values of a graph's nodes on many input patterns at once, and which nodes they cannot tell apart.

    word         64 patterns, one a bit
    gate         g(x, y) = c ⊕ (c_a ∧ x) ⊕ (c_b ∧ y) ⊕ (c_ab ∧ x ∧ y), bit by bit: its polynomial over GF(2)
    phase        a node's value on the first pattern, all zeros
    signature    a hash of a node's values on all patterns, complemented if its phase is one

Nodes that are equal, or complements, have equal signatures; nodes with equal signatures are candidates, no more. What
a circuit means is defined by ``circuit.simulate``; this is how it is computed where all nodes are wanted.
"""
# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from collections.abc import Callable, Iterator
from typing import Final

import numpy as np
from jaxtyping import Bool, Int64, UInt8, UInt64

from gatefit.bits import pack_rows, unpack_rows
from gatefit.circuit.logic.graph import Graph
from gatefit.compiled import njit
from gatefit.gates import TRUTH_TABLES

PATTERNS: Final = 2**16
CHUNK_WORDS: Final = 16
"""Random patterns to simulate, and how many words of 64 of them at a time, so that they stay in the cache."""

Words = UInt64[np.ndarray, "rows words"]
Simulator = Callable[[Graph, Words], Words]


@njit(cache=True, inner=True, plain=True)
def gate_of_words(gate, x, y):
    """A gate of two words, bit by bit."""
    constant = np.uint64(0) - np.uint64(gate >> 3 & 1)
    of_b = constant ^ (np.uint64(0) - np.uint64(gate >> 2 & 1))
    of_a = constant ^ (np.uint64(0) - np.uint64(gate >> 1 & 1))
    of_ab = constant ^ of_a ^ of_b ^ (np.uint64(0) - np.uint64(gate & 1))
    return constant ^ (of_a & x) ^ (of_b & y) ^ (of_ab & x & y)


@njit(cache=True, plain=True)
def _simulate(first, gates, operands, values):
    """Fill ``values[node, word]`` for all gates; the rows before ``first`` are given."""
    for i in range(gates.size):
        gate, a, b = np.int64(gates[i]), operands[0, i], operands[1, i]
        for w in range(values.shape[1]):
            values[first + i, w] = gate_of_words(gate, values[a, w], values[b, w])


def _with_inputs(graph: Graph, words: Words) -> Words:
    values = np.zeros((graph.nodes, words.shape[1]), np.uint64)
    values[1 : 1 + graph.inputs] = words
    return values


def simulate_reference(graph: Graph, words: UInt64[np.ndarray, "inputs words"]) -> UInt64[np.ndarray, "nodes words"]:
    """The value of every node: the rows of each gate's truth table that are one, gate by gate."""
    values = _with_inputs(graph, words)
    for node, (gate, a, b) in enumerate(zip(graph.gates, *graph.operands, strict=True), start=1 + graph.inputs):
        x, y = values[a], values[b]
        rows = (~x & ~y, ~x & y, x & ~y, x & y)
        for one, row in zip(TRUTH_TABLES[gate], rows, strict=True):
            if one:
                values[node] |= row
    return values


def simulate_numba(graph: Graph, words: UInt64[np.ndarray, "inputs words"]) -> UInt64[np.ndarray, "nodes words"]:
    """The same by a compiled loop."""
    values = _with_inputs(graph, words)
    _simulate(1 + graph.inputs, graph.gates, graph.operands, values)
    return values


SIMULATORS: Final[dict[str, Simulator]] = {"reference": simulate_reference, "numba": simulate_numba}
simulate_words: Final = simulate_numba
"""The value of every node on the patterns of ``words``, 64 a word."""


def packed(patterns: Bool[np.ndarray, "patterns inputs"]) -> UInt64[np.ndarray, "inputs words"]:
    """Patterns as words; all zeros fill the last word."""
    return pack_rows(np.ascontiguousarray(patterns.T))


def unpacked(words: Words) -> Bool[np.ndarray, "patterns rows"]:
    """Every bit of the words, one row a pattern."""
    return unpack_rows(words, 64 * words.shape[1]).T


def all_chunks(inputs: int) -> Iterator[UInt64[np.ndarray, "inputs words"]]:
    """Every input pattern, all zeros first; where there are fewer than 64, all zeros again to the end of the word."""
    size = min(64 * CHUNK_WORDS, 2**inputs)
    for start in range(0, 2**inputs, size):
        yield packed((np.arange(start, start + size)[:, None] >> np.arange(inputs) & 1).astype(bool))


def random_chunks(inputs: int, patterns: int, seed: int) -> Iterator[UInt64[np.ndarray, "inputs words"]]:
    """Reproducible input patterns, 64 a word; later ones are dense or sparse, to wake rare events."""
    if patterns == 0:  # phases need one pattern
        yield np.zeros((inputs, 1), np.uint64)
    rng = np.random.default_rng((seed, 0))
    words = -(-patterns // 64)
    for start in range(0, words, CHUNK_WORDS):
        size = (inputs, min(CHUNK_WORDS, words - start))
        chunk = rng.integers(0, 2**64, size=size, dtype=np.uint64)
        for i in range(4 * start // words):  # of densities 1/2, then 1/4 and 3/4, then 1/8 to 7/8, ...
            more = rng.integers(0, 2**64, size=size, dtype=np.uint64)
            chunk = chunk & more if (start // CHUNK_WORDS >> i) % 2 else chunk | more
        if start == 0:
            chunk[:, 0] = chunk[:, 0] & ~np.uint64(3) | np.uint64(2)  # all zeros, then all ones
        yield chunk


class Signatures:
    """The signature of every node, and which nodes share theirs with others."""

    def __init__(self, phases: UInt8[np.ndarray, " nodes"], members: Int64[np.ndarray, " members"]) -> None:
        self.phases = phases
        self.hashes = np.zeros(phases.size, np.uint64)
        self.members = members
        """Nodes that share their signature with another one of those given, ascending; others are told apart."""
        self.classes = np.zeros(members.size, np.int64)
        """For every member the number of its signature."""

    def mix(self, values: UInt64[np.ndarray, "nodes words"]) -> None:
        """Take in the values of all nodes on some more patterns."""
        _mix(self.members, values, self.phases, self.hashes)

    def regroup(self) -> bool:
        """Forget the members that are told apart by now; whether there were any."""
        _, which, sizes = np.unique(self.hashes[self.members], return_inverse=True, return_counts=True)
        together = sizes[which] > 1
        self.members, self.classes = self.members[together], which[together]
        return not together.all()

    def among(self, nodes: Bool[np.ndarray, " nodes"]) -> "Signatures":
        """A copy that knows the members among some nodes only."""
        own = Signatures(self.phases, self.members[nodes[self.members]])
        own.hashes = self.hashes.copy()
        own.regroup()
        return own


def signatures(graph: Graph, patterns: int = PATTERNS, seed: int = 0, idle: int | None = None) -> Signatures:
    """Signatures of all nodes on ``random_chunks``; ``idle`` chunks in a row that tell nothing apart end it early.

    Where one chunk can hold every pattern, it does, and signatures are equal exactly if functions are.
    """
    found, waited = None, 0
    every = 2**graph.inputs <= min(patterns, 64 * CHUNK_WORDS)
    for words in all_chunks(graph.inputs) if every else random_chunks(graph.inputs, patterns, seed):
        values = simulate_words(graph, words)
        if found is None:
            found = Signatures((values[:, 0] & np.uint64(1)).astype(np.uint8), np.arange(graph.nodes))
        found.mix(values)
        if idle is not None:
            waited = 0 if found.regroup() else waited + 1
            if waited == idle:
                break
    assert found is not None
    found.regroup()
    return found


@njit(cache=True, plain=True)
def _mix(members, values, phases, hashes):
    for node in members:
        mask = np.uint64(0) - np.uint64(phases[node])
        key = hashes[node]
        for w in range(values.shape[1]):
            key = (key ^ (values[node, w] ^ mask)) * np.uint64(0x9E3779B97F4A7C15)
            key ^= key >> np.uint64(31)
        hashes[node] = key
