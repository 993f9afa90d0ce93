"""Which nodes may be equal, or opposite: those that no simulated input pattern tells apart.

    word_n   = the values of node n for 64 input patterns
    phase_n  = its value for the very first pattern, so that a node and its inverse have one signature
    key_n    = a hash of all words seen so far, each inverted if phase_n is 1

Equal functions have equal keys. Different functions with equal keys are told apart by patterns added later.
"""

from typing import Final

import numpy as np
from jaxtyping import Bool, Int64

from gatefit.circuit.ir import Circuit
from gatefit.compiled import njit

CONSTANT: Final = -1
"""The number of the constant false among the nodes."""

_WORDS: Final = 8  # simulated at once; more do not fit the cache
_IDLE_BLOCKS: Final = 8  # random patterns end when so many blocks in a row told nothing apart


class Signatures:
    """Classes of nodes with equal keys; the constant false is a member like any other."""

    def __init__(self, circuit: Circuit, rng: np.random.Generator, words: int) -> None:
        self._circuit = circuit
        self._rng = rng
        self._values = np.empty((circuit.nodes + 1, _WORDS), np.uint64)  # the last row is the constant's
        self._keys = np.zeros(circuit.nodes + 1, np.uint64)
        self._phase = np.zeros(circuit.nodes + 1, np.uint64)
        self._first = True
        self._members = np.arange(CONSTANT, circuit.nodes)
        if 2**circuit.inputs <= 64 * _WORDS:
            self._add(_all_patterns(circuit.inputs))
            return
        idle = 0
        for _ in range(-(-words // _WORDS)):
            before = self._members.size
            self._add(self._random_words())
            idle = idle + 1 if self._members.size == before else 0
            if idle == _IDLE_BLOCKS:
                break

    def _random_words(self) -> np.ndarray:
        """Words whose bits are one with probability 1/2, 1/4, 1/8, 3/4 or 7/8: rare events want unfair coins."""
        shape = (3, self._circuit.inputs, _WORDS)
        x, y, z = self._rng.integers(0, 2**64, shape, dtype=np.uint64)
        coin = self._rng.integers(0, 8, (self._circuit.inputs, 1))
        coin = coin if self._rng.random() < 0.5 else np.broadcast_to(self._rng.integers(0, 8), coin.shape)
        return np.select([coin < 4, coin == 4, coin == 5, coin == 6], [x, x & y, x | y, x & y & z], x | y | z)

    def _add(self, words: np.ndarray) -> None:
        self._values[: self._circuit.inputs] = words
        self._values[-1] = 0
        _simulate(self._circuit.inputs, self._circuit.gates, self._circuit.operands, self._values)
        if self._first:
            self._phase = np.uint64(0) - (self._values[:, 0] & np.uint64(1))
            self._first = False
        _update(self._members, self._values, self._phase, self._keys)
        self._group()

    def _group(self) -> None:
        """Forget members that are alone in their class, and find the first member of every class."""
        keys = self._keys[self._members]
        _, first, which, sizes = np.unique(keys, return_index=True, return_inverse=True, return_counts=True)
        together = sizes[which] > 1
        # Members ascend, so the first index of a key is its smallest node: the constant, then inputs, then gates.
        self._representatives = self._members[first[which]][together]
        self._members = self._members[together]

    @property
    def members(self) -> Int64[np.ndarray, "members"]:
        """Nodes that share their class with others, ascending."""
        return self._members

    def representative(self, node: int) -> int | None:
        """The smallest node of the same class, or None if that is the node itself or it is alone."""
        at = int(np.searchsorted(self._members, node))
        if at == self._members.size or self._members[at] != node or self._representatives[at] == node:
            return None
        return int(self._representatives[at])

    def opposite(self, node: int, other: int) -> bool:
        """Whether two nodes of one class are each other's inverse."""
        return bool(self._phase[node] != self._phase[other])

    def tell_apart(self, pattern: Bool[np.ndarray, " inputs"]) -> None:
        """Simulate an input pattern, with 511 others near it, and split classes accordingly."""
        words = np.where(pattern[:, None], ~np.uint64(0), np.uint64(0))
        shape = (self._circuit.inputs, _WORDS)
        flips = np.bitwise_and.reduce(self._rng.integers(0, 2**64, (4, *shape), dtype=np.uint64))
        flips[:, 0] &= ~np.uint64(1)
        self._add(words ^ flips)


def _all_patterns(inputs: int) -> np.ndarray:
    """Every input pattern (again and again, if there are fewer than bits), as words."""
    pattern = np.arange(64 * _WORDS)[None, :] >> np.arange(inputs)[:, None] & 1
    bits = pattern.reshape(inputs, _WORDS, 64).astype(np.uint64)
    return np.asarray(np.bitwise_or.reduce(bits << np.arange(64, dtype=np.uint64), axis=2))


@njit(cache=True)
def _simulate(inputs, gates, operands, values):  # type: ignore[no-untyped-def]
    full = ~np.uint64(0)
    for i in range(len(gates)):
        gate, a, b = gates[i], values[operands[0, i]], values[operands[1, i]]
        # Corners g(0,0), g(0,1), g(1,0), g(1,1) as masks.
        c0 = full if gate & 8 else np.uint64(0)
        c1 = full if gate & 4 else np.uint64(0)
        c2 = full if gate & 2 else np.uint64(0)
        c3 = full if gate & 1 else np.uint64(0)
        for w in range(values.shape[1]):
            x, y = a[w], b[w]
            values[inputs + i, w] = (~x & ((~y & c0) | (y & c1))) | (x & ((~y & c2) | (y & c3)))


@njit(cache=True)
def _update(members, values, phase, keys):  # type: ignore[no-untyped-def]
    for node in members:
        key = keys[node]
        for w in range(values.shape[1]):
            key = (key ^ (values[node, w] ^ phase[node])) * np.uint64(0x9E3779B97F4A7C15)
            key ^= key >> np.uint64(32)
        keys[node] = key
