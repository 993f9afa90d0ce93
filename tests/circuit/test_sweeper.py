"""SAT sweeping: what it merges is equal, what is equal it merges, and its proof holds."""

import time

import numpy as np
import pytest

from faults import needle_circuit
from gatefit.circuit.ir import Circuit
from gatefit.circuit.logic.cnf import Cnf, gate_clauses
from gatefit.circuit.logic.graph import Graph
from gatefit.circuit.logic.literals import dimacs
from gatefit.circuit.logic.words import signatures
from gatefit.circuit.prove.miter import join
from gatefit.circuit.prove.questions import Effort, Pair, WholeCones, ask_solver
from gatefit.circuit.prove.rup import find_flaw
from gatefit.circuit.prove.sweeper import sweep
from gatefit.circuit.prove.window import DIFFERENT, EQUAL, OPEN, decide_window
from gatefit.circuit.readout import GroupSum
from gatefit.circuit.simulate import simulate_nodes
from gatefit.gates import Gate
from scramble import scramble
from strategies import all_patterns, layered_circuit, random_circuit


def values_of(spec: Circuit, impl: Circuit) -> np.ndarray:
    """Values of the joined graph's nodes on all patterns, by the reference simulator."""
    bits = all_patterns(spec.inputs)
    false = np.zeros((len(bits), 1), bool)
    nodes = [simulate_nodes(spec, bits), simulate_nodes(impl, bits)[:, impl.inputs :]]
    return np.concatenate([false, *nodes], axis=1).T


def claims_hold(graph: Graph, literals: np.ndarray, proof: np.ndarray) -> str | None:
    """The flaw, if any, in the proof that no node differs from its literal."""
    differing = np.flatnonzero(literals != 2 * np.arange(graph.nodes))
    results = np.arange(1 + graph.inputs, graph.nodes, dtype=np.int32) + 1
    formula = [gate_clauses(graph.gates, graph.operands + 1, results), np.array([-1, 0])]
    flags = graph.nodes + 1 + np.arange(differing.size)
    last = []
    for flag, node in zip(flags, differing, strict=True):
        one, two = node + 1, int(dimacs(literals[node : node + 1])[0])
        formula.append([-flag, one, two, 0, -flag, -one, -two, 0])
        last += [-flag, one, 0, -flag, 0]
    formula += [flags, [0]]
    cnf = Cnf(graph.nodes + differing.size, np.concatenate(formula).astype(np.int32))
    return find_flaw(cnf, np.concatenate([proof, last, [0]]).astype(np.int32))


@pytest.mark.parametrize("proof", [True, False])
@pytest.mark.parametrize("patterns", [0, 64, 4096])
def test_merges_exactly_the_equal_nodes(patterns, proof):
    """In small circuits no question is too hard: equal nodes and complements end up with the same representative."""
    rng = np.random.default_rng(patterns)
    merged = 0
    for _ in range(60):
        spec = random_circuit(rng, max_inputs=8, max_gates=40)
        impl = scramble(rng, spec) if rng.random() < 0.5 else random_circuit(rng, 8, 40)
        if impl.inputs != spec.inputs:
            continue
        graph, outputs = join(spec, impl)
        swept = sweep(graph, outputs, known=signatures(graph, patterns), proof=proof)
        values = values_of(spec, impl)
        literals = swept.literals
        assert np.array_equal(values, values[literals >> 1] ^ (literals & 1).astype(bool)[:, None])
        live = np.zeros(graph.nodes, bool)
        live[outputs] = True
        for gate in range(graph.gates.size - 1, -1, -1):
            reads = Gate(graph.gates[gate]).depends_on_a, Gate(graph.gates[gate]).depends_on_b
            live[graph.operands[np.array(reads), gate]] |= live[1 + graph.inputs + gate]
        live[: 1 + graph.inputs] = True
        normal = values ^ values[:, :1]
        functions, representatives = {}, {}
        for node in np.flatnonzero(live):
            functions.setdefault(normal[node].tobytes(), set()).add(int(literals[node] >> 1))
            representatives.setdefault(int(literals[node] >> 1), set()).add(normal[node].tobytes())
        assert all(len(x) == 1 for x in functions.values())
        assert all(len(x) == 1 for x in representatives.values())
        merged += int(np.count_nonzero(literals[live] >> 1 != np.flatnonzero(live)))
        if proof:
            assert claims_hold(graph, literals, swept.proof) is None
        else:
            assert swept.proof.size == 0
    assert merged > 500


def test_the_proof_is_needed():
    rng = np.random.default_rng(9)
    spec = layered_circuit(rng, 20, 60, 4)
    impl = scramble(rng, spec)
    graph, outputs = join(spec, impl)
    swept = sweep(graph, outputs)
    assert swept.queries > 10
    assert claims_hold(graph, swept.literals, swept.proof) is None
    assert claims_hold(graph, swept.literals, swept.proof[:0]) is not None
    wrong = swept.literals.copy()
    wrong[outputs[0]] ^= 1
    assert claims_hold(graph, wrong, swept.proof) is not None


def test_the_same_seed_gives_the_same_sweep():
    rng = np.random.default_rng(10)
    spec = layered_circuit(rng, 16, 50, 5)
    graph, outputs = join(spec, scramble(rng, spec))
    one, two = (sweep(graph, outputs, known=signatures(graph, 0, seed=5), seed=5) for _ in range(2))
    assert np.array_equal(one.literals, two.literals)
    assert np.array_equal(one.proof, two.proof)
    assert np.array_equal(one.words, two.words)
    assert one.words.size > 0


