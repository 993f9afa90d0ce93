"""Features as integer ports: those that they carry are compared exactly, all others are refused, and it shows."""

import re

import numpy as np
import pytest

from gatefit.backends.comparators import require_carried, verilog_comparators
from gatefit.backends.verilog import modules as verilog_modules
from gatefit.backends.verilog import to_verilog
from gatefit.circuit.ir import Circuit
from gatefit.circuit.readout import GroupSum
from gatefit.encoders import Identity, OneHot, Table, Thermometer, Threshold, encoder_from_spec
from gatefit.gates import Gate
from gatefit.hardware.build import Build, Settings
from gatefit.hardware.flow import verdict
from gatefit.hardware.readback import DifferentError
from gatefit.hardware.targets import TARGETS
from gatefit.hardware.vectors import edge_features, edge_values, pack_features
from tools import require_tool

pytestmark = pytest.mark.outside

NO_GATES = np.empty((2, 0), int)


def without_record(encoder):
    """The encoder as a file wrote it before ranges were kept."""
    spec = encoder.to_spec()
    del spec["state"]["whole"]
    return encoder_from_spec(spec)


def circuit_of(encoder):
    return Circuit(encoder.bits, [], NO_GATES, [0], GroupSum([0], [0, 0]), encoder=encoder)


MIXED = {"area": [143.5, 2501.0, 300.25], "count": [3, 200, 7], "year": [1990, 2020, 2001], "minus": [-1, 4, 2]}


def test_features_that_were_not_whole_or_in_range_are_refused_by_name():
    message = (
        "a port of 8 bits carries whole numbers from 0 to 255, and not the features 'area' (not whole numbers when it "
        "was fitted), 'year' (1990 to 2020 when it was fitted), 'minus' (-1 to 4 when it was fitted); read bits and "
        "encode outside the module (feature_bits=0; gatefit export without --feature-bits, gatefit synth --inputs bits)"
        ", give the ports more bits if only the range is too small, or scale the features to whole numbers of that "
        "range before fit"
    )
    for encoder in (Table().fit(MIXED), Thermometer(3).fit(np.array(list(MIXED.values())).T, list(MIXED))):
        with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
            to_verilog(circuit_of(encoder), feature_bits=8)


def test_many_features_are_counted():
    encoder = Table().fit(np.random.default_rng(0).random((50, 9)))
    with pytest.raises(ValueError, match=r"'x4' \(not whole numbers when it was fitted\) and 4 more; read bits"):
        to_verilog(circuit_of(encoder), feature_bits=8)


@pytest.mark.parametrize(
    ("encoder", "bits"),
    [
        (Table().fit({"count": [3, 200, 7], "always": [0.5, 0.5, 0.5]}), 8),  # nothing compares the second
        (Table().fit({"whole floats": [3.0, 200.0]}), 8),
        (Thermometer(2, low=0, high=255).fit(np.array([[0, 255]], np.uint8)), 8),  # thirds, of whole numbers
        (without_record(Table().fit({"halves": [3, 4, 7, 8]})), 4),
        (OneHot().fit({"k": [0, 7]}), 3),
        (Identity().fit(np.array([[0], [1]])), 1),
        (Table().fit({"large": [2**40, 2**41]}), 42),
    ],
)
def test_features_that_are_carried(encoder, bits):
    assert require_carried(encoder, bits) is encoder


@pytest.mark.parametrize(
    ("encoder", "reason"),
    [
        (without_record(Table().fit({"f": [1.0, 1.5]})), "compared with 1.25"),
        (without_record(Table().fit({"f": [300, 500]})), "compared with 400"),
        (without_record(Threshold(-0.5).fit([[1.0]])), "compared with -0.5"),
        (without_record(Threshold(255.0).fit([[1.0]])), "compared with 255"),
        (OneHot().fit({"f": [3, 900]}), "compared with 900"),
        (OneHot().fit({"f": [3, 0.5]}), "compared with 0.5"),
    ],
)
def test_features_that_are_not_carried(encoder, reason):
    with pytest.raises(ValueError, match=re.escape(f"({reason})")):
        require_carried(encoder, 8)


