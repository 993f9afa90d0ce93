"""The identity encoder: bits in, the same bits out, anything else refused."""

import json

import numpy as np
import pandas as pd
import pytest

from gatefit.encoders import Identity, Rule, encoder_from_spec

BITS = [[0, 1, 1], [1, 1, 0]]


@pytest.mark.parametrize("dtype", [bool, np.uint8, np.int64, np.float32, object])
def test_bits_of_every_dtype(dtype):
    encoder = Identity().fit(np.array(BITS, dtype=dtype))
    bits = encoder.transform(np.array(BITS, dtype=dtype))
    assert bits.dtype == bool
    assert bits.tolist() == np.array(BITS, dtype=bool).tolist()


def test_result_is_a_copy():
    x = np.array(BITS, dtype=bool)
    bits = Identity().fit(x).transform(x)
    bits[:] = False
    assert x.any()


@pytest.mark.parametrize(
    "x", [np.array([[0, 2]], np.uint8), np.array([[0, -1]]), np.array([[1, 0.5]]), np.array([[1, np.nan]])]
)
def test_anything_else_is_refused(x):
    with pytest.raises(ValueError, match=f"Identity needs bits .0 or 1., feature 'x1' is {x[0, 1]} in row 0"):
        Identity().fit(x)
    with pytest.raises(ValueError, match="Identity needs bits"):
        Identity().fit(np.array([[1, 0]])).transform(x)


def test_names_and_specification():
    encoder = Identity().fit(pd.DataFrame({"wet": [True, False], "cold": [1, 0]}))
    assert encoder.names == encoder.feature_names == ("wet", "cold")
    assert encoder.rules == (Rule(0, "bit"), Rule(1, "bit"))
    copy = encoder_from_spec(json.loads(json.dumps(encoder.to_spec())))
    assert copy == encoder
    assert copy.transform(pd.DataFrame({"cold": [1], "other": ["z"], "wet": [False]})[["wet", "cold"]]).tolist() == [
        [False, True]
    ]
    assert copy != Identity()
    assert copy != Identity().fit(np.array([[0, 1]]))
    assert Identity() == Identity()
    assert (Identity() == 3) is False
