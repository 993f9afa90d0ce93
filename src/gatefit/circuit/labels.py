"""The labels of a circuit's classes: what ``predict`` answers, in the type that the model was trained with.

    class number k  ->  labels[k]        bool, int8 to uint64, float16 to float64, str, or object (of strings)

Class names are for display and always strings; labels are values, so that predictions can be compared with targets.
"""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from jaxtyping import Shaped

_NUMBERS: Final = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
_PYTHON_TYPES: Final[dict[str, type]] = {
    "bool": bool,
    **dict.fromkeys(_NUMBERS, int),
    **dict.fromkeys(("float16", "float32", "float64"), float),
    "str": str,
    "object": str,
}
_MOST_CHARACTERS: Final = 2**22
"""An array of fixed-width strings is as wide as the longest one; beyond this many it holds the strings as objects."""


def check_labels(values: Any) -> Shaped[np.ndarray, " classes"]:
    """A read-only array of labels: Booleans, finite numbers or strings, one for each class."""
    array = np.asarray(values)
    if array.ndim != 1:
        raise ValueError(f"labels must be a one-dimensional array, one for each class, got shape {array.shape}")
    wide = array.dtype.kind == "U" and array.size * array.dtype.itemsize > 4 * _MOST_CHARACTERS
    if wide or array.dtype.kind == "T":
        array = array.astype(object)
    if array.dtype.kind == "f" and array.dtype.name not in _PYTHON_TYPES:  # a long double
        array = _unchanged(array, np.float64)
    if array.dtype.kind not in "biufUO" or not _holds(array.tolist(), array.dtype):
        raise TypeError(f"labels must be Booleans, numbers or strings, got {array.dtype} {array.tolist()!r:.80}")
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise ValueError(f"labels must be finite, got {array.tolist()!r:.80}")
    array = np.array(array, dtype=array.dtype.newbyteorder("="))
    array.flags.writeable = False
    return array


def labels_to_spec(labels: Shaped[np.ndarray, " classes"]) -> dict[str, Any]:
    """The labels as a type's name and a list of values: exact in JSON."""
    return {"dtype": _name(labels.dtype), "values": labels.tolist()}


def labels_from_spec(spec: object) -> Shaped[np.ndarray, " classes"]:
    """The labels that ``labels_to_spec`` wrote; anything else is a ValueError."""
    if not isinstance(spec, Mapping) or set(spec) != {"dtype", "values"}:
        raise ValueError("labels must have exactly the fields dtype and values")
    name, values = spec["dtype"], spec["values"]
    if not isinstance(name, str) or name not in _PYTHON_TYPES:
        raise ValueError(f"the labels' dtype is {name!r:.80}; known are {', '.join(_PYTHON_TYPES)}")
    if not isinstance(values, list) or any(type(value) is not _PYTHON_TYPES[name] for value in values):
        raise ValueError(f"labels of dtype {name} must be a list of {_PYTHON_TYPES[name].__name__}, got {values!r:.80}")
    strings = _PYTHON_TYPES[name] is str
    fits = name == "str" and len(values) * max(map(len, values), default=0) <= _MOST_CHARACTERS
    array = np.array(values, dtype=object)
    return check_labels(array if strings and not fits else _unchanged(array, np.dtype(name)))


def _name(dtype: np.dtype[Any]) -> str:
    return "str" if dtype.kind == "U" else dtype.name


def _holds(values: list[Any], dtype: np.dtype[Any]) -> bool:
    kind = _PYTHON_TYPES.get(_name(dtype))
    return kind is not None and all(isinstance(value, kind) for value in values)


def _unchanged(array: np.ndarray, dtype: Any) -> np.ndarray:
    """The values in another type, which must hold every one of them exactly."""
    try:
        with np.errstate(over="ignore"):
            converted = array.astype(dtype)
    except OverflowError:
        converted = None
    if converted is None or converted.tolist() != array.tolist():
        raise ValueError(f"labels of dtype {np.dtype(dtype).name} cannot hold {array.tolist()!r:.80}")
    return converted
