"""MNIST and Fashion-MNIST: 28 × 28 grey images in idx files.

idx file = 00 00 08 d, d big-endian 32-bit sizes, then the bytes
bit_i    = x_i > 0.5 of the range, that is x_i > 127.5
"""

import struct
from typing import Final, Literal

import numpy as np
from jaxtyping import UInt8

from gatefit.datasets.dataset import Dataset, ThresholdRule, class_numbers, image_encoder
from gatefit.datasets.files import DatasetError, Layout, Locator, RawFile, digest
from gatefit.encoders.base import default_names

_MNIST_URL: Final = "https://ossci-datasets.s3.amazonaws.com/mnist/"
_FASHION_URL: Final = "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/"

# Of the gzip files as published, and of what is in them.
_MNIST_SHA256: Final = {
    "train-images-idx3-ubyte": (
        "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
        "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
    ),
    "train-labels-idx1-ubyte": (
        "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
        "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
    ),
    "t10k-images-idx3-ubyte": (
        "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
        "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
    ),
    "t10k-labels-idx1-ubyte": (
        "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
        "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
    ),
}
_FASHION_MD5: Final = {
    "train-images-idx3-ubyte": "8d4fb7e6c68d591d4c3dfef9ec88bf0d",
    "train-labels-idx1-ubyte": "25c81989df183df01b3e8a0aad5dffbe",
    "t10k-images-idx3-ubyte": "bef4ecab320f06d8554ea6380940ec79",
    "t10k-labels-idx1-ubyte": "bb300cfdad3c16e7a12a480ee83cd310",
}

MNIST_FILES: Final = tuple(
    RawFile(name, (f"sha256:{zipped}", f"sha256:{plain}"), ("mnist",), (f"{_MNIST_URL}{name}.gz", f"sha256:{zipped}"))
    for name, (zipped, plain) in _MNIST_SHA256.items()
)
FASHION_FILES: Final = tuple(
    RawFile(name, (f"md5:{md5}",), ("fashion-mnist",), (f"{_FASHION_URL}{name}.gz", f"md5:{md5}"))
    for name, md5 in _FASHION_MD5.items()
)
FASHION_CLASSES: Final = (
    "T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot",
)  # fmt: skip


def parse_idx(data: bytes, name: str) -> UInt8[np.ndarray, "..."]:
    """The array in an idx file of bytes."""
    if len(data) < 4 or data[:3] != b"\x00\x00\x08":
        raise DatasetError(f"{name} is not an idx file of bytes: it starts with {data[:4].hex(' ') or 'nothing'}")
    dimensions = data[3]
    header = 4 + 4 * dimensions
    shape = struct.unpack(f">{dimensions}I", data[4:header]) if len(data) >= header else ()
    needed = header + int(np.prod(shape, dtype=object))
    if len(data) != needed or not shape:
        raise DatasetError(
            f"{name} should be {needed} bytes long for shape {shape}, is {len(data)}: cut off or damaged"
        )
    return np.frombuffer(bytearray(data), dtype=np.uint8, offset=header).reshape(shape)


def load_mnist(
    source: Locator,
    *,
    name: Literal["mnist", "fashion-mnist"] = "mnist",
    thresholds: int = 1,
    threshold_rule: ThresholdRule = "even",
    files: Layout | None = None,
) -> Dataset:
    """MNIST or Fashion-MNIST."""
    files = files or (MNIST_FILES if name == "mnist" else FASHION_FILES)
    x_train, y_train, x_test, y_test = (
        parse_idx(content, file.name) for content, file in zip(source.read(files), files, strict=True)
    )
    for x, y, file in ((x_train, y_train, files[0]), (x_test, y_test, files[2])):
        if x.ndim != 3 or y.shape != x.shape[:1] or x.shape[1:] != x_train.shape[1:]:
            raise DatasetError(f"{file.name} holds an array of shape {x.shape}, its labels {y.shape}: they do not fit")
    rows, columns = x_train.shape[1:]
    x_train, x_test = x_train.reshape(len(x_train), -1), x_test.reshape(len(x_test), -1)
    return Dataset(
        name=name,
        x_train=x_train,
        y_train=class_numbers(y_train, 10, files[1].name),
        x_test=x_test,
        y_test=class_numbers(y_test, 10, files[3].name),
        class_names=FASHION_CLASSES if name == "fashion-mnist" else tuple(str(digit) for digit in range(10)),
        feature_names=default_names(rows * columns),
        encoder=image_encoder(x_train, thresholds, rule=threshold_rule),
        digest=digest(files),
        image_shape=(rows, columns, 1),
    )
