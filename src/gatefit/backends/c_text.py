"""Pieces of C text: literals that are read back as exactly what was meant, and tables."""

from typing import Literal

import numpy as np

FeatureType = Literal["float", "double"]


def fill(template: str, name: str) -> str:
    """A template with the model's name in place: @m as given, @M in capitals."""
    return template.replace("@m", name).replace("@M", name.upper())


def float_literal(number: float, c_type: FeatureType = "double") -> str:
    """A finite number of the given type, in as many digits as tell it from its neighbours."""
    text = repr(float(number)) if c_type == "double" else f"{number:.9g}"
    text = text if "." in text or "e" in text else f"{text}.0"
    return f"{text}f" if c_type == "float" else text


def int64_literal(number: int) -> str:
    """A 64-bit signed number; the lowest one has no literal of its own."""
    if number == -(2**63):
        return "(-INT64_C(9223372036854775807) - 1)"
    return f"INT64_C({number})" if number >= 0 else f"(-INT64_C({-number}))"


def unsigned_type(values: np.ndarray) -> str:
    """The smallest unsigned type that holds all values."""
    largest = int(values.max(initial=0))
    return next(f"uint{bits}_t" for bits in (8, 16, 32, 64) if largest < 2**bits)


def unsigned_table(name: str, values: np.ndarray) -> str:
    """A constant table of unsigned numbers of the smallest type."""
    return table(unsigned_type(values), name, [str(value) for value in values.tolist()])


def table(c_type: str, name: str, items: list[str]) -> str:
    """A constant table; C has no empty ones, so nothing becomes a single 0."""
    items = items or ["0"]
    lines = ",\n".join(",".join(items[i : i + 24]) for i in range(0, len(items), 24))
    return f"\nstatic const {c_type} {name}[{len(items)}] = {{\n{lines}\n}};\n"
