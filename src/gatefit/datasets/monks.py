"""The MONK's problems: three artificial tasks on six categorical attributes.

    monks-1    a1 = a2 or a5 = 1
    monks-2    exactly two of the six attributes have their first value
    monks-3    (a5 = 3 and a4 = 1) or (a5 ≠ 4 and a2 ≠ 3), with 5 % wrong labels in the train set

One bit per value of each attribute: 3 + 3 + 2 + 3 + 4 + 2 = 17 bits. The test set is all 432 combinations.
"""

from typing import Final

import numpy as np
from jaxtyping import Bool, Int64

from gatefit.datasets.dataset import Dataset, class_numbers
from gatefit.datasets.files import DatasetError, Locator, RawFile, digest
from gatefit.encoders import Identity

VALUES: Final = (3, 3, 2, 3, 4, 2)
BIT_NAMES: Final = tuple(f"a{i} = {v}" for i, values in enumerate(VALUES, start=1) for v in range(1, values + 1))

_UCI: Final = "https://archive.ics.uci.edu/ml/machine-learning-databases/monks-problems/"
_SHA256: Final = {
    "monks-1.train": "d9c328b6f0e095ab10f7bc8468f1d2141f3d08be73e665c3bf0a62994c922606",
    "monks-1.test": "e501ada3b21d876ab86f3e1614747bd2edc443a685f229a25e480aa1dea629f6",
    "monks-2.train": "7ebcc278005737caad0cd52e6aa31256a2c3174da8047faf4ac3a9d35edbdaa8",
    "monks-2.test": "945650affde377c27f6218c8b17893e339ea831f4bee9f9d7123020699cfbf40",
    "monks-3.train": "726f258f80be06af4bb2d8831789514a663f5813e47429211fe19dcd367966f8",
    "monks-3.test": "1d816ae7347afaf895050667adc3f382904c6ed2332d0a2d09353f5e6cb54612",
}


def monks_files(problem: int) -> tuple[RawFile, RawFile]:
    """The train and the test file of one problem."""
    names = (f"monks-{problem}.train", f"monks-{problem}.test")
    train, test = (
        RawFile(n, (f"sha256:{_SHA256[n]}",), ("monks",), (f"{_UCI}{n}", f"sha256:{_SHA256[n]}")) for n in names
    )
    return train, test


def parse_monks(data: bytes, name: str) -> tuple[Bool[np.ndarray, "samples 17"], Int64[np.ndarray, " samples"]]:
    """Bits and classes of a file with lines ``class a1 a2 a3 a4 a5 a6 id``."""
    rows = [line.split() for line in data.decode("ascii").splitlines() if line.strip()]
    try:
        numbers = np.array([[int(value) for value in row[:7]] for row in rows], dtype=np.int64).reshape(-1, 7)
    except ValueError as error:
        raise DatasetError(
            f"{name} is not a MONK's file (lines of a class, six attributes and a name): {error}"
        ) from None
    attributes = numbers[:, 1:] - 1
    if not rows or np.any(attributes < 0) or np.any(attributes >= np.array(VALUES)):
        raise DatasetError(f"{name} holds no samples, or attribute values outside 1 to {VALUES}")
    bits = np.zeros((len(rows), sum(VALUES)), dtype=np.bool_)
    offsets = np.cumsum((0, *VALUES[:-1]))
    np.put_along_axis(bits, attributes + offsets, True, axis=1)
    return bits, class_numbers(numbers[:, 0], 2, name)


def load_monks(source: Locator, *, problem: int) -> Dataset:
    """One of the three problems."""
    files = monks_files(problem)
    train, test = source.read(files)
    x_train, y_train = parse_monks(train, files[0].name)
    x_test, y_test = parse_monks(test, files[1].name)
    return Dataset(
        name=f"monks-{problem}",
        x_train=x_train,
        y_train=y_train,
        x_test=x_test,
        y_test=y_test,
        class_names=("0", "1"),
        feature_names=BIT_NAMES,
        encoder=Identity().fit(x_train, BIT_NAMES),
        digest=digest(files),
        notes="the test set is every combination of the attributes, the train samples included",
    )