def test_categories_beyond_the_floats_are_compared_exactly():
    encoder = OneHot().fit({"k": np.array([2**53, 2**53 + 1])})
    assert verilog_comparators(require_carried(encoder, 64), 64) == [f"f0 == 64'd{2**53}", f"f0 == 64'd{2**53 + 1}"]


ENCODER = Table().fit({"a": [0, 10, 20, 30], "b": [5, 6, 7, 9], "c": [1000, 2000, 3000, 4000]})


def test_every_threshold_has_vectors_on_both_sides():
    assert edge_values(ENCODER, 12) == [
        [0, 5, 6, 15, 16, 25, 26, 4095],
        [0, 5, 6, 7, 8, 9, 4095],
        [0, 1500, 1501, 2500, 2501, 3500, 3501, 4095],
    ]
    rows = edge_features(ENCODER, 12, np.random.default_rng(0))
    assert rows.shape == (8, 3)
    for column, values in zip(rows.T, edge_values(ENCODER, 12), strict=True):
        assert set(column.tolist()) == set(values)
    bits = ENCODER.transform(rows)
    for bit, rule in zip(bits.T, ENCODER.rules, strict=True):
        near = np.abs(rows[:, rule.feature] - rule.value) <= 1
        assert set(bit[near].tolist()) == {False, True}, rule
    top = Threshold(2.0**63).fit(np.array([[2**64 - 1]], np.uint64))
    wide = edge_features(top, 64, np.random.default_rng(0), 20)
    assert set(wide[:, 0].tolist()) == {0, 2**63, 2**63 + 1, 2**64 - 1}
    assert edge_values(Identity().fit(np.array([[0], [1]])), 3) == [[0, 1, 2, 7]]
    assert edge_values(OneHot().fit({"k": [0, 5]}), 3) == [[0, 1, 4, 5, 6, 7]]


def built(folder):
    """The build of a circuit in which most comparators only show when all others are true as well."""
    require_tool("yosys")
    require_tool("iverilog")
    n = ENCODER.bits
    chain = [[0, *range(n, 2 * n - 2)], list(range(1, n))]
    circuit = Circuit(n, [Gate.AND] * (n - 1), chain, [2 * n - 2, 0], GroupSum([0, 1], [0, 0]), encoder=ENCODER)
    features = edge_features(ENCODER, 12, np.random.default_rng(0))
    settings = Settings(ENCODER.transform(features), pack_features(features, 12), 12, timeout=300.0)
    return Build(circuit, TARGETS["lut4"], None, 0, folder, settings)


def sabotage(monkeypatch, which, shift):
    """Let one comparator be written with another bound."""

    def sabotaged(encoder, bits):
        rules = verilog_comparators(encoder, bits)
        rules[which] = re.sub(r"'d(\d+)", lambda found: f"'d{int(found[1]) + shift}", rules[which])
        return rules

    monkeypatch.setattr(verilog_modules, "verilog_comparators", sabotaged)


def test_comparators_that_are_right_agree(tmp_path):
    content = built(tmp_path).run()
    assert [step["step"] for step in content["steps"]][1:3] == ["simulate the export", "simulate the comparators"]
    assert verdict([content])["status"] == "agrees"


def test_a_wrong_comparator_is_caught_by_the_verdict(tmp_path, monkeypatch):
    sabotage(monkeypatch, 4, 1)
    found = verdict([built(tmp_path).run()])
    assert found["status"] == "differs", found
    assert "vectors are answered differently" in found["text"]


@pytest.mark.parametrize("which", range(ENCODER.bits))
@pytest.mark.parametrize("shift", [-1, 1])
def test_any_comparator_that_is_off_by_one_is_caught(which, shift, tmp_path, monkeypatch):
    sabotage(monkeypatch, which, shift)
    build = built(tmp_path)
    build._export()
    with pytest.raises(DifferentError, match="vectors are answered differently"):
        build._simulate_comparators()
