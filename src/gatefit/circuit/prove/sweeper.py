"""SAT sweeping: find nodes that are equal up to complement, show it, and merge them as it goes.

    candidates   nodes with the same signature on simulated patterns, up to complement
    decision     from the inputs up: structural hashing, then a few gates around the pair, then everything below it
    merge        later gates read the representative, so every later question is small
    refinement   an input that tells a pair apart is simulated on all nodes and splits the other candidates

With ``proof``, every merge is written down as clauses that follow by unit propagation from the circuit's clauses and
the clauses before them (the solver's learnt clauses included), so the whole sweep is one DRUP proof that ``prove.rup``
can check. Without it, a solver that keeps all it learnt is asked and believed: that is faster, and enough for a pass
whose result is proven as a whole.
"""
# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Bool, Int32, Int64, UInt64

from gatefit.circuit.logic.cnf import DELETE
from gatefit.circuit.logic.graph import Graph, levels, readers
from gatefit.circuit.logic.hashing import empty_table, find
from gatefit.circuit.logic.literals import TRUE, normal_gate
from gatefit.circuit.logic.words import Signatures, signatures, simulate_words
from gatefit.circuit.prove.questions import CONE_CONFLICTS, CONFLICTS, Answer, Effort, Pair, WholeCones, ask_solver
from gatefit.circuit.prove.window import EQUAL, OPEN, cut_window, decide_window
from gatefit.compiled import njit
from gatefit.gates import Gate

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

_STEPS: Final = 24
"""Numbers that the steps for one merge by structure take at most, deletions included."""

_XOR: Final = int(Gate.XOR)
_XNOR: Final = int(Gate.XNOR)


