"""What a page says was proved about its samples is true of the circuit; what was not decided is said not to be."""

import itertools
import json
import re

import numpy as np
import pytest

from gatefit.backends.html import Samples, to_html
from gatefit.circuit import simulate
from gatefit.circuit.ir import Circuit
from gatefit.circuit.readout import Affine, Linear
from gatefit.circuit.verify import Domain
from gatefit.encoders import Identity, Table, Thermometer, Threshold
from strategies import layered_circuit
from verify_cases import loans

PEOPLE = np.array([[50, 5, "baker"], [90, 40, "clerk"], [20, 5, "baker"]], object)
ANSWERS = np.array([1, 1, 0])
PATIENT = 600
"""Seconds a sample: enough on any machine for circuits this small, so that nothing is undecided."""


def over(encoder, seed=0, gates=30) -> Circuit:
    plain = layered_circuit(np.random.default_rng(seed), encoder.bits, gates, 2, classes=3)
    return Circuit(plain.inputs, plain.gates, plain.operands, plain.outputs, plain.readout, encoder=encoder)


def proofs_of(circuit, samples, **options):
    text = to_html(circuit, samples=samples, why=options.pop("why", PATIENT), **options)
    return json.loads(re.search(r'id="model">(.*?)</script>', text, re.DOTALL)[1])["proofs"]


def test_a_table_in_its_own_words():
    proofs = proofs_of(loans(), Samples(PEOPLE, ANSWERS))
    assert (proofs["unit"], proofs["seconds"], proofs["tolerance"]) == ("feature", PATIENT, None)
    baker, clerk, poor = proofs["samples"]
    assert [sample["answer"] for sample in proofs["samples"]] == [1, 1, 0]
    assert [each["text"] for each in baker["reason"]["conditions"]] == ["income >= 31", "debt <= 10"]
    assert [each["f"] for each in baker["reason"]["conditions"]] == [[0], [1]]
    assert baker["reason"]["minimal"]
    assert baker["robust"] == {"changes": 0, "method": None, "next": "refuted"}
    assert baker["nearest"]["fewest"]
    assert len(baker["nearest"]["changed"]) == 1
    assert baker["nearest"]["answer"] == 0
    assert {each["text"] for each in clerk["reason"]["conditions"]} == {"income >= 31", "job = clerk"}
    assert [each["text"] for each in poor["reason"]["conditions"]] == ["income <= 30"]
    assert poor["nearest"]["changed"][0]["text"].startswith("income: 20 → 3")


@pytest.mark.parametrize("encoder", ["threshold", "thermometer", "table", "identity", None])
def test_every_claim_is_true_of_all_inputs(encoder):
    rng = np.random.default_rng(3)
    x = rng.integers(0, 2, (40, 8))
    if encoder == "threshold":
        made = Threshold(0.5).fit(x.astype(float))
    elif encoder == "thermometer":
        x = rng.integers(0, 5, (40, 4))
        made = Thermometer(3).fit(x.astype(float))
    elif encoder == "table":
        columns = {"age": rng.integers(0, 5, 40), "colour": rng.choice(["red", "blue", "grey"], 40)}
        made = Table(thresholds=3).fit(columns)
        x = np.array(list(zip(columns["age"], columns["colour"], strict=True)), object)
    else:
        made = Identity().fit(x.astype(bool))
    circuit = over(made)
    if encoder is None:
        circuit = Circuit(circuit.inputs, circuit.gates, circuit.operands, circuit.outputs, circuit.readout)
    rows = x[:3] if encoder == "table" else x[:3].astype(bool if made.kind == "identity" else float)
    proofs = proofs_of(circuit, Samples(rows, np.zeros(3, int)))
    domain = Domain.of(circuit)
    points = np.array(list(itertools.product(*(feature.usual.tolist() for feature in domain.features))))
    inputs = domain.bits(points)
    answers = simulate.scores(circuit, inputs).argmax(axis=1)
    assert proofs["unit"] == ("bit" if encoder in ("identity", None) else "feature")
    for row, proof in zip(rows, proofs["samples"], strict=True):
        bits = row[None] if encoder is None else circuit.encoder.transform(row[None])
        base = domain.locate(np.asarray(bits, bool))[0]
        distance = (points != base).sum(axis=1)
        turned = distance[answers != proof["answer"]]
        least = turned.min() if turned.size else None
        assert proof["robust"]["changes"] == (len(domain.features) if least is None else least - 1)
        assert proof["robust"]["next"] == (None if least is None else "refuted")
        inside = np.ones(len(inputs), bool)
        for each in proof["reason"]["conditions"]:
            own = ["".join("01"[int(b)] for b in row) for row in inputs[:, each["bits"]]]
            inside &= np.isin(own, each["allowed"])
        assert inside.any()
        assert (answers[inside] == proof["answer"]).all()
        if least is not None:
            other = np.array(bits, bool)[0]
            other[proof["nearest"]["flipped"]] ^= True
            assert simulate.scores(circuit, other[None])[0].argmax() == proof["nearest"]["answer"] != proof["answer"]
            assert len(proof["nearest"]["changed"]) == least


