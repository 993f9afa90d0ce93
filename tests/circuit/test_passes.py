"""Every pass: nothing observable changes, gates never increase, once is enough; and what each one does."""

import time

import numpy as np
import pytest
from hypothesis import given, settings

from gatefit.circuit.ir import Circuit
from gatefit.circuit.passes import (
    PASSES,
    STRUCTURAL,
    absorb_inverters,
    fold_constants,
    forward_wires,
    merge_duplicates,
    remove_dead,
    simplify_operands,
)
from gatefit.circuit.readout import Affine, GroupSum, Linear, exact_unit
from gatefit.circuit.simulate import scores, simulate
from gatefit.circuit.statistics import statistics
from gatefit.gates import Gate
from strategies import all_patterns, build_circuit, circuits, layered_circuit, random_circuit

by_name = pytest.mark.parametrize("optimisation", PASSES, ids=lambda p: p.__name__)


def same_arrays(a, b):
    return all(np.array_equal(getattr(a, name), getattr(b, name)) for name in ("gates", "operands", "outputs"))


def check_all_passes(rng, count):
    """Random circuits through every pass and through all of them in a row, on all input patterns."""
    for number in range(count):
        circuit = random_circuit(rng)
        bits = all_patterns(circuit.inputs)
        expected = scores(circuit, bits)
        chained = circuit
        for optimisation in PASSES:
            result = optimisation(circuit)
            chained = optimisation(chained)
            assert np.array_equal(scores(result, bits), expected), (number, optimisation.__name__)
            assert result.gates.size <= circuit.gates.size, (number, optimisation.__name__)
        assert np.array_equal(scores(chained, bits), expected), (number, "all passes in a row")


def test_2000_random_circuits_through_every_pass():
    check_all_passes(np.random.default_rng(2024), 2_000)


@pytest.mark.slow
def test_20000_random_circuits_through_every_pass():
    check_all_passes(np.random.default_rng(20_240), 20_000)


@by_name
@given(circuit=circuits())
@settings(max_examples=40)
def test_pass_preserves_scores_and_is_idempotent(optimisation, circuit):
    bits = all_patterns(circuit.inputs)
    once = optimisation(circuit)
    assert np.array_equal(scores(once, bits), scores(circuit, bits))
    assert once.inputs == circuit.inputs
    twice = optimisation(once)
    assert twice.gates.size == once.gates.size
    if optimisation in STRUCTURAL:
        assert same_arrays(twice, once)


@by_name
def test_pass_keeps_names_and_metadata(optimisation):
    circuit = Circuit(
        2,
        [Gate.TRUE, Gate.AND],
        [[0, 0], [0, 1]],
        [3],
        GroupSum([0], [0, 0]),
        ("a", "b"),
        ("no", "yes"),
        None,
        {"k": "v"},
    )
    result = optimisation(circuit)
    assert (result.input_names, result.class_names, result.metadata) == (("a", "b"), ("no", "yes"), {"k": "v"})


@by_name
def test_pass_accepts_a_circuit_without_gates(optimisation):
    circuit = build_circuit(2, [], [1, 0, 1])
    assert same_arrays(optimisation(circuit), circuit)
    nothing = build_circuit(1, [], [], Affine(0))
    assert same_arrays(optimisation(nothing), nothing)


@by_name
def test_pass_is_deterministic(optimisation):
    circuit = layered_circuit(np.random.default_rng(1), 12, 60, 4)
    assert same_arrays(optimisation(circuit), optimisation(circuit))


def test_constants_fold_through_gates_and_into_the_readout():
    circuit = build_circuit(
        1,
        [(Gate.TRUE, 0, 0), (Gate.AND, 0, 1), (Gate.NOR, 1, 0), (Gate.XOR, 2, 1)],
        [1, 2, 3, 4],
        GroupSum([0, 0, 1, 1], [0, 0]),
    )
    result = fold_constants(circuit)
    assert result.gates.tolist() == [Gate.A, Gate.NOT_A]
    assert result.outputs.tolist() == [1, 2]
    assert result.readout.groups.tolist() == [0, 1]
    assert result.readout.offsets.tolist() == [1, 0]


def test_constants_fold_into_an_affine_offset():
    result = fold_constants(
        build_circuit(1, [(Gate.TRUE, 0, 0), (Gate.FALSE, 0, 0)], [0, 1, 1, 2], Affine(4, 5, 2.0, 1.0))
    )
    assert (result.readout.outputs, result.readout.offset) == (1, 7)
    assert result.gates.size == 0


def linear_with_constants(weights, bias):
    """Outputs: one, x, zero, one."""
    return build_circuit(1, [(Gate.TRUE, 0, 0), (Gate.FALSE, 0, 0)], [1, 0, 2, 1], Linear([weights], [bias]))


def test_linear_bias_takes_constants_when_sums_are_exact():
    result = fold_constants(linear_with_constants([0.5, 1.25, 9.0, -2.0], 1.0))
    assert result.readout.bias.tolist() == [-0.5]
    assert result.readout.weights.tolist() == [[1.25]]
    assert result.gates.size == 0


def test_linear_bias_takes_only_leading_constants_when_sums_round():
    circuit = linear_with_constants([0.1, 0.7, 0.3, 1e-7], 0.25)
    result = fold_constants(circuit)
    assert result.readout.bias.tolist() == [float(np.float32(0.25) + np.float32(0.1))]
    assert result.outputs.size == 2  # x, and the second constant one, which has to be added after x
    assert np.array_equal(scores(result, all_patterns(1)), scores(circuit, all_patterns(1)))


def test_linear_bias_never_overflows():
    huge = float(np.finfo(np.float32).max)
    circuit = linear_with_constants([huge, 1.0, 1.0, 1.0], huge)
    assert np.isfinite(fold_constants(circuit).readout.bias).all()


