"""A circuit as one C99 file: no allocation, no library, a test of itself inside.

    <name>_predict(bits)                         one sample, one byte per input bit
    <name>_predict_batch(x, words, classes)      64 samples a word: x[i * words + w], bit s = sample 64 w + s
    <name>_predict_features(v)                   raw features, when every rule of the encoder compares numbers
    <name>_scores…, <name>_value…                what the class is chosen from; the value of a regression
    <name>_self_test()                           how many embedded vectors give another answer than they should

The file is a header with its implementation: include it anywhere, and in one place after
``#define <NAME>_IMPLEMENTATION``. It is valid C++ as well. ``templates/model.h.jinja`` is its text; filled in are:

    gates       straight    const uint64_t n7 = (n3 & ~x1);
                table       for each run of equal operations:  w[code[0]] = w[code[1]] op w[code[2]]
    readout     counts      the outputs of a class are added bit-sliced, 64 samples at once: plane p holds bit p of sums
                weights     a table of whole numbers beside the outputs of each class
                a value     one such sum, then intercept + scale · sum in double, rounded apart
                floats      bias first, then the outputs in order, in float: the order in which gatefit's readout rounds

Both styles define ``<name>_evaluate(w)``, bit s of a word being sample s: the inputs are the first words of w. A value
that nobody needs any more gives its word to another, inputs too, so that w is not much longer than the inputs or the
outputs are; a call has one such array and no other.
"""

from typing import Any, Final, Literal, NamedTuple

import numpy as np
from jaxtyping import Bool

from gatefit.backends.comparators import FeatureType, NotNumeric, c_comparators, float_literal
from gatefit.backends.names import C_KEYWORDS, c_string, class_names, comment_text, given_names, require_identifier
from gatefit.backends.templates import render
from gatefit.circuit import simulate
from gatefit.circuit.ir import Circuit
from gatefit.circuit.provenance import origin_lines
from gatefit.circuit.simulate import check_bits
from gatefit.circuit.statistics import fan_out
from gatefit.gates import DEPENDS_ON_A, DEPENDS_ON_B, Gate

STRAIGHT_LIMIT: Final = 3000
"""Gates above which the automatic style is ``table``: a compiler needs seconds for more statements than this."""

STACK_LIMIT: Final = 64 * 1024
"""Bytes of working memory that are taken from the stack; more is static."""

FRAMES: Final = 1024
BATCH_FRAMES: Final = 1024
"""Bytes of stack beside the working memory, with room to spare: what optimising compilers need for all functions of a
call on a 64-bit machine, and the totals of 64 samples, twice. A test measures them."""

_PRECISION: Final[dict[FeatureType | None, list[str]]] = {
    None: [],
    "double": ["Raw features are compared as double, as Python does."],
    "float": [
        "Raw features are compared as float: a number that is no float is rounded to one before, and where that takes",
        "it across a threshold, Python (which compares doubles) may give another class. To compare doubles here too:",
        'gatefit export --feature-type double, or feature_type="double".',
    ],
}

_SCORES: Final[dict[type[np.generic], str]] = {np.int64: "int64_t", np.float64: "double", np.float32: "float"}
"""Types of scores in C."""

Style = Literal["auto", "straight", "table"]

PART: Final = 100
"""Statements in one function: compilers take quadratic time over a function, and so linear time over many."""
_READS: Final = (DEPENDS_ON_A, DEPENDS_ON_B)


