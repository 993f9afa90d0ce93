"""What is computed from a circuit's output bits: integer group sums, a regression value, or linear scores.

    GroupSum    score_k = offset_k + Σ_{i : group_i = k} y_i        class = first k with the largest score
    Affine      value   = intercept + scale · (offset + Σ_i y_i)
    Linear      score_k = bias_k + Σ_i w_ki y_i                     class = first k with the largest score

Offsets hold what constant outputs contributed before they were folded away, so sums stay exact integers.
"""

import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from jaxtyping import Bool, Float, Float32, Int32, Int64

MAX_OFFSET: Final = 2**62
"""Offsets stay below, so that no sum of bits can leave int64."""


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
class GroupSum:
    """Integer sums of the output bits of each class; ``temperature`` only scales probabilities."""

    groups: Int32[np.ndarray, "outputs"]
    offsets: Int64[np.ndarray, "classes"]
    temperature: float = 1.0

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

    def scores(self, bits: Bool[np.ndarray, "samples outputs"]) -> Int64[np.ndarray, "samples classes"]:
        """Integer class scores."""
        scores = np.repeat(self.offsets[None], len(bits), axis=0)
        for k in range(self.classes):
            scores[:, k] += bits[:, self.groups == k].sum(axis=1)
        return scores


@dataclass(frozen=True, eq=False)
class Affine:
    """A regression value from the number of output bits that are one."""

    outputs: int
    offset: int = 0
    scale: float = 1.0
    intercept: float = 0.0

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

    def scores(self, bits: Bool[np.ndarray, "samples outputs"]) -> Float[np.ndarray, "samples 1"]:
        """The predicted value, float64."""
        total = self.offset + bits.sum(axis=1, keepdims=True, dtype=np.int64)
        return np.asarray(self.intercept + self.scale * total, dtype=np.float64)


@dataclass(frozen=True, eq=False)
class Linear:
    """A learned linear readout: the only arithmetic a deployed network may keep (paper, app. binarization)."""

    weights: Float32[np.ndarray, "classes outputs"]
    bias: Float32[np.ndarray, "classes"]

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

    def scores(self, bits: Bool[np.ndarray, "samples outputs"]) -> Float32[np.ndarray, "samples classes"]:
        """Linear class scores: bias first, then the outputs in order, so that every backend rounds alike."""
        scores = np.repeat(self.bias[None], len(bits), axis=0)
        for i in range(self.outputs):
            scores += bits[:, i : i + 1] * self.weights[:, i]
        return scores


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


Readout = GroupSum | Affine | Linear
