"""The verbs verify and explain, on a circuit that is small enough to know the answers."""

import json
import os
import re
from pathlib import Path

import numpy as np
import pytest

from gatefit.circuit.ir import Circuit
from gatefit.circuit.prove.questions import Effort
from gatefit.circuit.readout import Affine, GroupSum
from gatefit.circuit.verify import robust
from gatefit.circuit.verify.certificate import write
from gatefit.circuit.verify.decide import Closed, Outcome
from gatefit.circuit.verify.encode import Encoding
from gatefit.circuit.verify.pose import posed, state_agree
from gatefit.circuit.verify.problem import domain_of
from gatefit.circuit.verify.sat import Refutation, ask
from gatefit.encoders import Table, Thermometer, Threshold
from gatefit.gates import Gate
from verify_cases import loans as loans_circuit

BAD_FILES = {
    "narrow.csv": "income,debt\n50,5\n",
    "short.csv": "50,5\n",
    "ragged.csv": "income,debt,job\n50,5,baker\n50,5\n",
    "words.csv": "income,debt,job\nmuch,5,baker\n",
    "header.csv": "income,debt,job\n",
}
DATA = "income,debt,job\n50,5,baker\n90,40,clerk\n20,5,baker\n"


@pytest.fixture
def loans(tmp_path: Path) -> Path:
    """Yes if income > 30 and (debt <= 10 or job = clerk); as ``loans.gate``, beside ``people.csv``."""
    circuit = loans_circuit()
    circuit.save(tmp_path / "loans.gate")
    value = loans_circuit(outputs=circuit.outputs[:1], readout=Affine(1, scale=2.0, intercept=1.0), class_names=())
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


def test_questions_read_what_predict_reads(gatefit, loans):
    """A Parquet file of the same people has the same answers."""
    import polars

    polars.read_csv(loans / "people.csv").write_parquet(loans / "people.parquet")
    for verb in (("verify", "robust"), ("explain",)):
        options = ("--row", 1, *(("--changes", 1) if "robust" in verb else ()), "--json")
        text, binary = (
            gatefit(*verb, loans / "loans.gate", loans / f"people.{kind}", *options) for kind in ("csv", "parquet")
        )
        one, two = (json.loads(re.sub(r'("seconds": )[0-9.e-]+', r"\1 0", outcome.out)) for outcome in (text, binary))
        assert text.code == binary.code
        assert one == two


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
        (("robust", "loans.gate", "people.csv", "--row", 0, "--levels", "-1"), "levels must be a whole number >= 0"),
        (("robust", "loans.gate", "people.csv", "--row", 0, "--within", "income=-3"), "finite number >= 0, got -3"),
        (("robust", "loans.gate", "people.csv", "--row", 0, "--within", "income=nan"), "finite number >= 0, got nan"),
        (("robust", "loans.gate", "people.csv", "--row", 0, "--within", "income=much"), "needs a number, got 'much'"),
        (("robust", "loans.gate", "people.csv", "--row", 0, "--within", "job=1"), "'job' is a category"),
        (("robust", "loans.gate", "people.csv", "--row", 0, "--changes", 1, "--timeout", "-1"), "seconds > 0"),
        (("robust", "loans.gate", "people.csv", "--row", 0, "--changes", 1, "--timeout", "nan"), "seconds > 0"),
        (("robust", "loans.gate", "narrow.csv", "--changes", 1), "narrow.csv has no column job"),
        (("robust", "loans.gate", "short.csv", "--changes", 1, "--no-header"), "has 2 columns, the circuit's encoder"),
        (("robust", "loans.gate", "ragged.csv", "--changes", 1), "ragged.csv, line 3: 2 cells"),
        (("robust", "loans.gate", "words.csv", "--changes", 1), "column 'income' needs numbers, got 'much'"),
        (("robust", "loans.gate", "header.csv", "--changes", 1), "no line to ask about"),
        (("never-matters", "loans.gate", "--feature", "jobs"), "did you mean 'job'?"),
        (("never-matters", "loans.gate", "--feature", "job", "--margin", "-1"), "whole number of votes >= 0, got -1"),
        (("never-matters", "loans.gate", "--feature", "job", "--timeout", 0), "seconds > 0"),
        (("never-matters", "loans.gate", "--feature", "job", "--region", "det=:10"), "did you mean 'debt'?"),
        (("never-matters", "loans.gate", "--feature", "job", "--region", "debt=20:10"), "is empty"),
        (("bounds", "loans.gate"), "gives a class, not a value"),
    ],
)
def test_what_cannot_be_asked_is_refused_in_one_line(refused, loans, monkeypatch, arguments, message):
    monkeypatch.chdir(loans)
    for name, text in BAD_FILES.items():
        (loans / name).write_text(text)
    before = sorted(loans.iterdir())
    assert message in refused("verify", *arguments)
    assert sorted(loans.iterdir()) == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("people.csv", "--certificate", "."), "exists; choose another folder"),
        (("people.csv", "--row", 9), "there is no line 9"),
        (("people.csv", "--row", 0, "--timeout", 0), "seconds > 0"),
        (("people.csv", "--row", 0, "--tolerance", 1), "tolerance is for regressions"),
        (("people.csv", "--row", 0, "--summary"), "--summary, --figure and --rows are about many"),
        (("people.csv", "--figure", "people.csv"), "ends in .png, .svg, .pdf, got people.csv"),
        (("people.csv", "--figure", "old.png"), "old.png exists; choose another file"),
        (("people.csv", "--figure", "none/why.png"), "there is no folder none"),
        (("narrow.csv",), "narrow.csv has no column job"),
        (("words.csv",), "column 'income' needs numbers, got 'much'"),
        (("header.csv",), "no line to ask about"),
        (("absent.csv",), "absent.csv"),
    ],
)
def test_what_cannot_be_explained_is_refused_in_one_line(refused, loans, monkeypatch, arguments, message):
    monkeypatch.chdir(loans)
    for name, text in {**BAD_FILES, "old.png": "mine"}.items():
        (loans / name).write_text(text)
    before = {path.name: path.read_bytes() for path in loans.iterdir()}
    assert message in refused("explain", "loans.gate", *arguments)
    assert {path.name: path.read_bytes() for path in loans.iterdir()} == before


