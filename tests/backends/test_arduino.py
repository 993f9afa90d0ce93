"""Sketches: compiled by real compilers with every warning an error, run, and compared with the reference."""

import ctypes
import subprocess

import numpy as np
import pytest

from gatefit.backends.c.arduino import TARGETS, available_targets, measured_sizes, to_arduino
from gatefit.circuit import simulate
from gatefit.circuit.ir import Circuit
from gatefit.circuit.readout import Affine, GroupSum, Linear
from gatefit.encoders import Identity, OneHot, Table, Thermometer, Threshold
from gatefit.gates import Gate
from strategies import READOUTS, all_patterns, layered_circuit, random_circuit
from tools import require_tool

pytestmark = pytest.mark.outside

STRICT = ("-std=c99", "-O1", "-Wall", "-Wextra", "-Werror", "-pedantic", "-Wconversion", "-fsanitize=undefined,bounds")
NO_GATES = np.empty((2, 0), int)

# What the Arduino environment gives a sketch, and a main function that ends.
ARDUINO = """
#include <stdio.h>
struct {
  void begin(long) {}
  template <class T> void print(T x) { show(x); }
  template <class T> void println(T x) { show(x); puts(""); }
  void show(const char *x) { printf("%s", x); }
  void show(int x) { printf("%d", x); }
  void show(unsigned long x) { printf("%lu", x); }
  void show(double x) { printf("%.17g", x); }
} Serial;
static unsigned long micros() { static unsigned long now = 0; return now += 7; }
static void delay(int) {}
#include "model.ino"
int main() { setup(); for (int i = 0; i < MODEL_VECTORS; i++) loop(); }
"""


class Sketch:
    """The model of a sketch, compiled and loaded."""

    def __init__(self, circuit: Circuit, folder, **options) -> None:
        self.circuit, self.files = circuit, to_arduino(circuit, **options)
        for name, content in self.files.items():
            (folder / name).write_text(content)
        library = folder / "model.so"
        subprocess.run(
            [require_tool("gcc"), *STRICT, "-shared", "-fPIC", str(folder / "model_model.c"), "-o", str(library)],
            check=True,
        )
        self.library = ctypes.CDLL(str(library))
        self.library.model_input.restype = ctypes.POINTER(ctypes.c_uint8)
        kind = {GroupSum: ctypes.c_int32, Linear: ctypes.c_float, Affine: ctypes.c_double}[type(circuit.readout)]
        if isinstance(circuit.readout, Affine):
            self.library.model_predict.restype = kind
        else:
            self.library.model_score_of.restype = kind
            self.library.model_class_name.restype = ctypes.c_char_p

    def predict(self, bits):
        memory = self.library.model_input()
        for i, bit in enumerate(bits.tolist()):
            memory[i] = bit
        return self.library.model_predict()

    def scores(self):
        return [self.library.model_score_of(k) for k in range(self.circuit.readout.classes)]

    def predict_features(self, row):
        return self.library.model_predict_features(row.ctypes.data_as(ctypes.c_void_p))


def assert_same(sketch: Sketch, bits: np.ndarray) -> None:
    expected = simulate.scores(sketch.circuit, bits)
    for row, scores in zip(bits, expected, strict=True):
        answer = sketch.predict(row)
        if isinstance(sketch.circuit.readout, Affine):
            assert answer == scores[0]
        else:
            assert answer == scores.argmax()
            assert sketch.scores() == scores.tolist()
    assert sketch.library.model_self_test() == 0


@pytest.mark.parametrize("seed", range(6))
def test_the_model_is_right_on_every_input(tmp_path, seed):
    circuit = random_circuit(np.random.default_rng(seed), readout_kinds=(READOUTS[seed % 3],), max_gates=60)
    assert_same(Sketch(circuit, tmp_path), all_patterns(circuit.inputs))


