"""Certificates are checked from the statement up: by both checkers, by other kernels, and against every damage."""

import copy
import json
import os
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gatefit.circuit.ir import Circuit
from gatefit.circuit.prove.questions import Effort
from gatefit.circuit.prove.rup import find_flaw
from gatefit.circuit.verify import CertificateError, Proved, bounds, check, decompose, explain, never_matters, robust
from gatefit.circuit.verify.certificate import write
from gatefit.circuit.verify.decide import Closed, Outcome
from gatefit.circuit.verify.encode import Encoding
from gatefit.circuit.verify.pose import (
    Posed,
    pose,
    posed,
    state_agree,
    state_always,
    state_monotone,
    state_never,
    state_never_matters,
    state_robust,
)
from gatefit.circuit.verify.problem import domain_of
from gatefit.circuit.verify.rows import read_row
from gatefit.circuit.verify.sat import Refutation, ask
from gatefit.circuit.verify.supports import Bound
from mutations import damaged_bytes, edited_json
from verify_cases import all_points, random_encoder, random_row, small_circuit

METHODS = ("sat", "implied", "exhaustive", "decomposed", "bound")


def holds(asked: Posed) -> bool:
    """Whether a statement is true, by trying every point."""
    points, other = all_points(asked.problem)
    return not len(points) or bool((asked.problem.satisfied(asked.problem.evaluate(points, other)) < 0).all())


def outcome_by(asked: Posed, method: str) -> Outcome | None:
    """All alternatives of a true statement refuted by one method, where it can."""
    problem, outcome = asked.problem, Outcome()
    encoding = Encoding(problem)
    bound = Bound(encoding)
    for number, alternative in enumerate(problem.alternatives):
        if method in ("sat", "implied"):
            implied = method == "implied"
            forms = alternative.implied if implied else (*alternative.forms, *alternative.implied)
            answer = ask(encoding, forms, Effort()) if forms else None
            if not isinstance(answer, Refutation):
                return None
            outcome.closed[number] = Closed("sat", answer, implied)
            continue
        able = {"exhaustive": True, "decomposed": decompose.serves(problem), "bound": bound.refutes(alternative)}
        if not able[method]:
            return None
        outcome.closed[number] = Closed(method)
    return outcome if problem.alternatives else None


def true_statement(rng: np.random.Generator, method: str) -> tuple[Posed, Outcome]:
    """A true statement about a small circuit that the method can show."""
    while True:
        circuit = small_circuit(rng, random_encoder(rng))
        domain, x = domain_of(circuit), random_row(rng, circuit)
        row, bits = read_row(circuit, x)
        point = domain.locate(bits[None])[0]
        region = [
            f.usual if rng.random() < 0.4 else own for own, f in zip(point[:, None], domain.features, strict=True)
        ]
        statements = [
            state_robust(circuit, x, changes=int(rng.integers(1, 4))),
            state_always(circuit, row, region, domain, None),
            state_never_matters(circuit, int(rng.integers(len(domain.features))), margin=int(rng.integers(0, 3))),
            state_never(circuit, int(rng.integers(circuit.readout.classes))),
            state_agree(circuit, circuit),
        ]
        numbers = [feature.name for feature in domain.features if feature.kind == "number"]
        if numbers:
            statements.append(state_monotone(circuit, numbers[0], target=0))
        statement = statements[int(rng.integers(len(statements)))]
        circuits = (circuit, circuit) if statement["question"] == "agree" else (circuit,)
        asked = posed(statement, circuits, domain)
        if holds(asked):
            outcome = outcome_by(asked, method)
            if outcome is not None:
                return asked, outcome


@pytest.mark.parametrize("method", METHODS)
def test_a_certificate_is_accepted_for_its_circuit_alone(method: str, tmp_path: Path) -> None:
    rng = np.random.default_rng((21, METHODS.index(method)))
    for k in range(3):
        asked, outcome = true_statement(rng, method)
        path = tmp_path / str(k)
        write(path, asked, outcome)
        checked = check(path, asked.circuits)
        assert checked.meaning == asked.text
        assert set(checked.methods) == {"sat" if method == "implied" else method}
        assert check(path) == checked  # the circuit lies in the folder
        with pytest.raises(FileExistsError, match="exists"):
            write(path, asked, outcome)
        other = small_circuit(rng, asked.circuits[0].encoder)
        with pytest.raises(CertificateError, match=r"not about circuit|circuits"):
            check(path, [other] * len(asked.circuits))


