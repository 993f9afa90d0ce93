"""Quantile thresholds: midpoints between values that occurred, as evenly loaded as ties allow."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from gatefit.encoders.quantiles import midpoints, quantile_thresholds


def test_few_values_are_separated_at_their_midpoints():
    assert quantile_thresholds(np.array([3, 1, 7, 1]), 8).tolist() == [2, 5]
    assert quantile_thresholds(np.array([0, 1, 1, 0]), 8).tolist() == [0.5]
    assert quantile_thresholds(np.array([5, 5]), 8).tolist() == []


def test_distinct_values_are_split_evenly():
    assert quantile_thresholds(np.arange(100), 3).tolist() == [24.5, 49.5, 74.5]
    values = np.random.default_rng(0).normal(size=1000)
    inside = np.histogram(values, [-np.inf, *quantile_thresholds(values, 9), np.inf])[0]
    assert inside.tolist() == [100] * 10


def test_ties_do_not_waste_thresholds():
    """Nine in ten are zero: plain quantiles would leave one threshold; here the rest is resolved too."""
    values = np.concatenate([np.zeros(900), np.arange(1, 101)])
    thresholds = quantile_thresholds(values, 7)
    assert len(thresholds) == 7
    assert thresholds[0] == 0.5
    assert np.histogram(values, [-np.inf, *thresholds, np.inf])[0][1:].max() <= 25


@given(
    values=hnp.arrays(
        np.float64, st.integers(1, 60), elements=st.integers(-9, 9).map(float) | st.floats(-1e308, 1e308)
    ),
    count=st.integers(1, 12),
)
def test_every_threshold_separates_and_as_many_as_possible_are_used(values, count):
    thresholds = quantile_thresholds(values, count)
    distinct = np.unique(values)
    assert len(thresholds) == min(count, len(distinct) - 1)
    assert np.all(np.diff(thresholds) > 0)
    codes = (distinct[:, None] > thresholds).sum(axis=1)
    assert set(codes.tolist()) == set(range(len(thresholds) + 1))  # each part holds a value


@given(hnp.arrays(np.float64, 2, elements=st.floats(allow_nan=False, allow_infinity=False)))
def test_midpoint_separates_any_two_floats(pair):
    low, high = np.sort(pair)
    if low < high:
        middle = midpoints(np.array([low]), np.array([high]))[0]
        assert low <= middle < high


@pytest.mark.parametrize(("low", "high"), [(1.0, np.nextafter(1.0, 2)), (-1.7e308, 1.7e308), (0.0, 5e-324)])
def test_midpoint_of_extremes(low, high):
    middle = midpoints(np.array([low]), np.array([high]))[0]
    assert low <= middle < high
