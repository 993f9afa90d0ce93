"""A circuit for a microcontroller: one sample at a time, tables in flash, one byte of RAM for each live value.

    <name>.ino           an Arduino sketch: replays test vectors, prints the answers and the microseconds they took
    <name>_model.h, .c   C99 without allocation or library; integers only, unless the readout or the features are not
    README.md            what it needs and how to use it

The gates are the engine's program: runs of w[c] = w[a] op w[b] over byte slots, which are used again as soon as nobody
needs their value. Six bytes of flash a gate. On AVR the tables stay in flash (PROGMEM).

``measured_sizes`` says what the model takes once it is compiled, for every compiler at hand:

    flash = code + constants + initial values        RAM = initial values + zeroed memory (on AVR, constants too)

Object files are measured, so that what belongs to the board or the C library is not counted. A target that a model is
too large for (its compiler says so) has no bytes, but the reason.
"""

import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

import numpy as np
from jaxtyping import Bool

from gatefit.backends.c.export import Entries, unsigned_type
from gatefit.backends.comparators import NotNumeric, float_literal
from gatefit.backends.html.inputs import image_shape_of
from gatefit.backends.names import C_KEYWORDS, c_string, class_names, comment_text, require_identifier
from gatefit.backends.templates import render
from gatefit.circuit.engine.program import Program, plan
from gatefit.circuit.ir import Circuit
from gatefit.circuit.provenance import origin_lines
from gatefit.circuit.simulate import check_bits, scores
from gatefit.encoders import Encoder
from gatefit.encoders.threshold import round_down

MAX_INPUTS: Final = 2**16 - 1
MAX_OFFSET: Final = 2**30
FeatureType = Literal["uint8_t", "float"]

_SIZES: Final = {"int8_t": 1, "uint8_t": 1, "int16_t": 2, "uint16_t": 2, "int32_t": 4, "uint32_t": 4, "float": 4}
_FILES: Final = {
    "{}.ino": "arduino_sketch.ino.jinja",
    "{}_model.h": "arduino_model.h.jinja",
    "{}_model.c": "arduino_model.c.jinja",
    "README.md": "arduino_readme.md.jinja",
}


class _FlashTable(Entries):
    """A constant table that stays in flash."""

    @property
    def entries(self) -> int:
        return len(self.items)

    @property
    def bytes(self) -> int:
        return self.length * _SIZES[self.type]

    @property
    def read(self) -> str:
        """The macro that reads an entry."""
        return "READ_FLOAT" if self.type == "float" else f"READ_{8 * _SIZES[self.type]}"


_Tables = dict[str, _FlashTable]