def test_a_regression_is_explained_within_a_tolerance(gatefit, refused, loans):
    model, data = loans / "value.gate", loans / "people.csv"
    assert "say by how much it may move" in refused("explain", model, data, "--row", 0)
    lines = [
        " ".join(line.split())
        for line in gatefit(*("explain", model, data, "--row", 0, "--tolerance", 0.5)).out.splitlines()
    ]
    assert lines[:3] == ["answer 3 (within 0.5)", "because income >= 31", "and debt <= 10"]
    assert lines[4].startswith("why not ")
    assert " gives 1 (no smaller change does)" in lines[4]
    wide = gatefit("explain", model, data, "--row", 0, "--tolerance", 9).out
    assert "whatever the features are" in wide
    assert "no change of any features turns it (proved" in wide


def test_categories_and_missing_values_in_words(gatefit, tmp_path):
    """Rich if the age is missing or above 40, unless the job is a baker's."""
    columns = {"age": [20, 30, 50, None], "job": ["baker", "clerk", "smith", "clerk"]}
    encoder = Table(thresholds=2).fit(columns)
    names = {name: i for i, name in enumerate(encoder.names)}
    n = encoder.bits
    old, missing = (next(i for name, i in names.items() if word in name) for word in ("> 40", "missing"))
    gates = [Gate.OR, Gate.A_AND_NOT_B, Gate.NOT_A]
    operands = [[old, n, n + 1], [missing, names["job = baker"], n + 1]]
    circuit = Circuit(
        n, gates, operands, [n + 1, n + 2], GroupSum([1, 0], [0, 0]), class_names=("poor", "rich"), encoder=encoder
    )
    circuit.save(tmp_path / "age.gate")
    (tmp_path / "rows.csv").write_text("age,job\n,clerk\n50,smith\n20,clerk\n50,baker\n")
    lines = gatefit("explain", tmp_path / "age.gate", tmp_path / "rows.csv").out.splitlines()
    assert lines[0].startswith("row 0: age >= 41 or age is missing, and job = clerk or smith force rich; ")
    assert lines[1].startswith("row 1: age >= 41 or age is missing, and job = clerk or smith force rich; ")
    assert lines[2].startswith("row 2: age <= 40 forces poor; ")
    assert lines[3].startswith("row 3: job = baker forces poor; job baker -> ")
    content = gatefit("explain", tmp_path / "age.gate", tmp_path / "rows.csv", "--row", 0, "--json").json
    age, job = content["because"]
    assert (age["feature"], age["categories"], age["missing"]) == ("age", [], True)
    assert [(r["above"], r["up_to"]) for r in age["ranges"]] == [(40.0, None)]
    assert (sorted(job["categories"]), job["missing"], job["ranges"]) == (["clerk", "smith"], False, [])
    assert content["why_not"]["changed"]


