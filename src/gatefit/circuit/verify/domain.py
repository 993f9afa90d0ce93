"""What the inputs of a circuit can be: features, the values of each that the circuit can tell apart, and their bits.

    number     x > t_1, x > t_2, …      a chain: level j means t_j < x <= t_(j+1)
    category   x = c_1, x = c_2, …      one of them; none for a category that was never seen
    bit        x                        both
    missing                             excludes all others

A value here is a set of raw values of one feature that give the same bits, as far as the circuit reads them: what it
does not read is merged away. A point is one value for each feature; every point is an input that the encoder can make,
and every input that it can make is a point. Without an encoder every input bit is a feature, unless groups of bits are
said to be chains or to be one of several.
"""

import difflib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import numpy as np
from jaxtyping import Bool, Int64

from gatefit.circuit.ir import Circuit
from gatefit.circuit.logic.graph import Graph, readers

if TYPE_CHECKING:
    from gatefit.encoders import Encoder
    from gatefit.encoders.base import Rule

Region: TypeAlias = Mapping[Any, Any]
"""Features by name or number, each with (low, high), either of which may be None, or a set of values."""

GROUPS: Final = ("chain", "one of", "at most one of")
_MANY: Final = 6
"""Names that an error lists."""
_MANY_POINTS: Final = 256
"""Points beyond which bits are written feature by feature: of fewer, the calls would cost more than the bits."""


@dataclass(frozen=True)
class Value:
    """Raw values of one feature that the circuit cannot tell apart."""

    levels: tuple[int, int] | None = None
    """Of a number: the first and the last level, a level being how many thresholds are exceeded."""
    low: float = -math.inf
    high: float = math.inf
    """Of a number: low < x <= high."""
    categories: tuple[Any, ...] = ()
    """Of a category; of a bit, 0 and 1."""
    missing: bool = False
    other: bool = False
    """Categories that the encoder has no bit for."""
    usual: bool = True
    """Whether it is in the domain unless said otherwise: what the encoder never saw is not."""
    weight: int = 1
    """How many values of the encoder were merged into it; those that are not usual count only among themselves."""

    def joined(self, other: "Value") -> "Value":
        """Both together."""
        levels = [pair for pair in (self.levels, other.levels) if pair is not None]
        numbers = [value for value in (self, other) if value.levels is not None]
        return Value(
            levels=(min(a for a, _ in levels), max(b for _, b in levels)) if levels else None,
            low=min((value.low for value in numbers), default=-math.inf),
            high=max((value.high for value in numbers), default=math.inf),
            categories=self.categories + other.categories,
            missing=self.missing or other.missing,
            other=self.other or other.other,
            usual=self.usual or other.usual,
            weight=self.weight * (self.usual or not other.usual) + other.weight * (other.usual or not self.usual),
        )


@dataclass(frozen=True, eq=False)
class Feature:
    """One feature: the input bits that the circuit reads of it, and what they are for each of its values."""

    name: str
    kind: Literal["number", "category", "bit"]
    inputs: Int64[np.ndarray, " bits"]
    values: tuple[Value, ...]
    patterns: Bool[np.ndarray, "values bits"]
    thresholds: tuple[float, ...] = ()
    """Of a number: all that the encoder has, whether the circuit reads them or not."""
    whole: tuple[int, int] | None = None
    """The least and the largest value that the encoder was fitted on, if all were whole numbers."""

    @cached_property
    def usual(self) -> Int64[np.ndarray, " some"]:
        """The values that are in the domain unless said otherwise."""
        return np.flatnonzero([value.usual for value in self.values])

    @cached_property
    def number_of(self) -> dict[bytes, int]:
        """The values by their bits."""
        return {row.tobytes(): i for i, row in enumerate(self.patterns)}

    def levels(self) -> Int64[np.ndarray, " some"]:
        """The values that are numbers, from the lowest to the highest."""
        return np.array([i for i, value in enumerate(self.values) if value.levels is not None], np.int64)

    def holds(self, raw: Any) -> Int64[np.ndarray, " some"]:
        """The values that one raw value is part of: one, or none."""
        missing = raw is None or (isinstance(raw, float | np.floating) and math.isnan(raw))

        def inside(value: Value) -> bool:
            if missing:
                return value.missing
            if self.kind == "number":
                number = _exact(raw, self.name)
                return value.levels is not None and _above(value.low, number) and number <= value.high
            if self.kind == "bit":
                return raw in (0, 1) and int(raw) in value.categories
            return raw in value.categories

        found = np.flatnonzero([inside(value) for value in self.values])
        if not found.size and self.kind == "number" and missing:
            return self.holds(-math.inf)  # without a bit of its own, a missing number exceeds nothing
        if not found.size and self.kind == "category":
            return np.flatnonzero([value.other for value in self.values])
        return found

    def between(self, low: Any, high: Any) -> Int64[np.ndarray, " some"]:
        """The values with some number from ``low`` to ``high``, both included; None means no end."""
        if self.kind != "number":
            raise ValueError(f"feature {self.name!r} is a {self.kind}, not a number: give a set of values, {{…}}")
        low = -math.inf if low is None else _exact(low, self.name)
        high = math.inf if high is None else _exact(high, self.name)
        if low > high:
            raise ValueError(f"the range of feature {self.name!r} is empty: from {low} to {high}")
        inside = [v.levels is not None and _above(v.low, high) and low <= v.high for v in self.values]
        return np.flatnonzero(inside)