def test_every_gate(tmp_path):
    outputs = np.arange(2, 18)
    circuit = Circuit(2, np.arange(16), np.tile([[0], [1]], 16), outputs, GroupSum(np.arange(16), np.arange(16) - 8))
    assert_same(Sketch(circuit, tmp_path), all_patterns(2))


def test_more_than_256_slots_and_outputs(tmp_path):
    circuit = layered_circuit(np.random.default_rng(0), 600, 700, 3)
    assert_same(Sketch(circuit, tmp_path), np.random.default_rng(1).random((20, 600)) < 0.5)


@pytest.mark.parametrize(
    "readout", [GroupSum([], [2, 5]), Affine(0, 3, 0.5, 1.0), Linear(np.empty((2, 0)), [1.0, 2.0])]
)
def test_no_gates_and_no_outputs(tmp_path, readout):
    assert_same(Sketch(Circuit(2, [], NO_GATES, [], readout), tmp_path), all_patterns(2))


def over(encoder) -> Circuit:
    plain = layered_circuit(np.random.default_rng(2), encoder.bits, 40, 2, classes=3)
    return Circuit(plain.inputs, plain.gates, plain.operands, plain.outputs, plain.readout, encoder=encoder)


@pytest.mark.parametrize(
    ("encoder", "rows", "c_type"),
    [
        (Thermometer(7, order="threshold", low=0, high=16).fit(np.zeros((1, 64))), "bytes", "uint8_t"),
        (Threshold(127.5).fit(np.zeros((1, 64))), "bytes", "uint8_t"),
        (Thermometer(5, low=-1, high=1).fit(np.zeros((1, 4))), "floats", "float"),
        (Table().fit({"a": [0.1, 0.2, None, 0.7], "b": [1.0, 2.5, 3.0, 9.0]}), "missing", "float"),
        (OneHot().fit(np.array([[1, 2], [3, 2], [2, 7]])), "categories", "float"),
        (Identity().fit(np.zeros((1, 5), bool), list("abcde")), "bits", "float"),
    ],
)
def test_raw_features(tmp_path, encoder, rows, c_type):
    rng = np.random.default_rng(3)
    x = {
        "bytes": rng.integers(0, 256, (60, 64)).astype(np.uint8),
        "floats": rng.normal(0, 0.7, (60, 4)).astype(np.float32),
        "missing": np.where(rng.random((60, 2)) < 0.2, np.nan, rng.uniform(0, 4, (60, 2))).astype(np.float32),
        "categories": rng.integers(0, 9, (60, 2)).astype(np.float32),
        "bits": rng.integers(0, 2, (60, 5)).astype(np.float32),
    }[rows]
    circuit = over(encoder)
    sketch = Sketch(circuit, tmp_path)
    assert f"model_predict_features(const {c_type} *v)" in sketch.files["model_model.h"]
    expected = simulate.predict_classes(circuit, encoder.transform(x))
    assert [sketch.predict_features(row) for row in x] == expected.tolist()


@pytest.mark.parametrize(
    ("encoder", "options", "reason"),
    [
        (OneHot().fit({"c": ["a", "b@SLOTS", "c"]}), {}, "feature 'c' is compared with a string"),
        (OneHot().fit(np.array([[0.1], [0.7]])), {}, "a category is no float"),
        (Table().fit({"a": [-1e300, -2e300, -3e300]}), {}, "a threshold is beyond what a float holds"),
        (OneHot().fit(np.array([[1], [3]])), {"feature_type": "uint8_t"}, "bytes cannot be missing"),
    ],
)
def test_why_there_is_no_function_on_features(tmp_path, encoder, options, reason):
    sketch = Sketch(over(encoder), tmp_path, **options)
    assert f"No function on raw features: {reason}" in sketch.files["model_model.h"]
    assert_same(sketch, all_patterns(encoder.bits))


