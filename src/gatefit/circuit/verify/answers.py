"""What a question is answered with: a proof, a counterexample that was replayed, or neither, and why.

    Proved           the statement holds at every point of its space; ``method`` says what shows it
    Counterexample   raw features at which it does not, seen by ``circuit.simulate``
    Undecided        neither, within the time given; ``known`` is what was shown on the way

No answer is a truth value: ``if robust(...)`` would take Undecided for something. Use ``isinstance`` or ``match``.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, NoReturn

import numpy as np
from jaxtyping import Bool

METHODS = ("bound", "exhaustive", "decomposed", "sat")
"""From supports alone; every point tried; outputs tried one by one on what they read; a refutation that was checked."""


class Answer:
    """One of the answers; never a truth value."""

    verdict: ClassVar[str]
    statement: str
    seconds: float

    def __bool__(self) -> NoReturn:
        raise TypeError(
            f"an answer is not true or false ({type(self).__name__} is one of several); "
            f"use isinstance(answer, Proved) or match"
        )

    def to_json(self) -> dict[str, Any]:
        """The answer as a dictionary fit for JSON."""
        return {"verdict": self.verdict, "statement": self.statement, "seconds": self.seconds, **self._more()}

    def _more(self) -> dict[str, Any]:
        return {}


@dataclass(frozen=True, eq=False)
class Proved(Answer):
    """The statement holds everywhere that it speaks of."""

    verdict = "proved"
    statement: str
    method: str
    """The strongest of ``METHODS`` that was needed."""
    seconds: float
    certificate: Path | None = None

    def __str__(self) -> str:
        return f"proved ({self.method}): {self.statement}"

    def _more(self) -> dict[str, Any]:
        return {"method": self.method, "certificate": None if self.certificate is None else str(self.certificate)}


@dataclass(frozen=True)
class Example:
    """One row, and what the circuit says to it."""

    row: dict[str, Any]
    """Raw features by name; input bits where there is no encoder."""
    answer: Any
    """The label, or the value of a regression."""
    scores: tuple[float, ...]
    bits: Bool[np.ndarray, " inputs"] = field(compare=False, repr=False)

    def to_json(self) -> dict[str, Any]:
        """The example as a dictionary fit for JSON."""
        bits = "".join("01"[int(b)] for b in self.bits)
        return {"row": self.row, "answer": self.answer, "scores": list(self.scores), "bits": bits}


@dataclass(frozen=True, eq=False)
class Counterexample(Answer):
    """Where the statement fails."""

    verdict = "counterexample"
    statement: str
    seconds: float
    example: Example
    other: Example | None = None
    """The second one of a pair, or what the second circuit says."""
    changed: dict[str, tuple[Any, Any]] = field(default_factory=dict)
    """The features that differ, from what to what: from the row that was asked about, or within a pair."""
    nearest: bool | None = None
    """Of ``closest``: whether it was proved that fewer changes do not do."""

    @property
    def row(self) -> dict[str, Any]:
        """The raw features of the example."""
        return self.example.row

    @property
    def changes(self) -> int:
        """How many features differ."""
        return len(self.changed)

    def __str__(self) -> str:
        changed = ", ".join(f"{name} {_said(old)} -> {_said(new)}" for name, (old, new) in self.changed.items())
        if self.other is not None:
            return f"counterexample: {self.statement} fails: {changed or 'one input'} gives {self.example.answer} " + (
                f"and {self.other.answer}"
            )
        return f"counterexample: {self.statement} fails: {changed or 'an input'} gives {self.example.answer}"

    def _more(self) -> dict[str, Any]:
        more: dict[str, Any] = {"example": self.example.to_json()}
        if self.other is not None:
            more["other"] = self.other.to_json()
        if self.changed:
            more["changed"] = {name: list(pair) for name, pair in self.changed.items()}
        if self.nearest is not None:
            more["nearest"] = self.nearest
        return more


@dataclass(frozen=True, eq=False)
class Undecided(Answer):
    """Neither shown nor refuted."""

    verdict = "undecided"
    statement: str
    seconds: float
    reason: str
    known: str = ""
    """What was shown on the way, if anything: "robust to 2 changes"."""

    def __str__(self) -> str:
        return f"undecided: {self.statement}: {self.reason}" + (f"; known: {self.known}" if self.known else "")

    def _more(self) -> dict[str, Any]:
        return {"reason": self.reason, "known": self.known}


@dataclass(frozen=True)
class Condition:
    """One feature of an explanation, and the values of it that keep the answer."""

    feature: str
    text: str
    """In words: "age from 31 to 47"."""
    values: tuple[int, ...]
    """The numbers of the values (``Feature.values``) that it allows."""


@dataclass(frozen=True, eq=False)
class Explanation(Answer):
    """Features that force the answer whatever the others are, and the smallest change that turns it."""

    verdict = "explained"
    statement: str
    seconds: float
    answer: Any
    because: tuple[Condition, ...]
    """Each of them needed: without any one of them the answer can be another."""
    features: int
    """How many features there are."""
    minimal: bool
    """Whether it was shown that each of them is needed; a test that timed out leaves its feature in."""
    proof: Proved
    """That they force the answer."""
    why_not: Answer | None = None
    """The nearest counterexample, where it was asked for."""
    widest: bool = False
    """Whether it was shown that none of them can be wider: where widening was asked for, and not too hard to prove."""

    def __str__(self) -> str:
        texts = [condition.text for condition in self.because]
        said = (", and " if any(" or " in text for text in texts) else " and ").join(texts)
        verb = "forces" if len(self.because) == 1 else "force"
        return f"{said} {verb} {self.answer}" if said else f"whatever the features are, the answer is {self.answer}"

    def _more(self) -> dict[str, Any]:
        because = [{"feature": c.feature, "text": c.text, "values": list(c.values)} for c in self.because]
        return {
            "answer": self.answer,
            "because": because,
            "features": self.features,
            "minimal": self.minimal,
            "widest": self.widest,
            "proof": self.proof.to_json(),
            "why_not": None if self.why_not is None else self.why_not.to_json(),
        }


@dataclass(frozen=True, eq=False)
class Estimate(Answer):
    """A share that was sampled, not proved: it is between low and high with the confidence given."""

    verdict = "estimate"
    statement: str
    seconds: float
    share: float
    low: float
    high: float
    confidence: float
    samples: int

    def __str__(self) -> str:
        return (
            f"estimate: {self.statement}: {self.share:.4f}, between {self.low:.4f} and {self.high:.4f} "
            f"({100 * self.confidence:g} % confidence, {self.samples:,} samples)"
        )

    def _more(self) -> dict[str, Any]:
        names = ("share", "low", "high", "confidence", "samples")
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True, eq=False)
class Bounds(Answer):
    """The least and the largest value of a regression, or of one class's score, in a region."""

    verdict = "bounds"
    statement: str
    seconds: float
    low: float
    high: float
    """What no value is below or above."""
    lowest: Example
    highest: Example
    """The least and the largest that were seen."""
    exact: bool
    """Whether what was seen reaches the bounds."""
    proofs: tuple[Answer, ...] = ()

    def __str__(self) -> str:
        how = "exactly" if self.exact else "at most"
        return f"bounds: {self.statement} {how} from {self.low:.10g} to {self.high:.10g}"

    def _more(self) -> dict[str, Any]:
        more = {"low": self.low, "high": self.high, "exact": self.exact}
        return {**more, "lowest": self.lowest.to_json(), "highest": self.highest.to_json()}


@dataclass(frozen=True, eq=False)
class Reachable(Answer):
    """For each class whether some input is answered with it: a counterexample to "never" is such an input."""

    verdict = "reachable"
    statement: str
    seconds: float
    classes: dict[Any, Answer]

    def __str__(self) -> str:
        words = {"counterexample": "reached", "proved": "never reached (proved)", "undecided": "undecided"}
        return "reachable: " + ", ".join(f"{name}: {words[answer.verdict]}" for name, answer in self.classes.items())

    def _more(self) -> dict[str, Any]:
        return {"classes": [{"class": name, **answer.to_json()} for name, answer in self.classes.items()]}


def _said(value: Any) -> str:
    if value is None:
        return "missing"
    return f"{value:.10g}" if isinstance(value, float) else str(value)
