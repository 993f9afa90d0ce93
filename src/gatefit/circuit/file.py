"""Circuit files (``.gate``): one safetensors file that holds a circuit, its readout, names and encoder.

    tensors     gates U8 (n), operands I32 (2, n), outputs I32 (m)
                and those of the readout (``Readout.tensors``): for group sums groups I32 (m), offsets I64 (k)
    metadata    format, version, digest, and circuit: a JSON text with everything that is not a tensor

``save`` writes all of a file or none of it. ``load`` takes nothing on trust: whatever is wrong is a CircuitFileError,
said before anything is allocated for it. The format is specified byte by byte in docs/file-format.md.
"""

import hashlib
import json
import os
import secrets
import stat
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import numpy as np

from gatefit import models
from gatefit.circuit.container import (
    CircuitFileError,
    check_inputs,
    dtype_name,
    header_length,
    pack,
    parse_header,
    read_json,
    read_tensors,
)
from gatefit.circuit.ir import Circuit
from gatefit.circuit.labels import labels_from_spec, labels_to_spec
from gatefit.circuit.readout import Readout, Tensor, readout_classes

__all__ = ["CircuitFileError", "digest", "dumps", "load", "loads", "save"]

FORMAT: Final = "gatefit-circuit"
VERSION: Final = 2
"""The latest; a circuit is written in the first version that can say all of it: 2 if it has labels, else 1."""

_TENSORS: Final = {"gates": Tensor("U8", 1), "operands": Tensor("I32", 2), "outputs": Tensor("I32", 1)}
"""Of every circuit; its readout may have others, under names of their own."""
_FIELDS: Final[dict[int, tuple[str, ...]]] = {
    1: ("inputs", "readout", "input_names", "class_names", "encoder", "metadata")
}
_FIELDS[2] = (*_FIELDS[1], "labels")


def refuse_existing(path: str | os.PathLike[str], overwrite: bool) -> None:
    """A FileExistsError for a file that would be replaced, unless that is what is wanted."""
    if not overwrite and os.path.lexists(path):
        raise FileExistsError(f"{os.fspath(path)} exists; choose another name, or replace it with overwrite=True")


def save(circuit: Circuit, path: str | os.PathLike[str]) -> None:
    """Write the circuit to ``path``, replacing what was there; after a crash there is the old file or the new one."""
    write_atomically(Path(path), dumps(circuit))


def load(path: str | os.PathLike[str], *, readouts: Iterable[type[Readout]] = ()) -> Circuit:
    """Read a circuit; a file that is anything but a correct one is refused with a CircuitFileError.

    A name without a file behind it is that of a model of the package (``gatefit.models``). ``readouts`` are kinds of
    readout that the file may hold beside gatefit's own.
    """
    if models.is_name(path) and not os.path.lexists(path):
        return loads(models.read(os.fspath(path)), readouts=readouts)
    kinds = readout_classes(readouts)
    if not stat.S_ISREG(Path(path).stat().st_mode):  # opening a pipe would wait for its writer
        raise CircuitFileError(f"{os.fspath(path)}: not a regular file")
    with Path(path).open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        try:
            length = header_length(file.read(8), size)
            metadata, layout = parse_header(file.read(length), size - 8 - length)
            _check_format(metadata)
            return _read(metadata, layout, file.read(size - 8 - length), kinds)
        except CircuitFileError as error:
            raise CircuitFileError(f"{os.fspath(path)}: {error}") from error.__cause__


def loads(data: bytes, *, readouts: Iterable[type[Readout]] = ()) -> Circuit:
    """Read a circuit from the bytes of a circuit file."""
    kinds = readout_classes(readouts)
    length = header_length(data[:8], len(data))
    metadata, layout = parse_header(data[8 : 8 + length], len(data) - 8 - length)
    _check_format(metadata)
    return _read(metadata, layout, data[8 + length :], kinds)


