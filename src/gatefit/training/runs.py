"""Runs: train what a configuration describes in a folder of its own (``training.folder``), or go on there.

    execute(config)              one run
    execute_together(configs)    runs that a ``Strategy`` trains with one another, or shares with other processes

A run given more steps goes on from what it has trained: its checkpoints are the beginning of the longer run.

    checkpoints of N steps   ->   those that a run of more steps passes through too, under that run's name

Only where no step depends on which is the last: with a constant learning rate (after its warm-up), images that are
moved throughout, and wirings that are not regrown for a part of the run. A run evaluates after its last step, a longer
one only at multiples of evaluate_every: a state that has seen another evaluation is dropped, and the steps since the
state before it are trained again. So every bit is that of a run that was started with more steps.
"""

import contextlib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from time import monotonic, process_time
from typing import Any, Final, TypeAlias

from gatefit._requires import require

require("torch", "train", "training")

import numpy as np
import safetensors
import torch
from jaxtyping import Shaped
from torch import Tensor, nn

from gatefit.datasets import Dataset, load_dataset
from gatefit.datasets.splits import stratified_split
from gatefit.network import LogicNetwork
from gatefit.ops.threads import kernel_threads
from gatefit.training.augmentation import Augmentation, AugmentedImages
from gatefit.training.checkpoint import CheckpointError, TrainingState, read_tensors, serialise, write_atomically
from gatefit.training.config import DataConfig, NetworkConfig, RunConfig
from gatefit.training.data import BitSource, TrainingData, bit_source
from gatefit.training.device import check_free, placed
from gatefit.training.folder import (
    MADE,
    TEMPERATURE,
    RunFolderError,
    check_config,
    checkpoints,
    default_folder,
    locked,
    read_config,
    read_finished,
    read_made,
)
from gatefit.training.loop import (
    Learner,
    Model,
    NothingToTrainError,
    Observer,
    Strategy,
    TrainableModel,
    TrainingResult,
    train_together,
)
from gatefit.training.machine import code_version, machine, same_bits_on, then
from gatefit.training.side_by_side import NotSideBySideError, SideBySide, can_lie_side_by_side
from gatefit.training.temperature import SearchStoppedError, TemperatureTrial, find_temperature, read_search
from gatefit.wirings import WiringOptions
from gatefit.wirings.local import image_order

NETWORK_FORMAT: Final = "gatefit-network-1"

Build: TypeAlias = Callable[[RunConfig, Dataset], Model]
"""The untrained model of a run."""


@dataclass(frozen=True)
class Run:
    """A finished or interrupted run."""

    folder: Path
    config: RunConfig
    network: Model
    result: TrainingResult


def build_network(config: RunConfig, dataset: Dataset) -> LogicNetwork:
    """The untrained network of a run."""
    assert config.layer_widths, "resolve the configuration first"
    return LogicNetwork(
        dataset.encoder.bits,
        len(dataset.class_names),
        config.layer_widths,
        skips=config.skips,
        method=config.method,
        wiring=config.wiring,
        wiring_options=_wiring_options(config.network, dataset),
        votes=config.votes or "last",
        readout=config.readout,
        readout_temperature="auto" if config.readout_temperature is None else config.readout_temperature,
        precision=config.precision or "single",
        seed=config.seed,
        wiring_seed=config.wiring_seed,
        encoder=dataset.encoder,
        class_names=dataset.class_names,
        **config.method_options(),
    )


def _wiring_options(config: NetworkConfig, dataset: Dataset) -> WiringOptions:
    if "local" not in config.wirings or dataset.image_shape is None:  # the order takes a while for many bits
        return WiringOptions(reach=config.reach, **config.wiring_options())
    features = np.array([rule.feature for rule in dataset.encoder.rules])
    order = image_order(features, dataset.image_shape)
    return WiringOptions(order=order, reach=config.reach, **config.wiring_options())


def augmentation_of(config: DataConfig, dataset: Dataset) -> Augmentation:
    """How a run moves its training images; refused where there are none."""
    augmentation = Augmentation(config.shift, config.flip, config.rotate, config.zoom, config.elastic)
    if augmentation and (dataset.image_shape is None or dataset.x_train.dtype != np.uint8):
        names = augmentation.names()
        raise ValueError(f"{dataset.name} has no images to move by {' or '.join(names)}; leave {', '.join(names)} out")
    if dataset.image_shape is not None:
        augmentation.check(dataset.image_shape)
    return augmentation


