"""Cut rewriting: the library of smallest chains, and what the pass makes of known wasteful circuits."""

import numpy as np
import pytest

from gatefit.circuit.passes import merge_duplicates, remove_dead, rewrite_cuts
from gatefit.circuit.passes.library import VARIABLES, chain_function, library
from gatefit.circuit.simulate import scores
from gatefit.circuit.statistics import depth, statistics
from gatefit.gates import Gate
from optimal_chains import npn_classes, search
from strategies import all_patterns, build_circuit, layered_circuit, random_circuit

# How many of the 65,536 functions need 0, 1, 2, … gates: Knuth, The Art of Computer Programming 4A, section 7.1.2.
FUNCTIONS_BY_COST = [10, 60, 456, 2474, 10624, 24184, 25008, 2720]


def test_every_function_of_four_variables_is_computed_by_its_chain():
    chains = library()
    for function in range(2**16):
        number = chains.class_of[function]
        inverted = int(chains.inverted[function])
        values = [VARIABLES[v] ^ (0xFFFF if inverted >> i & 1 else 0) for i, v in enumerate(chains.order[function])]
        steps = chains.chains[number, : chains.steps[number]].tolist()
        for gate, i, j in steps:
            a, b = values[i], values[j]
            values.append({1: a & b, 2: a & ~b, 4: ~a & b, 6: a ^ b, 7: a | b}[gate] & 0xFFFF)
        result = values[-1] if steps else (0 if function in (0, 0xFFFF) else values[0])
        assert result ^ (0xFFFF if inverted >> 4 else 0) == function


def test_chains_are_as_short_as_the_literature_says():
    chains = library()
    assert np.bincount(chains.steps[chains.class_of]).tolist() == FUNCTIONS_BY_COST


def smallest_costs(steps):
    class_of = npn_classes()
    cost = np.full(class_of.max() + 1, -1, np.int64)
    found = np.zeros((cost.size, 7, 3), np.int64)
    cost[class_of[[0, 0xAAAA]]] = 0
    for count in range(1, steps + 1):
        search(count, class_of, cost, found)
    return class_of, cost


def check_minimality(steps):
    class_of, cost = smallest_costs(steps)
    chains = library()
    ours = chains.steps[chains.class_of]
    known = cost[class_of]
    assert np.array_equal(ours[known >= 0], known[known >= 0])
    assert (ours[known < 0] > steps).all()


def test_no_shorter_chains_exist_up_to_four_gates():
    check_minimality(4)


@pytest.mark.slow
def test_no_shorter_chains_exist():
    check_minimality(7)


def test_chain_function_evaluates_left_to_right():
    chain = np.array([[Gate.AND, 0, 1], [Gate.XOR, 4, 2]])
    assert chain_function(chain) == (VARIABLES[0] & VARIABLES[1]) ^ VARIABLES[2]


@pytest.mark.parametrize(
    ("gates", "outputs", "expected"),
    [
        # a & (a & b)
        ([(Gate.AND, 0, 1), (Gate.AND, 0, 3)], [4], 1),
        # (a & ~b) | (~a & b): XOR
        ([(Gate.A_AND_NOT_B, 0, 1), (Gate.NOT_A_AND_B, 0, 1), (Gate.OR, 3, 4)], [5], 1),
        # (a & b) | (a & c): distributivity saves one gate
        ([(Gate.AND, 0, 1), (Gate.AND, 0, 2), (Gate.OR, 3, 4)], [5], 2),
        # a ^ (a ^ b) = b
        ([(Gate.XOR, 0, 1), (Gate.XOR, 0, 3)], [4], 0),
        # a | (~a & b) = a | b, and the inner gate is used elsewhere
        ([(Gate.NOT_A_AND_B, 0, 1), (Gate.OR, 0, 3), (Gate.XOR, 3, 2)], [4, 5], 3),
        # (a & b) & ~(a & b & c) | …: constant false
        ([(Gate.AND, 0, 1), (Gate.AND, 3, 2), (Gate.A_AND_NOT_B, 4, 3)], [5], 0),
        # a majority written with five gates takes four
        ([(Gate.AND, 0, 1), (Gate.AND, 0, 2), (Gate.AND, 1, 2), (Gate.OR, 3, 4), (Gate.OR, 5, 6)], [7], 4),
    ],
)
def test_known_waste_is_removed(gates, outputs, expected):
    circuit = build_circuit(3, gates, outputs)
    result = rewrite_cuts(circuit)
    assert result.gates.size == expected
    assert np.array_equal(scores(result, all_patterns(3)), scores(circuit, all_patterns(3)))


def test_shared_gates_are_not_duplicated():
    # All four products are outputs: no cone may be replaced by a larger one.
    gates = [(Gate.AND, 0, 1), (Gate.AND, 3, 2), (Gate.OR, 0, 4), (Gate.XOR, 4, 1)]
    circuit = build_circuit(3, gates, [3, 4, 5, 6])
    assert rewrite_cuts(circuit).gates.size <= 4


def test_equal_size_is_rewritten_only_to_less_depth():
    # ((a & b) & c) & d, a chain of depth three, as a tree of depth two.
    result = rewrite_cuts(build_circuit(4, [(Gate.AND, 0, 1), (Gate.AND, 4, 2), (Gate.AND, 5, 3)], [6]))
    assert (result.gates.size, depth(result)) == (3, 2)


def test_gains_on_reconvergent_circuits():
    before = after = 0
    rng = np.random.default_rng(7)
    for _ in range(100):
        circuit = remove_dead(merge_duplicates(random_circuit(rng, max_inputs=4)))
        before += circuit.gates.size
        after += rewrite_cuts(circuit).gates.size
    assert after < 0.75 * before


def test_a_layered_network_keeps_its_scores():
    circuit = layered_circuit(np.random.default_rng(3), 20, 300, 5)
    result = rewrite_cuts(circuit)
    bits = np.random.default_rng(4).random((500, 20)) < 0.5
    assert np.array_equal(scores(result, bits), scores(circuit, bits))
    assert statistics(result).dead == 0
