"""Adult, splice, breast cancer and iris: the paper's bits from small files and from the real ones."""

import gzip
from dataclasses import replace

import numpy as np
import pytest

from gatefit.datasets import DatasetError, Locator, adult, breast_cancer, iris, load_adult_frame, load_dataset, splice
from gatefit.datasets.files import checksum
from gatefit.encoders import Table

ADULT = b"""39, State-gov, 77516, Bachelors, 13, Never-married, Adm-clerical, Not-in-family, White, Male, 2174, 0, 40, \
United-States, <=50K
60, ?, 1, HS-grad, 9, Divorced, ?, Wife, Black, Female, 0, 5000, 60, Peru, >50K

"""
ADULT_TEST = b"""|1x3 Cross validator
20, Private, 1, 11th, 7, Never-married, Sales, Own-child, Other, Male, 5000, 0, 12, Hong, >50K.
21, Private, 1, 11th, 7, Never-married, Sales, Own-child, Other, Male, 4999, 4999, 13, South, <=50K.
"""


def small(files, *contents):
    return tuple(
        replace(file, checksums=(checksum(content, "sha256"),)) for file, content in zip(files, contents, strict=True)
    )


@pytest.fixture
def adult_source(tmp_path):
    (tmp_path / "adult.data").write_bytes(ADULT)
    (tmp_path / "adult.test.gz").write_bytes(gzip.compress(ADULT_TEST))
    return Locator("adult", tmp_path), small(adult.FILES, ADULT, ADULT_TEST)


def set_bits(dataset, row):
    return {name for name, bit in zip(dataset.encoder.names, row, strict=True) if bit}


def test_adult_bits(adult_source):
    source, files = adult_source
    data = adult.load_adult(source, files=files)
    assert len(data.encoder.names) == len(set(data.encoder.names)) == 116
    assert data.x_train.shape == (1, 116)
    assert set_bits(data, data.x_train[0]) == {
        "workclass = State-gov",
        "education = Bachelors",
        "marital-status = Never-married",
        "occupation = Adm-clerical",
        "relationship = Not-in-family",
        "race = White",
        "sex = Male",
        "native-country = United-States",
        "30 <= age < 45",
        "0 < capital-gain < 5000",
        "capital-loss = 0",
        "25 < hours-per-week <= 40",
    }
    assert {"age < 21", "capital-gain >= 5000", "0 < hours-per-week <= 12"} <= set_bits(data, data.x_test[0])
    assert {"21 <= age < 30", "0 < capital-loss < 5000", "12 < hours-per-week <= 25"} <= set_bits(data, data.x_test[1])
    assert (data.y_train.tolist(), data.y_test.tolist()) == ([0], [1, 0])
    reproduced = adult.load_adult(source, encoding="difflogic", files=files)
    assert np.array_equal(reproduced.x_train[:, :110], data.x_train[:, :110])
    assert not reproduced.x_train[:, 110:].any()
    assert "never set" in reproduced.notes


@pytest.mark.parametrize(
    ("attribute", "edges"),
    [
        ("age", {17: 0, 20: 0, 21: 1, 29: 1, 30: 2, 44: 2, 45: 3, 59: 3, 60: 4, 90: 4}),
        ("capital-gain", {0: 0, 1: 1, 4999: 1, 5000: 2, 99999: 2}),
        ("capital-loss", {0: 0, 1: 1, 4999: 1, 5000: 2}),
        ("hours-per-week", {0: 0, 1: 1, 12: 1, 13: 2, 25: 2, 26: 3, 40: 3, 41: 4, 59: 4, 60: 5, 99: 5}),
    ],
)
def test_adult_bins_at_their_edges(attribute, edges):
    columns, _ = adult.parse_adult(ADULT_TEST, "adult.test", drop_missing=True)
    start = 99 + {"age": 0, "capital-gain": 5, "capital-loss": 8, "hours-per-week": 11}[attribute]
    for value, expected in edges.items():
        bits = adult.adult_bits({**columns, attribute: [value] * 2})[0, start : start + len(adult.BINS[attribute])]
        assert np.flatnonzero(bits).tolist() == [expected]


