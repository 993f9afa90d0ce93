"""Ctrl+C and SIGTERM while training: finish the step, save, stop; the same again aborts at once.

before the first step   nothing to save: the signal ends the process
while training          the first asks the loop to stop, the second ends the process
"""

import os
import signal
from types import FrameType
from typing import Any

from torch import nn

from gatefit.training.checkpoint import TrainingState
from gatefit.training.config import RunConfig
from gatefit.training.loop import Observer

_STOPPING = b"\nstopping after this step; press Ctrl+C again to abort without saving\n"
_TOO_EARLY = b"\nstopped before the first step: there was nothing to save\n"
_ABORTED = b"\naborted: the run goes on from its last checkpoint\n"


class StopSignals(Observer):
    """A context in which signals are remembered; as an observer it knows when training has begun."""

    def __init__(self) -> None:
        self.received: int | None = None
        self.training = False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> "StopSignals":
        for number in (signal.SIGINT, signal.SIGTERM):
            self._before[number] = signal.signal(number, self._handle)
        return self

    def __exit__(self, *exception: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def __call__(self) -> bool:
        """Whether the run should stop: what ``execute`` asks after every step."""
        return self.received is not None

    @property
    def exit_code(self) -> int:
        """The shell's convention: 128 and the signal's number; SIGTERM's where another process was told to stop."""
        return 128 + (self.received or signal.SIGTERM)

    def started(self, config: RunConfig, network: nn.Module, state: TrainingState) -> None:
        """From now on there is something to save."""
        self.training = True

    def _handle(self, number: int, frame: FrameType | None) -> None:
        # The same one: torchrun passes a Ctrl+C on as SIGTERM, to a process that has had it from the terminal already.
        again, self.received = self.received == number, number
        # Not print: a handler may run in the middle of another write to the same stream.
        if again or not self.training:
            os.write(2, _ABORTED if self.training else _TOO_EARLY)
            raise SystemExit(self.exit_code)
        os.write(2, _STOPPING)
