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
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

import numpy as np
from jaxtyping import UInt8

from gatefit.datasets.dataset import Dataset, ThresholdRule, class_numbers, flatten_images, image_encoder
from gatefit.datasets.files import DatasetError, Layout, Locator, RawFile, cached_array, digest, read_verified
from gatefit.encoders.base import default_names

SHAPE: Final = (32, 32, 3)
PIXELS: Final = 32 * 32 * 3
_URL: Final = "https://www.cs.toronto.edu/~kriz/"


@dataclass(frozen=True)
class CifarFiles:
    """The layouts in which one of the sets may be found; the test samples are in the last batch."""

    batches: Layout
    archive: Layout
    arrays: Layout = ()


def _sha256(name: str, value: str, *folders: str) -> RawFile:
    return RawFile(name, (f"sha256:{value}",), folders)


_BIN: Final = ("cifar10/cifar-10-batches-bin", "cifar10", "cifar-10-batches-bin")

# The arrays hold exactly the bytes of the batches, so both layouts share one digest, that of the batches.
CIFAR10: Final = CifarFiles(
    batches=(
        _sha256("data_batch_1.bin", "cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5", *_BIN),
        _sha256("data_batch_2.bin", "a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed", *_BIN),
        _sha256("data_batch_3.bin", "bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67", *_BIN),
        _sha256("data_batch_4.bin", "014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48", *_BIN),
        _sha256("data_batch_5.bin", "755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add", *_BIN),
        _sha256("test_batch.bin", "8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b", *_BIN),
    ),
    archive=(
        RawFile(
            "cifar-10-binary.tar.gz",
            ("md5:c32a1d4ab5d03f1284b67883e8d87530",),
            ("cifar10",),
            (f"{_URL}cifar-10-binary.tar.gz", "md5:c32a1d4ab5d03f1284b67883e8d87530"),
        ),
    ),
    arrays=tuple(
        _sha256(name, value, "cifar10")
        for name, value in {
            "data_batch_1_images.npy.xz": "95cfc60b6a47f0c1fe9a24f559845fa4fe9060331f9b5dd7a9dfbf8985b4e209",
            "data_batch_2_images.npy.xz": "eb41affc4e56a6f19fdae6bfd52fbc74055ea09bfb2007c2c544b80c4f0d7b92",
            "data_batch_3_images.npy.xz": "a09133a19f2d9e625daa71503e671aaf89e7718358f928c92b533991b6b110ee",
            "data_batch_4_images.npy.xz": "637bd5fc32f4b3a368dfbc79a981b5b0af45b235ae1435141f1d8699ceedea31",
            "data_batch_5_images.npy.xz": "dfaeddfc8e86ae6dfe67bd5685d5b8a2d2b6f23b967518aa4ee2ea4f6b0598bb",
            "test_batch_images.npy.xz": "4f4c2e198f59fa355d168b74e6f5a3f83388e93bf3a0142793e0bd9af6077092",
            "train_labels.npy": "fad921ba16b0efeebb54393d1351545d1fe1a357f6f81324c821e3e11b956c70",
            "test_labels.npy": "19004b019bd095265b4ce6637c9ff979c66abcbc8e658a665f791b487cdea5eb",
        }.items()
    ),
)

_BIN100: Final = ("cifar100/cifar-100-binary", "cifar100", "cifar-100-binary")

CIFAR100: Final = CifarFiles(
    batches=(
        RawFile("train.bin", ("md5:6172c7755cfe09b2fe270c85cebc1b15",), _BIN100),
        RawFile("test.bin", ("md5:4499cfba6c016c1be1438163640a0898",), _BIN100),
    ),
    archive=(
        RawFile(
            "cifar-100-binary.tar.gz",
            ("md5:03b5dce01913d631647c71ecec9e9cb8",),
            ("cifar100",),
            (f"{_URL}cifar-100-binary.tar.gz", "md5:03b5dce01913d631647c71ecec9e9cb8"),
        ),
    ),
)

CIFAR10_CLASSES: Final = (
    "airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck",
)  # fmt: skip

CIFAR100_FINE: Final = tuple(
    """
    apple aquarium_fish baby bear beaver bed bee beetle bicycle bottle bowl boy bridge bus butterfly camel can castle
    caterpillar cattle chair chimpanzee clock cloud cockroach couch crab crocodile cup dinosaur dolphin elephant
    flatfish forest fox girl hamster house kangaroo keyboard lamp lawn_mower leopard lion lizard lobster man maple_tree
    motorcycle mountain mouse mushroom oak_tree orange orchid otter palm_tree pear pickup_truck pine_tree plain plate
    poppy porcupine possum rabbit raccoon ray road rocket rose sea seal shark shrew skunk skyscraper snail snake spider
    squirrel streetcar sunflower sweet_pepper table tank telephone television tiger tractor train trout tulip turtle
    wardrobe whale willow_tree wolf woman worm
    """.split()  # noqa: SIM905
)

CIFAR100_COARSE: Final = tuple(
    """
    aquatic_mammals fish flowers food_containers fruit_and_vegetables household_electrical_devices household_furniture
    insects large_carnivores large_man-made_outdoor_things large_natural_outdoor_scenes large_omnivores_and_herbivores
    medium_mammals non-insect_invertebrates people reptiles small_mammals trees vehicles_1 vehicles_2
    """.split()  # noqa: SIM905
)


def load_cifar10(
    source: Locator, *, thresholds: int = 31, threshold_rule: ThresholdRule = "even", files: CifarFiles = CIFAR10
) -> Dataset:
    """CIFAR-10 from the official binary batches, their archive, or the .npy.xz layout."""
    number, paths = source.find(files.batches, files.arrays, files.archive)
    if number == 1:
        x, labels = _read_arrays(files.arrays, paths)
    else:
        x, labels = _read_batches(files, paths, archived=number == 2, label_bytes=1)
    return _dataset("cifar10", x, labels[:, 0], thresholds, threshold_rule, CIFAR10_CLASSES, files)


def load_cifar100(
    source: Locator,
    *,
    thresholds: int = 31,
    threshold_rule: ThresholdRule = "even",
    labels: Literal["fine", "coarse"] = "fine",
    files: CifarFiles = CIFAR100,
) -> Dataset:
    """CIFAR-100 from the official binary files or their archive, with its 100 fine or 20 coarse classes."""
    if labels not in ("fine", "coarse"):
        raise ValueError(f"labels must be 'fine' or 'coarse', got {labels!r}")
    number, paths = source.find(files.batches, files.archive)
    x, both = _read_batches(files, paths, archived=number == 1, label_bytes=2)
    column, names = (1, CIFAR100_FINE) if labels == "fine" else (0, CIFAR100_COARSE)
    return _dataset("cifar100", x, both[:, column], thresholds, threshold_rule, names, files)


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
    threshold_rule: ThresholdRule,
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
        encoder=image_encoder(x_train, thresholds, rule=threshold_rule, channels=3),
        digest=digest(files.batches),
        image_shape=SHAPE,
    )
