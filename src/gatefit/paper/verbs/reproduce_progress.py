"""What ``gatefit reproduce`` shows while it trains: bars on a terminal, a line for every run elsewhere."""

import contextlib
import time
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from gatefit.cli.errors import one_line
from gatefit.cli.output import duration, percent
from gatefit.paper.scales import width_name
from gatefit.training.config import RunConfig

if TYPE_CHECKING:
    from gatefit.experiments.events import RunEvent


def run_words(config: RunConfig) -> str:
    """A run in a few words: data set, method, size, seed and the options that set it apart."""
    size = f"{config.depth} × {width_name(config.width)}" if config.width else f"{config.depth} layers"
    extra = [
        word
        for word in (
            f"{config.steps:,} steps",
            f"τ {config.temperature:g}" if config.temperature is not None else "",
            "learned τ" if config.learnable_temperature else "",
            f"T {config.readout_temperature:g}" if config.readout_temperature is not None else "",
            config.corner_activation or "",
            f"snap {config.snap}" if config.snap else "",
            f"{config.surrogate} surrogate" if config.surrogate else "",
            f"noise in {config.noise_in}" if config.noise_in else "",
            f"{config.backward_basis} basis" if config.backward_basis else "",
            f"wiring {config.wiring_seed}" if config.wiring_seed else "",
            f"split {config.split_seed}" if config.split_seed else "",
            f"{config.adult_encoding} encoding" if config.adult_encoding else "",
        )
        if word
    ]
    return f"{config.dataset} {config.method}, {size}, {', '.join(extra)}, seed {config.seed}"


class RunLines:
    """One line when a run begins anew and one when it ends, with how many there are and the time left."""

    def __init__(self, console: Console, configs: Sequence[RunConfig], seconds: dict[str, float], jobs: int) -> None:
        self._console, self._configs = console, {config.identity: config for config in configs}
        self._seconds, self._jobs = seconds, jobs
        self._ended: set[str] = set()
        self._start = time.monotonic()

    def __call__(self, event: "RunEvent") -> None:
        """Say what happened."""
        if event.kind == "started" and event.step:
            self._print(event, f"goes on at step {event.step:,} of {event.steps:,}")
        elif event.kind == "waiting":
            self._print(event, "another process works on it; waiting")
        elif event.kind in ("finished", "failed", "stopped"):
            self._ended.add(event.identity)
            said = {
                "finished": f"last 10 {percent(event.accuracy)}",
                "failed": f"failed: {one_line(event.text)}",
                "stopped": f"stopped at step {event.step:,} of {event.steps:,}",
            }[event.kind]
            self._print(event, f"{said}{self._left()}")

    def _left(self) -> str:
        left = [s for identity, s in self._seconds.items() if identity not in self._ended]
        if not left:
            return ""
        # What was estimated for the ended runs, against the time that they took, corrects what is still to come.
        done = sum(s for identity, s in self._seconds.items() if identity in self._ended)
        factor = (time.monotonic() - self._start) / done if done > 0 else 1 / self._jobs
        return f"; about {duration(sum(left) * factor)} left"

    def _print(self, event: "RunEvent", text: str) -> None:
        config = self._configs.get(event.identity)
        name = event.identity if config is None else run_words(config)
        self._console.print(f"[{len(self._ended)}/{len(self._configs)}] {name}: {text}")


class RunBars:
    """A bar over all runs, and one for each that is being trained."""

    def __init__(self, console: Console, configs: Sequence[RunConfig]) -> None:
        self._configs = {config.identity: config for config in configs}
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[said]}"),
            TimeElapsedColumn(),
            console=console,
        )
        self._all = self._progress.add_task("runs", total=len(self._configs), said="")
        self._tasks: dict[str, Any] = {}

    def __enter__(self) -> "RunBars":
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def __call__(self, event: "RunEvent") -> None:
        """Move the bars."""
        config = self._configs.get(event.identity)
        if config is None:
            return
        if event.identity not in self._tasks:
            self._tasks[event.identity] = self._progress.add_task(run_words(config), total=event.steps, said="")
        task = self._tasks[event.identity]
        if event.kind in ("started", "evaluated"):
            accuracy = percent(event.accuracy) if event.accuracy is not None else ""
            self._progress.update(task, completed=event.step, said=accuracy)
        elif event.kind == "waiting":
            self._progress.update(task, said="waiting for another process")
        else:
            self._progress.remove_task(task)
            self._progress.advance(self._all)
            if event.kind == "failed":
                self._progress.console.print(f"{run_words(config)}: failed: {one_line(event.text)}")


@contextlib.contextmanager
def shown(
    console: Console, configs: Sequence[RunConfig], seconds: dict[str, float], *, jobs: int, quiet: bool
) -> Iterator[Any]:
    """What the runner tells: bars on a terminal, else lines; nothing where it is to be quiet."""
    if quiet:
        yield lambda event: None
    elif console.is_terminal:
        with RunBars(console, configs) as bars:
            yield bars
    else:
        yield RunLines(console, configs, seconds, jobs)
