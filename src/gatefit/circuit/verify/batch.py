"""One question about many rows: the answers, a summary, a figure, and which features reasons name.

robust_each(circuit, X, changes=2)     one answer a row, in order; ``progress`` is told after each
"""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from gatefit._requires import require
from gatefit.circuit.ir import Circuit
from gatefit.circuit.verify.answers import Answer, Counterexample, Explanation
from gatefit.circuit.verify.explain import explain
from gatefit.circuit.verify.questions import closest, robust
from gatefit.circuit.verify.rows import read_rows

Progress = Callable[[int, int], None]
"""Told how many rows are answered, of how many."""


@dataclass(frozen=True, eq=False)
class Batch:
    """The answers to one question about many rows, in their order."""

    question: str
    """In words: "robust to 2 changes"."""
    answers: tuple[Answer, ...]
    seconds: float
    asked: int | None = None
    """How many rows there were, where a stop left some without an answer."""

    def __len__(self) -> int:
        return len(self.answers)

    def __iter__(self) -> Iterator[Answer]:
        return iter(self.answers)

    def __getitem__(self, row: int) -> Answer:
        return self.answers[row]

    def counts(self) -> dict[str, int]:
        """How many answers are of each kind; an explanation that may not be minimal counts by itself."""
        kinds = Counter(
            "not shown to be minimal" if isinstance(a, Explanation) and not a.minimal else a.verdict
            for a in self.answers
        )
        return dict(kinds)

    def share(self, verdict: str) -> float:
        """The share of answers of one kind, such as "proved"."""
        return self.counts().get(verdict, 0) / max(1, len(self))

    def median_seconds(self) -> float:
        """Of one row."""
        return float(np.median([answer.seconds for answer in self.answers])) if self.answers else 0.0

    def summary(self) -> str:
        """One line: "robust to 2 changes: 81 %, undecided 3 %"."""
        total = len(self)
        if not total:
            return f"{self.question}: no rows"
        if self.question.startswith("robust"):
            parts = [f"{self.question}: {_percent(self.share('proved'))}"]
            if self.share("undecided"):
                parts.append(f"undecided {_percent(self.share('undecided'))}")
        elif any(isinstance(answer, Explanation) for answer in self.answers):
            sizes = [len(a.because) for a in self.answers if isinstance(a, Explanation)]
            features = next(a.features for a in self.answers if isinstance(a, Explanation))
            parts = [f"{self.question}: {np.median(sizes):g} of {features} features force the answer (median)"]
            parts += [f"{name} {_percent(self.share(name))}" for name in self.counts() if name != "explained"]
        else:
            near = Counter(a.changes for a in self.answers if isinstance(a, Counterexample))
            parts = [f"{self.question}: " + ", ".join(f"{k} in {_percent(n / total)}" for k, n in sorted(near.items()))]
            unproved = sum(isinstance(a, Counterexample) and a.nearest is False for a in self.answers)
            if unproved:
                parts.append(f"not shown to be nearest {_percent(unproved / total)}")
            parts += [f"{name} {_percent(self.share(name))}" for name in ("proved", "undecided") if self.share(name)]
        rows = f"{total} rows" if self.asked is None else f"stopped after {total} of {self.asked} rows"
        return f"{', '.join(parts)} ({rows}, median {self.median_seconds():.2g} s)"

    def importance(self) -> dict[str, float]:
        """How often each feature is in a reason (or, of ``closest``, in a change): exact, and nothing is permuted."""
        found: Counter[str] = Counter()
        for answer in self.answers:
            if isinstance(answer, Explanation):
                found.update(condition.feature for condition in answer.because)
            elif isinstance(answer, Counterexample):
                found.update(answer.changed.keys())
        total = max(1, sum(isinstance(a, Explanation | Counterexample) for a in self.answers))
        return {name: count / total for name, count in found.most_common()}

    def to_json(self) -> dict[str, Any]:
        """The batch as a dictionary fit for JSON."""
        return {
            "question": self.question,
            "rows": len(self),
            **({} if self.asked is None else {"asked": self.asked}),
            "counts": self.counts(),
            "median_seconds": self.median_seconds(),
            "seconds": self.seconds,
            "importance": self.importance(),
            "answers": [answer.to_json() for answer in self.answers],
        }

    def figure(self, axes: Any = None) -> Any:
        """Bars on matplotlib's axes (new ones if none are given): kinds of answers, or how often features are named."""
        pyplot: Any = require("matplotlib.pyplot", "plots", "a figure of answers")
        if axes is None:
            _, axes = pyplot.subplots(figsize=(6, 3))
        bars = self.importance() if not self.question.startswith("robust") else {}
        if bars:
            shown = dict(list(bars.items())[:20])
            axes.barh(list(shown)[::-1], [100 * share for share in list(shown.values())[::-1]])
            axes.set_xlabel("% of rows")
        else:
            kinds = self.counts()
            axes.bar(list(kinds), [100 * count / max(1, len(self)) for count in kinds.values()])
            axes.set_ylabel("% of rows")
        axes.set_title(self.question)
        return axes


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"


def _each(
    circuit: Circuit, x: Any, question: str, ask: Callable[[Any], Answer], progress: Progress | None, keep: bool
) -> Batch:
    start = time.monotonic()
    rows, _ = read_rows(circuit, x)
    answers: list[Answer] = []
    asked = None
    try:
        for done, row in enumerate(rows, start=1):
            answers.append(ask(row))
            if progress is not None:
                progress(done, len(rows))
    except KeyboardInterrupt:
        if not keep or not answers:
            raise
        asked = len(rows)
    return Batch(question, tuple(answers), time.monotonic() - start, asked)


def robust_each(
    circuit: Circuit, x: Any, *, progress: Progress | None = None, keep: bool = False, **options: Any
) -> Batch:
    """``robust`` for every row of ``x``; ``options`` are its own, and ``timeout`` is for each row.

    ``keep``: Ctrl+C returns what was answered so far.
    """
    _no_certificate(options)
    changes, levels = options.get("changes"), options.get("levels")
    if changes is not None:
        question = f"robust to {changes} change{'' if changes == 1 else 's'}"
    elif levels is not None:
        question = f"robust to {levels} level{'' if levels == 1 else 's'}"
    else:
        question = "robust within amounts"
    return _each(circuit, x, question, lambda row: robust(circuit, row, **options), progress, keep)


def closest_each(
    circuit: Circuit, x: Any, *, progress: Progress | None = None, keep: bool = False, **options: Any
) -> Batch:
    """``closest`` for every row of ``x``; ``options`` are its own, ``timeout`` is for each row, ``keep`` as above."""
    return _each(
        circuit, x, "changes to the nearest other answer", lambda row: closest(circuit, row, **options), progress, keep
    )


def explain_each(
    circuit: Circuit, x: Any, *, progress: Progress | None = None, keep: bool = False, **options: Any
) -> Batch:
    """``explain`` for every row of ``x``; ``options`` are its own, ``timeout`` is for each row, ``keep`` as above."""
    _no_certificate(options)
    return _each(circuit, x, "why", lambda row: explain(circuit, row, **options), progress, keep)


def _no_certificate(options: dict[str, Any]) -> None:
    if options.get("certificate") is not None:
        raise ValueError("a certificate is about one row; ask the question of that row by itself")
