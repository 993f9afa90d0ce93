"""``Table(columns=...)``: how single columns are encoded."""

import numpy as np
import pytest

from gatefit.encoders import Table, encoder_from_spec

FRAME = {
    "age": np.arange(100.0),
    "size": np.arange(100) % 7,
    "old": np.arange(100) % 2,
    "name": [f"n{i % 9}" for i in range(100)],
}


def rules_of(encoder, name):
    feature = encoder.feature_names.index(name)
    return [rule.test for rule in encoder.rules if rule.feature == feature]


def test_every_column_as_it_is_chosen():
    words = {"age": "thresholds:3", "size": "category:4", "old": "bits", "name": "category"}
    encoder = Table(columns=words).fit(FRAME)
    assert rules_of(encoder, "age") == [">"] * 3
    assert rules_of(encoder, "size") == ["="] * 4
    assert rules_of(encoder, "old") == ["bit"]
    assert rules_of(encoder, "name") == ["="] * 9


def test_what_is_not_chosen_stays():
    plain, chosen = Table().fit(FRAME), Table(columns={"age": "thresholds:3"}).fit(FRAME)
    rest = {name: column for name, column in FRAME.items() if name != "age"}
    assert chosen.bits - 3 == plain.bits - 15 == Table().fit(rest).bits


def test_files_hold_what_was_fitted_and_older_versions_read_them():
    spec = Table("auto", columns={"age": "thresholds:3"}).fit(FRAME).to_spec()
    assert spec["parameters"] == {"thresholds": 15, "categorical": None, "numeric": None, "max_categories": 256}
    again = encoder_from_spec(spec)
    assert again == Table(columns={"age": "thresholds:3"}).fit(FRAME)
    assert repr(Table()) == "Table(thresholds=15, categorical=None, numeric=None, max_categories=256)"


@pytest.mark.parametrize(
    "word", ["", "squares", "thresholds:", "thresholds:0", "thresholds:-1", "bits:3", "category:x", 5]
)
def test_unknown_choices_are_refused(word):
    with pytest.raises(ValueError, match="column 'age' can be thresholds, category, bits, thresholds:N or category:N"):
        Table(columns={"age": word})


def test_choices_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="columns names what is not there: agee; the columns are age"):
        Table(columns={"agee": "bits"}).fit(FRAME)
    with pytest.raises(ValueError, match="column 'age' as bits needs 0 and 1 or true and false, got 2"):
        Table(columns={"age": "bits"}).fit(FRAME)
    with pytest.raises(TypeError, match="column 'name' needs numbers, got 'n0'"):
        Table(columns={"name": "thresholds"}).fit(FRAME)
