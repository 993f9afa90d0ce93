"""Answers, their words, time limits and what is refused; the values of all questions are in test_brute_force."""

import json
import math
from typing import Any

import numpy as np
import pytest

from gatefit import verify
from gatefit.circuit.readout import Affine, GroupSum, Linear
from gatefit.circuit.verify import (
    Counterexample,
    Domain,
    Explanation,
    Proved,
    Undecided,
    agree,
    bounds,
    closest,
    explain,
    explain_each,
    monotone,
    never_matters,
    reachable,
    robust,
    robust_each,
    share,
)
from gatefit.circuit.verify.questions import _chernoff
from gatefit.gates import Gate
from strategies import build_circuit, layered_circuit
from verify_cases import loans, random_encoder, random_row, small_circuit

ROW = {"income": 50, "debt": 5, "job": "baker"}


def test_a_worked_example() -> None:
    circuit = loans()
    assert circuit.predict({name: [value] for name, value in ROW.items()}) == ["yes"]
    answer = robust(circuit, ROW, changes=1)
    assert isinstance(answer, Counterexample)
    assert answer.changed in ({"income": (50, 30)}, {"debt": (5, 11)})
    assert answer.example.answer == "no"
    assert isinstance(robust(circuit, ROW, within={"income": 19.9}), Proved)
    assert isinstance(robust(circuit, ROW, within={"income": 20}), Counterexample)
    assert isinstance(robust(circuit, ROW, levels=0), Proved)
    why = explain(circuit, ROW)
    assert isinstance(why, Explanation)
    assert str(why) == "income >= 31 and debt <= 10 force yes"
    assert isinstance(why.why_not, Counterexample)
    assert why.why_not.changes == 1
    assert why.why_not.nearest
    assert isinstance(never_matters(circuit, "job"), Counterexample)
    assert isinstance(never_matters(circuit, "job", region={"debt": (None, 10)}), Proved)
    assert isinstance(monotone(circuit, "income"), Proved)
    assert isinstance(monotone(circuit, "debt"), Counterexample)
    assert isinstance(monotone(circuit, "debt", target="no"), Proved)
    assert isinstance(monotone(circuit, "debt", increasing=False), Proved)
    assert "no: reached, yes: reached" in str(reachable(circuit))
    assert str(reachable(circuit, {"income": (None, 30)})).endswith("yes: never reached (proved)")
    assert isinstance(agree(circuit, circuit), Proved)
    estimate = share(circuit, "yes", samples=20_000)
    assert estimate.low <= 3 / 4 * (1 / 4 + 3 / 4 / 2) <= estimate.high


@pytest.mark.parametrize("asked", [{"changes": 1}, {"levels": 0}], ids=str)
def test_no_answer_is_a_truth_value_and_all_are_json(asked: dict[str, int]) -> None:
    answer = robust(loans(), ROW, **asked)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="an answer is not true or false"):
        bool(answer)
    assert json.loads(json.dumps(answer.to_json(), allow_nan=False))["verdict"] == answer.verdict


def test_bits_without_an_encoder() -> None:
    circuit = build_circuit(3, [(Gate.AND, 0, 1), (Gate.NAND, 0, 1)], [3, 4], GroupSum([0, 1], [0, 0]))
    answer = closest(circuit, [1, 1, 0])
    assert isinstance(answer, Counterexample)
    assert answer.row["x2"] == 0  # what is not read stays as it was
    assert answer.changes == 1
    why = explain(circuit, [0, 1, 1], why_not=False)
    assert str(why) == "x0 = 0 forces 1"
    groups = Domain.of_bits(circuit, {"pair": ("chain", [0, 1])})
    assert isinstance(never_matters(circuit, "x2"), Proved)
    assert isinstance(robust(circuit, [0, 0, 0], changes=1), Proved)
    assert isinstance(robust(circuit, [0, 0, 0], changes=1, domain=groups), Counterexample)


def test_an_answer_that_cannot_be_another_needs_no_reason() -> None:
    circuit = build_circuit(2, [(Gate.TRUE, 0, 0)], [2], GroupSum([1], [0, 0]))
    why = explain(circuit, [0, 1])
    assert str(why) == "whatever the features are, the answer is 1"
    assert isinstance(why, Explanation)
    assert isinstance(why.why_not, Proved)


