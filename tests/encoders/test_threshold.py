"""Threshold and thermometer encoders: exact comparisons in every dtype, layouts, fitted thresholds."""

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from gatefit.encoders import Rule, Table, Thermometer, Threshold, encoder_from_spec
from gatefit.encoders.threshold import round_down

DTYPES = [np.bool_, np.int8, np.uint8, np.int32, np.uint32, np.int64, np.uint64, np.float16, np.float32, np.float64]


def exact(x: np.ndarray, t: float) -> np.ndarray:
    """x > t by Python's own comparison of numbers, which is exact between int and float."""
    return np.array([[value > t for value in row] for row in x.tolist()], dtype=bool).reshape(x.shape)


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: np.dtype(d).name)
@given(data=st.data())
def test_comparison_is_exact_in_every_dtype(dtype, data):
    elements = None
    if np.dtype(dtype).kind == "f":
        elements = st.floats(width=np.dtype(dtype).itemsize * 8, allow_nan=False)
    x = data.draw(hnp.arrays(dtype, (3, 2), elements=elements))
    near = float(x[0, 0]) if math.isfinite(float(x[0, 0])) else 0.0
    t = data.draw(
        st.one_of(
            st.sampled_from([near, math.nextafter(near, math.inf), math.nextafter(near, -math.inf), near + 0.5]),
            st.floats(allow_nan=False, allow_infinity=False),
        )
    )
    if math.isfinite(t):
        assert np.array_equal(Threshold(t).fit(x).transform(x), exact(x, t))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("t", [1.7976931348623157e308, 3.5e38, 65520.0, 5e-324, 1e-45, 1e-8, 0.0])
def test_comparison_is_exact_at_the_limits_of_floats(dtype, t):
    info = np.finfo(dtype)
    x = np.array([[0.0, info.smallest_subnormal, info.tiny, info.max, np.inf]], dtype=dtype)
    for values in (x, -x):
        for threshold in (t, -t):
            assert np.array_equal(Threshold(threshold).fit(values).transform(values), exact(values, threshold))


def test_thresholds_below_every_integer_are_always_exceeded():
    """Fitted on signed numbers, used on unsigned ones; features with different numbers of thresholds as well."""
    fitted = np.array([[-5, 0], [-1, 0], [3, 1]])
    x = np.array([[0, 0], [3, 1]], dtype=np.uint8)
    for encoder in (Thermometer(2, spacing="quantile").fit(fitted), Table().fit(fitted)):
        assert encoder.names == ("x0 > -3", "x0 > 1", "x1 > 0.5")
        assert encoder.transform(x).tolist() == [[True, False, False], [True, True, True]]
        assert Threshold(-1).fit_transform(x).all()


def test_round_down_of_all_bytes_is_exact():
    x = np.arange(256, dtype=np.uint8)
    for t in np.arange(-2, 258, 0.25):
        bound, always = round_down(np.array([t]), x.dtype)
        expected = [value > t for value in range(256)]
        assert ((x > bound) | (always is not None)).tolist() == expected


def test_threshold_of_half_the_range_splits_bytes_between_127_and_128():
    x = np.array([[0, 127, 128, 255]], dtype=np.uint8)
    assert Threshold(127.5).fit(x).transform(x).tolist() == [[False, False, True, True]]


def test_threshold_per_feature_and_its_names():
    encoder = Threshold(np.array([0.5, 37.5])).fit(np.zeros((1, 2)), feature_names=("gain", "age"))
    assert encoder.names == ("gain > 0.5", "age > 37.5")
    assert encoder.rules == (Rule(0, ">", 0.5), Rule(1, ">", 37.5))
    assert encoder.transform([[1, 37.5], [0.5, 38]]).tolist() == [[True, False], [False, True]]
    with pytest.raises(ValueError, match="2 thresholds for 3 features"):
        Threshold([0.5, 37.5]).fit(np.zeros((1, 3)))


