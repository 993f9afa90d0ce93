"""What features can be: chains, categories, missing values; regions, rows and words."""

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest

from gatefit.circuit.ir import Circuit
from gatefit.circuit.readout import GroupSum
from gatefit.circuit.verify import Domain
from gatefit.circuit.verify.rows import condition, encode, read_row, row_of
from gatefit.encoders import OneHot, Table, Thermometer
from gatefit.encoders.base import Rule
from gatefit.gates import Gate
from strategies import build_circuit
from verify_cases import random_encoder, random_row, small_circuit


def passing(encoder: Any, inputs: int, read: Any = None) -> Circuit:
    """A circuit whose outputs are its inputs, all or those in ``read``."""
    outputs = np.arange(inputs) if read is None else np.array(read)
    readout = GroupSum(np.arange(outputs.size) % 2, [0, 0])
    empty = np.empty(0, np.uint8), np.empty((2, 0), np.int32)
    return Circuit(inputs, *empty, outputs.astype(np.int32), readout, encoder=encoder)


def people() -> Table:
    rows = {
        "age": [20.0, 30.0, 40.0, None],
        "job": ["clerk", "baker", "clerk", "smith"],
        "married": [True, False, True, False],
        "always": [1.0, 1.0, 1.0, 1.0],
    }
    return Table(thresholds=3).fit(rows)


def test_thresholds_form_a_chain_and_missing_excludes_the_rest() -> None:
    encoder = people()
    domain = Domain.of(passing(encoder, encoder.bits))
    age, job, married, always = domain.features
    assert [f.kind for f in domain.features] == ["number", "category", "bit", "number"]
    assert age.patterns.astype(int).tolist() == [[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 0, 1]]
    assert [(v.low, v.high) for v in age.values[:3]] == [(-math.inf, 25.0), (25.0, 35.0), (35.0, math.inf)]
    assert age.values[3].missing
    assert [v.categories for v in job.values] == [("baker",), ("clerk",), ("smith",), ()]
    assert [v.usual for v in job.values] == [True, True, True, False]
    assert job.patterns[:3].astype(int).tolist() == np.eye(3, dtype=int).tolist()
    assert [v.categories for v in married.values] == [(0,), (1,)]
    assert len(always.values) == 1


def test_values_that_the_circuit_cannot_tell_apart_are_merged() -> None:
    encoder = people()
    names = list(encoder.names)
    read = [names.index("age > 35"), names.index("job = baker")]
    age, job, married, _ = Domain.of(passing(encoder, encoder.bits, read)).features
    assert [(v.levels, v.low, v.high, v.missing, v.weight) for v in age.values] == [
        ((0, 1), -math.inf, 35.0, True, 3),
        ((2, 2), 35.0, math.inf, False, 1),
    ]
    assert [v.categories for v in job.values] == [("baker",), ("clerk", "smith")]
    assert all(v.usual for v in job.values)
    assert len(married.values) == 1


def test_every_row_is_a_point_and_every_point_is_a_row() -> None:
    for seed in range(40):
        rng = np.random.default_rng((3, seed))
        circuit = small_circuit(rng, random_encoder(rng))
        domain = Domain.of(circuit)
        row, bits = read_row(circuit, random_row(rng, circuit))
        point = domain.locate(bits[None])[0]
        read = np.concatenate([feature.inputs for feature in domain.features])
        assert np.array_equal(domain.bits(point[None])[0][read], bits[read])
        for near in (None, (row, point)):
            points = np.stack([rng.integers(0, len(f.values), 20) for f in domain.features], axis=1)
            points[0] = point
            made = [row_of(domain, p, near) for p in points]
            assert np.array_equal(domain.locate(encode(circuit, made)), points)
        assert made[0] == row  # what need not change does not


def test_a_row_may_be_a_mapping_a_sequence_a_frame_or_a_series() -> None:
    encoder = people()
    circuit = passing(encoder, encoder.bits)
    row = {"age": 33, "job": "smith", "married": True, "always": 1.0}
    forms = (
        row,
        list(row.values()),
        tuple(row.values()),
        pd.DataFrame([row]),
        pd.Series(row),
        np.array(list(row.values()), object),
        {name: [value] for name, value in row.items()},
    )
    rows = [read_row(circuit, form) for form in forms]
    assert all(found == rows[0][0] for found, _ in rows)
    assert all(np.array_equal(bits, rows[0][1]) for _, bits in rows)


def test_regions_are_ranges_or_sets() -> None:
    encoder = people()
    domain = Domain.of(passing(encoder, encoder.bits))
    assert [a.tolist() for a in domain.region({"age": (25, 30), "job": {"clerk", "smith"}})][:2] == [[0, 1], [1, 2]]
    assert domain.region({"age": (None, 20)})[0].tolist() == [0]
    assert domain.region({"age": (36, None)})[0].tolist() == [2]
    assert domain.region({"age": {None, 40}})[0].tolist() == [2, 3]
    assert domain.region({2: {True}})[2].tolist() == [1]
    assert domain.region({"age": (25.000001, 25.1)})[0].tolist() == [1]
    assert domain.region({"age": (25, 25)})[0].tolist() == [0]  # a threshold itself is not exceeded


