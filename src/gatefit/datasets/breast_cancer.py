"""Breast cancer (Ljubljana): does the cancer recur?

    51 bits = one per value of nine categorical attributes, as in difflogic; rows with missing values are dropped

difflogic holds out 70 of the 277 rows at random, the shares of the classes being as they fall; ``split="difflogic"``
takes the same rows.
"""

from typing import Final, Literal

import numpy as np
from jaxtyping import Bool, Int64

from gatefit.datasets.dataset import Dataset
from gatefit.datasets.files import DatasetError, Layout, Locator, RawFile, digest
from gatefit.datasets.splits import stratified_split
from gatefit.encoders import Identity

CLASS_NAMES: Final = ("no-recurrence-events", "recurrence-events")
VALUES: Final[dict[str, str]] = {
    "age": "10-19 20-29 30-39 40-49 50-59 60-69 70-79 80-89 90-99",
    "menopause": "lt40 ge40 premeno",
    "tumor-size": "0-4 5-9 10-14 15-19 20-24 25-29 30-34 35-39 40-44 45-49 50-54 55-59",
    "inv-nodes": "0-2 3-5 6-8 9-11 12-14 15-17 18-20 21-23 24-26 27-29 30-32 33-35 36-39",
    "node-caps": "yes no",
    "deg-malig": "1 2 3",
    "breast": "left right",
    "breast-quad": "left_up left_low right_up right_low central",
    "irradiat": "yes no",
}
BIT_NAMES: Final = tuple(f"{attribute} = {value}" for attribute, values in VALUES.items() for value in values.split())

_SHA256: Final = "sha256:ca7d3fa97b62ff967b6894ffbb3acaaf4a51062e0149e5950b3ad6f685970b65"
_URL: Final = "https://archive.ics.uci.edu/ml/machine-learning-databases/breast-cancer/breast-cancer.data"
FILES: Final = (RawFile("breast-cancer.data", (_SHA256,), ("breast-cancer",), (_URL, _SHA256)),)


def parse_breast_cancer(data: bytes, name: str) -> tuple[Bool[np.ndarray, "samples 51"], Int64[np.ndarray, " samples"]]:
    """Bits and classes of the complete lines ``class,age,…,irradiat``."""
    rows = [line.strip().split(",") for line in data.decode("ascii").splitlines() if line.strip() and "?" not in line]
    position = {bit: i for i, bit in enumerate(BIT_NAMES)}
    bits = np.zeros((len(rows), len(BIT_NAMES)), dtype=np.bool_)
    try:
        for i, row in enumerate(rows):
            for attribute, value in zip(VALUES, row[1:], strict=True):
                bits[i, position[f"{attribute} = {value}"]] = True
        classes = np.array([CLASS_NAMES.index(row[0]) for row in rows], dtype=np.int64)
    except (KeyError, ValueError) as error:
        raise DatasetError(f"{name} is not the Ljubljana breast cancer file: unexpected {error}") from None
    return bits, classes


def load_breast_cancer(
    source: Locator, *, split: Literal["stratified", "difflogic"] = "stratified", files: Layout = FILES
) -> Dataset:
    """Breast cancer, split 80/20 within each class, or 75/25 by the rows that difflogic takes."""
    if split not in ("stratified", "difflogic"):
        raise ValueError(f"split must be 'stratified' or 'difflogic', got {split!r}")
    (content,) = source.read(files)
    bits, classes = parse_breast_cancer(content, files[0].name)
    if split == "stratified":
        train, test = stratified_split(classes)
    else:
        # What scikit-learn's train_test_split(test_size=0.25, random_state=0) does, which difflogic calls.
        order = np.random.RandomState(0).permutation(len(bits))
        held_out = -(-len(bits) // 4)
        train, test = order[held_out:], order[:held_out]
    return Dataset(
        name="breast-cancer",
        x_train=bits[train],
        y_train=classes[train],
        x_test=bits[test],
        y_test=classes[test],
        class_names=CLASS_NAMES,
        feature_names=BIT_NAMES,
        encoder=Identity().fit(bits, BIT_NAMES),
        digest=digest(files),
        notes="rows with missing values dropped; "
        + ("split 80/20, stratified, seed 0" if split == "stratified" else "split 75/25, difflogic's rows"),
    )
