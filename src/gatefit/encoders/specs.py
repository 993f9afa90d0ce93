"""Checked reading of the plain dictionaries that model files carry.

A specification may come from anybody's file: every field is checked for presence, type, range and order, and what
is wrong is said in one ``ValueError``. Nothing is converted silently.
"""

import math
from collections.abc import Collection, Mapping
from itertools import pairwise
from typing import Any, Final, TypeAlias

Category: TypeAlias = str | int | float | bool

MAX_FEATURES: Final = 2**24
MAX_BITS: Final = 2**28


def fields(spec: object, names: Collection[str], where: str, optional: Collection[str] = ()) -> Mapping[str, Any]:
    """``spec`` as a mapping with exactly the keys ``names``, and perhaps those of ``optional``."""
    if not isinstance(spec, Mapping):
        raise ValueError(f"{where} must be a mapping, got {_shown(spec)}")
    missing = [name for name in names if name not in spec]
    unknown = [name for name in spec if name not in names and name not in optional]
    if missing or unknown:
        raise ValueError(
            f"{where} needs exactly the fields {', '.join(names)}; missing: {', '.join(missing) or 'none'}, "
            f"unknown: {', '.join(map(str, unknown)) or 'none'}"
        )
    return spec


def integer(value: object, low: int, high: int, where: str) -> int:
    """An integer (not a bool) from ``low`` to ``high``."""
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise ValueError(f"{where} must be an integer from {low} to {high}, got {_shown(value)}")
    return value


def boolean(value: object, where: str) -> bool:
    """True or False, nothing that merely counts as one."""
    if not isinstance(value, bool):
        raise ValueError(f"{where} must be true or false, got {_shown(value)}")
    return value


def sequence(value: object, where: str) -> list[Any]:
    """A list or tuple, as a list."""
    if not isinstance(value, list | tuple):
        raise ValueError(f"{where} must be a list, got {_shown(value)}")
    return list(value)


def number(value: object, where: str) -> float:
    """A finite number, as a float."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{where} must be a finite number, got {_shown(value)}")
    try:
        result = float(value)
    except OverflowError:
        result = math.inf
    if not math.isfinite(result):
        raise ValueError(f"{where} must be a finite number, got {_shown(value)}")
    return result


def thresholds(value: object, where: str) -> list[float]:
    """Finite numbers in strictly increasing order."""
    levels = [number(item, where) for item in sequence(value, where)]
    for low, high in pairwise(levels):
        if low >= high:
            raise ValueError(f"{where} must increase strictly, got {low!r} before {high!r}")
    return levels


def categories(value: object, where: str) -> list[Category]:
    """Distinct strings, finite numbers or Booleans."""
    items = sequence(value, where)
    for item in items:
        if not isinstance(item, str | int | float) or (isinstance(item, float) and not math.isfinite(item)):
            raise ValueError(f"{where} must hold strings, finite numbers or Booleans, got {_shown(item)}")
    if len(set(items)) < len(items):
        raise ValueError(f"{where} must not repeat a category")
    return items


def feature_names(value: object, features: int, where: str) -> tuple[str, ...] | None:
    """One distinct name per feature, or None for features without names."""
    if value is None:
        return None
    names = sequence(value, where)
    for name in names:
        if not isinstance(name, str):
            raise ValueError(f"{where} must be strings, got {_shown(name)}")
    if len(names) != features or len(set(names)) < features:
        raise ValueError(f"{where} must be {features} different strings, got {len(names)}, {len(set(names))} different")
    return tuple(names)


def _shown(value: object) -> str:
    text = repr(value)
    return f"{text[:60]}…" if len(text) > 60 else text
