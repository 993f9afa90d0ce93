"""The whole pipeline: same scores on every input, fewer gates, nothing left to do, and a report that adds up."""

import numpy as np
import pytest
from hypothesis import given, settings

from gatefit.circuit.optimise import DEFAULT_LEVEL, Report, Step, optimise
from gatefit.circuit.readout import GroupSum
from gatefit.circuit.simulate import scores
from gatefit.circuit.statistics import statistics
from gatefit.gates import Gate
from strategies import all_patterns, build_circuit, circuits, layered_circuit, random_circuit


def check_pipeline(rng, count):
    for number in range(count):
        circuit = random_circuit(rng)
        bits = all_patterns(circuit.inputs)
        result, report = optimise(circuit)
        assert np.array_equal(scores(result, bits), scores(circuit, bits)), number
        assert (report.gates_before, report.gates_after) == (circuit.gates.size, result.gates.size)
        assert result.gates.size <= circuit.gates.size, number


def test_2000_random_circuits_through_the_pipeline():
    check_pipeline(np.random.default_rng(404), 2_000)


@pytest.mark.slow
def test_20000_random_circuits_through_the_pipeline():
    check_pipeline(np.random.default_rng(40_404), 20_000)


@pytest.mark.parametrize("level", [0, 1, 2, 3])
@given(circuit=circuits())
@settings(max_examples=25)
def test_every_level_preserves_scores_and_ends_at_a_fixpoint(level, circuit):
    bits = all_patterns(circuit.inputs)
    result, _ = optimise(circuit, level)
    assert np.array_equal(scores(result, bits), scores(circuit, bits))
    again, _ = optimise(result, level)
    assert again.gates.size == result.gates.size


def test_deeper_levels_find_more():
    circuit = layered_circuit(np.random.default_rng(0), 17, 400, 12)
    sizes = [optimise(circuit, level)[0].gates.size for level in range(4)]
    assert sizes[0] == circuit.gates.size
    assert sizes[0] > sizes[1] > sizes[2] > sizes[3]


def test_the_same_circuit_gives_the_same_result():
    circuit = layered_circuit(np.random.default_rng(5), 30, 400, 5)
    first, second = optimise(circuit)[0], optimise(circuit)[0]
    assert first.gates.tobytes() == second.gates.tobytes()
    assert first.operands.tobytes() == second.operands.tobytes()


def test_nothing_but_logic_and_needed_inverters_is_left():
    counts = statistics(optimise(layered_circuit(np.random.default_rng(2), 40, 500, 6))[0])
    assert counts.wires == counts.constants == counts.dead == 0


def test_a_constant_network_disappears():
    circuit = build_circuit(
        2,
        [(Gate.XOR, 0, 0), (Gate.OR, 0, 1), (Gate.OR, 3, 2), (Gate.XNOR, 3, 4)],
        [2, 5, 5],
        GroupSum([0, 1, 1], [4, 0]),
    )
    result, _ = optimise(circuit)
    assert result.gates.size == result.outputs.size == 0
    assert result.readout.offsets.tolist() == [4, 2]


@pytest.mark.parametrize("level", [-1, 4, "2", None])
def test_unknown_levels_are_refused(level):
    with pytest.raises(ValueError, match="level must be 0, 1, 2 or 3, got"):
        optimise(build_circuit(1, [], [0]), level)


def test_the_report_follows_the_gates_from_pass_to_pass():
    circuit = layered_circuit(np.random.default_rng(0), 17, 200, 6)
    result, report = optimise(circuit, DEFAULT_LEVEL)
    counts = [report.gates_before, *(step.gates_after for step in report.steps)]
    assert [step.gates_before for step in report.steps] == counts[:-1]
    assert counts[-1] == report.gates_after == result.gates.size
    assert all(step.seconds >= 0 for step in report.steps)
    assert sum(removed for removed, _ in report.by_pass().values()) == report.gates_before - report.gates_after
    assert report.seconds == pytest.approx(sum(seconds for _, seconds in report.by_pass().values()))
    assert {step.name for step in report.steps} >= {"fold_constants", "rewrite_cuts", "merge_equivalent"}


def test_the_report_reads_as_a_table():
    report = Report(1500, 900, (Step("fold_constants", 1500, 1000, 0.5), Step("remove_dead", 1000, 900, 0.25)))
    assert str(report).splitlines() == [
        "pass               gates removed  seconds",
        "fold_constants               500    0.500",
        "remove_dead                  100    0.250",
        "1,500 gates -> 900 gates in 0.750 s",
    ]
