"""SAT sweeping: find nodes that are equal up to complement, prove it, and merge them as it goes.

    candidates   nodes with the same simulation signature, up to complement
    proof        from the inputs up: structural hashing, then a SAT solver on the cone of the pair, cut to size
    merge        later gates read the representative, so every later query is small
    refinement   an input that tells a pair apart is simulated on all nodes and splits the other candidates

Every merge is written down as clauses that follow by unit propagation from the circuit's clauses and the clauses
before them (the solver's learnt clauses included), so the whole sweep is one DRUP proof that ``circuit.rup`` can check.
"""

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from jaxtyping import Bool, Int32, UInt8, UInt64

from gatefit.circuit import sweep_numba as kernels
from gatefit.circuit.cnf import DELETE, PRIME_CLAUSES
from gatefit.circuit.miter import Graph, dimacs

PATTERNS: Final = 2**16
CHUNK_WORDS: Final = 16
"""Random patterns to simulate, and how many words of 64 of them at a time, so that they stay in the cache."""

WINDOWS: Final = (6, 24, 96, 400, 2_000_000_000)
"""Gates in the cone around a candidate pair, tried in this order."""

CONFLICTS: Final = 300
SLICE: Final = 20_000
"""Conflicts allowed for an inner pair; and between two looks at the clock for a pair that must be decided."""

REFINE_AFTER: Final = 32
"""Telling inputs to gather before the candidates are regrouped."""


@dataclass(frozen=True, eq=False)
class Swept:
    """What a sweep found."""

    literals: Int32[np.ndarray, "nodes"]
    """For every node a literal that equals it: of its representative, or its own."""
    proof: Int32[np.ndarray, "steps"]
    patterns: Bool[np.ndarray, "patterns inputs"]
    """Inputs, found by the solver, on which candidates differ."""
    queries: int
    complete: bool
    """Whether every pair that had to be decided was decided before the deadline."""


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


def signatures(
    graph: Graph, patterns: int = PATTERNS, seed: int = 0
) -> tuple[UInt64[np.ndarray, "nodes"], UInt8[np.ndarray, "nodes"]]:
    """A hash of every node's values on random patterns, equal for complements, and its value on all zeros."""
    hashes, phases = np.zeros(graph.nodes, np.uint64), np.zeros(graph.nodes, np.uint8)
    for i, words in enumerate(random_chunks(graph.inputs, patterns, seed)):
        values = simulate_chunk(graph, words)
        if i == 0:
            phases[:] = values[:, 0] & np.uint64(1)
        kernels.update_signatures(values, phases, hashes)
    return hashes, phases


def sweep(
    graph: Graph,
    wanted: Int32[np.ndarray, "wanted"],
    *,
    deadline: float = math.inf,
    known: tuple[UInt64[np.ndarray, "nodes"], UInt8[np.ndarray, "nodes"]] | None = None,
    seed: int = 0,
) -> Swept:
    """Merge equal nodes in the cones of ``wanted``, whose own candidates are decided however long it takes.

    ``deadline`` is a value of ``time.monotonic``; ``known`` are the graph's signatures, if computed
    before.
    """
    run = _Sweep(graph, wanted, deadline, *(known or signatures(graph, seed=seed)), seed)
    order = np.argsort(run.level, kind="stable")
    order = order[run.level[order] > 0].astype(np.int32)
    for nodes in np.split(order, np.flatnonzero(np.diff(run.level[order])) + 1):
        run.merge_level(nodes)
    return Swept(run.literals, run.proof(), run.found_patterns(), run.queries, run.complete)


