"""Encoders turn raw features into the bits that a logic network reads.

    fit        samples × features  ->  one rule per bit           (sklearn's convention: returns itself)
    transform  samples × features  ->  bool, samples × bits       bit j = rule_j(x[rule_j.feature])

A fitted encoder is plain data: ``to_spec`` gives it as a dictionary fit for JSON, ``encoder_from_spec`` reads it back
with every field checked, and two encoders are equal when their rules and parameters are.

A rule says what one bit tells of one feature:

    feature > value        a threshold           "age > 37.5"
    feature = value        a category            "workclass = Private"
    feature is missing     a missing value       "age missing"
    feature                a bit already         "is_member"

A whole range says which features are whole numbers, and between which: what a port of unsigned integers can carry is
decided by it.

    (low, high)    every value at fit was a whole number, these the least and the largest
    ()             some value was not
    None           not known: the encoder was not fitted on values, or read from a file that does not say
"""

import inspect
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar, Final, Literal, NamedTuple, TypeAlias, TypeVar

import numpy as np
from jaxtyping import Bool, Shaped

from gatefit.encoders import specs
from gatefit.encoders.frames import Frame, slices

Self = TypeVar("Self", bound="Encoder")
WholeRange: TypeAlias = tuple[int, int] | tuple[()] | None

LOWEST: Final = -(2**63)
HIGHEST: Final = 2**64 - 1
"""Beyond these no integer type holds a number, whole or not."""
_WHOLE_BLOCK: Final = 2**22
"""Values that are looked at at once for whole numbers: a float matrix is not copied as a whole."""


class Rule(NamedTuple):
    """The test that makes one bit true: ``x[feature] test value``."""

    feature: int
    test: Literal[">", "=", "missing", "bit"]
    value: specs.Category | None = None