def training_data(config: RunConfig, dataset: Dataset) -> TrainingData:
    """The sets a run reads: train and test, or train and validation where a part is kept apart."""
    augmentation = augmentation_of(config, dataset)
    until = None if config.augment_until == 1 else math.ceil(config.augment_until * config.steps)

    def training_source(rows: Shaped[np.ndarray, "samples features"]) -> BitSource:
        if dataset.image_shape is None or not augmentation:
            return bit_source(rows, dataset.encoder)
        return AugmentedImages(rows, dataset.image_shape, dataset.encoder, augmentation, until)

    y_train, y_test = (torch.as_tensor(y, dtype=torch.int64) for y in (dataset.y_train, dataset.y_test))
    if not config.validation_fraction:
        return TrainingData(
            training_source(dataset.x_train),
            y_train,
            bit_source(dataset.x_test, dataset.encoder),
            y_test,
            whole_batches=_whole_batches(config, len(y_test)),
            digest=dataset.digest,
        )
    kept, apart = stratified_split(y_train.numpy(), test_fraction=config.validation_fraction, seed=config.seed)
    if not len(apart):
        raise ValueError(
            f"validation_fraction={config.validation_fraction} of {len(y_train)} samples is none; use a larger one"
        )
    return TrainingData(
        training_source(dataset.x_train[kept]),
        y_train[kept],
        bit_source(dataset.x_train[apart], dataset.encoder),
        y_train[apart],
        keep_best=True,
        whole_batches=_whole_batches(config, len(apart)),
        digest=dataset.digest,
    )


def _whole_batches(config: RunConfig, samples: int) -> int | None:
    if not config.whole_batches:
        return None
    if samples < config.batch_size:
        raise ValueError(
            f"whole_batches needs at least a batch to evaluate, got {samples} samples and "
            f"batch_size={config.batch_size}; leave it out, or use batch_size={samples} or less"
        )
    return samples // config.batch_size * config.batch_size


def execute(
    config: RunConfig,
    *,
    folder: Path | None = None,
    data_dir: Path | None = None,
    observers: Sequence[Observer] = (),
    should_stop: Callable[[], bool] = lambda: False,
    threads: int | None = None,
    dataset: Dataset | None = None,
    build: Build = build_network,
    device: torch.device | str = "cpu",
) -> Run:
    """Train what ``config`` describes in its folder, going on from its last checkpoint; a finished run is read back.

    ``build`` makes the model; ``device`` is where it is trained (``device.choose_device``). A run that was trained
    there for fewer steps, at a constant learning rate, goes on.
    """
    (run,) = execute_together(
        [config],
        folders=None if folder is None else [folder],
        data_dir=data_dir,
        observers=[observers],
        should_stop=should_stop,
        threads=threads,
        dataset=dataset,
        build=build,
        device=device,
    )
    return run


