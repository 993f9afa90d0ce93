"""Tables that come in parts, and what a fitted estimator says of itself and of its features."""

import pickle

import numpy as np
import pandas
import pytest
from sklearn.datasets import load_iris, make_friedman1
from sklearn.inspection import PartialDependenceDisplay, partial_dependence

from gatefit.circuit.dependence import importance
from gatefit.estimators import LogicGateClassifier, LogicGateRegressor

SMALL = {"width": 60, "depth": 2, "threads": 1, "random_state": 0}


@pytest.fixture(scope="module")
def parts():
    X, y = load_iris(return_X_y=True)
    order = np.random.default_rng(0).permutation(150)
    return [(X[rows], y[rows]) for rows in np.split(order, 3)]


@pytest.fixture(scope="module")
def fitted(parts):
    model = LogicGateClassifier(**SMALL, steps=60)
    return model.fit(*(np.concatenate(both) for both in zip(*parts, strict=True)))


def test_parts_teach_what_a_table_does(parts):
    model = LogicGateClassifier(**SMALL)
    scores = []
    for _ in range(8):
        for X, y in parts:
            model.partial_fit(X, y, classes=[0, 1, 2])
        scores.append(np.mean([model.score(*part) for part in parts]))
    assert scores[-1] > 0.93
    assert scores[-1] > scores[0]
    assert model.n_iter_ == 24
    assert [row["step"] for row in model.history_] == [*range(1, 25)]
    X = parts[0][0]
    np.testing.assert_array_equal(model.circuit_.predict_proba(X), model.predict_proba(X))


def test_the_same_parts_give_the_same_bits_and_go_on_after_a_pickle(parts):
    models = [LogicGateClassifier(**SMALL), LogicGateClassifier(**SMALL)]
    for i, (X, y) in enumerate(parts):
        for model in models:
            model.partial_fit(X, y, classes=[0, 1, 2])
        if i == 1:
            models[1] = pickle.loads(pickle.dumps(models[1]))
    X = parts[0][0]
    np.testing.assert_array_equal(*(model.decision_function(X) for model in models))


def test_the_first_part_fixes_encoder_and_classes(parts):
    (X, y), (other, _) = parts[:2]
    model = LogicGateClassifier(**SMALL).partial_fit(X, y, classes=[0, 1, 2])
    encoder = model.encoder_
    model.partial_fit(other[:1], [2])  # one row, one class
    assert model.encoder_ is encoder
    assert model.classes_.tolist() == [0, 1, 2]
    model.partial_fit(other, np.zeros(len(other), int), classes=[2, 1, 0], sample_weight=np.ones(len(other)))


def test_after_a_fit_parts_go_on_and_a_fit_starts_anew(parts):
    X, y = parts[0]
    model = LogicGateClassifier(**SMALL, steps=5).fit(X, y)
    assert model.partial_fit(X, y).n_iter_ == 10  # steps=5 a call
    first = LogicGateClassifier(**SMALL, steps=5).fit(X, y)
    np.testing.assert_array_equal(model.fit(X, y).decision_function(X), first.decision_function(X))
    assert model.n_iter_ == 5


@pytest.mark.parametrize(
    ("options", "classes", "message"),
    [
        ({}, None, r"^the first call of partial_fit needs classes=, all labels that will ever come$"),
        ({}, [0, 1], r"^y holds .*2.*, which is none of the classes of the first call: 0, 1$"),
        ({}, [1], r"^LogicGateClassifier needs at least two classes, got one class only: 1$"),
        ({"class_weight": "balanced"}, [0, 1, 2], r"^class_weight='balanced' needs the whole table"),
        ({"schedule": "cosine"}, [0, 1, 2], r"^schedule='cosine' needs to know the last step"),
    ],
)
def test_parts_that_cannot_be_are_refused(parts, options, classes, message):
    with pytest.raises(ValueError, match=message):
        LogicGateClassifier(**SMALL, **options).partial_fit(*parts[0], classes=classes)


