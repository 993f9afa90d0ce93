"""The paper's floating-point baselines on the same binarised inputs (app. binarization, tab. mlp-cnn-baseline).

    MLP    bits -> depth × [linear, ReLU] -> linear
    CNN    bits as planes -> depth × [convolution, ReLU], every second max-pooled -> mean over the image -> linear

They read the same bits in the same order as a logic network; Adam 0.001, batch 512.
A baseline is no circuit. Like the free variants it has soft scores only, and its accuracy is reported as such.
"""

import math
from dataclasses import fields
from typing import Final, TypeVar

import torch
from jaxtyping import Float
from torch import Tensor, nn

from gatefit.bits import PackedBatch, unpack
from gatefit.datasets import Dataset
from gatefit.methods import NotBooleanError
from gatefit.ops.batches import Batch
from gatefit.paper.baseline_cost import BASELINES, CNN_CHANNELS, MLP_WIDTH
from gatefit.randomness import stream
from gatefit.training.config import OptimiserConfig, RunConfig
from gatefit.training.loop import Model, TrainableModel
from gatefit.training.runs import build_network

_TAKEN: Final = (
    "dataset", "method", "width", "depth", "steps", "seed", "batch_size", "learning_rate", "evaluate_every",
    "thresholds", "adult_encoding",
)  # fmt: skip

Layer = TypeVar("Layer", nn.Linear, nn.Conv2d)


class Baseline(TrainableModel):
    """Floating-point layers on bits; as in every network that is not Boolean, only ``soft_scores`` serves after eval().

    ``inputs`` is None where any image size will do.
    """

    file_format = "gatefit-baseline-1"

    def __init__(self, layers: nn.Sequential, *, inputs: int | None, classes: int) -> None:
        super().__init__()
        self.layers, self.inputs, self.classes = layers, inputs, classes

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
        if self.inputs is not None and self.inputs != bits.shape[1]:
            raise ValueError(f"the network reads {self.inputs} bits a sample, got {bits.shape[1]}")
        scores: Tensor = self.layers(bits.to(torch.float32))
        return scores

    def make_optimiser(self, config: OptimiserConfig) -> torch.optim.Optimizer:
        """Adam, tensor by tensor: torch's fused form, which serves the gates, rounds otherwise."""
        return torch.optim.Adam(self.parameters(), lr=config.learning_rate)

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


def mlp(inputs: int, classes: int, depth: int = 6, width: int = MLP_WIDTH, *, seed: int = 0) -> Baseline:
    """``depth`` hidden layers of ``width`` units; the paper's are 3 × 64 and 6 × 128."""
    for name, value in (("inputs", inputs), ("classes", classes), ("depth", depth), ("width", width)):
        _check_count(name, value)
    generator = stream(seed, "baseline")
    layers: list[nn.Module] = []
    for i in range(depth):
        layers += [_linear(inputs if i == 0 else width, width, generator), nn.ReLU()]
    layers.append(_linear(width, classes, generator))
    return Baseline(nn.Sequential(*layers), inputs=inputs, classes=classes)


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
    return Baseline(nn.Sequential(*layers), inputs=None, classes=classes)


def build_model(config: RunConfig, dataset: Dataset) -> Model:
    """The untrained model of any run of the paper: a logic network, or one of the baselines."""
    return build_baseline(config, dataset) if config.method in BASELINES else build_network(config, dataset)


def build_baseline(config: RunConfig, dataset: Dataset) -> Baseline:
    """The untrained baseline of a run; fields that it cannot heed are refused.

    mlp                 depth × width hidden units (default width 128)
    cnn-3x3, cnn-2x2    depth convolutions with the paper's channels; no width
    """
    given = [f.name for f in fields(config) if f.name not in _TAKEN and getattr(config, f.name) != f.default]
    if given:
        raise ValueError(f"{config.method} has no option {', '.join(given)}; it takes {', '.join(_TAKEN)}")
    classes = len(dataset.class_names)
    if config.method == "mlp":
        return mlp(dataset.encoder.bits, classes, config.depth, config.width or MLP_WIDTH, seed=config.seed)
    if dataset.image_shape is None:
        raise ValueError(f"{config.method} reads images, and {config.dataset} has none; use mlp")
    if config.width is not None:
        raise ValueError(f"{config.method} has the paper's channels and no width, got width={config.width}")
    rows, columns, _ = dataset.image_shape
    planes = dataset.encoder.bits // (rows * columns)
    return cnn(planes, classes, config.depth, int(config.method[-1]), seed=config.seed)


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
