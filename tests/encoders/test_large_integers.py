"""Whole numbers beyond 2^53, of which not every one is a float: thresholds keep them apart, or they are refused."""

import numpy as np
import pytest

from gatefit.encoders import OneHot, Table, Thermometer

LARGE = 2**53
APART = np.array([LARGE, LARGE + 2, LARGE + 6, LARGE + 600, 2**62, 2**62 + 4096])
TOO_CLOSE = "no threshold (a float) lies between them; subtract an offset"


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("dtype", [np.int64, np.uint64])
def test_values_that_floats_can_part_each_have_their_own_code(sign, dtype):
    values = (sign * APART if dtype == np.int64 else APART).astype(dtype)
    for encoder in (Table().fit({"id": values}), Thermometer(5, spacing="quantile").fit(values[:, None])):
        assert encoder.bits == 5
        bits = encoder.transform({"id": values} if isinstance(encoder, Table) else values[:, None])
        assert sorted(bits.sum(axis=1).tolist()) == [0, 1, 2, 3, 4, 5]
        assert (np.argsort(bits.sum(axis=1)) == np.argsort(values)).all()


def test_the_odd_numbers_just_beyond():
    values = np.array([LARGE, LARGE + 1, LARGE + 4])
    assert Table().fit({"id": values}).transform({"id": values}).sum(axis=1).tolist() == [0, 1, 2]


def test_values_that_no_float_parts_are_refused():
    values = np.array([LARGE + 1, LARGE + 2])
    match = f"column 'id' holds the whole numbers {LARGE + 1} and {LARGE + 2}, beyond 2\\^53, where no threshold"
    with pytest.raises(ValueError, match=match):
        Table().fit({"id": values})
    with pytest.raises(ValueError, match=match):
        Thermometer(5, spacing="quantile").fit(values[:, None], ["id"])
    # As categories they are what they are.
    codes = OneHot().fit({"id": values})
    assert codes.transform({"id": values}).tolist() == [[True, False], [False, True]]


def test_columns_that_say_what_is_missing():
    pandas = pytest.importorskip("pandas")
    polars = pytest.importorskip("polars")
    odd = [LARGE + 1, LARGE + 5, LARGE + 9]
    for whole in (pandas.Series(odd, dtype="Int64"), polars.Series(odd), np.array(odd)):
        assert Table().fit({"id": whole}).transform({"id": whole}).sum(axis=1).tolist() == [0, 1, 2]
    gaps = [*odd, None]
    for column in (pandas.Series(gaps, dtype="Int64"), polars.Series(gaps), gaps):
        with pytest.raises(
            ValueError, match=f"column 'id' holds {LARGE + 1}, a whole number beyond 2\\^53 that is no float"
        ):
            Table().fit({"id": column})
    even = [LARGE + 2, LARGE + 8, None]
    for column in (pandas.Series(even, dtype="Int64"), polars.Series(even), even):
        assert Table().fit({"id": column}).transform({"id": column}).tolist() == [
            [False, False],
            [True, False],
            [False, True],
        ]