def execute_together(
    configs: Sequence[RunConfig],
    *,
    folders: Sequence[Path] | None = None,
    data_dir: Path | None = None,
    observers: Sequence[Sequence[Observer]] | None = None,
    should_stop: Callable[[], bool] = lambda: False,
    threads: int | None = None,
    dataset: Dataset | None = None,
    build: Build = build_network,
    strategy: Strategy | None = None,
    device: torch.device | str = "cpu",
) -> list[Run]:
    """What ``execute`` does for one run, for runs that ``strategy`` trains step by step with one another.

    None trains one run by this process, and several, which differ in their seeds alone, side by side. Of a strategy of
    several processes the one that writes has the run; the others have none, need no folder, and need the data.
    """
    strategy = strategy or (Strategy() if len(configs) == 1 else SideBySide())
    configs = [config.resolved() for config in configs]
    folders = folders or [default_folder(config) for config in configs]
    watching = observers or [()] * len(configs)
    if len(configs) > 1 and any(config.validation_fraction for config in configs):
        # Their validation sets, which depend on the seed, would differ too.
        raise NotSideBySideError("side by side needs validation_fraction=0; train these runs one by one")
    place = torch.device(device)
    if len(configs) > 1 and place.type != "cpu":
        raise NotSideBySideError(f"side by side needs the CPU, got {device}; train these runs one by one")
    with contextlib.suppress(NothingToTrainError), strategy.announced(), contextlib.ExitStack() as locks:
        if dataset is None:
            dataset = load_dataset(configs[0].dataset, data_dir=data_dir, **configs[0].dataset_options())
        # Before a folder is made: what cannot be built, or does not fit the device, leaves nothing behind.
        networks = [build(_with_temperature(config, None), dataset) for config in configs]
        augmentation_of(configs[0], dataset)
        data = None
        if place.type != "cpu":
            data = training_data(configs[0], dataset)
            check_free(networks, data, place, configs[0].batch_size)
        if configs[0].readout_temperature == "search":
            _check_search(configs, strategy)
        searched = None
        if strategy.writes:
            finished = [_taken(locks, folder, config) for folder, config in zip(folders, configs, strict=True)]
            if configs[0].readout_temperature == "search":
                begun = read_clocks()
                try:
                    found = _searched(configs[0], folders[0], dataset, build, watching[0], should_stop, threads, device)
                except SearchStoppedError:
                    return [Run(folders[0], configs[0], networks[0], TrainingResult(TrainingState(), False))]
                networks = [build(_with_temperature(configs[0], found), dataset)]
                searched = {name: now - begun[name] for name, now in read_clocks().items()}
        learners = [
            Learner(config, network, observers=own)
            for config, network, own in zip(configs, networks, watching, strict=True)
        ]
        if strategy.writes:
            if all(finished):
                return [_read_back(*each) for each in zip(folders, configs, networks, strict=True)]
            if any(finished):
                ended = folders[finished.index(True)]
                raise NotSideBySideError(f"the run in {ended} is finished already; train the others one by one")
            for learner, folder in zip(learners, folders, strict=True):
                write_atomically(folder / "config.json", learner.config.to_json().encode())
                learner.folder = folder / "checkpoints"
                kept = (MetricsFile(folder), ProvenanceFile(folder, share=1 / len(learners), before=searched))
                learner.observers = (*learner.observers, *kept)
        data = training_data(configs[0], dataset) if data is None else data
        with placed(networks, data, place, configs[0].batch_size) as there:
            results = train_together(learners, there, strategy=strategy, should_stop=should_stop, threads=threads)
        if strategy.writes:
            runs = [Run(*each) for each in zip(folders, configs, networks, results, strict=True)]
            for run in runs:
                if run.result.finished:
                    save_network(run.network, run.folder / "model.safetensors")
                    save_result(run.folder, run.config, dataset, run.result)
            return runs
    return []


def _with_temperature(config: RunConfig, found: float | None) -> RunConfig:
    """What is built: a temperature that is searched for is a number by then, or that of the rule until then."""
    return replace(config, readout_temperature=found) if config.readout_temperature == "search" else config


def _check_search(configs: Sequence[RunConfig], strategy: Strategy) -> None:
    if len(configs) > 1:
        raise NotSideBySideError("side by side needs one readout_temperature; train runs that search it one by one")
    if not strategy.alone:
        raise ValueError(
            "readout_temperature='search' is done by one process; search it without torchrun, and give the number that "
            "is found"
        )


def _searched(
    config: RunConfig,
    folder: Path,
    dataset: Dataset,
    build: Build,
    observers: Sequence[Observer],
    should_stop: Callable[[], bool],
    threads: int | None,
    device: torch.device | str,
) -> float:
    """The temperature in a run's folder, searched for before its first step: whoever goes on takes it from there."""
    found = read_search(folder)
    if found is None:

        def tried(trial: TemperatureTrial) -> None:
            for observer in observers:
                observer.tried(config, trial.temperature, trial.accuracy)

        found = find_temperature(
            config,
            lambda own: build(own, dataset),
            training_data(config, dataset),
            threads=threads,
            should_stop=should_stop,
            tried=tried,
            device=device,
        )
        # In this order: a temperature belongs to the configuration beside it.
        write_atomically(folder / "config.json", config.to_json().encode())
        write_atomically(folder / TEMPERATURE, found.to_json().encode())
    return found.temperature


def _taken(locks: contextlib.ExitStack, folder: Path, config: RunConfig) -> bool:
    """Hold a run's folder; whether the run is finished there."""
    locks.enter_context(locked(folder))
    take_folder(folder, config)
    return (folder / "result.json").exists()


def _read_back(folder: Path, config: RunConfig, network: Model) -> Run:
    """A finished run as its folder has it."""
    load_into(network, folder / "model.safetensors")
    rows = read_finished(folder)
    state = TrainingState(step=rows[-1]["step"], metrics=rows)
    return Run(folder, config, network, TrainingResult(state, True, validated=bool(config.validation_fraction)))


