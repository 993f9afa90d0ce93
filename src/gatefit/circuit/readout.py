"""What is computed from a circuit's output bits: class scores or a value.

    total_k = offset_k + Σ_i w_ki y_i               integers (``Readout.sums``)
    score_k = intercept + scale · total_k           class = first k with the largest score, or the one score is a value

    GroupSum     w_ki = [group_i = k]                                       integer scores
    Affine       one total of all outputs, scaled                           a value
    Linear       score_k = bias_k + Σ_i w_ki y_i in float32                 integers times a unit where no sum can round
    ClassCode    the outputs are the class number in binary                 what ``lower_readout`` makes of classes,
    OneHot       one output a class, one of them one                        or this if asked,
    Number       the outputs are the total in binary                        and this of values

Everything that runs, changes, proves or exports a circuit reads its readout through what a ``Readout`` answers, never
through its class: a kind of the user's own, defined anywhere, goes wherever these go. Offsets hold what constant
outputs contributed before they were folded away, so totals stay exact integers.
"""

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple

import numpy as np
from jaxtyping import Bool, Float32, Float64, Int32, Int64, Shaped

from gatefit.circuit.container import DTYPES

MAX_OFFSET: Final = 2**62
"""Offsets stay below, so that no sum of bits can leave int64."""
MOST_TOTALS: Final = 2**24
"""Totals that are tried, where a statement about scaled totals needs it."""
LARGEST: Final = float(np.finfo(np.float32).max)


def frozen(name: str, values: Any, dtype: Any) -> np.ndarray:
    """A read-only array of ``values``, which must be numbers that ``dtype`` holds; integers for integer types."""
    array, dtype = np.asarray(values), np.dtype(dtype)
    if array.size and not np.issubdtype(array.dtype, np.integer if dtype.kind in "iu" else np.number):
        raise TypeError(f"{name} must hold {'integers' if dtype.kind in 'iu' else 'numbers'}, got {array.dtype}")
    if dtype.kind in "iu" and array.dtype != dtype and array.size:
        info = np.iinfo(dtype)
        if array.min() < info.min or array.max() > info.max:
            raise ValueError(f"{name} must fit {dtype.name}, got values {array.min()} to {array.max()}")
    if array.dtype == dtype and not array.flags.writeable and array.flags.c_contiguous and array.base is None:
        return array  # frozen already, and nobody holds a writable view of it
    array = np.array(array, dtype=dtype, order="C")
    array.flags.writeable = False
    return array