@dataclass(frozen=True, eq=False)
class Swept:
    """What a sweep found."""

    literals: Int32[np.ndarray, " nodes"]
    """For every node a literal that equals it: of its representative, or its own."""
    proof: Int32[np.ndarray, " steps"]
    """Empty if none was asked for."""
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
    proof: bool = True,
) -> Swept:
    """Merge equal nodes in the cones of ``roots``, lower levels first.

    ``budgets`` are the conflicts that a node's last question may cost (few, by default), ``effort`` is what all
    questions together may cost, and is drawn on, ``known`` are the graph's signatures if computed before.
    """
    if budgets is None:
        budgets = np.full(graph.nodes, CONFLICTS)
    run = _Sweep(graph, roots, budgets, effort or Effort(), known or signatures(graph, seed=seed), seed, proof)
    run.settle_all()
    steps = np.concatenate([np.empty(0, np.int32), *run.steps])
    words = np.concatenate([np.empty((graph.inputs, 0), np.uint64), *run.words], axis=1)
    return Swept(run.literals, steps, words, run.queries)


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
        proof: bool,
    ) -> None:
        self.graph, self.budgets, self.effort, self.proof = graph, budgets, effort, proof
        self.rng = np.random.default_rng((seed, 1))
        self.level = levels(graph)
        first = 1 + graph.inputs
        live = readers(graph, roots) > 0
        live[:first] = True
        self.known = known.among(live)
        # By level, and of one level in the graph's order: every node comes after those that it depends on.
        gates = first + np.flatnonzero(live[first:])
        self.order = gates[np.argsort(self.level[gates], kind="stable")].astype(np.int32)
        self.literals = np.arange(0, 2 * graph.nodes, 2, dtype=np.int32)
        self.kinds = np.zeros(graph.nodes, np.uint8)
        self.reads = np.zeros((2, graph.nodes), np.int32)
        self.slots = empty_table(graph.nodes)
        self.stamp, self.visited = 0, np.zeros(graph.nodes, np.int32)
        self.values = np.zeros((graph.nodes, 4), np.uint64)
        self.heap, self.decisions = np.zeros(graph.nodes, np.int64), np.zeros((WINDOWS[-1] + 1, 3), np.int64)
        self.inner, self.leaves = np.zeros(graph.nodes, np.int32), np.zeros(graph.nodes, np.int32)
        self.branch, self.trail = np.full(graph.nodes, -1, np.int8), np.zeros(graph.nodes, np.int32)
        self.branch[0] = 0
        self.ones, self.buffer = np.zeros(2 * WINDOWS[-1] + 2, bool), np.zeros(8 * BRANCHES * WINDOWS[-1], np.int32)
        self.given_up: Counter[int] = Counter()
        self.rank = np.full(graph.nodes, -1)
        self.rank[self.order] = np.arange(self.order.size)
        self.group = np.full(graph.nodes, -1)
        self._regroup(0)
        self.steps: list[Int32[np.ndarray, " _"]] = []
        self.recent: list[UInt64[np.ndarray, " nodes"]] = []
        self.words: list[UInt64[np.ndarray, "inputs 1"]] = []
        self.queries = 0

    def settle_all(self) -> None:
        """Give every node its literal: by structure as far as that goes, and else by comparing candidates."""
        graph, at = self.graph, 0
        steps = np.empty(_STEPS * min(self.order.size, 4096) if self.proof else 0, np.int32)
        with WholeCones(graph.inputs, self.kinds, self.reads) as self.cones:
            while at < self.order.size:
                at, used, pending = _settle(
                    self.order, at, graph.inputs, graph.gates, graph.operands, self.literals, self.kinds, self.reads,
                    self.slots, self.group, self.leaders, steps,
                )  # fmt: skip
                self.steps.append(steps[:used].copy())
                if pending:
                    self._compare(int(self.order[at - 1]))
                    if len(self.recent) >= REFINE_AFTER:
                        self.known.mix(np.stack(self.recent, axis=1))
                        self.known.regroup()
                        self.recent.clear()
                        self._regroup(at)

    def _regroup(self, settled: int) -> None:
        """Sort the representatives among the first ``settled`` nodes by their signatures' numbers."""
        members, classes = self.known.members, self.known.classes
        self.group[:] = -1
        self.group[members] = classes
        own = members[(self.rank[members] < settled) & (self.literals[members] == 2 * members)]
        own = own[np.argsort(self.rank[own], kind="stable")]
        numbers, first = np.unique(self.group[own], return_index=True)
        self.leaders = np.full(int(classes.max(initial=-1)) + 1, -1, np.int32)
        self.leaders[numbers] = own[first]
        self.others: defaultdict[int, list[int]] = defaultdict(list)
        for node in np.delete(own, first).tolist():
            self.others[int(self.group[node])].append(node)

    def _compare(self, node: int) -> None:
        """Compare a node with the representatives of the same signature; it becomes one if it equals none."""
        number = int(self.group[node])
        candidates = [int(self.leaders[number]), *self.others[number]]
        pairs = self._not_told_apart([self._pair(node, other) for other in candidates])
        equal = self._decide(pairs[-CANDIDATES:]) if pairs else None
        while equal is False:
            left = self._not_told_apart(pairs)
            # An input that tells nothing apart can only come from a merge that was wrong: the proof will show it.
            equal = self._decide(left[-CANDIDATES:]) if 0 < len(left) < len(pairs) else None
            pairs = left
        if equal is None:
            self.others[number].append(node)

    def _pair(self, node: int, other: int) -> Pair:
        phases = self.known.phases
        return Pair(node, other, int(phases[node] ^ phases[other]), int(self.budgets[node]), self.effort)

    def _not_told_apart(self, pairs: list[Pair]) -> list[Pair]:
        """The pairs that no input since the last regrouping tells apart."""
        masks = np.uint64(0), ~np.uint64(0)
        return [p for p in pairs if all(w[p.node] ^ w[p.other] == masks[p.inverted] for w in self.recent)]

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
        answer = self.cones.ask(pair, CONE_CONFLICTS if self.proof else pair.conflicts)
        if answer.equal is False:
            return self._tell_apart(np.arange(self.graph.inputs), answer.ones)
        if answer.equal and not self.proof:
            return self._merge(pair, answer)
        if self.proof and (answer.equal or patient):  # equal, but without a proof; or worth a new solver's time
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
            roots, inner, leaves, self.kinds, self.reads, self.branch, self.trail, self.decisions, self.ones,
            self.buffer, BRANCHES,
        )  # fmt: skip
        if equal == OPEN:
            return ask_solver(pair, inner, leaves, self.kinds, self.reads, CONFLICTS) if self.proof else Answer(None)
        return Answer(equal == EQUAL, self.ones[: leaves.size].copy(), self.buffer[:used].copy())

    def _cut(
        self, pair: Pair, limit: int
    ) -> tuple[Int32[np.ndarray, " gates"], Int32[np.ndarray, " leaves"], bool, int]:
        """Gates and leaves around a pair, whether they are its whole cone, and where random leaves tell it apart."""
        self.stamp += 1
        gates, free, full, differs = cut_window(
            np.array([pair.node, pair.other, pair.inverted], np.int32), limit, self.graph.inputs, self.level,
            self.kinds, self.reads, self.stamp, self.visited, self.values, self.heap, self.inner, self.leaves,
        )  # fmt: skip
        return self.inner[:gates], self.leaves[:free], full, differs

    def _merge(self, pair: Pair, answer: Answer) -> bool:
        """Merge an equal pair and keep the proof."""
        self.literals[pair.node] = 2 * pair.other + pair.inverted
        if self.proof:
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
        self.recent.append(simulate_words(self.graph, words)[:, 0])
        return False


