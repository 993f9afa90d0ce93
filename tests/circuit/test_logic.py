"""What passes, proofs and backends share: literals, graphs, structural hashing and words, each against brute force."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gatefit.circuit.engine import Engine
from gatefit.circuit.ir import Circuit
from gatefit.circuit.logic.graph import Graph, as_nodes, levels, readers, without_dead
from gatefit.circuit.logic.hashing import dereference, empty_network, make, reference
from gatefit.circuit.logic.literals import FALSE, TRUE, absorb, absorb_inverters, dimacs, normal_gate, simple_gate
from gatefit.circuit.logic.words import (
    SIMULATORS,
    Signatures,
    all_chunks,
    gate_of_words,
    packed,
    random_chunks,
    signatures,
    simulate_words,
    unpacked,
)
from gatefit.circuit.netlist import Netlist
from gatefit.circuit.readout import GroupSum
from gatefit.circuit.simulate import simulate, simulate_nodes
from gatefit.circuit.statistics import statistics
from gatefit.gates import TRUTH_TABLES, Gate
from strategies import all_patterns, build_circuit, circuits

LITERALS = (FALSE, TRUE, 2, 3, 4, 5)
CORNERS = [(0, x, y) for x, y in product((0, 1), repeat=2)]
"""The values of nodes 0 (false), 1 and 2."""


def value(literal: int, nodes: tuple[int, ...]) -> int:
    return nodes[literal >> 1] ^ (literal & 1)


def values(gate: int, a: int, b: int, inverted: int = 0) -> tuple[int, ...]:
    return tuple(Gate(gate)(value(a, nodes), value(b, nodes)) ^ inverted for nodes in CORNERS)


@pytest.mark.parametrize("gate", Gate)
def test_every_form_of_a_gate_of_literals_computes_the_same(gate):
    for a, b in product(LITERALS, repeat=2):
        expected = values(gate, a, b)
        kind, p, q = absorb_inverters(gate, a, b)
        assert values(kind, p, q) == expected
        assert p & 1 == q & 1 == 0
        kind, p, q = absorb(gate, a, b)
        assert values(kind, p, q) == expected
        assert p & 1 == q & 1 == 0
        assert (p > TRUE and q > TRUE) or (p, q, kind % 15) == (FALSE, FALSE, 0)
        for form, plain in ((simple_gate, lambda p: p), (normal_gate, lambda node: 2 * node)):
            done, literal, kind, p, q = form(gate, a, b)
            if done:
                assert tuple(value(literal, nodes) for nodes in CORNERS) == expected
            else:
                assert values(kind, plain(p), plain(q), literal) == expected
                assert p != q
                assert Gate(kind).depends_on_a
                assert Gate(kind).depends_on_b


def test_gates_are_equal_or_opposite_exactly_if_their_normal_forms_are_equal():
    forms: dict[tuple[int, ...], set[tuple[int, ...]]] = {}
    for gate, a, b in product(Gate, LITERALS, LITERALS):
        done, literal, kind, p, q = normal_gate(gate, a, b)
        form = (literal >> 1,) if done else (kind, p, q)
        function = values(gate, a, b)
        forms.setdefault(tuple(v ^ function[0] for v in function), set()).add(form)
        if not done:
            assert (kind >> 3, p < q) == (0, True)
    assert all(len(found) == 1 for found in forms.values())
    assert len(forms) == len(set().union(*forms.values())) == 8  # constant, x, y, and five gates of both


def test_dimacs_numbers_variables_from_one():
    assert dimacs(np.array([0, 1, 2, 3, 9], np.int32)).tolist() == [1, -1, 2, -2, -5]


def values_of(graph: Graph) -> np.ndarray:
    """The values of all nodes on all patterns, (patterns, nodes), by the definition."""
    circuit = Circuit(graph.inputs, graph.gates, graph.operands - 1, [], GroupSum([], [0]))
    inner = simulate_nodes(circuit, all_patterns(graph.inputs))
    return np.concatenate([np.zeros_like(inner[:, :1]), inner], axis=1)


@given(circuits())
def test_levels_and_readers_are_what_they_say(circuit):
    graph, outputs = Graph.of(circuit), circuit.outputs + 1
    depth, read_by = [0] * (1 + graph.inputs), [set() for _ in range(graph.nodes)]
    for i, (kind, *below) in enumerate(zip(graph.gates.tolist(), *graph.operands.tolist(), strict=True)):
        gate = Gate(kind)
        reads = [n for n, used in zip(below, (gate.depends_on_a, gate.depends_on_b), strict=True) if used]
        depth.append(max([depth[n] for n in reads], default=0) + (len(reads) == 2))
        for n in reads:
            read_by[n].add(1 + graph.inputs + i)
    assert levels(graph).tolist() == depth
    counted = readers(graph, outputs)

    def live(node: int) -> bool:
        return node in outputs or any(live(other) for other in read_by[node])

    assert (counted > 0).tolist() == [live(node) for node in range(graph.nodes)]
    for node in range(graph.nodes):
        by_gates = sum(
            int(graph.operands[k, other - graph.inputs - 1] == node)
            for other in read_by[node]
            for k, used in enumerate((Gate(graph.gates[other - graph.inputs - 1]).depends_on_a,
                                      Gate(graph.gates[other - graph.inputs - 1]).depends_on_b))
            if used and live(other)
        )  # fmt: skip
        assert counted[node] == by_gates + np.count_nonzero(outputs == node)


@given(circuits(max_inputs=4, max_gates=15), st.data())
def test_literals_become_nodes_of_their_own(circuit, data):
    graph = Graph.of(circuit)
    literals = np.array(data.draw(st.lists(st.integers(0, 2 * graph.nodes - 1), max_size=6)), np.int64)
    larger, nodes = as_nodes(graph, literals)
    before, after = values_of(graph), values_of(larger)
    assert np.array_equal(after[:, nodes], before[:, literals >> 1] ^ (literals & 1).astype(bool))
    assert (nodes > 0).all()  # a circuit has no node for the constant
    assert larger.gates.size <= graph.gates.size + np.unique(literals).size


@given(circuits(max_inputs=4))
def test_what_is_not_live_goes(circuit):
    graph, outputs = Graph.of(circuit), circuit.outputs + 1
    smaller, nodes = without_dead(graph, outputs)
    assert smaller.gates.size == np.count_nonzero(readers(graph, outputs)[1 + graph.inputs :])
    assert (readers(smaller, nodes)[1 + graph.inputs :] > 0).all()
    assert np.array_equal(values_of(smaller)[:, nodes], values_of(graph)[:, outputs])


@given(circuits(max_inputs=4), st.data())
def test_a_netlist_of_literals_becomes_a_circuit(circuit, data):
    """Gates over literals of any polarity, constants among them: the outputs are what they say, and nothing is dead."""
    netlist, literals = Netlist(circuit.inputs), [FALSE, *range(2, 2 * circuit.inputs + 1, 2)]
    columns = [*values_of(Graph.of(build_circuit(circuit.inputs, [], []))).T]
    for kind in circuit.gates.tolist():
        a, b = (data.draw(st.integers(0, 2 * len(literals) - 1)) for _ in range(2))
        literals.append(netlist.gate(kind, literals[a >> 1] ^ (a & 1), literals[b >> 1] ^ (b & 1)))
        columns.append(TRUTH_TABLES[kind].astype(bool)[2 * (columns[a >> 1] ^ (a & 1)) + (columns[b >> 1] ^ (b & 1))])
    chosen = data.draw(st.lists(st.integers(0, 2 * len(literals) - 1), max_size=6))
    made = netlist.finish([literals[x >> 1] ^ (x & 1) for x in chosen])
    found = simulate(made, all_patterns(circuit.inputs))
    assert found.shape[1] == len(chosen)
    assert all(np.array_equal(found[:, i], columns[x >> 1] ^ (x & 1)) for i, x in enumerate(chosen))
    assert statistics(made).dead == 0
    assert made.gates.size <= circuit.gates.size + len(set(chosen))


@pytest.mark.parametrize("inverted", list(product((0, 1), repeat=3)))
def test_three_ands_that_spell_an_exclusive_or_are_one_gate(inverted):
    netlist, (u, v, out) = Netlist(2), (2 ^ inverted[0], 4 ^ inverted[1], inverted[2])
    both, neither = netlist.conjunction(u, v), netlist.conjunction(u ^ 1, v ^ 1)
    made = netlist.finish([netlist.conjunction(both ^ 1, neither ^ 1) ^ out])
    assert made.gates.tolist() == [Gate.XNOR if sum(inverted) % 2 else Gate.XOR]


@given(circuits())
def test_structural_hashing_keeps_every_gate_once(circuit):
    graph = Graph.of(circuit)
    net = empty_network(graph.inputs, graph.nodes)
    literals = list(range(0, 2 * net.first, 2))
    for kind, a, b in zip(graph.gates.tolist(), *graph.operands.tolist(), strict=True):
        literals.append(make(net, kind, literals[a], literals[b]))
    used = int(net.used[0])
    shared = Graph(graph.inputs, net.gates[net.first : used], net.operands[:, net.first : used])
    gates = list(zip(shared.gates.tolist(), *shared.operands.tolist(), strict=True))
    assert len(set(gates)) == len(gates)
    for kind, a, b in gates:
        assert normal_gate(kind, 2 * a, 2 * b) == (False, 0, kind, a, b)
    found = np.array(literals)
    assert np.array_equal(values_of(shared)[:, found >> 1] ^ (found & 1).astype(bool), values_of(graph))
    assert np.array_equal(net.levels[:used], levels(shared))
    outputs = np.array([literals[node] >> 1 for node in circuit.outputs + 1], np.int32)
    arrays = net.readers, net.operands, net.stack, net.first
    revived = sum(reference(*arrays, node, 1) for node in outputs)
    assert np.array_equal(net.readers[:used], readers(shared, outputs))
    assert revived == np.count_nonzero(net.readers[net.first : used])
    assert sum(dereference(*arrays, node, 1) for node in outputs) == revived
    assert not net.readers.any()


@pytest.mark.parametrize("gate", Gate)
def test_a_gate_of_words_computes_every_corner(gate):
    assert gate_of_words(gate, np.uint64(0b0011), np.uint64(0b0101)) & 0b1111 == gate


def by_engine(graph: Graph, words: np.ndarray) -> np.ndarray:
    """Every node but the constant put out by the engine that runs circuits."""
    nodes = np.arange(graph.nodes - 1)
    circuit = Circuit(graph.inputs, graph.gates, graph.operands - 1, nodes, GroupSum(np.zeros_like(nodes), [0]))
    return np.concatenate([np.zeros_like(words[:1]), packed(Engine(circuit).outputs(unpacked(words)))])


@pytest.mark.parametrize("simulator", [*SIMULATORS.values(), by_engine], ids=[*SIMULATORS, "engine"])
@given(circuit=circuits(), seed=st.integers(0, 2**32), count=st.integers(1, 3))
@settings(max_examples=40)
def test_all_nodes_on_words_of_patterns_are_as_the_definition_says(simulator, circuit, seed, count):
    words = np.random.default_rng(seed).integers(0, 2**64, (circuit.inputs, count), dtype=np.uint64)
    result = simulator(Graph.of(circuit), words)
    assert not result[0].any()
    assert np.array_equal(unpacked(result[1:]), simulate_nodes(circuit, unpacked(words)))


@pytest.mark.parametrize("patterns", [1, 63, 64, 130])
def test_patterns_are_packed_and_unpacked(patterns):
    bits = np.random.default_rng(patterns).random((patterns, 5)) < 0.5
    words = packed(bits)
    assert words.shape == (5, -(-patterns // 64))
    assert np.array_equal(unpacked(words)[:patterns], bits)
    assert not unpacked(words)[patterns:].any()


@pytest.mark.parametrize("inputs", [1, 5, 6, 11])
def test_all_patterns_come_in_order(inputs):
    patterns = unpacked(np.concatenate(list(all_chunks(inputs)), axis=1))
    assert np.array_equal(patterns[: 2**inputs], all_patterns(inputs))
    assert not patterns[2**inputs :].any()


@pytest.mark.parametrize("inputs", [1, 3, 100])
@pytest.mark.parametrize("patterns", [0, 1, 64, 1024, 5000])
def test_random_patterns_are_reproducible_and_hold_all_zeros_and_all_ones(inputs, patterns):
    one, two = (np.concatenate(list(random_chunks(inputs, patterns, 3)), axis=1) for _ in range(2))
    assert np.array_equal(one, two)
    assert one.shape == (inputs, max(1, -(-patterns // 64)))
    assert not (one[:, 0] & np.uint64(1)).any()
    assert patterns == 0 or (one[:, 0] >> np.uint64(1) & np.uint64(1)).all()


def groups(found: Signatures) -> list[list[int]]:
    return sorted(found.members[found.classes == number].tolist() for number in set(found.classes.tolist()))


def test_signatures_find_equal_opposite_and_constant_nodes():
    gates = [(Gate.AND, 0, 1), (Gate.NAND, 1, 0), (Gate.XOR, 0, 0), (Gate.OR, 0, 1), (Gate.AND, 1, 0)]
    found = signatures(Graph.of(build_circuit(2, gates, [])))
    assert groups(found) == [[0, 5], [3, 4, 7]]  # the constant and the XOR; the ANDs
    assert found.phases[[3, 4, 7]].tolist() == [0, 1, 0]


@given(circuits(max_inputs=5))
@settings(max_examples=40)
def test_equal_and_opposite_nodes_share_their_signature(circuit):
    graph = Graph.of(circuit)
    for patterns in (0, 1, 2**16):
        known = signatures(graph, patterns, idle=1)
        normal = values_of(graph).T ^ known.phases.astype(bool)[:, None]  # the first of all patterns is all zeros
        functions = [row.tobytes() for row in normal]
        for node, other in product(range(graph.nodes), repeat=2):
            if functions[node] == functions[other]:
                assert known.hashes[node] == known.hashes[other]
            elif patterns == 2**16:  # all patterns were tried
                assert known.hashes[node] != known.hashes[other]


def test_a_pattern_tells_members_apart():
    """The AND of 30 inputs looks constant to a word of patterns, but for the one that is all ones."""
    graph = Graph.of(build_circuit(30, [(Gate.AND, 0, 1), *((Gate.AND, 28 + i, i) for i in range(2, 30))], []))
    found = signatures(graph, 0)
    assert groups(found) == [list(range(graph.nodes))]
    found.mix(simulate_words(graph, np.full((30, 1), ~np.uint64(0))))
    assert found.regroup()
    assert 0 not in found.members
    assert not found.regroup()
    assert groups(found.among(np.arange(graph.nodes) > 40)) == [list(range(41, graph.nodes))]
