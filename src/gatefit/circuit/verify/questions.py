"""Questions to a circuit, each answered with a proof, a counterexample, or neither, and why.

    robust          the answer to a row, whatever a few features become
    closest         the fewest features whose change turns it
    never_matters   one feature alone
    monotone        one number, raised
    agree           two circuits
    reachable       the classes
    bounds          the value of a regression
    share           an estimate by sampling, and called that

``timeout`` is in seconds, for one question; None means as long as it takes. What runs out of time is ``Undecided``.
"""

import math
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

from gatefit.circuit import simulate
from gatefit.circuit.ir import Circuit
from gatefit.circuit.prove.questions import Effort
from gatefit.circuit.verify import certificate as files
from gatefit.circuit.verify.answers import (
    Answer,
    Bounds,
    Counterexample,
    Estimate,
    Example,
    Proved,
    Reachable,
    Undecided,
)
from gatefit.circuit.verify.attack import attack
from gatefit.circuit.verify.decide import Outcome, decide, replay
from gatefit.circuit.verify.domain import Domain, Region
from gatefit.circuit.verify.exhaust import Found
from gatefit.circuit.verify.pose import (
    Posed,
    class_of,
    name_of,
    posed,
    region_words,
    resolve_domain,
    state_agree,
    state_limit,
    state_monotone,
    state_never,
    state_never_matters,
    state_robust,
    with_changes,
)
from gatefit.circuit.verify.problem import Alternative, Problem, model_of
from gatefit.circuit.verify.rows import encode, row_of

TIMEOUT: Final = 10.0
"""Seconds for one question, unless said otherwise."""
Folder = str | os.PathLike[str] | None


def effort_of(timeout: float | None) -> Effort:
    """What a question may cost; a time limit that is none is refused."""
    if timeout is None:
        return Effort()
    if isinstance(timeout, bool) or not isinstance(timeout, int | float | np.number) or not timeout > 0:
        raise ValueError(f"timeout must be a number of seconds > 0, or None for no limit, got {timeout!r:.80}")
    return Effort(deadline=math.inf if math.isinf(timeout) else time.monotonic() + float(timeout))


def settle(asked: Posed, effort: Effort, certificate: Folder = None, *, seed: int = 0) -> Answer:
    """The answer to a statement; a proof is written to a new folder if one is named."""
    path = None if certificate is None else Path(certificate)
    if path is not None:
        files.refuse_existing(path)
    start = time.monotonic()
    outcome = decide(asked.problem, effort, seed=seed, keep=path is not None)
    if outcome.found is not None:
        return counterexample(asked, outcome.found, time.monotonic() - start)
    if outcome.left:
        seconds = time.monotonic() - start
        return Undecided(asked.text, seconds, _reason(outcome, effort, seconds))
    if path is not None:
        files.write(path, asked, outcome)
    return Proved(asked.text, outcome.method, time.monotonic() - start, path)


def _reason(outcome: Outcome, effort: Effort, seconds: float) -> str:
    if effort.late:
        return f"not decided in {seconds:.1f} s; raise timeout"
    return f"{outcome.reason}; ask for less: fewer changes, a smaller region, or a smaller circuit"


def counterexample(asked: Posed, found: Found, seconds: float, nearest: bool | None = None) -> Counterexample:
    """A point in raw features, replayed by the definition of a circuit's meaning."""
    problem, circuits = asked.problem, asked.circuits
    replay(problem, found)
    row = row_of(problem.domain, found.point, asked.near)
    first = example(circuits[0], problem.domain, row, found.point)
    if problem.second is not None:
        second = found.point.copy()
        second[problem.second] = found.other
        name = problem.domain.features[problem.second].name
        other_row = row_of(problem.domain, second, (row, found.point))
        other = example(circuits[0], problem.domain, other_row, second)
        changed = {name: (first.row.get(name), other.row.get(name))}
        return Counterexample(asked.text, seconds, first, other, changed)
    if len(circuits) == 2:
        return Counterexample(asked.text, seconds, first, example(circuits[1], problem.domain, row, found.point))
    changed = {}
    if asked.near is not None:
        before, point = asked.near
        own = dict(zip(first.row, before, strict=True))
        moved = {problem.domain.features[i].name for i in np.flatnonzero(found.point != point)}
        if problem.domain.groups:
            changed = {name: (own[name], first.row[name]) for name in first.row if own[name] != first.row[name]}
        else:
            changed = {name: (own[name], first.row[name]) for name in first.row if name in moved}
    return Counterexample(asked.text, seconds, first, None, changed, nearest)