def test_an_image_is_explained_by_pictures(gatefit, tmp_path):
    """Ink if at least two of three pixels in the first row are: what forces it is drawn, and what turns it."""
    encoder = Threshold(127.5).fit(np.zeros((1, 64)))
    operands = np.array([[0, 1, 2], [0, 0, 0]])
    outputs = np.array([0, 1, 2, 64, 65, 66])
    circuit = Circuit(
        64,
        [Gate.NOT_A] * 3,
        operands,
        outputs,
        GroupSum([1, 1, 1, 0, 0, 0], [0, 0]),
        (),
        ("blank", "ink"),
        encoder=encoder,
    )
    circuit.save(tmp_path / "ink.gate")
    rows = np.zeros((2, 64), int)
    rows[0, :3] = rows[1, 9] = 255
    np.savetxt(tmp_path / "rows.csv", rows, fmt="%d", delimiter=",")
    asked = ("explain", tmp_path / "ink.gate", tmp_path / "rows.csv", "--no-header")
    out = gatefit(*asked, "--row", 0).out.splitlines()
    pairs = [" ".join(line.split()) for line in out]
    assert pairs[:2] == ["answer ink", "because 2 pixels are as in the picture"]
    assert re.match(r"why not pixel \(1, \d\) ink -> blank, pixel \(1, \d\) ink -> blank gives blank", pairs[3])
    picture = out[out.index("") + 1 :]
    left, right = picture[0].split("|")
    assert left.count("█") == 4  # two pixels, each two characters wide
    assert right.count("-") == 4
    assert set(picture[1].replace("|", "").replace("·", "")) <= {" "}
    assert picture[8].startswith("reason: · must stay blank, █ must stay inked")
    every = gatefit(*asked).out.splitlines()
    assert every[0].startswith("row 0: 2 of 64 pixels force ink; pixel (1, ")
    summed = gatefit(*asked, "--summary").out.splitlines()
    assert "how often a pixel is in the reasons" in summed[8]


def test_infinite_numbers_are_numbers(gatefit, refused, loans):
    model, data = loans / "loans.gate", loans / "far.csv"
    data.write_text("income,debt,job\ninf,5,baker\n-inf,5,baker\n")
    first = gatefit("explain", model, data, "--row", 0, "--json").json
    assert [condition["text"] for condition in first["because"]] == ["income >= 31", "debt <= 10"]
    near = gatefit("verify", "closest", model, data, "--json").json["answers"]
    assert near[1]["changed"]["income"][0] == "-inf"
    asked = ("verify", "robust", model, data, "--row", 0, "--changes", 0, "--certificate", loans / "far")
    assert "a certificate holds finite numbers" in refused(*asked)
    with pytest.raises(ValueError, match="a certificate holds finite numbers"):
        robust(Circuit.load(model), [float("inf"), 5, "baker"], changes=0, certificate=loans / "far")
    assert not (loans / "far").exists()


def test_a_summary_says_how_often_features_are_in_reasons(gatefit, loans):
    model, data = loans / "loans.gate", loans / "people.csv"
    lines = [" ".join(line.split()) for line in gatefit("explain", model, data, "--summary").out.splitlines()]
    assert lines[:2] == ["feature in the reasons of", "income 100.00 %"]
    assert not any(line.startswith("row") for line in lines)
    shares = gatefit("explain", model, data, "--summary", "--json").json["importance"]
    assert shares["income"] == 1.0
    assert 0 < shares.get("debt", 0) + shares.get("job", 0) <= 1
    (loans / "one.csv").write_text("income,debt,job\n20,5,baker\n")
    one = gatefit("explain", model, loans / "one.csv", "--summary").out
    assert "in no reason: debt, job" in one


def test_a_summary_as_a_figure(gatefit, loans):
    pytest.importorskip("matplotlib").use("Agg")
    gatefit("explain", loans / "loans.gate", loans / "people.csv", "--summary", "--figure", loans / "why.svg")
    assert (loans / "why.svg").read_text().lstrip().startswith("<?xml")