@pytest.mark.parametrize(
    ("region", "message"),
    [
        ({"agee": (1, 2)}, "there is no feature 'agee'; did you mean 'age'"),
        ({"age": (3, 2)}, "is empty: from 3 to 2"),
        ({"age": (1, 2, 3)}, r"\(low, high\)"),
        ({"age": 3}, "one value is a set of one"),
        ({"job": (1, None)}, "has no value 1; it has baker, clerk, smith"),
        ({"job": set()}, "leaves feature 'job' no value"),
        ({"age": ("a", None)}, "'age' is a number, got 'a'"),
        ({9: {1}}, "numbered from 0 to 3"),
        ({True: {1}}, "by its name or number"),
        ([("age", 1)], "a region is"),
    ],
)
def test_a_region_that_is_none_is_refused(region: Any, message: str) -> None:
    encoder = people()
    domain = Domain.of(passing(encoder, encoder.bits))
    with pytest.raises((ValueError, TypeError), match=message):
        domain.region(region)


def test_groups_of_bits_are_features() -> None:
    circuit = passing(None, 7)
    groups = {"size": ("chain", [0, 1]), "kind": ("one of", [2, 3]), "maybe": ("at most one of", [4, 5])}
    domain = Domain.of_bits(circuit, groups)
    assert [f.name for f in domain.features] == ["size", "kind", "maybe", "x6"]
    assert [len(f.values) for f in domain.features] == [3, 2, 3, 2]
    assert Domain.from_spec(domain.to_spec(), circuit).groups == domain.groups
    with pytest.raises(ValueError, match="feature 'kind' cannot have the bits 11"):
        domain.locate(np.array([[0, 0, 1, 1, 0, 0, 0]], bool))
    for bad, message in (
        ({"a": ("ring", [0])}, "chain, one of, at most one of"),
        ({"a": ("chain", [0, 9])}, "bits 0 to 6"),
        ({"a": ("chain", [0]), "b": ("chain", [0])}, "in two groups"),
        ({"a": ("chain", [])}, "has no bits"),
        ({"x6": ("chain", [0])}, "name of an input bit"),
    ):
        with pytest.raises(ValueError, match=message):
            Domain.of_bits(circuit, bad)


def test_an_encoder_that_refuses_what_it_never_saw_has_no_such_value() -> None:
    rows = {"a": ["x", "y"]}
    strict, lenient = OneHot("error").fit(rows), OneHot().fit(rows)
    assert len(Domain.of(passing(strict, 2)).features[0].values) == 2
    assert len(Domain.of(passing(lenient, 2)).features[0].values) == 3
    assert Domain.of(passing(lenient, 2)).features[0].usual.tolist() == [0, 1]
    assert Domain.of(passing(lenient, 2), unseen=True).features[0].usual.tolist() == [0, 1, 2]


def test_a_feature_tested_in_two_ways_is_refused() -> None:
    class Both(Thermometer):
        kind = "both"

        def _rules(self) -> list[Rule]:
            return [Rule(0, ">", 1.0), Rule(0, "=", 2.0)]

    encoder = Both(2).fit(np.array([[0.0], [1.0], [2.0], [3.0]]))
    with pytest.raises(ValueError, match="tested in different ways"):
        Domain.of(passing(encoder, encoder.bits))


def test_conditions_in_words() -> None:
    rows = {"age": [20, 30, 40, 50], "pay": [0.5, 1.5, 2.5, 3.5], "job": list("abcd"), "on": [True, False] * 2}
    encoder = Table(thresholds=3).fit(rows)
    age, pay, job, on = Domain.of(passing(encoder, encoder.bits)).features

    def said(feature: Any, *values: int) -> str:
        return condition(feature, np.array(values))

    assert said(age, 1, 2) == "age from 26 to 45"
    assert said(age, 0) == "age <= 25"
    assert said(age, 3) == "age >= 46"
    assert said(age, 0, 3) == "age <= 25 or age >= 46"
    assert said(pay, 1) == "1 < pay <= 2"
    assert said(pay, 2, 3) == "pay > 2"
    assert said(job, 0) == "job = a"
    assert said(job, 0, 1) == "job is a or b"
    assert said(job, 0, 1, 3) == "job is not c"
    assert said(on, 1) == "on = 1"


def test_circuits_of_other_features_do_not_share_a_domain() -> None:
    encoder = people()
    one, two = passing(encoder, encoder.bits), build_circuit(encoder.bits, [(Gate.AND, 0, 1)], [encoder.bits])
    with pytest.raises(ValueError, match="do not read the same features"):
        Domain.of(one, two)


def test_many_points_have_the_bits_that_few_have() -> None:
    encoder = people()
    domain = Domain.of(passing(encoder, encoder.bits))
    rng = np.random.default_rng(0)
    points = np.stack([rng.integers(0, len(feature.values), 300) for feature in domain.features], axis=1)
    few = np.concatenate([domain.bits(points[:100]), domain.bits(points[100:])])
    assert np.array_equal(few, domain.bits(points))
    assert np.array_equal(domain.locate(few), points)
