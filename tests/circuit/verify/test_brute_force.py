"""Every answer to every question equals what trying all inputs says; every engine by itself, too."""

import math
from collections.abc import Callable
from importlib import import_module
from itertools import count
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from gatefit.circuit.prove.questions import Effort
from gatefit.circuit.verify import (
    Bounds,
    Counterexample,
    Estimate,
    Explanation,
    Proved,
    Reachable,
    agree,
    bounds,
    closest,
    decompose,
    exhaust,
    explain,
    monotone,
    never_matters,
    reachable,
    robust,
    share,
)
from gatefit.circuit.verify.attack import attack
from gatefit.circuit.verify.certificate import bound_reference
from gatefit.circuit.verify.decide import Outcome, decide, replay
from gatefit.circuit.verify.domain import Domain
from gatefit.circuit.verify.encode import Encoding
from gatefit.circuit.verify.pose import posed, state_always
from gatefit.circuit.verify.problem import Problem, domain_of
from gatefit.circuit.verify.rows import read_row
from gatefit.circuit.verify.sat import Refutation, Solution, ask
from gatefit.circuit.verify.supports import Bound
from verify_cases import all_points, answers, case, margins, posed_at_random, random_encoder, small_circuit, tolerance


def same(circuit: Any, found: np.ndarray, own: Any) -> np.ndarray:
    """Where the answers count as those of a row."""
    return np.abs(found - own) <= 0.6 if circuit.readout.gives_value else found == own


def at(circuit: Any, domain: Domain, x: Any) -> tuple[np.ndarray, Any]:
    point = domain.locate(read_row(circuit, x)[1][None])[0]
    return point, answers(circuit, domain, point[None])[0]


def check_robust(rng: np.random.Generator) -> None:
    circuit, domain, x = case(rng)
    point, own = at(circuit, domain, x)
    points, _ = all_points(
        Problem(domain, (), [np.union1d(f.usual, point[i]) for i, f in enumerate(domain.features)], ())
    )
    how = rng.choice(["changes", "levels", "within"])
    numbers = [i for i, feature in enumerate(domain.features) if feature.kind == "number"]
    given: dict[str, Any]
    if how == "changes" or not numbers:
        given = {"changes": int(rng.integers(0, 4))}
        near = (points != point).sum(axis=1) <= given["changes"]
    else:
        row = read_row(circuit, x)[0]
        near = np.ones(len(points), bool)
        for i in range(len(domain.features)):
            if i not in numbers or row[i] is None or (how == "within" and i != numbers[0]):
                near &= points[:, i] == point[i]
        levels, amount = int(rng.integers(0, 3)), float(rng.choice([0.0, 0.3, 1.0, 2.5]))
        for i in numbers if how == "levels" else numbers[:1]:
            feature = domain.features[i]
            if row[i] is None:
                continue
            own_level = sum(row[i] > t for t in feature.thresholds)
            edges = [-math.inf, *feature.thresholds, math.inf]
            reach = {
                level
                for level in range(len(edges) - 1)
                if (abs(level - own_level) <= levels if how == "levels"
                    else edges[level] < row[i] + amount and row[i] - amount <= edges[level + 1])
            } | {own_level}  # fmt: skip
            values = [
                k
                for k, value in enumerate(feature.values)
                if value.levels is not None and reach & set(range(value.levels[0], value.levels[1] + 1))
            ]
            near &= np.isin(points[:, i], values)
        given = {"levels": levels} if how == "levels" else {"within": {domain.features[numbers[0]].name: amount}}
    holds = bool(same(circuit, answers(circuit, domain, points[near]), own).all())
    answer = robust(circuit, x, tolerance=tolerance(circuit), timeout=None, **given)
    assert isinstance(answer, Proved if holds else Counterexample), (given, holds, answer)
    if isinstance(answer, Counterexample):
        assert not same(circuit, np.array([_number(circuit, answer.example.answer)]), own).any()
        assert "changes" not in given or 1 <= answer.changes <= given["changes"]


def _number(circuit: Any, answer: Any) -> Any:
    return answer if circuit.readout.gives_value else int(answer)