class Encoder(ABC):
    """Maps arrays or data frames to bits; every bit has a rule and a readable name."""

    kind: ClassVar[str]
    """The name of this encoder in specifications and in ``ENCODERS``."""

    fit_parameters: ClassVar[tuple[str, ...]] = ()
    """Arguments of the constructor that only ``fit`` asks for: no file keeps them, the fitted state has it all."""

    takes_missing: ClassVar[bool] = False
    """Whether ``transform`` has a place for missing values; else it refuses them."""

    features: int
    """How many features the fitted encoder reads."""

    _columns: tuple[str, ...] | None = None
    _whole: tuple[WholeRange, ...] | None = None
    _fitted: bool = False

    def fit(self: Self, x: Any, feature_names: Sequence[str] | None = None) -> Self:
        """Learn the rules from ``x``: an array, a pandas or polars data frame, or a mapping of names to columns.

        ``feature_names`` names the columns of an array; a data frame brings its own.
        """
        frame = self._read(x)
        names = frame.names if feature_names is None else feature_names
        features = len(frame)
        if not 1 <= features <= specs.MAX_FEATURES:
            raise ValueError(f"{self!r} needs 1 to {specs.MAX_FEATURES} features, got {features}")
        columns = specs.feature_names(None if names is None else tuple(names), features, "feature names")
        state = self._learn(frame, columns or default_names(features))
        self._set(features, columns, state)
        self._whole = self._ranges(frame)
        return self

    def transform(
        self, x: Any, *, out: Bool[np.ndarray, "samples bits"] | None = None
    ) -> Bool[np.ndarray, "samples bits"]:
        """The bits of ``x``; ``out``, a C-contiguous bool array of the right shape, is filled and returned if given.

        The columns of a data frame are found by name, in any order; those of an array by position.
        """
        self._require_fit()
        frame = self._read(x).aligned(self.features, self._columns, self)
        shape = (frame.samples, self._bits())
        if out is None:
            out = np.empty(shape, dtype=np.bool_)
        elif out.shape != shape or out.dtype != np.bool_ or not out.flags.c_contiguous:
            raise ValueError(f"out must be a C-contiguous bool array of shape {shape}, got {out.dtype} {out.shape}")
        self._encode(frame, out)
        return out

    def transform_batches(self, x: Any, rows: int) -> Iterator[Bool[np.ndarray, "samples bits"]]:
        """The bits of ``x``, at most ``rows`` samples at a time."""
        self._require_fit()
        return map(self.transform, slices(x, rows))

    def fit_transform(self, x: Any) -> Bool[np.ndarray, "samples bits"]:
        """``fit(x).transform(x)``."""
        return self.fit(x).transform(x)

    @property
    def bits(self) -> int:
        """How many bits the fitted encoder makes of one sample."""
        self._require_fit()
        return self._bits()

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The columns' names; x0, x1, … when it was fitted on an array without names."""
        self._require_fit()
        return self._columns or default_names(self.features)

    @property
    def whole_ranges(self) -> tuple[WholeRange, ...]:
        """For each feature its least and largest value at fit if all were whole numbers, () if not, None if unknown."""
        self._require_fit()
        return self._whole or (None,) * self.features

    @cached_property
    def rules(self) -> tuple[Rule, ...]:
        """For each bit, the test that makes it true: what a circuit's surroundings must compute."""
        self._require_fit()
        return tuple(self._rules())

    @cached_property
    def names(self) -> tuple[str, ...]:
        """For each bit, its rule in words: ``"age > 37.5"``."""
        return rule_names(self.rules, self.feature_names)

    def parameters(self) -> dict[str, Any]:
        """The constructor's arguments, by name."""
        return {name: getattr(self, name) for name in parameter_names(type(self))}

    def to_spec(self) -> dict[str, Any]:
        """The fitted encoder as a dictionary of numbers, strings, lists and None: exact in JSON."""
        self._require_fit()
        return {
            "kind": self.kind,
            "parameters": {
                name: list(value) if isinstance(value, tuple) else value
                for name, value in self.parameters().items()
                if name not in self.fit_parameters
            },
            "state": {
                "features": self.features,
                "feature_names": None if self._columns is None else list(self._columns),
                **self._state(),
                **({} if self._whole is None else {"whole": ranges_to_spec(self._whole)}),
            },
        }

    def load_state(self, state: object) -> None:
        """Become fitted by the ``state`` of a specification, which is checked first."""
        names = ("features", "feature_names", *self._state_fields)
        state = specs.fields(state, names, f"the state of {self!r}", optional=("whole",))
        features = specs.integer(state["features"], 1, specs.MAX_FEATURES, "features")
        columns = specs.feature_names(state["feature_names"], features, "feature_names")
        whole = ranges_from_spec(state["whole"], features) if "whole" in state else None
        self._set(features, columns, self._checked_state(state, features))
        self._whole = whole
        if self.bits > specs.MAX_BITS:
            raise ValueError(f"{self!r} would make {self.bits} bits; at most {specs.MAX_BITS} can be read")

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self) or not isinstance(other, Encoder):
            return NotImplemented
        if self._fitted and other._fitted:
            # Not by the ranges of the data: two encoders that make the same bits are one.
            return self._without_ranges() == other._without_ranges()
        return self._fitted == other._fitted and self.parameters() == other.parameters()

    __hash__ = None  # type: ignore[assignment]  # mutable: fit changes what it equals

    def __repr__(self) -> str:
        arguments = (
            f"{name}={_brief(value)}"
            for name, value in self.parameters().items()
            if value is not None or name not in self.fit_parameters
        )
        return f"{type(self).__name__}({', '.join(arguments)})"

    def _without_ranges(self) -> dict[str, Any]:
        spec = self.to_spec()
        spec["state"].pop("whole", None)
        return spec

    def _set(self, features: int, columns: tuple[str, ...] | None, state: Any) -> None:
        for cached in ("rules", "names"):
            self.__dict__.pop(cached, None)
        self.features, self._columns = features, columns
        self._become(state)
        self._fitted = True

    def _require_fit(self) -> None:
        if not self._fitted:
            raise ValueError(f"{self!r} is not fitted yet; call fit(x) first")

    # What a kind of encoder adds: how it reads x, learns a state from it, and applies that state.

    _state_fields: ClassVar[tuple[str, ...]] = ()
    """The names of the state's own fields in a specification."""

    @abstractmethod
    def _read(self, x: Any) -> Frame:
        """``x`` in the form that ``_learn`` and ``_encode`` take."""

    @abstractmethod
    def _learn(self, frame: Any, names: tuple[str, ...]) -> Any:
        """The state to fit to ``frame``; changes nothing, so that a failed fit leaves the encoder as it was."""

    @abstractmethod
    def _become(self, state: Any) -> None:
        """Keep a state that was learned or read."""

    @abstractmethod
    def _encode(self, frame: Any, out: Bool[np.ndarray, "samples bits"]) -> None:
        """Write the bits of an aligned frame."""

    @abstractmethod
    def _bits(self) -> int: ...

    @abstractmethod
    def _rules(self) -> list[Rule]: ...

    def _ranges(self, frame: Any) -> tuple[WholeRange, ...] | None:
        """What ``whole_ranges`` says after a fit on ``frame``."""
        return None

    def _state(self) -> dict[str, Any]:
        """The state's own fields in the specification."""
        return {}

    def _checked_state(self, state: Mapping[str, Any], features: int) -> Any:
        """The state that ``_state`` wrote, checked."""
        return None


