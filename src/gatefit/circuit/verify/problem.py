"""Questions in one form: is there a point of a space at which some sums of output bits are large enough?

    totals        integers, as the readout adds them (``Readout.sums``), of one circuit or of two, one behind the other
    form          constant + Σ_k c_k total_k >= 0
    alternative   some forms that hold together;  a problem asks whether any of its alternatives can
    space         for each feature the values that it may have; at most so many may differ from a point
    pair          a second point, equal to the first but for one feature: two copies of one circuit

"The answer is c everywhere" is refuted by a rival r whose score exceeds c's; ties go to the first class:

    class is not c      some r:   total_r - total_c - [r > c] >= 0
    class is c          all  r:   total_c - total_r - [r < c] >= 0       with a margin m: - max(m, [r < c])
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from jaxtyping import Int64

from gatefit.circuit.ir import Circuit
from gatefit.circuit.readout import Readout, Sums
from gatefit.circuit.verify.domain import Domain

if TYPE_CHECKING:
    from gatefit.circuit.engine import Engine

Allowed = list[Int64[np.ndarray, " some"]]
"""For each feature the numbers of the values that it may have, ascending."""


@dataclass(frozen=True, eq=False)
class _Totals(Readout):
    """The integer totals of another readout, and nothing else."""

    of: Sums
    outputs: int

    kind: ClassVar[str] = "totals"

    @property
    def classes(self) -> int:
        return self.of.classes

    def sums(self) -> Sums:
        return self.of


class Model:
    """A circuit as these questions see it: its totals as integers, and an engine for them."""

    def __init__(self, circuit: Circuit) -> None:
        self.circuit = circuit
        sums = circuit.readout.sums_for("verify")
        self.sums = Sums(sums.offsets, sums.sums, sums.outputs, sums.weights)

    @cached_property
    def weights(self) -> Int64[np.ndarray, "classes outputs"]:
        """total = offsets + weights · outputs."""
        weights = np.zeros((self.sums.classes, self.circuit.outputs.size), np.int64)
        np.add.at(weights, (self.sums.sums, self.sums.outputs), self.sums.weights)
        return weights

    @cached_property
    def engine(self) -> "Engine":
        """Runs the circuit up to its totals."""
        from gatefit.circuit.engine import Engine

        readout = _Totals(self.sums, self.circuit.outputs.size)
        plain = replace(self.circuit, readout=readout, class_names=(), labels=None, encoder=None)
        return Engine(plain, threads=1)

    @property
    def classes(self) -> int:
        """How many totals."""
        return self.sums.classes


def model_of(circuit: Circuit) -> Model:
    """The circuit's model; made once."""
    if not isinstance(circuit, Circuit):
        raise TypeError(f"this question is about a Circuit, got {type(circuit).__name__}; load or compile one first")
    # Kept in the instance's own dictionary, as its engine is: arrays are frozen, so it never goes stale.
    model = circuit.__dict__.get("_verify")
    if model is None:
        model = circuit.__dict__["_verify"] = Model(circuit)
    return model


def domain_of(circuit: Circuit, *others: Circuit) -> Domain:
    """The domain of the circuit's encoder; made once."""
    if others:
        return Domain.of(circuit, *others)
    domain = circuit.__dict__.get("_domain")
    if domain is None:
        domain = circuit.__dict__["_domain"] = Domain.of(circuit)
    return domain


@dataclass(frozen=True, eq=False)
class Form:
    """constant + coefficients · totals >= 0."""

    coefficients: Int64[np.ndarray, " totals"]
    constant: int

    def __add__(self, other: "Form") -> "Form":
        return Form(self.coefficients + other.coefficients, self.constant + other.constant)


@dataclass(frozen=True, eq=False)
class Alternative:
    """Forms that would have to hold together; ``implied`` follow from them, and may be easier to refute."""

    name: str
    forms: tuple[Form, ...]
    implied: tuple[Form, ...] = ()


