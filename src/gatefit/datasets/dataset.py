"""A data set: raw features, class numbers, and the encoder that makes the paper's bits of them.

Image sets share how they are flattened, and thresholds equally spaced over the range of a byte:

    bit_k,i = x_i > 255 · k / (thresholds + 1)        planes k = 1 … thresholds of (channel, row, column)
"""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from jaxtyping import Int64, Shaped, UInt8

from gatefit.datasets.files import DatasetError
from gatefit.encoders import Encoder, Thermometer, Threshold


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


def image_encoder(x: UInt8[np.ndarray, "samples features"], thresholds: int, high: float = 255) -> Encoder:
    """The paper's encoder: one threshold at half the range, or planes of several."""
    if thresholds == 1:
        return Threshold(high / 2).fit(x)
    return Thermometer(thresholds, order="threshold", low=0, high=high).fit(x)
