"""Numbers as comparisons with thresholds.

    Threshold      bit_i    = x_i > t_i
    Thermometer    bit_i,k  = x_i > t_i,k      t_i,1 < t_i,2 < …: the ones of a feature are a prefix

Comparisons are exact for every dtype and make no float copy: a threshold is rounded down to the dtype of x, and
x > t holds for a number of that dtype exactly when x > floor(t) does.
"""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final, Literal

import numpy as np
from jaxtyping import Bool, Float64, Int64, Num

from gatefit.encoders import specs
from gatefit.encoders.base import Encoder, Rule, WholeRange, whole_ranges
from gatefit.encoders.frames import Matrix, read_matrix
from gatefit.encoders.quantiles import quantile_thresholds

Levels = tuple[Float64[np.ndarray, " _"], ...]
"""The thresholds of each feature, or of one that stands for all."""

_GATHER_BYTES: Final = 2**22


class _Comparisons(Encoder):
    """What both encoders share: levels, and the order of their bits."""

    order: Literal["feature", "threshold"] = "feature"
    _levels: Levels = ()

    def _read(self, x: Any) -> Matrix:
        return read_matrix(x, type(self).__name__)

    def _become(self, state: Levels) -> None:
        for levels in state:
            levels.flags.writeable = False
        self._levels = state
        self._plan: tuple[np.dtype[Any], _Plan] | None = None

    def _ranges(self, frame: Matrix) -> tuple[WholeRange, ...] | None:
        return whole_ranges(frame.values)

    def _bits(self) -> int:
        return sum(levels.size for levels in self._levels) * (self.features if len(self._levels) == 1 else 1)

    def _pairs(self) -> list[tuple[int, int]]:
        """(feature, index of its threshold) of each bit."""
        shared = len(self._levels) == 1
        sizes = [self._levels[0 if shared else feature].size for feature in range(self.features)]
        pairs = [(feature, k) for feature, size in enumerate(sizes) for k in range(size)]
        return pairs if self.order == "feature" else sorted(pairs, key=lambda pair: pair[::-1])

    def _rules(self) -> list[Rule]:
        shared = len(self._levels) == 1
        return [Rule(i, ">", float(self._levels[0 if shared else i][k])) for i, k in self._pairs()]

    def _encode(self, frame: Matrix, out: Bool[np.ndarray, "samples bits"]) -> None:
        x = frame.values.view(np.uint8) if frame.values.dtype == np.bool_ else frame.values
        _check_numbers(x, self, "transform")
        plan = self._plan
        if plan is None or plan[0] != x.dtype:
            self._plan = plan = (x.dtype, _Plan(self, x.dtype))
        plan[1].run(x, out)  # the local one: another thread may have replaced the kept one

    def _state(self) -> dict[str, Any]:
        levels = [level.tolist() for level in self._levels]
        shared = len(levels) == 1 and self.features > 1
        return {"thresholds": levels[0] if shared else levels}

    _state_fields: ClassVar[tuple[str, ...]] = ("thresholds",)

    def _checked_state(self, state: Mapping[str, Any], features: int) -> Levels:
        given = specs.sequence(state["thresholds"], "thresholds")
        nested = bool(given) and isinstance(given[0], list | tuple)
        if nested and len(given) != features:
            raise ValueError(f"thresholds must be one list for each of {features} features, got {len(given)} lists")
        return tuple(np.array(specs.thresholds(level, "thresholds")) for level in (given if nested else [given]))


