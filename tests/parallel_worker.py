"""What the processes of tests/training/test_parallel.py do; one process alone does the same for comparison.

    torchrun --standalone --nproc-per-node 2 tests/parallel_worker.py FOLDER
    RANK=0 WORLD_SIZE=2 ... python tests/parallel_worker.py FOLDER forever      (or twice)

Every case trains in float64, so that only the order of summation differs. Results go to FOLDER/CASE-RANK.safetensors.
"""

import json
import os
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import torch
from safetensors.torch import save_file

from gatefit.datasets import load_dataset
from gatefit.network import LogicNetwork
from gatefit.training.config import RunConfig
from gatefit.training.data import DataOrder
from gatefit.training.loop import Observer, train
from gatefit.training.parallel import process_group
from gatefit.training.runs import execute_together, training_data
from gatefit.wirings import WiringOptions
from patience import HANG, wait_until

BASE = RunConfig(dataset="monks-2", width=68, depth=3, steps=30, batch_size=51, evaluate_every=10, seed=5)
CASES = {
    # An odd batch: the parts are of 25 and 26 samples.
    "soft-mix": replace(BASE, method="soft-mix"),
    "hard-st": replace(BASE, method="hard-st"),
    "gumbel-st": replace(BASE, method="gumbel-st"),
    "multilinear-ste": replace(BASE, method="multilinear-ste"),
    "multilinear-covjac": replace(BASE, learnable_temperature=True, schedule="cosine", weight_decay=0.01),
    "multilinear-free": replace(BASE, method="multilinear-free"),
    "iwp": replace(BASE, method="iwp", readout="linear"),
    "iwp-ste": replace(BASE, method="iwp-ste"),
    "digits": replace(BASE, dataset="digits", width=230, batch_size=512, steps=8, evaluate_every=4),
    "moved-images": replace(
        BASE, dataset="digits", width=230, batch_size=131, steps=8, evaluate_every=4, shift=1, flip=True, rotate=9.0
    ),
    "more-processes-than-samples": replace(BASE, method="gumbel-st", batch_size=1),
    "weights": replace(BASE, method="multilinear-ste", seed=6),
    "learned": replace(BASE, wiring="learned", votes="all", score_learning_rate=0.03, regrow_every=3, regrow_share=0.5),
    "learned bits": replace(BASE, method="multilinear-ste", wiring="learned", regrow_every=3),
    "learned by few": replace(BASE, wiring="learned", votes="all", batch_size=1, regrow_every=2),
    "validation": replace(BASE, method="gumbel-st", validation_fraction=0.3, patience=1, steps=60),
}
STOP_AT = 17
FINISHED = replace(BASE, steps=20, seed=9)


class StopAt(Observer):
    """Asks for a stop after a number of steps."""

    def __init__(self, step):
        self.step, self.now = step, False

    def stepped(self, state, network, loss):
        self.now = state.step >= self.step

    def __call__(self):
        return self.now