def dumps(circuit: Circuit) -> bytes:
    """The bytes of the circuit's file: the same circuit gives the same bytes, always."""
    if circuit.encoder is not None:
        from gatefit.encoders import check_registered

        check_registered(circuit.encoder)
    version, text, tensors = _content(circuit)
    metadata = {
        "format": FORMAT,
        "version": str(version),
        "digest": _digest(version, text, tensors),
        "circuit": text,
    }
    data = pack(metadata, tensors)
    check_inputs(circuit.inputs, len(data))
    return data


def digest(circuit: Circuit) -> str:
    """What identifies the circuit's content: ``sha256:`` and 64 hexadecimal digits, as stored in its file."""
    return _digest(*_content(circuit))


def _content(circuit: Circuit) -> tuple[int, str, dict[str, np.ndarray]]:
    readout, arrays = circuit.readout.to_spec()
    taken = sorted(set(arrays) & set(_TENSORS))
    if taken:
        raise ValueError(f"{circuit.readout.described} cannot be saved: a circuit has tensors {taken} itself; rename")
    tensors = {"gates": circuit.gates, "operands": circuit.operands, "outputs": circuit.outputs, **arrays}
    fields = {
        "inputs": circuit.inputs,
        "readout": readout,
        "input_names": list(circuit.input_names),
        "class_names": list(circuit.class_names),
        "encoder": None if circuit.encoder is None else circuit.encoder.to_spec(),
        "metadata": circuit.metadata,
    }
    version = 1
    if circuit.labels is not None:
        version, fields["labels"] = 2, labels_to_spec(circuit.labels)
    text = json.dumps(fields, ensure_ascii=False, separators=(",", ":"), sort_keys=True, allow_nan=False)
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise ValueError(
            f"a name or metadata entry holds {text[error.start]!r}, half of a surrogate pair; replace it"
        ) from None
    return version, text, tensors


def _digest(version: int, text: str, tensors: dict[str, np.ndarray]) -> str:
    encoded = text.encode("utf-8")
    result = hashlib.sha256(f"{FORMAT} {version}\n{len(encoded)}\n".encode())
    result.update(encoded)
    for name in sorted(tensors):
        array = tensors[name]
        shape = ",".join(str(size) for size in array.shape)
        result.update(f"\n{name} {dtype_name(array)} {shape}\n".encode())
        result.update(np.ascontiguousarray(array, array.dtype.newbyteorder("<")).data)
    return f"sha256:{result.hexdigest()}"


def _check_format(metadata: dict[str, str]) -> None:
    if metadata.get("format") != FORMAT:
        raise CircuitFileError(
            f"the file's format is {metadata.get('format')!r:.80}, not {FORMAT!r}: not a circuit file"
        )
    version = metadata.get("version", "")
    if not (version.isascii() and version.isdigit() and len(version) < 10 and str(int(version)) == version):
        raise CircuitFileError(f"the file's version is {version!r:.80}, which is not a number")
    if int(version) > VERSION:
        raise CircuitFileError(
            f"the file has format version {version}, this gatefit reads up to version {VERSION}; "
            f"install a gatefit that reads version {version}"
        )
    if int(version) < 1:
        raise CircuitFileError(f"the file's version is {version}; versions start at 1")
    if set(metadata) != {"format", "version", "digest", "circuit"}:
        raise CircuitFileError(
            f"the metadata must be format, version, digest and circuit, got {sorted(metadata)!r:.200}"
        )


