"""Which features each output can depend on, and what that alone says.

    support     of a node: the features whose bits are wired to it, after fixed features were folded away
    bound       a sum is at most what it is now, plus what the outputs weigh that k features reach and that may help

The k features that reach most cannot make up a margin: then no search is needed.
"""
# mypy: disable-error-code="no-untyped-def, no-untyped-call"

import numpy as np
from jaxtyping import Bool

from gatefit.circuit.logic.words import simulate_words
from gatefit.circuit.verify.encode import Encoding
from gatefit.circuit.verify.problem import Alternative, Form
from gatefit.compiled import njit


def values_at_base(encoding: Encoding) -> Bool[np.ndarray, " nodes"]:
    """The value of every node at the problem's base, which must be part of its space."""
    problem = encoding.problem
    assert problem.base is not None
    words = np.zeros((encoding.graph.inputs, 1), np.uint64)
    pairs = zip(encoding.columns, problem.base_places.tolist(), strict=True)
    own = np.concatenate([np.empty(0, bool), *(columns.values[place] for columns, place in pairs)])
    words[: own.size, 0] = own
    return (simulate_words(encoding.graph, words)[:, 0] & np.uint64(1)).astype(bool)


class Bound:
    """Refutes alternatives by what their outputs can reach."""

    def __init__(self, encoding: Encoding) -> None:
        self.encoding = encoding
        problem = encoding.problem
        self.limited = problem.changes is not None and problem.base is not None and problem.second is None
        self.limited = self.limited and problem.base_places.min(initial=0) >= 0
        self.values = values_at_base(encoding) if self.limited else None
        self.supports = encoding.supports if self.limited else None

    def refutes(self, alternative: Alternative) -> bool:
        """Whether some form of the alternative cannot hold."""
        return any(self.most(form) < 0 for form in (*alternative.forms, *alternative.implied))

    def most(self, form: Form) -> int:
        """What the form is at most."""
        literals, weights, need = self.encoding.terms(form)
        most = int(weights.sum()) - need
        if self.values is None or self.supports is None or self.encoding.problem.changes is None:
            return most
        true = self.values[literals >> 1] ^ (literals & 1 == 1)
        helpful = ~true
        reach = self.supports[literals[helpful] >> 1]
        gains = np.zeros(64 * reach.shape[1], np.int64)
        _gains(reach, weights[helpful], gains)
        best = np.sort(gains)[::-1][: self.encoding.problem.changes]
        return min(most, int(weights[true].sum()) + int(best.sum()) - need)


@njit(cache=True)
def _gains(reach, weights, gains):
    """For each feature the weight of the terms that it reaches."""
    for t in range(reach.shape[0]):
        for w in range(reach.shape[1]):
            word = reach[t, w]
            place = 64 * w
            while word:
                if word & np.uint64(1):
                    gains[place] += weights[t]
                word >>= np.uint64(1)
                place += 1
