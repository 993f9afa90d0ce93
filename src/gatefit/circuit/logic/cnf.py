"""Gates as clauses: the formula that a proof is about, and its text form.

    x_n = g(x_a, x_b)   becomes   the prime clauses of  { (a, b, n) : n = g(a, b) }

A prime clause is one from which no literal can be dropped; together they let unit propagation see everything that one
gate says. They are derived from the truth table, not listed. Formulas and proofs are flat int32 arrays of DIMACS
literals (variable v or -v, from 1), each clause ended by 0; a step of a proof that starts with ``DELETE`` removes a
clause. On disk they are DIMACS CNF and DRAT text.
"""
# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from dataclasses import dataclass
from itertools import product
from typing import Final

import numpy as np
from jaxtyping import Int32, UInt8

from gatefit.circuit.logic.literals import OF_EQUALS
from gatefit.compiled import njit
from gatefit.gates import Gate

DELETE: Final = int(np.iinfo(np.int32).min)
"""Marks a proof step as a deletion; no literal has this value."""


def _prime_clauses(gate: Gate) -> tuple[tuple[int, int, int], ...]:
    def impossible(cube: tuple[int | None, ...]) -> bool:
        rows = ((a, b, gate(a, b)) for a, b in product((0, 1), repeat=2))
        return not any(all(c in (None, x) for c, x in zip(cube, row, strict=True)) for row in rows)

    def is_prime(cube: tuple[int | None, ...]) -> bool:
        shorter = ((*cube[:i], None, *cube[i + 1 :]) for i in range(3) if cube[i] is not None)
        return impossible(cube) and not any(impossible(c) for c in shorter)

    sign = {None: 0, 0: 1, 1: -1}  # a clause says: not this cube
    return tuple((sign[a], sign[b], sign[n]) for a, b, n in product((None, 0, 1), repeat=3) if is_prime((a, b, n)))


PRIME_CLAUSES: Final = tuple(_prime_clauses(gate) for gate in Gate)
"""For every gate the clauses of n = g(a, b), each as the signs (1, -1 or 0: absent) of the literals a, b, n."""

_SIGNS: Final = np.zeros((len(Gate), max(map(len, PRIME_CLAUSES)), 3), np.int8)
for _gate, _clauses in enumerate(PRIME_CLAUSES):
    _SIGNS[_gate, : len(_clauses)] = _clauses
_SIZES: Final = np.array([sum(1 + int(np.count_nonzero(c)) for c in clauses) for clauses in PRIME_CLAUSES])
"""The same as arrays, with rows of zeros behind; and how many numbers a gate's clauses are, each ended by 0."""


@dataclass(frozen=True, eq=False)
class Cnf:
    """A formula in conjunctive normal form; ``literals`` is flat, each clause ended by 0."""

    variables: int
    literals: Int32[np.ndarray, " literals"]

    @property
    def clauses(self) -> int:
        """The number of clauses."""
        return int(np.count_nonzero(self.literals == 0))

    def to_dimacs(self) -> bytes:
        """The formula as DIMACS text."""
        return b"p cnf %d %d\n" % (self.variables, self.clauses) + clauses_to_text(self.literals)


def gate_clauses(
    gates: UInt8[np.ndarray, " gates"], operands: Int32[np.ndarray, "2 gates"], results: Int32[np.ndarray, " gates"]
) -> Int32[np.ndarray, " literals"]:
    """Clauses that say results = gates(operands), all given as variable numbers (from 1)."""
    # A gate that reads one variable twice reads its first operand or none: no clause repeats a literal.
    gates = np.where(operands[0] == operands[1], OF_EQUALS[gates], gates)
    literals = np.empty(int(_SIZES[gates].sum()), np.int32)
    _write_gates(gates, np.argsort(gates, kind="stable"), operands, results, literals)
    return literals


