"""A data set: raw features, class numbers, and the encoder that makes the paper's bits of them.

Image sets share how they are flattened, and their thresholds:

    bit_k,i = x_i > t_k        planes k = 1 … thresholds of (channel, row, column)
    even        t_k = 255 · k / (thresholds + 1), equally spaced over the range of a byte
    quantile    t_k cuts the training pixels of a channel into equally many (``encoders.quantiles``)

Of MNIST four pixels in five are 0, and every quantile below 0.8 is the same cut: the rule is then that the rest, of
pixels that differ, is halved until there are as many thresholds as asked for; 3 are 0.5, 96.5 and 214.5.
"""

from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from jaxtyping import Int64, Shaped, UInt8

from gatefit.datasets.files import DatasetError
from gatefit.encoders import Encoder, Thermometer, Threshold
from gatefit.encoders.base import ranges_to_spec, whole_ranges
from gatefit.encoders.quantiles import quantile_thresholds


@dataclass(frozen=True, eq=False)
class Dataset:
    """Train and test samples with a fitted encoder; ``encoder.transform(x_train)`` is what a network reads.

    Images are uint8, one row each, flattened in (channel, row, column) order; ``image_shape`` is (rows, columns,
    channels). Tables whose encoding is part of the data set are bool. Where an encoder had to be fitted, it saw the
    train samples only. ``digest`` names the raw data: it is the same wherever and however the files were stored.
    """

    name: str
    x_train: Shaped[np.ndarray, "train features"]
    y_train: Int64[np.ndarray, " train"]
    x_test: Shaped[np.ndarray, "test features"]
    y_test: Int64[np.ndarray, " test"]
    class_names: tuple[str, ...]
    feature_names: tuple[str, ...]
    encoder: Encoder
    digest: str
    task: Literal["classification", "regression"] = "classification"
    image_shape: tuple[int, int, int] | None = None
    notes: str = ""

    @property
    def classes(self) -> int:
        """How many classes."""
        return len(self.class_names)

    @property
    def bits(self) -> int:
        """How many bits the encoder makes of one sample."""
        return self.encoder.bits

    def __repr__(self) -> str:
        sizes = f"train={self.x_train.shape}, test={self.x_test.shape}, classes={self.classes}, bits={self.bits}"
        return f"Dataset({self.name!r}, {sizes})"


def class_numbers(labels: Any, classes: int, file: str) -> Int64[np.ndarray, " samples"]:
    """Labels as int64 class numbers, checked to be in range."""
    numbers = np.asarray(labels, dtype=np.int64).reshape(-1)
    if numbers.size and not 0 <= numbers.min() <= numbers.max() < classes:
        raise DatasetError(f"{file} holds labels {numbers.min()} to {numbers.max()}; classes are 0 to {classes - 1}")
    return numbers


def flatten_images(
    images: UInt8[np.ndarray, "samples rows columns channels"],
) -> UInt8[np.ndarray, "samples features"]:
    """Images with the channels last, flattened to one row each in (channel, row, column) order."""
    return np.ascontiguousarray(images.transpose(0, 3, 1, 2)).reshape(len(images), -1)


ThresholdRule = Literal["even", "wide", "quantile"]


def image_encoder(
    x: UInt8[np.ndarray, "samples features"],
    thresholds: int,
    high: float = 255,
    *,
    rule: ThresholdRule = "even",
    channels: int = 1,
) -> Encoder:
    """Planes of n thresholds t_1 < … < t_n.

    even       t_k = high · k / (n + 1): the paper's encoder
    wide       t_k = high · (1/8 + 6/8 (k - 1) / (n - 1)): evenly from an eighth to seven eighths of the range; half
               of it where n = 1
    quantile   into equally many training pixels, for each channel
    """
    if rule not in get_args(ThresholdRule):
        raise ValueError(f"threshold_rule must be {' or '.join(map(repr, get_args(ThresholdRule)))}, got {rule!r}")
    if rule == "quantile":
        return _quantile_encoder(x, thresholds, channels)
    if thresholds == 1:
        return Threshold(high / 2).fit(x)
    # Thermometer's thresholds lie within its range, as far from its ends as from each other.
    beyond = high * (0.75 / (thresholds - 1) - 0.125) if rule == "wide" else 0
    return Thermometer(thresholds, order="threshold", low=-beyond, high=high + beyond).fit(x)


def _quantile_encoder(x: UInt8[np.ndarray, "samples features"], thresholds: int, channels: int) -> Encoder:
    """Planes of thresholds that every pixel of a channel shares."""
    encoder = Thermometer(thresholds, "quantile", order="threshold")
    if not len(x):
        raise ValueError("quantiles of no images; give some")
    pixels = x.shape[1] // channels
    levels = [
        quantile_thresholds(x[:, channel * pixels : (channel + 1) * pixels].reshape(-1), thresholds).tolist()
        for channel in range(channels)
    ]
    whole = whole_ranges(x)
    encoder.load_state(
        {
            "features": x.shape[1],
            "feature_names": None,
            "thresholds": [level for level in levels for _ in range(pixels)],
            "whole": [] if whole is None else ranges_to_spec(whole),
        }
    )
    return encoder
