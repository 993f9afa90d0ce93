"""Input comparators: the encoder's rules as expressions of other languages, exact for the numbers they are given.

x > t     for a number x of some type, exactly when x > the largest number of that type that is <= t
x = c     only for numbers; a category that is a string cannot be compared in C or in a circuit
missing   x is not a number
bit       x is 1
"""

from typing import Final, Literal

import numpy as np

from gatefit.encoders import Encoder, Rule
from gatefit.encoders.whole import WholeRange

FeatureType = Literal["float", "double"]

_DTYPES: Final[dict[str, type[np.floating]]] = {"float": np.float32, "double": np.float64}
_NAMED: Final = 5
"""Features that a refusal names."""


def float_literal(number: float, c_type: FeatureType = "double") -> str:
    """A finite number of the given type in C, in as many digits as tell it from its neighbours."""
    text = repr(float(number)) if c_type == "double" else f"{number:.9g}"
    text = text if "." in text or "e" in text else f"{text}.0"
    return f"{text}f" if c_type == "float" else text


class NotNumeric(ValueError):
    """A rule that no comparison of numbers computes."""


def c_comparators(encoder: Encoder, feature_type: FeatureType) -> list[str]:
    """One C expression of ``v[feature]`` per bit."""
    return [_c_rule(rule, encoder.feature_names[rule.feature], feature_type) for rule in encoder.rules]


def verilog_comparators(encoder: Encoder, feature_bits: int) -> list[str]:
    """One Verilog expression of ``f<feature>`` per bit, for features that are unsigned integers."""
    return [_verilog_rule(rule, encoder.feature_names[rule.feature], feature_bits) for rule in encoder.rules]


def require_carried(encoder: Encoder | None, feature_bits: int) -> Encoder:
    """The encoder, if unsigned integers of so many bits carry every feature that it compares.

    They carry a feature whose values at fit were whole numbers in their range; where the encoder does not say, one
    whose thresholds are whole numbers or halves in that range. A port for any other would be another model.
    """
    if encoder is None:
        raise ValueError("feature_bits needs the circuit's encoder, and it was saved without one; use feature_bits=0")
    if not 1 <= feature_bits <= 64:
        raise ValueError(f"feature_bits must be from 1 to 64, or 0 to read bits, got {feature_bits}")
    try:
        verilog_comparators(encoder, feature_bits)
    except NotNumeric as reason:
        raise ValueError(f"{reason}; use feature_bits=0 and encode outside the module") from None
    ranges, top = encoder.whole_ranges, 2**feature_bits - 1
    found: dict[str, str] = {}
    for rule in encoder.rules:
        why = _not_carried(rule, ranges[rule.feature], top)
        if why:
            found.setdefault(encoder.feature_names[rule.feature], why)
    if found:
        named = ", ".join(f"{name!r} ({why})" for name, why in list(found.items())[:_NAMED])
        more = f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
        raise ValueError(
            f"a port of {feature_bits} bits carries whole numbers from 0 to {top}, and not the "
            f"{'features' if len(found) > 1 else 'feature'} {named}{more}; read bits and encode outside the module "
            f"(feature_bits=0; gatefit export without --feature-bits, gatefit synth --inputs bits), give the ports "
            f"more bits if only the range is too small, or scale the features to whole numbers of that range before fit"
        )
    return encoder


def _not_carried(rule: Rule, whole: WholeRange, top: int) -> str:
    """Why unsigned integers up to ``top`` do not carry the feature of a rule; nothing if they do."""
    if rule.test == "bit":
        return ""
    assert rule.value is not None
    number = float(rule.value)
    if rule.test == "=":
        return "" if number.is_integer() and 0 <= number <= top else f"compared with {rule.value}"
    if whole is None:
        return "" if (2 * number).is_integer() and 0 <= number < top else f"compared with {number:.10g}"
    if not whole:
        return "not whole numbers when it was fitted"
    return "" if whole[0] >= 0 and whole[1] <= top else f"{whole[0]} to {whole[1]} when it was fitted"


def _c_rule(rule: Rule, feature: str, feature_type: FeatureType) -> str:
    value = f"v[{rule.feature}]"
    if rule.test == "missing":
        return f"{value} != {value}"
    if rule.test == "bit":
        return f"{value} == 1"
    number = _number(rule, feature)
    if rule.test == "=":
        if float(_DTYPES[feature_type](number)) != rule.value:
            raise NotNumeric(f"feature {feature!r} is compared with {rule.value}, which is no {feature_type}")
        return f"{value} == {float_literal(number, feature_type)}"
    with np.errstate(over="ignore"):
        bound = _DTYPES[feature_type](number)
    if float(bound) > number:
        bound = np.nextafter(bound, _DTYPES[feature_type](-np.inf))
    if np.isinf(bound):  # below every finite number of the type
        return f"{value} >= {float_literal(float(np.finfo(_DTYPES[feature_type]).min), feature_type)}"
    return f"{value} > {float_literal(float(bound), feature_type)}"


def _verilog_rule(rule: Rule, feature: str, bits: int) -> str:
    value, top = f"f{rule.feature}", 2**bits - 1
    if rule.test == "missing":
        raise NotNumeric(f"feature {feature!r} may be missing, and an integer cannot say so")
    if rule.test == "bit":
        return f"{value} == {bits}'d1"
    number = _number(rule, feature)
    if rule.test == "=":
        return f"{value} == {bits}'d{int(rule.value or 0)}"
    bound = int(np.floor(number))
    if bound < 0:
        return "1'b1"
    return f"{value} > {bits}'d{bound}" if bound < top else "1'b0"


def _number(rule: Rule, feature: str) -> float:
    if rule.value is None or isinstance(rule.value, str):
        raise NotNumeric(f"feature {feature!r} is compared with the string {rule.value!r}")
    try:
        return float(rule.value)
    except OverflowError:
        raise NotNumeric(f"feature {feature!r} is compared with {rule.value}, which is beyond any float") from None
