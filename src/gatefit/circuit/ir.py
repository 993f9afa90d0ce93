"""The circuit: frozen arrays that say everything about a deployed model.

    node n < inputs            the n-th input bit
    node n >= inputs           gate number n - inputs:   x_n = g(x_operands[0, n - inputs], x_operands[1, n - inputs])
    order                      both operands of a gate are nodes with a smaller number
    outputs                    nodes, in readout order; a node may be read more than once, inputs too

The meaning of these arrays is defined by ``circuit.simulate``; every pass maps a Circuit to a Circuit with the
same scores, every backend computes the same scores. Files and predictions are made where these arrays are used
(``circuit.file``, ``circuit.predict``); a circuit's methods import them when they are called.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from os import PathLike
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from jaxtyping import Float64, Int32, Shaped, UInt8

from gatefit.circuit.labels import check_labels
from gatefit.circuit.readout import Readout, check_readout, frozen

if TYPE_CHECKING:
    from gatefit.encoders import Encoder

MAX_NODES: Final = 2**31 - 1
"""Node numbers are int32."""


@dataclass(frozen=True, eq=False)
class Circuit:
    """A combinational circuit of two-input gates with its readout, names and (optionally) its input encoder."""

    inputs: int
    gates: UInt8[np.ndarray, " gates"]
    operands: Int32[np.ndarray, "2 gates"]
    outputs: Int32[np.ndarray, " outputs"]
    readout: Readout
    input_names: tuple[str, ...] = ()
    class_names: tuple[str, ...] = ()
    """For display; where none are given, the labels in print."""
    encoder: "Encoder | None" = None
    metadata: dict[str, str] = field(default_factory=dict)
    labels: Shaped[np.ndarray, " classes"] | None = None
    """What ``predict`` answers for each class, in the type of the training targets; None: the class names."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "inputs", _count("inputs", self.inputs))
        for name, dtype in (("gates", np.uint8), ("operands", np.int32), ("outputs", np.int32)):
            object.__setattr__(self, name, frozen(name, getattr(self, name), dtype))
        for name in ("input_names", "class_names"):
            object.__setattr__(self, name, _names(name, getattr(self, name)))
        object.__setattr__(self, "metadata", dict(self.metadata))
        if self.labels is not None:
            object.__setattr__(self, "labels", check_labels(self.labels))
            if not self.class_names:
                object.__setattr__(self, "class_names", tuple(map(str, self.labels.tolist())))
        self._check_arrays()
        check_readout(self.readout)
        if self.readout.outputs != self.outputs.size:
            raise ValueError(f"the readout reads {self.readout.outputs} bits, the circuit has {self.outputs.size}")
        if self.input_names and len(self.input_names) != self.inputs:
            raise ValueError(f"got {len(self.input_names)} input names for {self.inputs} inputs")
        if self.labels is not None and (self.readout.gives_value or len(self.labels) != self.readout.classes):
            wanted = "none: it gives a value" if self.readout.gives_value else f"{self.readout.classes} classes"
            raise ValueError(f"got {len(self.labels)} labels, the {type(self.readout).__name__} readout has {wanted}")
        if self.class_names and len(self.class_names) != self.readout.classes:
            raise ValueError(f"got {len(self.class_names)} class names for {self.readout.classes} classes")
        if self.encoder is not None and self.encoder.bits != self.inputs:
            raise ValueError(f"the encoder makes {self.encoder.bits} bits, the circuit reads {self.inputs}")
        if not all(isinstance(key, str) and isinstance(value, str) for key, value in self.metadata.items()):
            raise TypeError(f"metadata must map strings to strings, got {self.metadata!r}")

    def _check_arrays(self) -> None:
        if self.inputs < 1:
            raise ValueError(f"a circuit needs at least one input, got {self.inputs}")
        if self.gates.ndim != 1 or self.operands.shape != (2, self.gates.size) or self.outputs.ndim != 1:
            raise ValueError(
                f"a circuit needs gates (n,), operands (2, n) and outputs (m,), got {self.gates.shape}, "
                f"{self.operands.shape} and {self.outputs.shape}"
            )
        if self.nodes > MAX_NODES:
            raise ValueError(f"a circuit has at most {MAX_NODES} inputs and gates, got {self.nodes}; split it")
        if self.gates.size and self.gates.max() > 15:
            raise ValueError(f"gate numbers are 0 to 15 (gatefit.gates.Gate), got {self.gates.max()}")
        own = np.arange(self.inputs, self.nodes, dtype=np.int32)
        wrong = (self.operands < 0) | (self.operands >= own)
        if wrong.any():
            first = int(np.flatnonzero(wrong.any(axis=0))[0])
            raise ValueError(
                f"gate {first} (node {first + self.inputs}) reads nodes {self.operands[:, first].tolist()}; operands "
                f"must be nodes from 0 to {first + self.inputs - 1}: list gates in topological order"
            )
        wrong = (self.outputs < 0) | (self.outputs >= self.nodes)
        if wrong.any():
            first = int(np.flatnonzero(wrong)[0])
            raise ValueError(
                f"output {first} is node {self.outputs[first]}; outputs must be nodes from 0 to {self.nodes - 1}"
            )

    def __repr__(self) -> str:
        # Names, gates and wires run to megabytes; the encoder says its own parameters.
        encoder = "" if self.encoder is None else f", encoder={self.encoder!r}"
        answers = "1 value" if self.readout.gives_value else f"{self.readout.classes} classes"
        return (
            f"<Circuit: {self.inputs} inputs, {self.gates.size} gates, {self.outputs.size} outputs, "
            f"{type(self.readout).__name__} of {answers}{encoder}>"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        # Rebuilt by its constructor: checked again, frozen again, and without anything cached.
        return type(self), tuple(getattr(self, f.name) for f in fields(self))

    @property
    def nodes(self) -> int:
        """Inputs and gates together."""
        return self.inputs + int(self.gates.size)

    def save(self, path: str | PathLike[str], *, overwrite: bool = False) -> None:
        """Write the circuit to one ``.gate`` file (see docs/file-format.md), all of it or nothing.

        A file that is there is replaced only with ``overwrite=True``.
        """
        from gatefit.circuit import file

        file.refuse_existing(path, overwrite)
        file.save(self, path)

    @classmethod
    def load(cls, path: str | PathLike[str], *, readouts: Iterable[type[Readout]] = ()) -> "Circuit":
        """Read a ``.gate`` file; anything wrong with it is a ``CircuitFileError``.

        A name that no file has, as ``"mnist-1k"``, is that of a model that ships with gatefit (see `gatefit models`).
        ``readouts`` are kinds of readout of your own that the file may hold, beside gatefit's.
        """
        from gatefit.circuit import file

        return file.load(path, readouts=readouts)

    def scores(self, x: object) -> Shaped[np.ndarray, "samples classes"]:
        """Class scores (or the value of a regression) of raw features, or of bits if there is no encoder."""
        from gatefit.circuit import predict

        return predict.scores(self, x)

    def predict(self, x: object) -> Shaped[np.ndarray, " samples"]:
        """Labels as in the training targets, else class names, else class numbers; values of a regression.

        A circuit that an estimator made has the estimator's labels: ``circuit.predict(x)`` equals ``model.predict(x)``.
        """
        from gatefit.circuit import predict

        return predict.predict(self, x)

    def predict_proba(self, x: object) -> Float64[np.ndarray, "samples classes"]:
        """Class probabilities: softmax of the scores, divided by the temperature of a GroupSum."""
        from gatefit.circuit import predict

        return predict.predict_proba(self, x)

    def score(self, x: object, y: object) -> float:
        """The share of rows whose predicted class is the target's, or R² of a regression: as scikit-learn's ``score``.

        Targets are as the model was trained with; where a circuit has no labels, class names or class numbers.
        """
        from gatefit.circuit import predict

        return predict.score(self, x, y)

    def _repr_html_(self) -> str:
        from gatefit.circuit import picture

        return picture.to_html(self)


def _count(name: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise TypeError(f"{name} must be a whole number, got {value!r}")
    return int(value)


def _names(name: str, values: Iterable[str]) -> tuple[str, ...]:
    names = tuple(values) if not isinstance(values, str) else None
    if names is None or not all(isinstance(value, str) for value in names):
        raise TypeError(f"{name} must be a sequence of strings, got {values!r:.80}")
    return tuple(str(value) for value in names)