class _Sweep:
    """The state of one sweep."""

    def __init__(
        self,
        graph: Graph,
        wanted: Int32[np.ndarray, "wanted"],
        deadline: float,
        hashes: UInt64[np.ndarray, "nodes"],
        phases: UInt8[np.ndarray, "nodes"],
        seed: int,
    ) -> None:
        from pysat.solvers import Solver

        self.new_solver: Callable[..., Any] = Solver
        self.graph, self.deadline = graph, deadline
        self.hashes, self.phases = hashes.copy(), phases
        self.rng = np.random.default_rng((seed, 1))
        self.wanted = np.zeros(graph.nodes, bool)
        self.wanted[wanted] = True
        self.level = kernels.levels_of(graph.inputs, graph.gates, graph.operands, wanted)
        self.literals = np.arange(0, 2 * graph.nodes, 2, dtype=np.int32)
        self.kinds = np.zeros(graph.nodes, np.uint8)
        self.reads = np.zeros((2, graph.nodes), np.int32)
        slots = 1 << (2 * graph.nodes).bit_length()
        self.keys, self.found = np.full(slots, -1, np.int64), np.zeros(slots, np.int32)
        self.stamp, self.visited = 0, np.zeros(graph.nodes, np.int32)
        self.values = np.zeros((graph.nodes, 4), np.uint64)
        self.inner, self.leaves = np.zeros(graph.nodes, np.int32), np.zeros(graph.nodes, np.int32)
        self.representatives = list(range(1 + graph.inputs))
        self.table = self._by_signature()
        self.steps: list[Int32[np.ndarray, "_"]] = []
        self.recent: list[UInt64[np.ndarray, "nodes"]] = []
        self.patterns: list[Bool[np.ndarray, "inputs"]] = []
        self.queries, self.complete = 0, True

    def proof(self) -> Int32[np.ndarray, "steps"]:
        return np.concatenate([np.empty(0, np.int32), *self.steps])

    def found_patterns(self) -> Bool[np.ndarray, "patterns inputs"]:
        return np.array(self.patterns, bool).reshape(-1, self.graph.inputs)

    def merge_level(self, nodes: Int32[np.ndarray, "nodes"]) -> None:
        """Settle nodes that do not depend on one another, everything below them being settled."""
        graph, steps = self.graph, np.empty(24 * nodes.size, np.int32)
        used = kernels.reduce_nodes(
            nodes, graph.inputs, graph.gates, graph.operands, self.literals, self.kinds, self.reads, self.keys,
            self.found, steps,
        )  # fmt: skip
        self.steps.append(steps[:used].copy())
        pending = nodes[self.literals[nodes] == 2 * nodes].tolist()
        while pending:
            pending = self._match(pending)
        used = kernels.follow_literals(nodes, self.literals, steps)
        self.steps.append(steps[:used].copy())

    def _match(self, nodes: list[int]) -> list[int]:
        """Compare each node with the representative of its signature; return those that now need another one."""
        later = []
        for node in nodes:
            other = self.table.get(int(self.hashes[node]))
            if other is None:
                self.table[int(self.hashes[node])] = node
                self.representatives.append(node)
                continue
            inverted = int(self.phases[node] ^ self.phases[other])
            mask = np.uint64(2**64 - 1) if inverted else np.uint64(0)
            if any(words[node] ^ words[other] ^ mask for words in self.recent):
                later.append(node)
            elif time.monotonic() > self.deadline:
                self.complete &= not self.wanted[node]
                self.representatives.append(node)
            else:
                equal = self._decide(node, other, inverted)
                if equal:
                    self.literals[node] = 2 * other + inverted
                elif equal is None:
                    self.complete &= not self.wanted[node]
                    self.representatives.append(node)
                else:
                    later.append(node)
            if len(self.recent) >= REFINE_AFTER:
                self._refine()
        self._refine()
        return later

    def _refine(self) -> None:
        if self.recent:
            kernels.update_signatures(np.stack(self.recent, axis=1), self.phases, self.hashes)
            self.recent.clear()
            self.table = self._by_signature()

    def _by_signature(self) -> dict[int, int]:
        """The earliest representative of every signature."""
        keys = self.hashes[self.representatives].tolist()
        return dict(zip(reversed(keys), reversed(self.representatives), strict=True))

    def _decide(self, node: int, other: int, inverted: int) -> bool | None:
        """Whether node equals other (complemented if ``inverted``); None if that costs more than it may."""
        roots = np.array([node, other, inverted], np.int32)
        for limit in WINDOWS:
            self.stamp += 1
            gates, free, full, differs = kernels.cut_window(
                roots, limit, self.graph.inputs, self.level, self.kinds, self.reads, self.stamp, self.visited,
                self.values, self.inner, self.leaves,
            )  # fmt: skip
            inner, leaves = self.inner[:gates].tolist(), self.leaves[:free]
            if differs >= 0:
                if full:
                    ones = self.values[leaves, differs // 64] >> np.uint64(differs % 64) & np.uint64(1)
                    return self._tell_apart(leaves - 1, ones.astype(bool))
                continue
            equal, ones = self._solve(node, other, inverted, inner, leaves.tolist(), full and bool(self.wanted[node]))
            if equal:
                return True
            if equal is None and not self.wanted[node]:
                return None
            if full:
                return None if equal is None else self._tell_apart(leaves - 1, ones)
        raise AssertionError("the last window is the whole cone")

    def _solve(
        self, node: int, other: int, inverted: int, inner: list[int], leaves: list[int], must: bool
    ) -> tuple[bool | None, Bool[np.ndarray, "leaves"]]:
        """Ask the solver on one window: if equal, the proof has been written; if not, the leaves' values say why."""
        self.queries += 1
        names = [*inner, *leaves, 0]
        local = {n: i for i, n in enumerate(names, start=1)}
        clauses = [[-len(names)]]
        for n in inner:
            variables = (local[int(self.reads[0, n])], local[int(self.reads[1, n])], local[n])
            for clause in PRIME_CLAUSES[self.kinds[n]]:
                clauses.append([s * v for s, v in zip(clause, variables, strict=True) if s])
        x, y = local[node], -local[other] if inverted else local[other]
        name = "cadical195" if must else "glucose4"
        with self.new_solver(name=name, bootstrap_with=clauses, with_proof=True) as solver:
            for assumptions in ([x, -y], [-x, y]):
                answer = None
                while answer is None:
                    solver.conf_budget(SLICE if must else CONFLICTS)
                    answer = solver.solve_limited(assumptions=assumptions)
                    if answer is None and (not must or time.monotonic() > self.deadline):
                        return None, np.empty(0, bool)
                if answer:
                    model = np.array(solver.get_model()[: len(names)])
                    return False, model[len(inner) : len(inner) + len(leaves)] > 0
            learnt = solver.get_proof()
        self._write(node, 2 * other + inverted, learnt, names)
        return True, np.empty(0, bool)

    def _write(self, node: int, literal: int, learnt: list[str], names: list[int]) -> None:
        """Append the solver's clauses, the equality that follows from them, and their deletion."""
        number = [0, *(n + 1 for n in names)]
        clauses = []
        for line in learnt:
            # The bare "0" that some solvers write means: unsatisfiable under the assumptions.
            if line[0] not in "d0":
                signed = map(int, line.split())
                clauses.append([number[v] if v >= 0 else -number[-v] for v in signed])
        steps = [v for clause in clauses for v in clause]
        one, two = node + 1, int(dimacs(np.array(literal)))
        steps += [-one, two, 0, one, -two, 0]
        for clause in clauses:
            if len(clause) > 2:  # what a unit clause says is never unlearnt
                steps += [DELETE, *clause]
        self.steps.append(np.array(steps, np.int32))

    def _tell_apart(self, positions: Int32[np.ndarray, "leaves"], ones: Bool[np.ndarray, "leaves"]) -> bool:
        """Simulate an input on which two candidates differ, with 63 inputs near it; returns False: not equal."""
        inputs = self.graph.inputs
        words = self.rng.integers(0, 2**64, size=(inputs, 1), dtype=np.uint64)
        flips = words[positions] & self.rng.integers(0, 2**64, size=(len(positions), 1), dtype=np.uint64)
        flips &= self.rng.integers(0, 2**64, size=(len(positions), 1), dtype=np.uint64) & ~np.uint64(1)
        words[positions] = np.where(ones[:, None], ~np.uint64(0), np.uint64(0)) ^ flips
        self.patterns.append((words[:, 0] & np.uint64(1)).astype(bool))
        self.recent.append(simulate_chunk(self.graph, words)[:, 0])
        return False