@dataclass(frozen=True, eq=False)
class Problem:
    """Whether some point of a space satisfies some alternative."""

    domain: Domain
    models: tuple[Model, ...]
    """Both read the first point, unless there is a second one: then the second model reads that."""
    allowed: Allowed
    alternatives: tuple[Alternative, ...]
    base: Int64[np.ndarray, " features"] | None = None
    changes: int | None = None
    """How many features may differ from ``base``; None: all."""
    second: int | None = None
    """The feature that has a value of its own at the second point."""
    rising: bool = False
    """Whether that value is a number and not below the first point's."""
    totals: Int64[np.ndarray, " totals"] | None = field(default=None)
    """At ``base``."""

    @cached_property
    def sizes(self) -> Int64[np.ndarray, " features"]:
        """How many values each feature may have."""
        return np.array([values.size for values in self.allowed], np.int64)

    @cached_property
    def free(self) -> Int64[np.ndarray, " some"]:
        """The features that may have more than one value."""
        return np.flatnonzero(self.sizes > 1)

    def places(self, point: Int64[np.ndarray, " features"]) -> Int64[np.ndarray, " features"]:
        """Where the values of a point are among those that features may have; -1 where they are not."""
        flat = np.concatenate([np.empty(0, np.int64), *self.allowed])
        found = np.flatnonzero(flat == np.repeat(point, self.sizes))
        places = np.full(self.sizes.size, -1, np.int64)
        ends = np.cumsum(self.sizes)
        owner = np.searchsorted(ends, found, side="right")
        places[owner] = found - (ends - self.sizes)[owner]
        return places

    @cached_property
    def base_places(self) -> Int64[np.ndarray, " features"]:
        """``places`` of the base."""
        assert self.base is not None
        return self.places(self.base)

    def points(self) -> int:
        """How many points there are; with a second one, pairs of them."""
        return self._points

    @cached_property
    def _points(self) -> int:
        sizes: list[int] = self.sizes.tolist()
        if self.changes is None or self.base is None:
            total = math.prod(sizes)
            return total if self.second is None else total * sizes[self.second]
        # Elementary symmetric sums: ways to change exactly j features.
        ways = [1] + [0] * self.changes
        for more in (self.sizes - (self.base_places >= 0)).tolist():
            for j in range(self.changes, 0, -1):
                ways[j] += ways[j - 1] * more
        return sum(ways)

    def evaluate(self, points: Int64[np.ndarray, "samples features"], other: Any = None) -> np.ndarray:
        """The totals of all models at points; ``other`` are the values of the second point's own feature."""
        bits = self.domain.bits(points)
        parts = [self.models[0].engine.scores(bits)]
        if self.second is not None:
            seconds = points.copy()
            seconds[:, self.second] = other
            bits = self.domain.bits(seconds)
        parts += [model.engine.scores(bits) for model in self.models[1:]]
        return np.concatenate(parts, axis=1)

    def satisfied(self, totals: Int64[np.ndarray, "samples totals"]) -> np.ndarray:
        """For each sample the first alternative that holds, -1 if none does."""
        found = np.full(len(totals), -1, np.int64)
        for number, alternative in reversed(list(enumerate(self.alternatives))):
            holds = np.ones(len(totals), bool)
            for form in alternative.forms:
                holds &= totals @ form.coefficients + form.constant >= 0
            found[holds] = number
        return found

    def inside(self, point: Int64[np.ndarray, " features"], other: int | None = None) -> bool:
        """Whether a point is part of the space."""
        if self.places(point).min(initial=0) < 0:
            return False
        if self.second is not None:
            if other is None or not np.any(self.allowed[self.second] == other):
                return False
            if self.rising and other < point[self.second]:
                return False
        return self.changes is None or self.base is None or int((point != self.base).sum()) <= self.changes


def is_class(classes: int, target: int, margin: int = 0, first: int = 0, totals: int | None = None) -> list[Form]:
    """The answer is ``target``, and its score exceeds all others by ``margin``; totals begin at ``first``."""
    forms = []
    for rival in range(classes):
        if rival != target:
            form = np.zeros(classes if totals is None else totals, np.int64)
            form[first + target], form[first + rival] = 1, -1
            forms.append(Form(form, -max(margin, int(rival < target))))
    return forms


def not_class(classes: int, target: int, names: Sequence[str]) -> list[Alternative]:
    """The answer is some other class: one alternative for each."""
    found = []
    for rival in range(classes):
        if rival != target:
            form = np.zeros(classes, np.int64)
            form[rival], form[target] = 1, -1
            found.append(Alternative(names[rival], (Form(form, -int(rival > target)),)))
    return found
