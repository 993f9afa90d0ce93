"""Numeric frames, and that reading tables needs neither pandas nor polars nor torch."""

import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest

from gatefit.encoders import Table, Thermometer, Threshold


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, dict], ids=["pandas", "polars", "mapping"])
def test_number_encoders_take_frames(make):
    frame = make({"a": [1, 2, 3], "b": [0.5, 1.5, 2.5]})
    encoder = Thermometer(1, spacing="quantile").fit(frame)
    assert encoder.feature_names == ("a", "b")
    assert encoder.names == ("a > 1.5", "b > 1")
    expected = [[False, False], [True, True], [True, True]]
    assert encoder.transform(frame).tolist() == expected
    assert encoder.transform(make({"b": [0.5, 1.5, 2.5], "a": [1, 2, 3]})).tolist() == expected
    assert encoder.transform(np.array([[1, 0.5], [2, 1.5], [3, 2.5]])).tolist() == expected


def test_number_encoders_refuse_other_columns():
    with pytest.raises(TypeError, match="Threshold needs numbers, column 'b' holds categories"):
        Threshold().fit(pd.DataFrame({"a": [1], "b": ["x"]}))
    with pytest.raises(ValueError, match="feature 'b' is nan in row 1"):
        Thermometer().fit(pd.DataFrame({"a": [1, 2], "b": [True, None]}))


def test_frame_after_array_is_matched_by_position():
    encoder = Threshold(1.5).fit(np.zeros((1, 2)))
    assert encoder.transform(pd.DataFrame({"p": [1], "q": [2]})).tolist() == [[False, True]]


def test_any_library_that_narwhals_knows():
    import narwhals as nw

    content = {"n": [1, 2, 3], "gap": [1.5, None, 2.5], "word": ["a", "b", "a"], "on": [True, False, None]}
    expected = Table().fit(pl.DataFrame(content))
    for backend in ("pandas", "polars"):
        frame = nw.from_dict(content, backend=backend)
        encoder = Table().fit(frame)
        assert encoder == expected
        assert np.array_equal(encoder.transform(frame), expected.transform(pl.DataFrame(content)))
        assert np.array_equal(np.concatenate([*encoder.transform_batches(frame, 2)]), encoder.transform(frame))


def test_encoders_import_nothing_heavy():
    code = (
        "import sys, gatefit.encoders, gatefit.datasets; "
        "heavy = ('torch', 'numba', 'pandas', 'polars', 'narwhals', 'sklearn', 'scipy', 'pooch'); "
        "print([name for name in heavy if name in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"