def test_a_second_checker_accepts_the_refutations(tmp_path: Path) -> None:
    dratify = pytest.importorskip("dratify")
    rng = np.random.default_rng(22)
    for k in range(4):
        asked, outcome = true_statement(rng, "sat")
        write(tmp_path / str(k), asked, outcome)
        for number in range(len(asked.problem.alternatives)):
            formula = dratify.parse_dimacs((tmp_path / str(k) / f"{number}.cnf").read_text())
            proof = (tmp_path / str(k) / f"{number}.drat").read_text()
            verdict = dratify.check_proof(formula, proof, check_rat=False)
            assert verdict.ok
            assert verdict.reached_empty


def test_questions_write_certificates(tmp_path: Path) -> None:
    rng = np.random.default_rng(23)
    done: Counter[str] = Counter()
    for k in range(40):
        circuit = small_circuit(rng, random_encoder(rng))
        x = random_row(rng, circuit)
        asks = {
            "robust": lambda path, c=circuit, row=x: robust(c, row, changes=1, certificate=path),
            "never_matters": lambda path, c=circuit: never_matters(c, 0, margin=2, certificate=path),
            "explain": lambda path, c=circuit, row=x: explain(c, row, certificate=path, why_not=False),
        }
        for name, ask_it in asks.items():
            if done[name] < 2:
                path = tmp_path / f"{name}{k}"
                answer = ask_it(path)
                proof = getattr(answer, "proof", answer)
                assert path.exists() == isinstance(proof, Proved)
                if isinstance(proof, Proved):
                    assert proof.certificate == path
                    assert check(path, circuit).meaning == proof.statement
                    done[name] += 1
    assert min(done.values()) == 2
    value = small_circuit(rng, random_encoder(rng), "affine")
    answer = bounds(value, certificate=tmp_path / "bounds")
    assert answer.exact  # type: ignore[attr-defined]
    for side in ("low", "high"):
        check(tmp_path / "bounds" / side, value)


def test_nothing_is_written_over_and_nothing_half(tmp_path: Path) -> None:
    rng = np.random.default_rng(24)
    circuit = small_circuit(rng, None)
    (tmp_path / "there").mkdir()
    with pytest.raises(FileExistsError, match="choose another path"):
        robust(circuit, random_row(rng, circuit), changes=1, certificate=tmp_path / "there")
    assert list(tmp_path.iterdir()) == [tmp_path / "there"]