def test_explain_refuses_what_is_there(refused, loans):
    assert "exists" in refused("explain", loans / "loans.gate", loans / "people.csv", "--certificate", loans)


# ---- certificates of others, and folders that mean harm


@pytest.fixture
def certificate(gatefit, loans) -> Path:
    """Proved by refutation: ``job`` decides nothing where debts are small."""
    path = loans / "proof"
    asked = ("verify", "never-matters", loans / "loans.gate", "--feature", "job", "--region", "debt=:10")
    assert gatefit(*asked, "--certificate", path).code == 0
    return path


def _changed(path: Path, edit) -> None:
    content = json.loads(path.read_text())
    edit(content)
    path.write_text(json.dumps(content))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda f: (f / "certificate.json").unlink(), "cannot read"),
        (lambda f: (f / "certificate.json").write_text('{"format": "gatefit'), "is not JSON"),
        (lambda f: (f / "certificate.json").write_text("[" * 50_000), "is not JSON"),
        (lambda f: _changed(f / "certificate.json", lambda c: c.update(version=9)), "has version 9"),
        (lambda f: _changed(f / "certificate.json", lambda c: c.update(meaning="sex never matters")), "means"),
        (lambda f: _changed(f / "certificate.json", lambda c: c["statement"].update(feature="income")), "means"),
        (lambda f: _changed(f / "certificate.json", lambda c: c["statement"].update(feature="\x1b[2J")), "no feature"),
        (lambda f: _changed(f / "certificate.json", lambda c: c["statement"].update(region={})), "means"),
        (lambda f: _changed(f / "certificate.json", lambda c: c["statement"].update(margin=-1)), "margin must be"),
        (lambda f: _changed(f / "certificate.json", lambda c: c["statement"].update(margin=10**400)), "means"),
        (lambda f: _changed(f / "certificate.json", lambda c: c["statement"].update(question="magic")), "question"),
        (lambda f: _changed(f / "certificate.json", lambda c: c.update(parts=[])), "must refute"),
        (lambda f: _changed(f / "certificate.json", lambda c: c["parts"][0].update(method="faith")), "by 'faith'"),
        (lambda f: os.truncate(f / "certificate.json", 40), "is not JSON"),
        (lambda f: _instead(f / "certificate.json", os.mkfifo), "cannot read"),
        (lambda f: _instead(f / "certificate.json", Path.mkdir), "cannot read"),
        (lambda f: _instead(f / "certificate.json", lambda p: p.symlink_to("/dev/zero")), "cannot read"),
        (lambda f: _instead(f / "certificate.json", lambda p: p.symlink_to(p)), "cannot read"),
    ],
)  # fmt: skip
def test_a_damaged_or_hostile_folder_is_refused_in_one_line(refused, loans, certificate, damage, message):
    damage(certificate)
    said = refused("verify", "--check", certificate, loans / "loans.gate")
    assert message in said
    assert "\x1b" not in said


def _instead(path: Path, make) -> None:
    path.unlink()
    make(path)


def test_a_truncated_refutation_is_refused(gatefit, refused, tmp_path):
    """The parity of six bits, summed up from either end: a solver has to work for it."""
    n = 6
    chains = {"left": range(n), "right": range(n - 1, -1, -1)}
    models = []
    for name, order in chains.items():
        first, *rest = order
        operands = np.array([[first, *range(n, 2 * n - 2), 2 * n - 2], [*rest, 2 * n - 2]])
        gates = [Gate.XOR] * (n - 1) + [Gate.NOT_A]
        circuit = Circuit(n, gates, operands, [2 * n - 2, 2 * n - 1], GroupSum([1, 0], [0, 0]))
        circuit.save(tmp_path / f"{name}.gate")
        models.append(circuit)
    asked = posed(state_agree(*models), tuple(models), domain_of(*models))
    path, outcome, encoding = tmp_path / "proof", Outcome(), Encoding(asked.problem)
    for number, alternative in enumerate(asked.problem.alternatives):
        refutation = ask(encoding, (*alternative.forms, *alternative.implied), Effort())
        assert isinstance(refutation, Refutation)
        outcome.closed[number] = Closed("sat", refutation, False)
    write(path, asked, outcome)
    command = ("verify", "--check", path, tmp_path / "left.gate", tmp_path / "right.gate")
    assert gatefit(*command).code == 0
    proof = path / "0.drat"
    whole = proof.read_bytes()
    assert whole.count(b"\n") > 2
    for kept in (len(whole) - 3, whole.index(b"\n") + 1, 0):
        proof.write_bytes(whole[:kept])
        assert "0.drat" in refused(*command)
    for name in ("0.drat", "0.cnf"):
        os.truncate(path / name, 2**33)  # sparse: it takes no room, but would take memory to read
        assert f"{name} has 8,589,934,592 bytes" in refused(*command)
        (path / name).unlink()
        (path / name).mkdir()
        assert f"{name}: it is not there, or no file" in refused(*command)
        (path / name).rmdir()
        (path / name).write_bytes(whole)