@pytest.mark.parametrize("thresholds", [3, 31])
def test_image_planes_are_those_of_difflogic(thresholds):
    """Planes (i + 1) / (n + 1) of x / 255, concatenated along the channels: (thresholds · channels, rows, columns)."""
    images = np.random.default_rng(0).integers(0, 256, (5, 3, 4, 4), dtype=np.uint8)
    images.reshape(-1)[:240] = np.arange(240) + 8
    unit = images / 255
    expected = np.concatenate([unit > (i + 1) / (thresholds + 1) for i in range(thresholds)], axis=1)
    encoder = Thermometer(thresholds, order="threshold", low=0, high=255).fit(images.reshape(5, -1))
    assert np.array_equal(encoder.transform(images.reshape(5, -1)), expected.reshape(5, -1))


def test_a_fixed_range_needs_only_the_shape():
    encoder = Thermometer(3, low=0, high=4).fit(np.full((0, 2), np.nan))
    assert encoder.names == ("x0 > 1", "x0 > 2", "x0 > 3", "x1 > 1", "x1 > 2", "x1 > 3")
    assert encoder.bits == 6
    assert encoder.features == 2


@given(
    x=hnp.arrays(np.float64, (9, 3), elements=st.integers(-5, 5).map(float) | st.floats(-1e300, 1e300)),
    count=st.integers(1, 6),
    spacing=st.sampled_from(["uniform", "quantile"]),
)
def test_both_orders_hold_the_same_bits_and_ones_are_a_prefix(x, count, spacing):
    by_feature = Thermometer(count, spacing=spacing).fit(x)
    by_threshold = Thermometer(count, spacing=spacing, order="threshold").fit(x)
    assert by_feature.bits <= 3 * count
    a, b = by_feature.transform(x), by_threshold.transform(x)
    assert sorted(by_feature.rules) == sorted(by_threshold.rules)
    for j, rule in enumerate(by_threshold.rules):
        assert np.array_equal(b[:, j], a[:, by_feature.rules.index(rule)])
        assert np.array_equal(b[:, j], x[:, rule.feature] > rule.value)
    for feature in range(3):
        own = a[:, [j for j, rule in enumerate(by_feature.rules) if rule.feature == feature]].astype(int)
        assert np.all(np.diff(own, axis=1) <= 0)  # thermometer: once false, false for every higher threshold
        assert np.all((own.sum(axis=0) > 0) & (own.sum(axis=0) < 9))  # no constant bit on the fitted samples


def test_uniform_thresholds_follow_each_feature():
    encoder = Thermometer(3).fit([[0, 10], [4, 10], [1, 20]])
    assert [rule.value for rule in encoder.rules] == [1, 2, 3, 12.5, 15, 17.5]


def test_uniform_range_of_extreme_floats():
    encoder = Thermometer(1).fit(np.array([[-1.7e308], [1.7e308]]))
    assert encoder.transform(np.array([[-1.0], [1.0]])).tolist() == [[False], [True]]


def test_out_is_filled_and_checked():
    x = np.array([[1.0], [2.0]])
    encoder = Threshold(1.5).fit(x)
    out = np.empty((2, 1), dtype=bool)
    assert encoder.transform(x, out=out) is out
    assert out.tolist() == [[False], [True]]
    for wrong in (np.empty((1, 1), bool), np.empty((2, 1), np.uint8), np.empty((2, 2), bool)[:, :1]):
        with pytest.raises(ValueError, match=r"out must be a C-contiguous bool array of shape \(2, 1\)"):
            encoder.transform(x, out=wrong)


def test_nan_and_infinity():
    encoder = Thermometer(1, spacing="quantile").fit([[0.0], [1.0]])
    assert encoder.transform([[np.inf], [-np.inf]]).tolist() == [[True], [False]]
    with pytest.raises(ValueError, match="cannot transform: feature 'x0' is nan in row 1"):
        encoder.transform([[0.0], [np.nan]])
    for value in (np.nan, np.inf):
        with pytest.raises(ValueError, match=f"cannot fit: feature 'x1' is {value} in row 0"):
            Thermometer().fit([[0.0, value]])