def example(circuit: Circuit, domain: Domain, row: tuple[Any, ...], point: np.ndarray) -> Example:
    """A row and what the circuit says to it, by ``circuit.simulate`` and the circuit's own encoder."""
    bits = encode(circuit, [row])
    if not np.array_equal(domain.locate(bits)[0], point):
        raise AssertionError(f"the row {row!r:.200} is not at the point it was made for; this is a defect, report it")
    scores = simulate.scores(circuit, bits)[0]
    answer = float(scores[0]) if circuit.readout.gives_value else name_of(circuit, int(scores.argmax()))
    if circuit.encoder is not None:
        names: tuple[str, ...] = circuit.encoder.feature_names
    else:
        names = circuit.input_names if len(set(circuit.input_names)) == circuit.inputs else ()
        names = names or tuple(f"x{i}" for i in range(circuit.inputs))
    return Example(dict(zip(names, row, strict=True)), answer, tuple(scores.tolist()), bits[0])


def robust(
    circuit: Circuit,
    x: Any,
    *,
    changes: int | None = None,
    levels: int | None = None,
    within: Mapping[Any, Any] | None = None,
    tolerance: float | None = None,
    domain: Domain | None = None,
    timeout: float | None = TIMEOUT,
    certificate: Folder = None,
    seed: int = 0,
) -> Answer:
    """Whether the answer to the row ``x`` stays the same when it changes a little.

    Arguments:
        circuit: what is asked.
        x: one row: a mapping of names to values, a sequence, or an array or frame of one row; bits without an encoder.
        changes: so many features may become anything (bits, where there is no encoder).
        levels: every number may move by so many of the encoder's thresholds; all else is fixed.
        within: these numbers may move by these amounts, ``{"age": 2}``; all else is fixed.
        tolerance: of a regression: by how much its value may move.
        domain: what features can be, if it is not what the encoder says.
        timeout: seconds for this question, and a fourth of them for what is known of fewer changes; None: no limit.
        certificate: a new folder for the proof, to be checked by ``gatefit verify --check``.
        seed: of the search for counterexamples; it affects speed, not what is true.
    """
    effort = effort_of(timeout)
    statement = state_robust(
        circuit, x, changes=changes, levels=levels, within=within, tolerance=tolerance, domain=domain
    )
    asked = posed(statement, (circuit,), resolve_domain((circuit,), domain))
    answer = settle(asked, effort, certificate, seed=seed)
    if isinstance(answer, Undecided) and changes is not None:
        return Undecided(answer.statement, answer.seconds, answer.reason, _known(asked, changes, timeout, seed))
    return answer


def _known(asked: Posed, changes: int, timeout: float | None, seed: int) -> str:
    """The most changes below ``changes`` that were shown not to matter, by what needs no solver.

    That was asked for nothing else, so it has a fourth of the time on top.
    """
    effort = effort_of(None if timeout is None else timeout / 4)
    for fewer in range(changes - 1, 0, -1):
        outcome = decide(with_changes(asked, fewer).problem, effort, seed=seed, solver=False)
        if outcome.found is None and not outcome.left:
            return f"robust to {fewer} change{'' if fewer == 1 else 's'}"
    return ""


