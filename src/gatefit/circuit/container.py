"""The safetensors container, read with suspicion and written byte for byte the same every time.

    8 bytes          N, the header's length, little-endian
    N bytes          UTF-8 JSON: {"__metadata__": {string: string}, name: {"dtype", "shape", "data_offsets"}, …}
    the rest         the tensors' bytes, one after the other, little-endian, nothing between, before or after

Everything the header says is checked against the size of the data before any array is made. What a number alone could
claim is bounded by bytes that are there: JSON is parsed only if it has few enough objects, lists and keys, and a
circuit has no more inputs than its file has bytes (or ``FREE_INPUTS``): what is done with it costs what it weighs.
"""

import json
import math
from collections.abc import Mapping
from typing import Any, Final, NoReturn

import numpy as np

MAX_HEADER: Final = 100_000_000
"""Bytes; the limit of the safetensors library as well."""

_HEADER_MARKS: Final = 256
"""Objects, lists, keys and commas of a header, outside of strings: twice what the tensors of a circuit come to."""
_JSON_MARKS: Final = 2**20
"""Objects, lists and keys of any other JSON text: an encoder of 200,000 columns. Three bytes can ask for a hundred."""
_SCAN_BYTES: Final = 2**20

FREE_INPUTS: Final = 2**20
"""Inputs that any file may have, however short; a circuit that reads or names each of its inputs has more bytes."""

DTYPES: Final[dict[str, np.dtype[Any]]] = {
    "U8": np.dtype("<u1"),
    "I32": np.dtype("<i4"),
    "I64": np.dtype("<i8"),
    "F32": np.dtype("<f4"),
}
"""The element types that are used, by their safetensors names."""

METADATA: Final = "__metadata__"
_MAX_DIMENSION: Final = 2**48


class CircuitFileError(ValueError):
    """A file that is not a circuit file, or is damaged, or comes from a later version of the format."""


def read_json(text: str, what: str) -> Any:
    """Strict JSON: no repeated keys, no NaN or infinity, no numbers too large to hold, no halves of characters."""
    _bound_marks(text.encode("utf-8", "surrogatepass"), b"{[:", _JSON_MARKS, what)
    return _parse(text, what)


def _parse(text: str, what: str) -> Any:
    try:
        value = json.loads(text, object_pairs_hook=_unique_keys, parse_constant=_no_constant, parse_float=_finite_float)
        if "\\u" in text:  # only an escape can make half of a surrogate pair, which no UTF-8 text can hold
            json.dumps(value, ensure_ascii=False).encode("utf-8")
        return value
    except UnicodeEncodeError:
        raise CircuitFileError(f"{what} holds half of a surrogate pair") from None
    except CircuitFileError as error:
        raise CircuitFileError(f"{what}: {error}") from None
    except RecursionError:
        raise CircuitFileError(f"{what} is nested too deeply") from None
    except ValueError as error:
        raise CircuitFileError(f"{what} is not valid JSON: {error}") from None


def _bound_marks(text: bytes, marks: bytes, most: int, what: str) -> None:
    """Refuse a JSON text with more of these marks outside its strings, before anything is made of it."""
    # Backslashes pair up from the left, so without the pairs one that is left before a quote makes it part of a string.
    if b"\\" in text:
        text = text.replace(b"\\\\", b"").replace(b'\\"', b"")
    wanted = np.zeros(256, np.bool_)
    wanted[list(marks)] = True
    found, inside = 0, False
    for start in range(0, len(text), _SCAN_BYTES):
        part = np.frombuffer(text, np.uint8, min(_SCAN_BYTES, len(text) - start), start)
        within = np.logical_xor.accumulate(part == ord('"')) ^ inside
        found += int(np.count_nonzero(wanted[part] & ~within))
        inside = bool(within[-1])
        if found > most:
            raise CircuitFileError(f"{what} has more than {most} objects, lists and keys: not a circuit's")


def check_inputs(inputs: Any, size: int) -> None:
    """Refuse a circuit with more inputs than its ``size`` in bytes answers for."""
    if isinstance(inputs, int) and inputs > max(FREE_INPUTS, size):
        raise CircuitFileError(
            f"{inputs} inputs in {size} bytes; a circuit has at most {FREE_INPUTS} inputs, or as many as its file has "
            f"bytes: name them, or leave out those that nothing reads"
        )


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) < len(pairs):
        seen: set[str] = set()
        repeated = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise CircuitFileError(f"the key {repeated!r:.80} appears twice")
    return result


def _no_constant(text: str) -> NoReturn:
    raise CircuitFileError(f"{text} is not a finite number")