def test_adult_raw(adult_source):
    source, files = adult_source
    data = adult.load_adult(source, encoding="raw", files=files)
    assert data.x_train.shape == (2, 14)
    assert data.x_train[1, :2].tolist() == [60, None]
    assert data.feature_names == adult.ATTRIBUTES
    assert isinstance(data.encoder, Table)
    assert "workclass missing" in data.encoder.names
    with pytest.raises(ValueError, match="encoding must be 'fixed', 'difflogic' or 'raw', got 'onehot'"):
        adult.load_adult(source, encoding="onehot")


def test_adult_frame(adult_source, tmp_path, monkeypatch):
    _, files = adult_source
    x_train, y_train, x_test, y_test = load_adult_frame(data_dir=tmp_path, files=files)
    assert list(x_train.columns) == list(adult.ATTRIBUTES)
    assert x_train["age"].tolist() == [39, 60]
    assert x_train["workclass"].isna().tolist() == [False, True]
    assert (y_train.tolist(), y_test.tolist(), len(x_test)) == (["<=50K", ">50K"], [">50K", "<=50K"], 2)
    monkeypatch.setitem(__import__("sys").modules, "pandas", None)
    with pytest.raises(ImportError, match=r"needs pandas.*encoding='raw'"):
        load_adult_frame(data_dir=tmp_path, files=files)


def test_splice_letters():
    line = b"EI, NAME, " + b"ACGTDNSR" * 7 + b"AAAA\n"
    bits, classes = splice.parse_splice(line, "splice.data")
    letters = ["".join(n for n, bit in zip("ACGT", part, strict=True) if bit) for part in bits.reshape(60, 4)]
    assert letters[:8] == ["A", "C", "G", "T", "AGT", "ACGT", "CG", "AG"]
    assert classes.tolist() == [0]
    assert splice.BIT_NAMES[0] == "position -30 = A"
    assert splice.BIT_NAMES[120:124] == tuple(f"position +1 = {letter}" for letter in "ACGT")


def test_breast_cancer_drops_missing_values():
    lines = (
        b"no-recurrence-events,30-39,premeno,30-34,0-2,no,3,left,left_low,no\n"
        b"recurrence-events,40-49,premeno,25-29,0-2,?,2,left,right_low,yes\n"
    )
    bits, classes = breast_cancer.parse_breast_cancer(lines, "breast-cancer.data")
    assert [breast_cancer.BIT_NAMES[i] for i in np.flatnonzero(bits[0])] == [
        "age = 30-39",
        "menopause = premeno",
        "tumor-size = 30-34",
        "inv-nodes = 0-2",
        "node-caps = no",
        "deg-malig = 3",
        "breast = left",
        "breast-quad = left_low",
        "irradiat = no",
    ]
    assert classes.tolist() == [0]


@pytest.mark.parametrize(
    ("parse", "content"),
    [
        (lambda c: adult.parse_adult(c, "broken", drop_missing=True), b"39, State-gov, <=50K\n"),
        (lambda c: adult.parse_adult(c, "broken", drop_missing=True), ADULT.replace(b"<=50K", b"50K")),
        (lambda c: splice.parse_splice(c, "broken"), b"EI, NAME, ACGT\n"),
        (lambda c: splice.parse_splice(c, "broken"), b"XX, NAME, " + b"A" * 60),
        (lambda c: splice.parse_splice(c, "broken"), b"EI, NAME, " + b"Z" * 60),
        (lambda c: breast_cancer.parse_breast_cancer(c, "broken"), b"recurrence-events,30-39\n"),
        (
            lambda c: breast_cancer.parse_breast_cancer(c, "broken"),
            b"maybe,30-39,premeno,30-34,0-2,no,3,left,central,no",
        ),
        (
            lambda c: breast_cancer.parse_breast_cancer(c, "broken"),
            b"recurrence-events,1-2,premeno,30-34,0-2,no,3,left,central,no",
        ),
    ],
)
def test_malformed_content_names_the_file(parse, content):
    with pytest.raises(DatasetError, match="broken is not"):
        parse(content)


@pytest.mark.parametrize("line", [b"5.1,3.5,1.4,0.2,Iris-pumila\n", b"5.1,x,1.4,0.2,Iris-setosa\n", b"5.1,3.5\n"])
def test_malformed_iris(tmp_path, line):
    (tmp_path / "iris.data").write_bytes(line)
    with pytest.raises(DatasetError, match=r"iris\.data is not the iris file"):
        iris.load_iris(Locator("iris", tmp_path), files=small(iris.FILES, line))