@dataclass(frozen=True, eq=False)
class Sums:
    """Integer sums of output bits: term t adds ``weights[t]`` to total ``sums[t]`` where output ``outputs[t]`` is one.

    Terms are held sorted by the sum that they belong to, otherwise in the order given. No total can leave int64.
    """

    offsets: Int64[np.ndarray, " classes"]
    sums: Int32[np.ndarray, " terms"]
    outputs: Int32[np.ndarray, " terms"]
    weights: Int64[np.ndarray, " terms"]
    scale: float = 1.0
    intercept: float = 0.0
    """score = intercept + scale · total."""

    def __post_init__(self) -> None:
        sums = np.asarray(self.sums)
        order = np.argsort(sums, kind="stable") if np.any(np.diff(sums) < 0) else slice(None)
        object.__setattr__(self, "offsets", frozen("offsets", self.offsets, np.int64))
        for name, dtype in (("sums", np.int32), ("outputs", np.int32), ("weights", np.int64)):
            object.__setattr__(self, name, frozen(name, np.asarray(getattr(self, name))[order], dtype))
        if not self.sums.shape == self.outputs.shape == self.weights.shape == (self.sums.size,):
            raise ValueError(
                f"every term needs a sum, an output and a weight, got shapes {self.sums.shape}, {self.outputs.shape} "
                f"and {self.weights.shape}"
            )
        if self.sums.size and not 0 <= self.sums[0] <= self.sums[-1] < self.offsets.size:
            raise ValueError(
                f"terms belong to sums 0 to {self.offsets.size - 1}, got {self.sums[0]} to {self.sums[-1]}"
            )
        reach = np.abs(self.offsets.astype(np.float64))
        np.add.at(reach, self.sums, np.abs(self.weights.astype(np.float64)))
        if np.any(reach >= 2.0**63):
            raise ValueError(f"sums must be below 2**63, got offsets and weights of up to {reach.max():.6g} in one sum")

    @property
    def classes(self) -> int:
        """How many totals."""
        return int(self.offsets.size)

    @property
    def starts(self) -> Int64[np.ndarray, " classes_and_one"]:
        """The terms of sum k are those from starts[k] to starts[k + 1] - 1."""
        return np.searchsorted(self.sums, np.arange(self.classes + 1)).astype(np.int64)

    @property
    def counts(self) -> bool:
        """Whether every weight is one: totals are then numbers of ones."""
        return bool(np.all(self.weights == 1))

    @property
    def low(self) -> list[int]:
        """The smallest that each total can be."""
        return self._extremes(np.minimum(self.weights, 0))

    @property
    def high(self) -> list[int]:
        """The largest that each total can be."""
        return self._extremes(np.maximum(self.weights, 0))

    def _extremes(self, weights: Int64[np.ndarray, " terms"]) -> list[int]:
        totals = self.offsets.copy()
        np.add.at(totals, self.sums, weights)
        return [int(total) for total in totals]

    def owners(self, outputs: int) -> Int32[np.ndarray, " outputs"] | None:
        """For each of the ``outputs`` bits the one sum that counts it; None if some bit is not counted just once."""
        if not self.counts or not np.array_equal(np.sort(self.outputs), np.arange(outputs)):
            return None
        owners = np.empty(outputs, np.int32)
        owners[self.outputs] = self.sums
        return owners

    def totals(self, bits: Bool[np.ndarray, "samples outputs"]) -> Int64[np.ndarray, "samples classes"]:
        """The integer totals of output bits."""
        totals = np.repeat(self.offsets[None], len(bits), axis=0)
        starts, counts = self.starts.tolist(), self.counts
        for k, (begin, end) in enumerate(itertools.pairwise(starts)):
            own = bits[:, self.outputs[begin:end]]
            totals[:, k] += own.sum(axis=1) if counts else own @ self.weights[begin:end]
        return totals


class FloatTerms(NamedTuple):
    """Scores that are float32 sums: the bias first, then the outputs in order, so that every backend rounds alike."""

    weights: Float32[np.ndarray, "classes outputs"]
    bias: Float32[np.ndarray, " classes"]


class Tensor(NamedTuple):
    """How an array of a readout is stored: a type of ``container.DTYPES`` and a number of dimensions."""

    dtype: str
    rank: int