def _folder(tmp_path: Path, method: str, seed: int) -> tuple[Path, Posed]:
    asked, outcome = true_statement(np.random.default_rng((seed, METHODS.index(method))), method)
    path = tmp_path / f"{method}{seed}"
    write(path, asked, outcome)
    return path, asked


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda f: (f / "certificate.json").unlink(), "cannot read"),
        (lambda f: (f / "certificate.json").write_text("{"), "is not JSON"),
        (lambda f: (f / "certificate.json").write_text("[" * 100_000), "is not JSON"),
        (lambda f: (f / "certificate.json").write_text('{"format": NaN}'), "is not JSON"),
        (lambda f: (f / "certificate.json").write_text("[]"), "is not a gatefit-certificate"),
        (lambda f: _edit(f, version=1), "gatefit prove A B --check"),
        (lambda f: _edit(f, version=3), "has version 3"),
        (lambda f: _edit(f, meaning="all is well"), "its statement means"),
        (lambda f: _edit(f, parts=[]), "must refute"),
        (lambda f: _edit(f, more=1), "must have the fields"),
        (lambda f: (f / "0.drat").unlink(), "not there, or no file"),
        (lambda f: (f / "0.drat").write_bytes(b""), "without reaching the empty clause|not a refutation"),
        (lambda f: (f / "0.drat").write_bytes(b"1 2"), "is not a DRAT step"),
        (lambda f: (f / "0.cnf").write_bytes(b"p cnf 1 2\n1 0\n-1 0\n"), "is not the formula"),
        (lambda f: _pipe(f / "0.drat"), "not there, or no file"),
    ],
)  # fmt: skip
def test_a_damaged_folder_has_one_clear_error(damage: Any, message: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(30)
    while True:
        asked, outcome = true_statement(rng, "sat")
        refutation = outcome.closed[0].refutation
        assert refutation is not None
        if find_flaw(refutation.cnf, np.empty(0, np.int32)) is not None:  # a refutation that takes a step
            break
    path = tmp_path / "certificate"
    write(path, asked, outcome)
    damage(path)
    with pytest.raises(CertificateError, match=message):
        check(path, asked.circuits)


def _edit(folder: Path, **fields: Any) -> None:
    path = folder / "certificate.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | fields))


def _pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def test_an_encoder_or_class_names_of_another_kind_are_noticed(tmp_path: Path) -> None:
    rng = np.random.default_rng(25)
    while True:
        asked, outcome = true_statement(rng, "exhaustive")
        if asked.circuits[0].encoder is not None and len(asked.circuits) == 1:
            break
    write(tmp_path / "a", asked, outcome)
    own = asked.circuits[0]
    fields = (own.inputs, own.gates, own.operands, own.outputs, own.readout)
    with pytest.raises(CertificateError, match="not about this encoder"):
        check(tmp_path / "a", Circuit(*fields))
    names = tuple(f"c{k}" for k in range(own.readout.classes))
    with pytest.raises(CertificateError, match="not about these answers"):
        check(tmp_path / "a", Circuit(*fields, encoder=own.encoder, class_names=names))


def damage_at_random(rng: np.random.Generator, folder: Path) -> str:
    """Damage one file of a certificate: its bytes, or its JSON in a way that keeps it JSON."""
    files = sorted(path for path in folder.iterdir() if path.name != "circuit.gate" and path.name != "other.gate")
    path = files[int(rng.integers(len(files)))]
    if path.name == "certificate.json" and rng.random() < 0.8:
        content = json.loads(path.read_text())
        changed = edited_json(rng, content)
        if rng.random() < 0.5 and isinstance(changed, dict):
            # A forger makes the words fit; a false statement must then be noticed by its proof.
            changed["meaning"] = _words(folder, changed)
        try:
            path.write_text(json.dumps(changed))
        except (ValueError, UnicodeEncodeError):
            path.write_text("{}")
        return "json"
    large = path.stat().st_size > 16
    path.write_bytes(damaged_bytes(rng, path.read_bytes()) if large else rng.bytes(int(rng.integers(1, 9))))
    return path.suffix


def _words(folder: Path, content: dict[str, Any]) -> Any:
    circuits = tuple(Circuit.load(folder / n) for n in ("circuit.gate", "other.gate") if (folder / n).exists())
    try:
        return pose(copy.deepcopy(content.get("statement")), circuits).text
    except Exception:
        return content.get("meaning")


def corrupt(tmp_path: Path, count: int) -> Counter[str]:
    """Damage certificates ``count`` times; whatever is still accepted must be true."""
    seen: Counter[str] = Counter()
    for number in range(count):
        rng = np.random.default_rng((26, number))
        method = METHODS[number % len(METHODS)]
        path, asked = _folder(tmp_path, method, 40 + number % 7)
        damage_at_random(rng, path)
        try:
            check(path, asked.circuits)
        except CertificateError:
            seen["refused"] += 1
        else:
            statement = json.loads((path / "certificate.json").read_text())["statement"]
            assert holds(pose(statement, asked.circuits)), (number, statement)
            seen["accepted, and true"] += 1
        shutil.rmtree(path)
    return seen


def test_no_damage_makes_a_false_statement_accepted(tmp_path: Path) -> None:
    assert corrupt(tmp_path, 30)["refused"] > 10


@pytest.mark.outside
def test_no_damage_of_five_hundred_makes_a_false_statement_accepted(tmp_path: Path) -> None:
    seen = corrupt(tmp_path, 500)
    assert seen["refused"] > 250  # the others: shorter proofs that hold, other true statements, white space
    assert seen["accepted, and true"] + seen["refused"] == 500