@pytest.mark.data
def test_real_adult(data_dir):
    data = load_dataset("adult", data_dir=data_dir, download=False)
    assert (data.x_train.shape, data.x_test.shape) == ((30162, 116), (15060, 116))
    assert np.bincount(data.y_train).tolist() == [22654, 7508]
    assert np.bincount(data.y_test).tolist() == [11360, 3700]
    assert np.all(data.x_train.sum(axis=1) == 12)
    original = load_dataset("adult", data_dir=data_dir, download=False, encoding="difflogic")
    assert np.all(original.x_train.sum(axis=1) == 11)
    assert original.digest == data.digest
    raw = load_dataset("adult", data_dir=data_dir, download=False, encoding="raw")
    assert (raw.x_train.shape, raw.x_test.shape) == ((32561, 14), (16281, 14))
    assert raw.encoder.transform(raw.x_test).shape == (16281, raw.bits)
    x_train, y_train, _, _ = load_adult_frame(data_dir=data_dir)
    assert Table().fit(x_train) == raw.encoder
    assert np.array_equal(np.array(data.class_names)[raw.y_train], y_train)


@pytest.mark.data
def test_real_splice(data_dir):
    data = load_dataset("splice", data_dir=data_dir, download=False)
    assert (data.x_train.shape, data.x_test.shape) == ((2552, 240), (638, 240))
    assert (np.bincount(data.y_train) + np.bincount(data.y_test)).tolist() == [767, 768, 1655]
    ambiguous = (data.x_train.reshape(-1, 60, 4).sum(axis=2) > 1).any(axis=1).sum()
    assert 0 < ambiguous < 20
    assert "80/20" in data.notes


@pytest.mark.data
def test_splice_has_a_split_for_every_seed(data_dir):
    first, again, other = (load_dataset("splice", data_dir=data_dir, download=False, **options)
                           for options in ({}, {"split_seed": 0}, {"split_seed": 1}))  # fmt: skip
    assert np.array_equal(first.x_test, again.x_test)
    assert not np.array_equal(first.x_test, other.x_test)
    assert np.bincount(first.y_test).tolist() == np.bincount(other.y_test).tolist()
    assert other.notes.endswith("seed 1")
    with pytest.raises(ValueError, match=r"split_seed must be a whole number >= 0, got -1"):
        load_dataset("splice", data_dir=data_dir, download=False, split_seed=-1)
    with pytest.raises(ValueError, match=r"iris has no option split_seed"):
        load_dataset("iris", split_seed=1)


@pytest.mark.data
def test_real_breast_cancer(data_dir):
    data = load_dataset("breast-cancer", data_dir=data_dir, download=False)
    assert (data.x_train.shape, data.x_test.shape) == ((222, 51), (55, 51))
    assert (np.bincount(data.y_train) + np.bincount(data.y_test)).tolist() == [196, 81]
    from sklearn.model_selection import train_test_split

    bits, classes = breast_cancer.parse_breast_cancer(
        (data_dir / "breast-cancer" / "breast-cancer.data").read_bytes(), "breast-cancer.data"
    )
    expected = train_test_split(bits, classes, test_size=0.25, random_state=0)
    original = load_dataset("breast-cancer", data_dir=data_dir, download=False, split="difflogic")
    for ours, theirs in zip(
        (original.x_train, original.x_test, original.y_train, original.y_test), expected, strict=True
    ):
        assert np.array_equal(ours, theirs)
    with pytest.raises(ValueError, match="split must be 'stratified' or 'difflogic', got 'random'"):
        load_dataset("breast-cancer", data_dir=data_dir, split="random")


@pytest.mark.data
def test_real_iris(data_dir):
    data = load_dataset("iris", data_dir=data_dir, download=False)
    assert np.bincount(data.y_train).tolist() == [40, 40, 40]
    assert np.bincount(data.y_test).tolist() == [10, 10, 10]
    assert data.bits == 32
    assert data.encoder.names[0].startswith("sepal length > ")
    assert load_dataset("iris", data_dir=data_dir, thresholds=3).bits == 12