class Threshold(_Comparisons):
    """One bit per feature: whether it exceeds ``threshold``, one number for all features or one for each."""

    kind = "threshold"

    def __init__(self, threshold: float | Sequence[float] = 0.5) -> None:
        if isinstance(threshold, np.ndarray):
            threshold = threshold.tolist()
        self.threshold = (
            tuple(specs.number(value, "threshold") for value in threshold)
            if isinstance(threshold, list | tuple)
            else specs.number(threshold, "threshold")
        )

    def _learn(self, frame: Matrix, names: tuple[str, ...]) -> Levels:
        return self._own_levels(len(frame))

    def _own_levels(self, features: int) -> Levels:
        if isinstance(self.threshold, float):
            return (np.array([self.threshold]),)
        if len(self.threshold) != features:
            raise ValueError(f"Threshold was given {len(self.threshold)} thresholds for {features} features")
        return tuple(np.array([value]) for value in self.threshold)

    def _state(self) -> dict[str, Any]:
        return {}

    _state_fields: ClassVar[tuple[str, ...]] = ()

    def _checked_state(self, state: Mapping[str, Any], features: int) -> Levels:
        return self._own_levels(features)


class Thermometer(_Comparisons):
    """``thresholds`` bits per feature, as many of them true as thresholds are exceeded.

    Arguments:
        thresholds: how many per feature. Fewer where a feature has not enough different values; none if it has one.
        spacing: ``"uniform"`` between the smallest and largest value of each feature, or between ``low`` and ``high``
            for all of them; ``"quantile"``, between values that occurred, into equally many samples.
        order: ``"feature"``, all bits of one feature side by side, or ``"threshold"``, one plane of all features per
            threshold: for images in (channel, row, column) order the planes of difflogic and of the paper.
        low: with ``high``, a fixed range, such as 0 and 255 for images: ``fit`` then learns no threshold.
        high: see ``low``.
    """

    kind = "thermometer"

    def __init__(
        self,
        thresholds: int = 8,
        spacing: Literal["uniform", "quantile"] = "uniform",
        order: Literal["feature", "threshold"] = "feature",
        low: float | None = None,
        high: float | None = None,
    ) -> None:
        self.thresholds = specs.integer(thresholds, 1, 2**16, "Thermometer(thresholds=...)")
        if spacing not in ("uniform", "quantile"):
            raise ValueError(f"spacing must be 'uniform' or 'quantile', got {spacing!r}")
        if order not in ("feature", "threshold"):
            raise ValueError(f"order must be 'feature' or 'threshold', got {order!r}")
        if (low is None) != (high is None):
            raise ValueError(f"give both low and high or neither, got low={low!r} and high={high!r}")
        if low is not None and spacing == "quantile":
            raise ValueError("low and high fix uniform thresholds; leave them out with spacing='quantile'")
        self.spacing, self.order = spacing, order
        self.low = None if low is None else specs.number(low, "low")
        self.high = None if high is None else specs.number(high, "high")
        if self.low is not None and self.high is not None and self.low >= self.high:
            raise ValueError(f"low must be less than high, got {low} and {high}")

    def _learn(self, frame: Matrix, names: tuple[str, ...]) -> Levels:
        if self.low is not None and self.high is not None:
            return (_uniform(self.low, self.high, self.thresholds),)
        x = frame.values
        if x.shape[0] == 0:
            raise ValueError(f"{self!r} cannot be fitted on no samples; give it some, or low and high")
        _check_numbers(x, names, "fit")
        if self.spacing == "quantile":
            return tuple(quantile_thresholds(x[:, i], self.thresholds, name) for i, name in enumerate(names))
        ranges = zip(x.min(axis=0).tolist(), x.max(axis=0).tolist(), strict=True)
        return tuple(_uniform(low, high, self.thresholds) for low, high in ranges)

    def _checked_state(self, state: Mapping[str, Any], features: int) -> Levels:
        levels = super()._checked_state(state, features)
        if any(level.size > self.thresholds for level in levels):
            raise ValueError(f"{self!r} cannot have a feature with more than {self.thresholds} thresholds")
        return levels


