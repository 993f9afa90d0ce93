"""Digits: 1,797 handwritten digits of 8 × 8 pixels from 0 to 16, as they come with scikit-learn."""

import hashlib

import numpy as np

from gatefit._requires import require
from gatefit.datasets.dataset import Dataset, ThresholdRule, image_encoder
from gatefit.datasets.files import Locator
from gatefit.datasets.splits import stratified_split
from gatefit.encoders.base import default_names


def load_digits(source: Locator, *, thresholds: int = 7, threshold_rule: ThresholdRule = "even") -> Dataset:
    """Digits, split 80/20; no files are needed beside scikit-learn."""
    raw = require("sklearn.datasets", "train", "the digits data set").load_digits()
    x, y = raw.data.astype(np.uint8), raw.target.astype(np.int64)
    train, test = stratified_split(y)
    return Dataset(
        name="digits",
        x_train=x[train],
        y_train=y[train],
        x_test=x[test],
        y_test=y[test],
        class_names=tuple(str(digit) for digit in range(10)),
        feature_names=default_names(64),
        encoder=image_encoder(x[train], thresholds, high=16, rule=threshold_rule),
        digest=hashlib.sha256(x.tobytes() + y.astype(np.uint8).tobytes()).hexdigest(),
        image_shape=(8, 8, 1),
        notes="split 80/20, stratified, seed 0",
    )
