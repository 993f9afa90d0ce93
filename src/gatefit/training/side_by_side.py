"""Several seeds of one configuration as one block-diagonal network: small networks are bound by call overhead.

    inputs   x = [x_1 | ... | x_S]          each seed reads its own batch, in its own order
    layers   wiring_s + s · inputs          no gate reads across blocks
    loss     Σ_s L_s                        so each block's gradient is that of its own loss

Every operation treats a gate by itself and sums over the batch in a fixed order, so each seed ends with the same bits
as if it had been trained alone: same parameters, optimiser state, metrics and checkpoints. A seed's own network holds
views of the common parameters.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from jaxtyping import Int64

from gatefit.network import LogicNetwork
from gatefit.ops.batches import side_by_side as batches_side_by_side
from gatefit.ops.learned_stack import Watch
from gatefit.readouts import GroupSum
from gatefit.training.config import RunConfig
from gatefit.training.data import TrainingData
from gatefit.training.loop import Learner, Strategy, loss_of, make_optimiser


class NotSideBySideError(ValueError):
    """Runs that cannot be trained side by side; they are trained one by one."""


class SideBySide(Strategy):
    """Learners whose configurations differ in their seeds alone; each ends as if it had been trained by itself.

    Observers are not told of single steps, which is what makes small networks fast.
    """

    tells_steps = False
    apart = False

    def begin(self, learners: Sequence[Learner], data: TrainingData) -> torch.optim.Optimizer:
        """Go on from checkpoints, all of the same step, and lay the networks side by side."""
        networks = _checked([each.config for each in learners], [each.network for each in learners])
        for each in learners:
            each.restore(each.folder)
        steps = {each.state.step for each in learners}
        if len(steps) > 1:
            raise NotSideBySideError(
                f"runs side by side must stand at the same step, got {sorted(steps)}; train these one by one"
            )
        self.common, self.regrown = _block_diagonal(networks).train(), False
        optimiser = make_optimiser(learners[0].config, self.common)
        _share(networks, [each.optimiser for each in learners], self.common, optimiser, learners[0].state.step)
        return optimiser

    def backward(
        self, learners: Sequence[Learner], data: TrainingData, batches: Sequence[Int64[np.ndarray, " batch"]]
    ) -> list[float]:
        """The losses; the gradient of their sum is left in the common parameters."""
        networks = [each.network for each in learners if isinstance(each.network, LogicNetwork)]
        watches = [network.watch for network in networks if network.watch is not None]
        if self.regrown:
            for whole, *parts in zip(*(network.gate_layers for network in (self.common, *networks)), strict=True):
                whole.wiring.follow([part.wiring for part in parts])
        # Which steps regrow is a matter of the configuration, which is the same for all.
        self.regrown = bool(watches)
        sizes = [[getattr(layer, name) for layer in networks[0].gate_layers] for name in ("inputs", "gates")]
        watch = Watch.side_by_side(watches, *sizes) if watches else None
        self.common.observe(watch)
        bits = [
            data.train.training_batch(indices, seed=each.config.seed, step=each.state.step)
            for each, indices in zip(learners, batches, strict=True)
        ]
        targets = [data.train_targets[each] for each in batches]
        weights = [None if data.train_weights is None else data.train_weights[each] for each in batches]
        self.common.expect(targets, weights)
        scores = self.common(batches_side_by_side(bits)).chunk(len(learners), dim=1)
        losses = [loss_of(*own, self.common.implementation) for own in zip(scores, targets, weights, strict=True)]
        torch.stack(losses).sum().backward()
        if watch is not None:
            watch.hand_back(watches, *sizes)
        return [float(loss.detach()) for loss in losses]

    def end(self, learners: Sequence[Learner]) -> None:
        """Networks of their own again: the common parameters are not kept alive by one block of them."""
        for each in learners:
            for parameter in each.network.parameters():
                parameter.data = parameter.data.clone()


def _block_diagonal(networks: Sequence[LogicNetwork]) -> LogicNetwork:
    first, blocks = networks[0], len(networks)
    assert isinstance(first.readout, GroupSum)
    wirings = []
    for layer, *others in zip(*(network.gate_layers for network in networks), strict=True):
        joined = layer.wiring.beside([other.wiring for other in others])
        assert joined is not None
        wirings.append(joined)
    configuration = {
        **first.configuration,
        "method": type(first.gate_layers[0].method),
        "inputs": blocks * first.inputs,
        "classes": blocks * first.classes,
        "width": [blocks * width for width in first.widths],
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
        # Along the gates, which is where the whole is larger.
        dim = next((i for i, (all_, one) in enumerate(zip(whole.shape, own[0].shape, strict=True)) if all_ != one), 0)
        if step:
            restored = [o.state[p] for o, p in zip(optimisers, own, strict=True)]
            optimiser.state[whole] = {
                name: torch.cat([r[name] for r in restored], dim) if name.startswith("exp_") else restored[0][name]
                for name in restored[0]
            }
        else:
            moments = {name: torch.zeros_like(whole) for name in ("exp_avg", "exp_avg_sq")}
            optimiser.state[whole] = {"step": torch.tensor(0.0), **moments}
        for s, parameter in enumerate(own):
            size = parameter.shape[dim]
            parameter.data = whole.data.narrow(dim, s * size, size)
            optimisers[s].state[parameter] = {
                # The number of steps is one tensor for all of them: a checkpoint of a block has it too.
                name: value.narrow(dim, s * size, size) if name.startswith("exp_") else value
                for name, value in optimiser.state[whole].items()
            }


def _checked(configs: Sequence[RunConfig], networks: Sequence[object]) -> list[LogicNetwork]:
    own = [each for each in networks if isinstance(each, LogicNetwork)]
    if not configs or len(own) < len(networks) or not all(map(can_lie_side_by_side, own)):
        raise NotSideBySideError(
            "side by side needs plain stacks of gates with readout='group-sum', a method that learns every gate by "
            "itself, and scores of a learned wiring that are a multiple of 16; train these runs one by one"
        )
    for config in configs:
        if config.patience is not None:
            raise NotSideBySideError("side by side needs patience=None: one seed may end before the others")
        same = replace(config, seed=configs[0].seed, wiring_seed=configs[0].wiring_seed)
        if same != configs[0]:
            raise ValueError(f"configurations may differ in seeds alone, got {'; '.join(configs[0].differences(same))}")
    return own


def can_lie_side_by_side(network: LogicNetwork) -> bool:
    """Whether blocks of one network of this kind are independent to the bit.

    Not with parameters that a layer or a readout shares among its gates, and not with torch's sigmoid on activations
    (the free variants), which rounds an element by its place in the array. Only plain stacks of gates are laid out: no
    layers of another kind, no skips, no wiring of your own that learns and cannot be joined.
    """
    plain = not {"layers", "reads"} & network.configuration.keys() and type(network.readout) is GroupSum
    layers = network.gate_layers
    return plain and all(layer.method.independent_gates and layer.wiring.beside([]) is not None for layer in layers)