def everything(circuit: Any, domain: Domain, point: np.ndarray) -> np.ndarray:
    allowed = [np.union1d(f.usual, point[i]) for i, f in enumerate(domain.features)]
    return all_points(Problem(domain, (), allowed, ()))[0]


def check_closest(rng: np.random.Generator) -> None:
    circuit, domain, x = case(rng)
    point, own = at(circuit, domain, x)
    points = everything(circuit, domain, point)
    found = answers(circuit, domain, points)
    target = None
    turned = ~same(circuit, found, own)
    if not circuit.readout.gives_value and rng.random() < 0.5:
        target = int(rng.choice([k for k in range(circuit.readout.classes) if k != own]))
        turned = found == target
    answer = closest(circuit, x, target=target, tolerance=tolerance(circuit), timeout=None)
    if not turned.any():
        assert isinstance(answer, Proved)
        return
    assert isinstance(answer, Counterexample)
    assert answer.nearest
    assert answer.changes == (points[turned] != point).sum(axis=1).min()
    if target is not None:
        assert answer.example.answer == target


def check_explain(rng: np.random.Generator) -> None:
    circuit, domain, x = case(rng)
    point, own = at(circuit, domain, x)
    points = everything(circuit, domain, point)
    kept = same(circuit, answers(circuit, domain, points), own)
    narrow = explain(circuit, x, widen=False, tolerance=tolerance(circuit), timeout=None)
    wide = explain(circuit, x, why_not=False, tolerance=tolerance(circuit), timeout=None)
    for answer in (narrow, wide):
        assert isinstance(answer, Explanation)
        assert answer.minimal
        because = {domain.names[condition.feature]: condition.values for condition in answer.because}
        inside = {i: np.isin(points[:, i], values) for i, values in because.items()}
        assert kept[np.all([np.ones(len(points), bool), *inside.values()], axis=0)].all()
        for dropped in because:
            rest = [mask for i, mask in inside.items() if i != dropped]
            assert not kept[np.all([np.ones(len(points), bool), *rest], axis=0)].all()
    assert isinstance(narrow, Explanation)
    assert isinstance(wide, Explanation)
    assert [c.feature for c in narrow.because] == [c.feature for c in wide.because]
    assert all(len(c.values) == 1 for c in narrow.because)
    assert wide.widest
    assert not narrow.widest
    for condition in wide.because:  # as wide as it can be, by one more value at the edge or one more category
        i = domain.names[condition.feature]
        feature = domain.features[i]
        others = [np.isin(points[:, domain.names[c.feature]], c.values) for c in wide.because if c is not condition]
        for value in np.setdiff1d(feature.usual, condition.values).tolist():
            number = feature.values[value].levels is not None and feature.values[point[i]].levels is not None
            if number and not {value - 1, value + 1} & set(condition.values):
                continue
            mask = np.all([np.isin(points[:, i], [*condition.values, value]), *others], axis=0)
            assert not kept[mask].all()


