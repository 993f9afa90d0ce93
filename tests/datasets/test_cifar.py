"""CIFAR-10 in its three layouts and CIFAR-100 in its two, from small files in the official formats."""

import hashlib
import io
import lzma
import tarfile
from dataclasses import replace

import numpy as np
import pytest

from gatefit.datasets import DatasetError, Locator, load_dataset
from gatefit.datasets.cifar import (
    CIFAR10,
    CIFAR10_CLASSES,
    CIFAR100,
    CIFAR100_COARSE,
    CIFAR100_FINE,
    load_cifar10,
    load_cifar100,
    parse_records,
)
from gatefit.datasets.files import checksum

RNG = np.random.default_rng(0)


def npy(array):
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


def tar_of(members):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


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


def store_cifar(layout, folder, cifar, sealed):
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
def test_cifar10_layouts_hold_the_same(tmp_path, cifar, layout, folder, sealed):
    images, labels, _ = cifar
    files = store_cifar(layout, tmp_path / "data" / folder, cifar, sealed)
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


def test_cifar10_layouts_have_one_digest(tmp_path, cifar, sealed):
    digests = set()
    for layout in ("batches", "archive", "arrays"):
        files = store_cifar(layout, tmp_path / layout / "cifar10", cifar, sealed)
        digests.add(load_cifar10(Locator("cifar10", tmp_path / layout), files=files).digest)
    assert len(digests) == 1


def test_cifar10_arrays_are_decoded_once(tmp_path, cifar, monkeypatch, sealed):
    files = store_cifar("arrays", tmp_path / "data" / "cifar10", cifar, sealed)
    source = Locator("cifar10", tmp_path / "data")
    first = load_cifar10(source, files=files)
    monkeypatch.setattr(lzma, "decompress", None)
    again = load_cifar10(source, files=files)
    assert np.array_equal(first.x_train, again.x_train)
    assert np.array_equal(first.x_test, again.x_test)


@pytest.mark.parametrize("layout", ["batches", "archive", "arrays"])
def test_cifar10_damaged_file(tmp_path, cifar, layout, sealed):
    files = store_cifar(layout, tmp_path / "cifar10", cifar, sealed)
    path = tmp_path / "cifar10" / getattr(files, layout)[0].name
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(DatasetError, match=f"{path} is damaged"):
        load_cifar10(Locator("cifar10", tmp_path), files=files)


def test_cifar10_archive_without_a_batch(tmp_path, sealed):
    content = tar_of({"cifar-10-batches-bin/data_batch_1.bin": b"x"})
    (tmp_path / "cifar-10-binary.tar.gz").write_bytes(content)
    files = replace(CIFAR10, archive=sealed(CIFAR10.archive, [content]))
    with pytest.raises(DatasetError, match=r"lacks data_batch_2.bin, .*, test_batch.bin"):
        load_cifar10(Locator("cifar10", tmp_path), files=files)
    broken = replace(CIFAR10, archive=sealed(CIFAR10.archive, [content[:30]]))
    (tmp_path / "cifar-10-binary.tar.gz").write_bytes(content[:30])
    with pytest.raises(DatasetError, match="cannot be unpacked"):
        load_cifar10(Locator("cifar10", tmp_path), files=broken)


@pytest.mark.parametrize(
    ("position", "content", "message"),
    [
        (0, b"not xz", "data_batch_1_images.npy.xz cannot be decompressed"),
        (1, lzma.compress(b"not npy"), "data_batch_2_images.npy.xz is not a .npy file"),
        (2, lzma.compress(npy(np.zeros((4, 32, 32, 1), np.uint8))), "should hold uint8 of shape .-1, 32, 32, 3."),
        (6, npy(np.zeros(20)), "train_labels.npy should hold uint8 of shape .-1,., holds float64"),
        (7, npy(np.zeros(3, np.uint8)), "cifar10 has 24 images but 23 labels"),
        (7, npy(np.full(4, 10, np.uint8)), "labels 0 to 10; classes are 0 to 9"),
    ],
)
def test_cifar10_malformed_arrays(tmp_path, cifar, position, content, message, sealed):
    files = store_cifar("arrays", tmp_path / "cifar10", cifar, sealed)
    file = files.arrays[position]
    (tmp_path / "cifar10" / file.name).write_bytes(content)
    arrays = [*files.arrays[:position], *sealed([file], [content]), *files.arrays[position + 1 :]]
    with pytest.raises(DatasetError, match=message):
        load_cifar10(Locator("cifar10", tmp_path), files=replace(files, arrays=tuple(arrays)))


def test_records_of_the_wrong_size():
    with pytest.raises(DatasetError, match=r"batch\.bin should be records of 3073 bytes, is 3072 bytes long"):
        parse_records(bytes(3072), 1, "batch.bin")
    with pytest.raises(DatasetError, match="cut off or damaged"):
        parse_records(b"", 1, "batch.bin")


@pytest.mark.parametrize("packed", [False, True], ids=["bins", "archive"])
def test_cifar100(tmp_path, packed, sealed):
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


def test_cifar_label_out_of_range(tmp_path, sealed):
    record = bytes([3, 100]) + bytes(3072)
    (tmp_path / "train.bin").write_bytes(record)
    (tmp_path / "test.bin").write_bytes(record)
    files = replace(CIFAR100, batches=sealed(CIFAR100.batches, [record, record]))
    with pytest.raises(DatasetError, match="labels 100 to 100; classes are 0 to 99"):
        load_cifar100(Locator("cifar100", tmp_path), files=files)


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
