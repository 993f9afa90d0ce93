"""A circuit as JSON, complete, for programs in any language.

    {"format": "gatefit-circuit-json", "version": 1,
     "inputs": 4,                             how many input bits; nodes 0 to inputs - 1
     "gates": [1, 6],                         truth tables as numbers: bits g(0,0) g(0,1) g(1,0) g(1,1)
     "operands": [[0, 4], [1, 2]],            the two nodes that each gate reads; gate i is node inputs + i
     "outputs": [5, 3],                       nodes that the readout reads, in order
     "readout": {"kind": "group_sum", "groups": [0, 1], "offsets": [0, 0], "temperature": 1.0}
             or {"kind": "affine", "offset": 0, "scale": 1.0, "intercept": 0.0}
             or {"kind": "linear", "weights": [[0.5, 1.0]], "bias": [0.0]},
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
from typing import Any, Final

import numpy as np

from gatefit.circuit.container import CircuitFileError, check_inputs, read_json
from gatefit.circuit.ir import Circuit
from gatefit.circuit.labels import labels_from_spec, labels_to_spec
from gatefit.circuit.readout import Affine, GroupSum, Linear, Readout

FORMAT: Final = "gatefit-circuit-json"
VERSION: Final = 2
"""The latest; a circuit without labels is written as version 1."""

_NAMES: Final = ("input_names", "class_names", "encoder", "metadata")
_FIELDS: Final = frozenset(("format", "version", "inputs", "gates", "operands", "outputs", "readout", *_NAMES))
_READOUT_FIELDS: Final = {
    "group_sum": frozenset(("kind", "groups", "offsets", "temperature")),
    "affine": frozenset(("kind", "offset", "scale", "intercept")),
    "linear": frozenset(("kind", "weights", "bias")),
}


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


def from_json(text: str) -> Circuit:
    """The circuit that ``to_json`` wrote; anything else is a CircuitFileError."""
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
        return _build(fields)
    except CircuitFileError:
        raise
    except (ValueError, TypeError, OverflowError) as error:
        raise CircuitFileError(f"not a valid circuit: {error}") from error


def _readout_fields(readout: Readout) -> dict[str, Any]:
    if isinstance(readout, GroupSum):
        sums = {"groups": readout.groups.tolist(), "offsets": readout.offsets.tolist()}
        return {"kind": "group_sum", **sums, "temperature": float(readout.temperature)}
    if isinstance(readout, Affine):
        line = {"scale": float(readout.scale), "intercept": float(readout.intercept)}
        return {"kind": "affine", "offset": int(readout.offset), **line}
    return {"kind": "linear", "weights": readout.weights.tolist(), "bias": readout.bias.tolist()}


def _build(fields: dict[str, Any]) -> Circuit:
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
        readout=_readout(fields["readout"], outputs.size),
        input_names=_strings(fields["input_names"], "input_names"),
        class_names=_strings(fields["class_names"], "class_names"),
        encoder=encoder,
        metadata=_metadata(fields["metadata"]),
        labels=labels_from_spec(fields["labels"]) if "labels" in fields else None,
    )


def _readout(fields: Any, outputs: int) -> Readout:
    kind = fields.get("kind") if isinstance(fields, dict) else None
    if not isinstance(kind, str) or kind not in _READOUT_FIELDS:
        raise CircuitFileError(f"the readout's kind is {kind!r:.80}; known are {', '.join(_READOUT_FIELDS)}")
    if set(fields) != _READOUT_FIELDS[kind]:
        raise CircuitFileError(f"the {kind} readout has exactly the fields {', '.join(sorted(_READOUT_FIELDS[kind]))}")
    if kind == "group_sum":
        groups = _integers(fields["groups"], "groups", np.int32)
        offsets = _integers(fields["offsets"], "offsets", np.int64)
        return GroupSum(groups, offsets, _number(fields["temperature"], "temperature"))
    if kind == "affine":
        offset = int(_integers([fields["offset"]], "offset", np.int64)[0])
        return Affine(outputs, offset, _number(fields["scale"], "scale"), _number(fields["intercept"], "intercept"))
    weights = fields["weights"]
    if not isinstance(weights, list) or not weights:
        raise CircuitFileError("weights must be a list of lists of numbers, one for each class")
    return Linear(np.array([_numbers(row, "weights") for row in weights]), np.array(_numbers(fields["bias"], "bias")))


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