def to_c(
    circuit: Circuit,
    name: str = "gatefit_model",
    style: Style = "auto",
    test_vectors: int | Bool[np.ndarray, "vectors inputs"] = 16,
    feature_type: FeatureType = "float",
) -> str:
    """The circuit as C99 text.

    Arguments:
        name: what every function and macro starts with.
        style: ``"straight"``, one statement per gate; ``"table"``, tables and a loop, which compile in seconds
            whatever the size; ``"auto"``, straight up to 3,000 gates.
        test_vectors: the input bits that the self-test replays, or how many to draw (always the same ones).
        feature_type: the type of raw features; comparisons are exact for numbers of that type.
    """
    require_identifier(name, C_KEYWORDS, "C")
    if style not in ("auto", "straight", "table"):
        raise ValueError(f"style must be 'auto', 'straight' or 'table', got {style!r}")
    if feature_type not in ("float", "double"):
        raise ValueError(f"feature_type must be 'float' or 'double', got {feature_type!r}")
    if style == "auto":
        style = "straight" if circuit.gates.size <= STRAIGHT_LIMIT else "table"
    gates, words = _straight(circuit, name) if style == "straight" else _table(circuit)
    static = 8 * words + circuit.inputs > STACK_LIMIT
    rules, no_features = _rules(circuit, feature_type)
    value = circuit.readout.gives_value
    return render(
        "gatefit.backends.c",
        "model.h.jinja",
        comment=_comment(circuit, style, words, static, feature_type if rules else None),
        name=name,
        NAME=name.upper(),
        inputs=circuit.inputs,
        outputs=circuit.outputs.size,
        classes=circuit.readout.classes,
        features=None if circuit.encoder is None else circuit.encoder.features,
        feature_type=feature_type,
        rules=rules,
        no_features=no_features,
        value=value,
        result="double" if value else "int",
        answer="value" if value else "predict",
        class_names=",\n        ".join(c_string(text) for text in class_names(circuit)),
        static=static,
        words=words,
        work=f"uint64_t *const w = {name}_work;" if static else f"uint64_t w[{words}];",
        **gates,
        **_readout(circuit, name),
        **_self_test(circuit, test_vectors),
    )


class Entries(NamedTuple):
    """The entries of a constant table; C has no empty ones, so nothing becomes a single 0."""

    type: str
    items: list[str]

    @property
    def length(self) -> int:
        """How many there are."""
        return max(1, len(self.items))

    @property
    def lines(self) -> str:
        """Their text."""
        items = self.items or ["0"]
        return ",\n".join(",".join(items[i : i + 24]) for i in range(0, len(items), 24))


def unsigned_type(values: np.ndarray) -> str:
    """The smallest unsigned type that holds all values."""
    largest = int(values.max(initial=0))
    return next(f"uint{bits}_t" for bits in (8, 16, 32, 64) if largest < 2**bits)


def int64_literal(number: int) -> str:
    """A 64-bit signed number; the lowest one has no literal of its own."""
    if number == -(2**63):
        return "(-INT64_C(9223372036854775807) - 1)"
    return f"INT64_C({number})" if number >= 0 else f"(-INT64_C({-number}))"


def _unsigned(values: np.ndarray) -> Entries:
    return Entries(unsigned_type(values), [str(value) for value in values.tolist()])


def _floats(values: np.ndarray) -> Entries:
    return Entries("float", [float_literal(value, "float") for value in values.ravel().tolist()])


def _comment(circuit: Circuit, style: str, words: int, static: bool, feature_type: FeatureType | None) -> str:
    """What the file is, with the names of inputs and classes; they are data, and stay inside the comment."""
    lines = [
        "A logic gate network as C99, written by gatefit.",
        f"{circuit.inputs} input bits, {circuit.gates.size} gates ({style} style), {circuit.outputs.size} output bits.",
        *origin_lines(circuit),
        "",
        "Include this file anywhere; in one C file, define the macro ..._IMPLEMENTATION before it.",
        *_memory(circuit, words, static, feature_type is not None),
        *_PRECISION[feature_type],
        "",
        *(f"input {i}: {comment_text(text)}" for i, text in enumerate(given_names(circuit))),
        *(f"class {k}: {comment_text(text)}" for k, text in enumerate(circuit.class_names)),
    ]
    return "\n".join(f" * {line}".rstrip() for line in lines)


