"""The table encoder: mixed columns from pandas, polars, numpy and mappings; missing, unseen, changed."""

import datetime
import json

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

from gatefit.encoders import Table, encoder_from_spec

PEOPLE = {
    "age": [25, 38, 50, 38],
    "income": [1.5, None, 2.5, 9.0],
    "city": ["Rome", "Oslo", None, "Rome"],
    "member": [True, False, True, True],
    "planet": ["Earth"] * 4,
}
NAMES = (
    "age > 31.5",
    "age > 44",
    "income > 2",
    "income > 5.75",
    "income missing",
    "city = Oslo",
    "city = Rome",
    "city missing",
    "member",
)
BITS = [
    [0, 0, 0, 0, 0, 0, 1, 0, 1],
    [1, 0, 0, 0, 1, 1, 0, 0, 0],
    [1, 1, 1, 0, 0, 0, 0, 1, 1],
    [1, 0, 1, 1, 0, 0, 1, 0, 1],
]


def as_objects() -> np.ndarray:
    return np.array([*zip(*PEOPLE.values(), strict=True)], dtype=object)


FRAMES = {
    "pandas": lambda: pd.DataFrame(PEOPLE),
    "pandas nullable": lambda: pd.DataFrame(PEOPLE).convert_dtypes(),
    "pandas objects": lambda: pd.DataFrame(PEOPLE, dtype=object),
    "pandas categories": lambda: pd.DataFrame(PEOPLE).astype({"city": "category", "planet": "category"}),
    "polars": lambda: pl.DataFrame(PEOPLE),
    "polars categories": lambda: pl.DataFrame(PEOPLE).with_columns(pl.col("city").cast(pl.Categorical)),
    "mapping": lambda: PEOPLE,
}


@pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES)
def test_every_kind_of_frame_gives_the_same_bits(frame):
    x = frame()
    encoder = Table().fit(x)
    assert encoder.names == NAMES
    assert encoder.transform(x).astype(int).tolist() == BITS
    assert encoder == Table().fit(pd.DataFrame(PEOPLE))
    for other in FRAMES.values():
        assert encoder.transform(other()).astype(int).tolist() == BITS


def test_object_array():
    encoder = Table().fit(as_objects(), feature_names=tuple(PEOPLE))
    assert encoder.names == NAMES
    assert encoder.transform(as_objects()).astype(int).tolist() == BITS
    assert encoder.transform(as_objects().tolist()).astype(int).tolist() == BITS
    assert Table().fit(as_objects()).names[0] == "x0 > 31.5"


@pytest.mark.parametrize("dtype", [np.uint8, np.int64, np.float32])
def test_number_arrays(dtype):
    x = np.array([[0, 5], [1, 5], [3, 5]], dtype=dtype)
    encoder = Table().fit(x)
    assert encoder.names == ("x0 > 0.5", "x0 > 2")  # the constant column makes no bits
    assert encoder.features == 2
    assert encoder.transform(x).astype(int).tolist() == [[0, 0], [1, 0], [1, 1]]


def test_zeros_and_ones_and_booleans_make_one_bit():
    assert Table().fit(np.array([[0], [1]])).bits == 1
    assert Table().fit(np.array([[False], [True]])).names == ("x0",)


def test_columns_are_matched_by_name():
    encoder = Table().fit(pd.DataFrame(PEOPLE))
    shuffled = pd.DataFrame(PEOPLE)[["city", "member", "planet", "income", "age"]].assign(more=1)
    assert encoder.transform(shuffled).astype(int).tolist() == BITS
    with pytest.raises(ValueError, match="columns that are missing here: age, city; given: income, member, planet"):
        encoder.transform(pd.DataFrame(PEOPLE).drop(columns=["city", "age"]))
    with pytest.raises(ValueError, match="fitted on 5 features, got 4"):
        encoder.transform(as_objects()[:, :4])


def test_missing_values_where_none_were_before_set_no_bit():
    encoder = Table().fit({"age": [1, 2, 3], "city": ["a", "b", "a"], "member": [True, False, True]})
    assert encoder.bits == 5
    for nothing in ([None, None, None], [np.nan, pd.NA, pd.NaT]):
        row = {name: [value] for name, value in zip(encoder.feature_names, nothing, strict=True)}
        assert not encoder.transform(pd.DataFrame(row)).any()
        assert not encoder.transform(row).any()
    assert not encoder.transform(pl.DataFrame({"age": [None], "city": [None], "member": [None]})).any()


@pytest.mark.parametrize("nothing", [None, np.nan, pd.NA, pd.NaT], ids=str)
def test_every_kind_of_missing_value_has_the_missing_bit(nothing):
    x = {"a": [1.0, nothing, 2.0], "b": ["u", nothing, "v"], "c": [True, nothing, False]}
    encoder = Table().fit(x)
    assert encoder.names == ("a > 1.5", "a missing", "b = u", "b = v", "b missing", "c", "c missing")
    assert encoder.transform(x)[1].tolist() == [False, True, False, False, True, False, True]