def _above(low: float, number: Any) -> bool:
    """low < number; nothing is below the lowest level, not even minus infinity."""
    return bool(low < number or low == -math.inf)


def _exact(raw: Any, name: str) -> Any:
    """A number that compares exactly with thresholds, which are floats."""
    if isinstance(raw, np.generic):
        raw = raw.item()
    if isinstance(raw, bool):
        return int(raw)
    if isinstance(raw, int | float | Fraction) and not (isinstance(raw, float) and math.isnan(raw)):
        return raw
    raise TypeError(f"feature {name!r} is a number, got {raw!r:.80}")


@dataclass(frozen=True, eq=False)
class Single:
    """Features that have one bit and two values, which an image has by the hundred: read and written all at once."""

    features: Int64[np.ndarray, " some"]
    inputs: Int64[np.ndarray, " some"]
    ones: Int64[np.ndarray, " some"]
    """The value of each whose bit is 1; the bit of its value 1, too, as there are two of both."""


@dataclass(frozen=True, eq=False)
class Domain:
    """The features that a circuit reads, and how its input bits follow from their values."""

    inputs: int
    features: tuple[Feature, ...]
    unseen: bool = False
    """Whether categories that the encoder never saw are part of it."""
    encoder: "Encoder | None" = None
    groups: tuple[tuple[str, str, tuple[int, ...]], ...] = ()
    """Without an encoder: names, kinds and input bits of groups."""

    @classmethod
    def of(cls, circuit: Circuit, *others: Circuit, unseen: bool = False) -> "Domain":
        """What the circuit's encoder can make; without one, all bits. ``others`` read the same features."""
        for other in others:
            if other.inputs != circuit.inputs or other.encoder != circuit.encoder:
                raise ValueError(
                    "the circuits do not read the same features: give both the same encoder, "
                    f"got {circuit.encoder!r} of {circuit.inputs} bits and {other.encoder!r} of {other.inputs}"
                )
        live = np.zeros(circuit.inputs, bool)
        for each in (circuit, *others):
            live |= live_inputs(each)
        if circuit.encoder is None:
            return cls(circuit.inputs, _bit_features(circuit, live, ()), unseen)
        return cls(circuit.inputs, tuple(_encoded_features(circuit.encoder, live, unseen)), unseen, circuit.encoder)

    @classmethod
    def of_bits(
        cls, circuit: Circuit, groups: Mapping[str, tuple[str, Sequence[int]]] | None = None, *others: Circuit
    ) -> "Domain":
        """The input bits of a circuit without an encoder; a group of them is one feature.

        ``groups`` names, for some bits, what they are together: ``{"size": ("chain", [0, 1, 2])}`` (each of them only
        where the one before is), ``("one of", [...])`` or ``("at most one of", [...])``.
        """
        if circuit.encoder is not None:
            raise ValueError(
                "groups of bits are for circuits without an encoder; this one's encoder says what they are"
            )
        checked = _checked_groups(circuit.inputs, groups or {})
        live = np.any([live_inputs(each) for each in (circuit, *others)], axis=0)
        return cls(circuit.inputs, _bit_features(circuit, live, checked), groups=checked)

    @classmethod
    def from_spec(cls, spec: Any, circuit: Circuit, *others: Circuit) -> "Domain":
        """The domain that ``to_spec`` wrote, of this circuit."""
        if not isinstance(spec, dict) or set(spec) != {"unseen", "groups"} or not isinstance(spec["unseen"], bool):
            raise ValueError(f"a domain is described by unseen and groups, got {spec!r:.80}")
        groups = spec["groups"]
        if groups == []:
            return cls.of(circuit, *others, unseen=spec["unseen"])
        if not isinstance(groups, list) or not all(isinstance(g, list) and len(g) == 3 for g in groups):
            raise ValueError(f"the groups of a domain are lists of name, kind and bits, got {groups!r:.80}")
        return cls.of_bits(circuit, {name: (kind, bits) for name, kind, bits in groups}, *others)

    def to_spec(self) -> dict[str, Any]:
        """What cannot be read off the circuit and its encoder."""
        return {"unseen": self.unseen, "groups": [[name, kind, list(bits)] for name, kind, bits in self.groups]}

    @cached_property
    def names(self) -> dict[str, int]:
        """The features' numbers by name."""
        return {feature.name: i for i, feature in enumerate(self.features)}

    def find(self, feature: str | int) -> int:
        """The number of a feature, given by its name or number; what is not there is an error with the nearest name."""
        if isinstance(feature, str) and feature in self.names:
            return self.names[feature]
        if isinstance(feature, int | np.integer) and not isinstance(feature, bool):
            if 0 <= feature < len(self.features):
                return int(feature)
            raise ValueError(f"features are numbered from 0 to {len(self.features) - 1}, got {feature}")
        if not isinstance(feature, str):
            raise TypeError(f"a feature is given by its name or number, got {feature!r:.80}")
        near = difflib.get_close_matches(feature, self.names, n=1, cutoff=0)
        hint = f"did you mean {near[0]!r}?" if near else ""
        known = ", ".join(list(self.names)[:_MANY]) + (", …" if len(self.names) > _MANY else "")
        raise ValueError(f"there is no feature {feature!r:.80}; {hint} The features are {known}")

    def usual(self) -> list[Int64[np.ndarray, " some"]]:
        """For each feature the values that are in the domain."""
        return [feature.usual for feature in self.features]

    def usual_and(self, point: Int64[np.ndarray, " features"]) -> list[Int64[np.ndarray, " some"]]:
        """For each feature the values that are in the domain, and the one that a point has."""
        return [
            feature.usual if feature.values[value].usual else np.union1d(feature.usual, value)
            for feature, value in zip(self.features, point.tolist(), strict=True)
        ]

    def region(self, region: Region | None) -> list[Int64[np.ndarray, " some"]]:
        """For each feature its values in a region, {feature: (low, high) or a set}; all of those left out."""
        allowed = self.usual()
        if region is None:
            return allowed
        if not isinstance(region, Mapping):
            raise TypeError(f"a region is {{feature: (low, high) or a set of values}}, got {region!r:.80}")
        for key, given in region.items():
            i = self.find(key)
            feature = self.features[i]
            if isinstance(given, tuple) and feature.kind == "number":
                if len(given) != 2:
                    raise ValueError(f"a range of feature {feature.name!r} is (low, high), got {given!r:.80}")
                found = feature.between(*given)
            elif isinstance(given, set | frozenset | list | tuple):
                for raw in given:
                    found = feature.holds(raw)
                    if not found.size or (_only_other(feature, raw) and not self.unseen):
                        known = ", ".join(str(c) for v in feature.values for c in v.categories)
                        raise ValueError(f"feature {feature.name!r} has no value {raw!r:.80}; it has {known:.300}")
                found = np.unique(np.concatenate([np.empty(0, np.int64), *(feature.holds(raw) for raw in given)]))
            else:
                raise TypeError(
                    f"feature {feature.name!r} needs (low, high) or a set of values, got {given!r:.80}; "
                    f"one value is a set of one: {{{given!r:.40}}}"
                )
            if not found.size:
                raise ValueError(f"the region leaves feature {feature.name!r} no value: {given!r:.80}")
            allowed[i] = found
        return allowed

    @cached_property
    def single(self) -> "Single":
        """The features of one bit."""
        found = [i for i, feature in enumerate(self.features) if feature.patterns.shape == (2, 1)]
        ones = [int(self.features[i].patterns[1, 0]) for i in found]
        inputs = [int(self.features[i].inputs[0]) for i in found]
        return Single(np.array(found, np.int64), np.array(inputs, np.int64), np.array(ones, np.int64))

    @cached_property
    def wide(self) -> tuple[int, ...]:
        """The features that have bits and are not single ones."""
        single = set(self.single.features.tolist())
        return tuple(i for i, feature in enumerate(self.features) if feature.inputs.size and i not in single)

    @cached_property
    def flat_inputs(self) -> Int64[np.ndarray, " bits"]:
        """The input bits of all features, one feature after the other."""
        return np.concatenate([np.empty(0, np.int64), *(feature.inputs for feature in self.features)])

    def locate(self, bits: Bool[np.ndarray, "samples inputs"]) -> Int64[np.ndarray, "samples features"]:
        """The points of rows of input bits."""
        points = np.zeros((len(bits), len(self.features)), np.int64)
        points[:, self.single.features] = bits[:, self.single.inputs] == self.single.ones
        for i in self.wide:
            feature = self.features[i]
            own = np.ascontiguousarray(bits[:, feature.inputs])
            for s, row in enumerate(own):
                found = feature.number_of.get(row.tobytes())
                if found is None:
                    raise ValueError(
                        f"feature {feature.name!r} cannot have the bits {''.join('01'[int(b)] for b in row)} "
                        f"(inputs {feature.inputs.tolist()}) that row {s} gives it"
                    )
                points[s, i] = found
        return points

    def bits(self, points: Int64[np.ndarray, "samples features"]) -> Bool[np.ndarray, "samples inputs"]:
        """The input bits of points; those that the circuit does not read are zero."""
        bits = np.zeros((len(points), self.inputs), bool)
        bits[:, self.single.inputs] = points[:, self.single.features] == self.single.ones
        if len(points) > _MANY_POINTS:
            for i in self.wide:
                bits[:, self.features[i].inputs] = self.features[i].patterns[points[:, i]]
        elif self.wide:
            rows = self._table[points[:, self.wide] + self._rows]
            bits[:, self._placed] = rows[:, self._filled]
        return bits

    @cached_property
    def _rows(self) -> Int64[np.ndarray, " some"]:
        """Where the values of each wide feature begin in the table of all."""
        sizes = [len(self.features[i].values) for i in self.wide]
        return np.cumsum([0, *sizes])[:-1]

    @cached_property
    def _filled(self) -> Bool[np.ndarray, "some bits"]:
        """Which bits of a row of the table each wide feature has."""
        sizes = np.array([self.features[i].inputs.size for i in self.wide], np.int64)
        return np.asarray(np.arange(sizes.max()) < sizes[:, None])

    @cached_property
    def _placed(self) -> Int64[np.ndarray, " bits"]:
        """The input bits of wide features, one feature after the other."""
        return np.concatenate([self.features[i].inputs for i in self.wide])

    @cached_property
    def _table(self) -> Bool[np.ndarray, "values bits"]:
        """The bits of every value of every wide feature."""
        table = np.zeros((sum(len(self.features[i].values) for i in self.wide), self._filled.shape[1]), bool)
        for i, row in zip(self.wide, self._rows.tolist(), strict=True):
            patterns = self.features[i].patterns
            table[row : row + len(patterns), : patterns.shape[1]] = patterns
        return table


