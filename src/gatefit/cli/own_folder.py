"""config.json and metrics.jsonl of a run on own data, kept while it is trained.

A budget of gates is used up by several trainings, of different widths: the folder speaks of the one that goes on, and
in the end of the one that is kept. Its configuration names the file and the beginning of its digest as the data set, so
that runs on different files have different names.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

from torch import nn

from gatefit.training.checkpoint import TrainingState, write_atomically
from gatefit.training.config import RunConfig
from gatefit.training.loop import Observer
from gatefit.training.runs import log_text


class KeptRun(Observer):
    """An observer that remembers every training by its width."""

    def __init__(self, folder: Path, dataset: str) -> None:
        self.folder, self.dataset = folder, dataset
        self._trained: dict[int, tuple[RunConfig, TrainingState]] = {}
        self._width = 0

    def started(self, config: RunConfig, network: nn.Module, state: TrainingState) -> None:
        """One more training."""
        assert config.width is not None, "resolved by the estimator"
        self._width = config.width
        self._trained[config.width] = replace(config, dataset=self.dataset), state
        self.keep(config.width)

    def evaluated(self, state: TrainingState, network: nn.Module, metrics: dict[str, Any]) -> None:
        """One more row."""
        self.keep(self._width)

    def keep(self, width: int) -> None:
        """Write the files of the training of this width."""
        config, state = self._trained[width]
        write_atomically(self.folder / "config.json", config.to_json().encode())
        write_atomically(self.folder / "metrics.jsonl", log_text(state))
