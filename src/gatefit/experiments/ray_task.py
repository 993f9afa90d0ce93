"""One unit of runs as a Ray task, and the clerk that writes what tasks send (``experiments.ray_jobs``).

    task    Worker.do(unit), as in a worker process here; its store is a DistantStore
    clerk   one actor on the driver's machine with the real store: a method returns when its rows are on the disk

So every row is on the driver's disk before the checkpoint that follows it is written. Configurations, rows and files
travel as plain dictionaries and bytes.
"""

import shutil
import socket
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final, cast

import gatefit
from gatefit._requires import require
from gatefit.datasets.files import cache_dir
from gatefit.experiments.store import Store
from gatefit.training.checkpoint import write_atomically
from gatefit.training.config import RunConfig
from gatefit.training.folder import MADE

PAUSE: Final = 0.2
"""Seconds between two looks at what has happened."""
FILES: Final = ("config.json", "metrics.jsonl", "model.safetensors", MADE, "result.json")
"""What is sent back of a finished run; the last one says that it is finished."""


class RayError(ValueError):
    """Ray cannot be used as asked."""


def ray_library() -> Any:
    """Ray, or what to install."""
    return require("ray", "ray", "--ray")


class Clerk:
    """The actor that writes the store and keeps what is to be told, on the driver's machine."""

    def __init__(self, folder: str) -> None:
        self._store = Store.open(Path(folder), create=False)
        self._events: list[dict[str, Any]] = []
        self._stopping = False

    def write(self, method: str, arguments: tuple[Any, ...], options: dict[str, Any]) -> Any:
        """A method of the store, done when this returns."""
        return getattr(self._store, method)(*arguments, **options)

    def keep(self, identity: str, files: dict[str, bytes]) -> None:
        """The files of a run whose folder this machine does not see; the one that says "finished" is last."""
        folder = self._store.run_folder(identity)
        folder.mkdir(parents=True, exist_ok=True)
        for name in FILES:
            if name in files:
                write_atomically(folder / name, files[name])

    def tell(self, event: dict[str, Any]) -> None:
        """Something happened to a run."""
        self._events.append(event)

    def events(self) -> list[dict[str, Any]]:
        """What happened since the last call."""
        events, self._events = self._events, []
        return events

    def stop(self) -> None:
        """From now on every task is to save and end."""
        self._stopping = True

    def stopping(self) -> bool:
        """Whether tasks are to end."""
        return self._stopping

    def close(self) -> None:
        """Let go of the store."""
        self._store.close()


class DistantStore:
    """The store as a task sees it: each method returns when the clerk has done it."""

    def __init__(self, clerk: Any, runs: Path, *, shared: bool) -> None:
        self._clerk, self._runs, self._shared = clerk, runs, shared
        # A task that waits in its main thread lends its processors to the next task, and never gets them back.
        self._messenger = ThreadPoolExecutor(1, thread_name_prefix="gatefit-clerk")

    def run_folder(self, identity: str) -> Path:
        """Where this machine keeps the run's checkpoints."""
        return self._runs / identity

    def ask(self, method: str, *arguments: Any) -> Any:
        """The clerk's answer."""
        return self._messenger.submit(
            lambda: ray_library().get(getattr(self._clerk, method).remote(*arguments))
        ).result()

    def status(self, identity: str) -> str | None:
        """planned, running, finished or failed."""
        return cast("str | None", self.ask("write", "status", (identity,), {}))

    def begin(self, identity: str, **facts: Any) -> None:
        """``Store.begin``."""
        self.ask("write", "begin", (identity,), facts)

    def write_metrics(self, identity: str, rows: Sequence[Mapping[str, Any]], *, seconds: float = 0.0) -> None:
        """``Store.write_metrics``."""
        self.ask("write", "write_metrics", (identity, list(rows)), {"seconds": seconds})

    def write_diagnostics(self, identity: str, step: int, values: Mapping[str, Any]) -> None:
        """``Store.write_diagnostics``."""
        self.ask("write", "write_diagnostics", (identity, step, dict(values)), {})

    def finish(
        self, identity: str, metrics: Sequence[Mapping[str, Any]], summary: Mapping[str, Any], *, seconds: float = 0.0
    ) -> None:
        """``Store.finish``, after the driver has the files: a finished run is never trained again."""
        if not self._shared:
            folder = self.run_folder(identity)
            self.ask(
                "keep", identity, {name: (folder / name).read_bytes() for name in FILES if (folder / name).exists()}
            )
        self.ask("write", "finish", (identity, list(metrics), dict(summary)), {"seconds": seconds})

    def fail(self, identity: str, error: str) -> None:
        """``Store.fail``."""
        self.ask("write", "fail", (identity, error), {})

    def interrupt(self, identity: str, *, step: int | None = None) -> None:
        """``Store.interrupt``."""
        self.ask("write", "interrupt", (identity,), {"step": step})


def train_unit(clerk: Any, configs: list[dict[str, Any]], options: dict[str, Any]) -> None:
    """The task: train these runs here; what the driver cannot see of a finished one is sent to it."""
    if gatefit.__version__ != options["version"]:
        raise RayError(
            f"{socket.gethostname()} has gatefit {gatefit.__version__}, the driver {options['version']}; "
            "install the same on all machines"
        )
    from gatefit.experiments.work import Worker, builder

    shared = Path(options["mark"]).exists() if options["shared"] is None else options["shared"]
    runs = Path(options["folder"]) / "runs" if shared else cache_dir() / "ray" / options["place"]
    store, stop, ended = DistantStore(clerk, runs, shared=shared), threading.Event(), threading.Event()
    watch = threading.Thread(target=_watch, args=(clerk, stop, ended), daemon=True)
    watch.start()
    worker = Worker(
        cast(Store, store),
        threads=options["threads"],
        data_dir=Path(options["data_dir"]) if options["data_dir"] else None,
        diagnostics=options["diagnostics"],
        build=builder(options["build"]),
        tell=lambda event: store.ask("tell", asdict(event)),
        should_stop=stop.is_set,
    )
    unit = [RunConfig.from_dict(content) for content in configs]
    try:
        left = [] if store.ask("stopping") else worker.do(unit)
        while left and not stop.is_set():
            # A process that Ray believes dead, on a machine that it cannot reach, may still be at work.
            time.sleep(PAUSE)
            left = [busy for config in left for busy in worker.do([config])]
    finally:
        ended.set()
        watch.join()
    for config in () if shared else unit:
        # Also what an earlier life of this task left behind.
        if store.status(config.identity) == "finished":
            shutil.rmtree(store.run_folder(config.identity), ignore_errors=True)


def _watch(clerk: Any, stop: threading.Event, ended: threading.Event) -> None:
    """Listen for the wish to stop."""
    ray = ray_library()
    while not ended.wait(1.0):
        try:
            if ray.get(clerk.stopping.remote()):
                stop.set()
        except ray.exceptions.RayError:
            stop.set()  # The driver is gone: save and leave.
