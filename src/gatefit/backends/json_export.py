"""A circuit as JSON, complete, for programs in any language.

    {"format": "gatefit-circuit-json", "version": 1,
     "inputs": 4,                             how many input bits; nodes 0 to inputs - 1
     "gates": [1, 6],                         truth tables as numbers: bits g(0,0) g(0,1) g(1,0) g(1,1)
     "operands": [[0, 4], [1, 2]],            the two nodes that each gate reads; gate i is node inputs + i
     "outputs": [5, 3],                       nodes that the readout reads, in order
     "readout": {"kind": "group_sum", "groups": [0, 1], "offsets": [0, 0], "temperature": 1.0}
             or {"kind": "affine", "offset": 0, "scale": 1.0, "intercept": 0.0}
             or {"kind": "linear", "weights": [[0.5, 1.0]], "bias": [0.0]}, or what another kind says of itself
     "input_names": [], "class_names": [],    empty, or one string each
     "encoder": null,                         or the encoder's specification
     "metadata": {},                          strings
     "labels": {"dtype": "int64",             version 2 only: what is predicted for each class, and its numpy type
                "values": [0, 1]}}

The score of class k is offsets[k] plus the number of its outputs that are 1 (group_sum), intercept + scale · (offset +
number of outputs that are 1) (affine, one value), or bias[k] + Σ weights[k][i] · output i in order (linear, float32).
``from_json`` reads it back exactly, and takes nothing on trust. Circuit files (``.gate``) are smaller and carry a
digest.
"""

import json
from collections.abc import Iterable
from typing import Any, Final

import numpy as np

from gatefit.circuit.container import DTYPES, CircuitFileError, check_inputs, read_json
from gatefit.circuit.file import read_kind, read_numbers
from gatefit.circuit.ir import Circuit
from gatefit.circuit.labels import labels_from_spec, labels_to_spec
from gatefit.circuit.readout import Readout, Tensor, readout_classes

FORMAT: Final = "gatefit-circuit-json"
VERSION: Final = 2
"""The latest; a circuit without labels is written as version 1."""

_NAMES: Final = ("input_names", "class_names", "encoder", "metadata")
_FIELDS: Final = frozenset(("format", "version", "inputs", "gates", "operands", "outputs", "readout", *_NAMES))


def to_json(circuit: Circuit) -> str:
    """The circuit as JSON text, one field a line."""
    if circuit.encoder is not None:
        from gatefit.encoders import check_registered

        check_registered(circuit.encoder)
    fields: dict[str, Any] = {
        "format": FORMAT,
        "version": 1,
        "inputs": circuit.inputs,
        "gates": circuit.gates.tolist(),
        "operands": circuit.operands.tolist(),
        "outputs": circuit.outputs.tolist(),
        "readout": _readout_fields(circuit.readout),
        "input_names": list(circuit.input_names),
        "class_names": list(circuit.class_names),
        "encoder": None if circuit.encoder is None else circuit.encoder.to_spec(),
        "metadata": circuit.metadata,
    }
    if circuit.labels is not None:
        fields |= {"version": 2, "labels": labels_to_spec(circuit.labels)}
    lines = (f"  {json.dumps(key)}: {json.dumps(value, allow_nan=False)}" for key, value in fields.items())
    return "{\n" + ",\n".join(lines) + "\n}\n"


def from_json(text: str, *, readouts: Iterable[type[Readout]] = ()) -> Circuit:
    """The circuit that ``to_json`` wrote; anything else is a CircuitFileError.

    ``readouts`` are kinds of readout that it may have beside gatefit's own.
    """
    kinds = readout_classes(readouts)
    fields = read_json(text, "the circuit")
    if not isinstance(fields, dict) or fields.get("format") != FORMAT:
        raise CircuitFileError(f"the text is not a circuit: its format must be {FORMAT!r}")
    version = fields.get("version")
    if type(version) is not int or not 1 <= version <= VERSION:
        raise CircuitFileError(f"version must be 1 to {VERSION}, got {version!r:.80}; update gatefit")
    wanted = _FIELDS | {"labels"} if version == 2 else _FIELDS
    if set(fields) != wanted:
        raise CircuitFileError(f"a circuit has exactly the fields {', '.join(sorted(wanted))}")
    check_inputs(fields["inputs"], len(text))
    try:
        return _build(fields, kinds)
    except CircuitFileError:
        raise
    except (ValueError, TypeError, OverflowError) as error:
        raise CircuitFileError(f"not a valid circuit: {error}") from error