def _finite_float(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise CircuitFileError(f"{text:.80} is not a finite number")
    return value


def header_length(start: bytes, size: int) -> int:
    """The header's length, from the first eight bytes of a file of ``size`` bytes."""
    if size < 8 or len(start) < 8:
        raise CircuitFileError(f"the file has {size} bytes; a circuit file starts with an 8-byte header length")
    length = int.from_bytes(start[:8], "little")
    if length > MAX_HEADER:
        raise CircuitFileError(
            f"the header claims {length} bytes, more than the limit of {MAX_HEADER}: not a circuit file"
        )
    if length > size - 8:
        raise CircuitFileError(
            f"the header claims {length} bytes, but only {size - 8} follow: truncated, or not a circuit file"
        )
    return length


def parse_header(header: bytes, data_size: int) -> tuple[dict[str, str], dict[str, tuple[str, tuple[int, ...], int]]]:
    """The metadata, and of every tensor (dtype, shape, first byte), in the order of the data."""
    try:
        text = header.decode("utf-8")
    except UnicodeDecodeError as error:
        raise CircuitFileError(f"the header is not UTF-8 text: {error.reason}") from None
    if not text.startswith("{"):
        raise CircuitFileError("the header does not start with '{': not a circuit file")
    _bound_marks(header, b"{[:,", _HEADER_MARKS, "the header")
    fields = _parse(text, "the header")
    metadata = fields.pop(METADATA, None)
    if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
        raise CircuitFileError(f"the header needs a {METADATA} of strings: not a circuit file")
    spans = sorted((_span(name, field) for name, field in fields.items()), key=lambda span: (span[3], span[4]))
    position = 0
    for name, _, _, begin, end in spans:
        if begin != position:
            raise CircuitFileError(f"tensor {name!r} begins at byte {begin}, expected {position}: overlap or gap")
        position = end
    if position != data_size:
        raise CircuitFileError(f"the tensors take {position} bytes, the file has {data_size} for them")
    return metadata, {name: (dtype, shape, begin) for name, dtype, shape, begin, _ in spans}


def _span(name: str, field: Any) -> tuple[str, str, tuple[int, ...], int, int]:
    shown = f"tensor {name!r:.80}"
    if not isinstance(field, dict) or set(field) != {"dtype", "shape", "data_offsets"}:
        raise CircuitFileError(f"{shown} needs exactly dtype, shape and data_offsets")
    dtype, shape, offsets = field["dtype"], field["shape"], field["data_offsets"]
    if not isinstance(dtype, str) or dtype not in DTYPES:
        raise CircuitFileError(f"{shown} has dtype {dtype!r:.80}; known are {', '.join(DTYPES)}")
    if not _is_integers(shape) or len(shape) > 2:
        raise CircuitFileError(f"{shown} has shape {shape!r:.80}; needed are one or two sizes")
    if not _is_integers(offsets) or len(offsets) != 2:
        raise CircuitFileError(f"{shown} has data_offsets {offsets!r:.80}; needed are a begin and an end")
    begin, end = offsets
    if end - begin != math.prod(shape) * DTYPES[dtype].itemsize:
        raise CircuitFileError(f"{shown} of shape {shape} and dtype {dtype} cannot take {end - begin} bytes")
    return name, dtype, tuple(shape), begin, end


def _is_integers(value: Any) -> bool:
    return isinstance(value, list) and all(type(item) is int and 0 <= item <= _MAX_DIMENSION for item in value)


def read_tensors(layout: Mapping[str, tuple[str, tuple[int, ...], int]], data: bytes) -> dict[str, np.ndarray]:
    """The arrays, in native byte order, of a layout that ``parse_header`` has checked against the data's size."""
    arrays = {}
    for name, (dtype, shape, begin) in layout.items():
        array = np.frombuffer(data, DTYPES[dtype], math.prod(shape), begin).reshape(shape)
        arrays[name] = array.astype(array.dtype.newbyteorder("="))
    return arrays


def dtype_name(array: np.ndarray) -> str:
    """The safetensors name of an array's type."""
    return next(name for name, dtype in DTYPES.items() if dtype == array.dtype.newbyteorder("<"))


def pack(metadata: Mapping[str, str], tensors: Mapping[str, np.ndarray]) -> bytes:
    """The container's bytes: wide elements first so that all are aligned, then by name; header padded to 8 bytes."""
    little = {name: np.ascontiguousarray(array, array.dtype.newbyteorder("<")) for name, array in tensors.items()}
    order = sorted(little, key=lambda name: (-little[name].itemsize, name))
    fields: dict[str, Any] = {METADATA: dict(sorted(metadata.items()))}
    position = 0
    for name in order:
        array = little[name]
        end = position + array.nbytes
        fields[name] = {"dtype": dtype_name(array), "shape": list(array.shape), "data_offsets": [position, end]}
        position = end
    header = json.dumps(fields, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode("utf-8")
    header += b" " * (-len(header) % 8)
    if len(header) > MAX_HEADER:
        raise ValueError(
            f"names, encoder and metadata take {len(header)} bytes; a circuit file holds {MAX_HEADER}: shorten them"
        )
    return len(header).to_bytes(8, "little") + header + b"".join(little[name].tobytes() for name in order)
