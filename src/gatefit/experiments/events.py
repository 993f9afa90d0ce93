"""What a runner tells while it works."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True)
class RunEvent:
    """Something happened to a run.

    kind is started, evaluated, finished, failed, stopped (asked to, it goes on another time) or waiting (another
    process works on it); ``text`` says why it failed.
    """

    identity: str
    kind: str
    step: int
    steps: int
    text: str = ""
    accuracy: float | None = None


Tell: TypeAlias = Callable[[RunEvent], None]
