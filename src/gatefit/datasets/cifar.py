"""CIFAR-10 and CIFAR-100: 32 × 32 colour images.

    official record    1 label byte (CIFAR-100: coarse, then fine), 1024 red, 1024 green, 1024 blue bytes
    bits               31 planes of (channel, row, column): x > 255 · k / 32, 95,232 bits

CIFAR-10 is also read from .npy.xz files: images (samples, row, column, channel) and labels, same order. Because they
take long to decode, the decoded images are kept in the user's cache.
"""

import io
import lzma
import tarfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, Literal

import numpy as np
from jaxtyping import UInt8

from gatefit.datasets.arrays import cached_array
from gatefit.datasets.cifar_files import CIFAR10, CIFAR10_CLASSES, CIFAR100, CIFAR100_COARSE, CIFAR100_FINE, CifarFiles
from gatefit.datasets.dataset import Dataset, class_numbers
from gatefit.datasets.files import DatasetError, Locator, RawFile, digest, read_verified
from gatefit.datasets.images import flatten_images, image_encoder
from gatefit.encoders.base import default_names

SHAPE: Final = (32, 32, 3)
PIXELS: Final = 32 * 32 * 3


def load_cifar10(source: Locator, *, thresholds: int = 31, files: CifarFiles = CIFAR10) -> Dataset:
    """CIFAR-10 from the official binary batches, their archive, or the .npy.xz layout."""
    number, paths = source.find(files.batches, files.arrays, files.archive)
    if number == 1:
        x, labels = _read_arrays(files.arrays, paths)
    else:
        x, labels = _read_batches(files, paths, archived=number == 2, label_bytes=1)
    return _dataset("cifar10", x, labels[:, 0], thresholds, CIFAR10_CLASSES, files)


def load_cifar100(
    source: Locator, *, thresholds: int = 31, labels: Literal["fine", "coarse"] = "fine", files: CifarFiles = CIFAR100
) -> Dataset:
    """CIFAR-100 from the official binary files or their archive, with its 100 fine or 20 coarse classes."""
    if labels not in ("fine", "coarse"):
        raise ValueError(f"labels must be 'fine' or 'coarse', got {labels!r}")
    number, paths = source.find(files.batches, files.archive)
    x, both = _read_batches(files, paths, archived=number == 1, label_bytes=2)
    column, names = (1, CIFAR100_FINE) if labels == "fine" else (0, CIFAR100_COARSE)
    return _dataset("cifar100", x, both[:, column], thresholds, names, files)


def parse_records(
    data: bytes, label_bytes: int, name: str
) -> tuple[UInt8[np.ndarray, "samples pixels"], UInt8[np.ndarray, "samples labels"]]:
    """Images and labels of an official binary file."""
    size = label_bytes + PIXELS
    if not data or len(data) % size:
        raise DatasetError(f"{name} should be records of {size} bytes, is {len(data)} bytes long: cut off or damaged")
    records = np.frombuffer(data, dtype=np.uint8).reshape(-1, size)
    return records[:, label_bytes:], records[:, :label_bytes]


Parts = tuple[list[UInt8[np.ndarray, "_ pixels"]], UInt8[np.ndarray, "samples labels"]]


def _read_batches(files: CifarFiles, paths: list[Path], *, archived: bool, label_bytes: int) -> Parts:
    """Images of the train and of the test samples, and all labels."""
    if archived:
        contents = _unpack(read_verified(paths[0], files.archive[0]), files)
    else:
        contents = [read_verified(path, file) for path, file in zip(paths, files.batches, strict=True)]
    parsed = [parse_records(c, label_bytes, f.name) for c, f in zip(contents, files.batches, strict=True)]
    images = [image for image, _ in parsed]
    return [np.concatenate(images[:-1]), images[-1].copy()], np.concatenate([label for _, label in parsed])


def _unpack(archive: bytes, files: CifarFiles) -> list[bytes]:
    """The batches in an archive, read in memory: no path in it is ever used for writing."""
    contents: dict[str, bytes] = {}
    wanted = {file.name for file in files.batches}
    try:
        with tarfile.open(fileobj=io.BytesIO(archive), mode="r:*") as tar:
            for member in tar:
                name = member.name.rpartition("/")[2]
                if member.isfile() and name in wanted and (stream := tar.extractfile(member)) is not None:
                    contents[name] = stream.read()
    except (tarfile.TarError, EOFError, OSError) as error:
        raise DatasetError(f"{files.archive[0].name} cannot be unpacked: {error}") from None
    if missing := sorted(wanted - contents.keys()):
        raise DatasetError(f"{files.archive[0].name} lacks {', '.join(missing)}")
    return [contents[file.name] for file in files.batches]


def _read_arrays(files: tuple[RawFile, ...], paths: list[Path]) -> Parts:
    """The .npy.xz layout: image batches, the last of them the test samples, then train and test labels."""
    contents = [read_verified(path, file) for path, file in zip(paths, files, strict=True)]
    batches = len(files) - 2
    labels = [
        _load_npy(c, f.name, (-1,)).reshape(-1, 1) for c, f in zip(contents[batches:], files[batches:], strict=True)
    ]

    def decode() -> np.ndarray:
        with ThreadPoolExecutor() as pool:  # lzma works outside the interpreter's lock
            return np.concatenate([*pool.map(_decode_images, contents[:batches], [f.name for f in files[:batches]])])

    x = cached_array("cifar10", digest(files[:batches]), decode)
    train = len(labels[0])
    return [x[:train], x[train:]], np.concatenate(labels)


def _decode_images(content: bytes, name: str) -> UInt8[np.ndarray, "samples pixels"]:
    try:
        plain = lzma.decompress(content)
    except lzma.LZMAError as error:
        raise DatasetError(f"{name} cannot be decompressed: {error}") from None
    return flatten_images(_load_npy(plain, name, (-1, *SHAPE)))


def _load_npy(content: bytes, name: str, shape: tuple[int, ...]) -> UInt8[np.ndarray, "..."]:
    try:
        array = np.load(io.BytesIO(content), allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise DatasetError(f"{name} is not a .npy file: {error}") from None
    if array.dtype != np.uint8 or array.shape[1:] != shape[1:]:
        raise DatasetError(f"{name} should hold uint8 of shape {shape}, holds {array.dtype} of shape {array.shape}")
    return array  # type: ignore[no-any-return]


def _dataset(
    name: str,
    x: list[UInt8[np.ndarray, "_ pixels"]],
    labels: UInt8[np.ndarray, " samples"],
    thresholds: int,
    class_names: tuple[str, ...],
    files: CifarFiles,
) -> Dataset:
    x_train, x_test = x
    y = class_numbers(labels, len(class_names), name)
    if len(y) != len(x_train) + len(x_test):
        raise DatasetError(f"{name} has {len(x_train) + len(x_test)} images but {len(y)} labels")
    return Dataset(
        name=name,
        x_train=x_train,
        y_train=y[: len(x_train)],
        x_test=x_test,
        y_test=y[len(x_train) :],
        class_names=class_names,
        feature_names=default_names(PIXELS),
        encoder=image_encoder(x_train, thresholds),
        digest=digest(files.batches),
        image_shape=SHAPE,
    )