def _only_other(feature: Feature, raw: Any) -> bool:
    """Whether a raw value is one of those that the encoder has no bit for."""
    known = [category for value in feature.values for category in value.categories]
    has_missing = any(value.missing for value in feature.values)
    return feature.kind == "category" and raw not in known and not (raw is None and has_missing)


def live_inputs(circuit: Circuit) -> Bool[np.ndarray, " inputs"]:
    """Which input bits some output depends on, as far as the wiring says."""
    return readers(Graph.of(circuit), circuit.outputs + 1)[1 : 1 + circuit.inputs] > 0


def _merged(
    name: str,
    kind: Literal["number", "category", "bit"],
    inputs: Sequence[int],
    table: Sequence[tuple[Value, Any]],
    live: Bool[np.ndarray, " inputs"],
    **more: Any,
) -> Feature:
    """The feature with these values and bits, without bits that are not live; values of equal bits become one."""
    own = np.array(inputs, np.int64)
    read = live[own] if own.size else np.zeros(0, bool)
    found: dict[bytes, tuple[Value, np.ndarray]] = {}
    for value, bits in table:
        row = np.array(bits, bool).reshape(own.size)[read]
        key = row.tobytes()
        found[key] = (found[key][0].joined(value), row) if key in found else (value, row)
    patterns = np.array([row for _, row in found.values()], bool).reshape(len(found), int(read.sum()))
    return Feature(name, kind, own[read], tuple(value for value, _ in found.values()), patterns, **more)


