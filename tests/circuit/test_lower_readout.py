"""The readout as gates: the same answers on every input, small, proven, and read by the tools of others."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings

from faults import KINDS, with_fault
from gatefit.backends.aiger import from_aiger, to_aiger
from gatefit.backends.blif import from_blif, to_blif
from gatefit.circuit import simulate
from gatefit.circuit.engine import Engine
from gatefit.circuit.ir import Circuit
from gatefit.circuit.lower_readout import lower_readout
from gatefit.circuit.optimise import optimise
from gatefit.circuit.prove import Counterexample, Equivalent, prove
from gatefit.circuit.prove.certificate import CertificateError, check_certificate
from gatefit.circuit.readout import Affine, ClassCode, GroupSum, Linear, Number, OneHot
from gatefit.circuit.statistics import statistics
from netlist_tools import run_abc, run_yosys
from strategies import all_patterns, circuits, layered_circuit

EXACT = ("group_sum", "affine")


def answers(circuit, bits):
    if circuit.readout.gives_value:
        return simulate.scores(circuit, bits)[:, 0].tolist()
    return simulate.predict_classes(circuit, bits).tolist()


def wires(readout):
    return Circuit(max(1, readout.outputs), [], np.empty((2, 0), int), np.arange(readout.outputs), readout)


@settings(deadline=None, max_examples=150)
@given(circuits(readout_kinds=EXACT))
def test_the_answer_is_the_same_on_every_input(circuit):
    bits = all_patterns(circuit.inputs)
    for one_hot in (False, True):
        lowered = lower_readout(circuit, one_hot=one_hot)
        assert answers(lowered, bits) == answers(circuit, bits)
        assert lowered.readout.lowered
        assert lower_readout(lowered) is lowered


@pytest.mark.parametrize("classes", range(1, 10))
@pytest.mark.parametrize("one_hot", [False, True])
def test_equal_scores_go_to_the_first_class_whatever_their_number(classes, one_hot):
    rng = np.random.default_rng(classes)
    groups = rng.integers(0, classes, 11)
    for offsets in (np.zeros(classes, np.int64), rng.integers(-5, 6, classes), np.full(classes, -(2**40))):
        circuit = wires(GroupSum(groups, offsets))
        assert answers(lower_readout(circuit, one_hot=one_hot), all_patterns(11)) == answers(circuit, all_patterns(11))


def test_one_hot_has_exactly_one_one():
    circuit = wires(GroupSum([0, 1, 1, 2, 2, 2, 4], np.zeros(5, np.int64)))
    bits = simulate.simulate(lower_readout(circuit, one_hot=True), all_patterns(7))
    assert bits.shape == (128, 5)
    assert set(bits.sum(axis=1).tolist()) == {1}


@pytest.mark.parametrize(
    ("affine", "signed"),
    [(Affine(5, 0, 0.1, 3.0), 0), (Affine(5, -2, 0.1, 3.0), 1), (Affine(5, -9, -1.5, 0.0), 1), (Affine(4, 2**50), 0)],
)
def test_a_value_is_its_total_in_binary(affine, signed):
    circuit = wires(affine)
    lowered = lower_readout(circuit)
    assert isinstance(lowered.readout, Number)
    assert (lowered.readout.signed, lowered.readout.scale) == (signed, affine.scale)
    assert answers(lowered, all_patterns(circuit.inputs)) == answers(circuit, all_patterns(circuit.inputs))


def test_linear_weights_that_add_exactly_are_integers():
    rng = np.random.default_rng(0)
    for seed in range(20):
        weights = rng.integers(-40, 41, (3, 6)) / 2.0 ** rng.integers(0, 9)
        circuit = wires(Linear(weights, rng.integers(-9, 10, 3) / 4))
        lowered = lower_readout(circuit, one_hot=bool(seed % 2))
        assert answers(lowered, all_patterns(6)) == answers(circuit, all_patterns(6))


def test_sums_that_may_round_are_refused():
    with pytest.raises(ValueError, match="a Linear readout whose sums may round has no sums of integers"):
        lower_readout(wires(Linear([[1.0, 1e-9]], [0.0])))


def test_a_full_adder_is_five_gates_and_a_comparison_six_a_bit():
    """n ones are counted by n - (ones of n) full adders, or fewer with half adders; nothing is wasted beside them."""
    for ones in (3, 7, 15, 31):
        adders = ones - ones.bit_length()
        assert lower_readout(wires(Affine(ones))).gates.size == 5 * adders
    circuit = layered_circuit(np.random.default_rng(0), 40, 300, 3)
    bound = statistics(circuit).live_gates + statistics(circuit).readout.gates
    assert lower_readout(circuit).gates.size <= bound


@pytest.mark.parametrize("one_hot", [False, True])
@pytest.mark.parametrize("kind", ["classes", "value"])
def test_prove_compares_answers(one_hot, kind, tmp_path):
    circuit = layered_circuit(np.random.default_rng(3), 20, 60, 3, classes=4)
    if kind == "value":
        circuit = replace(circuit, readout=Affine(60, -7, 0.5, 1.0))
    lowered = lower_readout(circuit, one_hot=one_hot)
    folder = tmp_path / "certificate"
    assert isinstance(prove(circuit, lowered, certificate=folder), Equivalent)
    assert isinstance(prove(lowered, circuit), Equivalent)
    assert check_certificate(folder, circuit, lowered).method == "sat"
    smaller, _ = optimise(lowered)
    assert smaller.gates.size <= lowered.gates.size
    assert isinstance(prove(circuit, smaller), Equivalent)
    other = replace(lowered, outputs=lowered.outputs[::-1].copy())
    with pytest.raises(CertificateError, match="is not about this impl"):
        check_certificate(folder, circuit, other)
    verdict = prove(circuit, other)
    assert isinstance(verdict, Counterexample)
    assert answers(circuit, verdict.bits[None]) != answers(other, verdict.bits[None])


def test_classes_are_not_compared_with_values():
    circuit = wires(GroupSum([0, 0], [0]))
    with pytest.raises(ValueError, match="spec is read by GroupSum and impl by Number"):
        prove(circuit, lower_readout(wires(Affine(2))))


@pytest.mark.parametrize("fault", [kind for kind in KINDS if kind != "readout"])
def test_prove_finds_a_fault_in_the_lowered_readout(fault):
    circuit = layered_circuit(np.random.default_rng(5), 12, 40, 2, classes=3)
    lowered = lower_readout(circuit)
    rng, found = np.random.default_rng(0), 0
    for _ in range(10):
        wrong = with_fault(rng, lowered, fault)
        bits = all_patterns(12)
        equal = answers(wrong, bits) == answers(circuit, bits)
        assert isinstance(prove(circuit, wrong), Equivalent if equal else Counterexample)
        found += not equal
    assert found


@settings(deadline=None, max_examples=60)
@given(circuits(readout_kinds=EXACT))
def test_the_engine_runs_lowered_circuits(circuit):
    bits = all_patterns(circuit.inputs)
    for one_hot in (False, True):
        lowered = lower_readout(circuit, one_hot=one_hot)
        engine = Engine(lowered, threads=1)
        np.testing.assert_array_equal(engine.scores(bits), simulate.scores(lowered, bits))
        if not circuit.readout.gives_value:
            assert engine.predict(bits).tolist() == answers(circuit, bits)


def test_names_labels_and_files(tmp_path):
    circuit = Circuit(2, [6], [[0], [1]], [2, 0, 1], GroupSum([0, 1, 2], [0, 0, 1]), labels=np.array(["a", "b", "c"]))
    for one_hot, readout in ((False, ClassCode), (True, OneHot)):
        lowered = lower_readout(circuit, one_hot=one_hot)
        assert type(lowered.readout) is readout
        lowered.save(tmp_path / "lowered.gate", overwrite=True)
        back = Circuit.load(tmp_path / "lowered.gate")
        assert back.predict(all_patterns(2)).tolist() == circuit.predict(all_patterns(2)).tolist()
        with pytest.raises(TypeError, match=r"gives the class.*, not class probabilities; ask the circuit before"):
            back.predict_proba(all_patterns(2))
    assert "y0.class_bit_0" in to_blif(circuit, readout="gates")
    assert "y0.a y1.b y2.c" in to_blif(circuit, readout="one-hot")
    with pytest.raises(ValueError, match="readout must be one of none, gates, one-hot, got 'sums'"):
        to_aiger(circuit, readout="sums")


@pytest.mark.parametrize("form", ["gates", "one-hot"])
def test_netlists_carry_the_whole_model_and_come_back(form):
    circuit = layered_circuit(np.random.default_rng(7), 24, 80, 3, classes=5)
    like = lower_readout(circuit, one_hot=form == "one-hot")
    for binary in (False, True):
        back = from_aiger(to_aiger(circuit, binary=binary, readout=form), like=like)
        assert isinstance(prove(circuit, back), Equivalent)
    back = from_blif(to_blif(circuit, readout=form), like=like)
    assert isinstance(prove(circuit, back), Equivalent)
    alone = from_aiger(to_aiger(circuit, readout=form))
    assert alone.readout.classes == like.outputs.size


@pytest.mark.parametrize("form", ["gates", "one-hot"])
def test_abc_and_yosys_agree(form, tmp_path):
    """ABC proves AIGER and BLIF of one model equal, rewrites it, and finds a fault; yosys' netlist is proven by us."""
    circuit = layered_circuit(np.random.default_rng(8), 20, 80, 3, classes=5)
    (tmp_path / "model.aig").write_bytes(to_aiger(circuit, binary=True, readout=form))
    (tmp_path / "model.blif").write_text(to_blif(circuit, readout=form))
    commands = "read model.blif; strash; dc2; dc2; write_blif small.blif; cec -n model.aig small.blif"
    assert "Networks are equivalent" in run_abc(tmp_path, commands)
    like = lower_readout(circuit, one_hot=form == "one-hot")
    assert isinstance(prove(circuit, from_blif((tmp_path / "small.blif").read_text(), like=like)), Equivalent)
    wrong = replace(like, gates=np.append(like.gates[:-1], 15 - like.gates[-1]))
    (tmp_path / "wrong.blif").write_text(to_blif(wrong))
    assert "NOT EQUIVALENT" in run_abc(tmp_path, "cec -n model.aig wrong.blif")
    run_yosys(tmp_path, "read_aiger model.aig; opt; write_aiger -symbols yosys.aig")
    back = from_aiger((tmp_path / "yosys.aig").read_bytes(), like=like)
    assert isinstance(prove(circuit, back), Equivalent)
