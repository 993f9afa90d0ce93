"""Exported C, compiled by a real compiler with every warning an error, against the reference."""

import ctypes
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest

from gatefit.backends.c import to_c
from gatefit.backends.c.export import int64_literal
from gatefit.backends.c.native import NativeModel, compile_c
from gatefit.backends.comparators import float_literal
from gatefit.circuit import simulate
from gatefit.circuit.ir import Circuit
from gatefit.circuit.readout import Affine, GroupSum, Linear
from gatefit.circuit.statistics import fan_out
from gatefit.encoders import OneHot, Table, Thermometer, Threshold
from gatefit.gates import Gate
from strategies import READOUTS, all_patterns, layered_circuit, random_circuit
from tools import require_tool

pytestmark = pytest.mark.outside

STYLES = ("straight", "table")
STRICT = ("-Wall", "-Wextra", "-Werror", "-pedantic")
NO_GATES = np.empty((2, 0), int)


def native(circuit: Circuit, style: str, **options: str) -> NativeModel:
    return NativeModel(circuit, style, ("-O1", *STRICT), require_tool("gcc"), **options)


def assert_same(model: NativeModel, bits: np.ndarray) -> None:
    circuit = model.circuit
    expected = simulate.scores(circuit, bits)
    np.testing.assert_array_equal(model.scores(bits), expected)
    np.testing.assert_array_equal(model.scores_one_by_one(bits), expected)
    if isinstance(circuit.readout, Affine):
        np.testing.assert_array_equal(model.predict_one_by_one(bits), expected[:, 0])
    else:
        np.testing.assert_array_equal(model.predict(bits), expected.argmax(axis=1))
        np.testing.assert_array_equal(model.predict_one_by_one(bits), expected.argmax(axis=1))
    assert model.self_test() == 0


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("seed", range(8))
def test_compiled_c_is_right_on_every_input(seed, style):
    circuit = random_circuit(np.random.default_rng(seed), readout_kinds=(READOUTS[seed % 3],), max_gates=60)
    assert_same(native(circuit, style), all_patterns(circuit.inputs))


@pytest.mark.parametrize("style", STYLES)
def test_every_gate(style):
    outputs = np.arange(2, 18)
    circuit = Circuit(2, np.arange(16), np.tile([[0], [1]], 16), outputs, GroupSum(np.arange(16), np.arange(16) - 8))
    assert_same(native(circuit, style), all_patterns(2))


@pytest.mark.parametrize("style", STYLES)
def test_no_outputs_and_no_gates(style):
    for readout in (GroupSum([], [2, 5]), Affine(0, 3, 0.5, 1.0), Linear(np.empty((2, 0)), [1.0, 2.0])):
        assert_same(native(Circuit(2, [], NO_GATES, [], readout), style), all_patterns(2))


@pytest.mark.parametrize("style", STYLES)
def test_many_parts_tables_and_static_memory(style):
    """More gates than fit one function, more working memory than is taken from the stack."""
    circuit = layered_circuit(np.random.default_rng(0), 600, 700 if style == "straight" else 14000, 2)
    text = to_c(circuit, style=style)
    assert ("calls must not overlap" in text) == (style == "table")
    assert_same(native(circuit, style), np.random.default_rng(1).random((130, 600)) < 0.5)


def test_groups_out_of_order_and_extreme_offsets():
    offsets = [2**62 - 1, 1 - 2**62, 0]
    circuit = Circuit(3, [], NO_GATES, [0, 1, 2, 0, 1], GroupSum([2, 1, 0, 1, 2], offsets))
    assert_same(native(circuit, "straight"), all_patterns(3))


def test_regression_rounds_as_the_reference_does():
    rng = np.random.default_rng(0)
    circuit = Circuit(9, [], NO_GATES, rng.integers(0, 9, 40), Affine(40, -7, 0.1, 1 / 3))
    model = NativeModel(circuit, flags=("-O3", "-march=native", "-std=gnu99"), compiler=require_tool("gcc"))
    assert_same(model, all_patterns(9))


def executable(folder: Path, compiler: str, flags: tuple[str, ...], models: dict[str, str]) -> Path:
    """A program that includes every model twice, once with its implementation, and counts their failures."""
    for name, text in models.items():
        (folder / f"{name}.h").write_text(text, encoding="ascii")
    includes = [
        f'#include "{n}.h"\n#define {n.upper()}_IMPLEMENTATION\n#include "{n}.h"\n#include "{n}.h"' for n in models
    ]
    calls = " + ".join(f"{name}_self_test()" for name in models)
    main = folder / "main.c"
    main.write_text("\n".join([*includes, f"int main(void) {{ return ({calls}) != 0; }}", ""]))
    program = folder / "program"
    subprocess.run([compiler, *flags, *STRICT, "-o", str(program), str(main)], check=True, cwd=folder)
    return program


