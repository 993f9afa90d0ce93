"""SAT sweeping: find nodes that are equal up to complement, prove it, and merge them as it goes.

    candidates   nodes with the same simulation signature, up to complement
    proof        from the inputs up: structural hashing, then a SAT solver on a window around the pair, then on its cone
    merge        later gates read the representative, so every later question is small
    refinement   an input that tells a pair apart is simulated on all nodes and splits the other candidates

Every merge is written down as clauses that follow by unit propagation from the circuit's clauses and the clauses
before them (the solver's learnt clauses included), so the whole sweep is one DRUP proof that ``circuit.rup`` can check.
"""

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Bool, Int32, Int64, UInt64

from gatefit.circuit import sweep_numba as kernels
from gatefit.circuit.miter import Graph
from gatefit.circuit.patterns import Signatures, signatures, simulate_chunk
from gatefit.circuit.queries import CONFLICTS, Answer, Effort, Pair, WholeCones, ask_solver
from gatefit.circuit.window_numba import EQUAL, OPEN, decide_window

WINDOWS: Final = (6, 24, 96)
"""Gates around a candidate pair, tried in this order before its whole cone."""

BRANCHES: Final = 64
"""Failed branches that our own prover may write down before a solver takes over."""

CANDIDATES: Final = 64
"""How many nodes with one signature are compared with a new one; there is one, unless some pairs stayed open."""

REFINE_AFTER: Final = 32
"""Telling inputs to gather before the candidates are regrouped."""

GIVE_UP_AFTER: Final = 8
"""Whole cones that may stay open for one representative before windows must do."""


@dataclass(frozen=True, eq=False)
class Swept:
    """What a sweep found."""

    literals: Int32[np.ndarray, " nodes"]
    """For every node a literal that equals it: of its representative, or its own."""
    proof: Int32[np.ndarray, " steps"]
    words: UInt64[np.ndarray, "inputs words"]
    """Inputs, 64 a word, on which candidates were found to differ: in each word the first one, and 63 near it."""
    queries: int
    """Nodes that structural hashing could not settle."""


def sweep(
    graph: Graph,
    roots: Int32[np.ndarray, " roots"],
    *,
    budgets: Int64[np.ndarray, " nodes"] | None = None,
    effort: Effort | None = None,
    known: Signatures | None = None,
    seed: int = 0,
) -> Swept:
    """Merge equal nodes in the cones of ``roots``.

    ``budgets`` are the conflicts that a node's last question may cost (few, by default), ``effort`` is what all
    questions together may cost, and is drawn on, ``known`` are the graph's signatures if computed before.
    """
    if budgets is None:
        budgets = np.full(graph.nodes, CONFLICTS)
    run = _Sweep(graph, roots, budgets, effort or Effort(), known or signatures(graph, seed=seed), seed)
    order = np.argsort(run.level, kind="stable")
    order = order[run.level[order] > 0].astype(np.int32)
    for nodes in np.split(order, np.flatnonzero(np.diff(run.level[order])) + 1):
        run.merge_level(nodes)
    run.cones.close()
    proof = np.concatenate([np.empty(0, np.int32), *run.steps])
    words = np.concatenate([np.empty((graph.inputs, 0), np.uint64), *run.words], axis=1)
    return Swept(run.literals, proof, words, run.queries)


