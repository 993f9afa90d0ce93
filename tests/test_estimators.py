import copy
import dataclasses
import io
import json
import pickle
import warnings
from concurrent.futures import ThreadPoolExecutor

import joblib
import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris, make_friedman1
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, cross_val_score, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.utils.estimator_checks import check_estimator, parametrize_with_checks

import gatefit
from calls import calls
from gatefit.circuit.ir import Circuit
from gatefit.circuit.prove import Equivalent, Undecided, prove
from gatefit.encoders import Thermometer, Threshold
from gatefit.estimators import LogicGateClassifier, LogicGateRegressor
from gatefit.estimators.training_set import merge_rows
from gatefit.harden import harden
from gatefit.network import LogicNetwork
from gatefit.randomness import stream
from gatefit.wirings import every_pair_wiring

SMALL = {"width": 120, "depth": 3, "steps": 60, "threads": 1}


def classifier(**options):
    return LogicGateClassifier(**{**SMALL, "random_state": 0, **options})


def regressor(**options):
    return LogicGateRegressor(**{**SMALL, "random_state": 0, **options})


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    return train_test_split(X, np.array(["setosa", "versicolor", "virginica"])[y], random_state=0, stratify=y)


@pytest.fixture(scope="module")
def breast_cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return X[:, :10], y


@pytest.fixture(scope="module")
def fitted(iris):
    X, _, y, _ = iris
    return classifier(width=300, steps=150).fit(X, y)


@pytest.fixture(scope="module")
def fitted_regressor():
    X, y = make_friedman1(300, noise=0.5, random_state=0)
    return regressor(width=200, depth=4, steps=200).fit(X, 1e6 + 1e3 * y), X, 1e6 + 1e3 * y


# Some checks have more bits than twice the small width; that such bits stay unread is a warning, and tested elsewhere.
@pytest.mark.filterwarnings("ignore:.*gates read at most")
@parametrize_with_checks(
    [
        LogicGateClassifier(width=60, depth=2, steps=60, threads=1),
        LogicGateRegressor(width=200, depth=2, steps=60, threads=1),
    ]
)
def test_scikit_learns_contract(estimator, check):
    check(estimator)


@pytest.mark.slow
@pytest.mark.parametrize("estimator", [LogicGateClassifier, LogicGateRegressor])
def test_scikit_learns_contract_with_the_defaults(estimator):
    results = check_estimator(estimator(), on_fail="raise", on_skip=None)
    assert {result["status"] for result in results} <= {"passed", "skipped"}
    assert [r["check_name"] for r in results if r["status"] == "skipped"] in ([], ["check_array_api_input"])


def test_the_names_in_gatefit():
    assert gatefit.LogicGateClassifier is LogicGateClassifier
    assert gatefit.LogicGateRegressor is LogicGateRegressor


def test_string_labels_and_accuracy(iris, fitted):
    X, X_test, y, y_test = iris
    assert fitted.classes_.tolist() == ["setosa", "versicolor", "virginica"]
    assert set(fitted.predict(X_test)) <= set(fitted.classes_)
    assert fitted.score(X, y) > 0.97
    assert fitted.score(X_test, y_test) > 0.9


def test_fitted_attributes(iris, fitted):
    X = iris[0]
    assert isinstance(fitted.network_, LogicNetwork)
    assert not fitted.network_.training
    assert fitted.n_features_in_ == 4
    assert not hasattr(fitted, "feature_names_in_")
    assert fitted.n_iter_ == 150
    assert fitted.encoder_.transform(X).shape == (len(X), fitted.encoder_.bits)
    (row,) = fitted.history_
    assert row["step"] == 150
    assert row["train_score"] == fitted.score(X, iris[2])
    assert set(row) == {"step", "loss", "train_score", "train_soft_score"}


def test_probabilities_are_the_softmax_of_the_scores(iris, fitted):
    X_test = iris[1]
    scores, probabilities = fitted.decision_function(X_test), fitted.predict_proba(X_test)
    # Scores are over the temperature of training, probabilities over their own.
    cooled = scores * fitted.network_.readout.temperature / fitted.circuit_.readout.temperature
    expected = np.exp(cooled) / np.exp(cooled).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(probabilities, expected, rtol=1e-12)
    np.testing.assert_allclose(fitted.predict_log_proba(X_test), np.log(expected), rtol=1e-9, atol=1e-12)
    temperature = fitted.network_.readout.temperature
    assert temperature == pytest.approx(28)  # 2.8 √(3 layers of 300 gates) / 3 classes
    np.testing.assert_allclose(scores * temperature, np.rint(scores * temperature), atol=1e-9)
    assert log_loss(iris[3], probabilities) < 0.5


