"""MNIST and Fashion-MNIST: idx files."""

import gzip
import struct

import numpy as np
import pytest

from gatefit.datasets import DatasetError, Locator, load_dataset
from gatefit.datasets.files import checksum
from gatefit.datasets.mnist import FASHION_FILES, load_mnist, parse_idx
from gatefit.encoders import Threshold

RNG = np.random.default_rng(0)


def idx(array):
    return struct.pack(f">BBBB{array.ndim}I", 0, 0, 8, array.ndim, *array.shape) + array.tobytes()


@pytest.fixture
def fashion(tmp_path, sealed):
    arrays = [
        RNG.integers(0, 256, (7, 28, 28), dtype=np.uint8),
        np.arange(7, dtype=np.uint8),
        RNG.integers(0, 256, (3, 28, 28), dtype=np.uint8),
        np.array([9, 0, 9], dtype=np.uint8),
    ]
    contents = [gzip.compress(idx(array)) for array in arrays]
    (tmp_path / "fashion-mnist").mkdir()
    for file, content in zip(FASHION_FILES, contents, strict=True):
        (tmp_path / "fashion-mnist" / f"{file.name}.gz").write_bytes(content)
    return Locator("fashion-mnist", tmp_path), sealed(FASHION_FILES, contents), arrays


def test_fashion_mnist(fashion):
    source, files, arrays = fashion
    data = load_mnist(source, name="fashion-mnist", files=files)
    assert np.array_equal(data.x_train, arrays[0].reshape(7, 784))
    assert np.array_equal(data.x_test, arrays[2].reshape(3, 784))
    assert data.y_train.tolist() == [0, 1, 2, 3, 4, 5, 6]
    assert [data.class_names[y] for y in data.y_test] == ["Ankle boot", "T-shirt/top", "Ankle boot"]
    assert data.image_shape == (28, 28, 1)
    assert data.x_train.flags.writeable
    assert isinstance(data.encoder, Threshold)
    assert np.array_equal(data.encoder.transform(data.x_train), data.x_train > 127)
    assert load_mnist(source, name="fashion-mnist", files=files, thresholds=3).bits == 3 * 784


def test_truncated_image_file(fashion):
    source, files, _ = fashion
    path = source.data_dir / "fashion-mnist" / f"{files[0].name}.gz"
    path.write_bytes(path.read_bytes()[:-100])
    found = checksum(path.read_bytes(), "md5")
    with pytest.raises(DatasetError, match=f"{path} is damaged .* expected {files[0].checksums[0]}, found {found}"):
        load_mnist(source, name="fashion-mnist", files=files)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not an idx file of bytes: it starts with nothing"),
        (b"\x00\x00\x0d\x01" + b"\0" * 8, "it starts with 00 00 0d 01"),
        (idx(np.zeros((2, 3), np.uint8))[:-1], "should be 18 bytes long for shape .2, 3., is 17"),
        (idx(np.zeros((2, 3), np.uint8)) + b"\0", "is 19: cut off or damaged"),
        (b"\x00\x00\x08\x03\x00\x00", "cut off or damaged"),
        (b"\x00\x00\x08\x02" + b"\xff" * 8, "should be 18446744065119617037 bytes long"),
    ],
)
def test_malformed_idx(content, message):
    with pytest.raises(DatasetError, match=f"some-idx .*{message}"):
        parse_idx(content, "some-idx")


def test_idx_files_that_do_not_fit(fashion):
    source, files, _ = fashion
    wrong = (files[0], files[3], files[2], files[1])
    with pytest.raises(DatasetError, match="they do not fit"):
        load_mnist(source, name="fashion-mnist", files=wrong)


@pytest.mark.data
def test_real_mnist(data_dir):
    data = load_dataset("mnist", data_dir=data_dir, download=False)
    assert np.bincount(data.y_train).tolist() == [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]
    assert np.bincount(data.y_test).tolist() == [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]
    assert data.y_train[:10].tolist() == [5, 0, 4, 1, 9, 2, 1, 3, 1, 4]
    assert data.x_train[0, 28 * 5 + 12 : 28 * 5 + 16].tolist() == [3, 18, 18, 18]
    assert np.array_equal(data.encoder.transform(data.x_test), data.x_test / 255 > 0.5)