@pytest.fixture
def blind(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The search for reasons with one sample, nothing exhausted and nothing climbed: nearly every guess is wrong."""
    module = import_module("gatefit.circuit.verify.explain")
    monkeypatch.setattr(module, "FEW", -1)
    monkeypatch.setattr(module, "SAMPLES", 1)
    monkeypatch.setattr(module, "climb", lambda *_, **__: None)
    return module


def deciding(calls: Callable[[int], bool]) -> Callable[..., Outcome]:
    """``decide`` that leaves all calls undecided but some, by their number."""
    numbers = count()

    def decides(problem: Problem, *args: Any, **options: Any) -> Outcome:
        return decide(problem, *args, **options) if calls(next(numbers)) else Outcome(left=[0])

    return decides


@pytest.mark.parametrize("seeds", [range(2, 4), pytest.param(range(4, 44), marks=pytest.mark.outside)], ids=str)
def test_wrong_guesses_are_undone_by_the_proof(
    seeds: range, blind: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    undone = 0

    def counted(*args: Any, **options: Any) -> Outcome:
        nonlocal undone
        outcome = decide(*args, **options)
        undone += outcome.found is not None
        return outcome

    monkeypatch.setattr(blind, "decide", counted)
    for seed in seeds:
        check_explain(np.random.default_rng((11, seed)))
    assert undone >= len(seeds) // 2


def test_a_solver_at_every_step_finds_minimal_reasons(blind: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(3):
        rng = np.random.default_rng((12, seed))
        circuit, domain, x = case(rng)
        point, own = at(circuit, domain, x)
        points = everything(circuit, domain, point)
        kept = same(circuit, answers(circuit, domain, points), own)
        monkeypatch.setattr(blind, "decide", deciding(lambda call: call > 0))
        answer = explain(circuit, x, widen=False, why_not=False, tolerance=tolerance(circuit), timeout=None)
        assert isinstance(answer, Explanation)
        assert answer.minimal
        inside = {c.feature: np.isin(points[:, domain.names[c.feature]], c.values) for c in answer.because}
        assert kept[np.all([np.ones(len(points), bool), *inside.values()], axis=0)].all()
        for dropped in inside:
            rest = [mask for name, mask in inside.items() if name != dropped]
            assert not kept[np.all([np.ones(len(points), bool), *rest], axis=0)].all()


def test_a_widened_reason_that_is_not_proved_is_left_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    module = import_module("gatefit.circuit.verify.explain")
    for seed in range(3):
        circuit, _, x = case(np.random.default_rng((13, seed)))
        options = {"why_not": False, "tolerance": tolerance(circuit), "timeout": None}
        monkeypatch.setattr(module, "decide", decide)
        plain = explain(circuit, x, widen=False, **options)
        monkeypatch.setattr(module, "decide", deciding(lambda call: call == 0))
        wide = explain(circuit, x, **options)
        assert isinstance(plain, Explanation)
        assert isinstance(wide, Explanation)
        assert wide.because == plain.because
        assert wide.minimal


def test_a_widened_reason_that_is_too_hard_is_as_wide_as_can_be_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    module = import_module("gatefit.circuit.verify.explain")
    between = 0
    for seed in range(3, 9):
        circuit, domain, x = case(np.random.default_rng((14, seed)))
        options = {"why_not": False, "tolerance": tolerance(circuit), "timeout": None}
        monkeypatch.setattr(module, "decide", decide)
        plain, wide = (explain(circuit, x, widen=widen, **options) for widen in (False, True))
        assert isinstance(plain, Explanation)
        assert isinstance(wide, Explanation)
        point, own = at(circuit, domain, x)
        points = everything(circuit, domain, point)

        def inside(answer: Explanation, points: np.ndarray = points, domain: Domain = domain) -> np.ndarray:
            own = [np.isin(points[:, domain.names[c.feature]], c.values) for c in answer.because]
            return np.all([np.ones(len(points), bool), *own], axis=0)

        most = 2 * int(inside(plain).sum())
        monkeypatch.setattr(module.exhaust, "most_points", lambda _, most=most: most)
        monkeypatch.setattr(module, "decide", deciding(lambda call: call != 1))
        limited = explain(circuit, x, **options)
        monkeypatch.undo()
        assert isinstance(limited, Explanation)
        assert limited.widest == (not limited.because)
        assert inside(limited).sum() <= most
        assert same(circuit, answers(circuit, domain, points[inside(limited)]), own).all()
        assert np.all(inside(limited) >= inside(plain))
        between += inside(plain).sum() < inside(limited).sum() < inside(wide).sum()
    assert between


def test_points_are_remembered_nearer_to_the_row() -> None:
    module = import_module("gatefit.circuit.verify.explain")
    nearer = 0
    for seed in range(4):
        circuit, domain, x = case(np.random.default_rng((15, seed)))
        point, own = at(circuit, domain, x)
        points = everything(circuit, domain, point)
        turned = points[~same(circuit, answers(circuit, domain, points), own)]
        if not len(turned):
            continue
        row, _ = read_row(circuit, x)
        asked = posed(
            state_always(circuit, row, domain.usual_and(point), domain, tolerance(circuit)), (circuit,), domain
        )
        search = module.Search(asked, Effort(), 0)
        far = turned[np.argmax((turned != point).sum(axis=1))]
        search.remember(far[None])
        search.confirm()
        assert not same(circuit, answers(circuit, domain, search.pool), own).any()
        assert np.all((search.pool >= np.minimum(far, point)) & (search.pool <= np.maximum(far, point)))
        nearer += (search.pool != point).sum(axis=1).min() < (far != point).sum()
        search.pool[0] = point
        with pytest.raises(AssertionError, match="does not confirm"):
            search.confirm()
    assert nearer


def check_never_matters(rng: np.random.Generator) -> None:
    circuit, domain, _ = case(rng)
    i = int(rng.integers(len(domain.features)))
    margin = int(rng.integers(0, 3))
    points, _ = all_points(Problem(domain, (), domain.usual(), ()))
    found = answers(circuit, domain, points)
    strong = np.ones(len(points), bool) if circuit.readout.gives_value else margins(circuit, domain, points) >= margin
    others = np.delete(points, i, axis=1)
    _, group = np.unique(others, axis=0, return_inverse=True)
    matters = False
    for g in np.unique(group):
        values = found[(group == g) & strong]
        if values.size:
            spread = values.max() - values.min()
            matters |= bool(spread > margin) if circuit.readout.gives_value else len(set(values.tolist())) > 1
    answer = never_matters(circuit, domain.features[i].name, margin=margin, timeout=None)
    assert isinstance(answer, Counterexample if matters else Proved)
    if isinstance(answer, Counterexample):
        assert answer.other is not None
        assert list(answer.changed) == [domain.features[i].name]
        if not circuit.readout.gives_value:
            assert answer.example.answer != answer.other.answer


def check_monotone(rng: np.random.Generator) -> None:
    while True:
        circuit, domain, _ = case(rng)
        numbers = [i for i, feature in enumerate(domain.features) if feature.kind == "number"]
        if numbers:
            break
    i, increasing = int(rng.choice(numbers)), bool(rng.random() < 0.5)
    levels = domain.features[i].levels()
    points, _ = all_points(Problem(domain, (), domain.usual(), ()))
    points = points[np.isin(points[:, i], levels)]
    found = answers(circuit, domain, points)
    target = None if circuit.readout.gives_value else int(rng.integers(circuit.readout.classes))
    fails = False
    order = np.lexsort((points[:, i] if increasing else -points[:, i], *np.delete(points, i, axis=1).T))
    points, found = points[order], found[order]
    for s in range(len(points)):
        for t in range(s + 1, len(points)):
            if not np.array_equal(np.delete(points[s], i), np.delete(points[t], i)):
                break
            fails |= bool(found[t] < found[s]) if target is None else bool(found[s] == target and found[t] != target)
    name = domain.features[i].name
    answer = monotone(circuit, name, target=target, increasing=increasing, timeout=None)
    assert isinstance(answer, Counterexample if fails else Proved)


def check_agree(rng: np.random.Generator) -> None:
    encoder = random_encoder(rng)
    one = small_circuit(rng, encoder, "group_sum")
    two = one if rng.random() < 0.2 else small_circuit(rng, encoder, "group_sum")
    if one.inputs != two.inputs or one.readout.classes != two.readout.classes:
        return
    domain = domain_of(one, two)
    region = None
    if rng.random() < 0.5:
        feature = domain.features[0]
        value = feature.values[0]
        region = {feature.name: (None, value.high) if value.levels else set(value.categories)}
    points, _ = all_points(Problem(domain, (), domain.region(region), ()))
    equal = bool((answers(one, domain, points) == answers(two, domain, points)).all())
    answer = agree(one, two, region, timeout=None)
    assert isinstance(answer, Proved if equal else Counterexample)
    if isinstance(answer, Counterexample):
        assert answer.other is not None
        assert answer.example.answer != answer.other.answer


def check_reachable(rng: np.random.Generator) -> None:
    circuit, domain, _ = case(rng, str(rng.choice(["group_sum", "linear"])))
    points, _ = all_points(Problem(domain, (), domain.usual(), ()))
    found = set(answers(circuit, domain, points).tolist())
    answer = reachable(circuit, timeout=None)
    assert isinstance(answer, Reachable)
    for name, own in answer.classes.items():
        assert isinstance(own, Counterexample if name in found else Proved)


def check_bounds(rng: np.random.Generator) -> None:
    circuit, domain, _ = case(rng, "affine")
    points, _ = all_points(Problem(domain, (), domain.usual(), ()))
    found = answers(circuit, domain, points)
    answer = bounds(circuit, timeout=None)
    assert isinstance(answer, Bounds)
    assert answer.exact
    assert (answer.low, answer.high) == (found.min(), found.max())
    assert (answer.lowest.answer, answer.highest.answer) == (found.min(), found.max())
    assert all(isinstance(proof, Proved) for proof in answer.proofs)


def check_share(rng: np.random.Generator) -> None:
    circuit, domain, _ = case(rng, "group_sum")
    target = int(rng.integers(circuit.readout.classes))
    points, _ = all_points(Problem(domain, (), domain.usual(), ()))
    weights = np.ones(len(points))
    for i, feature in enumerate(domain.features):
        weights *= np.array([value.weight for value in feature.values])[points[:, i]]
    exact = weights[answers(circuit, domain, points) == target].sum() / weights.sum()
    answer = share(circuit, target, samples=5_000, seed=int(rng.integers(99)))
    assert isinstance(answer, Estimate)
    assert answer.low <= exact <= answer.high


CHECKS: tuple[Callable[[np.random.Generator], None], ...] = (
    check_robust,
    check_closest,
    check_explain,
    check_never_matters,
    check_monotone,
    check_agree,
    check_reachable,
    check_bounds,
    check_share,
)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__.removeprefix("check_"))
def test_answers_equal_brute_force(check: Callable[[np.random.Generator], None]) -> None:
    for seed in range(4):
        check(np.random.default_rng((7, seed)))


@pytest.mark.outside
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__.removeprefix("check_"))
def test_a_thousand_answers_equal_brute_force(check: Callable[[np.random.Generator], None]) -> None:
    for seed in range(112):  # times nine questions
        check(np.random.default_rng((8, seed)))


def check_engines(rng: np.random.Generator) -> None:
    """Each engine by itself against every point, alternative by alternative."""
    problem = posed_at_random(rng).problem
    points, other = all_points(problem)
    totals = problem.evaluate(points, other)
    encoding = Encoding(problem)
    bound = Bound(encoding)
    for number, alternative in enumerate(problem.alternatives):
        alone = Problem(
            problem.domain, problem.models, problem.allowed, (alternative,), problem.base, problem.changes,
            problem.second, problem.rising, problem.totals,
        )  # fmt: skip
        exists = bool((alone.satisfied(totals) >= 0).any())
        if bound.refutes(alternative):
            assert not exists
            assert bound_reference(encoding, alternative)
        for forms in (alternative.forms, (*alternative.forms, *alternative.implied)):
            answer = ask(encoding, forms, Effort())
            assert isinstance(answer, Solution if exists else Refutation), (number, exists)
            if isinstance(answer, Solution):
                replay(alone, exhaust.Found(0, answer.point, answer.other))
        drawn = attack(alone, Effort(), seed=number)  # what it finds is there; that it finds nothing says nothing
        if drawn is not None:
            replay(alone, drawn)
        for kernel in ("engine", "words"):
            found = exhaust.try_all(alone, kernel=kernel)
            assert (found is not None) == exists
            if isinstance(found, exhaust.Found):
                replay(alone, found)
        if decompose.serves(alone):
            tables = decompose.Tables(alone, encoding)
            for decided in (decompose.decompose(tables, [0]), decompose.decompose_reference(tables, [0])):
                assert (decided is not None) == exists
                if isinstance(decided, exhaust.Found):
                    replay(alone, decided)


def test_every_engine_equals_brute_force() -> None:
    for seed in range(12):
        check_engines(np.random.default_rng((9, seed)))


@pytest.mark.outside
def test_every_engine_equals_brute_force_on_many() -> None:
    for seed in range(300):
        check_engines(np.random.default_rng((10, seed)))