@pytest.mark.parametrize("options", [{}, {"readout": "linear"}, {"method": "multilinear-ste"}, {"method": "iwp-ste"}])
def test_predictions_are_those_of_the_network_and_of_the_circuit(iris, options):
    X, X_test, y, _ = iris
    model = classifier(**options).fit(X, y)
    bits = torch.as_tensor(model.encoder_.transform(X_test))
    with torch.no_grad():
        network_scores = model.network_(bits).double().numpy()
    before = model.decision_function(X_test)
    np.testing.assert_allclose(before, network_scores, rtol=1e-6)
    circuit = model.circuit_
    assert circuit.gates.size < model.network_.width * model.network_.depth
    assert isinstance(prove(harden(model.network_), circuit), Equivalent)
    np.testing.assert_array_equal(model.decision_function(X_test), before)  # by the optimised circuit now
    np.testing.assert_array_equal(circuit.predict(X_test), model.predict(X_test))
    np.testing.assert_allclose(circuit.predict_proba(X_test), model.predict_proba(X_test), rtol=1e-12)


def test_regression_is_in_the_targets_own_units(fitted_regressor):
    model, X, y = fitted_regressor
    assert model.score(X, y) > 0.85
    residuals = y - model.predict(X)
    assert abs(residuals.mean()) < 1e-6 * y.std()  # the readout's line is fitted by least squares
    assert np.corrcoef(residuals, model.predict(X))[0, 1] == pytest.approx(0, abs=1e-5)
    np.testing.assert_array_equal(model.circuit_.predict(X), model.predict(X))
    with torch.no_grad():
        network = model.network_(torch.as_tensor(model.encoder_.transform(X)))[:, 0].numpy()
    np.testing.assert_allclose(network, model.predict(X), rtol=1e-12)
    assert isinstance(prove(harden(model.network_), model.circuit_), Equivalent)


def test_regression_beats_a_linear_model_where_the_world_is_not_linear():
    X, y = make_friedman1(500, noise=1.0, random_state=1)
    X, X_test, y, y_test = train_test_split(X, y, random_state=0)
    model = regressor(width=300, depth=4, steps=300).fit(X, y)
    assert model.score(X_test, y_test) > LinearRegression().fit(X, y).score(X_test, y_test) + 0.05


def test_a_constant_target_is_predicted():
    X = np.arange(20.0).reshape(-1, 1)
    model = regressor(steps=5).fit(X, np.full(20, 7.5))
    assert model.predict(X).tolist() == [7.5] * 20
    assert model.circuit_.predict(X).tolist() == [7.5] * 20


def test_a_network_survives_its_state_dict(fitted_regressor):
    model, X, _ = fitted_regressor
    restored = LogicNetwork.from_state_dict(model.network_.state_dict()).eval()
    np.testing.assert_array_equal(harden(restored).predict(X), model.predict(X))


@pytest.mark.parametrize("make", [classifier, regressor])
def test_the_result_follows_from_random_state(make, breast_cancer):
    X, y = breast_cancer
    scores = {}
    for name, state in {"0": 0, "again": 0, "1": 1, "object": np.random.RandomState(0)}.items():
        scores[name] = make(random_state=state, steps=10).fit(X, y)._scores(X)
    assert np.array_equal(scores["0"], scores["again"])
    assert np.array_equal(scores["0"], scores["object"])
    assert not np.array_equal(scores["0"], scores["1"])
    state = np.random.RandomState(0)
    first = make(random_state=state, steps=10).fit(X, y)._scores(X)
    assert not np.array_equal(first, make(random_state=state, steps=10).fit(X, y)._scores(X))
    make(random_state=None, steps=2).fit(X, y)


def test_threads_do_not_change_the_result(breast_cancer):
    X, y = breast_cancer
    one, two = (classifier(threads=threads, steps=20).fit(X, y) for threads in (1, 2))
    assert all(torch.equal(a, b) for a, b in zip(one.network_.parameters(), two.network_.parameters(), strict=True))
    np.testing.assert_array_equal(one.decision_function(X), two.decision_function(X))


