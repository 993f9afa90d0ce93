"""Tiny-ImageNet from a small folder and a small archive in the official layout."""

import io
import sys
import zipfile

import numpy as np
import pytest

from gatefit.datasets import DatasetError, Locator
from gatefit.datasets.tiny_imagenet import ARCHIVE, load_tiny_imagenet


def jpeg(array):
    image = pytest.importorskip("PIL.Image")
    buffer = io.BytesIO()
    image.fromarray(array).save(buffer, format="JPEG", quality=95)
    return buffer.getvalue()


@pytest.fixture
def tiny():
    """Two classes, two train images each (one of them grey), two validation images."""
    flat = {name: np.full((64, 64, 3), 40 * i, dtype=np.uint8) for i, name in enumerate("abcdef")}
    return {
        "wnids.txt": b"n02\nn01\n",
        "words.txt": b"n01\tgoldfish, Carassius auratus\nn02\tEuropean fire salamander\nn03\tother\n",
        "train/n01/images/n01_0.JPEG": jpeg(flat["a"]),
        "train/n01/images/n01_1.JPEG": jpeg(flat["b"]),
        "train/n02/images/n02_0.JPEG": jpeg(flat["c"]),
        "train/n02/images/n02_1.JPEG": jpeg(flat["d"][:, :, 0]),
        "train/n02/n02_boxes.txt": b"n02_0.JPEG\t0\t0\t1\t1\n",
        "val/images/val_0.JPEG": jpeg(flat["e"]),
        "val/images/val_1.JPEG": jpeg(flat["f"]),
        "val/val_annotations.txt": b"val_0.JPEG\tn02\t0\t32\t44\t62\nval_1.JPEG\tn01\t52\t55\t57\t59\n",
        "test/images/test_0.JPEG": jpeg(flat["a"]),
    }


SMALL = {"train_per_class": 2, "test_images": 2}


def unpack(folder, members):
    for name, content in members.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def test_tiny_imagenet_folder_and_archive(tmp_path, tiny, sealed):
    unpack(tmp_path / "unpacked" / "tiny-imagenet-200", tiny)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in tiny.items():
            archive.writestr(f"tiny-imagenet-200/{name}", content)
    (tmp_path / "packed" / "tiny-imagenet").mkdir(parents=True)
    (tmp_path / "packed" / "tiny-imagenet" / "tiny-imagenet-200.zip").write_bytes(buffer.getvalue())
    files = sealed(ARCHIVE, [buffer.getvalue()])
    sets = [
        load_tiny_imagenet(Locator("tiny-imagenet", tmp_path / place), archive=files, **SMALL)
        for place in ("unpacked", "packed")
    ]
    for data in sets:
        assert data.x_train.shape == (4, 3 * 64 * 64)
        assert data.x_train.mean(axis=1).round().tolist() == [0, 40, 80, 120]
        assert data.x_train.reshape(4, 3, 4096)[3].std(axis=0).max() == 0  # grey: the three channels are equal
        assert (data.y_train.tolist(), data.y_test.tolist()) == ([0, 0, 1, 1], [1, 0])
        assert data.class_names == ("goldfish", "European fire salamander")
        assert data.image_shape == (64, 64, 3)
        assert data.bits == 380_928
    assert sets[0].digest == sets[1].digest
    assert np.array_equal(sets[0].x_test, sets[1].x_test)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"val/images/val_1.JPEG": None}, "found 2 to 2 and 1; unpack the archive again"),
        ({"train/n01/images/n01_1.JPEG": None}, "found 1 to 2 and 2"),
        ({"train/n01/images/n01_1.JPEG": b"\xff\xd8 no image"}, "train/n01/images/n01_1.JPEG cannot be decoded"),
        ({"val/val_annotations.txt": b"val_0.JPEG\tn02\n"}, "no class is known for 'val_1.JPEG'"),
        ({"train/n09/images/n09_0.JPEG": b""}, "no class is known for 'n09'"),
        ({"words.txt": None}, "lacks words.txt"),
    ],
)
def test_tiny_imagenet_with_something_wrong(tmp_path, tiny, change, message):
    members = {name: content for name, content in {**tiny, **change}.items() if content is not None}
    unpack(tmp_path / "tiny-imagenet", members)
    with pytest.raises(DatasetError, match=message):
        load_tiny_imagenet(Locator("tiny-imagenet", tmp_path), **SMALL)


def test_tiny_imagenet_archive_without_a_member(tmp_path, sealed):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("tiny-imagenet-200/words.txt", b"")
    (tmp_path / "tiny-imagenet-200.zip").write_bytes(buffer.getvalue())
    with pytest.raises(DatasetError, match=r"the archive lacks tiny-imagenet-200/wnids\.txt"):
        load_tiny_imagenet(Locator("tiny-imagenet", tmp_path), archive=sealed(ARCHIVE, [buffer.getvalue()]), **SMALL)


def test_tiny_imagenet_image_of_another_size(tmp_path, tiny):
    tiny["val/images/val_0.JPEG"] = jpeg(np.zeros((32, 64, 3), np.uint8))
    unpack(tmp_path, tiny)
    with pytest.raises(DatasetError, match=r"val_0.JPEG should be 64 x 64 pixels, is \(64, 32\)"):
        load_tiny_imagenet(Locator("tiny-imagenet", tmp_path), **SMALL)


def test_tiny_imagenet_without_pillow(tmp_path, tiny, monkeypatch):
    unpack(tmp_path, tiny)
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(ImportError, match="tiny-imagenet needs Pillow"):
        load_tiny_imagenet(Locator("tiny-imagenet", tmp_path), **SMALL)
