"""A circuit as one C99 file: no allocation, no library, a test of itself inside.

    <name>_predict(bits)                         one sample, one byte per input bit
    <name>_predict_batch(x, words, classes)      64 samples a word: x[i * words + w], bit s = sample 64 w + s
    <name>_predict_features(v)                   raw features, when every rule of the encoder compares numbers
    <name>_scores…, <name>_value…                what the class is chosen from; the value of a regression
    <name>_self_test()                           how many embedded vectors give another answer than they should

The file is a header with its implementation: include it anywhere, and in one place after
``#define <NAME>_IMPLEMENTATION``. It is valid C++ as well.
"""

from typing import Final, Literal

import numpy as np
from jaxtyping import Bool

from gatefit.backends import c_readout
from gatefit.backends.c_table import straight_evaluate, table_evaluate
from gatefit.backends.c_text import FeatureType, fill
from gatefit.backends.comparators import NotNumeric, c_comparators
from gatefit.backends.names import C_KEYWORDS, c_string, class_names, comment_text, given_names, require_identifier
from gatefit.circuit.ir import Circuit
from gatefit.circuit.readout import Affine

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

Style = Literal["auto", "straight", "table"]

_HEAD: Final = """\
#ifndef @M_H
#define @M_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
"""
_DECLARATIONS: Final = """
/* Output bits of 64 samples: y[i] from x[i * stride], bit s of a word being sample s. */
void @m_outputs(const uint64_t *x, size_t stride, uint64_t *y);
/* Scores of one sample; bits[i] is 0 or 1, scores has @M_CLASSES entries. */
void @m_scores(const uint8_t *bits, @m_score *scores);
/* Scores of 64 * words samples: scores[sample * @M_CLASSES + k]. */
void @m_scores_batch(const uint64_t *x, size_t words, @m_score *scores);
"""
_TAIL: Final = """
#ifdef __cplusplus
}
#endif

#endif /* @M_H */
"""
_IMPLEMENTATION: Final = """
#if defined(@M_IMPLEMENTATION) && !defined(@M_IMPLEMENTED)
#define @M_IMPLEMENTED

#ifdef __cplusplus
extern "C" {
#endif
"""
_END: Final = """
#ifdef __cplusplus
}
#endif

#endif /* @M_IMPLEMENTATION */
"""


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
    evaluate, words = straight_evaluate(circuit) if style == "straight" else table_evaluate(circuit)
    static = 8 * words + circuit.inputs > STACK_LIMIT
    encode_declaration, encode_definition = _features(circuit, feature_type)
    declarations = [
        fill(_HEAD, name),
        fill(_sizes(circuit), name),
        fill(_DECLARATIONS, name),
        fill(c_readout.declarations(circuit), name),
        fill(encode_declaration, name),
        fill(c_readout.SELF_TEST_DECLARATION, name),
    ]
    definitions = [
        fill(evaluate, name),
        fill(c_readout.definitions(circuit, words, static=static), name),
        *([] if isinstance(circuit.readout, Affine) else [_class_name(circuit, name)]),
        fill(encode_definition, name),
        fill(c_readout.self_test(circuit, test_vectors), name),
    ]
    text = [*declarations, fill(_TAIL, name), fill(_IMPLEMENTATION, name), *definitions, fill(_END, name)]
    storage = "static " if static else ""
    return _comment(circuit, style, words, static, feature_type if encode_definition else None) + "".join(text).replace(
        "@STORAGE ", storage
    )


def _comment(circuit: Circuit, style: str, words: int, static: bool, feature_type: FeatureType | None) -> str:
    """What the file is, with the names of inputs and classes; they are data, and stay inside the comment."""
    lines = [
        "A logic gate network as C99, written by gatefit.",
        f"{circuit.inputs} input bits, {circuit.gates.size} gates ({style} style), {circuit.outputs.size} output bits.",
        "",
        "Include this file anywhere; in one C file, define the macro ..._IMPLEMENTATION before it.",
        *_memory(circuit, words, static, feature_type is not None),
        *_PRECISION[feature_type],
        "",
        *(f"input {i}: {comment_text(text)}" for i, text in enumerate(given_names(circuit))),
        *(f"class {k}: {comment_text(text)}" for k, text in enumerate(circuit.class_names)),
    ]
    return "/*\n" + "".join(f" * {line}".rstrip() + "\n" for line in lines) + " */\n"


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


def _sizes(circuit: Circuit) -> str:
    sizes = {"INPUTS": circuit.inputs, "OUTPUTS": circuit.outputs.size, "CLASSES": circuit.readout.classes}
    if circuit.encoder is not None:
        sizes["FEATURES"] = circuit.encoder.features
    lines = "".join(f"#define @M_{key} {value}\n" for key, value in sizes.items())
    return f"\n{lines}\ntypedef {c_readout.score_type(circuit)} @m_score;\n"


def _class_name(circuit: Circuit, name: str) -> str:
    strings = ",\n        ".join(c_string(text) for text in class_names(circuit))
    return (
        fill(
            "\nconst char *@m_class_name(int k)\n{\n    static const char *const names[@M_CLASSES] = {\n        ", name
        )
        + strings
        + fill('\n    };\n    return k >= 0 && k < @M_CLASSES ? names[k] : "";\n}\n', name)
    )


def _features(circuit: Circuit, feature_type: FeatureType) -> tuple[str, str]:
    """Declaration and definition of the functions on raw features, or a comment that says why there are none."""
    if circuit.encoder is None:
        return "/* No functions on raw features: the circuit was saved without its encoder. */\n", ""
    try:
        rules = c_comparators(circuit.encoder, feature_type)
    except NotNumeric as reason:
        text = comment_text(str(reason))
        return f"/* No functions on raw features: {text}. Encode before the call. */\n", ""
    result = "double @m_value_features" if isinstance(circuit.readout, Affine) else "int @m_predict_features"
    last = "value" if isinstance(circuit.readout, Affine) else "predict"
    declaration = (
        f"/* Input bits of raw features: v has @M_FEATURES entries, bits gets @M_INPUTS. */\n"
        f"void @m_encode(const {feature_type} *v, uint8_t *bits);\n{result}(const {feature_type} *v);\n"
    )
    body = "".join(f"    bits[{i}] = (uint8_t)({rule});\n" for i, rule in enumerate(rules))
    definition = (
        f"\nvoid @m_encode(const {feature_type} *v, uint8_t *bits)\n{{\n{body}}}\n"
        f"\n{result}(const {feature_type} *v)\n{{\n    @STORAGE uint8_t bits[@M_INPUTS];\n\n    @m_encode(v, bits);\n"
        f"    return @m_{last}(bits);\n}}\n"
    )
    return declaration, definition