def test_after_the_deadline_only_structure_is_used():
    rng = np.random.default_rng(11)
    spec = layered_circuit(rng, 16, 50, 5)
    graph, outputs = join(spec, scramble(rng, spec))
    swept = sweep(graph, outputs, effort=Effort(deadline=time.monotonic() - 1))
    assert swept.queries == 0
    assert claims_hold(graph, swept.literals, swept.proof) is None


def test_inputs_that_are_returned_tell_nodes_apart():
    """A needle in 2^20: found by the solver, not by chance."""
    needle = np.random.default_rng(0).random(20) < 0.5
    spec = needle_circuit(needle)
    graph, outputs = join(spec, spec)
    swept = sweep(graph, outputs, known=signatures(graph, 64))
    assert any(np.array_equal(column & np.uint64(1), needle) for column in swept.words.T)
    assert swept.literals[outputs[0]] >> 1 != 0


def test_small_windows_are_decided_with_a_proof_or_an_example():
    """Pairs of nodes over all their inputs: the answer is the truth, and it comes with evidence."""
    rng = np.random.default_rng(13)
    answers = {EQUAL: 0, DIFFERENT: 0, OPEN: 0}
    for _ in range(100):
        inputs, gates = int(rng.integers(2, 6)), int(rng.integers(2, 25))
        first, nodes = 1 + inputs, 1 + inputs + gates
        # Reduced gates depend on both operands, which are two nodes, not one, and no constants.
        kinds, reads = np.zeros(nodes, np.uint8), np.zeros((2, nodes), np.int32)
        kinds[first:] = rng.choice([1, 2, 4, 6, 7, 8, 9, 11, 13, 14], gates)
        for node in range(first, nodes):
            reads[:, node] = 1 + rng.choice(node - 1, 2, replace=False)
        graph = Graph(inputs, kinds[first:], reads[:, first:])
        circuit = Circuit(inputs, graph.gates, graph.operands - 1, [], GroupSum([], [0]))
        values = simulate_nodes(circuit, all_patterns(inputs)).T
        values = np.concatenate([np.zeros_like(values[:1]), values])
        inner, leaves = np.arange(nodes - 1, inputs, -1, dtype=np.int32), np.arange(1, first, dtype=np.int32)
        branch, trail, steps = np.full(nodes, -1, np.int8), np.zeros(nodes, np.int32), np.zeros(20_000, np.int32)
        branch[0] = 0
        for _ in range(30):
            node, other = int(rng.integers(first, nodes)), int(rng.integers(nodes))
            inverted, ones = int(values[node, 0] ^ values[other, 0]), np.zeros(leaves.size, bool)
            if node == other:
                continue
            roots, limit = np.array([node, other, inverted], np.int32), int(rng.choice([1, 64]))
            decisions = np.zeros((gates + 1, 3), np.int64)
            answer, used = decide_window(
                roots, inner, leaves, kinds, reads, branch, trail, decisions, ones, steps, limit
            )
            answers[answer] += 1
            assert branch.tolist() == [0] + [-1] * (nodes - 1)
            if answer == EQUAL:
                assert np.array_equal(values[node], values[other] ^ bool(inverted))
                literals = 2 * np.arange(nodes, dtype=np.int32)
                literals[node] = 2 * other + inverted
                assert claims_hold(graph, literals, steps[:used]) is None
            elif answer == DIFFERENT:
                at = int(ones @ (1 << np.arange(inputs)))
                assert values[node, at] != values[other, at] ^ bool(inverted)
    assert min(answers.values()) > 50, answers


def two_parities(inputs):
    """Exclusive ors of all inputs, in two orders, and the first of them and an input; kinds and reads by node."""
    first, kinds, reads = 1 + inputs, [0] * (1 + inputs), [(0, 0)] * (1 + inputs)
    ends = []
    for order in (list(range(1, first)), list(range(inputs, 0, -1))):
        last = order[0]
        for leaf in order[1:]:
            kinds.append(int(Gate.XOR))
            reads.append((last, leaf))
            last = len(kinds) - 1
        ends.append(last)
    kinds.append(int(Gate.AND))
    reads.append((ends[0], 1))
    return np.array(kinds, np.uint8), np.array(reads, np.int32).T, ends


@pytest.mark.parametrize("inverted", [0, 1])
def test_the_three_answers_of_both_solvers(inverted):
    kinds, reads, (one, two) = two_parities(12)
    nodes = kinds.size
    kinds[two] ^= 15 * inverted
    inner, leaves = np.arange(nodes - 1, 12, -1, dtype=np.int32), np.arange(1, 13, dtype=np.int32)
    equal = Pair(two, one, inverted, 50_000, Effort())
    differs = Pair(nodes - 1, one, 0, 50_000, Effort())
    with WholeCones(12, kinds, reads) as cones:
        for ask in (
            lambda pair, conflicts: ask_solver(pair, inner, leaves, kinds, reads, conflicts),
            cones.ask,
        ):
            assert ask(equal, 1).equal is None
            answer = ask(differs, 50_000)
            assert answer.equal is False
            assert answer.ones.sum() % 2 == 1  # then the parity is one,
            assert not answer.ones[0]  # and the AND with the first input is not
            assert ask(equal, 50_000).equal is True
    assert ask_solver(equal, inner, leaves, kinds, reads, 50_000).steps.size > 0
    spent = Pair(two, one, inverted, 50_000, Effort(conflicts=3))
    assert ask_solver(spent, inner, leaves, kinds, reads, 50_000).equal is None
    assert spent.effort.spent
