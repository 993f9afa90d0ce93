"""A circuit for a microcontroller: one sample at a time, tables in flash, one byte of RAM for each live value.

    <name>.ino           an Arduino sketch: replays test vectors, prints the answers and the microseconds they took
    <name>_model.h, .c   C99 without allocation or library; integers only, unless the readout or the features are not
    README.md            what it needs and how to use it

The gates are the engine's program: runs of w[c] = w[a] op w[b] over byte slots, which are used again as soon as nobody
needs their value. Six bytes of flash a gate. On AVR the tables stay in flash (PROGMEM).
"""

from typing import Any, Final, Literal

import numpy as np
from jaxtyping import Bool

from gatefit.backends import arduino_text as text
from gatefit.backends.c_text import float_literal, unsigned_type
from gatefit.backends.comparators import NotNumeric
from gatefit.backends.engine_plan import Program, plan
from gatefit.backends.html_inputs import image_shape_of
from gatefit.backends.names import C_KEYWORDS, c_string, class_names, comment_text, require_identifier
from gatefit.circuit.ir import Circuit
from gatefit.circuit.readout import Affine, GroupSum, Linear
from gatefit.circuit.simulate import check_bits, scores
from gatefit.encoders import Encoder
from gatefit.encoders.threshold import round_down

MAX_INPUTS: Final = 2**16 - 1
MAX_OFFSET: Final = 2**30
FeatureType = Literal["uint8_t", "float"]

_SIZES: Final = {"int8_t": 1, "uint8_t": 1, "int16_t": 2, "uint16_t": 2, "int32_t": 4, "uint32_t": 4, "float": 4}


class _Tables:
    """Constant tables, as text and as bytes of flash; and the macros that read them."""

    def __init__(self) -> None:
        self.text = ""
        self.bytes = 0

    def add(self, name: str, values: Any, c_type: str | None = None) -> tuple[str, str]:
        """Write a table; returns its type and the macro that reads an entry."""
        values = np.asarray(values).ravel()
        c_type = c_type or unsigned_type(values)
        floats = c_type == "float"
        items = [float_literal(float(v), "float") if floats else str(int(v)) for v in values.tolist()] or ["0"]
        lines = ",\n".join(",".join(items[i : i + 24]) for i in range(0, len(items), 24))
        self.text += f"\nstatic const {c_type} {name}[{len(items)}] FLASH = {{\n{lines}\n}};\n"
        self.bytes += len(items) * _SIZES[c_type]
        return c_type, "READ_FLOAT" if floats else f"READ_{8 * _SIZES[c_type]}"


def to_arduino(
    circuit: Circuit,
    name: str = "model",
    *,
    vectors: int | Bool[np.ndarray, "vectors inputs"] = 8,
    feature_type: FeatureType | None = None,
) -> dict[str, str]:
    """The files of a sketch, by name; put them into a folder that is called ``name``.

    Arguments:
        name: of the sketch, and what every function starts with.
        vectors: input bits that the sketch and the self-test replay, or how many to draw (always the same ones).
        feature_type: of raw features: ``"uint8_t"`` for whole numbers from 0 to 255, else ``"float"``; without it,
            the first for images whose thresholds are in that range.
    """
    require_identifier(name, C_KEYWORDS, "C")
    _check_size(circuit)
    program, tables = plan(circuit), _Tables()
    fills = {"SLOTS": str(program.slots), "RUNS": str(program.run_ends.size), "OUTPUTS": str(circuit.outputs.size)}
    fills["CODE"], fills["READ_CODE"] = tables.add("code", program.code)
    fills["LENGTH"], fills["READ_LENGTH"] = tables.add("run_length", np.diff(program.run_ends, prepend=0))
    tables.add("run_operation", program.run_operations, "uint8_t")
    body = text.MODEL + _readout(circuit, program, tables, fills)
    features, reason = _features(circuit.encoder, feature_type, tables, fills)
    body += features + _tests(circuit, vectors, tables, fills)
    sizes = {"INPUTS": circuit.inputs, "CLASSES": circuit.readout.classes}
    calls = text.REGRESSOR_CALLS if isinstance(circuit.readout, Affine) else text.CLASSIFIER_CALLS
    if features:
        assert circuit.encoder is not None
        sizes["FEATURES"] = circuit.encoder.features
        calls += text.FEATURE_CALLS
    else:
        calls += f"/* No function on raw features: {_comment(reason)}. Set the input bits. */\n"
    fills |= {
        "TABLES": tables.text,
        "CALLS": calls,
        "SIZES": "".join(f"#define @M_{key} {value}\n" for key, value in sizes.items()),
        "M_INPUTS_NUMBER": f"{circuit.inputs:,}",
        "GATES": f"{len(program.code):,} of {circuit.gates.size:,} need evaluating",
        "FLASH_BYTES": f"{tables.bytes:,}",
        "RAM_BYTES": f"{program.slots:,}",
        "TITLE": "A logic gate network",
        "HINT": f"call {name}_predict_features(v)." if features else f"set the bits of {name}_input().",
        "SHOWN": "answer" if isinstance(circuit.readout, Affine) else f"{name}_class_name(answer)",
        "USE": _usage(name, circuit, bool(features), fills),
    }
    return {
        f"{name}.ino": _fill(text.SKETCH, name, fills),
        f"{name}_model.h": _fill(text.HEADER, name, fills),
        f"{name}_model.c": _fill(body, name, fills),
        "README.md": _fill(text.README, name, fills),
    }


