"""Questions to a circuit, answered with proofs: see ``questions`` and ``explain`` for what can be asked.

domain        what features can be, from the encoder;   rows: raw features in and out
pose          statements, in JSON and words, and the problem that would refute each
problem       every question in one form: sums of output bits over a space of points
encode        a problem as clauses: totalizers, never adders
supports, attack, exhaust, decompose, sat     the engines;   decide: their order
answers       Proved, Counterexample, Undecided and what is made of them
certificate   proofs as files, and their checks
batch         one question about many rows
"""

from gatefit.circuit.verify.answers import (
    Answer,
    Bounds,
    Condition,
    Counterexample,
    Estimate,
    Example,
    Explanation,
    Proved,
    Reachable,
    Undecided,
)
from gatefit.circuit.verify.batch import Batch, closest_each, explain_each, robust_each
from gatefit.circuit.verify.certificate import CertificateError, Checked, check
from gatefit.circuit.verify.domain import Domain, Feature, Value
from gatefit.circuit.verify.explain import explain
from gatefit.circuit.verify.questions import (
    agree,
    bounds,
    closest,
    monotone,
    never_matters,
    reachable,
    robust,
    share,
)

__all__ = [
    "Answer",
    "Batch",
    "Bounds",
    "CertificateError",
    "Checked",
    "Condition",
    "Counterexample",
    "Domain",
    "Estimate",
    "Example",
    "Explanation",
    "Feature",
    "Proved",
    "Reachable",
    "Undecided",
    "Value",
    "agree",
    "bounds",
    "check",
    "closest",
    "closest_each",
    "explain",
    "explain_each",
    "monotone",
    "never_matters",
    "reachable",
    "robust",
    "robust_each",
    "share",
]
