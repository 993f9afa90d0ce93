"""Questions to a SAT solver: can two nodes of a reduced graph differ?

    ask_solver    some gates with free leaves, a fresh solver that writes a proof: "no" can be trusted after checking
    WholeCones    all gates below the two nodes, a solver kept for many questions: "yes" comes with an input

A node's gate is ``kinds[node]`` over the nodes ``reads[:, node]``; node 0 is false. Nothing is concluded here: learnt
clauses are checked by ``prove.rup``, inputs are simulated.
"""
# mypy: disable-error-code="no-untyped-def, no-untyped-call"

import math
import time
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from jaxtyping import Bool, Int32, UInt8

from gatefit.circuit.logic.cnf import DELETE, clause_lists, gate_clauses
from gatefit.compiled import njit

CONFLICTS: Final = 300
SLICE: Final = 10_000
"""Conflicts that a question may cost by default; and between two looks at the clock for one that may cost more."""

CONE_CONFLICTS: Final = 50
"""The same for the first look at a whole cone: an input that tells nodes apart is found soon or not at all."""


@dataclass(eq=False)
class Effort:
    """What all questions together may still cost: conflicts, the same on every machine, and time where asked for."""

    conflicts: float = math.inf
    deadline: float = math.inf
    """A value of ``time.monotonic``; where it is infinite, no answer depends on the clock."""

    @property
    def spent(self) -> bool:
        """Whether nothing more may be asked."""
        return self.conflicts <= 0 or self.late

    @property
    def late(self) -> bool:
        """Whether it is the clock that says so."""
        return self.deadline < math.inf and time.monotonic() > self.deadline


@dataclass(frozen=True, eq=False)
class Pair:
    """The question whether node equals other, or its complement if ``inverted``, and what an answer may cost."""

    node: int
    other: int
    inverted: int
    conflicts: int
    effort: Effort


@dataclass(frozen=True, eq=False)
class Answer:
    """``equal`` is None if the question was too hard; if it is False, ``ones`` are the leaves' values that show it."""

    equal: bool | None
    ones: Bool[np.ndarray, " leaves"] = field(default_factory=lambda: np.empty(0, bool))
    steps: Int32[np.ndarray, "steps"] = field(default_factory=lambda: np.empty(0, np.int32))
    """If equal: the proof, over node variables (node + 1)."""


def ask_solver(
    pair: Pair,
    inner: Int32[np.ndarray, " gates"],
    leaves: Int32[np.ndarray, " leaves"],
    kinds: UInt8[np.ndarray, " nodes"],
    reads: Int32[np.ndarray, "2 nodes"],
    conflicts: int,
) -> Answer:
    """Ask about the gates ``inner`` over free ``leaves``, with a fresh solver that writes a proof."""
    from pysat.solvers import Solver

    names = np.concatenate([inner, leaves, np.zeros(1, np.int32)])
    order = np.argsort(names)

    def local(nodes: Int32[np.ndarray, "..."]) -> Int32[np.ndarray, "..."]:
        return (1 + order[np.searchsorted(names, nodes, sorter=order)]).astype(np.int32)

    clauses = [[-names.size], *clause_lists(gate_clauses(kinds[inner], local(reads[:, inner]), local(inner)))]
    node, other = local(np.array([pair.node, pair.other])).tolist()
    with Solver(name="cadical195", bootstrap_with=clauses, with_proof=True) as solver:
        answer = _both_ways(solver, node, other, pair, conflicts)
        if answer:
            values = np.array(solver.get_model()[: names.size]) > 0
            return Answer(False, values[inner.size : -1])
        if answer is None:
            return Answer(None)
        lines: list[str] = solver.get_proof()
    # The solver's own deletions are dropped; a bare "0" means: unsatisfiable under the assumptions.
    learnt = [[int(v) for v in line.split()] for line in lines if line[0] not in "d0"]
    number = [0, *(names + 1).tolist()]
    learnt = [[number[v] if v >= 0 else -number[-v] for v in clause] for clause in learnt]
    one, two = pair.node + 1, -pair.other - 1 if pair.inverted else pair.other + 1
    steps = [v for clause in learnt for v in clause] + [-one, two, 0, one, -two, 0]
    for clause in learnt:
        if len(clause) > 2:  # what a unit clause says is never unlearnt
            steps += [DELETE, *clause]
    return Answer(True, steps=np.array(steps, np.int32))


class WholeCones:
    """A solver that keeps the gates it was asked about until they are many; it writes no proof."""

    def __init__(self, inputs: int, kinds: UInt8[np.ndarray, " nodes"], reads: Int32[np.ndarray, "2 nodes"]) -> None:
        self.inputs, self.kinds, self.reads = inputs, kinds, reads
        self.loaded, self.found = np.zeros(kinds.size, bool), np.zeros(kinds.size, np.int32)
        self.solver: Any = None

    def ask(self, pair: Pair, conflicts: int) -> Answer:
        """Look for an input that tells the pair apart; ``ones`` are the values of all inputs."""
        from pysat.solvers import Solver

        if self.solver is None:
            self.solver = Solver(name="minisat22", bootstrap_with=[[-1]])
        count = _unloaded_below(pair.node, pair.other, self.inputs, self.reads, self.loaded, self.found)
        fresh = self.found[:count]
        clauses = gate_clauses(self.kinds[fresh], self.reads[:, fresh] + np.int32(1), fresh + np.int32(1))
        self.solver.append_formula(clause_lists(clauses))
        differ = _both_ways(self.solver, pair.node + 1, pair.other + 1, pair, conflicts)
        if not differ:
            return Answer(None if differ is None else True)
        # Variables beyond the largest loaded one have no value; inputs come first.
        model = np.array(self.solver.get_model()[1 : 1 + self.inputs])
        ones = np.zeros(self.inputs, bool)
        ones[: model.size] = model > 0
        return Answer(False, ones)

    def __enter__(self) -> "WholeCones":
        return self

    def __exit__(self, *_: object) -> None:
        if self.solver is not None:
            self.solver.delete()


@njit(cache=True, plain=True)
def _unloaded_below(node, other, inputs, reads, loaded, found):
    """Write the gates below two nodes that are not marked as loaded, which they are from now on; their number."""
    at = count = 0
    for k in range(2):
        root = node if k == 0 else other
        if root > inputs and not loaded[root]:
            loaded[root] = True
            found[count] = root
            count += 1
    while at < count:
        for side in range(2):
            operand = reads[side, found[at]]
            if operand > inputs and not loaded[operand]:
                loaded[operand] = True
                found[count] = operand
                count += 1
        at += 1
    return count


def _both_ways(solver: Any, x: int, y: int, pair: Pair, conflicts: int) -> bool | None:
    """Whether x and y can differ; they are complements if they are expected to be."""
    y = -y if pair.inverted else y
    for assumptions in ([x, -y], [-x, y]):
        answer, left = None, conflicts
        while answer is None:
            before = solver.accum_stats()["conflicts"]
            solver.conf_budget(int(min(left, SLICE, max(1, pair.effort.conflicts))))
            answer = solver.solve_limited(assumptions=assumptions)
            pair.effort.conflicts -= solver.accum_stats()["conflicts"] - before
            left -= SLICE
            if answer is None and (left <= 0 or pair.effort.spent):
                return None
        if answer:
            return True
    return False