def _fill(template: str, name: str, fills: dict[str, str]) -> str:
    # Longest first, so that no word is taken for the beginning of another; texts may hold words themselves.
    for _ in range(2):
        for word in sorted(fills, key=len, reverse=True):
            template = template.replace(f"@{word}", fills[word])
    return template.replace("@m", name).replace("@M", name.upper())


def _literal(name: str) -> str:
    """A C string in which no sign stands that is filled in."""
    return c_string(name).replace("@", "\\100")


def _comment(name: str) -> str:
    return comment_text(name).replace("@", "<U+0040>")


def _check_size(circuit: Circuit) -> None:
    if circuit.inputs > MAX_INPUTS:
        raise ValueError(f"a microcontroller export has at most {MAX_INPUTS} input bits, got {circuit.inputs}")
    readout = circuit.readout
    offsets = readout.offsets.tolist() if isinstance(readout, GroupSum) else [getattr(readout, "offset", 0)]
    largest = max(abs(value) for value in offsets)
    if largest >= MAX_OFFSET:
        raise ValueError(
            f"scores are 32-bit integers here, and an offset of the readout is {largest}; use the C export"
        )


def _readout(circuit: Circuit, program: Program, tables: _Tables, fills: dict[str, str]) -> str:
    readout = circuit.readout
    entries = 2 * program.output_slots + (program.output_flips != 0)
    if isinstance(readout, GroupSum):
        entries = entries[np.argsort(readout.groups, kind="stable")]
    fills["OUTPUT"], fills["READ_OUTPUT"] = tables.add("outputs", entries)
    if isinstance(readout, Affine):
        line = {"SCALE": float_literal(readout.scale), "INTERCEPT": float_literal(readout.intercept)}
        fills |= {"SCORE": "double", "RESULT": "double", "OFFSET": str(readout.offset), **line}
        return text.VALUE
    fills |= {"RESULT": "int", "NAMES": ", ".join(_literal(each) for each in class_names(circuit))}
    if isinstance(readout, Linear):
        fills["SCORE"] = "float"
        tables.add("weight", readout.weights, "float")
        tables.add("bias", readout.bias, "float")
        return text.LINEAR + text.PREDICT
    fills["SCORE"] = "int32_t"
    starts = np.concatenate([[0], np.cumsum(np.bincount(readout.groups, minlength=readout.classes))])
    _, fills["READ_START"] = tables.add("group_start", starts)
    tables.add("offset", readout.offsets, "int32_t")
    return text.GROUP_SUM + text.PREDICT


