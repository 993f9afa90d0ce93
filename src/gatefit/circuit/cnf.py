"""Gates as clauses: the formula that a proof is about, and its text form.

    x_n = g(x_a, x_b)   becomes   the prime clauses of  { (a, b, n) : n = g(a, b) }

A prime clause is one from which no literal can be dropped; together they let unit propagation see everything that one
gate says. They are derived from the truth table, not listed. Formulas and proofs are flat int32 arrays of DIMACS
literals (variable v or -v, from 1), each clause ended by 0; a step of a proof that starts with ``DELETE`` removes a
clause. On disk they are DIMACS CNF and DRAT text.
"""

from dataclasses import dataclass
from itertools import product
from typing import Final

import numpy as np
from jaxtyping import Int32, UInt8

from gatefit.circuit.cnf_numba import DELETE, read_clauses, write_clauses
from gatefit.gates import Gate

__all__ = ["DELETE", "PRIME_CLAUSES", "Cnf", "clauses_to_text", "gate_clauses", "proof_from_text"]


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
    # A gate that reads one variable twice is the wire, inverter or constant g(0,0) g(1,1): no clause repeats a literal.
    same = operands[0] == operands[1]
    gates = np.where(same, (gates >> 3) * 0b1100 + (gates & 1) * 0b0011, gates).astype(np.uint8)
    columns = np.stack([operands[0], operands[1], results]).astype(np.int32)
    parts = [np.empty(0, np.int32)]
    for gate in Gate:
        chosen = columns[:, gates == gate]
        if not chosen.size:
            continue
        for clause in PRIME_CLAUSES[gate]:
            rows = [s * chosen[i] for i, s in enumerate(clause) if s]
            parts.append(np.stack([*rows, np.zeros_like(chosen[0])], axis=1).ravel())
    return np.concatenate(parts)


def clauses_to_text(literals: Int32[np.ndarray, " literals"]) -> bytes:
    """One line a clause; deletions start with ``d``."""
    literals = np.ascontiguousarray(literals, dtype=np.int32)
    buffer = np.empty(12 * literals.size, np.uint8)
    return buffer[: write_clauses(literals, buffer)].tobytes()


def proof_from_text(text: bytes, variables: int) -> Int32[np.ndarray, " literals"]:
    """Read DRAT text strictly: literals of known variables, every step on its own line and ended by 0."""
    # Shortest literal and its separator: two bytes. The reader never writes more than it reads.
    literals = np.empty(len(text) + 1, np.int32)
    count, line = read_clauses(np.frombuffer(text, np.uint8), variables, literals)
    if line:
        raise ValueError(
            f"line {line} of the proof is not a DRAT step over variables 1 to {variables}: "
            f"each line needs literals ended by 0, after 'd ' if it deletes; write the proof again"
        )
    return literals[:count].copy()
