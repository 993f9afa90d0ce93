"""Many runs on many machines, by Ray: each run, or each few small seeds, is a task with its own checkpoints.

    driver   plans, hands out tasks, tells progress
    clerk    an actor on the driver's machine, the only one that writes the store     (``experiments.ray_task``)
    task     trains as a worker process does here, and sends its rows to the clerk

SQLite is not made for network file systems, so no machine but the driver's opens the store. A task whose process or
machine dies is tried again by Ray and goes on from the run's last checkpoint; rows are keyed, so those that it writes
again are the same rows. Where the store's folder is seen by all machines, checkpoints are in it as always; where it is
not, they are in each machine's cache, and a finished run's files are sent back.
"""

import hashlib
import logging
import os
import secrets
import socket
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import gatefit
from gatefit._requires import require
from gatefit.experiments.estimate import StepSeconds, model_seconds
from gatefit.experiments.events import RunEvent, Tell
from gatefit.experiments.ray_task import PAUSE, Clerk, RayError, ray_library, train_unit
from gatefit.experiments.record import RunRecord
from gatefit.experiments.runner import NETWORKS, plan_units
from gatefit.experiments.store import Store, StoreError
from gatefit.training.config import RunConfig

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
__all__ = ["RayError", "connected", "run_on_ray"]


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
