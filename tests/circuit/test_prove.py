"""Verdicts: against an exhaustive oracle in both directions, with real solvers and with lying ones."""

import itertools
import time
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from faults import KINDS, needle_circuit, with_fault
from gatefit.circuit.ir import Circuit
from gatefit.circuit.optimise import optimise
from gatefit.circuit.prove import Counterexample, Equivalent, Undecided, prove, prover, sweeper
from gatefit.circuit.prove.questions import Answer
from gatefit.circuit.readout import Affine, GroupSum, Linear
from gatefit.circuit.simulate import scores
from gatefit.gates import Gate
from scramble import scramble
from strategies import all_patterns, circuits, layered_circuit, random_circuit


def check_verdict(spec, impl, verdict):
    """Compare with all patterns; return whether the circuits are equal."""
    bits = all_patterns(spec.inputs)
    same = np.array_equal(scores(spec, bits), scores(impl, bits))
    if same:
        assert isinstance(verdict, Equivalent), verdict
    else:
        assert isinstance(verdict, Counterexample), verdict
        one, two = (scores(circuit, verdict.bits[None])[0] for circuit in (spec, impl))
        assert np.array_equal(one, verdict.spec_scores)
        assert np.array_equal(two, verdict.impl_scores)
        assert not np.array_equal(one, two)
    return same


