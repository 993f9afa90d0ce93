"""Random input patterns, and what the nodes of a graph make of them.

    word         64 patterns, one a bit
    phase        a node's value on the first pattern, all zeros
    signature    a hash of a node's values on all patterns, complemented if its phase is one

Nodes that are equal, or complements, have equal signatures; nodes with equal signatures are candidates, no more.
"""

from collections.abc import Iterator
from typing import Final

import numpy as np
from jaxtyping import UInt8, UInt64

from gatefit.circuit import sweep_numba as kernels
from gatefit.circuit.miter import Graph

PATTERNS: Final = 2**16
CHUNK_WORDS: Final = 16
"""Random patterns to simulate, and how many words of 64 of them at a time, so that they stay in the cache."""

Signatures = tuple[UInt64[np.ndarray, " nodes"], UInt8[np.ndarray, " nodes"]]
"""Signature and phase of every node."""


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


def simulate_chunk(graph: Graph, words: UInt64[np.ndarray, "inputs words"]) -> UInt64[np.ndarray, "nodes words"]:
    """The value of every node on 64 patterns a word."""
    values = np.zeros((graph.nodes, words.shape[1]), np.uint64)
    values[1 : 1 + graph.inputs] = words
    kernels.simulate_words(graph.inputs, graph.gates, graph.operands, values)
    return values


def signatures(graph: Graph, patterns: int = PATTERNS, seed: int = 0) -> Signatures:
    """Signatures of all nodes on ``random_chunks(graph.inputs, patterns, seed)``."""
    hashes, phases = np.zeros(graph.nodes, np.uint64), np.zeros(graph.nodes, np.uint8)
    for i, words in enumerate(random_chunks(graph.inputs, patterns, seed)):
        values = simulate_chunk(graph, words)
        if i == 0:
            phases[:] = values[:, 0] & np.uint64(1)
        kernels.update_signatures(values, phases, hashes)
    return hashes, phases
