"""Specifications come from files of strangers: everything malformed is one ValueError that says what is wrong."""

import copy
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatefit.encoders import ENCODERS, Identity, OneHot, Table, Thermometer, Threshold, encoder_from_spec

X = np.array([[0.0, 1.0], [2.0, 3.0], [4.0, 9.0]])
SPECS = {
    "threshold": Threshold([1.0, 2.0]).fit(X).to_spec(),
    "thermometer": Thermometer(2, spacing="quantile").fit(X).to_spec(),
    "shared": Thermometer(2, low=0, high=9).fit(X[:0]).to_spec(),
    "one-hot": OneHot().fit([["a", 1], ["b", None]]).to_spec(),
    "identity": Identity().fit(np.array([[0, 1]]), ["p", "q"]).to_spec(),
    "table": Table().fit({"n": [1, 2, None], "c": ["x", "y", "x"], "b": [True, False, True], "k": [1, 1, 1]}).to_spec(),
}


def changed(name, path, value):
    spec = copy.deepcopy(SPECS[name])
    place = spec
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return spec


def test_every_kind_has_a_specification_here():
    assert {spec["kind"] for spec in SPECS.values()} == set(ENCODERS)
    for spec in SPECS.values():
        assert encoder_from_spec(json.loads(json.dumps(spec))).to_spec() == spec


@pytest.mark.parametrize(
    ("name", "path", "value", "message"),
    [
        ("threshold", ("kind",), "magic", "unknown encoder kind 'magic'; known are threshold, thermometer"),
        ("threshold", ("kind",), ["threshold"], "unknown encoder kind"),
        ("threshold", ("extra",), 1, "unknown: extra"),
        ("threshold", ("parameters",), [], "the parameters of threshold must be a mapping, got"),
        ("threshold", ("parameters",), {}, "missing: threshold"),
        ("threshold", ("parameters", "threshold"), "1", "threshold must be a finite number, got '1'"),
        ("threshold", ("parameters", "threshold"), [1.0, float("inf")], "threshold must be a finite number, got inf"),
        ("threshold", ("parameters", "threshold"), [1.0], "1 thresholds for 2 features"),
        ("threshold", ("parameters", "threshold"), True, "threshold must be a finite number, got True"),
        ("threshold", ("parameters", "threshold"), 10**400, "finite number"),
        ("threshold", ("state", "features"), 2.0, "features must be an integer"),
        ("threshold", ("state", "features"), 0, "features must be an integer from 1"),
        ("threshold", ("state", "features"), 10**12, "features must be an integer from 1 to 16777216"),
        ("identity", ("state", "feature_names"), ["p", "p"], "2 different strings, got 2, 1 different"),
        ("identity", ("state", "feature_names"), ["p"], "2 different strings, got 1"),
        ("identity", ("state", "feature_names"), [1, 2], "must be strings, got 1"),
        ("identity", ("state", "feature_names"), "pq", "must be a list, got 'pq'"),
        ("thermometer", ("parameters", "spacing"), "log", "spacing must be"),
        ("thermometer", ("parameters", "thresholds"), 1, "more than 1 thresholds"),
        ("thermometer", ("state", "thresholds"), [[1.0, 0.5], [2.0]], "increase strictly, got 1.0 before 0.5"),
        ("thermometer", ("state", "thresholds"), [[1.0, 1.0], [2.0]], "increase strictly"),
        ("thermometer", ("state", "thresholds"), [[1.0], [float("nan")]], "finite number, got nan"),
        ("thermometer", ("state", "thresholds"), [[1.0]], "one list for each of 2 features, got 1"),
        ("thermometer", ("state", "thresholds"), [[1.0], 2.0], "must be a list, got 2.0"),
        ("thermometer", ("state", "thresholds"), "12", "must be a list"),
        ("shared", ("state", "thresholds"), [1.0, [2.0]], r"finite number, got \[2.0\]"),
        ("shared", ("state", "features"), 2**24, None),
        ("one-hot", ("parameters", "unseen"), 0, "unseen must be"),
        ("one-hot", ("state", "columns", 0, "type"), "number", "missing: thresholds, unknown: categories"),
        ("one-hot", ("state", "columns", 0), {"type": "boolean", "missing": False}, "must be of type category"),
        ("one-hot", ("state", "columns", 0, "categories"), ["a", "a"], "must not repeat"),
        ("one-hot", ("state", "columns", 0, "categories"), [1, True], "must not repeat"),
        ("one-hot", ("state", "columns", 0, "categories"), [["a"]], "strings, finite numbers or Booleans"),
        ("one-hot", ("state", "columns", 0, "categories"), [None], "strings, finite numbers or Booleans"),
        ("one-hot", ("state", "columns", 0, "missing"), 1, "missing must be true or false, got 1"),
        ("table", ("state", "columns"), [], "columns must describe 4 features, got 0"),
        ("table", ("state", "columns", 0), None, "a column must have a type"),
        ("table", ("state", "columns", 0, "type"), "date", "must have a type, one of constant, boolean"),
        ("table", ("state", "columns", 0, "thresholds"), [2, 1], "increase strictly"),
        ("table", ("state", "columns", 3, "missing"), True, "constant column has no missing bit"),
        ("table", ("parameters", "categorical"), "n", "bad parameters of encoder kind 'table': categorical must be"),
        ("table", ("parameters", "max_categories"), -1, "integer from 1"),
    ],
)
def test_malformed_specifications(name, path, value, message):
    spec = changed(name, path, value)
    if message is None:
        assert encoder_from_spec(spec).bits == 2**25  # much, but allowed: nothing is allocated for it
        return
    with pytest.raises(ValueError, match=message):
        encoder_from_spec(spec)


def test_too_many_bits():
    spec = Thermometer(100, low=0, high=1).fit(X[:0]).to_spec()
    spec["state"]["features"] = 2**24
    with pytest.raises(ValueError, match="would make 1677721600 bits"):
        encoder_from_spec(spec)


@pytest.mark.parametrize("spec", [None, [], "threshold", 3, {}, {"kind": "identity"}])
def test_what_is_no_specification(spec):
    with pytest.raises(ValueError, match="an encoder specification"):
        encoder_from_spec(spec)


def paths(spec, prefix=()):
    items = spec.items() if isinstance(spec, dict) else enumerate(spec) if isinstance(spec, list) else ()
    for key, value in items:
        yield (*prefix, key)
        yield from paths(value, (*prefix, key))


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@given(data=st.data())
def test_any_other_value_in_any_place_is_read_or_refused(data):
    name = data.draw(st.sampled_from(sorted(SPECS)))
    path = data.draw(st.sampled_from(list(paths(SPECS[name]))))
    spec = changed(name, path, data.draw(json_values))
    try:
        encoder = encoder_from_spec(spec)
    except ValueError:
        return
    assert encoder_from_spec(json.loads(json.dumps(encoder.to_spec()))) == encoder


def test_equality_and_repr():
    assert Threshold(0.5) == Threshold(0.5) != Threshold(0.6)
    assert Threshold(0.5).fit(X) != Threshold(0.5)
    assert Threshold(0.5).fit(X) != Thermometer(1, low=0, high=1).fit(X)
    assert repr(Thermometer(3)) == "Thermometer(thresholds=3, spacing='uniform', order='feature', low=None, high=None)"
    assert repr(Threshold(range(9) and list(range(9)))) == "Threshold(threshold=[9 values])"
    with pytest.raises(TypeError, match="unhashable"):
        hash(Threshold())
    with pytest.raises(ValueError, match="not fitted"):
        Threshold().to_spec()