def closest(
    circuit: Circuit,
    x: Any,
    *,
    target: Any = None,
    tolerance: float | None = None,
    domain: Domain | None = None,
    timeout: float | None = TIMEOUT,
    seed: int = 0,
) -> Answer:
    """The fewest features whose change turns the answer to the row ``x``, into ``target`` if that is given.

    A ``Counterexample`` says with ``nearest`` whether fewer were proved not to do. ``Proved``: no change does.
    """
    effort = effort_of(timeout)
    start = time.monotonic()
    own = resolve_domain((circuit,), domain)
    statement = state_robust(circuit, x, changes=len(own.features), tolerance=tolerance, domain=own)
    asked = _aimed(posed(statement, (circuit,), own), circuit, target)
    best = attack(asked.problem, effort, seed)
    best = None if best is None else _fewer(asked.problem, best)
    shown = 0
    while best is None or shown + 1 < _distance(asked.problem, best):
        if best is None and shown:
            # Nothing was found by chance: whether there is anything at all comes before how near it is.
            outcome = decide(asked.problem, effort, seed=seed)
            if outcome.found is None:
                seconds = time.monotonic() - start
                if outcome.left:
                    known = f"robust to {shown} change{'' if shown == 1 else 's'}"
                    return Undecided(asked.text, seconds, _reason(outcome, effort, seconds), known)
                return Proved(asked.text, outcome.method, seconds)
            best = _fewer(asked.problem, outcome.found)
            continue
        near = _aimed(with_changes(asked, shown + 1), circuit, target)
        outcome = decide(near.problem, effort, seed=seed)
        if outcome.found is not None:
            best = outcome.found
            break
        if outcome.left:
            break
        shown += 1
    seconds = time.monotonic() - start
    if best is None:
        known = f"robust to {shown} change{'' if shown == 1 else 's'}" if shown else ""
        return Undecided(asked.text, seconds, f"not decided in {seconds:.1f} s; raise timeout", known)
    distance = _distance(asked.problem, best)
    asked = _aimed(with_changes(asked, distance), circuit, target)
    return counterexample(asked, best, seconds, nearest=shown + 1 >= distance)


def _aimed(asked: Posed, circuit: Circuit, target: Any) -> Posed:
    """The question with the alternative that the answer is ``target``, if there is one."""
    if target is None:
        return asked
    from dataclasses import replace

    from gatefit.circuit.verify.problem import is_class

    number, problem = class_of(circuit, target), asked.problem
    assert problem.totals is not None
    if int(problem.totals.argmax()) == number:
        raise ValueError(f"the answer is {name_of(circuit, number)} already; leave target out, or name another class")
    aim = Alternative(str(name_of(circuit, number)), tuple(is_class(model_of(circuit).classes, number)))
    text = asked.text.replace("the answer stays", f"the answer is not {name_of(circuit, number)} but stays")
    return replace(asked, problem=replace(problem, alternatives=(aim,)), text=text)


def _distance(problem: Problem, found: Found) -> int:
    assert problem.base is not None
    return int((found.point != problem.base).sum())


def _fewer(problem: Problem, found: Found) -> Found:
    """The same with features put back, one by one, as long as the answer stays turned."""
    assert problem.base is not None
    point = found.point.copy()
    going = True
    while going:
        going = False
        moved = np.flatnonzero(point != problem.base)
        if moved.size <= 1:
            break
        trial = np.repeat(point[None], moved.size, axis=0)
        trial[np.arange(moved.size), moved] = problem.base[moved]
        which = problem.satisfied(problem.evaluate(trial))
        good = np.flatnonzero(which >= 0)
        if good.size:
            point, found, going = trial[good[0]], Found(int(which[good[0]]), trial[good[0]]), True
    return found


def never_matters(
    circuit: Circuit,
    feature: str | int,
    *,
    margin: int = 0,
    region: Region | None = None,
    domain: Domain | None = None,
    timeout: float | None = TIMEOUT,
    certificate: Folder = None,
    seed: int = 0,
) -> Answer:
    """Whether one feature alone can ever change the answer; a counterexample is a pair that differs in it alone.

    With a ``margin`` only answers count whose score is that much above every other one, at both of the pair; of a
    regression, only values that differ by more than the margin.
    """
    effort = effort_of(timeout)
    statement = state_never_matters(circuit, feature, margin=margin, region=region, domain=domain)
    asked = posed(statement, (circuit,), resolve_domain((circuit,), domain))
    return settle(asked, effort, certificate, seed=seed)