def small_models() -> dict[str, str]:
    """Every readout in both styles, with every input pattern in the self-test."""
    models = {}
    for k, kind in enumerate(READOUTS):
        circuit = random_circuit(np.random.default_rng(40 + k), readout_kinds=(kind,), max_gates=150, max_outputs=30)
        for style in STYLES:
            models[f"{kind}_{style}"] = to_c(circuit, f"{kind}_{style}", style, all_patterns(circuit.inputs))
    return models


def test_sanitizers_find_nothing(tmp_path):
    flags = ("-std=c99", "-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
    program = executable(tmp_path, require_tool("gcc"), flags, small_models())
    subprocess.run([str(program)], check=True)


def test_exported_c_is_c_plus_plus_too(tmp_path):
    program = executable(tmp_path, require_tool("g++"), ("-std=c++11", "-x", "c++", "-O1"), small_models())
    subprocess.run([str(program)], check=True)


@pytest.mark.parametrize("style", STYLES)
def test_the_self_test_notices_a_wrong_gate(style, tmp_path):
    right = {"straight": "x0 ^ x1", "table": "w[code[1]] ^ w[code[2]]"}[style]
    circuit = Circuit(2, [Gate.XOR], [[0], [1]], [2], GroupSum([0], [0]))
    text = to_c(circuit, "wrong", style, all_patterns(2))
    assert right in text
    compile_c(
        text.replace(right, right.replace("^", "|")), "wrong", tmp_path / "wrong.so", compiler=require_tool("gcc")
    )
    # one vector is wrong: its score by the single and by the batch function; the only class is always right
    assert ctypes.CDLL(str(tmp_path / "wrong.so")).wrong_self_test() == 2


HOSTILE = (
    '"; int injected(void) { return 1; } const char *x = "',
    "*/ int injected = 1; /*",
    "ends with a backslash \\",
    "??/\n#error a line of its own",
    'line\n#include "/etc/passwd"\r\nint injected;',
    "\\u202e \N{RIGHT-TO-LEFT OVERRIDE} é %s %n",
    "int",
    "",
)


@pytest.mark.parametrize("style", STYLES)
def test_names_cannot_become_code(style, tmp_path):
    circuit = Circuit(
        len(HOSTILE),
        [Gate.AND],
        [[0], [1]],
        [len(HOSTILE)] * len(HOSTILE),
        GroupSum(np.arange(len(HOSTILE)), [0] * len(HOSTILE)),
        input_names=HOSTILE,
        class_names=HOSTILE,
    )
    text = to_c(circuit, "hostile", style)
    code = re.sub(r'"(?:[^"\\\n]|\\.)*"|/\*.*?\*/', "", text, flags=re.DOTALL)
    assert "injected" not in code
    assert "#error" not in code
    library = tmp_path / "hostile.so"
    compile_c(text, "hostile", library, (*STRICT, "-trigraphs"), require_tool("gcc"))
    loaded = ctypes.CDLL(str(library))
    loaded.hostile_class_name.restype = ctypes.c_char_p
    assert [loaded.hostile_class_name(k) for k in range(len(HOSTILE))] == [name.encode() for name in HOSTILE]
    assert loaded.hostile_class_name(-1) == loaded.hostile_class_name(len(HOSTILE)) == b""
    assert not hasattr(loaded, "injected")


def encoded_circuit(encoder: object) -> Circuit:
    """A circuit whose class or value shows every bit of a few features."""
    rng = np.random.default_rng(0)
    bits = encoder.bits
    return Circuit(
        bits, [], NO_GATES, np.arange(bits), Linear(rng.normal(size=(3, bits)), np.zeros(3)), encoder=encoder
    )


@pytest.mark.parametrize("feature_type", ["float", "double"])
def test_raw_features_are_compared_exactly(feature_type):
    dtype = {"float": np.float32, "double": np.float64}[feature_type]
    rng = np.random.default_rng(0)
    encoder = Thermometer(3, spacing="quantile").fit(rng.normal(size=(100, 4)))
    levels = np.array([rule.value for rule in encoder.rules]).astype(dtype)
    near = np.concatenate([levels, np.nextafter(levels, dtype(np.inf)), np.nextafter(levels, dtype(-np.inf))])
    x = np.concatenate([np.tile(near[:, None], 4), rng.normal(size=(100, 4)), [[np.inf] * 4, [-np.inf] * 4, [0] * 4]])
    x = x.astype(dtype)
    circuit = encoded_circuit(encoder)
    expected = simulate.predict_classes(circuit, encoder.transform(x))
    assert len(set(expected.tolist())) == 3
    model = native(circuit, "straight", feature_type=feature_type)
    np.testing.assert_array_equal(model.predict_features(x), expected)


def test_thresholds_beyond_the_features_type():
    encoder = Threshold([1e300, -1e300, 16777217.0]).fit(np.zeros((1, 3)))
    circuit = Circuit(3, [], NO_GATES, [0, 1, 2], Affine(3), encoder=encoder)
    big = np.finfo(np.float32).max
    x = np.array([[np.inf, -np.inf, 16777216], [big, -big, 16777218], [0, 0, 0]], np.float32)
    model = native(circuit, "straight")
    np.testing.assert_array_equal(model.predict_features(x), encoder.transform(x).sum(axis=1))


def test_numeric_categories_missing_values_and_bits():
    columns = {"flag": [True, False, True, False], "code": [3, 5, 7, 3], "size": [1.5, np.nan, 2.5, 0.5]}
    encoder = Table(categorical=["code"]).fit(columns)
    assert {rule.test for rule in encoder.rules} == {">", "=", "missing", "bit"}
    circuit = encoded_circuit(encoder)
    model = native(circuit, "straight")
    x = np.array([[1, 3, 1.5], [0, 5, np.nan], [1, 7, 2.5], [0, 3, 0.5], [1, 7, np.nan]], np.float32)
    frame = {"flag": x[:, 0] == 1, "code": x[:, 1].astype(int).tolist(), "size": x[:, 2].astype(float)}
    np.testing.assert_array_equal(
        model.predict_features(x), simulate.predict_classes(circuit, encoder.transform(frame))
    )


@pytest.mark.parametrize(
    ("categories", "reason"),
    [
        (["a*/", "b"], "is compared with the string 'a<U+002A>/'"),
        ([16777217, 5], "is compared with 16777217, which is no float"),
    ],
)
def test_features_that_c_cannot_compare_are_left_out_with_the_reason(categories, reason):
    encoder = OneHot().fit({"kind": categories})
    text = to_c(encoded_circuit(encoder))
    assert f"No functions on raw features: feature 'kind' {reason}" in text
    assert "_features(" not in text
    assert "_encode(" not in text


def test_without_an_encoder_there_are_no_features():
    assert "the circuit was saved without its encoder" in to_c(Circuit(1, [], NO_GATES, [0], Affine(1)))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"name": "a b"}, "'a b' cannot name anything in C"),
        ({"style": "fast"}, "style must be 'auto', 'straight' or 'table', got 'fast'"),
        ({"feature_type": "half"}, "feature_type must be 'float' or 'double', got 'half'"),
        ({"test_vectors": np.zeros((2, 3), bool)}, "reads a (samples, 1) matrix of bits, got shape (2, 3)"),
    ],
)
def test_wrong_options_are_refused(options, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        to_c(Circuit(1, [], NO_GATES, [0], Affine(1)), **options)


def test_style_follows_the_size():
    rng = np.random.default_rng(0)
    assert "(straight style)" in to_c(layered_circuit(rng, 8, 1000, 3), test_vectors=0)
    assert "(table style)" in to_c(layered_circuit(rng, 8, 1001, 3), test_vectors=0)


def test_the_text_is_ascii_and_always_the_same():
    circuit = layered_circuit(np.random.default_rng(0), 8, 40, 3)
    assert to_c(circuit) == to_c(circuit)
    assert to_c(circuit).isascii()


def test_a_missing_compiler_and_its_messages_are_said(tmp_path):
    with pytest.raises(FileNotFoundError, match="no C compiler 'no-such-compiler' found"):
        compile_c("", "m", tmp_path / "m.so", compiler="no-such-compiler")
    with pytest.raises(RuntimeError, match="failed on the exported C"):
        compile_c("this is not C", "m", tmp_path / "m.so", compiler=require_tool("gcc"))


def test_live_nodes_follow_what_gates_use():
    # gate 0 is read by gate 1, which ignores it; gate 2 reads x1
    circuit = Circuit(3, [Gate.XOR, Gate.B, Gate.NOT_A], [[0, 3, 4], [1, 1, 2]], [5], Affine(1))
    assert (fan_out(circuit) > 0).tolist() == [False, True, False, False, True, True]


def test_literals():
    assert [int64_literal(n) for n in (0, -5, 2**63 - 1)] == [
        "INT64_C(0)",
        "(-INT64_C(5))",
        "INT64_C(9223372036854775807)",
    ]
    assert int64_literal(-(2**63)) == "(-INT64_C(9223372036854775807) - 1)"
    assert [float_literal(x) for x in (1.0, 0.1, 1e22, -2.5)] == ["1.0", "0.1", "1e+22", "-2.5"]
    assert [float_literal(x, "float") for x in (3.0, np.float32(0.1))] == ["3.0f", "0.100000001f"]
