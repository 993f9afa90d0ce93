"""A configuration is data: hashed, read strictly, compared field by field."""

import json
from dataclasses import asdict, replace

import pytest

from gatefit.training.config import RunConfig


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
        ({"width": "5"}, r"field width must be .*, got '5'"),
        ({"width": True}, r"field width must be .*, got True"),
        ({"seed": None}, r"field seed must be .*, got None"),
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
        ({"steps": 1e3}, r"configuration field steps must be int, got 1000.0"),
        ({"width": "40"}, r"configuration field width must be int or None, got '40'"),
        ({"seed": True}, r"configuration field seed must be int, got True"),
        ({"depth": 0}, r"depth must be a whole number >= 1, got 0"),
        ({"steps": 0}, r"steps must be a whole number >= 1, got 0"),
        ({"learning_rate": 0.0}, r"learning_rate must be a finite number > 0, got 0.0"),
        ({"beta1": 1.0}, r"beta1 must be in \[0, 1\), got 1.0"),
        ({"weight_decay": -1.0}, r"weight_decay must be a finite number >= 0, got -1.0"),
        ({"validation_fraction": 1.0}, r"validation_fraction must be in \[0, 1\), got 1.0"),
        ({"schedule": "step"}, r"unknown schedule 'step'; choose one of constant, cosine, linear"),
        ({"split_seed": -1}, r"split_seed must be a whole number >= 0, got -1"),
        ({"patience": 0}, r"patience must be >= 1 evaluations, got 0"),
        ({"patience": 2}, r"patience=2 needs a validation set, and validation_fraction is 0.*set validation_fraction"),
    ],
)
def test_bad_values_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        RunConfig(**options)


def test_a_record_of_a_run_that_its_test_set_ended_is_still_read():
    recorded = RunConfig.from_dict({"patience": 2, "width": 40})
    assert (recorded.patience, recorded.identity) == (2, "2d8f633f0037")
    with pytest.raises(ValueError, match=r"patience must be >= 1 evaluations, got 0"):
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