def take_folder(folder: Path, config: RunConfig) -> None:
    """Refuse a folder of another configuration; make that of a shorter run the folder of ``config``, the longer one.

    Killed in between, the same call goes on. The caller holds the folder's lock.
    """
    if not (folder / "config.json").exists():
        return
    shorter = read_config(folder)
    if not _same_but_steps(shorter, config) or shorter.steps >= config.steps:
        check_config(folder, config)
        return
    if config.readout_temperature == "search":
        raise RunFolderError(
            f"{folder} holds a run of {shorter.steps} steps whose temperature was searched for by trainings as long as "
            f"that asks for, so it cannot go on to {config.steps}; use another --out folder"
        )
    if config.schedule != "constant":
        raise RunFolderError(
            f"{folder} holds a run of {shorter.steps} steps whose {config.schedule} schedule ends there, so it cannot "
            f"go on to {config.steps}; use another --out folder"
        )
    if part := _part_of_the_steps(config):
        raise RunFolderError(
            f"{folder} holds a run of {shorter.steps} steps, and {part} a part of them, which is another part of "
            f"{config.steps}, so it cannot go on; use another --out folder"
        )
    states = checkpoints(folder / "checkpoints")
    passed = [path for path in states if _is_passed(path, config)]
    if not passed and shorter.steps >= config.evaluate_every and (folder / "result.json").exists():
        raise RunFolderError(
            f"{folder} holds a finished run of {shorter.steps} steps without a checkpoint to go on from; put its "
            f"checkpoints folder back, or train {config.steps} steps from the beginning in another --out folder"
        )
    for name in ("result.json", "model.safetensors"):
        (folder / name).unlink(missing_ok=True)
    for path in states:
        if path in passed:
            tensors, metadata = read_tensors(path)
            write_atomically(path, serialise(tensors, {**metadata, "config": config.to_json()}))
        else:
            path.unlink()
    write_atomically(folder / "config.json", config.to_json().encode())


def _part_of_the_steps(config: RunConfig) -> str | None:
    """What a run does for a part of its steps, in words."""
    if config.augment_until < 1:
        return "moves its images for"
    regrows = "learned" in config.wirings and config.regrow_every != 0 and config.regrow_until != 1
    return "regrows its wiring for" if regrows else None


def _same_but_steps(one: RunConfig, other: RunConfig) -> bool:
    return {**asdict(one), "steps": other.steps} == asdict(other)


def _is_passed(path: Path, config: RunConfig) -> bool:
    """Whether this is a state of ``config`` too: of the same run but for its end, and evaluated as that would be."""
    try:
        with safetensors.safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
        saved, state = RunConfig.from_dict(json.loads(metadata["config"])), json.loads(metadata["state"])
        rows = [row["step"] for row in state["metrics"]]
    except (safetensors.SafetensorError, ValueError, LookupError, TypeError):
        return False  # Damaged: there may be another.
    return _same_but_steps(saved, config) and all(step % config.evaluate_every == 0 for step in rows)


def save_result(folder: Path, config: RunConfig, dataset: Dataset, result: TrainingResult) -> None:
    """Write a run's figures, last of all its files: it is finished."""
    content = {"config": config.identity, "data": dataset.digest, **result.summary}
    write_atomically(folder / "result.json", json.dumps(content, indent=2).encode())


def log_text(state: TrainingState) -> bytes:
    """metrics.jsonl: one row an evaluation."""
    return "".join(json.dumps(row) + "\n" for row in state.metrics).encode()


