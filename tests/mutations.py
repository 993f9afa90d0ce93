"""Circuit files to test with, and hostile ones made of them: random bytes, edited headers, edited content with a
correct digest.

``container`` and ``content_digest`` follow docs/file-format.md, not the library's code.
"""

import copy
import hashlib
import json
import struct
from dataclasses import replace
from typing import Any

import numpy as np

from gatefit.circuit.readout import Affine, GroupSum, Linear
from gatefit.encoders import Thermometer
from gatefit.gates import Gate
from strategies import build_circuit, layered_circuit

NASTY = [
    *(None, True, False, 0, 1, -1, 2, 3, 255, 2**31 - 1, 2**31, 2**63, -(2**63), 10**400, 0.5, -0.0, 1e308, 1e-320),
    *(
        "",
        "0",
        "gates",
        "\u0000",
        "\ud800",
        "é" * 3,
        "NaN",
        [],
        [[]],
        {},
        {"kind": "linear"},
        [0, 0],
        [2, -1],
        [1, 2, 3],
    ),
    *("U8", "I32", "I64", "F32", "F64", "BOOL", "affine", "group_sum", "linear", "sha256:" + "0" * 64),
]
TEXTS = ["NaN", "Infinity", "-Infinity", "1e999", "-1e999", "[" * 5000, '{"a":' * 5000, "01", "tru", "'", "9" * 5000]


def split(data: bytes) -> tuple[dict[str, Any], bytes]:
    """The header as an object, and the tensors' bytes."""
    length = struct.unpack("<Q", data[:8])[0]
    return json.loads(data[8 : 8 + length]), data[8 + length :]


def container(header: dict[str, Any] | str, body: bytes) -> bytes:
    """A file with this header, its length set right."""
    text = header if isinstance(header, str) else json.dumps(header)
    encoded = text.encode("utf-8", "surrogatepass")
    return struct.pack("<Q", len(encoded)) + encoded + body


def content_digest(text: str, header: dict[str, Any], body: bytes) -> str:
    """The digest as the documentation defines it."""
    encoded = text.encode("utf-8", "surrogatepass")
    version = header["__metadata__"]["version"].encode()
    stream = b"gatefit-circuit %s\n%d\n" % (version, len(encoded)) + encoded
    for name in sorted(name for name in header if name != "__metadata__"):
        field = header[name]
        begin, end = field["data_offsets"]
        shape = ",".join(str(size) for size in field["shape"])
        stream += f"\n{name} {field['dtype']} {shape}\n".encode() + body[begin:end]
    return "sha256:" + hashlib.sha256(stream).hexdigest()


def with_digest(header: dict[str, Any], body: bytes) -> bytes:
    """The file with its digest made right again; left alone where the header is too broken for one."""
    try:
        metadata = header["__metadata__"]
        metadata["digest"] = content_digest(metadata["circuit"], header, body)
    except (KeyError, TypeError, AttributeError, ValueError):
        pass
    return container(header, body)


def damaged_bytes(rng: np.random.Generator, data: bytes) -> bytes:
    """Bit flips, truncation, insertion, deletion, repetition and exchange of pieces."""
    mutated = bytearray(data)
    i, j = sorted(int(k) for k in rng.integers(0, len(data) + 1, 2))
    match int(rng.integers(7)):
        case 0:
            for _ in range(int(rng.integers(1, 4))):
                mutated[int(rng.integers(len(mutated)))] ^= 1 << int(rng.integers(8))
        case 1:
            del mutated[i:]
        case 2:
            mutated[i:i] = rng.bytes(int(rng.integers(1, 40)))
        case 3:
            del mutated[i : min(j, i + 20)]
        case 4:
            mutated[i:i] = mutated[i : i + int(rng.integers(1, 20))]
        case 5:
            mutated[i:j] = rng.bytes(j - i)
        case 6:
            mutated[:8] = struct.pack("<Q", int(rng.choice([0, 1, 2**31, 2**62, 2**63 + 5, len(data), len(data) - 8])))
    return bytes(mutated)