def test_a_time_limit_is_kept_and_says_what_is_known() -> None:
    rng = np.random.default_rng(5)
    circuit = layered_circuit(rng, 400, 1500, 4, classes=2, gates=[Gate.XOR, Gate.AND, Gate.OR])
    x = rng.integers(0, 2, 400)
    answer = robust(circuit, x, changes=12, timeout=0.05)
    assert isinstance(answer, Undecided | Counterexample)
    whole = never_matters(circuit, 0, margin=3, timeout=0.01)
    assert isinstance(whole, Undecided | Proved | Counterexample)
    if isinstance(whole, Undecided):
        assert "raise timeout" in whole.reason


def test_the_same_question_has_the_same_answer() -> None:
    for seed in range(6):
        rng = np.random.default_rng((13, seed))
        circuit = small_circuit(rng, random_encoder(rng))
        x = random_row(rng, circuit)
        answers = [[robust(circuit, x, changes=2), explain(circuit, x)] for _ in range(2)]
        one, two = ([_plain(a.to_json()) for a in found] for found in answers)
        assert one == two


def _plain(content: Any) -> Any:
    """Without seconds."""
    if isinstance(content, dict):
        return {key: _plain(value) for key, value in content.items() if key != "seconds"}
    return [_plain(value) for value in content] if isinstance(content, list) else content


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda c: robust(c, ROW), "one of changes, levels and within"),
        (lambda c: robust(c, ROW, changes=1, levels=1), "one of changes, levels and within"),
        (lambda c: robust(c, ROW, changes=-1), "whole number >= 0, got -1"),
        (lambda c: robust(c, ROW, changes=1.5), "whole number >= 0, got 1.5"),
        (lambda c: robust(c, ROW, changes=True), "whole number >= 0, got True"),
        (lambda c: robust(c, ROW, levels=-2), "levels must be a whole number >= 0"),
        (lambda c: robust(c, ROW, within={"income": -3}), "finite number >= 0, got -3"),
        (lambda c: robust(c, ROW, within={"income": math.nan}), "finite number >= 0, got nan"),
        (lambda c: robust(c, ROW, within={"job": 1}), "'job' is a category"),
        (lambda c: robust(c, ROW, within={"incom": 1}), "did you mean 'income'"),
        (lambda c: robust(c, ROW, changes=1, timeout=0), "number of seconds > 0"),
        (lambda c: robust(c, ROW, changes=1, timeout=-1), "number of seconds > 0"),
        (lambda c: robust(c, ROW, changes=1, timeout=math.nan), "number of seconds > 0"),
        (lambda c: robust(c, ROW, changes=1, tolerance=1), "tolerance is for regressions"),
        (lambda c: robust(c, [1, 2], changes=1), "needs 3 features"),
        (lambda c: robust(c, np.zeros((1, 2)), changes=1), "fitted on 3 features, got 2"),
        (lambda c: robust(c, {"income": [1, 2], "debt": [1, 2], "job": ["a", "b"]}, changes=1), "one row, got 2"),
        (lambda c: robust(c, {"income": 1}, changes=1), "missing here: debt, job"),
        (lambda c: robust(c, {**ROW, "income": "much"}, changes=1), "needs numbers, got 'much'"),
        (lambda c: robust("model.gate", ROW, changes=1), "about a Circuit, got str"),
        (lambda c: closest(c, ROW, target="maybe"), "no class 'maybe'; the classes are no, yes"),
        (lambda c: closest(c, ROW, target="yes"), "is yes already"),
        (lambda c: never_matters(c, "sex"), "there is no feature 'sex'"),
        (lambda c: never_matters(c, "job", margin=-1), "margin must be a whole number of votes >= 0"),
        (lambda c: monotone(c, "job"), "'job' is a category: it has no order"),
        (bounds, "gives a class, not a value"),
        (lambda c: share(c, "yes", samples=0), "samples must be"),
        (lambda c: share(c, "yes", confidence=1.0), "confidence must be"),
        (lambda c: robust_each(c, [list(ROW.values())], changes=1, certificate="x"), "about one row"),
    ],
)  # fmt: skip
def test_bad_questions_are_refused(ask: Any, message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        ask(loans())


def test_what_a_readout_cannot_say_is_refused() -> None:
    value = build_circuit(2, [(Gate.AND, 0, 1)], [2], Affine(1))
    with pytest.raises(ValueError, match="by how much it may move, tolerance"):
        robust(value, [0, 1], changes=1)
    with pytest.raises(TypeError, match="gives a value, not classes"):
        reachable(value)
    rounding = build_circuit(2, [], [0, 1], Linear(np.array([[1e8, 1.0], [1.0, 3e-9]]), np.zeros(2)))
    with pytest.raises(ValueError, match="sums may round"):
        robust(rounding, [0, 1], changes=1)
    three = build_circuit(2, [], [0, 1, 0], GroupSum([0, 1, 2], [0, 0, 0]))
    with pytest.raises(ValueError, match="levels moves numbers"):
        robust(three, [0, 1], levels=1)


def test_a_batch_has_a_summary_a_figure_and_importance() -> None:
    circuit = loans()
    rows = {"income": [50, 90, 20], "debt": [5, 40, 5], "job": ["baker", "clerk", "baker"]}
    told: list[tuple[int, int]] = []
    batch = robust_each(circuit, rows, changes=1, progress=lambda done, total: told.append((done, total)))
    assert told == [(1, 3), (2, 3), (3, 3)]
    assert [type(a) for a in batch] == [Counterexample, Counterexample, Counterexample]
    assert batch.summary().startswith("robust to 1 change: 0 % (3 rows")
    reasons = explain_each(circuit, rows)
    assert reasons.importance()["income"] == 1.0
    assert "of 3 features force the answer" in reasons.summary()
    assert json.dumps(reasons.to_json())
    nearest = verify.closest_each(circuit, rows)
    assert nearest.summary().startswith("changes to the nearest other answer: 1 in 100 %")
    assert sum(nearest.importance().values()) == 1.0
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    for each in (batch, reasons):
        assert each.figure().get_title() == each.question
    plt.close("all")


def test_what_was_answered_before_ctrl_c_is_kept_where_that_is_asked_for():
    circuit = loans()
    rows = [list(ROW.values())] * 5

    def stop(done, total):
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        robust_each(circuit, rows, changes=1, progress=stop)
    batch = robust_each(circuit, rows, changes=1, progress=stop, keep=True)
    assert (len(batch), batch.asked, batch.to_json()["asked"]) == (2, 5, 5)
    assert "stopped after 2 of 5 rows" in batch.summary()
    assert "asked" not in robust_each(circuit, rows, changes=1, keep=True).to_json()


def test_an_interval_holds_as_often_as_it_says() -> None:
    rng = np.random.default_rng(0)
    for share_ in (0.0, 0.002, 0.3, 1.0):
        hits = rng.binomial(500, share_, 2000)
        inside = [low <= share_ <= high for low, high in (_chernoff(int(h), 500, 0.95) for h in hits[:400])]
        assert np.mean(inside) >= 0.95


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_an_estimator_explains_its_predictions() -> None:
    pytest.importorskip("torch")
    from gatefit import LogicGateClassifier, LogicGateRegressor

    rng = np.random.default_rng(0)
    x = rng.random((80, 3))
    model = LogicGateClassifier(width=12, depth=2, steps=40, random_state=0).fit(x, (x[:, 0] > 0.5).astype(int))
    reasons = model.explain(x[:3], timeout=None)
    assert len(reasons) == 3
    for row, reason in zip(x, reasons, strict=False):
        assert isinstance(reason, Explanation)
        assert reason.answer == model.predict(row[None])[0]
    assert set(reasons.importance()) <= {"x0", "x1", "x2"}
    values = LogicGateRegressor(width=12, depth=2, steps=40, random_state=0).fit(x, x[:, 0])
    (about,) = values.explain(x[:1], timeout=None, tolerance=0.25)
    assert isinstance(about, Explanation)
    assert about.answer == pytest.approx(values.predict(x[:1])[0], abs=1e-12)
    inside = rng.random((200, 3))
    for condition in about.because:
        i = int(condition.feature[1:])
        inside[:, i] = x[0, i]
    assert np.abs(values.predict(inside) - about.answer).max() <= 0.25 + 1e-9


def test_a_reason_in_no_time_is_the_whole_row() -> None:
    """Past the deadline no feature is tried any more; what is left is proved all the same, and not called minimal."""
    rng = np.random.default_rng(3)
    circuit = layered_circuit(rng, 40, 60, 2, classes=2, gates=[Gate.AND, Gate.OR])
    row = rng.integers(0, 2, 40)
    hasty, patient = (explain(circuit, row, timeout=seconds, why_not=False) for seconds in (1e-6, None))
    assert isinstance(hasty, Explanation)
    assert isinstance(patient, Explanation)
    assert patient.minimal
    assert not hasty.minimal
    assert len(patient.because) < len(hasty.because)
    assert len(hasty.because) == sum(feature.usual.size > 1 for feature in Domain.of(circuit).features)