class MetricsFile(Observer):
    """Keeps a run folder's metrics.jsonl."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def _write(self, state: TrainingState) -> None:
        write_atomically(self.folder / "metrics.jsonl", log_text(state))

    def started(self, config: RunConfig, network: nn.Module, state: TrainingState) -> None:
        """Rows written after the checkpoint that the run resumes from will be computed again."""
        self._write(state)

    def evaluated(self, state: TrainingState, network: nn.Module, metrics: dict[str, Any]) -> None:
        """One more row."""
        self._write(state)


CLOCKS: Final[Mapping[str, Callable[[], float]]] = {"seconds": monotonic, "processor_seconds": process_time}
"""What a run takes: time that passes, and time of processors, which a busy machine does not lengthen."""


def read_clocks() -> dict[str, float]:
    """The time by each clock."""
    return {name: clock() for name, clock in CLOCKS.items()}


class ProvenanceFile(Observer):
    """Keeps a run folder's made.json: what the run was made with, and how long it took.

        {"code_version": "0.2.0+COMMIT", "machine": {...}, "same_bits_on": ..., "seconds": 12.5,
         "processor_seconds": 12.1, "threads": 1}

    A file of its own: a run's other files have the same bytes whenever, in however many parts and on however many
    threads it was trained, on every machine that ``same_bits_on`` names. Version, machine and threads are the last that
    worked on the run; the seconds are those of all of them, and null where an earlier part did not note its own.
    ``share`` is the run's part of the time that several runs take together, ``before`` the seconds that were spent on
    it before its first step.
    """

    def __init__(self, folder: Path, *, share: float = 1.0, before: Mapping[str, float] | None = None) -> None:
        self.folder, self.share, self.before = folder, share, before or dict.fromkeys(CLOCKS, 0.0)
        self._same_bits_on = ""
        self._spent: dict[str, float | None] = {}
        self._since: dict[str, float] = {}
        self._threads = 0

    def _write(self) -> None:
        before, self._since = self._since, read_clocks()
        self._spent = {
            name: None if spent is None else round(spent + (self._since[name] - before[name]) * self.share, 3)
            for name, spent in self._spent.items()
        }
        content = {
            "code_version": code_version(),
            "machine": machine(),
            "same_bits_on": self._same_bits_on,
            **self._spent,
            "threads": self._threads,
        }
        write_atomically(self.folder / MADE, json.dumps(content, indent=2).encode(), sync=False)

    def started(self, config: RunConfig, network: nn.Module, state: TrainingState) -> None:
        """Before the first step of this process."""
        device = next((parameter.device for parameter in network.parameters()), None)
        before = read_made(self.folder).get("same_bits_on") if state.step else None
        self._same_bits_on = then(before, same_bits_on(own_kernels_alone(network), device))
        self._threads = kernel_threads()
        self._since = read_clocks()
        earlier = read_made(self.folder) if state.step else self.before
        self._spent = {name: earlier.get(name) for name in CLOCKS}
        self._write()

    def evaluated(self, state: TrainingState, network: nn.Module, metrics: dict[str, Any]) -> None:
        """After every evaluation."""
        self._write()

    def finished(self, state: TrainingState, network: nn.Module) -> None:
        """After the last step of this process."""
        self._write()


def own_kernels_alone(network: nn.Module) -> bool:
    """Whether every sum of its training is known to be written down by a kernel.

    Not a matrix product (a linear readout, models of other kinds), nor what torch computes for all gates of a layer.
    """
    return isinstance(network, LogicNetwork) and can_lie_side_by_side(network)


def save_network(network: Model, path: Path) -> None:
    """Write a network's state_dict: parameters, wiring, encoder and configuration in one safetensors file."""
    tensors: dict[str, Tensor] = dict(network.state_dict())
    write_atomically(path, serialise(tensors, {"format": _file_format(network)}))


def _file_format(network: Model) -> str:
    return network.file_format if isinstance(network, TrainableModel) else NETWORK_FORMAT


def load_into(network: Model, path: Path) -> None:
    """Make ``network`` what ``save_network`` wrote of one like it; in eval mode."""
    tensors, metadata = read_tensors(path)
    if metadata.get("format") != _file_format(network):
        raise CheckpointError(f"{path} does not hold what its configuration says: format {metadata.get('format')!r}")
    try:
        network.load_state_dict(tensors)
    except (KeyError, TypeError, RuntimeError, ValueError) as error:
        raise CheckpointError(f"{path} is damaged: {error}") from error
    network.eval()


def holds_network(path: Path) -> bool:
    """Whether this is the file of a logic network, not of a model of another kind."""
    try:
        with safetensors.safe_open(path, framework="pt") as file:
            return (file.metadata() or {}).get("format") == NETWORK_FORMAT
    except (OSError, safetensors.SafetensorError):
        return False


def load_network(path: Path) -> LogicNetwork:
    """Read a network written by ``save_network``; in eval mode."""
    if not path.exists():
        raise CheckpointError(f"there is no trained network at {path}; finish the run with `gatefit train`")
    tensors, metadata = read_tensors(path)
    if metadata.get("format") != NETWORK_FORMAT:
        raise CheckpointError(f"{path} is not a gatefit network: format {metadata.get('format')!r}")
    try:
        network = LogicNetwork.from_state_dict(tensors)
    except (KeyError, TypeError, RuntimeError, ValueError) as error:
        raise CheckpointError(f"{path} is damaged: {error}") from error
    return network.eval()
