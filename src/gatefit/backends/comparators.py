"""Input comparators: the encoder's rules as expressions of other languages, exact for the numbers they are given.

x > t     for a number x of some type, exactly when x > the largest number of that type that is <= t
x = c     only for numbers; a category that is a string cannot be compared in C or in a circuit
missing   x is not a number
bit       x is 1
"""

from typing import Final

import numpy as np

from gatefit.backends.c_text import FeatureType, float_literal
from gatefit.encoders import Encoder, Rule

_DTYPES: Final[dict[str, type[np.floating]]] = {"float": np.float32, "double": np.float64}


class NotNumeric(ValueError):
    """A rule that no comparison of numbers computes."""


def c_comparators(encoder: Encoder, feature_type: FeatureType) -> list[str]:
    """One C expression of ``v[feature]`` per bit."""
    return [_c_rule(rule, encoder.feature_names[rule.feature], feature_type) for rule in encoder.rules]


def verilog_comparators(encoder: Encoder, feature_bits: int) -> list[str]:
    """One Verilog expression of ``f<feature>`` per bit, for features that are unsigned integers."""
    return [_verilog_rule(rule, encoder.feature_names[rule.feature], feature_bits) for rule in encoder.rules]


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
        whole = float(number).is_integer() and 0 <= number <= top
        return f"{value} == {bits}'d{int(number)}" if whole else "1'b0"
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
