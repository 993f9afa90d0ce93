"""The verbs verify and explain, on a circuit that is small enough to know the answers."""

import json
from pathlib import Path

import pytest

from gatefit.circuit.ir import Circuit
from gatefit.circuit.readout import Affine, GroupSum
from gatefit.encoders import Table
from gatefit.gates import Gate

DATA = "income,debt,job\n50,5,baker\n90,40,clerk\n20,5,baker\n"


@pytest.fixture
def loans(tmp_path: Path) -> Path:
    """Yes if income > 30 and (debt <= 10 or job = clerk); as ``loans.gate``, beside ``people.csv``."""
    rows = {"income": [20, 40, 60, 80], "debt": [5, 15, 25, 35], "job": ["baker", "clerk", "clerk", "baker"]}
    encoder = Table(thresholds=3).fit(rows)
    names = {name: i for i, name in enumerate(encoder.names)}
    n = encoder.bits
    gates = [Gate.NOT_A_OR_B, Gate.AND, Gate.NOT_A]
    operands = [[names["debt > 10"], names["income > 30"], n + 1], [names["job = clerk"], n, n + 1]]
    circuit = Circuit(
        n, gates, operands, [n + 1, n + 2], GroupSum([1, 0], [0, 0]), class_names=("no", "yes"), encoder=encoder
    )
    circuit.save(tmp_path / "loans.gate")
    value = Circuit(n, gates, operands, [n + 1], Affine(1, scale=2.0, intercept=1.0), encoder=encoder)
    value.save(tmp_path / "value.gate")
    (tmp_path / "people.csv").write_text(DATA)
    return tmp_path


def test_verify_robust_writes_a_certificate_that_checks(gatefit, loans):
    model, data = loans / "loans.gate", loans / "people.csv"
    asked = ("verify", "robust", model, data, "--row", 0)
    outcome = gatefit(*asked, "--within", "income=19.9", "--certificate", loans / "proof")
    assert outcome.code == 0
    assert outcome.out.startswith("proved (bound): the answer stays yes where income moves by at most 19.9")
    checked = gatefit("verify", "--check", loans / "proof", model)
    assert checked.code == 0
    assert "proves it: the answer stays yes" in checked.out
    assert "lies in the folder" in gatefit("verify", "--check", loans / "proof").out
    assert gatefit("verify", "--check", loans / "proof", model, "--json").json["circuit_given"] is True
    broken = gatefit(*asked, "--changes", 1, "--json")
    assert broken.code == 1
    assert broken.json["verdict"] == "counterexample"
    assert broken.json["example"]["answer"] == "no"


def test_verify_asks_about_every_line(gatefit, loans):
    outcome = gatefit("verify", "robust", loans / "loans.gate", loans / "people.csv", "--levels", 0)
    assert outcome.code == 0
    assert outcome.out.count("\nrow ") == 2
    assert "robust to 0 levels: 100 % (3 rows" in outcome.out
    nearest = gatefit("verify", "closest", loans / "loans.gate", loans / "people.csv", "--rows", 2, "--json").json
    assert nearest["rows"] == 2
    assert [answer["nearest"] for answer in nearest["answers"]] == [True, True]


def test_verify_asks_about_all_inputs(gatefit, loans):
    model = loans / "loans.gate"
    pair = gatefit("verify", "never-matters", model, "--feature", "job")
    assert pair.code == 1
    assert "job alone never changes the answer fails" in pair.out
    assert gatefit("verify", "never-matters", model, "--feature", "job", "--region", "debt=:10").code == 0
    assert gatefit("verify", "never-matters", model, "--feature", "job", "--margin", 2).code == 0
    assert gatefit("verify", "monotone", model, "--feature", "income").code == 0
    assert gatefit("verify", "monotone", model, "--feature", "debt").code == 1
    assert gatefit("verify", "monotone", model, "--feature", "debt", "--lowering").code == 0
    assert gatefit("verify", "agree", model, model, "--region", "job=clerk,baker").code == 0
    assert "yes: never reached (proved)" in gatefit("verify", "reachable", model, "--region", "income=:30").out
    assert gatefit("verify", "share", model, "--target", "yes", "--samples", 1000, "--json").json["samples"] == 1000
    found = gatefit("verify", "bounds", loans / "value.gate", "--json").json
    assert (found["low"], found["high"], found["exact"]) == (1.0, 3.0, True)


def test_explain_in_words_and_json(gatefit, loans):
    model, data = loans / "loans.gate", loans / "people.csv"
    outcome = gatefit("explain", model, data, "--row", 0, "--certificate", loans / "why")
    assert outcome.code == 0
    lines = [" ".join(line.split()) for line in outcome.out.splitlines()]
    assert lines[:3] == ["answer yes", "because income >= 31", "and debt <= 10"]
    assert "2 of 3 features force it whatever the others are; each is needed" in lines[3]
    assert lines[4].startswith("why not ")
    assert gatefit("verify", "--check", loans / "why", model).code == 0
    content = gatefit("explain", model, data, "--row", 2, "--json").json
    assert [condition["text"] for condition in content["because"]] == ["income <= 30"]
    every = gatefit("explain", model, data, "--no-why-not")
    assert "why: 2 of 3 features force the answer (median)" in every.out
    assert json.loads(gatefit("explain", model, data, "--json").out)["importance"]["income"] == 1.0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "say what to ask of which circuit"),
        (("robus", "loans.gate"), "unknown question 'robus'; did you mean robust?"),
        (("robust", "loans.gate"), "robust needs a CSV file"),
        (("robust", "loans.gate", "people.csv", "--row", 0), "one of changes, levels and within"),
        (("robust", "loans.gate", "people.csv", "--row", 7, "--changes", 1), "there is no line 7"),
        (("robust", "loans.gate", "people.csv", "--row", 0, "--changes", "-1"), "whole number >= 0, got -1"),
        (("robust", "loans.gate", "people.csv", "--row", 0, "--within", "incom=1"), "did you mean 'income'"),
        (("robust", "loans.gate", "people.csv", "--row", 0, "--within", "income"), "expected FEATURE=VALUE"),
        (("robust", "loans.gate", "people.csv", "--row", 0, "--changes", 1, "--timeout", 0), "seconds > 0"),
        (("robust", "loans.gate", "people.csv", "--changes", 0, "--certificate", "new"), "choose it with --row"),
        (("robust", "loans.gate", "people.csv", "--changes", 0, "--certificate", "."), "exists; choose another"),
        (("never-matters", "loans.gate"), "needs --feature"),
        (("never-matters", "loans.gate", "--feature", "sex"), "there is no feature 'sex'"),
        (("never-matters", "loans.gate", "--feature", "job", "--margin", 0.5), "a whole number, got 0.5"),
        (("reachable", "loans.gate", "people.csv"), "reads no file"),
        (("reachable", "loans.gate", "--region", "job=smith"), "has no value 'smith'"),
        (("share", "loans.gate"), "share needs --target"),
        (("closest", "loans.gate", "people.csv", "--target", "maybe"), "no class 'maybe'"),
        (("agree", "loans.gate"), "agree needs another circuit"),
        (("--check", "people.csv"), "cannot read"),
    ],
)
def test_what_cannot_be_asked_is_refused_in_one_line(refused, loans, monkeypatch, arguments, message):
    monkeypatch.chdir(loans)
    assert message in refused("verify", *arguments)


def test_explain_refuses_what_is_there(refused, loans):
    assert "exists" in refused("explain", loans / "loans.gate", loans / "people.csv", "--certificate", loans)
