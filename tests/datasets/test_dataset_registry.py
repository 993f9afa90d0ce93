"""Data sets by name."""

import numpy as np
import pytest

from gatefit.datasets import DATASETS, DatasetError, load_dataset

SMALL = ["monks-1", "monks-2", "monks-3", "adult", "splice", "breast-cancer", "iris", "digits", "mnist"]


def test_names():
    assert list(DATASETS) == [
        *SMALL, "fashion-mnist", "cifar10", "cifar100", "svhn", "tiny-imagenet",
    ]  # fmt: skip


@pytest.mark.data
@pytest.mark.parametrize("name", SMALL)
def test_what_the_list_says_is_what_is_loaded(name, data_dir):
    info, data = DATASETS[name], load_dataset(name, data_dir=data_dir, download=False)
    assert (info.train, info.test) == (len(data.x_train), len(data.x_test)) == (len(data.y_train), len(data.y_test))
    assert (info.features, info.bits, info.classes) == (data.x_train.shape[1], data.bits, data.classes)
    assert len(data.feature_names) == info.features == data.encoder.features
    assert info.task == data.task
    assert data.name == name
    assert set(np.unique(data.y_train)) == set(np.unique(data.y_test)) == set(range(data.classes))
    assert data.encoder.transform(data.x_test[:50]).shape == (50 if info.test >= 50 else info.test, info.bits)
    assert len(data.digest) == 64
    assert repr(data).startswith(f"Dataset('{name}', train=")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("cifar-10", "unknown data set 'cifar-10'; did you mean 'cifar10'\\? choose one of monks-1, monks-2"),
        ("monk2", "did you mean 'monks-2'"),
        ("wine quality of portugal", "unknown data set 'wine quality of portugal'; choose one of"),
    ],
)
def test_unknown_name(name, message):
    with pytest.raises(ValueError, match=message):
        load_dataset(name)


def test_unknown_option():
    with pytest.raises(ValueError, match="monks-1 has no option thresholds; its options are: none"):
        load_dataset("monks-1", thresholds=3)
    with pytest.raises(ValueError, match="cifar100 has no option label; its options are: thresholds, threshold_"):
        load_dataset("cifar100", label="coarse")


@pytest.mark.parametrize("name", [name for name in DATASETS if name not in ("digits",) and "monks" not in name])
def test_missing_everywhere(name, tmp_path, monkeypatch):
    monkeypatch.setenv("GATEFIT_DATA", str(tmp_path))
    with pytest.raises(DatasetError, match=f"the files of {name} were not found") as caught:
        load_dataset(name, download=False)
    assert f"{tmp_path} ($GATEFIT_DATA)" in str(caught.value)
    assert "Allow the download" in str(caught.value)


def test_a_damaged_file_is_not_passed_over(tmp_path):
    (tmp_path / "monks").mkdir()
    (tmp_path / "monks" / "monks-1.train").write_text("1 1 1 1 1 1 1 x\n")
    (tmp_path / "monks" / "monks-1.test").write_text("1 1 1 1 1 1 1 x\n")
    with pytest.raises(
        DatasetError, match=r"monks-1\.train is damaged or is not the file it should be: expected sha256:d9c3"
    ):
        load_dataset("monks-1", data_dir=tmp_path)
