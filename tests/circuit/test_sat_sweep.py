"""SAT sweeping: what it merges is equal, what is equal it merges, and its proof holds."""

import time

import numpy as np
import pytest

from faults import needle_circuit
from gatefit.circuit.cnf import Cnf, gate_clauses
from gatefit.circuit.ir import Circuit
from gatefit.circuit.miter import Graph, dimacs, join
from gatefit.circuit.patterns import random_chunks, signatures, simulate_chunk
from gatefit.circuit.queries import Effort
from gatefit.circuit.readout import GroupSum
from gatefit.circuit.rup import find_flaw
from gatefit.circuit.simulate import simulate_nodes
from gatefit.circuit.sweep import sweep
from gatefit.circuit.window_numba import DIFFERENT, EQUAL, OPEN, decide_window
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


@pytest.mark.parametrize("patterns", [0, 64, 4096])
def test_merges_exactly_the_equal_nodes(patterns):
    """In small circuits no question is too hard: equal nodes and complements end up with the same representative."""
    rng = np.random.default_rng(patterns)
    merged = 0
    for _ in range(60):
        spec = random_circuit(rng, max_inputs=8, max_gates=40)
        impl = scramble(rng, spec) if rng.random() < 0.5 else random_circuit(rng, 8, 40)
        if impl.inputs != spec.inputs:
            continue
        graph, outputs = join(spec, impl)
        swept = sweep(graph, outputs, known=signatures(graph, patterns))
        values = values_of(spec, impl)
        literals = swept.literals
        assert np.array_equal(values, values[literals >> 1] ^ (literals & 1).astype(bool)[:, None])
        live = np.zeros(graph.nodes, bool)
        live[outputs] = True
        for gate in range(graph.gates.size - 1, -1, -1):
            live[graph.operands[:, gate]] |= live[1 + graph.inputs + gate]
        live[: 1 + graph.inputs] = True
        normal = values ^ values[:, :1]
        functions, representatives = {}, {}
        for node in np.flatnonzero(live):
            functions.setdefault(normal[node].tobytes(), set()).add(int(literals[node] >> 1))
            representatives.setdefault(int(literals[node] >> 1), set()).add(normal[node].tobytes())
        assert all(len(x) == 1 for x in functions.values())
        assert all(len(x) == 1 for x in representatives.values())
        merged += int(np.count_nonzero(literals[live] >> 1 != np.flatnonzero(live)))
        assert claims_hold(graph, literals, swept.proof) is None
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


@pytest.mark.parametrize("inputs", [1, 3, 100])
@pytest.mark.parametrize("patterns", [0, 1, 64, 1024, 5000])
def test_random_patterns_are_reproducible_and_hold_all_zeros_and_all_ones(inputs, patterns):
    one, two = (np.concatenate(list(random_chunks(inputs, patterns, 3)), axis=1) for _ in range(2))
    assert np.array_equal(one, two)
    assert one.shape == (inputs, max(1, -(-patterns // 64)))
    assert not (one[:, 0] & np.uint64(1)).any()
    assert patterns == 0 or (one[:, 0] >> np.uint64(1) & np.uint64(1)).all()


def test_chunks_are_simulated_as_the_reference_does():
    rng = np.random.default_rng(12)
    for _ in range(50):
        circuit = random_circuit(rng)
        graph, _ = join(circuit, circuit)
        words = rng.integers(0, 2**64, (circuit.inputs, 2), dtype=np.uint64)
        bits = (words[:, :, None] >> np.arange(64, dtype=np.uint64) & np.uint64(1)).reshape(circuit.inputs, -1).T
        values = simulate_chunk(graph, words)[1 : 1 + circuit.nodes]
        unpacked = (values[:, :, None] >> np.arange(64, dtype=np.uint64) & np.uint64(1)).reshape(circuit.nodes, -1).T
        assert np.array_equal(unpacked.astype(bool), simulate_nodes(circuit, bits.astype(bool)))


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
            answer, used = decide_window(roots, inner, leaves, kinds, reads, branch, trail, ones, steps, limit)
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
