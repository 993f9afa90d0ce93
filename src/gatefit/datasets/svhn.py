"""SVHN (street view house numbers), cropped to 32 × 32, without the extra set.

.mat file    X: uint8 (row, column, channel, sample), y: (sample, 1), digit 0 labelled 10
bits         31 planes of (channel, row, column), as for CIFAR-10
"""

import io
import zlib
from typing import Final

import numpy as np
from jaxtyping import Int64, UInt8

from gatefit._requires import require
from gatefit.datasets.dataset import Dataset, ThresholdRule, class_numbers, flatten_images, image_encoder
from gatefit.datasets.files import DatasetError, Layout, Locator, RawFile, digest
from gatefit.encoders.base import default_names

_HDF5: Final = 2  # scipy's number for the .mat files that are HDF5 inside.
_URL: Final = "http://ufldl.stanford.edu/housenumbers/"
FILES: Final = tuple(
    RawFile(name, (f"md5:{md5}",), ("svhn",), (f"{_URL}{name}", f"md5:{md5}"))
    for name, md5 in (
        ("train_32x32.mat", "e26dedcc434d2e4c54c9b2d4a06d8373"),
        ("test_32x32.mat", "eb5a983be6a315427106f1b164d9cef3"),
    )
)


def parse_svhn(data: bytes, name: str) -> tuple[UInt8[np.ndarray, "samples pixels"], Int64[np.ndarray, " samples"]]:
    """Images and digits of one .mat file."""
    matlab = require("scipy.io.matlab", "train", "the svhn data set")
    try:
        if matlab.matfile_version(io.BytesIO(data))[0] == _HDF5:
            raise ValueError("it has the format of MATLAB 7.3, which is another one")
        content = matlab.loadmat(io.BytesIO(data))
        images, labels = content["X"], content["y"]
    except (matlab.MatReadError, ValueError, KeyError, TypeError, OSError, zlib.error) as error:
        raise DatasetError(f"{name} is not a .mat file with arrays X and y: {error}") from None
    if (
        images.dtype != np.uint8
        or images.ndim != 4
        or images.shape[:3] != (32, 32, 3)
        or labels.size != images.shape[3]
    ):
        raise DatasetError(
            f"{name} should hold X of shape (32, 32, 3, samples) and as many y, holds {images.shape} and {labels.shape}"
        )
    return flatten_images(images.transpose(3, 0, 1, 2)), class_numbers(labels.astype(np.int64) % 10, 10, name)


def load_svhn(
    source: Locator, *, thresholds: int = 31, threshold_rule: ThresholdRule = "even", files: Layout = FILES
) -> Dataset:
    """SVHN: 73,257 train and 26,032 test digits."""
    train, test = (parse_svhn(content, file.name) for content, file in zip(source.read(files), files, strict=True))
    return Dataset(
        name="svhn",
        x_train=train[0],
        y_train=train[1],
        x_test=test[0],
        y_test=test[1],
        class_names=tuple(str(number) for number in range(10)),
        feature_names=default_names(32 * 32 * 3),
        encoder=image_encoder(train[0], thresholds, rule=threshold_rule, channels=3),
        digest=digest(files),
        image_shape=(32, 32, 3),
        notes="without the extra set",
    )
