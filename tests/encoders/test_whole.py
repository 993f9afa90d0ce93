"""What an encoder keeps of its training values: whether they were whole numbers, and between which."""

import json
from decimal import Decimal

import numpy as np
import pytest

from gatefit.encoders import Identity, OneHot, Table, Thermometer, Threshold, encoder_from_spec
from gatefit.encoders.base import whole_ranges


def test_ranges_of_a_matrix():
    assert whole_ranges(np.array([[0, 255], [7, 3]], np.uint8)) == ((0, 7), (3, 255))
    assert whole_ranges(np.array([[-1.0, 0.5, np.nan, np.inf, 1e30], [4.0, 1.0, 1, 1, 2]])) == ((-1, 4), (), (), (), ())
    assert whole_ranges(np.array([[False], [True]])) == ((0, 1),)
    assert whole_ranges(np.array([[0], [2**64 - 1]], np.uint64)) == ((0, 2**64 - 1),)
    assert whole_ranges(np.empty((0, 2))) is None


def test_a_value_far_down_a_large_matrix_counts(monkeypatch):
    monkeypatch.setattr("gatefit.encoders.base._WHOLE_BLOCK", 8)
    x = np.zeros((1000, 3))
    x[999] = [0.5, -2, 9]
    assert whole_ranges(x) == ((), (-2, 0), (0, 9))


@pytest.mark.parametrize(
    ("encoder", "x", "ranges"),
    [
        (Threshold(2.0), np.array([[1.0, 2.5], [3.0, 1.0]]), ((1, 3), ())),
        (Thermometer(3), np.array([[1, 200], [3, 0]]), ((1, 3), (0, 200))),
        (Thermometer(3, low=0, high=255), np.array([[1, 200], [3, 0]]), ((1, 3), (0, 200))),
        (Table(), {"a": [1, 2, 3], "b": [0.5, 1, 2], "c": ["x", "y", "x"]}, ((1, 3), (), None)),
        (Table(), {"a": [1.0, np.nan, 3.0], "d": [Decimal(1), Decimal(7), None]}, ((1, 3), (1, 7))),
        (OneHot(), {"a": [3, 5]}, (None,)),
        (Identity(), np.array([[0], [1]]), (None,)),
    ],
)
def test_what_is_kept_goes_into_the_specification_and_back(encoder, x, ranges):
    assert encoder.fit(x).whole_ranges == ranges
    again = encoder_from_spec(json.loads(json.dumps(encoder.to_spec())))
    assert again.whole_ranges == ranges
    assert again.to_spec() == encoder.to_spec()


def test_older_specifications_do_not_say():
    encoder = Thermometer(3).fit(np.array([[1, 200], [3, 0]]))
    spec = encoder.to_spec()
    del spec["state"]["whole"]
    old = encoder_from_spec(spec)
    assert old.whole_ranges == (None, None)
    assert old.to_spec() == spec
    assert old == encoder  # they make the same bits


@pytest.mark.parametrize("wrong", [[[1, 2]], [[1, 2], [2, 1]], [[1, 2], [1]], [[1, 2], [0.5, 1]], 3, [[1, 2], "ab"]])
def test_wrong_ranges_are_refused(wrong):
    spec = Thermometer(3).fit(np.array([[1, 200], [3, 0]])).to_spec()
    spec["state"]["whole"] = wrong
    with pytest.raises(ValueError, match="whole must"):
        encoder_from_spec(spec)


def test_a_second_fit_forgets_the_first():
    encoder = Threshold(0.5).fit(np.array([[0.5]]))
    assert encoder.fit(np.array([[4]])).whole_ranges == ((4, 4),)
