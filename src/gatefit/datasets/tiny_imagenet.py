"""Tiny-ImageNet: 200 classes of 64 × 64 colour images, 500 for training and 50 for testing each.

    train    train/<class>/images/*.JPEG
    test     val/images/*.JPEG, their classes in val/val_annotations.txt (the official test images have no labels)
    bits     31 planes of (channel, row, column): 380,928 bits

The archive is checked by its MD5. The single files of an unpacked folder have no published checksums: there the
numbers of images are checked. The digest is taken over all images in both cases, so it is the same for both.
"""

import hashlib
import io
import zipfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Final

import numpy as np
from jaxtyping import UInt8

from gatefit.datasets.dataset import Dataset, ThresholdRule, class_numbers, image_encoder
from gatefit.datasets.files import DatasetError, Layout, Locator, RawFile, read_verified
from gatefit.encoders.base import default_names

_MD5: Final = "md5:90528d7ca1a48142e341f4ef8d21d0de"
ARCHIVE: Final = (
    RawFile(
        "tiny-imagenet-200.zip",
        (_MD5,),
        ("tiny-imagenet",),
        ("http://cs231n.stanford.edu/tiny-imagenet-200.zip", _MD5),
    ),
)
FOLDER: Final = (RawFile("wnids.txt", (), ("tiny-imagenet/tiny-imagenet-200", "tiny-imagenet", "tiny-imagenet-200")),)

SIDE: Final = 64
Reader = Callable[[str], bytes]


def load_tiny_imagenet(
    source: Locator,
    *,
    thresholds: int = 31,
    threshold_rule: ThresholdRule = "even",
    archive: Layout = ARCHIVE,
    train_per_class: int = 500,
    test_images: int = 10_000,
) -> Dataset:
    """Tiny-ImageNet from its archive or from the unpacked folder; classes in the order of their WordNet numbers."""
    number, (path,) = source.find(FOLDER, archive)
    names, read = _open_folder(path.parent) if number == 0 else _open_archive(read_verified(path, archive[0]))
    wnids = sorted(read("wnids.txt").decode().split())
    class_of = {wnid: i for i, wnid in enumerate(wnids)}
    train = sorted(n for n in names if n.startswith("train/") and n.endswith(".JPEG"))
    test = sorted(n for n in names if n.startswith("val/images/") and n.endswith(".JPEG"))
    try:
        y_train = class_numbers([class_of[name.split("/")[1]] for name in train], len(wnids), "train")
        annotations = dict(line.split("\t")[:2] for line in read("val/val_annotations.txt").decode().splitlines())
        y_test = class_numbers([class_of[annotations[n.rpartition("/")[2]]] for n in test], len(wnids), "val")
    except (KeyError, ValueError) as error:
        raise DatasetError(f"{path} is not Tiny-ImageNet: no class is known for {error}") from None
    counts = np.bincount(y_train, minlength=len(wnids))
    if np.any(counts != train_per_class) or len(test) != test_images:
        raise DatasetError(
            f"{path}: expected {train_per_class} train images in each class and {test_images} validation images, "
            f"found {counts.min()} to {counts.max()} and {len(test)}; unpack the archive again"
        )
    digest = hashlib.sha256()
    x_train, x_test = (_decode_all(part, read, digest.update) for part in (train, test))
    words = dict(line.split("\t", 1) for line in read("words.txt").decode().splitlines() if "\t" in line)
    return Dataset(
        name="tiny-imagenet",
        x_train=x_train,
        y_train=y_train,
        x_test=x_test,
        y_test=y_test,
        class_names=tuple(words.get(wnid, wnid).partition(",")[0].strip() for wnid in wnids),
        feature_names=default_names(SIDE * SIDE * 3),
        encoder=image_encoder(x_train, thresholds, rule=threshold_rule, channels=3),
        digest=digest.hexdigest(),
        image_shape=(SIDE, SIDE, 3),
        notes="test samples are the official validation images; JPEG decoded by Pillow, grey images repeated as RGB",
    )


def _open_folder(root: Path) -> tuple[list[str], Reader]:
    def read(name: str) -> bytes:
        try:
            return (root / name).read_bytes()
        except FileNotFoundError:
            raise DatasetError(f"{root} lacks {name}; unpack the archive again") from None

    names = [path.relative_to(root).as_posix() for part in ("train", "val") for path in (root / part).rglob("*.JPEG")]
    return names, read


def _open_archive(data: bytes) -> tuple[list[str], Reader]:
    archive = zipfile.ZipFile(io.BytesIO(data))
    prefix = "tiny-imagenet-200/"

    def read(name: str) -> bytes:
        try:
            return archive.read(prefix + name)
        except KeyError:
            raise DatasetError(f"the archive lacks {prefix}{name}") from None

    return [name.removeprefix(prefix) for name in archive.namelist()], read


def _decode_all(names: list[str], read: Reader, update: Callable[[bytes], None]) -> UInt8[np.ndarray, "samples pixels"]:
    image_module = _pillow()
    x = np.empty((len(names), 3, SIDE, SIDE), dtype=np.uint8)

    def decode(position: int) -> bytes:
        content = read(names[position])
        try:
            image = np.asarray(image_module.open(io.BytesIO(content)).convert("RGB"))
        except OSError as error:
            raise DatasetError(f"{names[position]} cannot be decoded: {error}") from None
        if image.shape != (SIDE, SIDE, 3):
            raise DatasetError(f"{names[position]} should be {SIDE} x {SIDE} pixels, is {image.shape[1::-1]}")
        x[position] = image.transpose(2, 0, 1)
        return hashlib.sha256(content).digest()

    with ThreadPoolExecutor() as pool:  # decoding works outside the interpreter's lock
        for name, checksum in zip(names, pool.map(decode, range(len(names))), strict=True):
            update(name.encode() + checksum)
    return x.reshape(len(names), -1)


def _pillow() -> ModuleType:
    try:
        from PIL import Image
    except ModuleNotFoundError:
        raise ImportError("tiny-imagenet needs Pillow to decode its JPEG images; run: pip install pillow") from None
    return Image