@pytest.mark.parametrize(
    ("weights", "bias", "exact"),
    [
        ([[1, 2, 3]], [4], True),
        ([[0.5, 0.25]], [2.0**20], True),
        ([[0.5, 0.25]], [2.0**22], False),
        ([[0.1, 0.2]], [0], False),
        ([[0, 0]], [0], True),
        ([[2.0**-149, 2.0**-140]], [0], True),
        ([[2.0**100, 2.0**-100]], [0], False),
    ],
)
def test_exactness_of_float_sums(weights, bias, exact):
    assert (exact_unit(Linear(weights, bias)) is not None) is exact


def test_wires_and_double_inverters_are_bypassed():
    circuit = build_circuit(
        2, [(Gate.A, 0, 1), (Gate.B, 0, 2), (Gate.NOT_B, 0, 1), (Gate.NOT_A, 4, 0), (Gate.AND, 3, 5)], [6, 5, 4]
    )
    result = forward_wires(circuit)
    assert result.gates.tolist() == [Gate.NOT_A, Gate.AND]
    assert result.operands[:, 1].tolist() == [0, 1]
    assert result.outputs.tolist() == [3, 1, 2]


def test_inverters_are_absorbed_by_their_readers():
    result = remove_dead(
        absorb_inverters(
            build_circuit(2, [(Gate.NOT_A, 0, 0), (Gate.NOT_A, 1, 1), (Gate.AND, 2, 3), (Gate.NOT_A, 4, 4)], [4])
        )
    )
    assert result.gates.tolist() == [Gate.NOR]


def test_an_inverted_output_changes_its_gate_and_the_gates_readers():
    circuit = build_circuit(2, [(Gate.AND, 0, 1), (Gate.NOT_A, 2, 2), (Gate.XOR, 2, 0)], [3, 4])
    result = absorb_inverters(circuit)
    assert result.gates.tolist() == [Gate.NAND, Gate.XNOR]
    assert np.array_equal(simulate(result, all_patterns(2)), simulate(circuit, all_patterns(2)))


def test_an_inverter_stays_where_both_polarities_or_an_inverted_input_are_needed():
    result = absorb_inverters(
        build_circuit(2, [(Gate.AND, 0, 1), (Gate.NOT_A, 2, 2), (Gate.NOT_A, 0, 0)], [2, 3, 4, 3])
    )
    assert sorted(result.gates.tolist()) == [Gate.AND, Gate.NOT_A, Gate.NOT_A]


@given(circuits())
@settings(max_examples=60)
def test_inverters_remain_only_at_outputs(circuit):
    result = merge_duplicates(circuit)
    inverters = result.inputs + np.flatnonzero(np.isin(result.gates, (Gate.NOT_A, Gate.NOT_B)))
    assert not np.isin(result.operands, inverters).any()
    assert np.isin(inverters, result.outputs).all()


def test_gates_of_one_node_are_simplified():
    circuit = build_circuit(
        2,
        [(Gate.XOR, 0, 0), (Gate.AND, 0, 0), (Gate.NOR, 1, 1), (Gate.AND, 0, 1), (Gate.NAND, 1, 0), (Gate.XOR, 5, 6)],
        [2, 3, 4, 7],
    )
    # The last gate reads two different gates that are each other's inverse.
    assert simplify_operands(circuit).gates.tolist() == [
        *(Gate.FALSE, Gate.A, Gate.NOT_A),
        *(Gate.AND, Gate.NAND, Gate.TRUE),
    ]


def test_duplicates_merge_up_to_order_and_inversion():
    gates = [(Gate.A_AND_NOT_B, 0, 1), (Gate.NOT_A_AND_B, 1, 0), (Gate.NOT_A_OR_B, 0, 1), (Gate.A_OR_NOT_B, 1, 0)]
    result = merge_duplicates(build_circuit(2, gates, [2, 3, 4, 5]))
    assert result.gates.tolist() == [Gate.A_AND_NOT_B, Gate.NOT_A]
    assert result.outputs.tolist() == [2, 2, 3, 3]


@pytest.mark.parametrize("gate", [g for g in Gate if g.depends_on_a and g.depends_on_b])
def test_every_form_of_a_gate_is_one_gate(gate):
    forms = [(gate, 0, 1), (gate.swapped, 1, 0), (gate.complement, 0, 1), (gate.complement.swapped, 1, 0)]
    assert statistics(merge_duplicates(build_circuit(2, forms, [2, 3, 4, 5]))).logic_gates == 1


def test_dead_gates_go_and_inputs_stay():
    circuit = build_circuit(3, [(Gate.AND, 0, 1), (Gate.OR, 3, 1), (Gate.A, 0, 4), (Gate.XOR, 1, 2)], [5])
    result = remove_dead(circuit)
    assert result.gates.tolist() == [Gate.A]  # it ignores gate 4, which is therefore dead
    assert result.inputs == 3
    assert result.operands.tolist() == [[0], [0]]


def test_a_million_gates_in_seconds():
    circuit = layered_circuit(np.random.default_rng(0), 784, 170_000, 6)
    for optimisation in STRUCTURAL:
        optimisation(layered_circuit(np.random.default_rng(0), 4, 4, 2))  # compile outside the clock
    result = circuit
    start = time.process_time()
    for optimisation in STRUCTURAL:
        result = optimisation(result)
    # A few seconds on an idle machine; what is not linear would take hours on any.
    assert time.process_time() - start < 150
    assert result.gates.size < 0.3 * circuit.gates.size
    bits = np.random.default_rng(1).random((3, 784)) < 0.5
    assert np.array_equal(scores(result, bits), scores(circuit, bits))