class _Sweep:
    """The state of one sweep."""

    def __init__(
        self,
        graph: Graph,
        roots: Int32[np.ndarray, " roots"],
        budgets: Int64[np.ndarray, " nodes"],
        effort: Effort,
        known: Signatures,
        seed: int,
    ) -> None:
        self.graph, self.budgets, self.effort = graph, budgets, effort
        self.hashes, self.phases = known[0].copy(), known[1]
        self.rng = np.random.default_rng((seed, 1))
        self.level = kernels.levels_of(graph.inputs, graph.gates, graph.operands, roots)
        self.literals = np.arange(0, 2 * graph.nodes, 2, dtype=np.int32)
        self.kinds = np.zeros(graph.nodes, np.uint8)
        self.reads = np.zeros((2, graph.nodes), np.int32)
        slots = 1 << (2 * graph.nodes).bit_length()
        self.keys, self.found = np.full(slots, -1, np.int64), np.zeros(slots, np.int32)
        self.stamp, self.visited = 0, np.zeros(graph.nodes, np.int32)
        self.values = np.zeros((graph.nodes, 4), np.uint64)
        self.inner, self.leaves = np.zeros(graph.nodes, np.int32), np.zeros(graph.nodes, np.int32)
        self.branch, self.trail = np.full(graph.nodes, -1, np.int8), np.zeros(graph.nodes, np.int32)
        self.branch[0] = 0
        self.ones, self.buffer = np.zeros(2 * WINDOWS[-1] + 2, bool), np.zeros(8 * BRANCHES * WINDOWS[-1], np.int32)
        self.cones = WholeCones(graph.inputs, self.kinds, self.reads)
        self.given_up: Counter[int] = Counter()
        self.representatives = list(range(1 + graph.inputs))
        self.table = self._by_signature()
        self.steps: list[Int32[np.ndarray, " _"]] = []
        self.recent: list[UInt64[np.ndarray, " nodes"]] = []
        self.words: list[UInt64[np.ndarray, "inputs 1"]] = []
        self.queries = 0

    def merge_level(self, nodes: Int32[np.ndarray, " nodes"]) -> None:
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
        """Compare each node with those of the same signature; return those that have another signature by now."""
        later = []
        for node in nodes:
            candidates = self.table[int(self.hashes[node])]
            pairs = [pair for pair in (self._pair(node, other) for other in candidates) if not self._told_apart(pair)]
            equal = self._decide(pairs[-CANDIDATES:]) if pairs else None
            if equal is False or (candidates and not pairs):
                later.append(node)
            elif equal is None:
                candidates.append(node)
                self.representatives.append(node)
            if len(self.recent) >= REFINE_AFTER:
                self._refine()
        self._refine()
        return later

    def _pair(self, node: int, other: int) -> Pair:
        return Pair(node, other, int(self.phases[node] ^ self.phases[other]), int(self.budgets[node]), self.effort)

    def _told_apart(self, pair: Pair) -> bool:
        mask = np.uint64(0) if not pair.inverted else ~np.uint64(0)
        return any(words[pair.node] ^ words[pair.other] ^ mask for words in self.recent)

    def _refine(self) -> None:
        if self.recent:
            kernels.update_signatures(np.stack(self.recent, axis=1), self.phases, self.hashes)
            self.recent.clear()
            self.table = self._by_signature()

    def _by_signature(self) -> defaultdict[int, list[int]]:
        table = defaultdict(list)
        for key, node in zip(self.hashes[self.representatives].tolist(), self.representatives, strict=True):
            table[key].append(node)
        return table

    def _decide(self, pairs: list[Pair]) -> bool | None:
        """True: one pair is equal, and merged. False: one pair differs, on an input now known. None: neither."""
        if self.effort.spent:
            return None
        self.queries += 1
        for limit in WINDOWS:
            for pair in reversed(pairs):
                inner, leaves, full, differs = self._cut(pair, limit)
                if full and differs >= 0:
                    ones = self.values[leaves, differs // 64] >> np.uint64(differs % 64) & np.uint64(1)
                    return self._tell_apart(leaves - 1, ones.astype(bool))
                if differs < 0:
                    answer = self._ask_window(pair, inner, leaves)
                    if answer.equal:
                        return self._merge(pair, answer)
                    if full and answer.equal is False:
                        return self._tell_apart(leaves - 1, answer.ones)
        for pair in reversed(pairs) if pairs[0].conflicts > CONFLICTS else pairs[:1]:
            decided = self._decide_whole(pair)
            if decided is not None:
                return decided
        return None

    def _decide_whole(self, pair: Pair) -> bool | None:
        """The last word on a pair: everything below it."""
        patient = pair.conflicts > CONFLICTS
        if not patient and self.given_up[pair.other] >= GIVE_UP_AFTER:
            return None
        answer = self.cones.ask(pair)
        if answer.equal is False:
            return self._tell_apart(np.arange(self.graph.inputs), answer.ones)
        if answer.equal or patient:  # equal, but without a proof; or worth a new solver's time
            inner, leaves, _, _ = self._cut(pair, self.graph.nodes)
            answer = ask_solver(pair, inner, leaves, self.kinds, self.reads, pair.conflicts)
            if answer.equal:
                return self._merge(pair, answer)
            if answer.equal is False:
                return self._tell_apart(leaves - 1, answer.ones)
        self.given_up[pair.other] += 1
        return None

    def _ask_window(
        self, pair: Pair, inner: Int32[np.ndarray, " gates"], leaves: Int32[np.ndarray, " leaves"]
    ) -> Answer:
        """Ask about a few gates: our own prover, or a solver if it needs too many branches."""
        roots = np.array([pair.node, pair.other, pair.inverted], np.int32)
        equal, used = decide_window(
            roots, inner, leaves, self.kinds, self.reads, self.branch, self.trail, self.ones, self.buffer, BRANCHES
        )
        if equal == OPEN:
            return ask_solver(pair, inner, leaves, self.kinds, self.reads, CONFLICTS)
        return Answer(equal == EQUAL, self.ones[: leaves.size].copy(), self.buffer[:used].copy())

    def _cut(
        self, pair: Pair, limit: int
    ) -> tuple[Int32[np.ndarray, " gates"], Int32[np.ndarray, " leaves"], bool, int]:
        """Gates and leaves around a pair, whether they are its whole cone, and where random leaves tell it apart."""
        self.stamp += 1
        gates, free, full, differs = kernels.cut_window(
            np.array([pair.node, pair.other, pair.inverted], np.int32), limit, self.graph.inputs, self.level,
            self.kinds, self.reads, self.stamp, self.visited, self.values, self.inner, self.leaves,
        )  # fmt: skip
        return self.inner[:gates], self.leaves[:free], full, differs

    def _merge(self, pair: Pair, answer: Answer) -> bool:
        """Merge an equal pair and keep the proof."""
        self.literals[pair.node] = 2 * pair.other + pair.inverted
        self.steps.append(answer.steps)
        return True

    def _tell_apart(self, positions: Int32[np.ndarray, " leaves"], ones: Bool[np.ndarray, " leaves"]) -> bool:
        """Simulate an input on which two candidates differ, with 63 inputs near it; returns False: not equal."""
        inputs = self.graph.inputs
        words = self.rng.integers(0, 2**64, size=(inputs, 1), dtype=np.uint64)
        flips = words[positions] & self.rng.integers(0, 2**64, size=(len(positions), 1), dtype=np.uint64)
        flips &= self.rng.integers(0, 2**64, size=(len(positions), 1), dtype=np.uint64) & ~np.uint64(1)
        words[positions] = np.where(ones[:, None], ~np.uint64(0), np.uint64(0)) ^ flips
        self.words.append(words)
        self.recent.append(simulate_chunk(self.graph, words)[:, 0])
        return False
