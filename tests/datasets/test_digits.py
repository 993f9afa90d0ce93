"""Digits, which come with scikit-learn."""

import numpy as np
import pytest

from gatefit.datasets import load_dataset


def test_digits():
    pytest.importorskip("sklearn")
    data = load_dataset("digits", download=False)
    assert (data.x_train.shape, data.x_test.shape, data.bits) == ((1438, 64), (359, 64), 448)
    assert data.x_train.dtype == np.uint8
    assert data.x_train.max() == 16
    assert data.encoder.names[0] == "x0 > 2"
    assert data.digest == load_dataset("digits", thresholds=1).digest
