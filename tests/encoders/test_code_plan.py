"""Many columns at once are the same as column by column, and cost no more calls for more columns."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from calls import calls
from gatefit.encoders import OneHot, Table
from gatefit.encoders.frames import Columns, read_columns

DTYPES = [np.bool_, np.int8, np.uint8, np.int64, np.uint64, np.float16, np.float32, np.float64]


def one_by_one(encoder, x):
    """The bits with nothing but the columns' own codes."""
    frame = read_columns(x).aligned(encoder.features, encoder._columns, encoder)
    out = np.empty((frame.samples, encoder.bits), dtype=np.bool_)
    encoder._encode(Columns(list(frame.raw), frame.names), out)
    return out


def numbers(rng, dtype, rows, columns):
    if dtype == np.bool_:
        return rng.random((rows, columns)) < 0.5
    values = rng.normal(0, 40, (rows, columns))
    values[:, ::5] = rng.integers(0, 2, values[:, ::5].shape)
    if np.dtype(dtype).kind == "f":
        values[rng.random(values.shape) < 0.1] = np.nan
        return values.astype(dtype)
    return np.clip(values, 0 if np.dtype(dtype).kind == "u" else -128, 127).astype(dtype)


@pytest.mark.parametrize("rows", [1, 7, 3000])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("fitted", DTYPES)
def test_matrices(fitted, dtype, rows):
    rng = np.random.default_rng(0)
    encoder = Table(thresholds=6, categorical=[3] if fitted == np.int8 else None).fit(numbers(rng, fitted, 300, 12))
    x = numbers(rng, dtype, rows, 12)
    try:
        expected = one_by_one(encoder, x)
    except TypeError as error:  # a column of Booleans has become numbers
        with pytest.raises(TypeError, match=str(error)[:40]):
            encoder.transform(x)
    else:
        assert np.array_equal(encoder.transform(x), expected)


def mixed(rng, rows):
    frame = pd.DataFrame(numbers(rng, np.float64, rows, 10), columns=[f"f{i}" for i in range(10)])
    for i in range(9):
        frame.insert(2 * i, f"i{i}", rng.integers(-5, 5, rows))
    frame["whole"] = pd.array(rng.integers(0, 4, rows), dtype="Int64")
    frame["job"] = rng.choice(["a", "b", "c"], rows)
    frame["colour"] = pd.Categorical(rng.choice(["red", "green"], rows))
    for i in range(8):
        frame[f"b{i}"] = rng.random(rows) < 0.5
    return frame


@pytest.mark.parametrize("rows", [1, 100])
def test_data_frames_of_every_kind(rows):
    rng = np.random.default_rng(1)
    frame = mixed(rng, 400)
    encoder = Table(thresholds=5, categorical=["i2"]).fit(frame)
    x = mixed(rng, rows)
    expected = one_by_one(encoder, x)
    assert expected.any(axis=0).sum() > 20 or rows == 1
    lists = {name: x[name].tolist() for name in x}
    shuffled = x[rng.permutation(x.columns)].assign(extra=1.0)
    for same in (x, shuffled, dict(shuffled.items()), pl.DataFrame(lists)):
        assert np.array_equal(encoder.transform(same), expected)
    batches = list(encoder.transform_batches(x, 7))
    assert [len(batch) for batch in batches[:-1]] == [7] * (len(batches) - 1)
    assert np.array_equal(np.concatenate(batches), expected)
    for other in (lists, pl.DataFrame(lists)):
        assert np.array_equal(np.concatenate(list(encoder.transform_batches(other, 7))), expected)


def test_categories_of_numbers_go_column_by_column():
    x = np.array([[1, 5], [2, 6], [3, 5]])
    encoder = OneHot().fit(x)
    assert np.array_equal(encoder.transform(x), one_by_one(encoder, x))


@pytest.mark.parametrize("make", [np.asarray, pd.DataFrame], ids=["array", "frame"])
def test_one_row_costs_the_same_calls_for_any_number_of_columns(make):
    spent = {}
    for columns in (20, 400):
        x = numbers(np.random.default_rng(2), np.float64, 50, columns)
        encoder = Table().fit(make(x))
        spent[columns] = calls(encoder.transform, make(x[:1]))
    # pandas itself makes a few for each column's type.
    assert spent[400] - spent[20] <= (0 if make is np.asarray else 3 * 380)
    assert spent[20] < (30 if make is np.asarray else 250)
