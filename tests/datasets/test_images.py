"""Image sets, from small files in the official formats made here, and from real ones where there are any."""

import gzip
import hashlib
import io
import lzma
import struct
import sys
import tarfile
import zipfile
from dataclasses import replace

import numpy as np
import pytest

from gatefit.datasets import DatasetError, Locator, load_dataset
from gatefit.datasets.cifar import load_cifar10, load_cifar100, parse_records
from gatefit.datasets.cifar_files import CIFAR10, CIFAR10_CLASSES, CIFAR100, CIFAR100_COARSE, CIFAR100_FINE
from gatefit.datasets.files import checksum
from gatefit.datasets.mnist import FASHION_FILES, load_mnist, parse_idx
from gatefit.datasets.svhn import FILES as SVHN_FILES
from gatefit.datasets.svhn import load_svhn, parse_svhn
from gatefit.datasets.tiny_imagenet import ARCHIVE, load_tiny_imagenet
from gatefit.encoders import Thermometer, Threshold

RNG = np.random.default_rng(0)


def sealed(files, contents):
    """The files with the checksums of these contents."""
    return tuple(
        replace(file, checksums=(checksum(content, "md5"),)) for file, content in zip(files, contents, strict=True)
    )


def idx(array):
    return struct.pack(f">BBBB{array.ndim}I", 0, 0, 8, array.ndim, *array.shape) + array.tobytes()


@pytest.fixture
def fashion(tmp_path):
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


@pytest.fixture
def cifar():
    """Six official records a batch, and the same as images (sample, row, column, channel) and labels."""
    images = RNG.integers(0, 256, (6, 4, 32, 32, 3), dtype=np.uint8)
    labels = RNG.integers(0, 10, (6, 4), dtype=np.uint8)
    batches = [
        b"".join(bytes([y]) + x.transpose(2, 0, 1).tobytes() for x, y in zip(xs, ys, strict=True))
        for xs, ys in zip(images, labels, strict=True)
    ]
    return images, labels, batches


def tar_of(members):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


def npy(array):
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


def store_cifar(layout, folder, cifar):
    """Write one layout of CIFAR-10; the files with their checksums."""
    images, labels, batches = cifar
    names = [file.name for file in CIFAR10.batches]
    if layout == "archive":
        contents = [
            tar_of({f"cifar-10-batches-bin/{n}": b for n, b in zip(names, batches, strict=True)} | {"../x": b"y"})
        ]
    elif layout == "arrays":
        contents = [lzma.compress(npy(batch)) for batch in images] + [npy(labels[:5].ravel()), npy(labels[5])]
    else:
        contents = batches
    folder.mkdir(parents=True)
    files = replace(CIFAR10, batches=sealed(CIFAR10.batches, batches))
    for file, content in zip(getattr(CIFAR10, layout), contents, strict=True):
        (folder / file.name).write_bytes(content)
    return replace(files, **{layout: sealed(getattr(CIFAR10, layout), contents)})


@pytest.mark.parametrize(
    ("layout", "folder"),
    [
        ("batches", "cifar10/cifar-10-batches-bin"),
        ("batches", "cifar-10-batches-bin"),
        ("batches", "cifar10"),
        ("archive", "cifar10"),
        ("arrays", "cifar10"),
    ],
)
def test_cifar10_layouts_hold_the_same(tmp_path, cifar, layout, folder):
    images, labels, _ = cifar
    files = store_cifar(layout, tmp_path / "data" / folder, cifar)
    data = load_cifar10(Locator("cifar10", tmp_path / "data"), files=files)
    assert np.array_equal(data.x_train, images[:5].reshape(20, 32, 32, 3).transpose(0, 3, 1, 2).reshape(20, 3072))
    assert np.array_equal(data.x_test, images[5].transpose(0, 3, 1, 2).reshape(4, 3072))
    assert np.array_equal(data.y_train, labels[:5].ravel())
    assert np.array_equal(data.y_test, labels[5])
    assert data.class_names == CIFAR10_CLASSES
    assert data.bits == 95_232
    assert data.digest == load_cifar10(Locator("cifar10", tmp_path / "data"), files=files, thresholds=3).digest
    planes = data.encoder.transform(data.x_test).reshape(4, 31, 3, 32, 32)
    for k in (0, 15, 30):
        assert np.array_equal(planes[:, k], images[5].transpose(0, 3, 1, 2) > 255 * (k + 1) / 32)


