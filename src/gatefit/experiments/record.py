"""A run as the store knows it: what every reader of results is handed."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from gatefit.training.config import RunConfig

_DIVERGED: Final = re.compile(r"the loss\b.* is (nan|-?inf) at step \d+")
"""What ``training.loop.TrainingDivergedError`` says."""


@dataclass(frozen=True)
class RunRecord:
    """A run as the store knows it."""

    identity: str
    config: RunConfig
    status: str
    """planned, running, finished or failed."""
    summary: Mapping[str, Any] = field(default_factory=dict)
    """``training.metrics.summary`` of the log: last_10_accuracy, best_accuracy, gaps, ... as fractions."""
    metrics: Sequence[Mapping[str, Any]] = ()
    """One row an evaluation, as in metrics.jsonl."""
    diagnostics: Mapping[str, Mapping[int, Any]] = field(default_factory=dict)
    """name -> step -> value; see ``gatefit.diagnostics`` for the names and what they hold."""
    seconds: float | None = None
    """Wall time of its training; of seeds side by side, each one's share."""
    machine: Mapping[str, Any] = field(default_factory=dict)
    code_version: str = ""
    data_digest: str = ""
    step: int = 0
    """Steps done."""
    error: str = ""
    """Why it failed."""
    created: str = ""
    started: str = ""
    finished: str = ""
    """Times of day, UTC, as in 2030-01-31T23:59:59Z; empty where they are not known."""

    @property
    def diverged(self) -> bool:
        """Whether its loss became no number: made again it does so again, so that this is what the run shows."""
        return self.status == "failed" and _DIVERGED.match(self.error) is not None
