"""Data frames with columns of every kind, and real data sets, through the estimators."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.compose import make_column_transformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from gatefit.circuit.ir import Circuit
from gatefit.datasets import load_adult_frame, load_dataset
from gatefit.encoders import Identity, Table
from gatefit.estimators import LogicGateClassifier, LogicGateRegressor

SMALL = {"width": 120, "depth": 3, "steps": 60, "threads": 1, "random_state": 0}


def people(samples=300, seed=0):
    """Numbers, strings, categoricals and Booleans, with some of each kind missing; the answer hangs on all of them."""
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 80, samples).astype(float)
    job = rng.choice(["clerk", "nurse", "pilot"], samples).astype(object)
    size = rng.choice(["S", "M", "L"], samples)
    member = rng.random(samples) < 0.5
    answer = np.where((age > 40) & (job != "clerk") | member & (size == "S"), "yes", "no")
    age[rng.random(samples) < 0.1] = np.nan
    job[rng.random(samples) < 0.1] = None
    frame = pd.DataFrame({"age": age, "job": job, "size": pd.Categorical(size), "member": member})
    return frame, answer


def as_polars(frame):
    return pl.DataFrame({name: [None if pd.isna(v) else v for v in frame[name].tolist()] for name in frame.columns})


@pytest.fixture(scope="module")
def frame():
    return people()


@pytest.fixture(scope="module")
def fitted(frame):
    return LogicGateClassifier(**{**SMALL, "steps": 200}).fit(*frame)


def test_a_data_frame_with_columns_of_every_kind(frame, fitted):
    X, y = frame
    assert fitted.score(X, y) > 0.92
    assert fitted.score(*people(seed=1)) > 0.85
    assert fitted.feature_names_in_.tolist() == ["age", "job", "size", "member"]
    assert fitted.n_features_in_ == 4
    names = fitted.encoder_.names
    assert {"age missing", "job = pilot", "job missing", "size = S", "member"} <= set(names)
    assert sum(name.startswith("age > ") for name in names) == 15
    assert fitted.circuit_.input_names == names


def test_polars_gives_what_pandas_gives(frame, fitted):
    X, y = frame
    Z = as_polars(X)
    np.testing.assert_array_equal(fitted.decision_function(Z), fitted.decision_function(X))
    again = LogicGateClassifier(**{**SMALL, "steps": 200}).fit(Z, pl.Series(y))
    assert again.feature_names_in_.tolist() == fitted.feature_names_in_.tolist()
    np.testing.assert_array_equal(again.decision_function(X), fitted.decision_function(X))
    with pytest.raises(TypeError, match=r"^got a polars LazyFrame; call .collect\(\) on it first$"):
        fitted.predict(Z.lazy())


def test_object_arrays_and_lists_of_mixed_values(frame, fitted):
    X, y = frame
    rows = X.astype({"size": object}).to_numpy()
    model = LogicGateClassifier(**{**SMALL, "steps": 200}).fit(rows, y)
    np.testing.assert_array_equal(model.decision_function(rows), fitted.decision_function(X))
    complete = X.dropna()
    as_list = complete.astype({"size": object}).to_numpy().tolist()
    assert [type(value) for value in as_list[0]] == [float, str, str, bool]
    from_list = LogicGateClassifier(**SMALL).fit(as_list, y[complete.index])
    from_frame = LogicGateClassifier(**SMALL).fit(complete, y[complete.index])
    np.testing.assert_array_equal(from_list.decision_function(as_list), from_frame.decision_function(complete))


def test_unseen_categories_and_missing_values_are_predicted(fitted):
    new = pd.DataFrame(
        {"age": [np.nan, 30.0], "job": ["astronaut", None], "size": ["XL", None], "member": [True, False]}
    )
    assert fitted.predict(new).shape == (2,)


def test_columns_must_be_those_of_fit(frame, fitted):
    X, _ = frame
    with pytest.raises(ValueError, match="Feature names must be in the same order"):
        fitted.predict(X[["job", "age", "size", "member"]])
    with pytest.raises(ValueError, match="Feature names seen at fit time, yet now missing"):
        fitted.predict(X[["age", "job", "size"]])
    with pytest.raises(TypeError, match="column 'age' needs numbers, got 'old'"):
        fitted.predict(X.assign(age="old"))
    with pytest.raises(ValueError, match=r"^LogicGateClassifier needs 2 samples or more, got 1$"):
        LogicGateClassifier(**SMALL).fit(X[:1], ["yes"])
    with pytest.warns(UserWarning, match="X does not have valid feature names"):
        assert fitted.predict(X.to_numpy()).shape == (len(X),)


def test_weights_of_zero_drop_rows_of_a_frame(frame):
    X, y = frame
    weights = (np.arange(len(X)) % 3 > 0).astype(float)
    weighted = LogicGateClassifier(**SMALL).fit(X, y, sample_weight=weights)
    dropped = LogicGateClassifier(**SMALL).fit(X[weights > 0], y[weights > 0])
    assert weighted.encoder_ == dropped.encoder_
    np.testing.assert_array_equal(weighted.decision_function(X), dropped.decision_function(X))
    polars = LogicGateClassifier(**SMALL).fit(as_polars(X), y, sample_weight=weights)
    np.testing.assert_array_equal(polars.decision_function(X), dropped.decision_function(X))


def test_prediction_in_pieces_is_prediction_at_once(frame, fitted, monkeypatch):
    X, _ = frame
    expected = fitted.decision_function(X)
    monkeypatch.setattr("gatefit.estimators.inputs.ROWS_AT_ONCE", 7 * fitted.encoder_.bits)
    np.testing.assert_array_equal(fitted.decision_function(X), expected)
    np.testing.assert_array_equal(fitted.decision_function(as_polars(X)), expected)


def test_a_table_encoder_with_options(frame):
    X, y = frame
    model = LogicGateClassifier(**SMALL, encoder=Table(thresholds=3, categorical=["age"], max_categories=5)).fit(X, y)
    assert sum(name.startswith("age = ") for name in model.encoder_.names) == 5


def test_behind_a_column_transformer(frame):
    X, y = frame
    one_hot = make_column_transformer((OneHotEncoder(sparse_output=False), ["job", "size"]), remainder="passthrough")
    model = make_pipeline(one_hot.set_output(transform="pandas"), LogicGateClassifier(**SMALL)).fit(X, y)
    assert model.score(X, y) > 0.8
    assert "remainder__age" in model[-1].feature_names_in_


def test_regression_on_a_frame(frame):
    X, y = frame
    target = np.where(y == "yes", 10.0, -5.0) + X["member"]
    model = LogicGateRegressor(**{**SMALL, "width": 300, "depth": 4, "steps": 200}).fit(X, target)
    assert model.score(X, target) > 0.65  # Some of what it hangs on is missing.


def test_a_saved_circuit_predicts_from_frames(frame, fitted, tmp_path):
    X, _ = frame
    fitted.circuit_.save(tmp_path / "people.gate")
    loaded = Circuit.load(tmp_path / "people.gate")
    np.testing.assert_array_equal(loaded.predict(X), fitted.predict(X))


def test_monks_one_is_learned_to_the_last_sample():
    data = load_dataset("monks-1", download=False)
    model = LogicGateClassifier(random_state=0, steps=300, encoder=Identity()).fit(data.x_train, data.y_train)
    assert model.score(data.x_test, data.y_test) == 1.0


@pytest.mark.data
@pytest.mark.parametrize("options", [{"steps": 120, "wiring": "fixed"}, {"steps": 400, "width": 500}])
def test_adult_as_a_data_frame(data_dir, options):
    X, y, X_test, y_test = load_adult_frame(data_dir=data_dir, download=False)
    model = LogicGateClassifier(**options, random_state=0, threads=1).fit(X, y)
    assert model.classes_.tolist() == ["<=50K", ">50K"]
    assert "workclass missing" in model.encoder_.names
    assert "validation_score" in model.history_[-1]
    assert model.score(X_test, y_test) > 0.84
    assert model.score(as_polars(X_test[:500]), y_test[:500]) == model.score(X_test[:500], y_test[:500])
    np.testing.assert_array_equal(model.circuit_.predict(X_test[:500]), model.predict(X_test[:500]))


@pytest.mark.data
def test_splice_bits(data_dir):
    data = load_dataset("splice", data_dir=data_dir, download=False)
    model = LogicGateClassifier(encoder=Identity(), steps=150, random_state=0, threads=1)
    assert model.fit(data.x_train, data.y_train).score(data.x_test, data.y_test) > 0.9