def monotone(
    circuit: Circuit,
    feature: str | int,
    *,
    target: Any = None,
    increasing: bool = True,
    region: Region | None = None,
    domain: Domain | None = None,
    timeout: float | None = TIMEOUT,
    certificate: Folder = None,
    seed: int = 0,
) -> Answer:
    """Whether raising a number alone never takes the answer away from ``target``, or never lowers a regression.

    ``increasing=False`` asks the same of lowering it. Of two classes, ``target`` is the second unless it is given.
    """
    effort = effort_of(timeout)
    statement = state_monotone(circuit, feature, target=target, increasing=increasing, region=region, domain=domain)
    asked = posed(statement, (circuit,), resolve_domain((circuit,), domain))
    return settle(asked, effort, certificate, seed=seed)


def agree(
    a: Circuit,
    b: Circuit,
    region: Region | None = None,
    *,
    domain: Domain | None = None,
    timeout: float | None = TIMEOUT,
    certificate: Folder = None,
    seed: int = 0,
) -> Answer:
    """Whether two circuits that read the same features give the same answers, in a region if one is given."""
    effort = effort_of(timeout)
    own = resolve_domain((a, b), domain)
    return settle(posed(state_agree(a, b, region, domain=own), (a, b), own), effort, certificate, seed=seed)


def reachable(
    circuit: Circuit,
    region: Region | None = None,
    *,
    domain: Domain | None = None,
    timeout: float | None = TIMEOUT,
    seed: int = 0,
) -> Answer:
    """For each class whether some input is answered with it; ``timeout`` is for each."""
    start = time.monotonic()
    own = resolve_domain((circuit,), domain)
    if circuit.readout.gives_value:
        raise TypeError(f"{circuit.readout.described} gives a value, not classes; ask for bounds")
    found = {}
    for k in range(circuit.readout.classes):
        name = name_of(circuit, k)
        asked = posed(state_never(circuit, name, region, domain=own), (circuit,), own)
        found[name] = settle(asked, effort_of(timeout), seed=seed)
    return Reachable("which classes can be the answer", time.monotonic() - start, found)


def bounds(
    circuit: Circuit,
    region: Region | None = None,
    *,
    domain: Domain | None = None,
    timeout: float | None = TIMEOUT,
    certificate: Folder = None,
    seed: int = 0,
) -> Answer:
    """The least and the largest value of a regression in a region, each proved; ``timeout`` is for both together.

    A certificate is a folder with two: ``low`` and ``high``.
    """
    start = time.monotonic()
    effort = effort_of(timeout)
    own = resolve_domain((circuit,), domain)
    if not circuit.readout.gives_value:
        raise TypeError(f"{circuit.readout.described} gives a class, not a value; ask reachable, robust or share")
    path = None if certificate is None else Path(certificate)
    if path is not None:
        files.refuse_existing(path)
    allowed = own.region(region)
    model = model_of(circuit)
    ends, seen, proofs, exact = [], [], [], True
    for above in (False, True):
        sign = 1 if above else -1
        reach = model.sums.high[0] if above else model.sums.low[0]
        best, point = _reached(Problem(own, (model,), allowed, ()), sign, seed)
        # Between what was seen and what no sum exceeds: halve, then the bound is proved once more, for its certificate.
        low, high = sign * best, sign * reach
        while low < high and not effort.late:
            middle = (low + high) // 2
            asked = posed(state_limit(circuit, sign * middle, above, allowed, own), (circuit,), own)
            outcome = decide(asked.problem, effort, seed=seed)
            if outcome.found is not None:
                replay(asked.problem, outcome.found)
                point = outcome.found.point
                low = max(middle + 1, sign * int(asked.problem.evaluate(point[None])[0, 0]))
            elif outcome.left:
                break
            else:
                high = middle
        exact &= low == high
        asked = posed(state_limit(circuit, sign * high, above, allowed, own), (circuit,), own)
        own_path = None if path is None else path / ("high" if above else "low")
        proofs.append(settle(asked, Effort() if high == sign * reach else effort, own_path, seed=seed))
        ends.append(float(circuit.readout.from_totals(np.array([[sign * high]]))[0, 0]))
        seen.append(example(circuit, own, row_of(own, point, None), point))
    order = slice(None) if ends[0] <= ends[1] else slice(None, None, -1)
    (low_end, high_end), (lowest, highest) = ends[order], seen[order]
    words = region_words(own, allowed)
    text = f"the value{' where ' + words if words else ''} is"
    return Bounds(text, time.monotonic() - start, low_end, high_end, lowest, highest, exact, tuple(proofs))


