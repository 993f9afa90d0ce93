"""Readers for models trained with difflogic and torchlogix: state_dict and wiring in, Circuit out.

    difflogic            gate = argmax of 16 logits            the wiring is not in its files: pass layer.indices
    torchlogix raw       gate = argmax of 16 logits
    torchlogix light     g(a, b) = (weight of the corner > 0),           corners (0,0) (0,1) (1,0) (1,1)
    torchlogix warp      g(a, b) = (Σ_s weight_s · s(1 - 2a, 1 - 2b) < 0),     s = 1, b, a, a·b

Both libraries number gates by their truth table, as gatefit does, and sum equal groups of the last layer. Arrays may
be numpy's or torch's; torch is not imported, so read a checkpoint with torch first, weights only.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np
from jaxtyping import Int64, UInt8

from gatefit.circuit.ir import Circuit
from gatefit.circuit.readout import GroupSum

if TYPE_CHECKING:
    from gatefit.encoders import Encoder

Parametrization = Literal["raw", "light", "warp", "walsh"]

_CORNERS: Final = np.array([8, 4, 2, 1])
_WALSH: Final = np.array([[1, 1, 1, 1], [1, -1, 1, -1], [1, 1, -1, -1], [1, -1, -1, 1]])
"""Rows 1, b, a and a·b at the four corners, with +1 for a false and -1 for a true input."""


def from_difflogic(
    state_dict: Mapping[str, Any],
    wiring: Sequence[Any],
    *,
    inputs: int,
    classes: int,
    temperature: float = 1.0,
    input_names: Iterable[str] = (),
    class_names: Iterable[str] = (),
    encoder: "Encoder | None" = None,
) -> Circuit:
    """The circuit of a ``Sequential`` of difflogic's LogicLayers and a GroupSum(classes, tau=temperature).

    ``wiring`` is ``[layer.indices for layer in …]``: one pair of index arrays a layer. difflogic does not save it;
    without it the model is lost.
    """
    layers = _layers(state_dict, "weights")
    if len(wiring) != len(layers):
        raise ValueError(
            f"the state_dict has {len(layers)} logic layers, the wiring has {len(wiring)}; "
            f"pass layer.indices of every LogicLayer, in order"
        )
    gates = [gates_of(weights, "raw", name) for name, weights in layers.items()]
    names = tuple(input_names), tuple(class_names)
    return _circuit(list(layers), gates, wiring, inputs, classes, temperature, names, encoder, "difflogic")


def from_torchlogix(
    state_dict: Mapping[str, Any],
    *,
    inputs: int,
    classes: int,
    temperature: float = 1.0,
    parametrization: Parametrization = "raw",
    wiring: Sequence[Any] | None = None,
    input_names: Iterable[str] = (),
    class_names: Iterable[str] = (),
    encoder: "Encoder | None" = None,
) -> Circuit:
    """The circuit of a ``Sequential`` of torchlogix' LogicDense layers of two inputs and a GroupSum.

    ``wiring`` is needed for files of versions that did not save it: ``[layer.connections.indices for layer in …]``.
    """
    layers = _layers(state_dict, "weight")
    if wiring is None:
        wiring = [_saved_wiring(state_dict, name) for name in layers]
    if len(wiring) != len(layers):
        raise ValueError(f"the state_dict has {len(layers)} logic layers, the wiring has {len(wiring)}")
    gates = [gates_of(weights, parametrization, name) for name, weights in layers.items()]
    names = tuple(input_names), tuple(class_names)
    return _circuit(list(layers), gates, wiring, inputs, classes, temperature, names, encoder, "torchlogix")


def gates_of(weights: Any, parametrization: Parametrization, name: str = "layer") -> UInt8[np.ndarray, " gates"]:
    """The gates that a layer's trained weights stand for when it is evaluated."""
    columns = {"raw": 16, "light": 4, "warp": 4, "walsh": 4}
    if parametrization not in columns:
        raise ValueError(f"unknown parametrization {parametrization!r}; choose one of {', '.join(columns)}")
    array = _array(weights)
    if array.ndim != 2 or array.shape[1] != columns[parametrization]:
        raise ValueError(
            f"{name}: {parametrization} weights are (gates, {columns[parametrization]}), got {array.shape}"
            + ("; choose parametrization='light' or 'warp'" if array.ndim == 2 and array.shape[1] == 4 else "")
        )
    if not np.isfinite(array).all():
        raise ValueError(f"{name}: the weights hold NaN or infinity; the model did not train")
    if parametrization == "raw":
        return np.asarray(array.argmax(axis=1), np.uint8)
    corners = array > 0 if parametrization == "light" else array.astype(np.float32) @ _WALSH.astype(np.float32) < 0
    return np.asarray(corners @ _CORNERS, np.uint8)


