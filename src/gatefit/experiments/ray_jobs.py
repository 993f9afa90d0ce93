"""Many runs on many machines, by Ray: each run, or each few small seeds, is a task with its own checkpoints.

    driver   plans, hands out tasks, tells progress
    clerk    an actor on the driver's machine, the only one that writes the store: it answers when rows are on the disk
    task     trains as a worker process does here (``Worker.do``), and sends its rows to the clerk

SQLite is not made for network file systems, so no machine but the driver's opens the store. A task whose process or
machine dies is tried again by Ray and goes on from the run's last checkpoint; rows are keyed, so those that it writes
again are the same rows; every row is on the driver's disk before the checkpoint that follows it is written. Where the
store's folder is seen by all machines, checkpoints are in it as always; where it is not, they are in each machine's
cache, and a finished run's files are sent back. Configurations, rows and files travel as dictionaries and bytes.
"""

import hashlib
import logging
import os
import secrets
import shutil
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final, cast

import gatefit
from gatefit._requires import require
from gatefit.datasets.files import cache_dir
from gatefit.experiments.estimate import StepSeconds, model_seconds
from gatefit.experiments.events import RunEvent, Tell
from gatefit.experiments.record import RunRecord
from gatefit.experiments.runner import NETWORKS, plan_units
from gatefit.experiments.store import Store, StoreError
from gatefit.training.checkpoint import write_atomically
from gatefit.training.config import RunConfig
from gatefit.training.folder import MADE, TEMPERATURE

RETRIES: Final = 3
ANSWER: Final = 5.0
"""Seconds in which a cluster's address must answer."""
LOCAL_MEMORY: Final = 200 * 2**20
"""Bytes of shared memory for a Ray that is started here: only a finished run's files pass through it."""
LOCAL_PATIENCE: Final = {
    "RAY_agent_register_timeout_ms": "3600000",
    "RAY_gcs_server_port_wait_time_s": "3600",
    "RAY_health_check_failure_threshold": "1000",
    "RAY_worker_register_timeout_seconds": "3600",
}
"""A Ray that is started here is one machine: there is no other to go to, so a part of it that is slow is waited for."""
PAUSE: Final = 0.2
"""Seconds between two looks at what has happened."""
FILES: Final = ("config.json", TEMPERATURE, "metrics.jsonl", "model.safetensors", MADE, "result.json")
"""What is sent back of a finished run; the last one says that it is finished."""


class RayError(ValueError):
    """Ray cannot be used as asked."""


def ray_library() -> Any:
    """Ray, or what to install."""
    return require("ray", "ray", "--ray")


