"""The paper's floating-point baselines on the same binarised inputs (app. binarization, tab. mlp-cnn-baseline).

    MLP    bits -> depth × [linear, ReLU] -> linear
    CNN    bits as planes -> depth × [convolution, ReLU], every second max-pooled -> mean over the image -> linear

They read the same bits in the same order as a logic network; Adam 0.001, batch 512.
A baseline is no circuit. Like the free variants it has soft scores only, and its accuracy is reported as such.
"""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

import numpy as np
import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn

from gatefit.bits import PackedBatch, unpack
from gatefit.methods import NotBooleanError
from gatefit.ops.batches import Batch
from gatefit.randomness import stream
from gatefit.training.checkpoint import TrainingState, load_checkpoint, save_checkpoint
from gatefit.training.config import RunConfig
from gatefit.training.data import TrainingData
from gatefit.training.loop import TrainingDivergedError, TrainingResult, loss_of
from gatefit.training.metrics import EVALUATION_BATCH, agreement
from gatefit.training.order import DataOrder

CNN_CHANNELS: Final = (32, 64, 128, 256, 256, 256)
"""The channels of the convolutions, first to last; a shallower network has the first ones."""

LEARNING_RATE: Final = 0.001

Layer = TypeVar("Layer", nn.Linear, nn.Conv2d)


class Baseline(nn.Module):
    """Floating-point layers on bits; as in every network that is not Boolean, only ``soft_scores`` serves after eval().

    ``name`` says what it is, in logs and checkpoints; ``inputs`` is None where any image size will do.
    """

    def __init__(self, name: str, layers: nn.Sequential, *, inputs: int | None, classes: int) -> None:
        super().__init__()
        self.name, self.layers, self.inputs, self.classes = name, layers, inputs, classes

    def forward(self, x: Batch) -> Float[Tensor, "batch classes"]:
        """Class scores, for training."""
        if not self.training:
            raise NotBooleanError("a floating-point baseline has no deployed Boolean form; use soft_scores(x)")
        return self._scores(x)

    def soft_scores(self, x: Batch) -> Float[Tensor, "batch classes"]:
        """Class scores without gradients, whatever the mode."""
        with torch.no_grad():
            return self._scores(x)

    def _scores(self, x: Batch) -> Tensor:
        # Packed bits are read feature by feature; a convolution wants each sample's bits together.
        bits = torch.from_numpy(unpack(x)) if isinstance(x, PackedBatch) else x
        scores: Tensor = self.layers(bits.to(torch.float32))
        return scores

    @property
    def parameter_count(self) -> int:
        """How many numbers are learned."""
        return sum(parameter.numel() for parameter in self.parameters())


class Planes(nn.Module):
    """Flat bits as square images of ``channels`` planes: the order in which image sets are encoded."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.channels = channels

    def forward(self, x: Float[Tensor, "batch bits"]) -> Float[Tensor, "batch channels rows columns"]:
        """(batch, channels · side²) to (batch, channels, side, side)."""
        side = math.isqrt(x.shape[1] // self.channels)
        if self.channels * side * side != x.shape[1]:
            raise ValueError(
                f"{x.shape[1]} bits are no square image of {self.channels} planes; "
                f"use channels=1 for MNIST, 93 for CIFAR-10 with 31 thresholds"
            )
        return x.reshape(-1, self.channels, side, side)


def mlp(inputs: int, classes: int, depth: int = 6, width: int = 128, *, seed: int = 0) -> Baseline:
    """``depth`` hidden layers of ``width`` units; the paper's are 3 × 64 and 6 × 128."""
    for name, value in (("inputs", inputs), ("classes", classes), ("depth", depth), ("width", width)):
        _check_count(name, value)
    generator = stream(seed, "baseline")
    layers: list[nn.Module] = []
    for i in range(depth):
        layers += [_linear(inputs if i == 0 else width, width, generator), nn.ReLU()]
    layers.append(_linear(width, classes, generator))
    return Baseline(f"mlp-{depth}x{width}", nn.Sequential(*layers), inputs=inputs, classes=classes)


def cnn(channels: int, classes: int, depth: int = 6, kernel: int = 3, *, seed: int = 0) -> Baseline:
    """``depth`` convolutions over ``channels`` planes of bits; the paper's are 3 of 3×3, 6 of 2×2 and 6 of 3×3."""
    for name, value in (("channels", channels), ("classes", classes), ("depth", depth), ("kernel", kernel)):
        _check_count(name, value)
    if depth > len(CNN_CHANNELS):
        raise ValueError(f"the paper's CNN has at most {len(CNN_CHANNELS)} convolutions, got depth={depth}")
    generator = stream(seed, "baseline")
    layers: list[nn.Module] = [Planes(channels)]
    before, after = (kernel - 1) // 2, kernel // 2  # Zeros that keep the size, for even kernels too.
    for i, (read, written) in enumerate(zip((channels, *CNN_CHANNELS), CNN_CHANNELS[:depth], strict=False)):
        layers += [
            nn.ZeroPad2d((before, after, before, after)),
            _convolution(read, written, kernel, generator),
            nn.ReLU(),
        ]
        if i % 2 == 1:
            layers.append(nn.MaxPool2d(2))
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), _linear(CNN_CHANNELS[depth - 1], classes, generator)]
    return Baseline(f"cnn-{kernel}x{kernel}-{depth}", nn.Sequential(*layers), inputs=None, classes=classes)


