"""Observers that show a run: a bar on a terminal, one line an evaluation elsewhere, curves in TensorBoard."""

import contextlib
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeRemainingColumn,
)
from rich.text import Text
from torch import nn

from gatefit._requires import require
from gatefit.cli.output import duration, percent
from gatefit.training.checkpoint import TrainingState
from gatefit.training.config import RunConfig
from gatefit.training.loop import Observer
from gatefit.training.metrics import deployed

_REFRESH = 0.1
"""Seconds between updates: a step of a small network takes less than drawing a bar."""


class StepRate(ProgressColumn):
    """Steps a second over the last half minute."""

    def render(self, task: Task) -> Text:
        """What the column shows."""
        return Text("" if task.speed is None else f"{task.speed:.1f} steps/s")


class Bar(Observer):
    """A progress bar with steps a second, loss, accuracy and time left."""

    def __init__(self, console: Console, score: Callable[[float], str] = percent) -> None:
        self._score = score
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            StepRate(),
            TextColumn("loss {task.fields[loss]}"),
            TextColumn("{task.fields[held_out]} {task.fields[accuracy]}"),
            TimeRemainingColumn(),
            console=console,
        )
        self._loss, self._drawn = 0.0, 0.0
        self._task = self._progress.add_task(
            "training", loss="-", held_out="test", accuracy="-", start=False, total=None
        )

    def tried(self, config: RunConfig, temperature: float, accuracy: float) -> None:
        """A line above the bar."""
        self._progress.console.print(_trial_line(temperature, accuracy))

    def started(self, config: RunConfig, network: nn.Module, state: TrainingState) -> None:
        """Show the bar, from the step that the run resumes at."""
        accuracy = self._score(deployed(state.metrics[-1], "test")) if state.metrics else "-"
        self._progress.update(
            self._task, total=config.steps, completed=state.step, held_out=config.held_out, accuracy=accuracy
        )
        self._progress.start()
        self._progress.start_task(self._task)

    def stepped(self, state: TrainingState, network: nn.Module, loss: float) -> None:
        """Draw at most ten times a second."""
        self._loss = loss if self._loss == 0 else 0.98 * self._loss + 0.02 * loss
        if time.monotonic() - self._drawn >= _REFRESH:
            self._draw(state)

    def evaluated(self, state: TrainingState, network: nn.Module, metrics: dict[str, Any]) -> None:
        """A new accuracy."""
        self._progress.update(self._task, accuracy=self._score(deployed(metrics, "test")))
        self._draw(state)

    def finished(self, state: TrainingState, network: nn.Module) -> None:
        """Leave the bar as it is."""
        self._draw(state)
        self._progress.stop()

    def close(self) -> None:
        """Give the terminal back, however the run ended."""
        self._progress.stop()

    def _draw(self, state: TrainingState) -> None:
        self._progress.update(self._task, completed=state.step, loss=f"{self._loss:.4f}")
        self._drawn = time.monotonic()


class Lines(Observer):
    """One line an evaluation."""

    def __init__(self, console: Console, score: Callable[[float], str] = percent) -> None:
        self._score = score
        self._console, self._steps, self._held_out = console, 0, "test"
        self._last_time, self._last_step = 0.0, 0

    def tried(self, config: RunConfig, temperature: float, accuracy: float) -> None:
        """A temperature, and what a short training came to."""
        self._console.print(_trial_line(temperature, accuracy))

    def started(self, config: RunConfig, network: nn.Module, state: TrainingState) -> None:
        """Say where the run goes on."""
        self._steps, self._held_out = config.steps, config.held_out
        self._last_time, self._last_step = time.monotonic(), state.step
        if state.step:
            self._console.print(f"resumed at step {state.step} of {config.steps}")

    def evaluated(self, state: TrainingState, network: nn.Module, metrics: dict[str, Any]) -> None:
        """Step, loss, accuracies, speed and time left."""
        now = time.monotonic()
        rate = (state.step - self._last_step) / max(1e-9, now - self._last_time)
        self._last_time, self._last_step = now, state.step
        train, held_out = (self._score(deployed(metrics, name)) for name in ("train", "test"))
        self._console.print(
            f"step {state.step}/{self._steps}  loss {metrics['loss']:.4f}  train {train}  {self._held_out} {held_out}  "
            f"{rate:.1f} steps/s  {duration((self._steps - state.step) / rate)} left"
        )


def _trial_line(temperature: float, accuracy: float) -> str:
    return f"searching the readout temperature: {temperature:.4g} gives {percent(accuracy)} of the samples kept apart"


class TensorBoard(Observer):
    """Loss and every metric as curves in ``folder``."""

    def __init__(self, folder: Path) -> None:
        require("tensorboard", "tensorboard", "--tensorboard")
        self._folder, self._held_out = folder, "test"
        self._writer: Any = None

    def started(self, config: RunConfig, network: nn.Module, state: TrainingState) -> None:
        """Curves go on where the checkpoint is: what an aborted run wrote after it is dropped."""
        from torch.utils.tensorboard import SummaryWriter

        self._held_out = config.held_out
        self._writer = SummaryWriter(str(self._folder), purge_step=state.step + 1)

    def stepped(self, state: TrainingState, network: nn.Module, loss: float) -> None:
        """The loss of every step."""
        self._writer.add_scalar("loss", loss, state.step)

    def evaluated(self, state: TrainingState, network: nn.Module, metrics: dict[str, Any]) -> None:
        """Accuracies and gaps."""
        for name, value in metrics.items():
            if name not in ("step", "loss") and value is not None:
                self._writer.add_scalar(name.replace("test_", f"{self._held_out}_"), value, state.step)

    def finished(self, state: TrainingState, network: nn.Module) -> None:
        """Write what is buffered."""
        self._writer.close()


@contextlib.contextmanager
def shown(console: Console, *, quiet: bool, score: Callable[[float], str] = percent) -> Iterator[list[Observer]]:
    """The observers that show a run on ``console``: a bar on a terminal, else lines; none where it is to be quiet.

    ``score`` writes what is reached: an accuracy, unless it says otherwise.
    """
    if quiet:
        yield []
    elif not console.is_terminal:
        yield [Lines(console, score)]
    else:
        bar = Bar(console, score)
        try:
            yield [bar]
        finally:
            bar.close()
