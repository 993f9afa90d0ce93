"""Statements: what a question says, in JSON and in words, and the problem that would refute it.

    {"question": name, "domain": …, "circuits": digests, "encoder": digest, and the question's own fields}

A statement together with the circuits says everything: ``pose`` makes the same problem of it every time, whoever asks.
That is what a certificate is checked by. Rows are raw features; regions are numbers of values (``Feature.values``), and
the words, which are made again too, say what they mean.
"""

import hashlib
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import combinations, permutations
from typing import Any, Final

import numpy as np
from jaxtyping import Int64

from gatefit.circuit.ir import Circuit
from gatefit.circuit.prove.certificate import circuit_digest
from gatefit.circuit.readout import MOST_TOTALS
from gatefit.circuit.verify.domain import Domain, Feature, Region
from gatefit.circuit.verify.problem import (
    Allowed,
    Alternative,
    Form,
    Problem,
    domain_of,
    is_class,
    model_of,
    not_class,
)
from gatefit.circuit.verify.rows import Row, condition, encode, read_row

Statement = dict[str, Any]


@dataclass(frozen=True, eq=False)
class Posed:
    """A statement, and the problem whose points would refute it."""

    statement: Statement
    text: str
    problem: Problem
    circuits: tuple[Circuit, ...]
    near: tuple[Row, Int64[np.ndarray, " features"]] | None = None
    """The row that was asked about, and its point."""