class Readout(ABC):
    """What a circuit computes from its output bits.

    A kind of your own is a frozen dataclass that says its ``kind``, ``outputs``, ``classes`` and ``sums()``; and, to be
    saved, which of its fields are ``tensors`` and which are ``numbers``. ``fold`` lets passes drop constant outputs.
    """

    kind: ClassVar[str]
    """Names the kind in files."""
    gives_value: ClassVar[bool] = False
    """Whether the one score is the answer; otherwise the answer is the first class with the largest score."""
    lowered: ClassVar[bool] = False
    """Whether the output bits themselves are the answer, as ``lower_readout`` leaves them."""
    dtype: ClassVar[type[np.generic]] = np.int64
    """Of scores: int64 (the totals), float64 (intercept + scale · total) or float32 (``float_terms``)."""
    tensors: ClassVar[Mapping[str, Tensor]] = {}
    numbers: ClassVar[Mapping[str, type]] = {}
    """What files hold of it: fields that are arrays, and fields that are of type int or float."""

    temperature: float = 1.0
    """What scores are divided by before they become probabilities."""

    if TYPE_CHECKING:  # each a field or a property of the subclass: a field would take a property here for its default

        @property
        def outputs(self) -> int:
            """How many output bits are read."""

        @property
        def classes(self) -> int:
            """How many scores are produced."""

    @abstractmethod
    def sums(self) -> Sums | None:
        """The scores as integer totals; None where they are none, such as float sums that may round."""

    def float_terms(self) -> FloatTerms | None:
        """The scores as float32 sums in a fixed order, where that is what they are."""
        return None

    @property
    def described(self) -> str:
        """The kind, as errors call it."""
        name = type(self).__name__
        return f"{'an' if name[0] in 'AEIOU' else 'a'} {name} readout"

    def scores(self, bits: Bool[np.ndarray, "samples outputs"]) -> Shaped[np.ndarray, "samples classes"]:
        """The scores of output bits, of type ``dtype``."""
        return self.from_totals(self._sums().totals(bits))

    def from_totals(self, totals: Int64[np.ndarray, "samples classes"]) -> Shaped[np.ndarray, "samples classes"]:
        """The scores of integer totals."""
        if self.dtype is np.int64:
            return totals
        sums = self._sums()
        return np.asarray(sums.intercept + sums.scale * totals, dtype=self.dtype)

    def probabilities(self, scores: Shaped[np.ndarray, "samples classes"]) -> Float64[np.ndarray, "samples classes"]:
        """P(k) = softmax_k(score / temperature), computed without overflow."""
        if self.gives_value:
            raise TypeError(f"{self.described} gives a value, not class probabilities; use circuit.predict(x)")
        if scores.dtype.kind == "f":
            # Sums beyond float32 are infinite, and infinity less itself is no number.
            scores = np.nan_to_num(scores.astype(np.float64), nan=0.0, posinf=LARGEST, neginf=-LARGEST)
        # The difference first: of counts it is exact, and no quotient of it is too large for the exponential.
        powers = np.exp((scores - scores.max(axis=1, keepdims=True)) / np.float64(self.temperature))
        return np.asarray(powers / powers.sum(axis=1, keepdims=True))

    def sums_for(self, what: str, *, compares_totals: bool = True) -> Sums:
        """The integer sums, for ``what`` can add nothing else.

        What ``compares_totals`` instead of scores is given only totals that are in the order of their scores.
        """
        sums = self.sums()
        if sums is None:
            raise ValueError(
                f"{self.described} whose sums may round has no sums of integers, and {what} adds nothing else; train "
                f"with the group-sum readout, or with the linear one, which is deployed with weights that add exactly"
            )
        if self.dtype is np.float64 and not self.gives_value and compares_totals:
            low, high = min(sums.low), max(sums.high)
            span = np.arange(low, min(high, low + MOST_TOTALS) + 1)[:, None]
            if high - low > MOST_TOTALS or not np.all(np.diff(self.from_totals(span)[:, 0]) > 0):
                raise ValueError(
                    f"{self.described} makes scores ({sums.intercept} + {sums.scale} · total) that may be in another "
                    f"order than the totals, or equal by rounding, and {what} compares totals; choose another scale"
                )
        return sums

    def fold(
        self, constant: Bool[np.ndarray, " outputs"], ones: Bool[np.ndarray, " outputs"]
    ) -> "tuple[Readout, Bool[np.ndarray, ' outputs']]":
        """The readout without outputs that are ``constant`` (``ones``: always one), and which outputs remain.

        A kind that cannot do without some output keeps it: it stays in the circuit as a constant gate.
        """
        return self, np.ones(constant.size, bool)

    def output_names(self, class_names: tuple[str, ...]) -> tuple[str, ...]:
        """Names of the output bits for ports of netlists: the classes that they count for; empty if there are none."""
        sums = None if self.gives_value or not class_names else self.sums()
        owners = None if sums is None else sums.owners(self.outputs)
        return () if owners is None else tuple(class_names[k] for k in owners.tolist())

    def decides(self) -> Iterable[Any]:
        """Arrays that say everything that decides the scores: what a certificate of equal scores is about."""
        sums = self._sums()
        return sums.offsets, sums.sums, sums.outputs, sums.weights, np.array([sums.scale, sums.intercept], np.float64)

    def to_spec(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """What files hold: kind and numbers, and arrays by name."""
        numbers = {name: of_type(getattr(self, name)) for name, of_type in self.numbers.items()}
        stored = {name: frozen(name, getattr(self, name), DTYPES[how.dtype]) for name, how in self.tensors.items()}
        return {"kind": self.kind, **numbers}, stored

    @classmethod
    def from_spec(cls, numbers: Mapping[str, Any], tensors: Mapping[str, np.ndarray], outputs: int) -> "Readout":
        """The readout of ``outputs`` bits that ``to_spec`` wrote; fields are there and of their types."""
        return cls(**tensors, **numbers)

    def _sums(self) -> Sums:
        sums = self.sums()
        if sums is None:
            raise TypeError(
                f"{self.described} says neither sums() nor scores of its own; give its class sums(), or scores(bits) "
                "and decides()"
            )
        return sums


@dataclass(frozen=True, eq=False)
class GroupSum(Readout):
    """Integer sums of the output bits of each class; ``temperature`` only scales probabilities.

    score_k = offset_k + Σ_{i : group_i = k} y_i
    """

    groups: Int32[np.ndarray, "outputs"]
    offsets: Int64[np.ndarray, "classes"]
    temperature: float = 1.0

    kind = "group_sum"
    tensors: ClassVar[Mapping[str, Tensor]] = {"groups": Tensor("I32", 1), "offsets": Tensor("I64", 1)}
    numbers: ClassVar[Mapping[str, type]] = {"temperature": float}

    def __post_init__(self) -> None:
        object.__setattr__(self, "groups", frozen("groups", self.groups, np.int32))
        object.__setattr__(self, "offsets", frozen("offsets", self.offsets, np.int64))
        if self.groups.ndim != 1 or self.offsets.ndim != 1 or self.offsets.size == 0:
            raise ValueError(
                f"GroupSum needs one group per output and one offset per class, got shapes "
                f"{self.groups.shape} and {self.offsets.shape}; pass two one-dimensional arrays"
            )
        if self.groups.size and not 0 <= self.groups.min() <= self.groups.max() < self.offsets.size:
            raise ValueError(
                f"GroupSum has {self.offsets.size} classes, got groups from {self.groups.min()} to "
                f"{self.groups.max()}; every group must be a class number"
            )
        if np.any(np.abs(self.offsets) >= MAX_OFFSET):
            raise ValueError(f"offsets must be below 2**62, got {self.offsets.tolist()!r:.80}")
        if not (np.isfinite(self.temperature) and self.temperature > 0):
            raise ValueError(f"temperature must be a finite number > 0, got {self.temperature}")
        largest = self.groups.size + float(np.abs(self.offsets).max())
        if math.isinf(largest / float(self.temperature)):
            raise ValueError(
                f"scores of up to {largest:.6g} cannot be divided by a temperature of {self.temperature}; "
                f"a temperature is about the square root of the outputs of a class"
            )

    @property
    def outputs(self) -> int:
        """How many output bits are read."""
        return int(self.groups.size)

    @property
    def classes(self) -> int:
        """How many scores are produced."""
        return int(self.offsets.size)

    def sums(self) -> Sums:
        """Each output counts once, for its class."""
        return Sums(self.offsets, self.groups, np.arange(self.outputs), np.ones(self.outputs, np.int64))

    def fold(
        self, constant: Bool[np.ndarray, " outputs"], ones: Bool[np.ndarray, " outputs"]
    ) -> "tuple[GroupSum, Bool[np.ndarray, ' outputs']]":
        """Constant ones are part of their class's offset."""
        offsets = self.offsets + np.bincount(self.groups[ones], minlength=self.classes)
        return replace(self, groups=self.groups[~constant], offsets=offsets), ~constant

    def decides(self) -> Iterable[Any]:
        """Not the temperature, which divides all scores."""
        return self.groups, self.offsets


@dataclass(frozen=True, eq=False)
class Affine(Readout):
    """A regression value from the number of output bits that are one: intercept + scale · (offset + Σ_i y_i)."""

    outputs: int
    offset: int = 0
    scale: float = 1.0
    intercept: float = 0.0

    kind = "affine"
    gives_value = True
    dtype = np.float64
    numbers: ClassVar[Mapping[str, type]] = {"offset": int, "scale": float, "intercept": float}

    def __post_init__(self) -> None:
        if self.outputs < 0:
            raise ValueError(f"Affine needs outputs >= 0, got {self.outputs}")
        if abs(self.offset) >= MAX_OFFSET:
            raise ValueError(f"the offset must be below 2**62, got {self.offset}")
        if not (np.isfinite(self.scale) and np.isfinite(self.intercept)):
            raise ValueError(f"scale and intercept must be finite, got {self.scale} and {self.intercept}")

    @property
    def classes(self) -> int:
        """One value."""
        return 1

    def sums(self) -> Sums:
        """One sum that counts every output."""
        once = np.ones(self.outputs, np.int64)
        return Sums(np.array([self.offset]), 0 * once, np.arange(self.outputs), once, self.scale, self.intercept)

    def fold(
        self, constant: Bool[np.ndarray, " outputs"], ones: Bool[np.ndarray, " outputs"]
    ) -> "tuple[Affine, Bool[np.ndarray, ' outputs']]":
        """Constant ones are part of the offset."""
        return replace(self, outputs=int((~constant).sum()), offset=self.offset + int(ones.sum())), ~constant

    def decides(self) -> Iterable[Any]:
        """All of it."""
        return [self.outputs, self.offset], np.array([self.scale, self.intercept], np.float64)

    @classmethod
    def from_spec(cls, numbers: Mapping[str, Any], tensors: Mapping[str, np.ndarray], outputs: int) -> "Affine":
        """The outputs are those that the circuit has."""
        return cls(outputs, **numbers)


@dataclass(frozen=True, eq=False)
class Linear(Readout):
    """A learned linear readout: the only arithmetic a deployed network may keep (paper, app. binarization)."""

    weights: Float32[np.ndarray, "classes outputs"]
    bias: Float32[np.ndarray, "classes"]

    kind = "linear"
    dtype = np.float32
    tensors: ClassVar[Mapping[str, Tensor]] = {"weights": Tensor("F32", 2), "bias": Tensor("F32", 1)}

    def __post_init__(self) -> None:
        object.__setattr__(self, "weights", frozen("weights", self.weights, np.float32))
        object.__setattr__(self, "bias", frozen("bias", self.bias, np.float32))
        if self.weights.ndim != 2 or self.bias.shape != self.weights.shape[:1] or self.bias.size == 0:
            raise ValueError(
                f"Linear needs weights (classes, outputs) and bias (classes,), got {self.weights.shape} "
                f"and {self.bias.shape}"
            )
        if not (np.isfinite(self.weights).all() and np.isfinite(self.bias).all()):
            raise ValueError("Linear needs finite weights and bias, got NaN or infinity; retrain or lower the rate")

    @property
    def outputs(self) -> int:
        """How many output bits are read."""
        return int(self.weights.shape[1])

    @property
    def classes(self) -> int:
        """How many scores are produced."""
        return int(self.bias.size)

    def float_terms(self) -> FloatTerms:
        """The weights and the bias."""
        return FloatTerms(self.weights, self.bias)

    def sums(self) -> Sums | None:
        """Multiples of the unit, if no sum of them can round."""
        unit = exact_unit(self)
        if unit is None:
            return None
        of_sum, of_output = np.nonzero(self.weights)
        weights = (self.weights[of_sum, of_output].astype(np.float64) / unit).astype(np.int64)
        return Sums((self.bias.astype(np.float64) / unit).astype(np.int64), of_sum, of_output, weights, unit)

    def scores(self, bits: Bool[np.ndarray, "samples outputs"]) -> Float32[np.ndarray, "samples classes"]:
        """Linear class scores: bias first, then the outputs in order, so that every backend rounds alike."""
        scores = np.repeat(self.bias[None], len(bits), axis=0)
        for i in range(self.outputs):
            scores += bits[:, i : i + 1] * self.weights[:, i]
        return scores

    def fold(
        self, constant: Bool[np.ndarray, " outputs"], ones: Bool[np.ndarray, " outputs"]
    ) -> "tuple[Linear, Bool[np.ndarray, ' outputs']]":
        """Constants go into the bias where that cannot change any rounding; the others stay."""
        # Ones before the first variable output are added to the bias first in any case.
        readout, left = self._add_to_bias(ones & (np.cumsum(~constant) == 0))
        rest = ones & (left | (np.cumsum(~constant) > 0))
        if exact_unit(Linear(readout.weights[:, ~constant | rest], readout.bias)) is not None:
            readout, rest = readout._add_to_bias(rest)
        stays = ~constant | rest
        return Linear(readout.weights[:, stays], readout.bias), stays

    def _add_to_bias(self, outputs: Bool[np.ndarray, " outputs"]) -> "tuple[Linear, Bool[np.ndarray, ' outputs']]":
        """The readout with the weights of ``outputs`` in its bias, and those outputs that did not fit a float32."""
        bias = self.bias.copy()
        with np.errstate(over="ignore"):
            for i in np.flatnonzero(outputs):
                bias += self.weights[:, i]
        if not np.isfinite(bias).all():
            return self, outputs
        return Linear(self.weights, bias), np.zeros_like(outputs)

    def output_names(self, class_names: tuple[str, ...]) -> tuple[str, ...]:
        """None: every output counts for every class."""
        return ()

    def decides(self) -> Iterable[Any]:
        """All of it."""
        return self.weights, self.bias


@dataclass(frozen=True, eq=False)
class ClassOnly(Readout):
    """The outputs say which class is meant; the sums that decided it are gone, and probabilities with them."""

    classes: int

    lowered = True
    numbers: ClassVar[Mapping[str, type]] = {"classes": int}

    def __post_init__(self) -> None:
        if not 1 <= self.classes < 2**31:
            raise ValueError(
                f"{type(self).__name__} needs at least one class, and fewer than 2**31, got {self.classes}"
            )

    def probabilities(self, scores: Shaped[np.ndarray, "samples classes"]) -> Float64[np.ndarray, "samples classes"]:
        """Refused."""
        raise TypeError(
            f"a {type(self).__name__} readout gives the class, not class probabilities; "
            "ask the circuit before lower_readout"
        )


@dataclass(frozen=True, eq=False)
class ClassCode(ClassOnly):
    """The outputs are the class number in binary, lowest bit first.

    score_k = number of outputs that agree with k in binary: largest, and only there, for the class that is meant.
    """

    kind = "class_code"

    @property
    def outputs(self) -> int:
        """As many bits as the largest class number has."""
        return max(1, (self.classes - 1).bit_length())

    def sums(self) -> Sums:
        """Σ_i [y_i = k_i] = Σ_i (1 - k_i) + Σ_i (2 k_i - 1) y_i."""
        digits = np.arange(self.classes)[:, None] >> np.arange(self.outputs) & 1
        of_sum, of_output = np.divmod(np.arange(digits.size), self.outputs)
        return Sums((1 - digits).sum(axis=1), of_sum, of_output, 2 * digits.ravel() - 1)

    def output_names(self, class_names: tuple[str, ...]) -> tuple[str, ...]:
        """The bits of the class number."""
        return tuple(f"class_bit_{i}" for i in range(self.outputs))


@dataclass(frozen=True, eq=False)
class OneHot(ClassOnly):
    """Every class has one output: score_k = y_k, which is one for the class that is meant and zero for the others."""

    kind = "one_hot"

    @property
    def outputs(self) -> int:
        """One for each class."""
        return self.classes

    def sums(self) -> Sums:
        """Each output alone."""
        own = np.arange(self.classes)
        return Sums(0 * own, own, own, np.ones(self.classes, np.int64))

    def output_names(self, class_names: tuple[str, ...]) -> tuple[str, ...]:
        """The classes, by name or number."""
        return class_names or tuple(f"class_{k}" for k in range(self.classes))


@dataclass(frozen=True, eq=False)
class Number(Readout):
    """The outputs are a whole number in binary, lowest bit first, in two's complement if ``signed``.

    value = intercept + scale · number
    """

    outputs: int
    signed: int = 0
    scale: float = 1.0
    intercept: float = 0.0

    kind = "number"
    gives_value = True
    lowered = True
    dtype = np.float64
    numbers: ClassVar[Mapping[str, type]] = {"signed": int, "scale": float, "intercept": float}

    def __post_init__(self) -> None:
        if not 1 <= self.outputs <= 63 or self.signed not in (0, 1):
            raise ValueError(f"Number needs 1 to 63 outputs and signed 0 or 1, got {self.outputs} and {self.signed}")
        if not (np.isfinite(self.scale) and np.isfinite(self.intercept)):
            raise ValueError(f"scale and intercept must be finite, got {self.scale} and {self.intercept}")

    @property
    def classes(self) -> int:
        """One value."""
        return 1

    def sums(self) -> Sums:
        """Powers of two; the last one counts downwards if signed."""
        weights = 1 << np.arange(self.outputs, dtype=np.int64)
        weights[-1] *= 1 - 2 * self.signed
        return Sums(np.zeros(1, np.int64), 0 * weights, np.arange(self.outputs), weights, self.scale, self.intercept)

    def output_names(self, class_names: tuple[str, ...]) -> tuple[str, ...]:
        """The bits of the number."""
        return tuple(f"sum_bit_{i}" for i in range(self.outputs))

    @classmethod
    def from_spec(cls, numbers: Mapping[str, Any], tensors: Mapping[str, np.ndarray], outputs: int) -> "Number":
        """The outputs are those that the circuit has."""
        return cls(outputs, **numbers)


READOUTS: Final[dict[str, type[Readout]]] = {
    readout.kind: readout for readout in (GroupSum, Affine, Linear, ClassCode, OneHot, Number)
}
"""The kinds that files may hold without being told."""


def check_readout(value: object) -> None:
    """Refuse what is not a readout."""
    if not isinstance(value, Readout):
        raise TypeError(
            f"readout must be GroupSum, Affine or Linear, got {type(value).__name__}; a kind of your own is a subclass "
            f"of gatefit.circuit.readout.Readout"
        )


def readout_classes(given: Iterable[type[Readout]] = ()) -> dict[str, type[Readout]]:
    """Readouts by kind: those of gatefit and those ``given``, which a file may then hold as well."""
    found = dict(READOUTS)
    for readout in given:
        if not (isinstance(readout, type) and issubclass(readout, Readout)):
            raise TypeError(f"readouts must be subclasses of Readout, got {readout!r:.80}")
        if found.setdefault(readout.kind, readout) is not readout:
            raise ValueError(f"{readout.__name__} calls its kind {readout.kind!r}, which is gatefit's or another's")
    return found


def exact_unit(readout: Linear) -> float | None:
    """The largest power of two of which all weights are multiples, if every sum of them is exact in float32.

    Then the order of summation does not matter, and scores are integers times the unit. None if sums may round.
    """
    terms = np.abs(np.concatenate([readout.weights, readout.bias[:, None]], axis=1).astype(np.float64))
    present = terms[terms > 0]
    if present.size == 0:
        return 1.0
    # A float32 is an odd number times a power of two; the smallest of these powers is the common unit.
    mantissa, exponent = np.frexp(present)
    whole = (mantissa * 2.0**24).astype(np.int64)
    unit = 2.0 ** float((exponent - 24 + np.log2(whole & -whole)).min())
    return unit if terms.sum(axis=1).max() <= 2.0**24 * unit else None


class Difference(NamedTuple):
    """constant_k + Σ of ``weights[t]`` where output ``outputs[t]`` is one, over the terms t of sum k."""

    constants: Int64[np.ndarray, " classes"]
    sums: Int32[np.ndarray, " terms"]
    outputs: Int32[np.ndarray, " terms"]
    weights: Int64[np.ndarray, " terms"]


def difference(spec: Readout, impl: Readout) -> Difference | None:
    """Sums over spec's outputs followed by impl's; where all of them are zero, the scores are equal.

    None means that the two cannot be compared as integers: sums that may round, or values that are not the same
    function of a shifted total.
    """
    one, two = spec.sums(), impl.sums()
    if one is None or two is None:
        return None
    shift, factors = 0, (1, 1)
    if (one.scale, one.intercept) != (two.scale, two.intercept):
        if spec.dtype is np.float64:
            found = _shift(spec, one, impl, two)
            if found is None:
                return None
            shift = found
        else:  # exact multiples of two units that are powers of two
            unit = min(one.scale, two.scale)
            factors = int(one.scale / unit), int(two.scale / unit)
    return Difference(
        factors[0] * one.offsets + shift - factors[1] * two.offsets,
        np.concatenate([one.sums, two.sums]),
        np.concatenate([one.outputs, two.outputs + spec.outputs]),
        np.concatenate([factors[0] * one.weights, -factors[1] * two.weights]),
    )


def _shift(spec: Readout, one: Sums, impl: Readout, two: Sums) -> int | None:
    """The number s such that spec's value of a total t equals impl's value of t + s, for every total that can occur."""
    if one.scale != two.scale or one.scale == 0:
        return None
    shift = round((one.intercept - two.intercept) / one.scale)
    low, high = min(one.low), max(one.high)
    if abs(shift) > 2**40 or high - low > MOST_TOTALS:
        return None
    totals = np.arange(low, high + 1)[:, None]
    return shift if np.array_equal(spec.from_totals(totals), impl.from_totals(totals + shift)) else None