def test_verdict_equals_an_exhaustive_oracle_on_2000_single_faults():
    """Few random patterns leave the work to the solver; most uses take the default number."""
    rng = np.random.default_rng(2026)
    equal = {kind: [] for kind in KINDS}
    for i in range(2000):
        spec = random_circuit(rng, max_inputs=10, max_gates=60)
        impl = optimise(spec)[0] if i % 2 else scramble(rng, spec) if i % 4 else spec
        kind = KINDS[i % len(KINDS)]
        faulty = with_fault(rng, impl, kind)
        verdict = prove(spec, faulty, patterns=[0, 0, 64, 65536][i // 4 % 4], seed=i)
        equal[kind].append(check_verdict(spec, faulty, verdict))
    for kind, results in equal.items():
        assert 10 < sum(results) < len(results) - 10, (kind, sum(results), len(results))


@settings(max_examples=150, deadline=None)
@given(circuits(max_inputs=5, max_gates=20), circuits(max_inputs=5, max_gates=20))
def test_any_two_circuits(spec, impl):
    same_shape = (spec.inputs, type(spec.readout), spec.readout.classes) == (
        impl.inputs, type(impl.readout), impl.readout.classes,
    )  # fmt: skip
    if same_shape:
        check_verdict(spec, impl, prove(spec, impl, patterns=0))
    else:
        with pytest.raises(ValueError, match="spec "):
            prove(spec, impl)


@settings(max_examples=100, deadline=None)
@given(circuits(), st.integers(0, 2**32), st.sampled_from([0, 65536]))
def test_rewritten_circuits_are_equivalent(spec, seed, patterns):
    impl = scramble(np.random.default_rng(seed), spec, rate=0.8)
    assert isinstance(prove(spec, impl, patterns=patterns), Equivalent)


@pytest.mark.parametrize("width", [170, 2000, 8000])
def test_layered_networks_and_their_optimised_forms(width):
    """6 x 8,000 gates take less than a minute on one core; the limit is for one that is ten times as slow."""
    rng = np.random.default_rng(width)
    spec = layered_circuit(rng, 784, width, 6)
    impl, _ = optimise(spec)
    assert impl.gates.size < spec.gates.size
    verdict = prove(spec, impl, timeout=600.0)
    assert isinstance(verdict, Equivalent)
    assert verdict.method == "sat"
    # A fault near the outputs that shows on some input.
    faulty = replace(
        impl, gates=np.where(np.arange(impl.gates.size) == impl.gates.size - 1, impl.gates ^ 15, impl.gates)
    )
    assert isinstance(prove(spec, faulty), Counterexample)


@pytest.mark.slow
def test_a_million_gates():
    rng = np.random.default_rng(0)
    spec = layered_circuit(rng, 784, 170_000, 6)
    impl, _ = optimise(spec, level=2)
    assert isinstance(prove(spec, impl), Equivalent)


@pytest.mark.slow
def test_deep_networks():
    """Cones that hold most of the circuit, and thousands of nodes that only look alike."""
    rng = np.random.default_rng(1)
    spec = layered_circuit(rng, 256, 1000, 20, gates=[1, 2, 4, 6, 7, 8, 9, 11, 13, 14])
    assert isinstance(prove(spec, scramble(rng, spec, rate=0.1)), Equivalent)


def test_a_difference_too_rare_for_random_patterns_is_found():
    needle = np.random.default_rng(1).random(48) < 0.5
    spec = needle_circuit(needle)
    never = replace(spec, gates=np.zeros_like(spec.gates))
    verdict = prove(spec, never)
    assert isinstance(verdict, Counterexample)
    assert np.array_equal(verdict.bits, needle)
    assert (verdict.spec_scores.tolist(), verdict.impl_scores.tolist()) == ([1], [0])
    rewritten = scramble(np.random.default_rng(2), spec)
    assert isinstance(prove(spec, rewritten), Equivalent)


def pairs_circuit(kinds, inputs=20, classes=1):
    """Groups of gates, each group over its own two inputs: kinds is a list of lists of gates."""
    gates = [gate for group in kinds for gate in group]
    reads = [(2 * i, 2 * i + 1) for i, group in enumerate(kinds) for _ in group]
    return Circuit(
        inputs=inputs,
        gates=np.array(gates, np.uint8),
        operands=np.array(reads, np.int32).T,
        outputs=np.arange(inputs, inputs + len(gates)),
        readout=GroupSum(np.arange(len(gates)) % classes, np.zeros(classes, np.int64)),
    )


def test_sums_that_are_equal_by_arithmetic_alone():
    """a + b = (a and b) + (a or b): no output of one circuit equals an output of the other."""
    spec = pairs_circuit([[Gate.A, Gate.B]] * 6)
    impl = pairs_circuit([[Gate.AND, Gate.OR]] * 6)
    verdict = prove(spec, impl)
    assert isinstance(verdict, Equivalent)
    assert verdict.method == "sat"
    one_wrong = pairs_circuit([[Gate.AND, Gate.OR]] * 5 + [[Gate.XOR, Gate.OR]])
    assert isinstance(prove(spec, one_wrong, patterns=0), Counterexample)
    # Twice a = b + c where it is not: weights matter.
    assert isinstance(prove(spec, pairs_circuit([[Gate.A, Gate.A]] * 6), patterns=0), Counterexample)


def test_outputs_may_be_folded_permuted_duplicated_and_complemented_within_their_class():
    spec = pairs_circuit([[Gate.AND, Gate.TRUE, Gate.XOR, Gate.NOT_A, Gate.A, Gate.FALSE]] * 3, classes=2)
    # Class 0 reads outputs 0, 2, 4 of each group, class 1 the others.
    gates = [Gate.A, Gate.XOR, Gate.AND, Gate.NAND, Gate.NAND, Gate.NOT_A]
    groups = [0, 0, 0, 1, 1, 1]
    impl = pairs_circuit([gates] * 3)
    impl = replace(impl, outputs=impl.outputs, readout=GroupSum(np.array(groups * 3), np.zeros(2, np.int64)))
    keep = np.tile([True, True, True, False, False, True], 3)
    impl = replace(impl, outputs=impl.outputs[keep], readout=GroupSum(np.array(groups * 3)[keep], np.array([0, 3])))
    assert isinstance(prove(spec, impl), Equivalent)
    swapped_classes = replace(impl, readout=GroupSum(1 - impl.readout.groups, np.array([3, 0])))
    assert isinstance(prove(spec, swapped_classes), Counterexample)


def wires(readout, inputs):
    """A circuit that reads its inputs as they are."""
    return Circuit(inputs, [], np.empty((2, 0), np.int32), np.arange(readout.outputs), readout)


def test_affine_values_that_collide_by_rounding_are_equal():
    """1e20 + sum is 1e20: the sums differ, the values do not."""
    spec, impl = wires(Affine(3, 0, 1.0, 1e20), 5), wires(Affine(3, 1, 1.0, 1e20), 5)
    verdict = prove(spec, impl)
    assert isinstance(verdict, Equivalent)
    assert verdict.method == "exhaustive"
    verdict = prove(wires(spec.readout, 30), wires(impl.readout, 30))
    assert isinstance(verdict, Undecided)
    assert verdict.reason == (
        "the sums differ, but the values may collide by rounding; no input with different scores was found, and 30 "
        "inputs are too many to try all (at most 16); give both circuits the same readout, outputs in the same order"
    )


def test_linear_scores_whose_sums_never_round_are_compared_as_integers():
    weights = np.array([[1.0, 2.0, 4.0], [0.25, -3.0, 8.0]], np.float32)  # multiples of 1/4 add up exactly
    spec = wires(Linear(weights, np.zeros(2)), 30)
    impl = replace(spec, outputs=np.array([2, 1, 0]), readout=Linear(weights[:, ::-1], np.zeros(2)))
    assert isinstance(prove(spec, impl), Equivalent)
    wrong = weights[:, ::-1].copy()
    wrong[1, 0] += 0.25
    assert isinstance(prove(spec, replace(impl, readout=Linear(wrong, np.zeros(2)))), Counterexample)


def test_linear_scores_that_may_round_are_decided_by_trying_all_inputs():
    rough = np.array([[1e8, 1.0, -1e8]], np.float32)
    spec = wires(Linear(rough, np.zeros(1)), 5)
    impl = replace(spec, outputs=np.array([2, 1, 0]), readout=Linear(rough[:, ::-1], np.zeros(1)))
    check_verdict(spec, impl, prove(spec, impl))
    # Beside a bias of 1 neither weight shows: the scores are the same, but only trying all inputs could tell.
    one = np.ones(1, np.float32)
    spec = wires(Linear(np.full((1, 3), 1e-9, np.float32), one), 30)
    impl = replace(spec, readout=Linear(np.full((1, 3), 2e-9, np.float32), one))
    verdict = prove(spec, impl)
    assert isinstance(verdict, Undecided)
    assert verdict.reason.startswith("the Linear readouts do not add the same terms in the same order, with the same")


def test_overflowing_linear_scores_are_compared_too():
    spec = wires(Linear(np.full((1, 3), 3e38, np.float32), np.zeros(1)), 4)
    impl = replace(spec, outputs=np.array([1, 0, 2]))
    with np.errstate(over="ignore"):
        assert isinstance(prove(spec, impl), Equivalent)


def test_undecided_when_time_runs_out():
    rng = np.random.default_rng(3)
    spec = layered_circuit(rng, 30, 100, 5, gates=[1, 2, 4, 6, 7, 8, 9, 11, 13, 14])
    verdict = prove(spec, scramble(rng, spec), timeout=1e-9)
    assert isinstance(verdict, Undecided)
    assert verdict.reason.endswith(" equalities were not decided in 1e-09 s; raise timeout")


def parity(order):
    """The exclusive or of all inputs, one after another: chains in different orders share nothing on the way."""
    inputs = len(order)
    sums = [order[0], *range(inputs, 2 * inputs - 2)]
    gates = np.full(inputs - 1, Gate.XOR)
    return Circuit(inputs, gates, np.array([sums, order[1:]]), [2 * inputs - 2], GroupSum([0], [0, 0]))


def test_undecided_when_the_conflicts_are_spent_and_the_same_every_time():
    spec, impl = parity(range(12)), parity(range(12)[::-1])
    first, again = (prove(spec, impl, conflicts=1) for _ in range(2))
    assert first == again == Undecided("1 of 1 equalities were not decided in 1 conflicts; raise conflicts")
    assert isinstance(prove(spec, impl), Equivalent)


def test_a_verdict_does_not_depend_on_the_clock(monkeypatch):
    rng = np.random.default_rng(3)
    spec = layered_circuit(rng, 30, 100, 5, gates=[1, 2, 4, 6, 7, 8, 9, 11, 13, 14])
    impl = scramble(rng, spec)
    looks = itertools.count()
    monkeypatch.setattr(time, "monotonic", lambda: 1e4 * next(looks))  # hours pass between any two looks
    assert isinstance(prove(spec, impl), Equivalent)
    assert isinstance(prove(spec, impl, timeout=60.0), Undecided)


def test_a_lying_solver_is_not_believed(monkeypatch):
    """Whatever the solver says, different circuits are never called equivalent."""
    monkeypatch.setattr(sweeper, "ask_solver", lambda *_: Answer(True))
    monkeypatch.setattr(sweeper, "decide_window", lambda *_: (sweeper.EQUAL, 0))
    rng = np.random.default_rng(4)
    caught = 0
    for i in range(200):
        spec = random_circuit(rng, max_inputs=8)
        impl = with_fault(rng, scramble(rng, spec), KINDS[i % len(KINDS)])
        verdict = prove(spec, impl, patterns=0)
        bits = all_patterns(spec.inputs)
        if isinstance(verdict, Equivalent):
            assert np.array_equal(scores(spec, bits), scores(impl, bits))
        elif isinstance(verdict, Undecided):
            assert "does not pass its check" in verdict.reason
            caught += 1
    assert caught > 10


def test_a_lying_sweep_is_not_believed(monkeypatch):
    def merge_everything(graph, roots, **options):
        swept = honest(graph, roots, **options)
        literals = np.where(np.isin(np.arange(graph.nodes), roots), 0, swept.literals)
        return replace(swept, literals=literals, words=swept.words[:, :0])

    honest = prover.sweep
    monkeypatch.setattr(prover, "sweep", merge_everything)
    needle = np.arange(40) % 3 == 0
    verdict = prove(needle_circuit(needle), needle_circuit(~needle))
    assert isinstance(verdict, Undecided)
    assert "does not pass its check" in verdict.reason


@pytest.mark.parametrize("seed", range(3))
def test_the_seed_does_not_change_the_verdict(seed):
    rng = np.random.default_rng(5)
    spec = layered_circuit(rng, 12, 30, 4)
    assert isinstance(prove(spec, scramble(rng, spec), seed=seed), Equivalent)
    assert isinstance(prove(spec, with_fault(rng, spec, "output"), seed=seed), Counterexample)


def test_the_circuits_are_not_changed_and_names_do_not_matter():
    rng = np.random.default_rng(6)
    spec = layered_circuit(rng, 6, 10, 2, classes=2)
    named = replace(spec, input_names=tuple("abcdef"), class_names=("no", "yes"))
    before = spec.gates.copy(), spec.operands.copy(), spec.outputs.copy()
    assert isinstance(prove(spec, named), Equivalent)
    assert all(np.array_equal(a, b) for a, b in zip(before, (spec.gates, spec.operands, spec.outputs), strict=True))


@pytest.mark.parametrize("outputs", [0, 1])
def test_circuits_without_gates(outputs):
    spec = wires(GroupSum(np.zeros(outputs, np.int32), np.array([2])), 3)
    assert isinstance(prove(spec, spec), Equivalent)
    other = replace(spec, readout=replace(spec.readout, offsets=np.array([3])))
    verdict = prove(spec, other)
    assert isinstance(verdict, Counterexample)
    assert (verdict.impl_scores - verdict.spec_scores).tolist() == [1]


@pytest.mark.parametrize(
    "verdict",
    [Equivalent("sat", 1.0, 2), Counterexample(np.zeros(2, bool), np.zeros(1), np.ones(1)), Undecided("hard")],
)
def test_a_verdict_is_not_a_truth_value(verdict):
    message = f"^a verdict is not true or false \\({type(verdict).__name__} is one of three\\); use isinstance"
    with pytest.raises(TypeError, match=message):
        bool(verdict)
    with pytest.raises(TypeError, match=message):
        assert verdict


def test_what_cannot_be_compared_is_refused():
    spec = wires(GroupSum(np.zeros(2, np.int32), np.zeros(2).astype(np.int64)), 4)
    with pytest.raises(ValueError, match=r"^spec reads 4 input bits and impl reads 5; give both the same inputs"):
        prove(spec, wires(spec.readout, 5))
    with pytest.raises(ValueError, match=r"^spec is read by GroupSum and impl by Affine; give both circuits the same"):
        prove(spec, wires(Affine(2), 4))
    with pytest.raises(ValueError, match=r"^spec has 2 classes and impl has 3; give both the same classes"):
        prove(spec, wires(GroupSum(np.zeros(2, np.int32), np.zeros(3, np.int64)), 4))
    with pytest.raises(TypeError, match=r"^prove compares two circuits, got list for impl$"):
        prove(spec, [1])
    for timeout in (0, float("nan"), float("inf")):
        with pytest.raises(ValueError, match=r"^timeout must be None or a finite number of seconds > 0, got "):
            prove(spec, spec, timeout=timeout)
    for options in ({"conflicts": 0}, {"patterns": -1}):
        with pytest.raises(ValueError, match=r"^conflicts must be >= 1 and patterns >= 0, got "):
            prove(spec, spec, **options)