class _Plan:
    """An encoder's thresholds made ready for one dtype of x."""

    def __init__(self, encoder: _Comparisons, dtype: np.dtype[Any]) -> None:
        levels = encoder._levels
        self.gather: np.ndarray | None = None
        if len({level.size for level in levels}) == 1:
            grid = np.stack(levels)  # (features or 1, thresholds)
            axis = 1 if encoder.order == "threshold" else 2
            self.axis: int = axis
            self.shape = (-1, grid.shape[1], encoder.features) if axis == 1 else (-1, encoder.features, grid.shape[1])
            self.bounds, self.always = round_down((grid.T if axis == 1 else grid)[None], dtype)
        else:
            pairs = encoder._pairs()
            self.gather = np.array([feature for feature, _ in pairs])
            self.bounds, self.always = round_down(np.array([levels[i][k] for i, k in pairs])[None], dtype)

    def run(self, x: Num[np.ndarray, "samples features"], out: Bool[np.ndarray, "samples bits"]) -> None:
        """Write the bits of x, which has the dtype of this plan."""
        if out.size == 0:
            return
        if self.gather is None:
            bits = out.reshape(self.shape)
            np.greater(np.expand_dims(x, self.axis), self.bounds, out=bits)
            if self.always is not None:
                np.logical_or(bits, self.always, out=bits)
            return
        compare_gathered(x, self.gather, self.bounds, self.always, out)


def compare_gathered(
    x: Num[np.ndarray, "samples features"],
    gather: Int64[np.ndarray, " bits"],
    bounds: Num[np.ndarray, "1 bits"],
    always: Bool[np.ndarray, "1 bits"] | None,
    out: Bool[np.ndarray, "samples bits"],
) -> None:
    """bit_j = x[gather_j] > bound_j, or always; some rows at a time, so that what is gathered stays in the cache."""
    rows = max(1, _GATHER_BYTES // (gather.size * x.itemsize))
    for start in range(0, len(x), rows):
        part = out[start : start + rows]
        np.greater(x[start : start + rows].take(gather, axis=1), bounds, out=part)
        if always is not None:
            np.logical_or(part, always, out=part)


def round_down(
    thresholds: Float64[np.ndarray, "*shape"], dtype: np.dtype[Any]
) -> tuple[Num[np.ndarray, "*shape"], Bool[np.ndarray, "*shape"] | None]:
    """The largest values of ``dtype`` that are <= the thresholds, and where there is none, so that x > t always."""
    if dtype.kind == "f":
        with np.errstate(over="ignore", under="ignore"):  # infinities and subnormals are right here
            rounded = thresholds.astype(dtype)
            return np.where(rounded > thresholds, np.nextafter(rounded, dtype.type(-np.inf)), rounded), None
    low, high = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
    floors = np.floor(thresholds)
    clipped = [min(max(int(value), low), high) for value in floors.ravel().tolist()]
    always = floors < low
    return np.array(clipped, dtype=dtype).reshape(thresholds.shape), always if always.any() else None


def _uniform(low: float, high: float, count: int) -> Float64[np.ndarray, " thresholds"]:
    """``count`` equally spaced thresholds inside the range; fewer if floats do not resolve it."""
    low, high = float(low), float(high)
    steps = np.arange(1, count + 1)
    levels = (
        low + (high - low) * steps / (count + 1)
        if np.isfinite(high - low)
        else (low * (1 - steps / (count + 1)) + high * (steps / (count + 1)))
    )
    return np.unique(levels[(levels >= low) & (levels < high)])


def _check_numbers(x: np.ndarray, names: "tuple[str, ...] | Encoder", verb: Literal["fit", "transform"]) -> None:
    """Refuse NaN, and while fitting infinity too: no threshold lies half-way to it."""
    if x.dtype.kind != "f":
        return
    wrong = ~np.isfinite(x) if verb == "fit" else np.isnan(x)
    if wrong.any():
        row, feature = np.argwhere(wrong)[0]
        name = (names if isinstance(names, tuple) else names.feature_names)[feature]
        raise ValueError(
            f"cannot {verb}: feature {name!r} is {x[row, feature]} in row {row}; fill such values in, or use "
            f"gatefit.encoders.Table, which gives missing values a bit of their own"
        )
