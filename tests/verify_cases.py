"""Small circuits with domains of every kind, and what brute force says of each question about them."""

import itertools
from typing import Any

import numpy as np

from gatefit.circuit import simulate
from gatefit.circuit.ir import Circuit
from gatefit.circuit.readout import Affine, GroupSum, Linear, Readout
from gatefit.circuit.verify.domain import Domain
from gatefit.circuit.verify.pose import (
    Posed,
    posed,
    state_agree,
    state_always,
    state_monotone,
    state_never,
    state_never_matters,
    state_robust,
)
from gatefit.circuit.verify.problem import Problem, domain_of
from gatefit.circuit.verify.rows import read_row
from gatefit.encoders import Encoder, OneHot, Table, Thermometer, Threshold
from gatefit.gates import Gate

WORDS = ("red", "green", "blue", "grey")


def loans(**fields: Any) -> Circuit:
    """Yes if income > 30 and (debt <= 10 or job = clerk): one vote each way."""
    rows = {"income": [20, 40, 60, 80], "debt": [5, 15, 25, 35], "job": ["baker", "clerk", "clerk", "baker"]}
    encoder = Table(thresholds=3).fit(rows)
    names = {name: i for i, name in enumerate(encoder.names)}
    n = encoder.bits
    gates = [Gate.NOT_A_OR_B, Gate.AND, Gate.NOT_A]
    operands = [[names["debt > 10"], names["income > 30"], n + 1], [names["job = clerk"], n, n + 1]]
    parts = {"outputs": [n + 1, n + 2], "readout": GroupSum([1, 0], [0, 0]), "class_names": ("no", "yes")}
    return Circuit(n, gates, operands, encoder=encoder, **{**parts, **fields})


def random_encoder(rng: np.random.Generator) -> Encoder | None:
    """A small fitted encoder of some kind; None for bits alone."""
    kind = rng.choice(["none", "table", "thermometer", "one-hot", "threshold"])
    rows = 30
    if kind == "none":
        return None
    if kind == "thermometer":
        order = str(rng.choice(["feature", "threshold"]))
        return Thermometer(int(rng.integers(1, 4)), order=order).fit(rng.integers(0, 5, (rows, 3)).astype(float))
    if kind == "threshold":
        return Threshold(0.5).fit(rng.random((rows, int(rng.integers(2, 6)))))
    if kind == "one-hot":
        columns = {"a": rng.choice(WORDS[:3], rows).tolist(), "b": rng.choice([1, 2, 7], rows).tolist()}
        return OneHot(str(rng.choice(["ignore", "error"]))).fit(columns)
    age = rng.integers(0, 4, rows).astype(float)
    if rng.random() < 0.5:
        age[:3] = np.nan
    colour: list[Any] = rng.choice(WORDS[: rng.integers(2, 5)], rows).tolist()
    if rng.random() < 0.5:
        colour[0] = None
    table = {"age": age, "colour": colour, "member": rng.random(rows) < 0.5, "size": rng.random(rows)}
    return Table(thresholds=int(rng.integers(1, 4))).fit(table)


def small_readout(rng: np.random.Generator, outputs: int, kind: str) -> Readout:
    """A readout whose sums are exact."""
    classes = int(rng.integers(2, 4))
    if kind == "affine":
        return Affine(outputs, int(rng.integers(-3, 4)), float(rng.choice([-0.5, 0.25, 2.0])), 1.5)
    if kind == "linear":
        return Linear(rng.integers(-3, 4, (classes, outputs)) / 4, rng.integers(-2, 3, classes) / 4)
    return GroupSum(rng.integers(0, classes, outputs), rng.integers(-1, 2, classes))


def small_circuit(rng: np.random.Generator, encoder: Encoder | None, kind: str = "group_sum") -> Circuit:
    """A random circuit over the encoder's bits (or a few bits), with enough outputs to have something to say."""
    inputs = int(rng.integers(3, 9)) if encoder is None else encoder.bits
    gates = int(rng.integers(4, 40))
    own = inputs + np.arange(gates)
    operands = rng.integers(0, np.broadcast_to(own, (2, gates)))
    outputs = rng.integers(0, inputs + gates, int(rng.integers(4, 14)))
    return Circuit(
        inputs,
        rng.integers(0, 16, gates).astype(np.uint8),
        operands.astype(np.int32),
        outputs.astype(np.int32),
        small_readout(rng, outputs.size, kind),
        encoder=encoder,
    )