def _reached(problem: Problem, sign: int, seed: int) -> tuple[int, np.ndarray]:
    """A large total (small, with sign -1) and its point, found by climbing."""
    rng = np.random.default_rng((seed, 2))
    points = np.stack([values[rng.integers(0, values.size, 1024)] for values in problem.allowed], axis=1)
    totals = sign * problem.evaluate(points)[:, 0]
    best, point = int(totals.max()), points[int(totals.argmax())]
    where = np.repeat(np.arange(len(problem.allowed)), [values.size for values in problem.allowed])
    what = np.concatenate(problem.allowed)
    while where.size:
        moved = np.repeat(point[None], where.size, axis=0)
        moved[np.arange(where.size), where] = what
        totals = sign * problem.evaluate(moved)[:, 0]
        if int(totals.max()) <= best:
            break
        best, point = int(totals.max()), moved[int(totals.argmax())]
    return sign * best, point


def share(
    circuit: Circuit,
    target: Any,
    region: Region | None = None,
    *,
    domain: Domain | None = None,
    confidence: float = 0.99999,
    samples: int = 1_000_000,
    seed: int = 0,
) -> Estimate:
    """How much of a region is answered with ``target``: an estimate by sampling, with an interval.

    Every level of a number and every category that the encoder tells apart counts the same, and features are drawn
    independently: it is a share of possible inputs, not of the inputs that occur. The interval holds with at least the
    ``confidence`` whatever the share is: n · KL(sampled share, share) <= log(2 / (1 - confidence)), Chernoff's bound.
    """
    start = time.monotonic()
    own = resolve_domain((circuit,), domain)
    number = class_of(circuit, target)
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must be between 0 and 1, got {confidence!r:.80}")
    if not isinstance(samples, int) or isinstance(samples, bool) or samples < 1:
        raise ValueError(f"samples must be a whole number >= 1, got {samples!r:.80}")
    allowed = own.region(region)
    model = model_of(circuit)
    rng = np.random.default_rng((seed, 3))
    hits, left = 0, samples
    while left:
        size = min(left, 2**14)
        columns = []
        for feature, values in zip(own.features, allowed, strict=True):
            weights = np.array([feature.values[v].weight for v in values.tolist()], np.float64)
            columns.append(rng.choice(values, size, p=weights / weights.sum()))
        totals = model.engine.scores(own.bits(np.stack(columns, axis=1)))
        hits += int((totals.argmax(axis=1) == number).sum())
        left -= size
    low, high = _chernoff(hits, samples, confidence)
    text = posed(state_never(circuit, name_of(circuit, number), region, domain=own), (circuit,), own).text
    text = "the share of inputs answered with " + text.removeprefix("the answer is never ")
    return Estimate(text, time.monotonic() - start, hits / samples, low, high, confidence, samples)


def _chernoff(hits: int, samples: int, confidence: float) -> tuple[float, float]:
    limit, seen = math.log(2 / (1 - confidence)) / samples, hits / samples

    def far(share: float) -> bool:
        parts = [(seen, share), (1 - seen, 1 - share)]
        return sum(p * math.log(p / q) for p, q in parts if p > 0) > limit if 0 < share < 1 else True

    def edge(outside: float) -> float:
        inside = seen
        for _ in range(60):
            middle = (inside + outside) / 2
            inside, outside = (inside, middle) if far(middle) else (middle, outside)
        return outside

    return (0.0 if hits == 0 else edge(0.0)), (1.0 if hits == samples else edge(1.0))