def default_names(features: int) -> tuple[str, ...]:
    """x0, x1, …"""
    return tuple(f"x{i}" for i in range(features))


def parameter_names(encoder: type[Encoder]) -> tuple[str, ...]:
    """The names of the constructor's arguments."""
    return tuple(inspect.signature(encoder).parameters)


def _brief(value: object) -> str:
    return f"[{len(value)} values]" if isinstance(value, tuple) and len(value) > 8 else repr(value)


def rule_names(rules: Sequence[Rule], feature_names: Sequence[str]) -> tuple[str, ...]:
    """One readable name per rule; numbers are shortened to ten digits unless two names would then be the same."""
    names = tuple(_name(rule, feature_names[rule.feature], exact=False) for rule in rules)
    if len(set(names)) < len(names):
        names = tuple(_name(rule, feature_names[rule.feature], exact=True) for rule in rules)
    return names


def _name(rule: Rule, feature: str, *, exact: bool) -> str:
    if rule.test == "bit":
        return feature
    if rule.test == "missing":
        return f"{feature} missing"
    if exact:
        return f"{feature} {rule.test} {rule.value!r}"
    value = f"{rule.value:.10g}" if isinstance(rule.value, float) else str(rule.value)
    return f"{feature} {rule.test} {value}"


def whole_ranges(x: Shaped[np.ndarray, "samples features"]) -> tuple[WholeRange, ...] | None:
    """The range of each column of a matrix of numbers or Booleans; None if it has no rows."""
    samples, features = map(int, x.shape)
    if samples == 0:
        return None
    whole = np.ones(features, np.bool_)
    if x.dtype.kind == "f":
        rows = max(1, _WHOLE_BLOCK // features)
        for start in range(0, samples, rows):
            part = x[start : start + rows]
            whole &= (part == np.floor(part)).all(axis=0)
            if not whole.any():
                return ((),) * features
    found: list[WholeRange] = []
    for low, high, is_whole in zip(x.min(axis=0).tolist(), x.max(axis=0).tolist(), whole.tolist(), strict=True):
        found.append((int(low), int(high)) if is_whole and LOWEST <= low and high <= HIGHEST else ())
    return tuple(found)


def ranges_to_spec(ranges: Iterable[WholeRange]) -> list[Any]:
    """The ranges as lists fit for JSON."""
    return [None if each is None else list(each) for each in ranges]


def ranges_from_spec(spec: object, features: int) -> tuple[WholeRange, ...]:
    """The ranges that ``ranges_to_spec`` wrote, checked."""
    given = specs.sequence(spec, "whole")
    if len(given) != features:
        raise ValueError(f"whole must have one entry for each of {features} features, got {len(given)}")
    return tuple(_checked_range(entry) for entry in given)


def _checked_range(entry: object) -> WholeRange:
    if entry is None:
        return None
    bounds = [specs.integer(value, LOWEST, HIGHEST, "whole") for value in specs.sequence(entry, "whole")]
    if not bounds:
        return ()
    if len(bounds) != 2 or bounds[0] > bounds[1]:
        raise ValueError(f"whole must hold the least and the largest value of a feature, got {bounds}")
    return bounds[0], bounds[1]
