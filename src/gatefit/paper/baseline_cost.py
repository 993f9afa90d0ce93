"""What the paper's floating-point baselines cost, known without torch: names, sizes, and seconds a step.

multiplications of a sample's forward pass, three times that with its backward pass, two operations each
"""

import itertools
from typing import Final

from gatefit.experiments.estimate import EVALUATION, OVERHEAD, model_seconds
from gatefit.training.config import RunConfig

BASELINES: Final = ("mlp", "cnn-3x3", "cnn-2x2")
"""Methods that are no gates: the paper's floating-point networks (``paper.baselines``)."""
BUILD: Final = "gatefit.paper.baselines:build_model"
"""How a worker process finds the builder of the paper's runs."""
CNN_CHANNELS: Final = (32, 64, 128, 256, 256, 256)
"""The channels of the convolutions, first to last; a shallower network has the first ones."""
MLP_WIDTH: Final = 128
_FLOPS: Final = 2e10
"""Floating-point operations a second of matrix products, one core."""


def step_seconds(config: RunConfig) -> float:
    """Seconds a step of any run of the paper on one core, as ``experiments.estimate`` wants it."""
    if config.method not in BASELINES:
        return model_seconds(config)
    from gatefit.datasets import DATASETS

    info = DATASETS.get(config.dataset)
    samples = (info.train, info.test) if info is not None else (50_000, 10_000)
    a_sample = 6 * _multiplications(config) / _FLOPS
    evaluation = sum(samples) * a_sample / 3
    return OVERHEAD + min(config.batch_size, samples[0]) * a_sample + (EVALUATION + evaluation) / config.evaluate_every


def _multiplications(config: RunConfig) -> int:
    """Of one sample's forward pass through a baseline."""
    from gatefit.datasets import DATASETS

    info = DATASETS.get(config.dataset)
    bits, classes = (info.bits, info.classes) if info is not None else (784, 10)
    if config.thresholds is not None and info is not None and info.bits >= info.features:
        bits = info.features * config.thresholds
    if config.method == "mlp":
        width = config.width or MLP_WIDTH
        return bits * width + (config.depth - 1) * width * width + width * classes
    # Images are square: one pixel of every channel and threshold is a plane of bits.
    side = {"mnist": 28, "fashion-mnist": 28, "digits": 8, "tiny-imagenet": 64}.get(config.dataset, 32)
    planes = [max(1, bits // (side * side)), *CNN_CHANNELS[: config.depth]]
    kernel = int(config.method[-1])
    total = 0
    for i, (read, written) in enumerate(itertools.pairwise(planes)):
        pixels = (side // 2 ** (i // 2)) ** 2
        total += pixels * kernel * kernel * read * written
    return total