def _table(values: Any, c_type: str | None = None) -> _FlashTable:
    values = np.asarray(values).ravel()
    c_type = c_type or unsigned_type(values)
    items = values.tolist()
    if c_type == "float":
        return _FlashTable(c_type, [float_literal(float(item), "float") for item in items])
    return _FlashTable(c_type, [str(int(item)) for item in items])


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
    program = plan(circuit)
    features, no_features = _features(circuit.encoder, feature_type)
    bits = _test_vectors(circuit, vectors)
    answers = scores(circuit, bits)
    tables = {
        "code": _table(program.code),
        "run_length": _table(np.diff(program.run_ends, prepend=0)),
        "run_operation": _table(program.run_operations, "uint8_t"),
    }
    tables |= _readout_tables(circuit, program) | features
    tables["test_bits"] = _table(np.packbits(bits, axis=1, bitorder="little"), "uint8_t")
    readout = circuit.readout
    value = readout.gives_value
    values: dict[str, Any] = {}
    if value:
        sums = readout.sums_for("the microcontroller export")
        # Doubles have no place in flash on AVR, where a double is a float: compared as one.
        values["answers"] = ", ".join(float_literal(answer) for answer in answers[:, 0].tolist())
        values |= {"scale": float_literal(sums.scale), "intercept": float_literal(sums.intercept)}
        values["offset"] = int(sums.offsets[0])
    else:
        tables["test_answer"] = _table(answers.argmax(axis=1))
        values["class_names"] = ", ".join(c_string(each) for each in class_names(circuit))
    values |= {
        "origin": origin_lines(circuit),
        "name": name,
        "NAME": name.upper(),
        "inputs": circuit.inputs,
        "output_bits": tables["outputs"].entries,
        "classes": readout.classes,
        "gates": circuit.gates.size,
        "evaluated": len(program.code),
        "runs": program.run_ends.size,
        "slots": program.slots,
        "flash": sum(table.bytes for table in tables.values()),
        "tables": tables,
        "value": value,
        "score": "double" if value else "int32_t" if readout.float_terms() is None else "float",
        "result": "double" if value else "int",
        "features": circuit.encoder.features if features and circuit.encoder is not None else None,
        "feature_type": "uint8_t" if features and features["bit_bound"].type == "int16_t" else "float",
        "no_features": comment_text(no_features),
        "vectors": len(bits),
        "vector_bytes": -(-circuit.inputs // 8),
    }
    return {file.format(name): render("gatefit.backends.c", template, **values) for file, template in _FILES.items()}


def _check_size(circuit: Circuit) -> None:
    if circuit.inputs > MAX_INPUTS:
        raise ValueError(f"a microcontroller export has at most {MAX_INPUTS} input bits, got {circuit.inputs}")
    if circuit.readout.float_terms() is not None:
        return
    sums = circuit.readout.sums_for("the microcontroller export")
    largest = int(np.abs(sums.offsets).max())
    if largest >= MAX_OFFSET:
        raise ValueError(
            f"scores are 32-bit integers here, and an offset of the readout is {largest}; use the C export"
        )
    largest = max(abs(total) for total in [*sums.low, *sums.high])
    if largest >= 2**31:
        raise ValueError(f"scores are 32-bit integers here, and the readout adds up to {largest}; use the C export")


def _readout_tables(circuit: Circuit, program: Program) -> _Tables:
    """The entry of each output, twice its slot plus whether it is inverted, and what its readout reads."""
    readout = circuit.readout
    entries = 2 * program.output_slots + (program.output_flips != 0)
    floats = readout.float_terms()
    if floats is not None:
        return {
            "outputs": _table(entries),
            "weight": _table(floats.weights, "float"),
            "bias": _table(floats.bias, "float"),
        }
    sums = readout.sums_for("the microcontroller export")
    tables = {"outputs": _table(entries[sums.outputs])}
    if not readout.gives_value:
        tables |= {"group_start": _table(sums.starts), "offset": _table(sums.offsets, "int32_t")}
    return tables if sums.counts else tables | {"output_weight": _table(sums.weights, "int32_t")}


def _features(encoder: Encoder | None, feature_type: FeatureType | None) -> tuple[_Tables, str]:
    """The tables of the function on raw features; or nothing, and why there is none."""
    if encoder is None:
        return {}, "the circuit was saved without its encoder"
    try:
        values, tests = _rules(encoder)
    except NotNumeric as reason:
        return {}, str(reason)
    whole = bool(np.all((values >= 0) & (values < 255))) and not tests.any()
    if feature_type is None:
        feature_type = "uint8_t" if whole and image_shape_of(encoder) is not None else "float"
    if feature_type == "uint8_t":
        if tests.any():
            return {}, "bytes cannot be missing, and categories need floats"
        # x > t holds for a whole number exactly when x > floor(t); -1 stands for every lower bound.
        bounds, bound_type = np.clip(np.floor(values), -1, 255), "int16_t"
    else:
        with np.errstate(over="ignore"):
            above, _ = round_down(values, np.dtype(np.float32))
            bounds, bound_type = np.where(tests == 0, above, np.float32(values)), "float"
        if not np.isfinite(bounds).all():
            return {}, "a threshold is beyond what a float holds"
        if np.any((bounds != values) & (tests == 1)):
            return {}, "a category is no float"
    tables = {"bit_feature": _table([rule.feature for rule in encoder.rules]), "bit_bound": _table(bounds, bound_type)}
    return tables | ({"bit_test": _table(tests, "uint8_t")} if tests.any() else {}), ""


def _rules(encoder: Encoder) -> tuple[np.ndarray, np.ndarray]:
    """For each bit the number compared with, and the test: 0 above, 1 equal, 2 missing."""
    values, tests = [], []
    for rule in encoder.rules:
        if isinstance(rule.value, str):
            raise NotNumeric(f"feature {encoder.feature_names[rule.feature]!r} is compared with a string")
        values.append(0.5 if rule.test == "bit" else 0.0 if rule.value is None else float(rule.value))
        tests.append({">": 0, "bit": 0, "=": 1, "missing": 2}[rule.test])
    return np.array(values), np.array(tests)


def _test_vectors(
    circuit: Circuit, vectors: int | Bool[np.ndarray, "vectors inputs"]
) -> Bool[np.ndarray, "vectors inputs"]:
    if isinstance(vectors, int):
        bits = np.random.default_rng(0).integers(0, 2, (vectors, circuit.inputs)).astype(bool)
    else:
        bits = check_bits(circuit, vectors)
    if not len(bits):
        raise ValueError("the sketch replays test vectors; give it at least one")
    return bits


TARGETS: Final[dict[str, tuple[str, tuple[str, ...]]]] = {
    "cortex-m0": ("arm-none-eabi-gcc", ("-mcpu=cortex-m0", "-mthumb")),
    "cortex-m4": ("arm-none-eabi-gcc", ("-mcpu=cortex-m4", "-mthumb")),
    "atmega328p": ("avr-gcc", ("-mmcu=atmega328p",)),
    "this machine": ("gcc", ()),
}
"""For each target its compiler and the options that choose it."""

FLAGS: Final = ("-std=c99", "-Os", "-Wall", "-Wextra", "-Werror")


class Size(NamedTuple):
    """Bytes that the model's object file takes."""

    target: str
    compiler: str
    flash: int | None
    ram: int | None
    reason: str = ""
    """What the compiler said, where there is nothing to measure."""


def available_targets() -> list[str]:
    """The targets whose compiler is installed."""
    return [target for target, (compiler, _) in TARGETS.items() if shutil.which(compiler)]


def measured_sizes(files: dict[str, str], targets: Iterable[str] | None = None) -> list[Size]:
    """Compile the model's C for each target (without any: for every one that is available) and measure it."""
    sizes = []
    with tempfile.TemporaryDirectory(prefix="gatefit-") as folder:
        for name, content in files.items():
            (Path(folder) / name).write_text(content, encoding="utf-8")
        (source,) = Path(folder).glob("*_model.c")
        for target in available_targets() if targets is None else targets:
            compiler, options = TARGETS[target]
            refusal = _compile([compiler, *FLAGS, *options, "-c", str(source), "-o", f"{folder}/model.o"])
            if refusal:
                sizes.append(Size(target, compiler, None, None, refusal))
                continue
            listing = _run([compiler.replace("gcc", "size"), "-A", "-d", f"{folder}/model.o"])
            sizes.append(Size(target, compiler, *_count(listing, constants_in_ram=compiler.startswith("avr"))))
    return sizes


def _count(listing: str, *, constants_in_ram: bool) -> tuple[int, int]:
    """Flash and RAM of the sections that ``size -A`` lists."""
    flash = ram = 0
    for line in listing.splitlines():
        name, *numbers = line.split() or [""]
        if not name.startswith((".text", ".rodata", ".progmem", ".data", ".bss")):
            continue
        size = int(numbers[0])
        flash += 0 if name.startswith(".bss") else size
        in_ram = name.startswith((".data", ".bss")) and not name.startswith(".data.rel.ro")
        ram += size if in_ram or (constants_in_ram and name.startswith(".rodata")) else 0
    return flash, ram


def _compile(command: list[str]) -> str:
    """Nothing, or in one line why the compiler refused."""
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode == 0:
        return ""
    errors = [line.partition("error: ")[2] for line in run.stderr.splitlines() if "error: " in line]
    return (errors or run.stderr.splitlines() or [f"it ended with code {run.returncode}"])[0].strip()[:200]


def _run(command: list[str]) -> str:
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode != 0:
        raise RuntimeError(f"{command[0]} failed:\n{run.stderr[-2000:]}")
    return run.stdout