def test_fits_may_run_side_by_side(breast_cancer):
    X, y = breast_cancer

    def scores(seed):
        return classifier(random_state=seed, steps=20).fit(X, y).decision_function(X)

    with ThreadPoolExecutor(3) as pool:
        together = list(pool.map(scores, range(3)))
    assert all(np.array_equal(scores(seed), together[seed]) for seed in range(3))


def test_sample_weights_equal_repetition_beyond_one_batch():
    """As in check_sample_weight_equivalence, but with more repeated rows than fit into a batch."""
    rng = np.random.default_rng(0)
    X, y, weights = rng.random((12, 3)).round(1), rng.integers(0, 2, 12), rng.integers(0, 60, 12)
    weighted = classifier(batch_size=64).fit(X, y, sample_weight=weights)
    repeated = classifier(batch_size=64).fit(X.repeat(weights, axis=0), y.repeat(weights))
    assert weights.sum() > 64
    np.testing.assert_array_equal(weighted.decision_function(X), repeated.decision_function(X))


def test_sample_weights_move_the_decision_in_minibatches():
    rng = np.random.default_rng(0)
    X = rng.random((2000, 4))
    y = (rng.random(2000) < 0.5).astype(int)  # noise: only the weights can tell
    heavy = np.where(y == 1, 10.0, 1.0)
    assert classifier(batch_size=128).fit(X, y, sample_weight=heavy).predict(X).mean() > 0.9


def test_class_weight():
    rng = np.random.default_rng(0)
    X, y = rng.random((1000, 4)), np.where(rng.random(1000) < 0.1, "rare", "common")
    assert (classifier(steps=30).fit(X, y).predict(X) == "rare").mean() < 0.1
    assert 0.2 < (classifier(steps=30, class_weight="balanced").fit(X, y).predict(X) == "rare").mean() < 0.8
    assert (classifier(class_weight={"rare": 100.0, "common": 1.0}).fit(X, y).predict(X) == "rare").mean() > 0.8


def test_merging_rows_depends_on_their_content_alone():
    rng = np.random.default_rng(0)
    bits, targets, weights = rng.random((50, 9)) < 0.3, rng.integers(0, 2, 50), rng.random(50)
    bits[10:30] = bits[0]
    rows, merged = merge_rows(bits, targets, weights, np.arange(50), 50)
    kinds = {(tuple(bits[i]), targets[i]) for i in range(50)}
    assert len(rows) == len(kinds) > 21
    for row, weight in zip(rows, merged, strict=True):
        same = (bits == bits[row]).all(axis=1) & (targets == targets[row])
        assert weight == pytest.approx(weights[same].sum())
    order = rng.permutation(50)
    again, _ = merge_rows(bits[order], targets[order], weights[order], np.arange(50), 50)
    np.testing.assert_array_equal(bits[order][again], bits[rows])
    unmerged, same_weights = merge_rows(bits, targets, weights, np.arange(5, 50), 20)
    np.testing.assert_array_equal(unmerged, np.arange(5, 50))
    np.testing.assert_array_equal(same_weights, weights[5:])


