"""What verbs that train many runs share: which seeds, which data are at hand, how far it is, how to go on."""

import contextlib
import shlex
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeAlias

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from gatefit.cli.datasets import load, locate
from gatefit.cli.errors import UserError, one_line
from gatefit.cli.options import given_options
from gatefit.cli.output import duration, percent
from gatefit.training.config import RunConfig

if TYPE_CHECKING:
    from gatefit.experiments.events import RunEvent

Words: TypeAlias = Callable[[RunConfig], str]
"""A run in a few words."""

MOST_SEEDS = 1000
"""Beyond it somebody has named a seed, not said how many."""


def parse_seeds(given: str | None, default: tuple[int, ...]) -> tuple[int, ...]:
    """ "3" is the first three, "0,2" and "7," are lists."""
    if given is None:
        return default
    try:
        numbers = [int(word) for word in given.split(",") if word.strip()]
    except ValueError:
        numbers = []
    if not numbers or min(numbers) < 0 or (numbers == [0] and "," not in given):
        raise UserError(f"--seeds is a number of seeds or a list of them, as in 3 or 0,1,2; got {given!r}")
    if "," not in given and numbers[0] > MOST_SEEDS:
        raise UserError(
            f"--seeds {given} asks for {numbers[0]:,} seeds, at most {MOST_SEEDS:,}; for one seed: {given},"
        )
    return tuple(dict.fromkeys(numbers)) if "," in given else tuple(range(numbers[0]))


def availability(names: Iterable[str], data_dir: Path | None, *, download: bool, quiet: bool = False) -> dict[str, str]:
    """The data sets that cannot be had, with the reason; where ``download`` says so, fetching them is tried."""
    from gatefit.datasets import DATASETS, DatasetError

    absent = {}
    for name in sorted(names):
        info = DATASETS[name]
        found, _ = locate(name, info, data_dir)
        if found:
            continue
        if not download:
            absent[name] = "not here; downloaded when first used" if info.download else "not here; see --data-dir"
            continue
        try:
            load(name, data_dir, {}, quiet=quiet)
        except (DatasetError, UserError, ImportError, OSError) as error:
            absent[name] = str(error)
    return absent


def again(context: typer.Context) -> str:
    """The command that goes on, quoted for a shell."""
    given = given_options(context)
    words = ["gatefit", context.info_name or ""]
    for parameter in context.command.params:
        if parameter.param_type_name == "argument":
            words += given.pop(parameter.name or "", None) or ()
    for parameter in context.command.params:
        value = given.get(parameter.name or "")
        if isinstance(value, bool):
            words += [parameter.opts[0]] if value else []
        elif isinstance(value, list | tuple):
            words += [word for each in value for word in (parameter.opts[0], str(each))]
        elif value is not None:
            words += [parameter.opts[0], str(value)]
    return shlex.join(words)


class RunLines:
    """One line when a run begins anew and one when it ends, with how many there are and the time left."""

    def __init__(
        self, console: Console, configs: Sequence[RunConfig], seconds: dict[str, float], jobs: int, words: Words
    ) -> None:
        self._console, self._configs = console, {config.identity: config for config in configs}
        self._seconds, self._jobs, self._words = seconds, jobs, words
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
        name = event.identity if config is None else self._words(config)
        self._console.print(f"[{len(self._ended)}/{len(self._configs)}] {name}: {text}")


class RunBars:
    """A bar over all runs, and one for each that is being trained."""

    def __init__(self, console: Console, configs: Sequence[RunConfig], words: Words) -> None:
        self._configs, self._words = {config.identity: config for config in configs}, words
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
            self._tasks[event.identity] = self._progress.add_task(self._words(config), total=event.steps, said="")
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
                self._progress.console.print(f"{self._words(config)}: failed: {one_line(event.text)}")


@contextlib.contextmanager
def run_progress(
    console: Console,
    configs: Sequence[RunConfig],
    seconds: dict[str, float],
    *,
    jobs: int,
    quiet: bool,
    words: Words,
) -> Iterator[Any]:
    """What the runner tells: bars on a terminal, else lines; nothing where it is to be quiet."""
    if quiet:
        yield lambda event: None
    elif console.is_terminal:
        with RunBars(console, configs, words) as bars:
            yield bars
    else:
        yield RunLines(console, configs, seconds, jobs, words)
