"""SAT sweeping: equal functions of different structure merge, almost equal ones do not."""

import numpy as np
import pytest

from gatefit.circuit.passes import merge_equivalent, rewrite_cuts
from gatefit.circuit.simulate import scores, simulate, simulate_nodes
from gatefit.circuit.statistics import statistics
from gatefit.gates import Gate
from strategies import all_patterns, build_circuit, layered_circuit, random_circuit


def tree(kind, leaves, first):
    """Gates that combine ``leaves`` in a balanced tree, numbered from ``first``; and the root."""
    gates, layer = [], list(leaves)
    while len(layer) > 1:
        pairs = [layer[i : i + 2] for i in range(0, len(layer), 2)]
        layer = []
        for pair in pairs:
            if len(pair) == 2:
                gates.append((kind, *pair))
                layer.append(first + len(gates) - 1)
            else:
                layer.append(pair[0])
    return gates, layer[0]


def chain(kind, leaves, first):
    """Gates that combine ``leaves`` one after the other."""
    gates = [(kind, leaves[0], leaves[1])]
    for leaf in leaves[2:]:
        gates.append((kind, first + len(gates) - 1, leaf))
    return gates, first + len(gates) - 1


@pytest.mark.parametrize("kind", [Gate.XOR, Gate.AND, Gate.OR])
def test_a_tree_and_a_chain_of_twelve_inputs_are_one_function(kind):
    left, a = tree(kind, range(12), 12)
    right, b = chain(kind, list(range(11, -1, -1)), 12 + len(left))
    circuit = build_circuit(12, left + right, [a, b])
    assert rewrite_cuts(circuit).gates.size > 11
    assert merge_equivalent(circuit).gates.size == 11


def test_opposite_functions_share_one_gate_and_an_inverter():
    left, a = tree(Gate.XOR, range(12), 12)
    right, b = chain(Gate.XOR, list(range(11, -1, -1)), 12 + len(left))
    right[-1] = (Gate.XNOR, *right[-1][1:])
    result = statistics(merge_equivalent(build_circuit(12, left + right, [a, b])))
    assert (result.logic_gates, result.inverters) == (11, 1)


def test_a_hidden_constant_is_folded():
    left, a = tree(Gate.XOR, range(12), 12)
    right, b = chain(Gate.XOR, list(range(11, -1, -1)), 12 + len(left))
    circuit = build_circuit(12, [*left, *right, (Gate.XNOR, a, b)], [12 + len(left) + len(right)])
    result = merge_equivalent(circuit)
    assert result.gates.size == result.outputs.size == 0
    assert result.readout.offsets.tolist() == [1]


def test_an_input_can_be_the_representative():
    # (x & y) | (x & ~y) = x, hidden from structural passes only by an input that does not matter.
    gates = [(Gate.AND, 0, 1), (Gate.A_AND_NOT_B, 0, 1), (Gate.OR, 2, 3)]
    result = merge_equivalent(build_circuit(2, gates, [4]))
    assert (result.gates.size, result.outputs.tolist()) == (0, [0])


def test_one_pattern_in_a_million_is_enough_to_keep_nodes_apart():
    # AND of 20 inputs looks like the constant false to random patterns; a counterexample must save it.
    gates, root = chain(Gate.AND, list(range(20)), 20)
    circuit = build_circuit(20, gates, [root])
    result = merge_equivalent(circuit, patterns=64)
    ones = np.ones((1, 20), bool)
    assert scores(result, ones).tolist() == scores(circuit, ones).tolist() == [[1]]


def test_counterexamples_refine_classes_until_everything_is_decided():
    rng = np.random.default_rng(11)
    for _ in range(60):
        circuit = random_circuit(rng, max_inputs=12, max_gates=80)
        bits = all_patterns(circuit.inputs)
        # One word of patterns at first: most classes are wrong and have to be split by the solver.
        assert np.array_equal(scores(merge_equivalent(circuit, patterns=64), bits), scores(circuit, bits))


def test_after_the_pass_all_nodes_differ():
    for seed in range(5):
        result = merge_equivalent(layered_circuit(np.random.default_rng(seed), 10, 60, 4))
        logic = result.inputs + np.flatnonzero(~np.isin(result.gates, (Gate.NOT_A, Gate.TRUE, Gate.FALSE)))
        values = simulate_nodes(result, all_patterns(10))[:, np.r_[0 : result.inputs, logic]].T
        normal = values ^ values[:, :1]
        assert normal.any(axis=1).all()  # no constants
        assert len({row.tobytes() for row in normal}) == len(normal)  # no equal or opposite nodes


def test_without_a_budget_nothing_hard_is_merged_and_nothing_is_wrong():
    # Two multiplier-like cones that need search: sums of products in different orders.
    left, a = tree(Gate.XOR, range(40), 40)
    right, b = chain(Gate.XOR, list(np.random.default_rng(0).permutation(40)), 40 + len(left))
    circuit = build_circuit(40, left + right, [a, b])
    result = merge_equivalent(circuit, conflicts=1)
    assert result.gates.size == circuit.gates.size  # parity of 40 inputs is not decided within one conflict
    bits = np.random.default_rng(1).random((200, 40)) < 0.5
    assert np.array_equal(simulate(result, bits), simulate(circuit, bits))
