"""Literals: a node or its inverse as one number, and what becomes of a gate whose operands are literals.

literal = 2 · node + inverted        node -1 is the constant false, so FALSE = -2 and TRUE = -1
~literal is written literal ^ 1
"""

from typing import Final, NamedTuple

import numpy as np
from jaxtyping import Int32, Int64, UInt8

from gatefit.compiled import njit
from gatefit.gates import COMPLEMENT, DEPENDS_ON_A, DEPENDS_ON_B, NEGATED_A, NEGATED_B, SWAPPED

FALSE: Final = -2
TRUE: Final = -1


class Swept(NamedTuple):
    """The gates that a walk over a circuit kept, renumbered, and the literal that each old node has become."""

    gates: UInt8[np.ndarray, " kept"]
    operands: Int32[np.ndarray, "2 kept"]
    literals: Int64[np.ndarray, " nodes"]


@njit(cache=True)
def absorb(gate, a, b):  # type: ignore[no-untyped-def]
    """(gate, a, b) without constant or inverted operands: the gate changes kind instead."""
    if a < 0:
        half = (gate >> 2) if a == FALSE else (gate & 0b11)
        gate = half << 2 | half
        a = b
    if b < 0:
        gate = (gate & 0b1010) | (gate & 0b1010) >> 1 if b == FALSE else (gate & 0b0101) | (gate & 0b0101) << 1
        b = a
        if b < 0:  # both constant: the gate ignores them, any node will do
            a = b = 0
    if a & 1:
        gate = np.int64(NEGATED_A[gate])
        a ^= 1
    if b & 1:
        gate = np.int64(NEGATED_B[gate])
        b ^= 1
    return gate, a, b


@njit(cache=True)
def reduce_gate(gate, a, b):  # type: ignore[no-untyped-def]
    """(True, literal, …) if g(a, b) is a literal, else (False, inverted, gate, node, node).

    The gate reads two different nodes, the smaller one first, and g(0, 0) = 0.
    """
    gate, a, b = absorb(gate, a, b)
    if a == b:
        gate = (0b1100 if gate & 0b1000 else 0) | (0b0011 if gate & 0b0001 else 0)
    reads_a, reads_b = DEPENDS_ON_A[gate], DEPENDS_ON_B[gate]
    if not (reads_a or reads_b):
        return True, TRUE if gate else FALSE, gate, a, b
    if not (reads_a and reads_b):
        return True, (a if reads_a else b) ^ (gate >> 3), gate, a, b
    if a > b:
        gate = np.int64(SWAPPED[gate])
        a, b = b, a
    inverted = gate >> 3
    if inverted:
        gate = np.int64(COMPLEMENT[gate])
    return False, inverted, gate, a >> 1, b >> 1