def run_on_ray(
    configs: Iterable[RunConfig],
    store: Store,
    *,
    address: str,
    threads: int | None = None,
    data_dir: Path | None = None,
    progress: Tell = lambda event: None,
    should_stop: Callable[[], bool] = lambda: False,
    diagnostics: bool = True,
    side_by_side: bool = True,
    build: str = NETWORKS,
    step_seconds: StepSeconds = model_seconds,
    retries: int = RETRIES,
    shared: bool | None = None,
) -> list[RunRecord]:
    """Train what is not finished on the Ray at ``address``; returns every run's record, in order, each once.

    ``address`` is HOST:PORT of a cluster that this machine belongs to, "auto" for the one that runs here, or "local"
    to start one here and end it afterwards; a connection that is open already is used and left open. A task takes
    ``threads`` processors (None: one) and is tried again ``retries`` times when its process dies. ``shared`` says
    whether all machines see the store's folder; None finds out. No result depends on any of these.
    """
    ray_library()
    threads = 1 if threads is None else threads
    for name, value, least in (("threads", threads, 1), ("retries", retries, 0)):
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise ValueError(f"{name} must be a whole number >= {least}, got {value!r}")
    wanted = {config.identity: config for config in (given.resolved() for given in configs)}
    store.plan(wanted.values())
    left = [config for identity, config in wanted.items() if store.status(identity) != "finished"]
    if left:
        with connected(address) as processors:
            _check_size(threads)
            jobs = max(1, processors // threads)
            units = plan_units(left, store, jobs=jobs, side_by_side=side_by_side, step_seconds=step_seconds)
            folder = None if data_dir is None else str(data_dir.resolve())
            options = {"threads": threads, "data_dir": folder, "diagnostics": diagnostics, "build": build}
            _hand_out(units, store, options, progress, should_stop, retries, shared)
    return [record for record in map(store.find, wanted) if record is not None]


@contextmanager
def connected(address: str) -> Iterator[int]:
    """A connection to Ray, which knows this many processors; what was connected before stays so."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # As it will be; else Ray warns about it.
    ray = ray_library()
    opened = not ray.is_initialized()
    if opened:
        _check_address(address)
        for name, value in LOCAL_PATIENCE.items() if address == "local" else ():
            os.environ.setdefault(name, value)
        here: dict[str, Any] = {"include_dashboard": False, "object_store_memory": LOCAL_MEMORY}
        try:
            ray.init(
                address=address,
                log_to_driver=False,
                logging_level=logging.ERROR,
                **(here if address == "local" else {}),
            )
        except Exception as error:  # Ray's own say no more: where its parts do not start in time it raises Exception.
            raise RayError(_no_ray(address, str(error).strip().partition("\n")[0])) from error
    try:
        yield int(ray.cluster_resources().get("CPU", 1))
    finally:
        if opened:
            ray.shutdown()


def _check_address(address: str) -> None:
    """Refuse what Ray would wait for in vain, for minutes."""
    if address in ("auto", "local"):
        return
    if address.startswith("ray://"):
        raise RayError(
            f"{address} is Ray's client protocol, whose driver is no part of the cluster and cannot keep the store; "
            "run this on a machine of the cluster, with --ray HOST:PORT or --ray auto"
        )
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal():
        raise RayError(f"the address of a Ray is HOST:PORT, auto or local, got {address!r}")
    try:
        socket.create_connection((host, int(port)), timeout=ANSWER).close()
    except (OSError, OverflowError) as error:
        raise RayError(_no_ray(address, str(error))) from error


def _check_size(threads: int) -> None:
    """Refuse tasks that would wait for ever."""
    machines = [int(node["Resources"].get("CPU", 0)) for node in ray_library().nodes() if node["Alive"]]
    if threads > max(machines, default=0):
        raise RayError(
            f"a task asks for {threads} processors, and no machine of this Ray has more than "
            f"{max(machines, default=0)}; use fewer --threads"
        )


def _no_ray(address: str, reason: str) -> str:
    return (
        f"there is no Ray at {address} ({reason}); start one with `ray start --head`, use --ray local, "
        "or --jobs on this machine"
    )


def _hand_out(
    units: Sequence[list[RunConfig]],
    store: Store,
    options: Mapping[str, Any],
    progress: Tell,
    should_stop: Callable[[], bool],
    retries: int,
    shared: bool | None,
) -> None:
    ray = ray_library()
    strategies: Any = require("ray.util.scheduling_strategies", "ray", "--ray")
    folder = store.folder.resolve()
    mark = folder / f".ray-{secrets.token_hex(8)}"
    task_options = {
        **options,
        "version": gatefit.__version__,
        "folder": str(folder),
        "mark": str(mark),
        "shared": shared,
        # The same after a restart of the driver: what a machine has in its cache is found again.
        "place": hashlib.sha256(f"{socket.gethostname()}:{folder}".encode()).hexdigest()[:12],
    }
    here = strategies.NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
    clerk = (
        ray.remote(Clerk)
        .options(num_cpus=0, max_restarts=-1, max_task_retries=-1, scheduling_strategy=here)
        .remote(str(folder))
    )
    train = ray.remote(num_cpus=options["threads"], max_retries=retries, retry_exceptions=False)(train_unit)
    tasks: dict[Any, list[RunConfig]] = {}
    mark.touch()
    try:
        for unit in units:
            name = "gatefit " + " ".join(config.identity for config in unit)
            tasks[train.options(name=name).remote(clerk, [asdict(config) for config in unit], task_options)] = unit
        while tasks:
            if should_stop():
                clerk.stop.remote()  # Again and again: a clerk that was restarted has forgotten it.
            ended, _ = ray.wait(list(tasks), timeout=PAUSE)
            for task in ended:
                _take_leave(task, tasks.pop(task), store, retries, progress)
            for event in ray.get(clerk.events.remote()):
                progress(RunEvent(**event))
    finally:
        mark.unlink(missing_ok=True)
        for task in tasks:
            ray.cancel(task, force=True)
        ray.get(clerk.close.remote())
        ray.kill(clerk)


def _take_leave(task: Any, unit: Sequence[RunConfig], store: Store, retries: int, progress: Tell) -> None:
    """What became of a task; the reason, where it was given up."""
    ray = ray_library()
    try:
        ray.get(task)
    except ray.exceptions.RayTaskError as error:
        # A disk that is full, a machine with another version: no other run will fare better.
        cause = error.cause
        raise (type(cause)(str(cause)) if isinstance(cause, StoreError | RayError) else error) from None
    except ray.exceptions.RayError as error:
        reason = " ".join(str(error).strip().splitlines()[:1])
        times = f"{retries + 1} times, at last with" if retries else "with"
        text = f"its process died {times} {type(error).__name__}: {reason}"
        for config in unit:
            if store.status(config.identity) != "finished":
                store.fail(config.identity, text)
                progress(RunEvent(config.identity, "failed", 0, config.steps, text))


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
    from gatefit.experiments.worker import Worker, builder

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
