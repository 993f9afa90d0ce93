"""Looking for an input on which two circuits have different scores.

    random      bit-parallel, 64 patterns a word; outputs whose signatures cancel are not even added up
    given       patterns that tell some nodes apart, found by the solver
    exhaustive  all 2^inputs patterns, where they are few

A search that finds nothing proves nothing, except the exhaustive one. What it finds is replayed by ``circuit.simulate``
before anybody is told.
"""

from collections.abc import Iterable
from typing import Final

import numpy as np
from jaxtyping import Bool, Int32, UInt64

from gatefit.circuit.ir import Circuit
from gatefit.circuit.logic.graph import Graph
from gatefit.circuit.logic.words import CHUNK_WORDS, Signatures, all_chunks, random_chunks, simulate_words, unpacked
from gatefit.circuit.prove.miter import join, remainders

EXHAUSTIVE_INPUTS: Final = 16
"""Circuits with at most this many inputs can be compared by trying them all."""


def try_random_inputs(
    spec: Circuit,
    impl: Circuit,
    known: Signatures,
    patterns: int,
    seed: int,
) -> Bool[np.ndarray, " inputs"] | None:
    """The first random pattern with different scores; ``known`` are the signatures that they give."""
    graph, outputs = join(spec, impl)
    hashes, phases = known.hashes, known.phases
    # Treat outputs with equal signatures as equal: if that makes the scores equal, no random pattern differs.
    nodes = np.concatenate([[0], outputs])
    _, first, inverse = np.unique(hashes[nodes], return_index=True, return_inverse=True)
    leader = nodes[first[inverse]][1:]
    claims = (2 * leader + (phases[leader] ^ phases[outputs])).astype(np.int32)
    if remainders(spec.readout, impl.readout, claims) == []:
        return None
    return _first_difference(spec, impl, graph, outputs, random_chunks(graph.inputs, patterns, seed))


def try_words(
    spec: Circuit, impl: Circuit, words: UInt64[np.ndarray, "inputs words"]
) -> Bool[np.ndarray, " inputs"] | None:
    """The first of the given patterns, 64 a word, with different scores."""
    graph, outputs = join(spec, impl)
    chunks = (words[:, i : i + CHUNK_WORDS] for i in range(0, words.shape[1], CHUNK_WORDS))
    return _first_difference(spec, impl, graph, outputs, chunks)


def try_all_inputs(spec: Circuit, impl: Circuit) -> Bool[np.ndarray, " inputs"] | None:
    """The first of all patterns with different scores; None proves that there is none."""
    graph, outputs = join(spec, impl)
    return _first_difference(spec, impl, graph, outputs, all_chunks(spec.inputs))


def _first_difference(
    spec: Circuit,
    impl: Circuit,
    graph: Graph,
    outputs: Int32[np.ndarray, " outputs"],
    chunks: Iterable[UInt64[np.ndarray, "inputs words"]],
) -> Bool[np.ndarray, " inputs"] | None:
    for words in chunks:
        bits = unpacked(simulate_words(graph, words)[outputs]).reshape(64 * words.shape[1], outputs.size)
        with np.errstate(over="ignore", invalid="ignore"):  # huge linear weights: NaN on both sides is the same score
            scores = tuple(
                circuit.readout.scores(part)
                for circuit, part in zip((spec, impl), np.split(bits, [spec.outputs.size], axis=1), strict=True)
            )
        differs = (scores[0] != scores[1]) & ~(np.isnan(scores[0]) & np.isnan(scores[1]))
        rows = np.flatnonzero(differs.any(axis=1))
        if rows.size:
            return np.asarray(unpacked(words)[rows[0]])
    return None