def parts_of(name, config=None):
    """Configuration, fresh network and data of a case."""
    config = config or CASES[name]
    dataset = load_dataset(config.dataset)
    network = LogicNetwork(
        dataset.encoder.bits,
        len(dataset.class_names),
        config.width,
        config.depth,
        method=config.method,
        readout=config.readout,
        wiring=config.wiring,
        wiring_options=WiringOptions(**config.wiring_options()),
        votes=config.votes or "last",
        seed=config.seed,
        dtype=torch.float64,
        **config.method_options(),
    )
    data = training_data(config, dataset)
    if name == "weights":
        weights = torch.rand(data.train.samples, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
        data = replace(data, train_weights=weights.round(decimals=1))
    return config, network, data


def run_alone(name, folder=None, stop_at=None):
    """(network, result) of a case in this process."""
    config, network, data = parts_of(name)
    stop = StopAt(stop_at or config.steps + 1)
    result = train(config, network, data, folder=folder, observers=[stop], should_stop=stop, threads=1)
    return network, result


def run_together(name, group, folder=None, stop_at=None):
    """The same by all processes; only the second one wishes to stop, and one step early: it is heard with the next."""
    config, network, data = parts_of(name)
    stop = StopAt(stop_at - 1 if stop_at and not group.writes else config.steps + 1)
    own = folder if group.writes else None
    result = train(config, network, data, strategy=group, folder=own, observers=[stop], should_stop=stop, threads=1)
    return network, result


def save(folder, name, group, network, result):
    content = {key: value.contiguous() for key, value in network.state_dict().items()}
    story = {"metrics": result.state.metrics, "step": result.state.step, "finished": result.finished}
    save_file(content, folder / f"{name}-{group.rank}.safetensors", {"story": json.dumps(story)})


def refused(group, action):
    """The error that this process ends ``action`` with."""
    try:
        action(group)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "nothing"


def disagree(group):
    config, network, data = parts_of("soft-mix", replace(BASE, method="soft-mix", seed=group.rank))
    train(config, network, data, strategy=group, threads=1)


def diverge(group):
    """Only the last process reads the target that is not a number."""
    config, _, data = parts_of("soft-mix")
    network = LogicNetwork(data.train.bits, 1, 68, 2, method="soft-mix", readout="regression", target_range=(0, 1))
    targets = data.train_targets.double()
    targets[DataOrder(data.train.samples, config.batch_size, config.seed).indices(0)[-1]] = float("nan")
    data = replace(data, train_targets=targets, test_targets=data.test_targets.double())
    train(config, network, data, strategy=group, threads=1)


def write_in_all(group):
    config, network, data = parts_of("soft-mix")
    train(config, network, data, strategy=group, folder=Path("nowhere") / str(group.rank), threads=1)


def all_cases(folder):
    with process_group(timeout=HANG) as group:
        for name in CASES:
            save(folder, name, group, *run_together(name, group))
        save(folder, "resumed-by-two", group, *run_together("gumbel-st", group, folder / "begun-by-one"))
        # Stopped by the second process's wish, saved by the first; then on with two, and left for one.
        save(folder, "stopped", group, *run_together("gumbel-st", group, folder / "stopped", STOP_AT))
        if group.writes:
            shutil.copytree(folder / "stopped", folder / "left")
        save(folder, "resumed", group, *run_together("gumbel-st", group, folder / "stopped"))
        errors = {action.__name__: refused(group, action) for action in (disagree, diverge, write_in_all)}
        for attempt in ("first", "again"):
            runs = execute_together([FINISHED], strategy=group, folders=[folder / "finished"], threads=1)
            errors[f"{attempt} run"] = str([run.result.finished for run in runs])
        (folder / f"errors-{group.rank}.json").write_text(json.dumps(errors))


def threads():
    """The names of this process's threads, those of libraries too; nothing where the system does not tell."""
    return sorted(path.read_text().strip() for path in Path("/proc/self/task").glob("*/comm"))


def twice(folder):
    """Two runs after one another in one process, each with a group of its own."""
    for i in range(2):
        with process_group(timeout=HANG) as group:
            save(folder, f"{i}", group, *run_together("soft-mix", group))
        (folder / f"threads-{i}-{group.rank}.json").write_text(json.dumps(threads()))


class Told(Observer):
    """Leaves a file when it has seen some steps."""

    def __init__(self, path):
        self.path = path

    def stepped(self, state, network, loss):
        if state.step == 15:
            self.path.touch()


def forever(folder):
    """Trains until something happens to one of the processes."""
    config, network, data = parts_of("soft-mix", replace(BASE, method="soft-mix", steps=10**9))
    # The time-out is short, so nobody is waited for who is still being loaded.
    (folder / f"ready-{os.environ['RANK']}").touch()
    wait_until(lambda: all((folder / f"ready-{rank}").exists() for rank in range(2)), "both processes are ready")
    with process_group(timeout=15) as group:
        own = folder / "checkpoints" if group.writes else None
        observer = Told(folder / f"steps-{group.rank}")
        train(config, network, data, strategy=group, folder=own, observers=[observer], threads=1)


if __name__ == "__main__":
    workplace = Path(sys.argv[1])
    if sys.argv[2:] == ["forever"]:
        forever(workplace)
    elif sys.argv[2:] == ["twice"]:
        twice(workplace)
    else:
        all_cases(workplace)