def _array(values: Any) -> np.ndarray:
    # A torch tensor that requires a gradient, or lives on another device, says no to numpy.
    return np.asarray(values.detach().cpu() if hasattr(values, "detach") else values)


def _layers(state_dict: Mapping[str, Any], leaf: str) -> dict[str, Any]:
    """The logic layers' weights by the names of the layers, in the order of the numbers in them."""
    suffix = f".{leaf}"
    found = {key[: -len(suffix)]: value for key, value in state_dict.items() if key.endswith(suffix)}
    if leaf == "weights":  # learnable connections have weights too, three-dimensional ones
        found = {name: value for name, value in found.items() if not name.endswith("connections")}
    if not found:
        raise ValueError(
            f"no layer has {leaf!r} in this state_dict, which holds {', '.join(list(state_dict)[:5]) or 'nothing'}; "
            f"pass the state_dict of a Sequential of logic layers"
        )
    return dict(sorted(found.items(), key=lambda item: [int(n) for n in re.findall(r"\d+", item[0])]))


def _saved_wiring(state_dict: Mapping[str, Any], name: str) -> Any:
    key = f"{name}.connections.indices"
    if key not in state_dict:
        raise ValueError(
            f"the state_dict has no {key!r}: this version of torchlogix did not save the wiring; "
            f"pass wiring=[layer.connections.indices for layer in …] from the model that was trained"
        )
    indices = _array(state_dict[key])
    choice = state_dict.get(f"{name}.connections.weights")
    if choice is None:
        return indices
    best = _array(choice).argmax(axis=0)  # learned connections: the candidate with the largest weight
    if indices.ndim != 3 or best.shape != indices.shape[1:]:
        raise ValueError(f"{name}: learned connections need indices and weights (candidates, 2, gates)")
    return np.take_along_axis(indices, best[None], axis=0)[0]


def _wiring(wiring: Any, gates: int, readable: int, name: str) -> Int64[np.ndarray, "2 gates"]:
    arrays = [_array(row) for row in wiring]
    if len(arrays) != 2 or any(row.shape != (gates,) for row in arrays):
        raise ValueError(
            f"{name}: the wiring of {gates} gates is two rows of {gates} numbers, got {[row.shape for row in arrays]}"
        )
    indices = np.stack(arrays)
    if not np.issubdtype(indices.dtype, np.integer):
        raise TypeError(f"{name}: the wiring must hold integers, got {indices.dtype}")
    if indices.size and not 0 <= indices.min() <= indices.max() < readable:
        raise ValueError(
            f"{name}: the wiring must hold numbers from 0 to {readable - 1}, got {indices.min()} to {indices.max()}; "
            f"are the layers and the number of inputs right?"
        )
    return indices.astype(np.int64)


def _circuit(
    layers: list[str],
    gates: list[UInt8[np.ndarray, " gates"]],
    wiring: Sequence[Any],
    inputs: int,
    classes: int,
    temperature: float,
    names: tuple[tuple[str, ...], tuple[str, ...]],
    encoder: "Encoder | None",
    source: str,
) -> Circuit:
    operands, first, readable = [], 0, inputs
    for name, kinds, pair in zip(layers, gates, wiring, strict=True):
        operands.append(first + _wiring(pair, kinds.size, readable, name))
        first, readable = first + readable, kinds.size
    if classes < 1 or readable % classes:
        raise ValueError(f"the last layer's {readable} gates cannot be shared equally by {classes} classes")
    groups = np.repeat(np.arange(classes), readable // classes)
    return Circuit(
        inputs=inputs,
        gates=np.concatenate(gates),
        operands=np.concatenate(operands, axis=1),
        outputs=first + np.arange(readable),
        readout=GroupSum(groups, np.zeros(classes, np.int64), float(temperature)),
        input_names=names[0],
        class_names=names[1],
        encoder=encoder,
        metadata={"source": source},
    )