def test_cifar10_layouts_have_one_digest(tmp_path, cifar):
    digests = set()
    for layout in ("batches", "archive", "arrays"):
        files = store_cifar(layout, tmp_path / layout / "cifar10", cifar)
        digests.add(load_cifar10(Locator("cifar10", tmp_path / layout), files=files).digest)
    assert len(digests) == 1


def test_cifar10_arrays_are_decoded_once(tmp_path, cifar, monkeypatch):
    files = store_cifar("arrays", tmp_path / "data" / "cifar10", cifar)
    source = Locator("cifar10", tmp_path / "data")
    first = load_cifar10(source, files=files)
    monkeypatch.setattr(lzma, "decompress", None)
    again = load_cifar10(source, files=files)
    assert np.array_equal(first.x_train, again.x_train)
    assert np.array_equal(first.x_test, again.x_test)


@pytest.mark.parametrize("layout", ["batches", "archive", "arrays"])
def test_cifar10_damaged_file(tmp_path, cifar, layout):
    files = store_cifar(layout, tmp_path / "cifar10", cifar)
    path = tmp_path / "cifar10" / getattr(files, layout)[0].name
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(DatasetError, match=f"{path} is damaged"):
        load_cifar10(Locator("cifar10", tmp_path), files=files)


def test_cifar10_archive_without_a_batch(tmp_path):
    content = tar_of({"cifar-10-batches-bin/data_batch_1.bin": b"x"})
    (tmp_path / "cifar-10-binary.tar.gz").write_bytes(content)
    files = replace(CIFAR10, archive=sealed(CIFAR10.archive, [content]))
    with pytest.raises(DatasetError, match=r"lacks data_batch_2.bin, .*, test_batch.bin"):
        load_cifar10(Locator("cifar10", tmp_path), files=files)
    broken = replace(CIFAR10, archive=sealed(CIFAR10.archive, [content[:30]]))
    (tmp_path / "cifar-10-binary.tar.gz").write_bytes(content[:30])
    with pytest.raises(DatasetError, match="cannot be unpacked"):
        load_cifar10(Locator("cifar10", tmp_path), files=broken)


def test_records_of_the_wrong_size():
    with pytest.raises(DatasetError, match=r"batch\.bin should be records of 3073 bytes, is 3072 bytes long"):
        parse_records(bytes(3072), 1, "batch.bin")
    with pytest.raises(DatasetError, match="cut off or damaged"):
        parse_records(b"", 1, "batch.bin")


@pytest.mark.parametrize("packed", [False, True], ids=["bins", "archive"])
def test_cifar100(tmp_path, packed):
    images = RNG.integers(0, 256, (5, 3072), dtype=np.uint8)
    labels = np.array([[0, 1], [19, 99], [3, 50], [4, 0], [1, 1]], dtype=np.uint8)
    records = np.concatenate([labels, images], axis=1)
    contents = [records[:3].tobytes(), records[3:].tobytes()]
    files = replace(CIFAR100, batches=sealed(CIFAR100.batches, contents))
    if packed:
        archive = tar_of({"cifar-100-binary/train.bin": contents[0], "cifar-100-binary/test.bin": contents[1]})
        files = replace(files, archive=sealed(CIFAR100.archive, [archive]))
        (tmp_path / "cifar-100-binary.tar.gz").write_bytes(archive)
    else:
        (tmp_path / "cifar100").mkdir()
        (tmp_path / "cifar100" / "train.bin").write_bytes(contents[0])
        (tmp_path / "cifar100" / "test.bin").write_bytes(contents[1])
    source = Locator("cifar100", tmp_path)
    fine = load_cifar100(source, files=files)
    assert np.array_equal(fine.x_train, images[:3])
    assert [fine.class_names[y] for y in fine.y_train] == ["aquarium_fish", "worm", "mouse"]
    coarse = load_cifar100(source, labels="coarse", files=files)
    assert [coarse.class_names[y] for y in coarse.y_test] == ["fruit_and_vegetables", "fish"]
    assert (fine.classes, coarse.classes, fine.bits) == (100, 20, 95_232)
    with pytest.raises(ValueError, match="labels must be 'fine' or 'coarse', got 'both'"):
        load_cifar100(source, labels="both")


def test_class_names_of_cifar100():
    assert (len(CIFAR100_FINE), len(CIFAR100_COARSE)) == (100, 20)
    assert list(CIFAR100_FINE) == sorted(set(CIFAR100_FINE))
    assert list(CIFAR100_COARSE) == sorted(set(CIFAR100_COARSE))


