"""What a circuit's answers owe to a feature, exactly: every value of it that the circuit can tell apart is tried.

    A(x)       class probabilities, or the value of a regression (A has one part then)
    D_f(v)     = mean_x A(x with feature f at v)                                            partial dependence
    I_f        = mean_x Σ_v p_f(v) · d(A(x), A(x with f at v))                              importance
    d(P, Q)    = ½ Σ_k |P_k - Q_k|, the share of probability that moves; of values |P - Q|

x runs over rows, p_f(v) is the share of them whose feature f is at v. A value is a set of raw values that the circuit
cannot tell apart (``verify.domain``): between two thresholds that it reads nothing changes, so D_f is the whole curve,
not a grid of it. I_f is what is expected to move when f is drawn again from the rows' own values; nothing is drawn
here, all values are weighed. A feature that is not read has I_f = 0. Rows are run 64 to a word.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float64

from gatefit.circuit.ir import Circuit
from gatefit.circuit.predict import answers, input_batches
from gatefit.circuit.verify.domain import Domain, Feature, Value


@dataclass(frozen=True, eq=False)
class PartialDependence:
    """D_f of one feature: the mean answer at each of its values, and the share of the rows that have it."""

    feature: str
    values: tuple[Value, ...]
    average: Float64[np.ndarray, "values answers"]
    share: Float64[np.ndarray, " values"]

    def __repr__(self) -> str:
        return f"<PartialDependence of {self.feature!r}: {len(self.values)} values, {self.average.shape[1]} answers>"


def partial_dependence(circuit: Circuit, x: object, feature: str | int) -> PartialDependence:
    """D_f over the rows of ``x``, raw features or bits; ``feature`` is a name, or a number from 0."""
    domain, bits = Domain.of(circuit), _rows(circuit, x)
    found = domain.features[domain.find(feature)]
    average = [moved.mean(axis=0) for moved in _moved(circuit, bits, found)]
    return PartialDependence(found.name, found.values, np.array(average), _shares(bits, found))


def importance(circuit: Circuit, x: object) -> dict[str, float]:
    """I_f over the rows of ``x`` for every feature, by name, in the circuit's order."""
    domain, bits = Domain.of(circuit), _rows(circuit, x)
    return dict(zip(domain.names, importances(circuit, domain, bits).tolist(), strict=True))


def importances(
    circuit: Circuit, domain: Domain, bits: Bool[np.ndarray, "samples inputs"]
) -> Float64[np.ndarray, " features"]:
    """I_f over rows of input bits for every feature of the circuit's domain."""
    own = answers(circuit, bits)
    found = np.zeros(len(domain.features))
    for i, feature in enumerate(domain.features):
        for share, moved in zip(_shares(bits, feature).tolist(), _moved(circuit, bits, feature), strict=True):
            part = 1.0 if circuit.readout.gives_value else 0.5
            found[i] += share * part * float(np.abs(moved - own).sum(axis=1).mean())
    return found


def _rows(circuit: Circuit, x: object) -> Bool[np.ndarray, "samples inputs"]:
    bits = np.concatenate([part.copy() for part in input_batches(circuit, x)])
    if not len(bits):
        raise ValueError("a mean over rows needs at least one row, got none")
    return bits


def _moved(
    circuit: Circuit, bits: Bool[np.ndarray, "samples inputs"], feature: Feature
) -> Iterator[Float64[np.ndarray, "samples answers"]]:
    """The answers with the feature at each of its values in turn."""
    changed = bits.copy()
    for pattern in feature.patterns:
        changed[:, feature.inputs] = pattern
        yield answers(circuit, changed)


def _shares(bits: Bool[np.ndarray, "samples inputs"], feature: Feature) -> Float64[np.ndarray, " values"]:
    """How many of the rows have each value of the feature."""
    own = bits[:, feature.inputs]
    counts = [np.count_nonzero((own == pattern).all(axis=1)) for pattern in feature.patterns]
    return np.array(counts, np.float64) / len(bits)