def _readout_fields(readout: Readout) -> dict[str, Any]:
    numbers, tensors = readout.to_spec()
    kind = numbers.pop("kind")
    return {"kind": kind, **{name: array.tolist() for name, array in tensors.items()}, **numbers}


def _build(fields: dict[str, Any], kinds: dict[str, type[Readout]]) -> Circuit:
    encoder = None
    if fields["encoder"] is not None:
        from gatefit.encoders import encoder_from_spec

        encoder = encoder_from_spec(fields["encoder"])
    if type(fields["inputs"]) is not int:
        raise CircuitFileError(f"inputs must be an integer, got {fields['inputs']!r:.80}")
    operands = fields["operands"]
    if not isinstance(operands, list) or len(operands) != 2:
        raise CircuitFileError("operands must be two lists of nodes")
    outputs = _integers(fields["outputs"], "outputs", np.int32)
    return Circuit(
        inputs=fields["inputs"],
        gates=_integers(fields["gates"], "gates", np.uint8),
        operands=np.stack([_integers(side, "operands", np.int32) for side in operands]),
        outputs=outputs,
        readout=_readout(fields["readout"], outputs.size, kinds),
        input_names=_strings(fields["input_names"], "input_names"),
        class_names=_strings(fields["class_names"], "class_names"),
        encoder=encoder,
        metadata=_metadata(fields["metadata"]),
        labels=labels_from_spec(fields["labels"]) if "labels" in fields else None,
    )


def _readout(fields: Any, outputs: int, kinds: dict[str, type[Readout]]) -> Readout:
    kind = read_kind(fields, kinds)
    wanted = {"kind", *kind.tensors, *kind.numbers}
    if set(fields) != wanted:
        raise CircuitFileError(f"the {kind.kind} readout has exactly the fields {', '.join(sorted(wanted))}")
    tensors = {name: _array(fields[name], name, how) for name, how in kind.tensors.items()}
    return kind.from_spec(read_numbers(kind, fields), tensors, outputs)


def _array(values: Any, what: str, how: Tensor) -> np.ndarray:
    """A list of numbers, or a list of such lists for a matrix."""
    if how.rank == 2:
        if not isinstance(values, list) or not values:
            raise CircuitFileError(f"{what} must be a list of lists of numbers, one for each class")
        return np.array([_array(row, what, Tensor(how.dtype, 1)) for row in values])
    dtype = DTYPES[how.dtype]
    return np.array(_numbers(values, what)) if dtype.kind == "f" else _integers(values, what, dtype.type)


def _integers(values: Any, what: str, dtype: type[np.integer[Any]]) -> np.ndarray:
    if not isinstance(values, list) or any(type(value) is not int for value in values):
        raise CircuitFileError(f"{what} must be a list of integers")
    bounds = np.iinfo(dtype)
    if values and not int(bounds.min) <= min(values) <= max(values) <= int(bounds.max):
        raise CircuitFileError(f"{what} must be integers from {bounds.min} to {bounds.max}")
    return np.array(values, dtype=dtype)


def _number(value: Any, what: str) -> float:
    if type(value) not in (int, float):
        raise CircuitFileError(f"{what} must be a number, got {value!r:.80}")
    return float(value)


def _numbers(values: Any, what: str) -> list[float]:
    if not isinstance(values, list):
        raise CircuitFileError(f"{what} must be a list of numbers")
    return [_number(value, what) for value in values]


def _strings(values: Any, what: str) -> tuple[str, ...]:
    if not isinstance(values, list) or any(type(value) is not str for value in values):
        raise CircuitFileError(f"{what} must be a list of strings")
    return tuple(values)


def _metadata(values: Any) -> dict[str, str]:
    if not isinstance(values, dict) or any(type(value) is not str for value in values.values()):
        raise CircuitFileError("metadata must hold strings only")
    return values