def test_columns_that_vary_only_in_being_missing():
    x = {"a": [1.0, None], "b": ["u", None], "c": [True, None], "d": [None, None]}
    encoder = Table().fit(x)
    assert encoder.names == ("a missing", "b = u", "b missing", "c missing")
    assert encoder.transform(x).tolist() == [[False, True, False, False], [True, False, True, True]]


def test_unseen_categories_set_no_bit():
    encoder = Table().fit(pd.DataFrame(PEOPLE))
    later = pd.DataFrame(PEOPLE).assign(city="Lima", planet="Mars")
    assert not encoder.transform(later)[:, 5:8].any()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"age": ["old"] * 4}, "held numbers when the encoder was fitted has changed: column 'age' .* got 'old'"),
        ({"city": [3] * 4}, "column 'city' held strings such as 'Oslo' when the encoder was fitted, now 3"),
        ({"city": [True] * 4}, "column 'city' held strings such as 'Oslo' when the encoder was fitted, now True"),
        ({"member": ["yes"] * 4}, "held Booleans when the encoder was fitted has changed: column 'member' .* 'yes'"),
        ({"member": [2, 0, 1, 1]}, "column 'member' held Booleans when the encoder was fitted, now 2"),
    ],
    ids=["number to text", "text to number", "text to bool", "bool to text", "bool to number"],
)
def test_a_column_that_changed_its_type(change, message):
    encoder = Table().fit(pd.DataFrame(PEOPLE))
    for later in (pd.DataFrame(PEOPLE).assign(**change), pl.DataFrame({**PEOPLE, **change})):
        with pytest.raises(TypeError, match=message):
            encoder.transform(later)


def test_types_that_are_the_same_in_other_clothes():
    encoder = Table().fit(pd.DataFrame(PEOPLE))
    later = pd.DataFrame(PEOPLE).assign(member=[1, 0, 1, 1], age=[25.0, 38.0, 50.0, 38.0])
    assert encoder.transform(later).astype(int).tolist() == BITS


def test_numbers_with_missing_values_as_categories():
    frame = pd.DataFrame({"zip": [10.0, None, 20.0]})
    encoder = Table(categorical=["zip"]).fit(frame)
    assert encoder.names == ("zip = 10", "zip = 20", "zip missing")
    assert encoder.transform(frame).tolist() == [[True, False, False], [False, False, True], [False, True, False]]


def test_polars_objects():
    column = pl.Series("o", ["u", None, "v"], dtype=pl.Object)
    assert Table().fit(pl.DataFrame({"o": column})).names == ("o = u", "o = v", "o missing")
    decimals = pl.DataFrame({"d": [1.5, 2.5]}).cast(pl.Decimal(10, 2))
    assert Table().fit(decimals).names == ("d > 2",)


def test_overrides():
    frame = pd.DataFrame({"zip": [10, 20, 10], "grade": pd.Categorical([1, 3, 2]), "on": [True, False, True]})
    assert Table(categorical=["zip"]).fit(frame).names[:2] == ("zip = 10", "zip = 20")
    assert Table(numeric=["grade"]).fit(frame).names == ("zip > 15", "grade > 1.5", "grade > 2.5", "on")
    by_position = Table(categorical=[0], numeric=[1]).fit(frame)
    assert by_position.names == ("zip = 10", "zip = 20", "grade > 1.5", "grade > 2.5", "on")
    assert by_position.transform(frame).astype(int).tolist() == [[1, 0, 0, 0, 1], [0, 1, 1, 1, 0], [1, 0, 1, 0, 1]]
    assert encoder_from_spec(json.loads(json.dumps(by_position.to_spec()))) == by_position


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"thresholds": 0}, ValueError, "integer from 1"),
        ({"max_categories": "all"}, ValueError, "must be an integer"),
        ({"categorical": "age"}, TypeError, "categorical must be a list of column names or positions, got 'age'"),
        ({"numeric": [1.5]}, TypeError, "numeric must be a list"),
    ],
)
def test_bad_arguments(arguments, error, message):
    with pytest.raises(error, match=message):
        Table(**arguments)


def test_bad_overrides():
    frame = pd.DataFrame(PEOPLE)
    with pytest.raises(ValueError, match=r"categorical names columns that are not there: \('agee',\)"):
        Table(categorical=["agee"]).fit(frame)
    with pytest.raises(ValueError, match="numeric names columns that are not there"):
        Table(numeric=[5]).fit(frame)
    with pytest.raises(ValueError, match="both categorical and numeric: age"):
        Table(categorical=["age"], numeric=[0]).fit(frame)
    with pytest.raises(TypeError, match="column 'city' needs numbers, got 'Rome'"):
        Table(numeric=["city"]).fit(frame)