def _memory(circuit: Circuit, words: int, static: bool, features: bool) -> list[str]:
    """What a call takes: the words that the gates work on, and in all a little more."""
    work = 8 * words
    if static:
        return [f"Nothing is allocated. Working memory ({work:,} bytes) is static: calls must not overlap."]
    single, batch = work + FRAMES, work + FRAMES + BATCH_FRAMES
    from_features = f" ({single + circuit.inputs:,} from raw features)" if features else ""
    return [
        "Nothing is allocated; calls may overlap.",
        f"Stack of a call, compiled with optimisation: at most {single:,} bytes for one sample{from_features},",
        f"{batch:,} for a batch; {work:,} of them are working memory.",
    ]


def _rules(circuit: Circuit, feature_type: FeatureType) -> tuple[list[str], str]:
    """For each input bit its comparison of raw features; or none, and why there are none."""
    if circuit.encoder is None:
        return [], "the circuit was saved without its encoder."
    try:
        return c_comparators(circuit.encoder, feature_type), ""
    except NotNumeric as reason:
        return [], f"{comment_text(str(reason))}. Encode before the call."


def _straight(circuit: Circuit, name: str) -> tuple[dict[str, Any], int]:
    """One statement per gate that matters, in parts, and how many words they work on."""
    used = fan_out(circuit) > 0
    order = np.flatnonzero(used[circuit.inputs :])
    parts = -(-order.size // PART)
    part = np.full(circuit.nodes, -1)
    part[circuit.inputs + order] = np.arange(order.size) // PART
    words = _Words(circuit, _last_reader(circuit, used, part))
    functions = []
    for k in range(parts):
        lines: list[str] = []
        known: dict[int, str] = {}

        def value(node: int, k: int = k, lines: list[str] = lines, known: dict[int, str] = known) -> str:
            if node not in known:
                known[node] = f"x{node}" if node < circuit.inputs else f"n{node - circuit.inputs}"
                lines.append(f"    const uint64_t {known[node]} = w[{words.read(node, k)}];")
            return known[node]

        for g in order[k * PART : (k + 1) * PART].tolist():
            gate, node = Gate(circuit.gates[g]), circuit.inputs + g
            operands = zip(circuit.operands[:, g].tolist(), _READS, strict=True)
            a, b = (value(n) if reads[gate] else "" for n, reads in operands)
            formula = {Gate.FALSE: "UINT64_C(0)", Gate.TRUE: "~UINT64_C(0)"}.get(gate, gate.formula)
            known[node] = f"n{g}"
            lines.append(f"    const uint64_t n{g} = {formula.format(a=a, b=b)};")
            if words.needed_after(node, k):
                lines.append(f"    w[{words.write(node)}] = n{g};")
        functions.append("\n".join(lines))
    entries = np.array([2 * words.slot[node] for node in circuit.outputs.tolist()], dtype=np.int64)
    part_names = ", ".join(f"{name}_part_{k}" for k in range(parts))
    return {"parts": functions, "part_names": part_names, "output": _unsigned(entries)}, words.count


class _Words:
    """Which word holds which value: a word is free once the last part that reads its value has loaded it."""

    def __init__(self, circuit: Circuit, last: np.ndarray) -> None:
        self.last = last.tolist()
        self.outputs = set(circuit.outputs.tolist())
        self.slot = {node: node for node in range(circuit.inputs)}
        self.count = circuit.inputs
        self.free = [node for node in range(circuit.inputs) if not self.needed_after(node, -1)]

    def needed_after(self, node: int, part: int) -> bool:
        """Whether a later part reads the value, or the readout does."""
        return self.last[node] > part or node in self.outputs

    def read(self, node: int, part: int) -> int:
        """The word of a value that ``part`` loads."""
        slot = self.slot[node]
        if not self.needed_after(node, part):
            self.free.append(slot)
        return slot

    def write(self, node: int) -> int:
        """A word for a new value."""
        if self.free:
            self.slot[node] = self.free.pop()
        else:
            self.slot[node], self.count = self.count, self.count + 1
        return self.slot[node]


def _last_reader(circuit: Circuit, used: np.ndarray, part: np.ndarray) -> np.ndarray:
    """The last part that reads each node."""
    last = np.full(circuit.nodes, -1)
    gates = np.flatnonzero(used[circuit.inputs :])
    for operand, reads in zip(circuit.operands, _READS, strict=True):
        reading = gates[reads[circuit.gates[gates]]]
        np.maximum.at(last, operand[reading], part[circuit.inputs + reading])
    return last


def _table(circuit: Circuit) -> tuple[dict[str, Any], int]:
    """The circuit as tables, which compile in seconds whatever their size, and the words that it works on."""
    from gatefit.circuit.engine.program import plan

    program = plan(circuit)
    tables = {
        "code": _unsigned(program.code.ravel()),
        "run_operation": _unsigned(program.run_operations),
        "run_end": _unsigned(program.run_ends),
        "output": _unsigned(2 * program.output_slots + (program.output_flips != 0)),
    }
    return {"parts": None, "runs": program.run_ends.size, **tables}, program.slots


def _readout(circuit: Circuit, name: str) -> dict[str, Any]:
    """What the functions from output bits to scores need."""
    readout = circuit.readout
    score, floats = _SCORES[readout.dtype], readout.float_terms()
    if floats is not None:
        return {"kind": "linear", "score": score, "weight": _floats(floats.weights), "bias": _floats(floats.bias)}
    sums = readout.sums_for("the C export", compares_totals=False)
    in_order = bool(np.array_equal(sums.outputs, np.arange(readout.outputs)))
    sizes = np.diff(sums.starts)
    scaled = readout.dtype is np.float64
    line = {"scale": float_literal(sums.scale), "intercept": float_literal(sums.intercept)} if scaled else {}
    if scaled and sums.counts and sums.classes == 1 and in_order:
        return {
            "kind": "affine",
            "score": score,
            "planes": max(1, readout.outputs.bit_length()),
            "index": "i",
            "offset": int64_literal(int(sums.offsets[0])),
            **line,
        }
    return {
        "kind": "group_sum" if sums.counts and not scaled else "weighted",
        "score": score,
        "planes": max(1, int(sizes.max()).bit_length()),
        "index": "i" if in_order else f"{name}_group_order[i]",
        "group_start": _unsigned(sums.starts),
        "offset": Entries("int64_t", [int64_literal(value) for value in sums.offsets.tolist()]),
        "group_order": None if in_order else _unsigned(sums.outputs),
        "group_weight": Entries("int64_t", [int64_literal(value) for value in sums.weights.tolist()]),
        "scaled": scaled,
        **line,
    }


def _self_test(circuit: Circuit, vectors: int | Bool[np.ndarray, "vectors inputs"]) -> dict[str, Any]:
    """The vectors, and what ``simulate`` makes of them."""
    if isinstance(vectors, int):
        bits = np.random.default_rng(0).integers(0, 2, (vectors, circuit.inputs)).astype(bool)
    else:
        bits = check_bits(circuit, vectors)
    scores = simulate.scores(circuit, bits)
    finite = np.isfinite(scores).all(axis=1)  # a sum may overflow, and C has no literal for infinity
    bits, scores = bits[finite], scores[finite]
    packed = np.packbits(bits, axis=1, bitorder="little")
    flat = scores.ravel().tolist()
    score = _SCORES[circuit.readout.dtype]
    literals = [
        int64_literal(x) if score == "int64_t" else float_literal(x, "float" if score == "float" else "double")
        for x in flat
    ]
    return {
        "vectors": len(bits),
        "vector_bytes": packed.shape[1],
        "test_bits": _unsigned(packed.ravel()),
        "test_scores": Entries(score, literals),
        "test_class": _unsigned(scores.argmax(axis=1)),
    }