@njit(cache=True, plain=True)
def _write_gates(gates, order, operands, results, literals):
    """Gate by gate in the order of their kinds, and for each kind clause by clause: certificates depend on it."""
    at = end = 0
    while end < order.size:
        start, kind = end, gates[order[end]]
        while end < order.size and gates[order[end]] == kind:
            end += 1
        for row in range(_SIGNS.shape[1]):
            of_a, of_b, of_n = _SIGNS[kind, row, 0], _SIGNS[kind, row, 1], _SIGNS[kind, row, 2]
            if of_a == 0 and of_b == 0 and of_n == 0:
                break
            for k in range(start, end):
                i = order[k]
                if of_a:
                    literals[at] = of_a * operands[0, i]
                    at += 1
                if of_b:
                    literals[at] = of_b * operands[1, i]
                    at += 1
                if of_n:
                    literals[at] = of_n * results[i]
                    at += 1
                literals[at] = 0
                at += 1


def clause_lists(literals: Int32[np.ndarray, " literals"]) -> list[list[int]]:
    """Flat clauses one by one, as solvers take them."""
    clauses: list[list[int]] = []
    clause: list[int] = []
    for literal in literals.tolist():
        if literal:
            clause.append(literal)
        else:
            clauses.append(clause)
            clause = []
    return clauses


def clauses_to_text(literals: Int32[np.ndarray, " literals"]) -> bytes:
    """One line a clause; deletions start with ``d``."""
    literals = np.ascontiguousarray(literals, dtype=np.int32)
    buffer = np.empty(12 * literals.size, np.uint8)
    return buffer[: _write_clauses(literals, buffer)].tobytes()


def proof_from_text(text: bytes, variables: int) -> Int32[np.ndarray, " literals"]:
    """Read DRAT text strictly: literals of known variables, every step on its own line and ended by 0."""
    # Shortest literal and its separator: two bytes. The reader never writes more than it reads.
    literals = np.empty(len(text) + 1, np.int32)
    count, line = _read_clauses(np.frombuffer(text, np.uint8), variables, literals)
    if line:
        raise ValueError(
            f"line {line} of the proof is not a DRAT step over variables 1 to {variables}: "
            f"each line needs literals ended by 0, after 'd ' if it deletes; write the proof again"
        )
    return literals[:count].copy()


@njit(cache=True)
def _write_clauses(literals, buffer):
    """Write one line a clause into ``buffer``; returns how many bytes were used."""
    at = 0
    digits = np.empty(12, np.uint8)
    for literal in literals:
        if literal == DELETE:
            buffer[at] = 100  # d
            buffer[at + 1] = 32
            at += 2
            continue
        if literal < 0:
            buffer[at] = 45  # -
            at += 1
        value = abs(literal)
        size = 0
        while value or size == 0:
            digits[size] = 48 + value % 10
            value //= 10
            size += 1
        for i in range(size - 1, -1, -1):
            buffer[at] = digits[i]
            at += 1
        buffer[at] = 32 if literal else 10
        at += 1
    return at


@njit(cache=True, plain=True)
def _read_clauses(text, variables, literals):
    """Return how many numbers were read and, if the text is malformed, the number of the first bad line."""
    at, count, line, fresh = 0, 0, 1, True
    while at < text.size:
        if fresh and text[at] == 100:
            if at + 1 >= text.size or text[at + 1] != 32:
                return count, line
            literals[count] = DELETE
            count += 1
            at += 2
        fresh = False
        negative = at < text.size and text[at] == 45
        at += negative
        value, start = 0, at
        while at < text.size and 48 <= text[at] <= 57:
            value = value * 10 + (text[at] - 48)
            at += 1
            if value > variables:
                return count, line
        if at == start or at >= text.size or (value == 0 and negative):
            return count, line
        if text[at] != (10 if value == 0 else 32):
            return count, line
        literals[count] = -value if negative else value
        count += 1
        at += 1
        if value == 0:
            line += 1
            fresh = True
    return count, 0 if fresh else line