@pytest.mark.parametrize("kind", READOUTS)
def test_the_sketch_runs(tmp_path, kind):
    circuit = random_circuit(np.random.default_rng(8), readout_kinds=(kind,), max_gates=60)
    bits = np.random.default_rng(0).random((5, circuit.inputs)) < 0.5
    sketch = Sketch(circuit, tmp_path, vectors=bits)
    (tmp_path / "main.cpp").write_text(ARDUINO)
    # The model is C and the sketch C++, as in the Arduino environment.
    program = str(tmp_path / "sketch")
    compiler, strict = require_tool("g++"), ("-Wall", "-Wextra", "-Werror")
    subprocess.run([require_tool("gcc"), "-c", f"{tmp_path}/model_model.c", "-o", f"{tmp_path}/model.o"], check=True)
    subprocess.run([compiler, *strict, f"{tmp_path}/main.cpp", f"{tmp_path}/model.o", "-o", program], check=True)
    first, *lines = subprocess.run([program], capture_output=True, text=True, check=True).stdout.splitlines()
    assert first == "self-test, wrong answers: 0"
    answers = [line.partition(": ")[2].removesuffix(" in 7 us") for line in lines]
    scores = simulate.scores(circuit, bits)
    if kind == "affine":
        assert [float(answer) for answer in answers] == scores[:, 0].tolist()
    else:
        assert answers == [str(k) for k in scores.argmax(axis=1)]
    assert sketch.library.model_self_test() == 0


def test_names_can_do_nothing(tmp_path):
    names = ('a"; int x = 0; //', "@SLOTS @m ??/ \\", "é\n*/")
    circuit = Circuit(1, [], NO_GATES, [0], GroupSum([0], [0, 0, 0]), class_names=names)
    sketch = Sketch(circuit, tmp_path)
    found = tuple(sketch.library.model_class_name(k).decode() for k in range(3))
    assert found == names


def test_the_same_circuit_gives_the_same_files():
    circuit = layered_circuit(np.random.default_rng(0), 20, 30, 2)
    assert to_arduino(circuit) == to_arduino(circuit)
    assert "| tables in flash | " in to_arduino(circuit)["README.md"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"readout": GroupSum([0], [2**30])},
            "scores are 32-bit integers here, and an offset of the readout is 1073741824",
        ),
        ({"inputs": 2**16}, "a microcontroller export has at most 65535 input bits, got 65536"),
    ],
)
def test_what_does_not_fit_is_refused(change, message):
    fields = {"inputs": 1, "gates": [], "operands": NO_GATES, "outputs": [0], "readout": GroupSum([0], [0])}
    with pytest.raises(ValueError, match=message):
        to_arduino(Circuit(**(fields | change)))


def test_bad_names_and_no_vectors():
    circuit = Circuit(1, [Gate.NOT_A], [[0], [0]], [1], GroupSum([0], [0]))
    with pytest.raises(ValueError, match="'9lives' cannot name anything in C"):
        to_arduino(circuit, "9lives")
    with pytest.raises(ValueError, match="the sketch replays test vectors; give it at least one"):
        to_arduino(circuit, vectors=0)


@pytest.mark.parametrize("target", TARGETS)
def test_sizes_are_what_the_tables_and_the_memory_take(target):
    if target not in available_targets():
        pytest.skip(f"needs the compiler {TARGETS[target][0]}")
    small, large = (layered_circuit(np.random.default_rng(0), 64, width, 3, gates=[1, 6, 7]) for width in (100, 400))
    (less,), (more,) = (measured_sizes(to_arduino(circuit), [target]) for circuit in (small, large))
    assert 64 < less.ram < more.ram < 64 + 2 * 400 + 64
    # Six bytes a gate and two an output, unless slots fit a byte.
    assert 3 * 100 * 3 < less.flash < more.flash < 6 * 400 * 3 + 2 * 400 + 2500


def test_a_compiler_error_is_a_row():
    require_tool("gcc")
    files = to_arduino(Circuit(1, [], NO_GATES, [0], GroupSum([0], [0])))
    (size,) = measured_sizes(files | {"model_model.h": "nonsense"}, ["this machine"])
    assert (size.flash, size.ram) == (None, None)
    assert size.reason.startswith("expected")