@pytest.mark.parametrize(("inputs", "gates"), [(2, 1), (2, 5), (3, 7), (5, 10), (6, 40), (40, 100)])
def test_every_pair_is_read_before_any_is_read_again(inputs, gates):
    wiring = every_pair_wiring(inputs, gates, generator=stream(0, "test"))
    assert wiring.shape == (2, gates)
    assert wiring.dtype == torch.int32
    pairs = [tuple(sorted(pair)) for pair in wiring.T.tolist()]
    counts = [pairs.count(pair) for pair in set(pairs)]
    assert all(a != b for a, b in pairs)
    assert max(counts) - min(counts) <= 1
    assert len(counts) == min(gates, inputs * (inputs - 1) // 2)


def test_early_stopping_keeps_the_best_network(breast_cancer):
    X, y = breast_cancer
    # Of a fixed wiring, whose training does not depend on how many steps there will be.
    options = {"early_stopping": True, "validation_fraction": 0.25, "evaluate_every": 2, "wiring": "fixed"}
    model = classifier(**options, n_iter_no_change=4, steps=400).fit(X, y)
    scores = [row["validation_score"] for row in model.history_]
    best = int(np.argmax(scores))
    assert model.n_iter_ == model.history_[-1]["step"] < 400
    assert len(scores) - 1 - best == 4
    # The deployed network is the best one, not the last: it scores what the best one scored on its training part.
    again = classifier(**options, n_iter_no_change=1000, steps=model.history_[best]["step"]).fit(X, y)
    np.testing.assert_array_equal(model.decision_function(X), again.decision_function(X))


def test_early_stopping_is_automatic_for_large_tables_and_for_regression():
    X, y = make_friedman1(10_000, random_state=0)
    model = regressor(width=115, depth=1, steps=4).fit(X, y)
    assert "validation_score" in model.history_[-1]
    assert "validation_score" not in regressor(width=115, depth=1, steps=4).fit(X[:-1], y[:-1]).history_[-1]


def test_early_stopping_on_tiny_data_trains_on_all_of_it(iris):
    X, _, y, _ = iris
    expected = r"^early stopping with validation_fraction=0.1 needs 100 samples or more, got 60; training for all steps"
    with pytest.warns(UserWarning, match=expected) as caught:
        model = classifier(early_stopping=True, steps=5).fit(X[:60], y[:60])
    assert caught[0].filename == __file__
    assert "validation_score" not in model.history_[-1]
    assert model.n_iter_ == 5


def test_warm_start_goes_on(iris):
    X, X_test, y, _ = iris
    model = classifier(steps=20, warm_start=True).fit(X, y)
    first = copy.deepcopy(model.network_.state_dict())
    scores, encoder = model.decision_function(X_test), model.encoder_
    model.set_params(steps=30).fit(X, y)
    assert model.n_iter_ == 50
    assert [row["step"] for row in model.history_] == [20, 50]
    assert model.encoder_ is encoder
    assert model.network_.layers[0].wiring.candidates.shape == first["layers.0.wiring.candidates"].shape
    assert not torch.equal(model.network_.layers[0].wiring.scores, first["layers.0.wiring.scores"])
    assert not torch.equal(model.network_.layers[0].method.latent, first["layers.0.method.latent"])
    assert not np.array_equal(model.decision_function(X_test), scores)
    cold = classifier(steps=30).fit(X, y)
    assert cold.n_iter_ == 30
    assert cold.history_[-1]["loss"] > model.history_[-1]["loss"]


def test_warm_start_refuses_what_cannot_go_on(iris):
    X, _, y, _ = iris
    model = classifier(steps=3, warm_start=True).fit(X, y)
    with pytest.raises(
        ValueError, match=r"^warm_start=True continues a network with width=120, got width=240; set width"
    ):
        clone_fitted(model).set_params(width=240).fit(X, y)
    with pytest.raises(
        ValueError, match=r"continues with the classes setosa, versicolor, virginica, got a class .*'z'"
    ):
        clone_fitted(model).fit(X, np.where(np.arange(len(y)) == 5, "z", y))
    with pytest.raises(ValueError, match=r"X has 3 features, but LogicGateClassifier is expecting 4"):
        clone_fitted(model).fit(X[:, :3], y)
    two = y != "setosa"
    assert clone_fitted(model).fit(X[two], y[two]).classes_.tolist() == model.classes_.tolist()


def clone_fitted(model):
    return copy.deepcopy(model)


def test_circuit_before_fit_is_an_attribute_error():
    assert not hasattr(classifier(), "circuit_")
    with pytest.raises(AttributeError, match=r"^this LogicGateRegressor has no circuit_ yet; call fit first$"):
        regressor().circuit_
    with pytest.raises(NotFittedError):
        classifier().export("model.h")


def test_circuit_is_made_once_and_remade_by_fit(iris):
    X, _, y, _ = iris
    model = classifier(steps=5).fit(X, y)
    circuit = model.circuit_
    assert model.circuit_ is circuit
    assert circuit.class_names == ("setosa", "versicolor", "virginica")
    assert circuit.encoder == model.encoder_
    model.set_params(random_state=1).fit(X, y)
    assert model.circuit_ is not circuit


def test_an_optimised_circuit_that_is_not_proven_is_not_used(iris, monkeypatch):
    X, X_test, y, _ = iris
    model = classifier(steps=5).fit(X, y)
    monkeypatch.setattr("gatefit.estimators.deployment.prove", lambda *_, **__: Undecided("no time"))
    with pytest.warns(
        UserWarning, match=r"^circuit_ is not optimised, because .* to change nothing: no time \(proof_seconds"
    ) as caught:
        assert model.circuit_.gates.size == 120 * 3
    assert caught[0].filename == __file__
    np.testing.assert_array_equal(model.circuit_.predict(X_test), model.predict(X_test))


def test_an_optimised_circuit_that_differs_is_an_error(iris, monkeypatch):
    X, _, y, _ = iris
    model = classifier(steps=5).fit(X, y)

    def wrong(circuit):
        return dataclasses.replace(circuit, gates=circuit.gates ^ 15), None

    monkeypatch.setattr("gatefit.estimators.deployment.optimise", wrong)
    with pytest.raises(
        RuntimeError, match=r"^the optimised circuit differs from the network on the input [01]+; please"
    ):
        model.circuit_


@pytest.mark.parametrize("seen", [False, True])
def test_pickle_and_joblib(iris, fitted, seen):
    X_test = iris[1]
    model = copy.deepcopy(fitted)
    if seen:
        model.circuit_
        model.predict(X_test)
    stream = io.BytesIO()
    joblib.dump(model, stream)
    for restored in (pickle.loads(pickle.dumps(model)), joblib.load(io.BytesIO(stream.getvalue()))):
        np.testing.assert_array_equal(restored.predict_proba(X_test), fitted.predict_proba(X_test))
        assert restored.circuit_.gates.size == fitted.circuit_.gates.size
        assert restored.get_params() == fitted.get_params()


def test_clone_keeps_parameters_and_forgets_the_fit(fitted):
    copied = clone(fitted.set_params(encoder="auto"))
    assert copied.get_params() == fitted.get_params()
    assert not hasattr(copied, "network_")
    encoder = Thermometer(4, "quantile")
    assert clone(classifier(encoder=encoder)).encoder == encoder


def test_grid_search_in_a_pipeline_with_processes(iris):
    X, X_test, y, y_test = iris
    pipeline = make_pipeline(StandardScaler().set_output(transform="pandas"), classifier(steps=40))
    grid = {"logicgateclassifier__width": [60, 120], "logicgateclassifier__method": ["multilinear-ste"]}
    search = GridSearchCV(pipeline, grid, cv=2, n_jobs=2).fit(X, y)
    assert search.best_score_ > 0.8
    assert search.score(X_test, y_test) > 0.8
    assert search.best_estimator_[-1].feature_names_in_.tolist() == ["x0", "x1", "x2", "x3"]


def test_cross_validation_of_the_regressor():
    X, y = make_friedman1(300, random_state=0)
    assert cross_val_score(regressor(steps=150), X, y, cv=3).mean() > 0.5


def test_sample_weight_can_be_routed(iris):
    import sklearn

    X, _, y, _ = iris
    with sklearn.config_context(enable_metadata_routing=True):
        pipeline = make_pipeline(FunctionTransformer(), classifier(steps=3).set_fit_request(sample_weight=True))
        pipeline.fit(X, y, sample_weight=np.ones(len(y)))


def test_verbose(iris, capsys):
    X, _, y, _ = iris
    classifier(steps=4).fit(X, y).predict(X)
    assert capsys.readouterr() == ("", "")
    classifier(steps=20, verbose=1).fit(X, y)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 20
    assert lines[-1].startswith("step 20/20  loss ")
    assert "  train " in lines[-1]
    assert "validation" not in lines[-1]
    options = {"early_stopping": True, "validation_fraction": 0.2, "evaluate_every": 10}
    classifier(steps=20, verbose=1, **options).fit(X, y)
    first, last = capsys.readouterr().out.splitlines()
    assert first.startswith("step 10/20")
    assert "  validation " in last


def test_width_auto_is_a_multiple_of_the_classes(iris):
    X, _, y, _ = iris
    assert classifier(width="auto", steps=1, depth=1).fit(X, y).network_.width == 501
    rng = np.random.default_rng(0)
    many, labels = rng.random((200, 150)), np.arange(200) % 7
    model = classifier(width="auto", steps=1, depth=1).fit(many, labels)
    assert model.encoder_.bits == 150 * 15
    assert model.network_.width == 700
    assert regressor(width="auto", steps=1, depth=1).fit(many, labels).network_.width == 500
    more = rng.random((3000, 2))
    assert classifier(width="auto", steps=1, depth=1).fit(more, more[:, 0] > 0.5).network_.width == 1000


def test_width_auto_of_a_fixed_wiring_reads_every_bit(iris):
    X, _, y, _ = iris
    fixed = {"width": "auto", "steps": 1, "depth": 1, "wiring": "fixed"}
    assert classifier(**fixed).fit(X, y).network_.width == 1002
    rng = np.random.default_rng(0)
    many, labels = rng.random((200, 150)), np.arange(200) % 7
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = classifier(**fixed).fit(many, labels)
    assert model.encoder_.bits == 150 * 15
    assert model.network_.width == 1400
    assert classifier(**fixed, thresholds=31).fit(many, labels).network_.width == 2331
    assert regressor(**fixed).fit(many, labels).network_.width == 1125


def test_few_bits_are_enough():
    X = np.array([[0, 0], [0, 1], [1, 0], [1, 1]] * 5, dtype=bool)
    model = classifier(depth=4, steps=100).fit(X, X[:, 0] ^ X[:, 1])
    assert model.encoder_.bits == 2
    assert model.score(X, X[:, 0] ^ X[:, 1]) == 1
    assert model.classes_.dtype == bool


def test_your_own_encoder_is_copied_and_fitted(iris):
    X, X_test, y, _ = iris
    encoder = Thermometer(5, "quantile")
    model = classifier(encoder=encoder).fit(X, y)
    assert model.encoder is encoder
    with pytest.raises(ValueError, match="not fitted"):
        encoder.transform(X)
    assert model.encoder_ == Thermometer(5, "quantile").fit(X)
    assert model.predict(X_test).shape == (len(X_test),)


@pytest.mark.parametrize(
    ("to", "suffix", "opening"),
    [
        ("c", ".h", b"/*"),
        ("verilog", ".v", b"module gatefit"),
        ("blif", ".blif", b".model gatefit"),
        ("aiger", ".aag", b"aag "),
        ("dot", ".dot", b"digraph"),
        ("json", ".json", b"{"),
        ("html", ".html", b"<!doctype html>"),
    ],
)
def test_export(fitted, tmp_path, to, suffix, opening):
    options = {"max_gates": 10_000} if to == "dot" else {}
    into_folder = fitted.export(f"{tmp_path}/build/", to=to, **options)
    assert into_folder == tmp_path / "build" / f"gatefit_model{suffix}"
    assert opening in into_folder.read_bytes()[:2000]
    to_file = fitted.export(tmp_path / "deep" / f"mine{suffix}", to=to, **options)
    assert to_file == tmp_path / "deep" / f"mine{suffix}"
    assert to_file.read_bytes() == into_folder.read_bytes()


def test_export_options_and_refusals(fitted, tmp_path):
    assert b"module iris" in fitted.export(tmp_path, to="verilog", module="iris").read_bytes()
    assert fitted.export(tmp_path / "model.aig", to="aiger").read_bytes().startswith(b"aig ")
    assert json.loads(fitted.export(tmp_path / "model.json", to="json").read_text())
    for name, opening in (("x.v", b"// A logic gate"), ("x.C", b"/*"), ("x.aig", b"aig "), ("x.aag", b"aag ")):
        assert fitted.export(tmp_path / name).read_bytes().startswith(opening), name
    assert fitted.export(f"{tmp_path}/").name == "gatefit_model.h"
    assert fitted.export(tmp_path / "netlist.txt", "blif").read_bytes().startswith(b".model")
    message = r"^y.v is a name for verilog, and to='c' asks for another format; leave out to=, or .* ends in .h$"
    with pytest.raises(ValueError, match=message):
        fitted.export(tmp_path / "y.v", to="c")
    with pytest.raises(ValueError, match=r"^the name y.txt does not say a format; end it in one of .h, .v, .blif"):
        fitted.export(tmp_path / "y.txt")
    with pytest.raises(ValueError, match=r"circuit_.save\(path\) writes .gate files"):
        fitted.export(tmp_path / "y.gate")
    assert not list(tmp_path.glob("y.*"))
    with pytest.raises(
        ValueError, match=r"^unknown format 'vhdl'; choose one of c, verilog, blif, aiger, dot, json, html$"
    ):
        fitted.export(tmp_path, to="vhdl")


def test_nothing_is_replaced_unasked(fitted, tmp_path):
    for write, path in ((fitted.export, tmp_path / "m.v"), (fitted.circuit_.save, tmp_path / "m.gate")):
        path.write_text("mine")
        with pytest.raises(FileExistsError, match=r"exists; choose another name, or replace it with overwrite=True$"):
            write(path)
        assert path.read_text() == "mine"
        write(path, overwrite=True)
        assert path.read_bytes() != b"mine"
    fitted.export(tmp_path, to="json")
    with pytest.raises(FileExistsError, match=r"gatefit_model.json exists"):
        fitted.export(tmp_path, to="json")


def test_nan_is_a_missing_value(iris):
    X, _, y, _ = iris
    X = X.copy()
    X[::3, 2] = np.nan
    model = classifier().fit(X, y)
    assert "x2 missing" in model.encoder_.names
    assert model.score(X, y) > 0.8
    assert model.predict([[np.nan] * 4]).shape == (1,)
    assert model.__sklearn_tags__().input_tags.allow_nan


def test_nan_is_refused_by_an_encoder_that_has_no_place_for_it(iris):
    X, _, y, _ = iris
    model = classifier(encoder=Threshold(3.0), width=12)
    assert not model.__sklearn_tags__().input_tags.allow_nan
    with pytest.raises(ValueError, match="Input X contains NaN"):
        model.fit(np.where(X > 6, np.nan, X), y)
    with pytest.raises(ValueError, match="Input X contains NaN"):
        model.fit(X, y).predict([[np.nan, 1, 1, 1]])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"width": 100}, r"must be a multiple of 3 classes, got 100; use width=99 or 102$"),
        ({"width": "wide"}, r"^width must be 'auto' or a whole number >= 1, got 'wide'$"),
        ({"width": 12.5}, r"^width must be 'auto' or a whole number >= 1, got 12.5$"),
        ({"depth": 0}, r"^depth must be 'auto' or a whole number >= 1, got 0$"),
        ({"steps": True}, r"^steps must be 'auto' or a whole number >= 1, got True$"),
        ({"batch_size": None}, r"^batch_size must be 'auto' or a whole number >= 1, got None$"),
        ({"evaluate_every": "often"}, r"^evaluate_every must be 'auto' or a whole number >= 1, got 'often'$"),
        ({"learning_rate": "fast"}, r"^learning_rate must be 'auto' or a number, got 'fast'$"),
        ({"learning_rate": -1.0}, r"^learning_rate must be a finite number > 0, got -1.0"),
        ({"readout_temperature": "hot"}, r"^readout_temperature must be 'auto' or a number, got 'hot'$"),
        ({"readout_temperature": 0.0}, r"^readout_temperature must be a finite number > 0, got 0.0$"),
        ({"readout": "median"}, r"^unknown readout 'median'; choose one of"),
        ({"method": "magic"}, r"^unknown method 'magic'; choose one of soft-mix"),
        ({"method": "multilinear-free"}, r"^multilinear-free is never snapped to gates, so it has no circuit"),
        ({"method": "multilinear-ste", "temperature": 0.5}, r"^multilinear-ste has no option temperature"),
        ({"schedule": "steep"}, r"^unknown schedule 'steep'"),
        ({"initialisation": "zero"}, r"^unknown initialisation 'zero'"),
        ({"wiring": "tangled"}, r"^unknown wiring 'tangled'"),
        ({"wiring": "learned", "candidates": 0}, r"^candidates must be None or a whole number >= 1, got 0$"),
        ({"wiring": "learned", "candidates": 1000}, r"^each gate input chooses among candidates=1 to \d+ nodes"),
        ({"wiring": "random", "candidates": 4}, r"^candidates is of the learned wiring, got wiring='random'"),
        ({"wiring": "random", "score_learning_rate": 0.1}, r"^score_learning_rate is of the learned wiring"),
        ({"score_learning_rate": "slow"}, r"^score_learning_rate must be 'auto' or a number, got 'slow'$"),
        ({"votes": "some"}, r"^votes must be last or all, got 'some'$"),
        ({"max_gates": 100}, r"^max_gates and max_luts choose the width, got width=120 too; leave one of them out$"),
        ({"width": "auto", "max_gates": 0}, r"^max_gates must be None or a whole number >= 1, got 0$"),
        (
            {"width": "auto", "depth": "auto", "max_gates": 2},
            r"^max_gates=2 is too small: the smallest is 3, one layer",
        ),
        ({"width": "auto", "max_gates": 8}, r"^max_gates=8 is too small: the smallest is 9, 3 layers of one gate for"),
        ({"width": "auto", "max_luts": 2}, r"^max_luts=2 is too small: the smallest is \d+, "),
        (
            {"wiring": "unique", "width": 3000},
            r"inputs have \d+ different pairs, got 3000 gates; use width=\d+ or less",
        ),
        (
            {"encoder": "gray"},
            r"^encoder must be 'auto' or an encoder such as gatefit.encoders.Thermometer\(\), got 'gray'$",
        ),
        ({"thresholds": 0}, r"thresholds=\.\.\.\) must be an integer from 1"),
        ({"early_stopping": "maybe"}, r"^early_stopping must be True, False or 'auto', got 'maybe'$"),
        (
            {"early_stopping": True, "validation_fraction": 1.5},
            r"^validation_fraction must be a number in \(0, 1\), got 1.5$",
        ),
        (
            {"early_stopping": True, "validation_fraction": 0.3, "n_iter_no_change": 0},
            r"^n_iter_no_change must be a whole",
        ),
        ({"threads": 0}, r"^threads must be a whole number >= 1"),
        ({"proof_seconds": 0}, r"^proof_seconds must be None or a finite number > 0, got 0.0$"),
        ({"proof_seconds": "soon"}, r"^proof_seconds must be None or a number, got 'soon'$"),
    ],
    ids=str,
)
def test_bad_parameters_are_named(iris, options, message):
    X, _, y, _ = iris
    with pytest.raises(ValueError, match=message):
        classifier(**options).fit(X, y)


