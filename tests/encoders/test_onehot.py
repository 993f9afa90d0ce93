"""One-hot encoding: sorted categories, missing values, unseen categories, types."""

import json
import math
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatefit.encoders import OneHot, Rule, encoder_from_spec


def test_categories_are_sorted_and_named():
    x = np.array([["b", 2], ["a", 10], ["b", None]], dtype=object)
    encoder = OneHot().fit(x)
    assert encoder.names == ("x0 = a", "x0 = b", "x1 = 2", "x1 = 10", "x1 missing")
    assert encoder.rules[2] == Rule(1, "=", 2)
    assert encoder.transform(x).astype(int).tolist() == [[0, 1, 1, 0, 0], [1, 0, 0, 1, 0], [0, 1, 0, 0, 1]]


def test_whole_floats_integers_and_booleans_are_one_category():
    encoder = OneHot().fit(np.array([[1], [2]]))
    assert encoder.transform(np.array([[1.0], [2.0], [1.5]])).tolist() == [[True, False], [False, True], [False, False]]
    assert encoder.transform(np.array([[True]])).tolist() == [[True, False]]


def test_unseen_and_missing_values_set_no_bit():
    encoder = OneHot().fit([["a"], ["b"]])
    assert encoder.names == ("x0 = a", "x0 = b")
    assert not encoder.transform([["c"], [None], [float("nan")]]).any()


def test_unseen_values_can_be_refused():
    encoder = OneHot(unseen="error").fit([["a"], ["b"]])
    assert encoder.transform([["b"]]).tolist() == [[False, True]]
    with pytest.raises(ValueError, match="column 'x0' holds 'c', which did not occur when the encoder was fitted"):
        encoder.transform([["a"], ["c"]])
    with pytest.raises(ValueError, match="column 'x0' holds a missing value, which did not occur"):
        encoder.transform([["a"], [None]])
    with_missing = OneHot(unseen="error").fit([["a"], [None]])
    assert with_missing.transform([[None]]).tolist() == [[False, True]]
    with pytest.raises(ValueError, match="unseen must be 'ignore' or 'error', got 'drop'"):
        OneHot(unseen="drop")


def test_a_changed_type_is_an_error():
    with pytest.raises(TypeError, match="column 'x0' held strings such as 'a' when the encoder was fitted, now 3"):
        OneHot().fit([["a"], ["b"]]).transform(np.array([[3]]))
    with pytest.raises(TypeError, match="column 'x0' held numbers such as 3 when the encoder was fitted, now '3'"):
        OneHot().fit([[3], [4]]).transform([["3"]])


@pytest.mark.parametrize("value", [(1, 2), b"a", Decimal("1.5"), float("inf"), [1]], ids=repr)
def test_values_that_are_no_categories(value):
    column = np.empty((2, 1), dtype=object)
    column[:, 0] = ["a", value]
    with pytest.raises(TypeError, match=r"column 'x0' holds .* categories must be strings, finite numbers or Booleans"):
        OneHot().fit(column)
    if isinstance(value, list):
        column[0, 0] = None  # no bit either, and not what is wrong here
        with pytest.raises(TypeError, match="categories must be strings, finite numbers or Booleans"):
            OneHot().fit([["a"]]).transform(column)


def test_only_categories_that_occur_have_bits():
    frame = pd.DataFrame({"size": pd.Categorical(["S", "L", "S"], categories=["S", "M", "L"], ordered=True)})
    assert OneHot().fit(frame).names == ("size = L", "size = S")


cells = st.one_of(
    st.none(), st.text(max_size=4), st.integers(-(2**70), 2**70), st.floats(allow_infinity=False), st.booleans()
)


@given(rows=st.lists(st.tuples(cells, cells), min_size=1, max_size=8))
def test_every_cell_has_its_bit_and_the_specification_survives_json(rows):
    x = np.empty((len(rows), 2), dtype=object)
    x[:] = rows
    encoder = OneHot(unseen="error").fit(x)
    bits = encoder.transform(x)
    for i in range(len(rows)):
        for feature in range(2):
            set_rules = [rule for j, rule in enumerate(encoder.rules) if rule.feature == feature and bits[i, j]]
            assert len(set_rules) == 1
            cell = rows[i][feature]
            missing = cell is None or (isinstance(cell, float) and math.isnan(cell))
            assert (set_rules[0].test == "missing") == missing
            assert missing or set_rules[0].value == cell
    copy = encoder_from_spec(json.loads(json.dumps(encoder.to_spec())))
    assert copy == encoder
    assert np.array_equal(copy.transform(x), bits)


def test_empty_input():
    encoder = OneHot().fit([["a"]])
    assert encoder.transform(np.empty((0, 1), dtype=object)).shape == (0, 1)
    with pytest.raises(ValueError, match="cannot be fitted on no samples"):
        OneHot().fit(np.empty((0, 1), dtype=object))
