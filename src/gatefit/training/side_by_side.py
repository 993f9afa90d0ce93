"""Several seeds of one configuration as one block-diagonal network: small networks are bound by call overhead.

    inputs   x = [x_1 | ... | x_S]          each seed reads its own batch, in its own order
    layers   wiring_s + s · inputs          no gate reads across blocks
    loss     Σ_s L_s                        so each block's gradient is that of its own loss

Every operation treats a gate by itself and sums over the batch in a fixed order, so each seed ends with the same bits
as if it had been trained alone: same parameters, optimiser state, metrics and checkpoints. A seed's own network holds
views of the common parameters.
"""

import contextlib
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import torch

from gatefit.datasets import Dataset
from gatefit.network import LogicNetwork
from gatefit.ops.batches import side_by_side as batches_side_by_side
from gatefit.ops.threads import training_threads
from gatefit.readouts import GroupSum
from gatefit.training.checkpoint import TrainingState, load_checkpoint, save_checkpoint, write_atomically
from gatefit.training.config import RunConfig, can_train_side_by_side
from gatefit.training.data import TrainingData
from gatefit.training.folder import check_config, locked
from gatefit.training.loop import (
    Observer,
    TrainingDivergedError,
    TrainingResult,
    evaluation,
    learning_rate,
    loss_of,
    make_optimiser,
)
from gatefit.training.made import MadeFile
from gatefit.training.order import DataOrder
from gatefit.training.runs import MetricsFile, Run, build_network, save_network, save_result, training_data


class PositionsDifferError(ValueError):
    """Runs that do not stand at the same step; they go on one by one."""


def train_side_by_side(
    configs: Sequence[RunConfig],
    networks: Sequence[LogicNetwork],
    data: TrainingData,
    *,
    folders: Sequence[Path] | None = None,
    observers: Sequence[Sequence[Observer]] | None = None,
    should_stop: Callable[[], bool] = lambda: False,
    threads: int | None = None,
) -> list[TrainingResult]:
    """Train networks whose configurations differ in their seeds alone; each as ``train`` would train it by itself.

    ``observers`` are those of each seed; of single steps they are not told, which is what makes small networks fast.
    """
    _check(configs, networks)
    watching = observers or [()] * len(configs)
    optimisers = [make_optimiser(config, network) for config, network in zip(configs, networks, strict=True)]
    states = []
    for i, config in enumerate(configs):
        restored = load_checkpoint(folders[i], config, networks[i], optimisers[i]) if folders else None
        states.append(restored or TrainingState())
    _check_positions(states)
    common = _block_diagonal(networks)
    optimiser = make_optimiser(configs[0], common)
    _share(networks, optimisers, common, optimiser, states[0].step)
    orders = [DataOrder(data.train.samples, config.batch_size, config.seed) for config in configs]
    finished = True
    with training_threads(threads):
        common.train()
        for config, network, state, own in zip(configs, networks, states, watching, strict=True):
            for observer in own:
                observer.started(config, network.train(), state)
        while states[0].step < configs[0].steps:
            _step(configs, common, optimiser, data, orders, states)
            step = states[0].step
            due = step % configs[0].evaluate_every == 0 or step == configs[0].steps
            stopping = should_stop()
            for i, (config, network, state) in enumerate(zip(configs, networks, states, strict=True)):
                if due:
                    network.train()
                    row = evaluation(network, data, state)
                    for observer in watching[i]:
                        observer.evaluated(state, network, row)
                if folders and (due or stopping):
                    _count_steps(optimisers[i], step)
                    save_checkpoint(folders[i], config, network, optimisers[i], state)
            if stopping and step < configs[0].steps:
                finished = False
                break
    for network, state in zip(networks, states, strict=True):
        # A network of its own again: the common parameters are not kept alive by one block of them.
        for parameter in network.parameters():
            parameter.data = parameter.data.clone()
        if finished and state.best is not None:
            network.load_state_dict(state.best)
        network.eval()
    for network, state, own in zip(networks, states, watching, strict=True):
        for observer in own:
            observer.finished(state, network)
    return [TrainingResult(state, finished, validated=data.keep_best) for state in states]


def execute_side_by_side(
    configs: Sequence[RunConfig],
    dataset: Dataset,
    *,
    folders: Sequence[Path],
    observers: Sequence[Sequence[Observer]] | None = None,
    should_stop: Callable[[], bool] = lambda: False,
    threads: int | None = None,
) -> list[Run]:
    """What ``execute`` does for one run, for several that differ in seeds alone, each in its own folder.

    Their validation sets, which depend on the seed, would differ too: those runs are refused, like finished ones.
    """
    configs = [config.resolved() for config in configs]
    if any(config.validation_fraction for config in configs):
        raise ValueError("side by side needs validation_fraction=0; train these runs one by one")
    networks = [build_network(config, dataset) for config in configs]
    watching = [
        (*own, MetricsFile(folder), MadeFile(folder, config, share=1 / len(configs)))
        for own, folder, config in zip(observers or [()] * len(configs), folders, configs, strict=True)
    ]
    with contextlib.ExitStack() as locks:
        for config, folder in zip(configs, folders, strict=True):
            locks.enter_context(locked(folder))
            check_config(folder, config)
            if (folder / "result.json").exists():
                raise PositionsDifferError(f"the run in {folder} is finished already; train the others one by one")
        for config, folder in zip(configs, folders, strict=True):
            write_atomically(folder / "config.json", config.to_json().encode())
        results = train_side_by_side(
            configs,
            networks,
            training_data(configs[0], dataset),
            folders=[folder / "checkpoints" for folder in folders],
            observers=watching,
            should_stop=should_stop,
            threads=threads,
        )
        runs = [Run(*each) for each in zip(folders, configs, networks, results, strict=True)]
        for run in runs:
            if run.result.finished:
                save_network(run.network, run.folder / "model.safetensors")
                save_result(run.folder, run.config, dataset, run.result)
    return runs