def _encoded_features(encoder: "Encoder", live: Bool[np.ndarray, " inputs"], unseen: bool) -> Iterable[Feature]:
    rules: list[list[tuple[int, Rule]]] = [[] for _ in range(encoder.features)]
    for bit, rule in enumerate(encoder.rules):
        rules[rule.feature].append((bit, rule))
    knows_all = getattr(encoder, "unseen", "ignore") == "error"
    for i, (name, own) in enumerate(zip(encoder.feature_names, rules, strict=True)):
        tests = {rule.test for _, rule in own} - {"missing"}
        if len(tests) > 1:
            raise ValueError(
                f"feature {name!r} is tested in different ways ({', '.join(sorted(tests))}); what its values are is "
                f"known for thresholds, for categories and for bits, not for a mixture of them"
            )
        test = next(iter(tests), ">")
        absent = [rule.test == "missing" for _, rule in own]
        bits = [bit for bit, _ in own]
        table: list[tuple[Value, Sequence[bool]]] = []
        kind: Literal["number", "category", "bit"] = "number"
        thresholds: list[float] = []
        if test == ">":
            thresholds = sorted({_threshold(rule) for _, rule in own if rule.test == ">"})
            edges = [-math.inf, *thresholds, math.inf]
            for level in range(len(thresholds) + 1):
                low, high = edges[level], edges[level + 1]
                row = [rule.test == ">" and _threshold(rule) <= low for _, rule in own]
                table.append((Value((level, level), low, high), row))
        elif test == "=":
            kind = "category"
            for category in dict.fromkeys(rule.value for _, rule in own if rule.test == "="):
                row = [rule.test == "=" and rule.value == category for _, rule in own]
                table.append((Value(categories=(category,)), row))
            if not knows_all:
                table.append((Value(other=True, usual=unseen), [False] * len(own)))
        else:
            kind = "bit"
            table += [(Value(categories=(b,)), [rule.test == "bit" and b == 1 for _, rule in own]) for b in (0, 1)]
        if any(absent):
            table.append((Value(missing=True), absent))
        whole = encoder.whole_ranges[i] or None
        yield _merged(name, kind, bits, table, live, thresholds=tuple(thresholds), whole=whole)


