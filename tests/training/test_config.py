"""A configuration is data: hashed, read strictly, compared field by field."""

import csv
import json
from dataclasses import FrozenInstanceError, asdict, fields, replace
from pathlib import Path

import numpy as np
import pytest

from gatefit.experiments.export import Export
from gatefit.methods import METHODS
from gatefit.training.config import (
    GATE_METHODS,
    DataConfig,
    EvaluationConfig,
    NetworkConfig,
    OptimiserConfig,
    RunConfig,
    option_of,
)

RESULTS = Path(__file__).parents[2] / "results"
SECTIONS = (DataConfig, NetworkConfig, OptimiserConfig, EvaluationConfig)


def test_json_round_trip_and_identity():
    config = RunConfig(dataset="monks-2", width=136, temperature=0.5)
    again = RunConfig.from_dict(json.loads(config.to_json()))
    assert again == config
    assert again.identity == config.identity
    assert len(config.identity) == 12
    assert replace(config, seed=1).identity != config.identity


def test_identity_is_stable():
    # The name of a run folder must not change between versions while the fields do not.
    digest = RunConfig(dataset="monks-1").resolved().identity
    assert digest == RunConfig(dataset="monks-1", width=136).identity


def test_integers_are_read_as_numbers_where_a_number_is_wanted():
    assert RunConfig.from_dict({"learning_rate": 1}).learning_rate == 1.0


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"widht": 5}, r"unknown configuration field 'widht'; did you mean width\?"),
        ({"width": "5"}, r"^width must be a whole number or None, got '5'$"),
        ({"width": True}, r"^width must be a whole number or None, got True$"),
        ({"seed": None}, r"^seed must be a whole number, got None$"),
        ([], r"a configuration is a JSON object, got list"),
    ],
)
def test_foreign_content_is_refused(content, message):
    with pytest.raises(ValueError, match=message):
        RunConfig.from_dict(content)


def test_equal_configurations_have_one_name():
    one, same = RunConfig(learning_rate=1, weight_decay=0), RunConfig(learning_rate=1.0)
    assert one == same
    assert one.identity == same.identity == RunConfig.from_dict(json.loads(one.to_json())).identity


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"steps": 1e3}, r"^steps must be a whole number, got 1000.0$"),
        ({"width": "40"}, r"^width must be a whole number or None, got '40'$"),
        ({"seed": True}, r"^seed must be a whole number, got True$"),
        ({"dataset": 3}, r"^dataset must be a word, got 3$"),
        ({"whole_batches": 1}, r"^whole_batches must be True or False, got 1$"),
        ({"reach": 3}, r"^reach is of the local wiring, got wiring='unique'; set wiring='local' too$"),
        ({"depth": 0}, r"depth must be a whole number >= 1, got 0"),
        ({"steps": 0}, r"steps must be a whole number >= 1, got 0"),
        ({"learning_rate": 0.0}, r"learning_rate must be a finite number > 0, got 0.0"),
        ({"learning_rate": float("inf")}, r"learning_rate must be a finite number, got inf"),
        ({"beta1": 1.0}, r"beta1 must be a finite number < 1, got 1.0"),
        ({"weight_decay": -1.0}, r"weight_decay must be a finite number >= 0, got -1.0"),
        ({"validation_fraction": 1.0}, r"validation_fraction must be a finite number < 1, got 1.0"),
        ({"schedule": "step"}, r"unknown schedule 'step'; choose one of constant, cosine, linear"),
        ({"split_seed": -1}, r"split_seed must be a whole number >= 0, got -1"),
        ({"patience": 0}, r"patience must be a whole number >= 1, got 0"),
        ({"patience": 2}, r"patience=2 needs a validation set, and validation_fraction is 0.*set validation_fraction"),
    ],
)
def test_bad_values_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        RunConfig(**options)


def test_a_record_of_a_run_that_its_test_set_ended_is_still_read():
    recorded = RunConfig.from_dict({"patience": 2, "width": 40})
    assert (recorded.patience, recorded.identity) == (2, "2d8f633f0037")
    with pytest.raises(ValueError, match=r"patience must be a whole number >= 1, got 0"):
        RunConfig.from_dict({"patience": 0})


def test_the_split_is_an_option_of_splice_alone():
    assert RunConfig(dataset="splice").dataset_options() == {}
    assert RunConfig(dataset="splice", split_seed=3).dataset_options() == {"split_seed": 3}
    assert RunConfig(dataset="splice", split_seed=0).identity == RunConfig(dataset="splice").identity
    assert RunConfig(dataset="splice", split_seed=1).identity != RunConfig(dataset="splice").identity


def test_method_options_are_those_of_the_method():
    assert RunConfig(method="multilinear-covjac", temperature=0.3).method_options() == {
        "initialisation": "normal",
        "temperature": 0.3,
    }
    with pytest.raises(ValueError, match=r"soft-mix has no option temperature; it takes sigma"):
        RunConfig(method="soft-mix", temperature=0.3).method_options()


def test_differences_name_the_fields():
    one, two = RunConfig(dataset="iris"), RunConfig(dataset="iris", depth=2, seed=4)
    assert one.differences(two) == ["depth: 2 there, 6 here", "seed: 4 there, 0 here"]
    assert RunConfig.from_dict(asdict(two)) == two


def test_a_run_is_one_of_each_section():
    config = RunConfig(dataset="adult", width=80, learning_rate=0.1, evaluate_every=7, seed=3)
    assert (config.data, config.network) == (DataConfig(dataset="adult"), NetworkConfig(width=80))
    assert (config.optimiser, config.evaluation) == (
        OptimiserConfig(learning_rate=0.1),
        EvaluationConfig(evaluate_every=7),
    )
    assert RunConfig.of(config.data, config.network, config.optimiser, config.evaluation, seed=3) == config
    assert RunConfig.of(NetworkConfig(depth=2)) == RunConfig(depth=2)
    names = [f.name for kind in SECTIONS for f in fields(kind)]
    assert [*names, "seed"] == [f.name for f in fields(RunConfig)]
    assert all(isinstance(config, kind) for kind in SECTIONS)
    with pytest.raises(FrozenInstanceError):
        config.network.width = 3
    with pytest.raises(ValueError, match=r"^depth must be a whole number >= 1, got 0$"):
        NetworkConfig(depth=0)


def test_words_and_numbers_of_numpy_are_plain_ones():
    config = RunConfig(method=np.str_("iwp"), temperature=np.float64(0.5))
    assert (type(config.method), type(config.temperature)) == (str, float)
    assert config.identity == RunConfig(method="iwp", temperature=0.5).identity


def test_every_field_is_an_option_with_a_plain_type_and_words_of_help():
    options = {f.name: option_of(f) for f in fields(RunConfig)}
    assert all(option.help for option in options.values())
    assert (options["depth"].kind, options["schedule"].kind) == (int, str)
    assert (options["patience"].kind, options["width"].kind) == (int | None, int | None)
    assert {options[name].section for name in ("dataset", "wiring", "steps", "patience", "seed")} == {
        "Data", "Network", "Optimiser", "Evaluation", "Run",
    }  # fmt: skip


def test_the_names_of_methods_are_known_without_torch():
    assert set(METHODS) == set(GATE_METHODS)


def test_every_run_of_the_results_is_found_under_its_name():
    with (RESULTS / "runs.csv").open(newline="") as file:
        names = [line["identity"] for line in csv.DictReader(file)]
    assert len(names) > 500
    results = Export(RESULTS)
    for name in names:
        config = results.find(name).config
        assert config.identity == config.resolved().identity == name
        assert RunConfig.from_dict(json.loads(config.to_json())).identity == name