def train_baseline(
    network: Baseline,
    data: TrainingData,
    *,
    steps: int = 50_000,
    batch_size: int = 512,
    learning_rate: float = LEARNING_RATE,
    evaluate_every: int = 1000,
    seed: int = 0,
    dataset: str = "custom",
    config: RunConfig | None = None,
    folder: Path | None = None,
    started: Callable[[TrainingState], None] = lambda state: None,
    evaluated: Callable[[TrainingState], None] = lambda state: None,
    should_stop: Callable[[], bool] = lambda: False,
) -> TrainingResult:
    """Train on the same samples, in the same order and with the same evaluations as a logic network.

    ``result.summary["last_10_accuracy"]`` is the paper's metric. ``started`` is told where the run begins,
    ``evaluated`` of every evaluation. With ``folder``, from and to its checkpoints. ``config``, where it is given,
    takes the place of the options before it. The threads are torch's own.
    """
    if network.inputs is not None and network.inputs != data.train.bits:
        raise ValueError(f"the network reads {network.inputs} bits, the data have {data.train.bits}")
    config = config or RunConfig(
        dataset=dataset,
        method=network.name,
        steps=steps,
        batch_size=batch_size,
        learning_rate=learning_rate,
        evaluate_every=evaluate_every,
        seed=seed,
    )
    optimiser = torch.optim.Adam(network.parameters(), lr=config.learning_rate)
    restored = load_checkpoint(folder, config, network, optimiser) if folder is not None else None
    state = restored or TrainingState()
    order = DataOrder(data.train.samples, config.batch_size, config.seed)
    stopping = False
    network.train()
    started(state)
    while state.step < config.steps and not stopping:
        _step(network, optimiser, data, order.indices(state.step), state)
        due = state.step % config.evaluate_every == 0 or state.step == config.steps
        if due:
            _evaluate(network, data, state)
            evaluated(state)
        stopping = should_stop()
        if folder is not None and (due or stopping):
            save_checkpoint(folder, config, network, optimiser, state)
    network.eval()
    return TrainingResult(state, finished=state.step == config.steps)


def _step(
    network: Baseline,
    optimiser: torch.optim.Optimizer,
    data: TrainingData,
    indices: Int64[np.ndarray, " batch"],
    state: TrainingState,
) -> None:
    weights = None if data.train_weights is None else data.train_weights[indices]
    loss = loss_of(network(data.train.batch(indices)), data.train_targets[indices], weights)
    optimiser.zero_grad(set_to_none=True)
    loss.backward()
    value = float(loss.detach())
    if not math.isfinite(value):
        raise TrainingDivergedError(f"the loss is {value} at step {state.step + 1}; lower the learning rate")
    optimiser.step()
    state.step += 1
    state.loss_sum += value
    state.loss_count += 1


def _evaluate(network: Baseline, data: TrainingData, state: TrainingState) -> None:
    """One more row of the form that a network without a Boolean one has: no hard accuracy, no gap to it."""
    row: dict[str, Any] = {"step": state.step, "loss": state.loss_sum / state.loss_count, "generalisation_gap": None}
    for name, source, targets in (
        ("train", data.train, data.train_targets),
        ("test", data.test, data.test_targets),
    ):
        parts = np.array_split(np.arange(source.samples), -(-source.samples // EVALUATION_BATCH))
        scores = torch.cat([network.soft_scores(source.batch(part)) for part in parts])
        row |= {f"{name}_hard": None, f"{name}_soft": agreement(scores, targets), f"{name}_discretisation_gap": None}
    state.metrics.append(row)
    state.loss_sum, state.loss_count = 0.0, 0


def _check_count(name: str, value: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ValueError(f"{name} must be a whole number >= 1, got {value!r}")


def _linear(inputs: int, outputs: int, generator: torch.Generator) -> nn.Linear:
    return _initialise(nn.Linear(inputs, outputs, device="meta"), inputs, generator)


def _convolution(read: int, written: int, kernel: int, generator: torch.Generator) -> nn.Conv2d:
    return _initialise(nn.Conv2d(read, written, kernel, device="meta"), read * kernel * kernel, generator)


def _initialise(layer: Layer, fan_in: int, generator: torch.Generator) -> Layer:
    """torch's own U(-1/√fan_in, 1/√fan_in), drawn from an explicit generator; the layer comes without memory."""
    bound = 1 / math.sqrt(fan_in)
    layer = layer.to_empty(device="cpu")
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.uniform_(-bound, bound, generator=generator)
    return layer