def _threshold(rule: "Rule") -> float:
    if isinstance(rule.value, bool) or not isinstance(rule.value, int | float):
        raise ValueError(f"a threshold must be a number, got {rule.value!r:.80}")
    return float(rule.value)


def _checked_groups(
    inputs: int, groups: Mapping[str, tuple[str, Sequence[int]]]
) -> tuple[tuple[str, str, tuple[int, ...]], ...]:
    checked, taken = [], set()
    for name, given in groups.items():
        if not isinstance(name, str) or not isinstance(given, tuple | list) or len(given) != 2:
            raise ValueError(f"a group is name: (kind, bits), got {name!r:.40}: {given!r:.80}")
        kind, bits = given
        if kind not in GROUPS:
            raise ValueError(f"group {name!r} must be one of {', '.join(GROUPS)}, got {kind!r:.40}")
        numbers = tuple(bits)
        for bit in numbers:
            if not isinstance(bit, int | np.integer) or isinstance(bit, bool) or not 0 <= bit < inputs:
                raise ValueError(f"group {name!r} holds bits 0 to {inputs - 1}, got {bit!r:.40}")
            if bit in taken:
                raise ValueError(f"input bit {bit} is in two groups, or twice in {name!r}")
            taken.add(bit)
        if not numbers:
            raise ValueError(f"group {name!r} has no bits")
        checked.append((name, kind, tuple(int(bit) for bit in numbers)))
    return tuple(checked)


def _bit_features(
    circuit: Circuit, live: Bool[np.ndarray, " inputs"], groups: tuple[tuple[str, str, tuple[int, ...]], ...]
) -> tuple[Feature, ...]:
    names = circuit.input_names or tuple(f"x{i}" for i in range(circuit.inputs))
    if len(set(names)) < len(names):
        names = tuple(f"x{i}" for i in range(circuit.inputs))
    found = []
    for name, kind, bits in groups:
        size = len(bits)
        if kind == "chain":
            edges = tuple(k + 0.5 for k in range(size))
            table = [
                (Value((k, k), *edge), np.arange(size) < k)
                for k, edge in enumerate(pairwise((-math.inf, *edges, math.inf)))
            ]
            found.append(_merged(name, "number", bits, table, live, thresholds=edges, whole=(0, size)))
            continue
        table = [(Value(categories=(names[bit],)), np.arange(size) == k) for k, bit in enumerate(bits)]
        if kind == "at most one of":
            table.append((Value(missing=True), np.zeros(size, bool)))
        found.append(_merged(name, "category", bits, table, live))
    grouped = {bit for _, _, bits in groups for bit in bits}
    both = [(Value(categories=(0,)), [False]), (Value(categories=(1,)), [True])]
    found += [_merged(names[i], "bit", [i], both, live) for i in range(circuit.inputs) if i not in grouped]
    if len({feature.name for feature in found}) < len(found):
        raise ValueError("a group has the name of an input bit or of another group; rename it")
    return tuple(found)
