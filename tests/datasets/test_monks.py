"""The MONK's problems against their published rules."""

import numpy as np
import pytest

from gatefit.datasets import DatasetError, load_dataset
from gatefit.datasets.files import EMBEDDED, read_verified
from gatefit.datasets.monks import monks_files, parse_monks


def attributes(bits):
    """a1 … a6 of each row, from its 17 bits."""
    return np.stack([part.argmax(axis=1) + 1 for part in np.split(bits, np.cumsum((3, 3, 2, 3, 4)), axis=1)])


RULES = {
    1: lambda a: (a[0] == a[1]) | (a[4] == 1),
    2: lambda a: (a == 1).sum(axis=0) == 2,
    3: lambda a: ((a[4] == 3) & (a[3] == 1)) | ((a[4] != 4) & (a[1] != 3)),
}


@pytest.mark.parametrize(("problem", "samples", "wrong"), [(1, 124, 0), (2, 169, 0), (3, 122, 6)])
def test_labels_follow_the_rules(problem, samples, wrong):
    data = load_dataset(f"monks-{problem}", download=False)
    assert data.x_train.shape == (samples, 17)
    assert data.x_test.shape == (432, 17)
    assert len(np.unique(data.x_test, axis=0)) == 432
    assert np.all(data.x_test.sum(axis=1) == 6)
    assert np.array_equal(data.y_test, RULES[problem](attributes(data.x_test)))
    assert int((data.y_train != RULES[problem](attributes(data.x_train))).sum()) == wrong
    assert np.array_equal(data.encoder.transform(data.x_train), data.x_train)
    assert data.encoder.names[:4] == ("a1 = 1", "a1 = 2", "a1 = 3", "a2 = 1")
    assert data.y_train.dtype == np.int64


def test_embedded_files_are_whole():
    for problem in (1, 2, 3):
        for file in monks_files(problem):
            assert read_verified(EMBEDDED / file.name, file)


def test_known_row():
    bits, classes = parse_monks(b" 1 1 3 2 1 4 2 data_5\n", "monks")
    assert "".join("01"[int(bit)] for bit in bits[0]) == "10000101100000101"
    assert classes.tolist() == [1]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b" 1 1 3 2 1 5 2 data_5\n", "attribute values outside"),
        (b" 1 0 3 2 1 4 2 data_5\n", "attribute values outside"),
        (b" 2 1 3 2 1 4 2 data_5\n", "labels 2 to 2"),
        (b" 1 1 3\n", "not a MONK's file"),
        (b" 1 1 3 2 x 4 2 data_5\n", "not a MONK's file"),
        (b"", "no samples"),
    ],
)
def test_malformed_content(content, message):
    with pytest.raises(DatasetError, match=f"monks-9.train .*{message}" if "labels" not in message else message):
        parse_monks(content, "monks-9.train")