def test_a_certificate_of_another_circuit_encoder_or_answers_is_refused(refused, loans, certificate):
    own = Circuit.load(loans / "loans.gate")
    gates = own.gates.copy()
    gates[0] ^= 1
    fields = {name: getattr(own, name) for name in ("inputs", "operands", "outputs", "readout")}
    rows = {"income": [10, 40, 60, 90], "debt": [5, 15, 25, 35], "job": ["baker", "clerk", "clerk", "baker"]}
    others = {
        "gates": Circuit(gates=gates, encoder=own.encoder, class_names=own.class_names, **fields),
        "encoder": Circuit(
            gates=own.gates, encoder=Table(thresholds=3).fit(rows), class_names=own.class_names, **fields
        ),
        "answers": Circuit(gates=own.gates, encoder=own.encoder, class_names=("yes", "no"), **fields),
    }
    before = {path.name: path.read_bytes() for path in certificate.iterdir()}
    for name, circuit in others.items():
        circuit.save(loans / f"{name}.gate")
        said = refused("verify", "--check", certificate, loans / f"{name}.gate")
        wanted = {"gates": "not about circuit 1: gates, wiring or readout are different",
                  "encoder": "not about this encoder", "answers": "not about these answers"}[name]  # fmt: skip
        assert wanted in said
    two = refused("verify", "--check", certificate, loans / "loans.gate", loans / "gates.gate")
    assert "is about 1 circuits, got 2" in two
    assert {path.name: path.read_bytes() for path in certificate.iterdir()} == before


def test_nothing_is_written_over(refused, loans, certificate):
    before = {path.name: path.read_bytes() for path in certificate.iterdir()}
    asked = ("verify", "never-matters", loans / "loans.gate", "--feature", "job", "--region", "debt=:10")
    for path in (certificate, loans / "people.csv"):
        assert f"{path} exists; choose another folder" in refused(*asked, "--certificate", path)
    assert {path.name: path.read_bytes() for path in certificate.iterdir()} == before
    assert (loans / "people.csv").read_text() == DATA


def test_shades_of_a_reason_are_intervals(gatefit, tmp_path):
    """Three levels: a pixel that must not be above one, one that must not be below one, one that is between two."""
    encoder = Thermometer(3, spacing="uniform", low=0, high=16).fit(np.zeros((1, 64)))
    bit = {(rule.feature, rule.value): i for i, rule in enumerate(encoder.rules)}
    (low, _, high), n = sorted({value for _, value in bit}), encoder.bits
    gates = [Gate.A_AND_NOT_B, Gate.A_AND_NOT_B, Gate.AND, Gate.NOT_A]
    operands = [[bit[1, high], bit[2, low], n, n + 2], [bit[0, low], bit[2, high], n + 1, n + 2]]
    circuit = Circuit(n, gates, operands, [n + 2, n + 3], GroupSum([1, 0], [0, 0]), encoder=encoder)
    circuit.save(tmp_path / "shades.gate")
    row = np.zeros((1, 64))
    row[0, 1:3] = 16, (low + high) / 2
    np.savetxt(tmp_path / "row.csv", row, fmt="%g", delimiter=",")
    out = gatefit("explain", tmp_path / "shades.gate", tmp_path / "row.csv", "--no-header").out.splitlines()
    picture = out[out.index("") + 1 :]
    assert picture[0].split("|")[0].rstrip() == "··██▒▒"
    assert "between two, nothing: whatever (--json has the levels)" in picture[8]
