"""Iris: three species by four lengths, each a thermometer over quantiles of the train samples."""

from typing import Final

import numpy as np

from gatefit.datasets.dataset import Dataset
from gatefit.datasets.files import DatasetError, Layout, Locator, RawFile, digest
from gatefit.datasets.splits import stratified_split
from gatefit.encoders import Thermometer

CLASS_NAMES: Final = ("Iris-setosa", "Iris-versicolor", "Iris-virginica")
FEATURE_NAMES: Final = ("sepal length", "sepal width", "petal length", "petal width")

_SHA256: Final = "sha256:6f608b71a7317216319b4d27b4d9bc84e6abd734eda7872b71a458569e2656c0"
_URL: Final = "https://archive.ics.uci.edu/ml/machine-learning-databases/iris/iris.data"
FILES: Final = (RawFile("iris.data", (_SHA256,), ("iris",), (_URL, _SHA256)),)


def load_iris(source: Locator, *, thresholds: int = 8, files: Layout = FILES) -> Dataset:
    """Iris, split 80/20."""
    (content,) = source.read(files)
    rows = [line.split(",") for line in content.decode("ascii").splitlines() if line.strip()]
    try:
        x = np.array([[float(value) for value in row[:4]] for row in rows], dtype=np.float64).reshape(len(rows), 4)
        y = np.array([CLASS_NAMES.index(row[4]) for row in rows], dtype=np.int64)
    except (ValueError, IndexError) as error:
        raise DatasetError(f"{files[0].name} is not the iris file (four numbers and a species): {error}") from None
    train, test = stratified_split(y)
    return Dataset(
        name="iris",
        x_train=x[train],
        y_train=y[train],
        x_test=x[test],
        y_test=y[test],
        class_names=CLASS_NAMES,
        feature_names=FEATURE_NAMES,
        encoder=Thermometer(thresholds, spacing="quantile").fit(x[train], FEATURE_NAMES),
        digest=digest(files),
        notes="split 80/20, stratified, seed 0",
    )