def test_refit_forgets_the_first_fit():
    encoder = Thermometer(1).fit([[0.0], [1.0]])
    assert encoder.names == ("x0 > 0.5",)
    encoder.fit([[0.0, 0.0], [4.0, 2.0]])
    assert encoder.names == ("x0 > 2", "x1 > 1")
    assert encoder.transform([[3, 0]]).tolist() == [[True, False]]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"thresholds": 0}, "integer from 1 to 65536, got 0"),
        ({"thresholds": 2.0}, "must be an integer"),
        ({"spacing": "log"}, "spacing must be 'uniform' or 'quantile', got 'log'"),
        ({"order": "plane"}, "order must be 'feature' or 'threshold', got 'plane'"),
        ({"low": 0}, "both low and high or neither"),
        ({"low": 1, "high": 1}, "low must be less than high"),
        ({"low": 0, "high": math.inf}, "high must be a finite number, got inf"),
        ({"low": 0, "high": 1, "spacing": "quantile"}, "leave them out"),
    ],
)
def test_bad_thermometer_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        Thermometer(**arguments)


def test_bad_input():
    encoder = Threshold(0.5).fit(np.zeros((1, 3)))
    with pytest.raises(ValueError, match="fitted on 3 features, got 2"):
        encoder.transform(np.zeros((1, 2)))
    with pytest.raises(ValueError, match=r"two-dimensional array .* got shape \(3,\)"):
        encoder.transform(np.zeros(3))
    with pytest.raises(TypeError, match="Threshold needs numbers, got an array of <U1"):
        encoder.transform(np.array([["a", "b", "c"]]))
    with pytest.raises(TypeError, match="array of objects that are not: could not convert string"):
        encoder.transform([["a", "b", "c"]])
    with pytest.raises(TypeError, match="complex128"):
        encoder.transform(np.zeros((1, 3), dtype=complex))
    with pytest.raises(TypeError, match="masked array"):
        encoder.transform(np.ma.zeros((1, 3)))
    with pytest.raises(ValueError, match=r"Threshold\(threshold=0.5\) is not fitted yet; call fit\(x\) first"):
        Threshold(0.5).transform(np.zeros((1, 3)))
    with pytest.raises(ValueError, match="not fitted"):
        Threshold(0.5).names
    with pytest.raises(ValueError, match="no samples"):
        Thermometer().fit(np.zeros((0, 3)))
    with pytest.raises(ValueError, match="1 to 16777216 features, got 0"):
        Threshold().fit(np.zeros((1, 0)))
    with pytest.raises(ValueError, match="threshold must be a finite number, got nan"):
        Threshold(math.nan)


@given(
    x=hnp.arrays(np.float64, (6, 2), elements=st.floats(-1e6, 1e6)),
    count=st.integers(1, 5),
    spacing=st.sampled_from(["uniform", "quantile"]),
    order=st.sampled_from(["feature", "threshold"]),
)
def test_specification_survives_json(x, count, spacing, order):
    encoder = Thermometer(count, spacing, order).fit(x)
    copy = encoder_from_spec(json.loads(json.dumps(encoder.to_spec())))
    assert copy == encoder
    assert copy.names == encoder.names
    assert np.array_equal(copy.transform(x), encoder.transform(x))


@pytest.mark.parametrize(
    "encoder",
    [Threshold(0.1), Threshold([0.1, 1e-300]), Thermometer(31, order="threshold", low=0, high=255)],
    ids=["one threshold", "one each", "image planes"],
)
def test_fixed_thresholds_survive_json(encoder):
    x = np.array([[0.1, 0.0], [math.nextafter(0.1, 1), 2e-300], [200, 100]])
    encoder.fit(x)
    copy = encoder_from_spec(json.loads(json.dumps(encoder.to_spec())))
    assert copy == encoder
    assert copy.parameters() == encoder.parameters()
    assert np.array_equal(copy.transform(x), encoder.transform(x))


def test_shared_thresholds_are_stored_once():
    encoder = Thermometer(31, order="threshold", low=0, high=255).fit(np.empty((0, 3072)))
    assert encoder.bits == 95_232
    assert len(json.dumps(encoder.to_spec())) < 1000


def test_names_that_ten_digits_cannot_tell_apart_are_exact():
    encoder = Thermometer(2, spacing="quantile").fit([[1.0], [1.0 + 1e-14], [1.0 + 2e-14]])
    assert len(set(encoder.names)) == 2
    assert encoder.names[0] == f"x0 > {encoder.rules[0].value!r}"