def test_bad_data_is_named(iris):
    X, _, y, _ = iris
    with pytest.raises(ValueError, match=r"needs samples of at least two classes, got one class only: setosa$"):
        classifier().fit(X, np.full(len(X), "setosa"))
    with pytest.raises(ValueError, match=r"got one class only: virginica$"):
        classifier(class_weight={"setosa": 0, "versicolor": 0, "virginica": 1}).fit(X, y)
    with pytest.raises(ValueError, match=r"^X encodes to no bits at all; give features that vary, or an encoder that"):
        classifier().fit(np.ones((20, 3)), np.arange(20) % 2)
    with pytest.raises(ValueError, match="Input X contains infinity"):
        classifier().fit(np.where(X > 7, np.inf, X), y)
    with pytest.raises(
        ValueError, match=r"^all of sample_weight is zero; at least one sample needs a weight above zero$"
    ):
        regressor().fit(X, np.arange(len(X)), sample_weight=np.zeros(len(X)))
    with pytest.raises(ValueError, match=r"^sample_weight must not be negative, got -2.0$"):
        regressor().fit(X, np.arange(len(X)), sample_weight=np.arange(len(X)) - 2)
    with pytest.raises(
        ValueError, match=r"^sample_weight must be one number for each of 112 samples, got shape \(3,\)$"
    ):
        regressor().fit(X, np.arange(len(X)), sample_weight=[1, 2, 3])
    with pytest.raises(ValueError, match=r"^LogicGateRegressor requires y to be passed, but the target y is None$"):
        regressor().fit(X, None)
    with pytest.raises(ValueError, match="Input y contains NaN"):
        regressor().fit(X, np.where(np.arange(len(X)) == 3, np.nan, 1.0))