def test_cifar_label_out_of_range(tmp_path):
    record = bytes([3, 100]) + bytes(3072)
    (tmp_path / "train.bin").write_bytes(record)
    (tmp_path / "test.bin").write_bytes(record)
    files = replace(CIFAR100, batches=sealed(CIFAR100.batches, [record, record]))
    with pytest.raises(DatasetError, match="labels 100 to 100; classes are 0 to 99"):
        load_cifar100(Locator("cifar100", tmp_path), files=files)


def mat(**arrays):
    from scipy.io import savemat

    buffer = io.BytesIO()
    savemat(buffer, arrays, do_compression=True)
    return buffer.getvalue()


def test_svhn(tmp_path):
    images = RNG.integers(0, 256, (5, 32, 32, 3), dtype=np.uint8)
    labels = np.array([[1], [10], [9], [10], [3]], dtype=np.uint8)
    contents = [
        mat(X=images[:3].transpose(1, 2, 3, 0), y=labels[:3]),
        mat(X=images[3:].transpose(1, 2, 3, 0), y=labels[3:]),
    ]
    (tmp_path / "svhn").mkdir()
    for file, content in zip(SVHN_FILES, contents, strict=True):
        (tmp_path / "svhn" / file.name).write_bytes(content)
    data = load_svhn(Locator("svhn", tmp_path), files=sealed(SVHN_FILES, contents))
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
        (mat(X=np.zeros((32, 32, 3, 2), np.uint8)), "is not a .mat file with arrays X and y: 'y'"),
        (mat(X=np.zeros((32, 32, 3, 2), np.uint8), y=np.ones((3, 1))), r"holds \(32, 32, 3, 2\) and \(3, 1\)"),
        (mat(X=np.zeros((2, 32, 32, 3)), y=np.ones((2, 1))), r"should hold X of shape \(32, 32, 3, samples\)"),
    ],
)
def test_malformed_svhn(content, message):
    with pytest.raises(DatasetError, match=message):
        parse_svhn(content, "train_32x32.mat")


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


def test_tiny_imagenet_folder_and_archive(tmp_path, tiny):
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


def test_digits():
    pytest.importorskip("sklearn")
    data = load_dataset("digits", download=False)
    assert (data.x_train.shape, data.x_test.shape, data.bits) == ((1438, 64), (359, 64), 448)
    assert data.x_train.dtype == np.uint8
    assert data.x_train.max() == 16
    assert data.encoder.names[0] == "x0 > 2"
    assert data.digest == load_dataset("digits", thresholds=1).digest


@pytest.mark.data
def test_real_mnist(data_dir):
    data = load_dataset("mnist", data_dir=data_dir, download=False)
    assert np.bincount(data.y_train).tolist() == [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]
    assert np.bincount(data.y_test).tolist() == [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]
    assert data.y_train[:10].tolist() == [5, 0, 4, 1, 9, 2, 1, 3, 1, 4]
    assert data.x_train[0, 28 * 5 + 12 : 28 * 5 + 16].tolist() == [3, 18, 18, 18]
    assert np.array_equal(data.encoder.transform(data.x_test), data.x_test / 255 > 0.5)


@pytest.mark.data
@pytest.mark.slow
def test_real_cifar10_is_the_official_one(data_dir):
    """The SHA-1 of the official binary batches, as the Gluon loader publishes them, from what was loaded."""
    data = load_dataset("cifar10", data_dir=data_dir, download=False)
    x, y = np.concatenate([data.x_train, data.x_test]), np.concatenate([data.y_train, data.y_test])
    records = np.concatenate([y[:, None].astype(np.uint8), x], axis=1).reshape(6, 10_000, 3073)
    assert [hashlib.sha1(batch.tobytes()).hexdigest() for batch in records] == [
        "aadd24acce27caa71bf4b10992e9e7b2d74c2540",
        "c0ba65cce70568cd57b4e03e9ac8d2a5367c1795",
        "1dd00a74ab1d17a6e7d73e185b69dbf31242f295",
        "aab85764eb3584312d3c7f65fd2fd016e36a258e",
        "26e2849e66a845b7f1e4614ae70f4889ae604628",
        "67eb016db431130d61cd03c7ad570b013799c88c",
    ]
    sums = [checksum(batch.tobytes(), "sha256") for batch in records]
    assert sums == [file.checksums[0] for file in CIFAR10.batches]
    assert np.bincount(data.y_train).tolist() == [5000] * 10
