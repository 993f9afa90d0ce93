"""Runs trained into a store: what one process does with one run, or with a few seeds side by side.

    claim      the lock of the run's folder; a run that another process holds is left to it
    train      from its last checkpoint; an evaluation's rows are in the store before its checkpoint is written
    finish     the whole log and its figures in one transaction

A run that cannot be trained is marked as failed with the reason, and the others go on.
"""

import importlib
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from torch import nn

from gatefit.datasets import Dataset, DatasetError, load_dataset
from gatefit.experiments.events import RunEvent, Tell
from gatefit.experiments.store import Store, StoreError
from gatefit.network import LogicNetwork
from gatefit.training.checkpoint import TrainingState
from gatefit.training.config import RunConfig
from gatefit.training.diagnostics_observer import DiagnosticsObserver, diagnose_folder
from gatefit.training.folder import RunFolderInUseError
from gatefit.training.loop import Observer, TrainingDivergedError, TrainingResult
from gatefit.training.machine import code_version, machine
from gatefit.training.metrics import deployed
from gatefit.training.runs import Build, build_network, execute_together
from gatefit.training.side_by_side import NotSideBySideError


def builder(name: str) -> Build:
    """The function that makes a run's model, by its importable name "module:function"."""
    module, _, function = name.partition(":")
    try:
        found: Build = getattr(importlib.import_module(module), function)
    except (ImportError, AttributeError, ValueError) as error:
        raise ValueError(
            f'the builder of a run\'s model must be importable as "module:function", got {name!r} ({error})'
        ) from error
    return found


class Worker:
    """Trains runs into a store, one after another or side by side; the data set of the last ones is kept."""

    def __init__(
        self,
        store: Store,
        *,
        threads: int | None = None,
        data_dir: Path | None = None,
        diagnostics: bool = True,
        build: Build = build_network,
        tell: Tell = lambda event: None,
        should_stop: Callable[[], bool] = lambda: False,
    ) -> None:
        self.store, self.threads, self.data_dir, self.diagnostics = store, threads, data_dir, diagnostics
        self.build, self.tell, self.should_stop = build, tell, should_stop
        self._loaded: tuple[Any, Dataset] | None = None
        self._absent: dict[str, Exception] = {}

    def do(self, configs: Sequence[RunConfig]) -> list[RunConfig]:
        """Train what is not finished of these; several are seeds of one configuration. Returns those in use elsewhere.

        StoreError, where the store itself cannot be written, is not a failure of a run: it is raised.
        """
        configs = [config for config in configs if self.store.status(config.identity) != "finished"]
        if not configs:
            return []
        try:
            dataset = self._dataset(configs[0])
        except Exception as error:
            for config in configs:
                self._fail(config, error)
            return []
        if len(configs) > 1:
            try:
                self._train(configs, dataset)
                return []
            except (NotSideBySideError, RunFolderInUseError, TrainingDivergedError):
                pass  # One by one: each goes as far as it can.
            except StoreError:
                raise
            except Exception as error:
                for config in configs:
                    self._fail(config, error)
                return []
        busy = []
        for config in configs:
            if self.should_stop():
                break
            try:
                self._train([config], dataset)
            except RunFolderInUseError:
                busy.append(config)
            except StoreError:
                raise
            except Exception as error:
                self._fail(config, error)
        return busy

    def _dataset(self, config: RunConfig) -> Dataset:
        key = (config.dataset, config.dataset_options())
        if config.dataset in self._absent:
            raise self._absent[config.dataset]
        if self._loaded is None or self._loaded[0] != key:
            self._loaded = None  # Two large sets need not fit into memory at once.
            try:
                loaded = load_dataset(config.dataset, data_dir=self.data_dir, **config.dataset_options())
            except DatasetError as error:
                self._absent[config.dataset] = error  # Not to wait for a download that fails, run after run.
                raise
            self._loaded = (key, loaded)
        return self._loaded[1]

    def _train(self, configs: Sequence[RunConfig], dataset: Dataset) -> None:
        recorders = [Recorder(self, config, dataset, share=1 / len(configs)) for config in configs]
        runs = execute_together(
            configs,
            folders=[self.store.run_folder(config.identity) for config in configs],
            dataset=dataset,
            observers=[self._observers(recorder, dataset) for recorder in recorders],
            should_stop=self.should_stop,
            threads=self.threads,
            build=self.build,
        )
        for run, recorder in zip(runs, recorders, strict=True):
            if not recorder.began and self.diagnostics and isinstance(run.network, LogicNetwork):
                # Finished in its folder, not in the store: what the saved network shows is better than nothing.
                step, values = diagnose_folder(run.folder, dataset=dataset)
                self.store.write_diagnostics(run.config.identity, step, values)
            recorder.end(run.result)

    def _observers(self, recorder: "Recorder", dataset: Dataset) -> list[Observer]:
        if not self.diagnostics:
            return [recorder]
        identity = recorder.config.identity
        write = self.store.write_diagnostics
        return [recorder, DiagnosticsObserver(lambda step, values: write(identity, step, values), dataset)]

    def _fail(self, config: RunConfig, error: Exception) -> None:
        # A ValueError's message is made for people; of another error the kind says more than the message.
        text = str(error) if isinstance(error, ValueError | ArithmeticError) else f"{type(error).__name__}: {error}"
        self.store.fail(config.identity, text)
        self.tell(RunEvent(config.identity, "failed", 0, config.steps, text))


class Recorder(Observer):
    """Writes what happens to one run into the store; ``share`` is its part of the time that several runs take."""

    def __init__(self, worker: Worker, config: RunConfig, dataset: Dataset, *, share: float = 1.0) -> None:
        self.worker, self.config, self.dataset, self.share = worker, config, dataset, share
        self.began = False
        self._since = 0.0

    def started(self, config: RunConfig, network: nn.Module, state: TrainingState) -> None:
        """Somebody works on the run; rows that its checkpoint has are in the store too."""
        self.began, self._since = True, time.monotonic()
        store, identity = self.worker.store, self.config.identity
        store.begin(identity, code_version=code_version(), data_digest=self.dataset.digest, machine=machine())
        if state.metrics:
            store.write_metrics(identity, state.metrics)
        self._tell("started", state.step)

    def evaluated(self, state: TrainingState, network: nn.Module, metrics: dict[str, Any]) -> None:
        """One more row."""
        self.worker.store.write_metrics(self.config.identity, [metrics], seconds=self._seconds())
        self._tell("evaluated", state.step, accuracy=deployed(metrics, "test"))

    def end(self, result: TrainingResult) -> None:
        """The run is finished, or was asked to stop."""
        store, identity, state = self.worker.store, self.config.identity, result.state
        if result.finished:
            store.finish(identity, state.metrics, result.summary, seconds=self._seconds())
            self._tell("finished", state.step, accuracy=result.summary["last_10_accuracy"])
        else:
            store.write_metrics(identity, [], seconds=self._seconds())
            store.interrupt(identity, step=state.step)
            self._tell("stopped", state.step)

    def _seconds(self) -> float:
        if not self.began:
            return 0.0
        before, self._since = self._since, time.monotonic()
        return (self._since - before) * self.share

    def _tell(self, kind: str, step: int, *, accuracy: float | None = None) -> None:
        self.worker.tell(RunEvent(self.config.identity, kind, step, self.config.steps, accuracy=accuracy))