def encoder_digest(circuit: Circuit) -> str | None:
    """SHA-256 of what the encoder makes of features; not of the ranges that its data had."""
    if circuit.encoder is None:
        return None
    spec = circuit.encoder.to_spec()
    spec["state"] = {name: value for name, value in spec["state"].items() if name != "whole"}
    text = json.dumps(spec, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def answers_digest(circuit: Circuit) -> str:
    """SHA-256 of what the classes are called: a statement speaks of answers by name."""
    return hashlib.sha256(
        json.dumps([str(name_of(circuit, k)) for k in range(circuit.readout.classes)]).encode()
    ).hexdigest()


def pose(statement: Any, circuits: tuple[Circuit, ...]) -> Posed:
    """The problem of a statement about these circuits; a statement that is none, or about others, is a ValueError."""
    if not isinstance(statement, dict) or statement.get("question") not in QUESTIONS:
        raise ValueError(f"a statement names its question, one of {', '.join(QUESTIONS)}")
    make, fields, wanted = QUESTIONS[statement["question"]]
    if set(statement) != {*fields, *_COMMON}:
        raise ValueError(f"a statement of the question {statement['question']!r} has the fields {', '.join(fields)}")
    if len(circuits) != wanted:
        raise ValueError(f"the question {statement['question']!r} is about {wanted} circuits, got {len(circuits)}")
    for k, circuit in enumerate(circuits):
        if statement["circuits"] != [circuit_digest(c) for c in circuits]:
            raise ValueError(f"the statement is not about circuit {k + 1}: gates, wiring or readout are different")
        if statement["encoder"] != encoder_digest(circuit):
            raise ValueError("the statement is not about this encoder: features would become other bits")
        if statement["answers"] != answers_digest(circuit):
            raise ValueError("the statement is not about these answers: the classes have other names")
    domain = Domain.from_spec(statement["domain"], *circuits)
    return make(statement, circuits, domain)


_COMMON: Final = ("question", "domain", "circuits", "encoder", "answers")


def common(question: str, domain: Domain, circuits: tuple[Circuit, ...]) -> Statement:
    """The fields that every statement has."""
    return {
        "question": question,
        "domain": domain.to_spec(),
        **_digests(circuits),
    }


def _digests(circuits: tuple[Circuit, ...]) -> Statement:
    # Kept with each circuit, whose arrays are frozen: a batch asks for them once a row.
    for circuit in circuits:
        if "_digests" not in circuit.__dict__:
            found = circuit_digest(circuit), encoder_digest(circuit), answers_digest(circuit)
            circuit.__dict__["_digests"] = found
    known = [circuit.__dict__["_digests"] for circuit in circuits]
    return {"circuits": [digest for digest, _, _ in known], "encoder": known[0][1], "answers": known[0][2]}


def resolve_domain(circuits: tuple[Circuit, ...], domain: Domain | None) -> Domain:
    """The domain that was given, checked against the circuits, or theirs."""
    for circuit in circuits:
        model_of(circuit)
    if domain is None:
        return domain_of(*circuits)
    if not isinstance(domain, Domain):
        raise TypeError(f"domain must be a gatefit.verify.Domain, got {type(domain).__name__}")
    if domain.inputs != circuits[0].inputs or domain.encoder != circuits[0].encoder:
        raise ValueError("the domain was made for another circuit: it has other input bits or another encoder")
    return domain


def name_of(circuit: Circuit, number: int) -> Any:
    """What a class is called."""
    if circuit.labels is not None:
        return circuit.labels[number].item() if hasattr(circuit.labels[number], "item") else circuit.labels[number]
    return circuit.class_names[number] if circuit.class_names else number


def class_of(circuit: Circuit, target: Any) -> int:
    """The number of a class, given by its label, name or number."""
    classes = circuit.readout.classes
    if circuit.readout.gives_value:
        raise TypeError(f"{circuit.readout.described} gives a value, not classes; leave target out")
    for number in range(classes):
        if type(target) is not bool and target == name_of(circuit, number):
            return number
    if isinstance(target, str) and target in circuit.class_names:
        return circuit.class_names.index(target)
    named = circuit.labels is not None or bool(circuit.class_names)
    if isinstance(target, int | np.integer) and not isinstance(target, bool) and not named and 0 <= target < classes:
        return int(target)
    known = ", ".join(str(name_of(circuit, k)) for k in range(min(classes, 12)))
    raise ValueError(f"there is no class {target!r:.80}; the classes are {known}{', …' if classes > 12 else ''}")


def region_spec(domain: Domain, allowed: Allowed) -> dict[str, list[int]]:
    """The features that a region restricts, with the numbers of the values that it leaves them."""
    pairs = zip(domain.features, allowed, strict=True)
    return {f.name: values.tolist() for f, values in pairs if not np.array_equal(values, f.usual)}


def region_from(domain: Domain, spec: Any) -> Allowed:
    """The region that ``region_spec`` wrote, checked."""
    if not isinstance(spec, dict):
        raise ValueError(f"a region maps features to numbers of values, got {spec!r:.80}")
    allowed = domain.usual()
    for name, numbers in spec.items():
        i = domain.find(str(name))
        size = len(domain.features[i].values)
        if not isinstance(numbers, list) or not numbers or any(type(n) is not int for n in numbers):
            raise ValueError(f"a region lists numbers of values of {name!r}, got {numbers!r:.80}")
        if sorted(set(numbers)) != numbers or not 0 <= numbers[0] <= numbers[-1] < size:
            raise ValueError(f"feature {name!r} has values 0 to {size - 1}, ascending; got {numbers!r:.80}")
        allowed[i] = np.array(numbers, np.int64)
    return allowed


def region_words(domain: Domain, allowed: Allowed) -> str:
    """A region in words; empty if it is everything."""
    pairs = zip(domain.features, allowed, strict=True)
    parts = [condition(f, values) for f, values in pairs if not np.array_equal(values, f.usual)]
    return " and ".join(parts)


def _where(domain: Domain, allowed: Allowed) -> str:
    words = region_words(domain, allowed)
    return f" where {words}" if words else ""


# ---- one row: robust, and "always" for the region that an explanation is


def state_robust(
    circuit: Circuit,
    x: Any,
    *,
    changes: int | None = None,
    levels: int | None = None,
    within: Mapping[Any, Any] | None = None,
    tolerance: float | None = None,
    domain: Domain | None = None,
) -> Statement:
    """The statement that the answer to a row stays the same."""
    own = resolve_domain((circuit,), domain)
    given = {"changes": changes, "levels": levels, "within": within}
    if sum(value is not None for value in given.values()) != 1:
        raise ValueError(f"say how much may change by one of changes, levels and within, got {given}")
    for name, count in (("changes", changes), ("levels", levels)):
        if count is not None and (not isinstance(count, int | np.integer) or isinstance(count, bool) or count < 0):
            raise ValueError(f"{name} must be a whole number >= 0, got {count!r:.80}")
    row, _ = read_row(circuit, x)
    amounts = None if within is None else _amounts(own, within)
    return {
        **common("robust", own, (circuit,)),
        "row": list(row),
        "changes": None if changes is None else int(changes),
        "levels": None if levels is None else int(levels),
        "within": amounts,
        "tolerance": _tolerance(circuit, tolerance),
    }


def _amounts(domain: Domain, within: Any) -> dict[str, float]:
    if not isinstance(within, Mapping):
        raise TypeError(f"within is {{feature: amount}}, got {within!r:.80}")
    amounts = {}
    for key, amount in within.items():
        feature = domain.features[domain.find(key)]
        if feature.kind != "number":
            raise ValueError(
                f"feature {feature.name!r} is a {feature.kind}: it has no amount to change by; use changes"
            )
        amounts[feature.name] = _amount(amount, f"the amount of feature {feature.name!r}")
    return amounts


def _amount(value: Any, what: str) -> float:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0 or math.isinf(value):
        raise ValueError(f"{what} must be a finite number >= 0, got {value!r:.80}")
    return float(value)


def _tolerance(circuit: Circuit, tolerance: Any) -> float | None:
    if not circuit.readout.gives_value:
        if tolerance is not None:
            raise ValueError("tolerance is for regressions; the answer of this circuit is a class")
        return None
    if tolerance is None:
        raise ValueError(f"{circuit.readout.described} gives a value: say by how much it may move, tolerance=…")
    return _amount(tolerance, "tolerance")


def _pose_robust(statement: Statement, circuits: tuple[Circuit, ...], domain: Domain) -> Posed:
    circuit = circuits[0]
    row, point = _row(statement["row"], circuit, domain)
    changes, levels, within = statement["changes"], statement["levels"], statement["within"]
    if sum(value is not None for value in (changes, levels, within)) != 1:
        raise ValueError("a robust statement has one of changes, levels and within")
    allowed = [np.array([value], np.int64) for value in point]
    if within is not None:
        for name, amount in _amounts(domain, within).items():
            i = domain.find(name)
            raw = row[i]
            if raw is not None:
                low, high = _shifted(raw, -amount), _shifted(raw, amount)
                allowed[i] = np.union1d(domain.features[i].between(low, high), point[i])
        amounts = ", ".join(f"{name} moves by at most {amount:g}" for name, amount in within.items())
        how = f"where {amounts}" if amounts else "where nothing changes"
    elif levels is not None:
        if type(levels) is not int or levels < 0:
            raise ValueError(f"levels must be a whole number >= 0, got {levels!r:.80}")
        if not any(feature.kind == "number" for feature in domain.features):
            raise ValueError("levels moves numbers by thresholds, and no feature is a number; use changes")
        for i, feature in enumerate(domain.features):
            if feature.kind == "number" and row[i] is not None:
                at = _level(feature, row[i], int(point[i]))
                near = [
                    k
                    for k, value in enumerate(feature.values)
                    if value.levels is not None and value.levels[0] <= at + levels and value.levels[1] >= at - levels
                ]
                allowed[i] = np.union1d(np.array(near, np.int64), point[i])
        how = f"where every number moves by at most {levels} threshold{'' if levels == 1 else 's'}"
    else:
        if type(changes) is not int or changes < 0:
            raise ValueError(f"changes must be a whole number >= 0, got {changes!r:.80}")
        allowed = domain.usual_and(point)
        what = "bit" if circuit.encoder is None and not domain.groups else "feature"
        how = f"whatever {changes} {what}{'' if changes == 1 else 's'} become" + ("s" if changes == 1 else "")
    alternatives, totals, said = _differs(circuit, domain, point, statement["tolerance"])
    most = None if changes is None else min(changes, len(domain.features))
    problem = Problem(domain, (model_of(circuit),), allowed, alternatives, point, most, totals=totals)
    return Posed(statement, f"the answer stays {said} {how}", problem, circuits, (row, point))


def _shifted(raw: Any, amount: float) -> Any:
    """raw + amount, exactly."""
    from fractions import Fraction

    if isinstance(raw, float) and not math.isfinite(raw):
        return raw
    return Fraction(raw) + Fraction(amount)


def _level(feature: Feature, raw: Any, value: int) -> int:
    """How many thresholds a raw number exceeds; the encoder's, not only those that the circuit reads."""
    first, last = feature.values[value].levels or (0, 0)
    if first == last:
        return first
    return first + sum(bool(threshold < raw) for threshold in feature.thresholds[first:last])


def _row(spec: Any, circuit: Circuit, domain: Domain) -> tuple[Row, Int64[np.ndarray, " features"]]:
    features = circuit.inputs if circuit.encoder is None else circuit.encoder.features
    if not isinstance(spec, list) or len(spec) != features:
        raise ValueError(f"a row has {features} features, got {spec!r:.80}")
    if not all(value is None or isinstance(value, str | int | float) for value in spec):
        raise ValueError(f"a row holds numbers, strings and null, got {spec!r:.80}")
    row = tuple(spec)
    bits = encode(circuit, [row])
    return row, domain.locate(bits)[0]


def _differs(
    circuit: Circuit, domain: Domain, point: Int64[np.ndarray, " features"], tolerance: float | None
) -> tuple[tuple[Alternative, ...], Int64[np.ndarray, " totals"], str]:
    """The alternatives that the answer is another one than at a point, the totals there, and the answer in words."""
    model = model_of(circuit)
    totals = model.engine.scores(domain.bits(point[None]))[0]
    if not circuit.readout.gives_value:
        answer = int(totals.argmax())
        names = [str(name_of(circuit, k)) for k in range(model.classes)]
        return tuple(not_class(model.classes, answer, names)), totals, names[answer]
    value = float(circuit.readout.from_totals(totals[None])[0, 0])
    low, high = _totals_within(circuit, value, _tolerance(circuit, tolerance) or 0.0)
    one = np.ones(1, np.int64)
    above, below = Form(one, -(high + 1)), Form(-one, low - 1)
    said = f"within {tolerance:g} of {value:.10g}"
    return (Alternative("higher", (above,)), Alternative("lower", (below,))), totals, said


def _totals_within(circuit: Circuit, value: float, tolerance: float) -> tuple[int, int]:
    """The least and the largest total whose value is within a tolerance; values rise or fall with totals."""
    least, most = _range(circuit)
    values = circuit.readout.from_totals(np.arange(least, most + 1)[:, None])[:, 0]
    inside = np.flatnonzero(np.abs(values - value) <= tolerance)
    return least + int(inside[0]), least + int(inside[-1])


def _range(circuit: Circuit) -> tuple[int, int]:
    sums = model_of(circuit).sums
    least, most = sums.low[0], sums.high[0]
    if most - least > MOST_TOTALS:
        raise ValueError(f"the totals of {circuit.readout.described} run from {least} to {most}: too many to look at")
    return least, most


def state_always(circuit: Circuit, row: Row, allowed: Allowed, domain: Domain, tolerance: float | None) -> Statement:
    """The statement that everywhere in a region the answer is that to a row in it."""
    return {
        **common("always", domain, (circuit,)),
        "row": list(row),
        "region": region_spec(domain, allowed),
        "tolerance": tolerance,
    }


def _pose_always(statement: Statement, circuits: tuple[Circuit, ...], domain: Domain) -> Posed:
    circuit = circuits[0]
    row, point = _row(statement["row"], circuit, domain)
    allowed = region_from(domain, statement["region"])
    alternatives, totals, said = _differs(circuit, domain, point, statement["tolerance"])
    problem = Problem(domain, (model_of(circuit),), allowed, alternatives, point, totals=totals)
    return Posed(statement, f"the answer is {said}{_where(domain, allowed)}", problem, circuits, (row, point))


# ---- all inputs: one feature of two, two circuits, one class, one bound


def state_never_matters(
    circuit: Circuit, feature: str | int, *, margin: int = 0, region: Region | None = None, domain: Domain | None = None
) -> Statement:
    """The statement that one feature alone never decides."""
    own = resolve_domain((circuit,), domain)
    if circuit.readout.gives_value:
        margin = _amount(margin, "margin")  # type: ignore[assignment]
    elif not isinstance(margin, int | np.integer) or isinstance(margin, bool) or margin < 0:
        raise ValueError(f"margin must be a whole number of votes >= 0, got {margin!r:.80}")
    return {
        **common("never_matters", own, (circuit,)),
        "feature": own.features[own.find(feature)].name,
        "margin": float(margin) if circuit.readout.gives_value else int(margin),
        "region": region_spec(own, own.region(region)),
    }


def _pose_never_matters(statement: Statement, circuits: tuple[Circuit, ...], domain: Domain) -> Posed:
    circuit, margin = circuits[0], statement["margin"]
    second, allowed = domain.find(str(statement["feature"])), region_from(domain, statement["region"])
    model = model_of(circuit)
    name = domain.features[second].name
    if circuit.readout.gives_value:
        gap = _gap(circuit, _amount(margin, "margin"))
        pair = np.array([1, -1], np.int64)
        alternatives: tuple[Alternative, ...] = (Alternative("moves", (Form(pair, -gap),)),)
        text = f"{name} alone never moves the value by more than {margin:g}"
    else:
        if type(margin) is not int or margin < 0:
            raise ValueError(f"margin must be a whole number >= 0, got {margin!r:.80}")
        alternatives = tuple(
            _pair(model.classes, one, two, margin, f"{name_of(circuit, one)} and {name_of(circuit, two)}")
            for one, two in combinations(range(model.classes), 2)
        )
        text = f"{name} alone never changes the answer"
        text += f" between two that lead by {margin} or more" if margin else ""
    problem = Problem(domain, (model, model), allowed, alternatives, second=second)
    return Posed(statement, text + _where(domain, allowed), problem, circuits)


def _pair(classes: int, one: int, two: int, margin: int, name: str) -> Alternative:
    """The first point is answered with class one, the second with class two, each by a margin."""
    first = is_class(classes, one, margin, 0, 2 * classes)
    second = is_class(classes, two, margin, classes, 2 * classes)
    # What the two classes gain on each other between the points: outputs that are equal at both cancel.
    of = {**{("a", r): f for r, f in zip(_others(classes, one), first, strict=True)}}
    of |= {("b", r): f for r, f in zip(_others(classes, two), second, strict=True)}
    return Alternative(name, (*first, *second), (of["a", two] + of["b", one],))


def _others(classes: int, target: int) -> list[int]:
    return [k for k in range(classes) if k != target]


def _gap(circuit: Circuit, amount: float) -> int:
    """The least difference of totals whose values differ by more than an amount."""
    sums = circuit.readout.sums_for("verify")
    least, most = _range(circuit)
    if sums.scale == 0:
        return most - least + 1
    gap = int(amount / abs(sums.scale)) + 1
    while gap > 1 and (gap - 1) * abs(sums.scale) > amount:
        gap -= 1
    return gap


def state_monotone(
    circuit: Circuit,
    feature: str | int,
    *,
    target: Any = None,
    increasing: bool = True,
    region: Region | None = None,
    domain: Domain | None = None,
) -> Statement:
    """The statement that raising a number never takes the answer away from a class, or never lowers a value."""
    own = resolve_domain((circuit,), domain)
    found = own.features[own.find(feature)]
    if found.kind != "number":
        raise ValueError(f"feature {found.name!r} is a {found.kind}: it has no order, so nothing is monotone in it")
    if circuit.readout.gives_value:
        if target is not None:
            raise ValueError("target is for classes; the answer of this circuit is a value")
    elif target is not None:
        target = class_of(circuit, target)
    elif circuit.readout.classes == 2:
        target = 1
    else:
        raise ValueError(f"say which of {circuit.readout.classes} classes, target=…: the answer has no order by itself")
    if not isinstance(increasing, bool):
        raise TypeError(f"increasing must be True or False, got {increasing!r:.80}")
    return {
        **common("monotone", own, (circuit,)),
        "feature": found.name,
        "target": target,
        "increasing": increasing,
        "region": region_spec(own, own.region(region)),
    }


def _pose_monotone(statement: Statement, circuits: tuple[Circuit, ...], domain: Domain) -> Posed:
    circuit, increasing, target = circuits[0], statement["increasing"], statement["target"]
    second, allowed = domain.find(str(statement["feature"])), region_from(domain, statement["region"])
    feature, model = domain.features[second], model_of(circuit)
    allowed[second] = np.intersect1d(allowed[second], feature.levels())
    if not allowed[second].size or not isinstance(increasing, bool):
        raise ValueError(f"feature {feature.name!r} has no number in the region, or increasing is not true or false")
    verb = "raising" if increasing else "lowering"
    size = model.classes
    if circuit.readout.gives_value:
        sums = circuit.readout.sums_for("verify")
        up = 1 if (sums.scale > 0) == increasing else -1
        alternatives: tuple[Alternative, ...] = (Alternative("falls", (Form(np.array([up, -up], np.int64), -1),)),)
        if sums.scale == 0:
            alternatives = ()
        text = f"{verb} {feature.name} never lowers the value"
    else:
        if type(target) is not int or not 0 <= target < size:
            raise ValueError(f"target must be a class from 0 to {size - 1}, got {target!r:.80}")
        # The point that has the class, and the one that has lost it: lower and higher, or the other way round.
        has, lost = (0, size) if increasing else (size, 0)
        found = []
        for rival in _others(size, target):
            form = np.zeros(2 * size, np.int64)
            form[lost + rival], form[lost + target] = 1, -1
            loses = Form(form, -int(rival > target))
            holds = is_class(size, target, 0, has, 2 * size)
            found.append(
                Alternative(
                    str(name_of(circuit, rival)), (*holds, loses), (holds[_others(size, target).index(rival)] + loses,)
                )
            )
        alternatives = tuple(found)
        text = f"{verb} {feature.name} never takes the answer away from {name_of(circuit, target)}"
    problem = Problem(domain, (model, model), allowed, alternatives, second=second, rising=True)
    return Posed(statement, text + _where(domain, allowed), problem, circuits)


def state_agree(a: Circuit, b: Circuit, region: Region | None = None, *, domain: Domain | None = None) -> Statement:
    """The statement that two circuits give the same answers."""
    own = resolve_domain((a, b), domain)
    if [name_of(a, k) for k in range(a.readout.classes)] != [name_of(b, k) for k in range(b.readout.classes)]:
        raise ValueError("the circuits do not have the same classes in the same order")
    if a.readout.gives_value != b.readout.gives_value:
        raise ValueError("one circuit answers with a class and the other with a value; nothing to compare")
    return {**common("agree", own, (a, b)), "region": region_spec(own, own.region(region))}


def _pose_agree(statement: Statement, circuits: tuple[Circuit, ...], domain: Domain) -> Posed:
    a, b = circuits
    one, two = model_of(a), model_of(b)
    allowed = region_from(domain, statement["region"])
    if a.readout.gives_value:
        x, y = a.readout.sums_for("verify"), b.readout.sums_for("verify")
        if (x.scale, x.intercept) != (y.scale, y.intercept):
            raise ValueError("the circuits scale their sums differently: their values are not comparable as integers")
        signs = () if x.scale == 0 else (1, -1)
        alternatives = tuple(Alternative("differ", (Form(np.array([s, -s], np.int64), -1),)) for s in signs)
        text = "both circuits give the same value"
    else:
        found = []
        for p, q in permutations(range(one.classes), 2):
            pair = _pair(one.classes, p, q, 0, f"{name_of(a, p)} and {name_of(a, q)}")
            found.append(pair)
        alternatives = tuple(found)
        text = "both circuits give the same answer"
    problem = Problem(domain, (one, two), allowed, alternatives)
    return Posed(statement, text + _where(domain, allowed), problem, circuits)


def state_never(
    circuit: Circuit, target: Any, region: Region | None = None, *, domain: Domain | None = None
) -> Statement:
    """The statement that a class is never the answer."""
    own = resolve_domain((circuit,), domain)
    return {
        **common("never", own, (circuit,)),
        "target": class_of(circuit, target),
        "region": region_spec(own, own.region(region)),
    }


def _pose_never(statement: Statement, circuits: tuple[Circuit, ...], domain: Domain) -> Posed:
    circuit, target = circuits[0], statement["target"]
    model = model_of(circuit)
    if type(target) is not int or not 0 <= target < model.classes or circuit.readout.gives_value:
        raise ValueError(f"target must be a class from 0 to {model.classes - 1}, got {target!r:.80}")
    allowed = region_from(domain, statement["region"])
    name = str(name_of(circuit, target))
    problem = Problem(domain, (model,), allowed, (Alternative(name, tuple(is_class(model.classes, target))),))
    return Posed(statement, f"the answer is never {name}{_where(domain, allowed)}", problem, circuits)


def state_limit(circuit: Circuit, bound: int, above: bool, allowed: Allowed, domain: Domain) -> Statement:
    """The statement that the total is never above (or below) a bound."""
    return {
        **common("limit", domain, (circuit,)),
        "bound": int(bound),
        "above": above,
        "region": region_spec(domain, allowed),
    }


def _pose_limit(statement: Statement, circuits: tuple[Circuit, ...], domain: Domain) -> Posed:
    circuit, bound, above = circuits[0], statement["bound"], statement["above"]
    if type(bound) is not int or not isinstance(above, bool) or not circuit.readout.gives_value:
        raise ValueError("a limit is a whole number and a direction, of a circuit that gives a value")
    allowed = region_from(domain, statement["region"])
    sign = 1 if above else -1
    form = Form(np.array([sign], np.int64), -sign * bound - 1)
    value = float(circuit.readout.from_totals(np.array([[bound]]))[0, 0])
    scale = circuit.readout.sums_for("verify").scale
    word = "above" if above == (scale >= 0) else "below"
    problem = Problem(domain, (model_of(circuit),), allowed, (Alternative("beyond", (form,)),))
    return Posed(statement, f"the value is never {word} {value:.10g}{_where(domain, allowed)}", problem, circuits)


QUESTIONS: Final[dict[str, tuple[Callable[[Statement, tuple[Circuit, ...], Domain], Posed], tuple[str, ...], int]]] = {
    "robust": (_pose_robust, ("row", "changes", "levels", "within", "tolerance"), 1),
    "always": (_pose_always, ("row", "region", "tolerance"), 1),
    "never_matters": (_pose_never_matters, ("feature", "margin", "region"), 1),
    "monotone": (_pose_monotone, ("feature", "target", "increasing", "region"), 1),
    "agree": (_pose_agree, ("region",), 2),
    "never": (_pose_never, ("target", "region"), 1),
    "limit": (_pose_limit, ("bound", "above", "region"), 1),
}
"""For each question: what makes its problem, its own fields, and how many circuits it is about."""


def posed(statement: Statement, circuits: tuple[Circuit, ...], domain: Domain) -> Posed:
    """The problem of a statement that was made for these circuits and this domain: nothing is compared again."""
    return QUESTIONS[statement["question"]][0](statement, circuits, domain)


def with_changes(one: Posed, changes: int) -> Posed:
    """The same robust statement with another number of changes."""
    return posed({**one.statement, "changes": changes}, one.circuits, one.problem.domain)