def _places(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [at]
    if isinstance(value, dict):
        for key in value:
            found += _places(value[key], (*at, key))
    elif isinstance(value, list):
        for i, item in enumerate(value):
            found += _places(item, (*at, i))
    return found


def edited_json(rng: np.random.Generator, value: Any) -> Any:
    """A copy of a JSON value with one place replaced, removed, renamed or repeated."""
    value = copy.deepcopy(value)
    places = [place for place in _places(value) if place]
    if not places:
        return NASTY[int(rng.integers(len(NASTY)))]
    place = places[int(rng.integers(len(places)))]
    parent = value
    for key in place[:-1]:
        parent = parent[key]
    nasty = NASTY[int(rng.integers(len(NASTY)))]
    match int(rng.integers(4)):
        case 0 | 1:
            old = parent[place[-1]]
            if type(old) is int and rng.random() < 0.7:
                nasty = old + int(rng.integers(-3, 4))
            parent[place[-1]] = nasty
        case 2:
            del parent[place[-1]]
        case 3:
            if isinstance(parent, dict):
                parent[str(nasty)] = parent.pop(place[-1])
            else:
                parent.insert(place[-1], copy.deepcopy(parent[place[-1]]))
    return value


def edited_header(rng: np.random.Generator, data: bytes) -> bytes:
    """The header edited as JSON or as text, its length right, the digest as it was."""
    header, body = split(data)
    if rng.random() < 0.7:
        return container(edited_json(rng, header), body)
    text = json.dumps(header)
    i = int(rng.integers(len(text)))
    match int(rng.integers(3)):
        case 0:
            text = text[:i] + TEXTS[int(rng.integers(len(TEXTS)))] + text[i + 1 :]
        case 1:  # a repeated key
            name = list(header)[int(rng.integers(len(header)))]
            text = text[:-1] + f', "{name}": {json.dumps(header[name])}}}'
        case 2:
            text = text[:i] + chr(int(rng.integers(32, 0x300))) + text[i:]
    return container(text, body)


def edited_content(rng: np.random.Generator, data: bytes) -> bytes:
    """What the file says is edited, and the digest is made right: only the meaning can be wrong."""
    header, body = split(data)
    metadata = header["__metadata__"]
    match int(rng.integers(5)):
        case 0 | 1:  # the circuit's description
            metadata["circuit"] = json.dumps(edited_json(rng, json.loads(metadata["circuit"])))
        case 2:  # its text
            text = metadata["circuit"]
            i = int(rng.integers(len(text)))
            piece = TEXTS[int(rng.integers(len(TEXTS)))] if rng.random() < 0.5 else chr(int(rng.integers(32, 127)))
            metadata["circuit"] = text[:i] + piece + text[i + int(rng.integers(2)) :]
        case 3:  # tensors' values
            body = bytearray(body)
            for _ in range(int(rng.integers(1, 4))):
                if body:
                    body[int(rng.integers(len(body)))] = int(rng.choice([0, 1, 15, 16, 127, 128, 255]))
            body = bytes(body)
        case 4:  # tensors' shapes, types and places
            names = [name for name in header if name != "__metadata__"]
            name = names[int(rng.integers(len(names)))]
            header[name] = edited_json(rng, header[name])
    return with_digest(header, body)


def example(readout=None, **fields):
    gates = [(Gate.AND, 0, 1), (Gate.XOR, 3, 2), (Gate.NOR, 3, 4)]
    circuit = build_circuit(3, gates, [4, 5, 0], GroupSum([0, 1, 1], [0, 7], 2.5) if readout is None else readout)
    return replace(circuit, **fields)


def encoded():
    x = np.array([[0.25, 3.0], [0.5, 1.0], [1e-300, 2.0]])
    encoder = Thermometer(2).fit(x)
    circuit = layered_circuit(np.random.default_rng(0), encoder.bits, 8, 2, classes=2)
    names = ("quote \" and 'tick'", "new\nline ✓")
    return replace(
        circuit, encoder=encoder, class_names=names, input_names=encoder.names, metadata={"a": "b", "": "\u2028"}
    )


EXAMPLES = {
    "group_sum": example(),
    "affine": example(Affine(3, -4, 0.1, 1e-300)),
    "linear": example(Linear([[0.1, -2, 3e-45], [1, 2, 3]], [0, -0.5])),
    "encoded": encoded(),
    "labelled": example(class_names=("low", "high"), labels=np.array([-1.5, 2.0])),
}