def test_too_small_a_width_warns_of_unread_bits(iris):
    X, _, y, _ = iris
    with pytest.warns(UserWarning, match=r"^12 gates read at most 24 of \d+ inputs"):
        classifier(width=12, steps=1, wiring="fixed").fit(X, y)


@pytest.mark.parametrize(
    "names",
    [
        np.array([0, 1, 2]),
        np.array([-3, 5, 7], np.int8),
        np.array([1.0, 2.0, 4.0]),
        np.array([False, True]),
        np.array(["a", "b", "c"]),
        np.array(["a", "b", "c"], object),
    ],
    ids=lambda names: str(names.dtype),
)
def test_the_circuit_predicts_the_labels_of_the_model(iris, names, tmp_path):
    X, _, y, _ = iris
    numbers = np.unique(y, return_inverse=True)[1] % len(names)
    labels = names[numbers]
    model = classifier(width=60, depth=2, steps=20).fit(X, labels)
    model.circuit_.save(tmp_path / "m.gate")
    circuit = Circuit.load(tmp_path / "m.gate")
    predicted = circuit.predict(X)
    assert predicted.dtype == model.predict(X).dtype == labels.dtype
    assert (predicted == model.predict(X)).all()
    assert (predicted == labels).mean() == model.score(X, labels) > 0


def test_one_row_is_predicted_without_ceremony(breast_cancer):
    X, y = breast_cancer
    model = classifier(steps=5).fit(X, y)
    row = np.array(X[:1])
    assert calls(model.predict, row) < 100
    row[0, 3] = np.inf
    with pytest.raises(ValueError, match="infinity"):
        model.predict(row)
    row[0, 3] = 1e308
    row[0, 4] = 1e308
    assert model.predict(row).shape == (1,)