def _read(
    metadata: dict[str, str],
    layout: dict[str, tuple[str, tuple[int, ...], int]],
    data: bytes,
    kinds: dict[str, type[Readout]],
) -> Circuit:
    version = int(metadata["version"])
    what = "the circuit's description"
    fields = _object(read_json(metadata["circuit"], what), what, _FIELDS[version])
    check_inputs(fields["inputs"], len(metadata["circuit"]) + len(data))
    kind = read_kind(fields["readout"], kinds)
    _object(fields["readout"], "the readout", ("kind", *kind.numbers))
    expected = {**_TENSORS, **kind.tensors}
    if set(layout) != set(expected):
        raise CircuitFileError(
            f"a circuit with {kind.kind} readout has tensors {sorted(expected)}, got {sorted(layout)!r:.200}"
        )
    for name, (dtype, shape, _) in layout.items():
        wanted = expected[name]
        if dtype != wanted.dtype or len(shape) != wanted.rank:
            raise CircuitFileError(
                f"tensor {name} must be {wanted.dtype} with {wanted.rank} dimensions, got {dtype} of shape {shape}"
            )
    tensors = read_tensors(layout, data)
    if metadata["digest"] != _digest(version, metadata["circuit"], tensors):
        raise CircuitFileError("the content does not match its digest: the file is damaged or was edited")
    try:
        return _build(fields, tensors, kind)
    except (ValueError, TypeError) as error:
        raise CircuitFileError(f"not a valid circuit: {error}") from error


def _object(value: Any, what: str, keys: tuple[str, ...]) -> dict[str, Any]:
    if not isinstance(value, dict) or set(value) != set(keys):
        raise CircuitFileError(f"{what} must have exactly the fields {', '.join(keys)}")
    return value


def read_kind(readout: Any, kinds: dict[str, type[Readout]]) -> type[Readout]:
    """The class of a readout's description."""
    kind = readout.get("kind") if isinstance(readout, dict) else None
    if not isinstance(kind, str) or kind not in kinds:
        raise CircuitFileError(
            f"the readout's kind is {kind!r:.80}; known are {', '.join(kinds)}; if it is a kind of your own, pass its "
            f"class: readouts=[...]"
        )
    return kinds[kind]


def read_numbers(kind: type[Readout], fields: dict[str, Any]) -> dict[str, Any]:
    """The numbers of a readout's description, each of its type."""
    numbers = {}
    for name, of_type in kind.numbers.items():
        if of_type is int and type(fields[name]) is not int:
            raise CircuitFileError(f"{name} must be an integer, got {fields[name]!r:.80}")
        numbers[name] = fields[name] if of_type is int else _number(fields, name)
    return numbers


def _build(fields: dict[str, Any], tensors: dict[str, np.ndarray], kind: type[Readout]) -> Circuit:
    encoder = None
    if fields["encoder"] is not None:
        from gatefit.encoders import encoder_from_spec

        encoder = encoder_from_spec(fields["encoder"])
    for name in ("input_names", "class_names"):
        if not isinstance(fields[name], list):
            raise CircuitFileError(f"{name} must be a list")
    if not isinstance(fields["metadata"], dict):
        raise CircuitFileError("metadata must be an object")
    return Circuit(
        inputs=fields["inputs"],
        gates=tensors["gates"],
        operands=tensors["operands"],
        outputs=tensors["outputs"],
        readout=kind.from_spec(
            read_numbers(kind, fields["readout"]),
            {name: tensors[name] for name in kind.tensors},
            tensors["outputs"].size,
        ),
        input_names=tuple(fields["input_names"]),
        class_names=tuple(fields["class_names"]),
        encoder=encoder,
        metadata=fields["metadata"],
        labels=labels_from_spec(fields["labels"]) if "labels" in fields else None,
    )


def _number(fields: dict[str, Any], name: str) -> float:
    if type(fields[name]) not in (int, float):
        raise CircuitFileError(f"{name} must be a number, got {fields[name]!r:.80}")
    try:
        return float(fields[name])
    except OverflowError:
        raise CircuitFileError(f"{name} is too large for a float") from None


def write_atomically(path: Path, data: bytes) -> None:
    """Replace ``path`` by a file of ``data`` that is on the disk before the name points to it."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")
    try:
        with temporary.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise
    if os.name == "posix":  # the new name itself must reach the disk too
        directory = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)
