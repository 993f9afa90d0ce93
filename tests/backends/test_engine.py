"""The engine against the reference: every readout, every batch size, every gate with every kind of operand."""

import copy
import re
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gatefit.circuit import simulate
from gatefit.circuit.engine import Engine, kernels, plain, run
from gatefit.circuit.engine.program import plan
from gatefit.circuit.ir import Circuit
from gatefit.circuit.readout import Affine, GroupSum, Linear, Readout
from gatefit.gates import Gate
from strategies import READOUTS, all_patterns, circuits, layered_circuit, random_circuit

BATCHES = (1, 63, 64, 65, 255, 256, 257, 511, 513, 1000)


@pytest.fixture(autouse=True, scope="module")
def kernels_alone():
    """Where nothing was compiled yet numpy would answer: here the kernels do, but for the tests of numpy's way."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run._PLAIN, "over", True)
        yield


def random_bits(seed: int, samples: int, inputs: int) -> np.ndarray:
    return np.random.default_rng(seed).random((samples, inputs)) < 0.5


def with_readout(circuit: Circuit, readout: Readout) -> Circuit:
    return Circuit(circuit.inputs, circuit.gates, circuit.operands, circuit.outputs, readout)


def assert_same(circuit: Circuit, bits: np.ndarray, threads: int = 1) -> None:
    engine = Engine(circuit, threads=threads)
    expected = simulate.scores(circuit, bits)
    scores = engine.scores(bits)
    assert scores.dtype == expected.dtype
    np.testing.assert_array_equal(scores, expected)
    np.testing.assert_array_equal(engine.outputs(bits), simulate.simulate(circuit, bits))
    if not isinstance(circuit.readout, Affine):
        np.testing.assert_array_equal(engine.predict(bits), expected.argmax(axis=1))


@given(circuits(max_inputs=8, max_gates=60, max_outputs=40), st.sampled_from(BATCHES[:4]), st.integers(0, 2**32))
@settings(max_examples=150)
def test_engine_computes_what_simulate_defines(circuit, samples, seed):
    assert_same(circuit, random_bits(seed, samples, circuit.inputs))


@given(circuits(max_inputs=7))
@settings(max_examples=80)
def test_engine_is_right_on_every_input(circuit):
    assert_same(circuit, all_patterns(circuit.inputs))


@pytest.mark.parametrize("kind", READOUTS)
@pytest.mark.parametrize("inputs", [1, 7, 63, 64, 65, 130])
def test_every_batch_size(inputs, kind):
    """Fewer inputs than a vector has lanes, as many, and more: packing takes different paths."""
    rng = np.random.default_rng(inputs)
    while True:
        circuit = random_circuit(rng, inputs, 80, 40, readout_kinds=(kind,))
        if circuit.inputs == inputs and circuit.gates.size > 20 and circuit.outputs.size > 10:
            break
    for samples in (0, *BATCHES):
        assert_same(circuit, random_bits(samples, samples, inputs))


def test_every_gate_with_every_kind_of_operand():
    """Operands that are inputs, inverted, constant, equal or opposite: all 16 gates on all 36 pairs."""
    sources = [0, 1, 2, 3, 4, 5]  # x0, x1, not x0, not x1, 0, 1
    gates = [Gate.NOT_A, Gate.NOT_A, Gate.FALSE, Gate.TRUE]
    pairs = [(a, b) for a in sources for b in sources]
    operands = np.array([[0, 1, 0, 0], [0, 1, 0, 0]])
    tested = np.repeat(np.array(list(Gate)), len(pairs))
    operands = np.hstack([operands, np.tile(np.array(pairs).T, 16)])
    outputs = 6 + np.arange(tested.size)
    circuit = Circuit(2, np.concatenate([gates, tested]), operands, outputs, Affine(outputs.size))
    assert_same(circuit, all_patterns(2))


@pytest.mark.parametrize("classes", [1, 2, 3, 10])
def test_group_sums_of_uneven_groups_and_offsets(classes):
    rng = np.random.default_rng(classes)
    circuit = layered_circuit(rng, 40, 700, 3)
    groups = np.sort(rng.integers(0, classes, 700) ** 2 % classes)
    for order in (groups, rng.permutation(groups)):
        assert_same(with_readout(circuit, GroupSum(order, rng.integers(-900, 900, classes))), random_bits(1, 600, 40))


def test_equal_scores_go_to_the_first_class():
    circuit = Circuit(2, [], np.empty((2, 0), int), [0, 0, 1, 1], GroupSum([2, 0, 1, 0], [-1, 0, 0]))
    engine = Engine(circuit)
    assert engine.scores(all_patterns(2)).tolist() == [[-1, 0, 0], [0, 0, 1], [0, 1, 0], [1, 1, 1]]
    assert engine.predict(all_patterns(2)).tolist() == [1, 2, 1, 0]


def test_linear_scores_round_in_the_order_of_the_readout():
    rng = np.random.default_rng(0)
    circuit = layered_circuit(rng, 30, 300, 2)
    scale = 10.0 ** rng.integers(-6, 6, (4, 300))
    assert_same(
        with_readout(circuit, Linear(rng.normal(size=(4, 300)) * scale, rng.normal(size=4))), random_bits(0, 700, 30)
    )


def test_number_of_threads_changes_nothing(monkeypatch):
    monkeypatch.setattr(run, "_WORTH_A_THREAD", 1)
    circuit = layered_circuit(np.random.default_rng(0), 100, 300, 3)
    bits = random_bits(3, 5000, 100)
    one = Engine(circuit, threads=1)
    for threads in (2, 3, 50):
        many = Engine(circuit, threads=threads)
        for samples in (5000, 4608, 513, 512, 65):
            np.testing.assert_array_equal(many.scores(bits[:samples]), one.scores(bits[:samples]))
            np.testing.assert_array_equal(many.predict(bits[:samples]), one.predict(bits[:samples]))
            np.testing.assert_array_equal(many.outputs(bits[:samples]), one.outputs(bits[:samples]))


def test_one_engine_serves_several_callers_at_once():
    circuit = layered_circuit(np.random.default_rng(0), 50, 200, 3)
    engine = Engine(circuit)
    batches = [random_bits(seed, samples, 50) for seed, samples in enumerate((1, 40, 600, 64, 1500, 7, 513, 65))]
    with ThreadPoolExecutor(4) as pool:
        for scores, bits in zip(pool.map(engine.scores, batches * 5), batches * 5, strict=True):
            np.testing.assert_array_equal(scores, simulate.scores(circuit, bits))


@pytest.mark.parametrize("samples", [1, 64, 65, 512, 513, 1000])
def test_packed_samples(samples):
    circuit = layered_circuit(np.random.default_rng(0), 70, 200, 3)
    bits = random_bits(samples, samples, 70)
    padded = np.zeros((-(-samples // 64) * 64, 70), bool)
    padded[:samples] = bits
    columns = np.ascontiguousarray(padded.T)
    words = np.ascontiguousarray(np.packbits(columns, axis=1, bitorder="little").view(np.uint64).T)
    engine = Engine(circuit)
    np.testing.assert_array_equal(engine.scores_packed(words, samples), engine.scores(bits))
    np.testing.assert_array_equal(engine.scores_packed(words), engine.scores(padded))


def test_copies_of_a_used_engine_work_alone():
    circuit = layered_circuit(np.random.default_rng(0), 70, 200, 3)
    bits = random_bits(0, 700, 70)
    engine = Engine(circuit)
    expected = engine.scores(bits)
    np.testing.assert_array_equal(copy.deepcopy(engine).scores(bits), expected)
    np.testing.assert_array_equal(copy.deepcopy(engine).scores(bits[:60]), expected[:60])
    np.testing.assert_array_equal(engine.scores(bits), expected)


def test_bits_in_any_form_compile_no_second_kernel():
    circuit = layered_circuit(np.random.default_rng(0), 20, 40, 2)
    engine = Engine(circuit)
    bits = random_bits(0, 90, 20)
    frozen = bits.copy()
    frozen.flags.writeable = False
    forms = (bits, frozen, np.asfortranarray(bits), np.repeat(bits, 2, axis=1)[:, ::2], bits.astype(np.uint8))
    forms += (bits.astype(float), bits.astype(int), bits.tolist())
    for form in forms:
        np.testing.assert_array_equal(engine.scores(form), engine.scores(bits))
    for samples in (1, 64, 90):
        engine.predict(bits[:samples])
    assert len(kernels.group_sums.signatures) == 1


@pytest.mark.parametrize("samples", [1, 3, 64, 100, 600])
@pytest.mark.parametrize("inputs", [5, 80])
def test_bytes_other_than_0_and_1_are_refused_wherever_they_are(samples, inputs):
    engine = Engine(Circuit(inputs, [Gate.AND], [[0], [1]], [inputs], GroupSum([0], [0])))
    for row, column in {(0, 0), (samples - 1, inputs - 1), (samples // 2, inputs // 2)}:
        bits = np.zeros((samples, inputs), np.uint8)
        bits[row, column] = 2
        for form in (bits, bits.view(bool)):
            with pytest.raises(ValueError, match="the engine reads bits, got bytes other than 0 and 1"):
                engine.scores(form)
        assert engine.scores(bits * 0).sum() == 0  # the refusal leaves nothing behind


@pytest.mark.parametrize(
    ("bits", "error", "message"),
    [
        (np.zeros((3, 4), bool), ValueError, "reads a (samples, 5) matrix of bits, got shape (3, 4)"),
        (np.zeros(5, bool), ValueError, "reads a (samples, 5) matrix of bits, got shape (5,)"),
        (np.zeros((3, 5), np.float32) + 0.5, ValueError, "got numbers other than 0 and 1"),
        (np.full((3, 5), np.nan), ValueError, "got numbers other than 0 and 1"),
        (np.full((3, 5), "a"), TypeError, "reads Booleans or the numbers 0 and 1, got dtype <U1"),
    ],
)
def test_wrong_bits_are_refused(bits, error, message):
    engine = Engine(Circuit(5, [Gate.AND], [[0], [1]], [5], GroupSum([0], [0])))
    for call in (engine.scores, engine.predict, engine.outputs):
        with pytest.raises(error, match=re.escape(message)):
            call(bits)


def test_wrong_packed_samples_are_refused():
    engine = Engine(Circuit(5, [Gate.AND], [[0], [1]], [5], GroupSum([0], [0])))
    for words in (np.zeros((1, 4), np.uint64), np.zeros((1, 5), np.int64), np.zeros(5, np.uint64)):
        with pytest.raises(ValueError, match=re.escape("reads packed samples as uint64 (words, 5)")):
            engine.scores_packed(words)
    with pytest.raises(ValueError, match="1 words hold 0 to 64 samples, got samples=65"):
        engine.scores_packed(np.zeros((1, 5), np.uint64), 65)


def test_wrong_calls_are_refused():
    circuit = Circuit(1, [], np.empty((2, 0), int), [0], Affine(1))
    with pytest.raises(TypeError, match="an Affine readout gives a value, not a class"):
        Engine(circuit).predict(np.zeros((1, 1), bool))
    with pytest.raises(ValueError, match="threads must be at least 1, got 0"):
        Engine(circuit, threads=0)


def test_constants_wires_and_unread_gates_are_not_evaluated():
    kinds = [Gate.TRUE, Gate.A, Gate.NOT_B, Gate.AND, Gate.AND, Gate.OR]
    # the fourth gate is x0 and 1, the fifth is read by nobody
    operands = [[0, 0, 0, 0, 0, 0], [1, 1, 1, 2, 1, 4]]
    engine = Engine(Circuit(2, kinds, operands, [7, 5, 2, 4], Affine(4)))
    assert engine.evaluated_gates == 1
    assert_same(engine.circuit, all_patterns(2))


def test_memory_is_reused_between_layers():
    circuit = layered_circuit(np.random.default_rng(0), 100, 1000, 20, gates=[Gate.XOR])
    program = plan(circuit)
    assert len(program.code) > 10_000
    assert program.slots < 2500  # two layers, not twenty
    assert program.code.max() < program.slots


def test_preparation_is_linear_in_deep_circuits():
    gates, inputs = 300_000, 50_000
    operands = np.stack([inputs - 1 + np.arange(gates), np.arange(gates) % inputs])
    circuit = Circuit(inputs, np.full(gates, Gate.XOR), operands, [inputs + gates - 1], Affine(1))
    bits = random_bits(0, 3, inputs)
    expected = bits[:, -1] ^ (bits[:, np.arange(gates) % inputs].sum(axis=1) % 2 == 1)
    start = time.process_time()
    engine = Engine(circuit)
    assert time.process_time() - start < 50
    np.testing.assert_array_equal(engine.outputs(bits)[:, 0], expected)


def test_a_million_gates_are_ready_in_a_second():
    circuit = layered_circuit(np.random.default_rng(0), 784, 170_000, 6)
    Engine(layered_circuit(np.random.default_rng(0), 8, 10, 2)).predict(np.zeros((1, 8), bool))  # compile
    bits = random_bits(0, 1, 784)
    times = []
    for _ in range(3):
        start = time.process_time()
        Engine(circuit, threads=1).predict(bits)
        times.append(time.process_time() - start)
    assert circuit.gates.size > 1_000_000
    assert min(times) < 10  # a second on an idle machine, and what is not linear never


class PlainEngine(Engine):
    """An engine that numpy serves, whatever is compiled."""

    def _is_plain(self, bits):
        self._stretches = plain.stretches(self.circuit, 10**6)
        return True


@given(circuits(max_inputs=8, max_gates=60, max_outputs=40), st.sampled_from(BATCHES[:4]), st.integers(0, 2**32))
@settings(max_examples=150)
def test_numpy_computes_what_simulate_defines(circuit, samples, seed):
    bits = random_bits(seed, samples, circuit.inputs)
    engine, expected = PlainEngine(circuit), simulate.scores(circuit, bits)
    for given_bits in (bits, bits.view(np.uint8)):
        scores = engine.scores(given_bits)
        assert scores.dtype == expected.dtype
        np.testing.assert_array_equal(scores, expected)
        np.testing.assert_array_equal(engine.outputs(given_bits), simulate.simulate(circuit, bits))
        if not circuit.readout.gives_value:
            np.testing.assert_array_equal(engine.predict(given_bits), expected.argmax(axis=1))


@pytest.mark.parametrize("samples", [0, 1, 64, 65, 1000])
def test_numpy_takes_as_many_samples_as_its_memory_holds(samples, monkeypatch):
    monkeypatch.setattr(plain, "_WORDS_AT_A_TIME", 300)
    circuit = layered_circuit(np.random.default_rng(0), 20, 50, 3)
    bits = random_bits(1, samples, circuit.inputs)
    np.testing.assert_array_equal(PlainEngine(circuit).outputs(bits), simulate.simulate(circuit, bits))


def test_stretches_are_layers_and_a_chain_has_too_many():
    circuit = layered_circuit(np.random.default_rng(0), 20, 50, 3)
    assert plain.stretches(circuit, 100).tolist() == [0, 50, 100, 150]
    gates = 500
    chain = Circuit(1, [Gate.NOT_A] * gates, np.tile(np.arange(gates), (2, 1)), [gates], Affine(1))
    assert plain.stretches(chain, gates + 1).tolist() == list(range(gates + 1))
    assert plain.stretches(chain, 100) is None


def test_numpy_serves_until_compiling_pays(monkeypatch):
    circuit = layered_circuit(np.random.default_rng(0), 20, 50, 3)
    bits = random_bits(1, 64, circuit.inputs)
    monkeypatch.setattr(run, "is_compiled", lambda kernel: False)
    monkeypatch.setattr(run, "_PLAIN", run._PlainWork())
    engine = Engine(circuit)
    monkeypatch.setattr(run, "_PLAIN_SECONDS", 2.5 * plain.cost(circuit, plain.stretches(circuit, 100), 64))
    for _ in range(2):
        engine.predict(bits)
        assert engine._prepared is None
    engine.predict(bits)
    assert engine._prepared is not None
    # What was compiled before serves at once.
    monkeypatch.setattr(run, "is_compiled", lambda kernel: True)
    monkeypatch.setattr(run, "_PLAIN", run._PlainWork())
    ready = Engine(circuit)
    ready.predict(bits)
    assert ready._prepared is not None


def test_numpy_refuses_what_kernels_refuse():
    engine = PlainEngine(Circuit(3, [Gate.AND], [[0], [1]], [3], Affine(1)))
    with pytest.raises(ValueError, match="the engine reads bits, got bytes other than 0 and 1"):
        engine.scores(np.full((2, 3), 2, np.uint8))
    for wrong in (np.zeros((2, 4), bool), 7, "x"):
        with pytest.raises((ValueError, TypeError), match="the circuit reads"):
            engine.scores(wrong)
