"""Kernels are compiled when they are first called on a machine, and kept; a line says so where it takes over a second.

The library is silent: this listens to numba while a verb runs, and counts the seconds.
"""

import contextlib
import functools
import importlib
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, Final

import typer

SILENT_SECONDS: Final = 1.0
MESSAGE: Final = "compiling kernels for this machine, once: they are kept for the next time"
_PURPOSES: Final = {
    "gatefit.circuit.engine": "run circuits",
    "gatefit.circuit.verify": "answer questions",
    "gatefit.circuit": "optimise and prove circuits",
    "gatefit.ops": "train",
    "gatefit.training": "train",
}
"""What the kernels of a room are for."""


def message_for(module: str) -> str:
    """What is said when a kernel of this module is compiled."""
    purpose = next((what for room, what in _PURPOSES.items() if module.startswith(room)), None)
    return MESSAGE if purpose is None else f"{MESSAGE} (to {purpose}; `gatefit warm-up` compiles all of them)"


class Compilation:
    """A listener of numba's compiler, which one thread at a time can use."""

    def __init__(self, *, speak: bool) -> None:
        self.seconds = 0.0
        self._speak, self._depth, self._begun = speak, 0, 0.0
        self._alarm: threading.Timer | None = None
        self._module = ""

    def notify(self, event: Any) -> None:
        """A kernel begins to be compiled, or is done; one that calls another compiles it on the way."""
        self._depth += 1 if event.is_start else -1
        if event.is_start and self._depth == 1:
            self._begun = time.perf_counter()
            self._module = event.data["dispatcher"].py_func.__module__
            if self._speak:
                self._alarm = threading.Timer(max(0.0, SILENT_SECONDS - self.seconds), self._tell)
                self._alarm.daemon = True
                self._alarm.start()
        elif self._depth == 0:
            self.seconds += time.perf_counter() - self._begun
            if self._alarm is not None:
                self._alarm.cancel()

    def _tell(self) -> None:
        if self._speak:
            self._speak = False
            typer.echo(message_for(self._module), err=True)


@contextlib.contextmanager
def compilation(*, speak: bool | None = None) -> Iterator[Compilation]:
    """Listen; ``speak`` on stderr, or (None) on a terminal only."""
    event: Any = importlib.import_module("numba.core.event")  # It carries no types.
    told = Compilation(speak=sys.stderr.isatty() if speak is None else speak)
    event.Listener.register(Compilation)
    event.register("numba:compile", told)
    try:
        yield told
    finally:
        event.unregister("numba:compile", told)


def announced(verb: Callable[..., None]) -> Callable[..., None]:
    """A verb that says on a terminal what it is busy with before it begins."""

    @functools.wraps(verb)
    def run(*arguments: Any, **options: Any) -> None:
        with compilation():
            verb(*arguments, **options)

    return run