@pytest.mark.parametrize(
    "column",
    [
        pd.Series(pd.to_datetime(["2020-01-01", "2021-01-01"])),
        pd.Series(pd.to_timedelta([1, 2], unit="D")),
        pl.Series([datetime.date(2020, 1, 1), datetime.date(2021, 1, 1)]),
        pl.Series([[1], [2]]),
        [datetime.datetime(2020, 1, 1), None],
        np.array(["2020", "2021"], dtype="datetime64[Y]"),
        np.array([1j, 2j]),
    ],
    ids=["pandas time", "pandas delta", "polars date", "polars list", "objects", "numpy", "complex"],
)
def test_columns_without_an_encoding(column):
    with pytest.raises(TypeError, match=r"column 'when' holds .* no encoding; convert it to numbers first"):
        Table().fit({"when": column})


def test_many_categories_keep_the_most_frequent():
    column = ["rare"] + ["b"] * 3 + ["a"] * 2 + ["c"] * 2
    encoder = Table(max_categories=2).fit({"word": column})
    assert encoder.names == ("word = a", "word = b")  # of a and c, equally frequent, the first in order
    assert not encoder.transform({"word": ["rare", "c"]}).any()


def test_infinite_values():
    with pytest.raises(ValueError, match="column 'a' holds infinite values"):
        Table().fit({"a": [1.0, np.inf]})
    assert Table().fit({"a": [1.0, 2.0]}).transform({"a": [np.inf, -np.inf]}).tolist() == [[True], [False]]


def test_bad_frames():
    with pytest.raises(ValueError, match="column names must differ, got more than one of: a"):
        Table().fit(pd.DataFrame([[1, 2]], columns=["a", "a"]))
    with pytest.raises(ValueError, match=r"same length, got lengths \[1, 2\]"):
        Table().fit({"a": [1], "b": [1, 2]})
    with pytest.raises(ValueError, match=r"column 'a' must be one-dimensional, got shape \(1, 2\)"):
        Table().fit({"a": np.zeros((1, 2))})
    with pytest.raises(TypeError, match=r"LazyFrame; call \.collect"):
        Table().fit(pl.LazyFrame({"a": [1]}))
    with pytest.raises(ValueError, match="cannot be fitted on no samples"):
        Table().fit(pd.DataFrame({"a": []}))
    with pytest.raises(ValueError, match="two-dimensional"):
        Table().fit(np.arange(3))
    with pytest.raises(ValueError, match="feature names must be 2 different strings, got 1"):
        Table().fit(np.zeros((1, 2)), feature_names=["a"])
    with pytest.raises(TypeError, match="sparse dia_array; make it dense first"):
        Table().fit(scipy.sparse.eye_array(3))


def test_a_failed_fit_changes_nothing():
    encoder = Table().fit({"a": [1, 2]})
    with pytest.raises(ValueError, match="infinite"):
        encoder.fit({"b": [1, np.inf]})
    assert encoder.names == ("a > 1.5",)


def test_nothing_varies():
    encoder = Table().fit({"a": [1, 1]})
    assert encoder.bits == 0
    assert encoder.transform({"a": ["anything"]}).shape == (1, 0)


columns = st.integers(1, 12).flatmap(
    lambda n: st.fixed_dictionaries(
        {
            "number": st.lists(st.none() | st.floats(-1e9, 1e9), min_size=n, max_size=n),
            "whole": st.lists(st.integers(-(2**31), 2**31), min_size=n, max_size=n),
            "text": st.lists(st.none() | st.text(max_size=3), min_size=n, max_size=n),
            "flag": st.lists(st.none() | st.booleans(), min_size=n, max_size=n),
        }
    )
)


@given(columns=columns, thresholds=st.integers(1, 5))
def test_libraries_agree_and_the_specification_survives_json(columns, thresholds):
    schema = {"number": pl.Float64, "whole": pl.Int64, "text": pl.String, "flag": pl.Boolean}
    frames = [columns, pd.DataFrame(columns), pl.DataFrame(columns, schema={name: schema[name] for name in columns})]
    encoders = [Table(thresholds).fit(frame) for frame in frames]
    assert encoders[0] == encoders[1] == encoders[2]
    copy = encoder_from_spec(json.loads(json.dumps(encoders[0].to_spec())))
    assert copy == encoders[0]
    assert copy.names == encoders[0].names
    bits = [encoder.transform(frame) for encoder, frame in zip([*encoders, copy], [*frames, frames[2]], strict=True)]
    for other in bits[1:]:
        assert np.array_equal(bits[0], other)
    for j, rule in enumerate(encoders[0].rules):
        for i in range(len(columns["whole"])):
            cell = [*columns.values()][rule.feature][i]
            expected = {
                ">": lambda c=cell, r=rule: c is not None and c > r.value,
                "=": lambda c=cell, r=rule: c == r.value,
                "missing": lambda c=cell: c is None,
                "bit": lambda c=cell: c is True,
            }[rule.test]()
            assert bits[0][i, j] == expected
