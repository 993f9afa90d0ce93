"""What a program that shows a fit asks of it: who watches, where its checkpoints are, when it should stop.

A fit that is stopped keeps the best network that it has come to, or the last where none is validated; the same fit
with the same checkpoints goes on from there to the same bits. Nothing of this changes what is trained.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gatefit.training.loop import Observer


@dataclass(frozen=True)
class Watch:
    """Set as ``model.watch`` before ``fit``."""

    observers: Sequence[Observer] = ()
    should_stop: Callable[[], bool] = lambda: False
    checkpoints: Path | None = None
    held_out: tuple[Any, Any] | None = None
    """Features and targets (class numbers, values) that evaluations measure where no validation set is kept apart."""