def test_other_classes_later_are_refused(parts):
    model = LogicGateClassifier(**SMALL).partial_fit(*parts[0], classes=[0, 1, 2])
    with pytest.raises(ValueError, match=r"^classes are 0, 1, 2 since the first call, got 0, 1, 3$"):
        model.partial_fit(*parts[1], classes=[0, 1, 3])


def test_a_regressor_learns_in_parts():
    X, y = make_friedman1(600, random_state=0)
    model = LogicGateRegressor(**SMALL)
    for _ in range(12):
        for part in np.split(np.arange(600), 3):
            model.partial_fit(X[part], 100 * y[part])
    assert model.score(X, 100 * y) > 0.6


def test_what_it_is_in_a_line(fitted):
    assert repr(LogicGateClassifier(**SMALL)) == "LogicGateClassifier(depth=2, random_state=0, threads=1, width=60)"
    assert repr(fitted) == (
        "<LogicGateClassifier(depth=2, random_state=0, steps=60, threads=1, width=60), fitted: "
        "4 features to 3 classes, 120 gates trained for 60 steps>"
    )
    assert repr(fitted.network_) == (
        f"<LogicNetwork: {fitted.encoder_.bits} inputs, 2 layers of 60 gates, multilinear-covjac, wiring learned, "
        "GroupSum of 3 classes>"
    )
    assert "GateLayer" in str(fitted.network_)


def test_notebooks_show_parameters_and_circuit(fitted):
    fitted.circuit_
    html = fitted._repr_mimebundle_()["text/html"]
    assert "4 features to 3 classes" in html
    assert html.count("gatefit-circuit") == 1
    assert "gatefit-circuit" not in LogicGateClassifier()._repr_mimebundle_()["text/html"]


def test_importances_are_shares_and_name_what_matters(parts):
    rng = np.random.default_rng(0)
    X = rng.random((400, 5))
    model = LogicGateClassifier(**SMALL, steps=80).fit(X, (X[:, 1] > 0.5).astype(int))
    shares = model.feature_importances_
    assert shares.shape == (5,)
    assert shares.sum() == pytest.approx(1)
    assert shares.argmax() == 1
    assert shares[1] > 0.5
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.feature_importances_, shares)
    assert max(importance(model.circuit_, X).items(), key=lambda item: item[1])[0] == "x1"
    assert not hasattr(LogicGateClassifier(), "feature_importances_")
    del model.__dict__["_background"]  # as an earlier version pickled it
    with pytest.raises(AttributeError, match="fitted by an earlier version"):
        model.feature_importances_


def test_no_training_row_is_kept(fitted, parts):
    bits = {row.tobytes() for X, _ in parts for row in np.packbits(fitted.encoder_.transform(X), axis=1)}
    rows = {row.tobytes() for row in fitted._background.packed}
    assert len(rows & bits) < 0.2 * len(rows)


def test_scikit_learns_partial_dependence(fitted, parts):
    X = parts[0][0]
    ours = fitted.partial_dependence(X, 2)
    theirs = partial_dependence(fitted, X, [2], grid_resolution=20)
    for raw, column in zip(theirs["grid_values"][0], theirs["average"].T, strict=True):
        (at,) = [i for i, value in enumerate(ours.values) if value.low < raw <= value.high]
        np.testing.assert_allclose(ours.average[at], column, rtol=1e-12)


def test_scikit_learns_display_of_a_frame_with_words():
    frame = pandas.DataFrame({"size": np.arange(60.0), "kind": ["a", "b", "c"] * 20})
    y = 2 * frame["size"].to_numpy() + 30 * (frame["kind"] == "b").to_numpy()
    model = LogicGateRegressor(**SMALL, steps=60).fit(frame, y)
    assert model.feature_importances_.shape == (2,)
    shown = PartialDependenceDisplay.from_estimator(
        model, frame, ["size", "kind"], categorical_features=["kind"], grid_resolution=5
    )
    assert len(shown.pd_results) == 2
    assert {value.categories for value in model.partial_dependence(frame, "kind").values} >= {("a",), ("b",)}
    with pytest.raises(ValueError, match=r"there is no feature 'siez'; did you mean 'size'\?"):
        model.partial_dependence(frame, "siez")