def _features(
    encoder: Encoder | None, feature_type: FeatureType | None, tables: _Tables, fills: dict[str, str]
) -> tuple[str, str]:
    """The function on raw features; or nothing, and why there is none."""
    if encoder is None:
        return "", "the circuit was saved without its encoder"
    try:
        values, tests = _rules(encoder)
    except NotNumeric as reason:
        return "", str(reason)
    whole = bool(np.all((values >= 0) & (values < 255))) and not tests.any()
    if feature_type is None:
        feature_type = "uint8_t" if whole and image_shape_of(encoder) is not None else "float"
    if feature_type == "uint8_t":
        if tests.any():
            return "", "bytes cannot be missing, and categories need floats"
        # x > t holds for a whole number exactly when x > floor(t); -1 stands for every lower bound.
        bounds, bound_type = np.clip(np.floor(values), -1, 255), "int16_t"
    else:
        with np.errstate(over="ignore"):
            above, _ = round_down(values, np.dtype(np.float32))
            bounds, bound_type = np.where(tests == 0, above, np.float32(values)), "float"
        if not np.isfinite(bounds).all():
            return "", "a threshold is beyond what a float holds"
        if np.any((bounds != values) & (tests == 1)):
            return "", "a category is no float"
    fills["FEATURE"], fills["BOUND"] = feature_type, bound_type
    _, fills["READ_FEATURE"] = tables.add("bit_feature", [rule.feature for rule in encoder.rules])
    _, fills["READ_BOUND"] = tables.add("bit_bound", bounds, bound_type)
    if tests.any():
        tables.add("bit_test", tests, "uint8_t")
    fills["COMPARE"] = text.COMPARE_ANY if tests.any() else text.COMPARE_ABOVE
    return text.FEATURES, ""


def _rules(encoder: Encoder) -> tuple[np.ndarray, np.ndarray]:
    """For each bit the number compared with, and the test: 0 above, 1 equal, 2 missing."""
    values, tests = [], []
    for rule in encoder.rules:
        if isinstance(rule.value, str):
            raise NotNumeric(f"feature {encoder.feature_names[rule.feature]!r} is compared with a string")
        values.append(0.5 if rule.test == "bit" else 0.0 if rule.value is None else float(rule.value))
        tests.append({">": 0, "bit": 0, "=": 1, "missing": 2}[rule.test])
    return np.array(values), np.array(tests)


def _tests(
    circuit: Circuit, vectors: int | Bool[np.ndarray, "vectors inputs"], tables: _Tables, fills: dict[str, str]
) -> str:
    if isinstance(vectors, int):
        bits = np.random.default_rng(0).integers(0, 2, (vectors, circuit.inputs)).astype(bool)
    else:
        bits = check_bits(circuit, vectors)
    if not len(bits):
        raise ValueError("the sketch replays test vectors; give it at least one")
    answers = scores(circuit, bits)
    fills |= {"VECTORS": str(len(bits)), "BYTES": str(-(-circuit.inputs // 8))}
    tables.add("test_bits", np.packbits(bits, axis=1, bitorder="little"), "uint8_t")
    if isinstance(circuit.readout, Affine):
        # Doubles have no place in flash on AVR, where a double is a float: compared as one.
        items = ", ".join(float_literal(value) for value in answers[:, 0].tolist())
        tables.text += f"\nstatic const double test_answer[{len(bits)}] = {{{items}}};\n"
        fills["READ_ANSWER"] = "*"
        return text.TEST.replace("@READ_ANSWER(test_answer + i)", "test_answer[i]")
    _, fills["READ_ANSWER"] = tables.add("test_answer", answers.argmax(axis=1))
    return text.TEST


def _usage(name: str, circuit: Circuit, features: bool, fills: dict[str, str]) -> str:
    result = "double value" if isinstance(circuit.readout, Affine) else "int answer"
    if features:
        assert circuit.encoder is not None
        return (
            f"```c\n{fills['FEATURE']} v[{circuit.encoder.features}]; /* the features, in the encoder's order */\n"
            f"{result} = {name}_predict_features(v);\n```"
        )
    return (
        f"```c\nuint8_t *bits = {name}_input(); /* {circuit.inputs} bytes, 0 or 1: set all before each call */\n"
        f"{result} = {name}_predict();\n```"
    )
