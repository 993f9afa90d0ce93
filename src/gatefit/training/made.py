"""made.json: what a run in a folder was made with, and how long it took.

    {"code_version": "0.1.0+COMMIT", "machine": {"cpu": ..., "cores": ..., ...}, "same_bits_on": ..., "seconds": 12.5}

A file of its own: a run's other files have the same bytes whenever, in however many parts and on however many threads
it was trained, on every machine that ``same_bits_on`` names.
"""

import json
from pathlib import Path
from time import monotonic
from typing import Any

from gatefit.network import LogicNetwork
from gatefit.training.checkpoint import TrainingState, write_atomically
from gatefit.training.config import RunConfig
from gatefit.training.folder import MADE, read_made
from gatefit.training.loop import Observer
from gatefit.training.machine import code_version, machine, same_bits_on


class MadeFile(Observer):
    """Keeps a run folder's made.json; ``share`` is the run's part of the time that several runs take together.

    The version and the machine are the last that worked on the run; the seconds are those of all of them, and null
    where an earlier part did not note its own.
    """

    def __init__(self, folder: Path, config: RunConfig, *, share: float = 1.0) -> None:
        self.folder, self.config, self.share = folder, config, share
        self._seconds: float | None = 0.0
        self._since = 0.0

    def begin(self, state: TrainingState) -> None:
        """Before the first step of this process."""
        self._since = monotonic()
        self._seconds = read_made(self.folder).get("seconds") if state.step else 0.0
        self.write()

    def write(self) -> None:
        """As far as the run has come."""
        before, self._since = self._since, monotonic()
        if self._seconds is not None:
            self._seconds = round(self._seconds + (self._since - before) * self.share, 3)
        content = {
            "code_version": code_version(),
            "machine": machine(),
            "same_bits_on": same_bits_on(self.config),
            "seconds": self._seconds,
        }
        write_atomically(self.folder / MADE, json.dumps(content, indent=2).encode(), sync=False)

    def started(self, config: RunConfig, network: LogicNetwork, state: TrainingState) -> None:
        """Before the first step of this process."""
        self.begin(state)

    def evaluated(self, state: TrainingState, network: LogicNetwork, metrics: dict[str, Any]) -> None:
        """After every evaluation."""
        self.write()

    def finished(self, state: TrainingState, network: LogicNetwork) -> None:
        """After the last step of this process."""
        self.write()
