"""Stratified splits: shares, order, and the very rows, which must never change."""

import numpy as np
import pytest

from gatefit.datasets.splits import stratified_split


def test_shares_of_each_class():
    y = np.repeat([0, 1, 2], [10, 100, 5])
    train, test = stratified_split(y)
    assert np.bincount(y[test]).tolist() == [2, 20, 1]
    assert sorted([*train, *test]) == list(range(115))
    assert np.all(np.diff(train) > 0)
    assert np.all(np.diff(test) > 0)


def test_the_rows_never_change():
    assert stratified_split(np.arange(30) % 2)[1].tolist() == [2, 3, 11, 13, 18, 20]


@pytest.mark.parametrize("seed", [1, 2])
def test_seed_and_fraction(seed):
    y = np.zeros(100, dtype=np.int64)
    assert stratified_split(y, seed=seed)[1].tolist() != stratified_split(y)[1].tolist()
    assert stratified_split(y, seed=seed)[1].tolist() == stratified_split(y, seed=seed)[1].tolist()
    assert len(stratified_split(y, test_fraction=0.25)[1]) == 25