def test_pixels_are_named_by_row_and_column():
    circuit = over(Threshold(127.5).fit(np.zeros((1, 64))), gates=9)
    x = np.random.default_rng(1).integers(0, 256, (1, 64)).astype(np.uint8)
    proofs = proofs_of(circuit, Samples(x, [0]))
    assert proofs["unit"] == "pixel"
    for each in proofs["samples"][0]["reason"]["conditions"]:
        (pixel,) = each["f"]
        shade = "ink" if x[0, pixel] > 127.5 else "blank"
        assert each["text"] == f"pixel ({pixel // 8 + 1}, {pixel % 8 + 1}) is {shade}"
        assert each["bits"] == [pixel]
    (change, *_) = proofs["samples"][0]["nearest"]["changed"]
    assert re.fullmatch(r"pixel \(\d, \d\): (blank → ink|ink → blank)", change["text"])


def test_colours_have_their_own_names():
    circuit = over(Threshold(127.5).fit(np.zeros((1, 192))), gates=9)
    x = np.random.default_rng(1).integers(0, 256, (1, 192)).astype(np.uint8)
    proofs = proofs_of(circuit, Samples(x, [0]))
    assert proofs["unit"] == "colour value"
    assert all(re.match("(red|green|blue) pixel", c["text"]) for c in proofs["samples"][0]["reason"]["conditions"])


def test_features_shown_as_bits_are_marked_by_their_bits():
    proofs = proofs_of(loans(), Samples(PEOPLE, ANSWERS), view="bits")
    assert proofs["unit"] == "feature"
    for each in proofs["samples"][0]["reason"]["conditions"]:
        assert each["f"] == each["bits"]


def test_a_regression_needs_a_tolerance():
    n = loans().inputs
    value = loans(outputs=[n + 1], readout=Affine(1, scale=2.0, intercept=1.0), class_names=())
    with pytest.raises(ValueError, match="say by how much it may move, tolerance"):
        proofs_of(value, Samples(PEOPLE, np.array([3.0, 3.0, 1.0])))
    proofs = proofs_of(value, Samples(PEOPLE, np.array([3.0, 3.0, 1.0])), tolerance=0.5)
    assert proofs["tolerance"] == 0.5
    assert [sample["answer"] for sample in proofs["samples"]] == [3.0, 3.0, 1.0]
    assert proofs["samples"][0]["nearest"]["answer"] == 1.0
    wide = proofs_of(value, Samples(PEOPLE, np.array([3.0, 3.0, 1.0])), tolerance=2)
    assert wide["samples"][0]["robust"]["next"] is None
    assert wide["samples"][0]["reason"]["conditions"] == []


def test_without_being_asked_nothing_is_proved():
    text = to_html(loans(), samples=Samples(PEOPLE, ANSWERS))
    assert json.loads(re.search(r'id="model">(.*?)</script>', text, re.DOTALL)[1])["proofs"] is None


def test_the_same_circuit_gives_the_same_bytes_with_proofs_too():
    pages = {to_html(loans(), samples=Samples(PEOPLE, ANSWERS), why=PATIENT) for _ in range(2)}
    assert len(pages) == 1


def test_progress_is_told():
    told = []
    to_html(loans(), samples=Samples(PEOPLE, ANSWERS), why=PATIENT, progress=lambda *count: told.append(count))
    assert told == [(1, 3), (2, 3), (3, 3)]


def test_undecided_is_written_as_undecided(monkeypatch):
    from gatefit.backends.html import proofs as module
    from gatefit.circuit.verify import Undecided

    unknown = Undecided("the answer stays", 1.0, "not decided in 1.0 s; raise timeout")
    for question in ("closest", "robust", "explain"):
        monkeypatch.setattr(module, question, lambda *_, **__: unknown)
    proofs = proofs_of(loans(), Samples(PEOPLE, ANSWERS))
    for sample in proofs["samples"]:
        assert sample["robust"] == {"changes": 0, "method": None, "next": "undecided"}
        assert sample["nearest"] is None
        assert sample["reason"] == {"undecided": "not decided in 1.0 s; raise timeout"}


def test_what_a_search_leaves_open_is_asked_one_by_one(monkeypatch):
    """Where the nearest was not shown to be the nearest, the first number of changes that is refuted gives it."""
    from gatefit.backends.html import proofs as module
    from gatefit.circuit.verify import Undecided

    known = proofs_of(loans(), Samples(PEOPLE, ANSWERS))["samples"]
    unknown = Undecided("the answer stays", 1.0, "not decided in 1.0 s; raise timeout")
    monkeypatch.setattr(module, "closest", lambda *_, **__: unknown)
    found = proofs_of(loans(), Samples(PEOPLE, ANSWERS))["samples"]
    assert [sample["robust"] for sample in found] == [sample["robust"] for sample in known]
    for sample, wanted in zip(found, known, strict=True):
        assert sample["nearest"]["fewest"]
        assert len(sample["nearest"]["changed"]) == len(wanted["nearest"]["changed"])


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), float("inf"), True, "10"])
def test_times_that_are_none_are_refused(seconds):
    with pytest.raises(ValueError, match="seconds that the proofs of one sample may take"):
        to_html(loans(), samples=Samples(PEOPLE, ANSWERS), why=seconds)


def test_proofs_need_samples_and_sums_that_are_exact():
    with pytest.raises(ValueError, match="there are none; give samples"):
        to_html(loans(), why=1)
    with pytest.raises(ValueError, match="ask for them with why=seconds"):
        to_html(loans(), samples=Samples(PEOPLE, ANSWERS), tolerance=1)
    rounding = loans(readout=Linear([[0.1, 0.7], [1e-9, 2.0]], [0.3, 0]))
    with pytest.raises(ValueError, match="round"):
        to_html(rounding, samples=Samples(PEOPLE, ANSWERS), why=1)