@njit(cache=True, plain=True)
def _settle(order, at, inputs, gates, operands, literals, kinds, reads, slots, group, leaders, steps):
    """Settle nodes by structure from ``order[at]`` on, up to the first one that has candidates to be compared with.

    A node whose gate over representatives is a literal, or exists, gets its literal and the steps that show it. Else it
    stays, and ``kinds``, ``reads`` and the hash table ``slots`` receive that gate; the first of a group leads it.
    Returns where to go on, how much of ``steps`` was used, and whether the last node waits. Full ``steps`` end it too.
    """
    used, writes = np.int64(0), steps.size > 0
    while at < order.size and (not writes or used + _STEPS <= steps.size):
        node = order[at]
        at += 1
        own = node - inputs - 1
        left, right = literals[operands[0, own]], literals[operands[1, own]]
        done, literal, kind, a, b = normal_gate(np.int64(gates[own]), np.int64(left), np.int64(right))
        if not done:
            found, slot = find(slots, kinds, reads, kind, a, b)
            if found < 0:
                slots[slot] = node
                kinds[node], reads[0, node], reads[1, node] = kind ^ 15 * literal, a, b
                if group[node] >= 0:
                    if leaders[group[node]] >= 0:
                        return at, used, True
                    leaders[group[node]] = node
                continue
            literal ^= np.int64(literals[found] ^ (kinds[found] >> 3))
        literals[node] = literal
        if writes:
            splits = gates[own] in (_XOR, _XNOR) and left > TRUE and right > TRUE
            used = _write_equality(steps, used, node, literal, operands[0, own] if splits else -1)
    return at, used, False


@njit(cache=True, inner=True, plain=True)
def _write_equality(steps, at, node, literal, helper):
    """Write the steps for node = literal; ``helper`` is a node to split on first, -1 for none."""
    variable, other = node + 1, (literal >> 1) + 1
    for sign in (-1, 1):
        # The clause (±node or ∓literal); a constant literal leaves a unit clause, or nothing to say.
        right = -sign * (-other if literal & 1 else other)
        if other == 1:
            if right == -1:
                continue
            right = 0
        for split in range(3 if helper >= 0 else 1):
            if split == 2:
                steps[at] = DELETE
                at += 1
            steps[at] = sign * variable
            at += 1
            if right:
                steps[at] = right
                at += 1
            if helper >= 0 and split != 1:
                steps[at] = helper + 1
                at += 1
            steps[at] = 0
            at += 1
    return at
