"""Many runs, each once: what is not finished in the store is trained, here or by worker processes.

    run_all(configs, store)            skip finished runs, go on with stopped and killed ones, begin the others
    run_all(configs, store, jobs=N)    the same in N processes on this machine, the threads divided among them

Several callers may work on one store: each run is trained by one of them, and the others wait for it. No result
depends on jobs, threads, or on which runs were trained side by side.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from gatefit.experiments.estimate import StepSeconds, model_seconds, run_seconds
from gatefit.experiments.events import RunEvent, Tell
from gatefit.experiments.processes import WorkerProcesses
from gatefit.experiments.record import RunRecord
from gatefit.experiments.store import Store
from gatefit.training.config import GATE_METHODS, RunConfig
from gatefit.training.folder import checkpoints

NETWORKS: Final = "gatefit.training.runs:build_network"
"""What makes the models of runs where nothing else is said: a function (configuration, data set) -> model by its
importable name, so that every worker process finds it."""
SMALL: Final = 10_000
"""Gates of a network below which calls cost more than arithmetic: seeds of it are trained side by side."""
MOST_SEEDS: Final = 16
PAUSE: Final = 0.5
"""Seconds between two looks at a run that another process works on."""


def run_all(
    configs: Iterable[RunConfig],
    store: Store,
    *,
    jobs: int = 1,
    threads: int | None = None,
    data_dir: Path | None = None,
    progress: Tell = lambda event: None,
    should_stop: Callable[[], bool] = lambda: False,
    diagnostics: bool = True,
    side_by_side: bool = True,
    build: str = NETWORKS,
    step_seconds: StepSeconds = model_seconds,
) -> list[RunRecord]:
    """Train what is not finished; returns every run's record, in order, each once.

    A failed run, or one whose process was killed, is recorded as failed with the reason; it is tried again, from its
    last checkpoint, by the next call. ``should_stop`` is asked after every step. ``build`` names what makes the models,
    ``step_seconds`` says what they cost, so that the longest come first.
    """
    if isinstance(jobs, bool) or not isinstance(jobs, int) or jobs < 1:
        raise ValueError(f"jobs must be a whole number >= 1, got {jobs!r}")
    wanted = {config.identity: config for config in (given.resolved() for given in configs)}
    store.plan(wanted.values())
    left = [config for identity, config in wanted.items() if store.status(identity) != "finished"]
    if left:
        units = plan_units(left, store, jobs=jobs, side_by_side=side_by_side, step_seconds=step_seconds)
        if jobs == 1:
            _here(units, store, threads, data_dir, progress, should_stop, diagnostics, build)
        else:
            workers = WorkerProcesses(
                store, jobs, threads=threads, data_dir=data_dir, diagnostics=diagnostics, build=build
            )
            workers.work(units, tell=progress, should_stop=should_stop)
    return [record for record in map(store.find, wanted) if record is not None]


def plan_units(
    configs: Sequence[RunConfig],
    store: Store,
    *,
    jobs: int = 1,
    side_by_side: bool = True,
    step_seconds: StepSeconds = model_seconds,
) -> list[list[RunConfig]]:
    """What is trained at one go: a run, or seeds of a small one that stand at the same step.

    With several jobs the longest units come first, so that no process is left alone with one at the end.
    """
    groups: dict[object, list[RunConfig]] = {}
    for config in configs:
        seedless = replace(config, seed=0, wiring_seed=0)
        together = side_by_side and _goes_side_by_side(config)
        key = (seedless, _position(store.run_folder(config.identity))) if together else config
        groups.setdefault(key, []).append(config)
    units = [unit for group in groups.values() for unit in _shares(group, jobs)]
    if jobs > 1:
        seconds = run_seconds([config for unit in units for config in unit], store, step_seconds=step_seconds)
        units.sort(key=lambda unit: -sum(seconds[config.identity] for config in unit))
    return units


def _goes_side_by_side(config: RunConfig) -> bool:
    if config.method not in GATE_METHODS or not 0 < sum(config.layer_widths) < SMALL:
        return False
    if config.readout != "group-sum" or config.patience is not None or config.validation_fraction:
        return False
    from gatefit.methods import method_class
    from gatefit.randomness import stream

    try:
        one_gate = method_class(config.method)(1, generator=stream(0, "plan"), **config.method_options())
    except ValueError:
        return False  # It will fail by itself, with the reason.
    return one_gate.independent_gates


def _position(folder: Path) -> str:
    """Where a run stands, as far as its files say without being read."""
    found = checkpoints(folder / "checkpoints")
    return "finished" if (folder / "result.json").exists() else found[-1].name if found else ""


def _shares(group: list[RunConfig], jobs: int) -> Iterator[list[RunConfig]]:
    """A group cut so that every job has a part of it."""
    size = min(MOST_SEEDS, max(2, -(-len(group) // jobs)))
    for i in range(0, len(group), size):
        yield group[i : i + size]


def _here(
    units: list[list[RunConfig]],
    store: Store,
    threads: int | None,
    data_dir: Path | None,
    tell: Tell,
    should_stop: Callable[[], bool],
    diagnostics: bool,
    build: str,
) -> None:
    from gatefit.experiments.worker import Worker, builder

    worker = Worker(
        store,
        threads=threads,
        data_dir=data_dir,
        diagnostics=diagnostics,
        build=builder(build),
        tell=tell,
        should_stop=should_stop,
    )
    told: set[str] = set()
    while units and not should_stop():
        busy = []
        for unit in units:
            if not should_stop():
                busy += [[config] for config in worker.do(unit)]
        for (config,) in busy:
            if config.identity not in told:
                told.add(config.identity)
                tell(RunEvent(config.identity, "waiting", 0, config.steps))
        units = busy
        if units:
            time.sleep(PAUSE)
