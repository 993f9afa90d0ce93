"""Literals: a node or its inverse as one number, and the normal form of a gate whose operands are literals.

    node 0               the constant false; then come the inputs, from node 1, then the gates
    literal              2 · node + inverted, so that 0 is false and 1 is true;  ~literal is written literal ^ 1
    normal form          AND, a & ~b, ~a & b, XOR or OR of two different nodes, the smaller one first, perhaps inverted

A gate has a normal form unless it is a literal already. Two gates of the same operands, in any order and polarity,
compute the same function or opposite ones exactly if their normal forms are equal. AIGER numbers literals like this.
"""
# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from typing import Final

import numpy as np
from jaxtyping import Int32, UInt8

from gatefit.compiled import njit
from gatefit.gates import COMPLEMENT, DEPENDS_ON_A, DEPENDS_ON_B, NEGATED_A, NEGATED_B, SWAPPED, TRUTH_TABLES

FALSE: Final = 0
TRUE: Final = 1


def _restricted(corners: list[int]) -> UInt8[np.ndarray, "16"]:
    """For every gate the one whose corners (0,0) (0,1) (1,0) (1,1) are those of the given corners."""
    return np.asarray(TRUTH_TABLES[:, corners] @ np.array([8, 4, 2, 1]), np.uint8)


OF_EQUALS: Final = _restricted([0, 0, 3, 3])
"""What a gate becomes if both operands are one node: a gate that reads the first, or none."""

_OF_CONSTANT_A: Final = np.stack([_restricted([0, 1, 0, 1]), _restricted([2, 3, 2, 3])])
_OF_CONSTANT_B: Final = np.stack([_restricted([0, 0, 2, 2]), _restricted([1, 1, 3, 3])])


@njit(cache=True, inner=True, plain=True)
def absorb_inverters(gate, a, b):
    """(gate, a, b) without inverted operands: the gate changes kind instead."""
    gate = np.int64(gate)
    if a & 1:
        gate = np.int64(NEGATED_A[gate])
        a ^= 1
    if b & 1:
        gate = np.int64(NEGATED_B[gate])
        b ^= 1
    return gate, a, b


@njit(cache=True, inner=True, plain=True)
def absorb(gate, a, b):
    """(gate, a, b) without inverted operands, and without constant ones unless both are: the gate changes kind."""
    gate = np.int64(gate)
    if a <= TRUE:
        gate = np.int64(_OF_CONSTANT_A[a, gate])
        a = b  # it is not read any more
    if b <= TRUE:
        gate = np.int64(_OF_CONSTANT_B[b, gate])
        b = a
        if a <= TRUE:  # both are constant, and so is the gate: it reads none of them
            a = b = a & ~1
    return absorb_inverters(gate, a, b)


@njit(cache=True, inner=True, plain=True)
def simple_gate(gate, a, b):
    """(True, literal, …) if g(a, b) is a literal, else (False, 0, gate, a, b): it reads two different plain nodes."""
    gate, a, b = absorb(gate, a, b)
    if a == b:
        gate = np.int64(OF_EQUALS[gate])
    reads_a, reads_b = DEPENDS_ON_A[gate], DEPENDS_ON_B[gate]
    if not (reads_a or reads_b):
        return True, gate & 1, gate, a, b
    if not (reads_a and reads_b):
        return True, (a if reads_a else b) ^ (gate >> 3), gate, a, b
    return False, np.int64(0), gate, a, b


@njit(cache=True, inner=True, plain=True)
def normal_gate(gate, a, b):
    """(True, literal, …) if g(a, b) is a literal, else (False, inverted, gate, node, node): its normal form."""
    done, literal, gate, a, b = simple_gate(gate, a, b)
    if done:
        return True, literal, gate, a, b
    if a > b:
        gate = np.int64(SWAPPED[gate])
        a, b = b, a
    inverted = gate >> 3
    if inverted:
        gate = np.int64(COMPLEMENT[gate])
    return False, inverted, gate, a >> 1, b >> 1


def dimacs(literals: Int32[np.ndarray, "..."]) -> Int32[np.ndarray, "..."]:
    """Literals as DIMACS writes them: variable n + 1 is node n, and minus means inverted."""
    return np.where(literals & 1, -(literals >> 1) - 1, (literals >> 1) + 1).astype(np.int32)