def all_points(problem: Problem) -> tuple[np.ndarray, np.ndarray | None]:
    """Every point of a problem's space, and with a second point the values of its own feature."""
    ranges = [values.tolist() for values in problem.allowed]
    if problem.second is not None:
        ranges.append(problem.allowed[problem.second].tolist())
    rows = np.array(list(itertools.product(*ranges)), np.int64).reshape(-1, len(ranges))
    features = len(problem.allowed)
    points, other = rows[:, :features], None if problem.second is None else rows[:, -1]
    keep = np.ones(len(rows), bool)
    if problem.changes is not None and problem.base is not None:
        keep &= (points != problem.base).sum(axis=1) <= problem.changes
    if problem.rising and problem.second is not None:
        keep &= other >= points[:, problem.second]
    return points[keep], None if other is None else other[keep]


def answers(circuit: Circuit, domain: Domain, points: np.ndarray) -> np.ndarray:
    """Class numbers or values at points, by the definition of a circuit's meaning."""
    bits = domain.bits(points)
    if circuit.readout.gives_value:
        return simulate.scores(circuit, bits)[:, 0]
    return simulate.predict_classes(circuit, bits)


def margins(circuit: Circuit, domain: Domain, points: np.ndarray) -> np.ndarray:
    """How far the winning total is above the next, at points."""
    sums = circuit.readout.sums()
    assert sums is not None
    totals = sums.totals(simulate.simulate(circuit, domain.bits(points)))
    ordered = np.sort(totals, axis=1)
    return ordered[:, -1] - ordered[:, -2]


def random_row(rng: np.random.Generator, circuit: Circuit) -> Any:
    """A raw row that the circuit's encoder takes."""
    encoder = circuit.encoder
    if encoder is None:
        return rng.integers(0, 2, circuit.inputs)
    if isinstance(encoder, Threshold | Thermometer):
        return rng.random(encoder.features) * (1 if isinstance(encoder, Threshold) else 5)
    if isinstance(encoder, OneHot):
        return {
            "a": str(rng.choice(encoder.to_spec()["state"]["columns"][0]["categories"])),
            "b": int(rng.choice([1, 7])),
        }
    row: dict[str, Any] = {
        "age": float(rng.integers(0, 4)),
        "colour": str(rng.choice(WORDS)),
        "member": bool(rng.random() < 0.5),
        "size": float(rng.random()),
    }
    if rng.random() < 0.2:
        row["age"] = None
    return row


KINDS = ("group_sum", "group_sum", "linear", "affine")


def case(rng: np.random.Generator, kind: str | None = None) -> tuple[Any, Domain, Any]:
    circuit = small_circuit(rng, random_encoder(rng), kind or str(rng.choice(KINDS)))
    return circuit, domain_of(circuit), random_row(rng, circuit)


def tolerance(circuit: Any) -> float | None:
    return 0.6 if circuit.readout.gives_value else None


def posed_at_random(rng: np.random.Generator) -> Posed:
    """A problem of some kind, about a small circuit."""
    while True:
        circuit, domain, x = case(rng)
        kind = rng.choice(["robust", "always", "never_matters", "monotone", "never", "agree"])
        classes = not circuit.readout.gives_value
        if kind == "robust":
            statement = state_robust(circuit, x, changes=int(rng.integers(1, 4)), tolerance=tolerance(circuit))
        elif kind == "always":
            row, bits = read_row(circuit, x)
            point = domain.locate(bits[None])[0]
            allowed = [f.usual if rng.random() < 0.6 else point[i : i + 1] for i, f in enumerate(domain.features)]
            statement = state_always(circuit, row, allowed, domain, tolerance(circuit))
        elif kind == "never_matters":
            margin = int(rng.integers(0, 3))
            statement = state_never_matters(circuit, int(rng.integers(len(domain.features))), margin=margin)
        elif kind == "monotone" and any(feature.kind == "number" for feature in domain.features):
            names = [feature.name for feature in domain.features if feature.kind == "number"]
            target = int(rng.integers(circuit.readout.classes)) if classes else None
            increasing = bool(rng.random() < 0.5)
            statement = state_monotone(circuit, str(rng.choice(names)), target=target, increasing=increasing)
        elif kind == "never" and classes:
            statement = state_never(circuit, int(rng.integers(circuit.readout.classes)))
        elif kind == "agree" and classes:
            other = small_circuit(rng, circuit.encoder)
            if other.inputs != circuit.inputs or other.readout.classes != circuit.readout.classes:
                continue
            both = domain_of(circuit, other)
            return posed(state_agree(circuit, other, domain=both), (circuit, other), both)
        else:
            continue
        return posed(statement, (circuit,), domain)
