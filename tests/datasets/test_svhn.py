"""SVHN from small .mat files."""

import io

import numpy as np
import pytest

from gatefit.datasets import DatasetError, Locator
from gatefit.datasets.svhn import FILES, load_svhn, parse_svhn
from gatefit.encoders import Thermometer

RNG = np.random.default_rng(0)


def mat(**arrays):
    from scipy.io import savemat

    buffer = io.BytesIO()
    savemat(buffer, arrays, do_compression=True)
    return buffer.getvalue()


def test_svhn(tmp_path, sealed):
    images = RNG.integers(0, 256, (5, 32, 32, 3), dtype=np.uint8)
    labels = np.array([[1], [10], [9], [10], [3]], dtype=np.uint8)
    contents = [
        mat(X=images[:3].transpose(1, 2, 3, 0), y=labels[:3]),
        mat(X=images[3:].transpose(1, 2, 3, 0), y=labels[3:]),
    ]
    (tmp_path / "svhn").mkdir()
    for file, content in zip(FILES, contents, strict=True):
        (tmp_path / "svhn" / file.name).write_bytes(content)
    data = load_svhn(Locator("svhn", tmp_path), files=sealed(FILES, contents))
    assert np.array_equal(data.x_train, images[:3].transpose(0, 3, 1, 2).reshape(3, -1))
    assert (data.y_train.tolist(), data.y_test.tolist()) == ([1, 0, 9], [0, 3])  # 10 stands for the digit 0
    assert data.bits == 95_232
    assert isinstance(data.encoder, Thermometer)
    assert data.image_shape == (32, 32, 3)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"not a mat file" * 100, "is not a .mat file with arrays X and y"),
        (b"", "is not a .mat file"),
        (b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM" + bytes(600), "has the format of MATLAB 7.3"),
        (mat(X=np.zeros((32, 32, 3, 2), np.uint8)), "is not a .mat file with arrays X and y: 'y'"),
        (mat(X=np.zeros((32, 32, 3, 2), np.uint8), y=np.ones((3, 1))), r"holds \(32, 32, 3, 2\) and \(3, 1\)"),
        (mat(X=np.zeros((2, 32, 32, 3)), y=np.ones((2, 1))), r"should hold X of shape \(32, 32, 3, samples\)"),
    ],
)
def test_malformed_svhn(content, message):
    with pytest.raises(DatasetError, match=message):
        parse_svhn(content, "train_32x32.mat")