def _step(
    configs: Sequence[RunConfig],
    common: LogicNetwork,
    optimiser: torch.optim.Optimizer,
    data: TrainingData,
    orders: Sequence[DataOrder],
    states: Sequence[TrainingState],
) -> None:
    step = states[0].step
    for group in optimiser.param_groups:
        group["lr"] = learning_rate(configs[0], step)
    optimiser.zero_grad(set_to_none=True)
    indices = [order.indices(step) for order in orders]
    scores = common(batches_side_by_side([data.train.batch(each) for each in indices]))
    losses = []
    for own, each in zip(scores.chunk(len(configs), dim=1), indices, strict=True):
        weights = None if data.train_weights is None else data.train_weights[each]
        losses.append(loss_of(own, data.train_targets[each], weights, common.implementation))
    torch.stack(losses).sum().backward()
    optimiser.step()
    for config, state, loss in zip(configs, states, losses, strict=True):
        value = float(loss.detach())
        if not math.isfinite(value):
            raise TrainingDivergedError(f"the loss of seed {config.seed} is {value} at step {step + 1}")
        state.step, state.loss_sum, state.loss_count = step + 1, state.loss_sum + value, state.loss_count + 1


def _block_diagonal(networks: Sequence[LogicNetwork]) -> LogicNetwork:
    first, blocks = networks[0], len(networks)
    assert isinstance(first.readout, GroupSum)
    wirings = []
    for i, layer in enumerate(first.gate_layers):
        offsets = [s * layer.inputs for s in range(blocks)]
        own = [network.gate_layers[i].wiring.committed() for network in networks]
        wirings.append(torch.cat([wiring + o for wiring, o in zip(own, offsets, strict=True)], dim=1))
    configuration = {
        **first.configuration,
        "method": type(first.gate_layers[0].method),
        "inputs": blocks * first.inputs,
        "classes": blocks * first.classes,
        "width": blocks * first.width,
        "wiring": wirings,
        "readout_temperature": first.readout.temperature,
        "target_range": (0.0, 1.0),
    }
    common = LogicNetwork(**configuration, dtype=first.dtype, implementation=first.implementation)
    for i, layer in enumerate(common.gate_layers):
        layer.method.join([n.gate_layers[i].method for n in networks])
    return common


def _share(
    networks: Sequence[LogicNetwork],
    optimisers: Sequence[torch.optim.Optimizer],
    common: LogicNetwork,
    optimiser: torch.optim.Optimizer,
    step: int,
) -> None:
    """Make each seed's parameters and moments views of the common ones, after copying what was restored."""
    for place, whole in enumerate(common.parameters()):
        own = [list(network.parameters())[place] for network in networks]
        if step:
            restored = [o.state[p] for o, p in zip(optimisers, own, strict=True)]
            optimiser.state[whole] = {
                name: torch.cat([r[name] for r in restored]) if name.startswith("exp_") else restored[0][name]
                for name in restored[0]
            }
        else:
            moments = {name: torch.zeros_like(whole) for name in ("exp_avg", "exp_avg_sq")}
            optimiser.state[whole] = {"step": torch.tensor(0.0), **moments}
        for s, parameter in enumerate(own):
            rows = slice(s * parameter.shape[0], (s + 1) * parameter.shape[0])
            parameter.data = whole.data[rows]
            optimisers[s].state[parameter] = {
                name: value[rows] if name.startswith("exp_") else value.clone()
                for name, value in optimiser.state[whole].items()
            }


def _count_steps(optimiser: torch.optim.Optimizer, step: int) -> None:
    for moments in optimiser.state.values():
        moments["step"] = torch.full_like(moments["step"], step)


def _check(configs: Sequence[RunConfig], networks: Sequence[LogicNetwork]) -> None:
    if not configs or len(configs) != len(networks):
        raise ValueError(f"need one network for each configuration, got {len(networks)} for {len(configs)}")
    if not can_train_side_by_side(configs[0]):
        raise ValueError(
            "side by side needs readout='group-sum', a fixed temperature, no patience and a method that is not free; "
            "train these runs one by one"
        )
    for config in configs[1:]:
        same = replace(config, seed=configs[0].seed, wiring_seed=configs[0].wiring_seed)
        if same != configs[0]:
            raise ValueError(f"configurations may differ in seeds alone, got {'; '.join(configs[0].differences(same))}")


def _check_positions(states: Sequence[TrainingState]) -> None:
    steps = {state.step for state in states}
    if len(steps) > 1:
        raise PositionsDifferError(
            f"runs side by side must stand at the same step, got {sorted(steps)}; train these one by one"
        )
