"""Certificates of answers: files that let anybody check a proof without trusting what found it.

    certificate.json   format, version 2, the statement, its meaning in words, and how each alternative was refuted
    circuit.gate       the circuit that it speaks of (and other.gate, where it speaks of two)
    N.cnf, N.drat      the formula "alternative N holds somewhere", DIMACS, and its refutation: steps that follow by
                       unit propagation alone

What is checked: circuit, encoder and class names are those of the statement (their digests); the problem is posed
again from the statement, its words compared, its alternatives counted; then, by method,

    sat           the formula is made again and compared byte by byte, and the refutation checked (``prove.rup``)
    exhaustive    every point is tried again, by another kernel than the one that answered
    decomposed    again by the definition, in plain numpy
    bound         again from supports, as plain sets

What is trusted: ``pose`` and ``encode``, which say what the statement means in clauses, the truth tables of the sixteen
gates, and these checks; not the solver, the engine, or whoever wrote the folder.
"""

import json
import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from gatefit.circuit.ir import Circuit
from gatefit.circuit.logic.cnf import clauses_to_text, proof_from_text
from gatefit.circuit.prove.certificate import FORMAT, MAX_SUMMARY_BYTES, SUMMARY, CertificateError, refuse_existing
from gatefit.circuit.prove.rup import find_flaw
from gatefit.circuit.verify import decompose, exhaust
from gatefit.circuit.verify.answers import METHODS
from gatefit.circuit.verify.decide import Outcome
from gatefit.circuit.verify.encode import Encoding, TooLargeError
from gatefit.circuit.verify.pose import Posed, pose
from gatefit.circuit.verify.problem import Alternative, Problem

__all__ = ["CertificateError", "Checked", "check", "refuse_existing", "write"]

VERSION: Final = 2
MAX_PROOF_BYTES: Final = 2**31
"""Of one refutation; a folder that says it has more is not read."""
CIRCUITS: Final = ("circuit.gate", "other.gate")


@dataclass(frozen=True)
class Checked:
    """A certificate that has been checked: what it says, and by which methods it was shown."""

    path: Path
    meaning: str
    methods: tuple[str, ...]
    """Of each alternative."""
    clauses: int
    steps: int


def write(path: Path, asked: Posed, outcome: Outcome) -> None:
    """Write a folder for a statement that was proved, complete or not at all."""
    refuse_existing(path)
    draft = path.with_name(f"{path.name}.part{os.getpid()}")
    draft.mkdir(parents=True)
    parts = []
    try:
        for number, alternative in enumerate(asked.problem.alternatives):
            closed = outcome.closed[number]
            part: dict[str, Any] = {"alternative": alternative.name, "method": closed.method}
            if closed.refutation is not None:
                part["implied"] = closed.implied
                (draft / f"{number}.cnf").write_bytes(closed.refutation.cnf.to_dimacs())
                (draft / f"{number}.drat").write_bytes(clauses_to_text(closed.refutation.proof))
            parts.append(part)
        for circuit, name in zip(asked.circuits, CIRCUITS, strict=False):
            _save(circuit, draft / name)
        summary = {
            "format": FORMAT,
            "version": VERSION,
            "statement": asked.statement,
            "meaning": asked.text,
            "parts": parts,
        }
        try:
            text = json.dumps(summary, indent=1, ensure_ascii=False, allow_nan=False)
        except ValueError as error:
            raise ValueError(
                "a certificate holds finite numbers; give one beyond the last threshold instead of inf"
            ) from error
        (draft / SUMMARY).write_text(text + "\n", encoding="utf-8")
        draft.rename(path)
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise


def _save(circuit: Circuit, path: Path) -> None:
    """The circuit beside its proof; an encoder or readout of the user's own that no file can hold stays outside."""
    try:
        circuit.save(path)
    except (ValueError, TypeError):
        path.unlink(missing_ok=True)


def check(path: str | os.PathLike[str], circuits: Circuit | Sequence[Circuit] | None = None) -> Checked:
    """Check the certificate in a folder; anything that is wrong with it is a CertificateError.

    ``circuits`` are what it must be about. Without them it is about the circuits that lie in the folder: then only
    the folder says which ones these are.
    """
    folder = Path(path)
    summary = _summary(folder)
    given = _circuits(folder, circuits)
    try:
        asked = pose(summary["statement"], given)
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError, MemoryError) as error:
        raise CertificateError(f"{folder}: {error}") from error
    if summary["meaning"] != asked.text:
        raise CertificateError(
            f"{folder} says it means {summary['meaning']!r:.200}, its statement means {asked.text!r:.200}"
        )
    problem = asked.problem
    parts = summary["parts"]
    names = [alternative.name for alternative in problem.alternatives]
    if not isinstance(parts, list) or [p.get("alternative") if isinstance(p, dict) else None for p in parts] != names:
        raise CertificateError(f"{folder} must refute {len(names)} alternatives, in order: {', '.join(names):.200}")
    methods = [part.get("method") for part in parts]
    for method in methods:
        if method not in METHODS:
            raise CertificateError(
                f"{folder}: an alternative is refuted by {method!r:.40}, not one of {', '.join(METHODS)}"
            )
    try:
        encoding = Encoding(problem)
        clauses, steps = 0, 0
        for number, (part, alternative) in enumerate(zip(parts, problem.alternatives, strict=True)):
            if part["method"] == "sat":
                size = _check_refutation(folder, number, part.get("implied"), encoding, alternative)
                clauses, steps = clauses + size[0], steps + size[1]
            elif part["method"] == "bound" and not bound_reference(encoding, alternative):
                raise CertificateError(f"{folder}: supports do not refute the alternative {alternative.name!r:.80}")
        _check_points(folder, problem, methods)
        _check_decomposed(folder, problem, encoding, methods)
    except (TooLargeError, OverflowError) as error:
        raise CertificateError(f"{folder}: {error}") from error
    return Checked(folder, asked.text, tuple(methods), clauses, steps)


def _summary(folder: Path) -> dict[str, Any]:
    path = folder / SUMMARY
    if not path.is_file():
        raise CertificateError(f"cannot read {path}; a certificate is a folder with this file")
    if path.stat().st_size > MAX_SUMMARY_BYTES:
        raise CertificateError(f"{path} has more than {MAX_SUMMARY_BYTES} bytes")
    try:
        summary = json.loads(path.read_bytes().decode("utf-8"), parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise CertificateError(f"{path} is not JSON: {error}") from error
    if not isinstance(summary, dict) or summary.get("format") != FORMAT:
        raise CertificateError(f"{path} is not a {FORMAT}")
    version = summary.get("version")
    if version == 1:
        raise CertificateError(f"{path} says that two circuits are equal; check it with: gatefit prove A B --check")
    if version != VERSION:
        raise CertificateError(f"{path} has version {version!r:.40}, this gatefit reads {VERSION}")
    if set(summary) != {"format", "version", "statement", "meaning", "parts"}:
        raise CertificateError(f"{path} must have the fields format, version, statement, meaning and parts")
    return summary


def _no_number(name: str) -> Any:
    raise ValueError(f"{name} is no number")


def _circuits(folder: Path, circuits: Circuit | Sequence[Circuit] | None) -> tuple[Circuit, ...]:
    if isinstance(circuits, Circuit):
        return (circuits,)
    if circuits is not None:
        return tuple(circuits)
    paths = [folder / name for name in CIRCUITS if (folder / name).is_file()]
    if not paths:
        raise CertificateError(f"{folder} holds no circuit; say which one it should be about")
    try:
        return tuple(Circuit.load(path) for path in paths)
    except (ValueError, OSError) as error:
        raise CertificateError(f"{folder}: {error}") from error


def _check_refutation(
    folder: Path, number: int, implied: Any, encoding: Encoding, alternative: Alternative
) -> tuple[int, int]:
    if not isinstance(implied, bool) or (implied and not alternative.implied):
        raise CertificateError(f"{folder}: a refutation is of the forms of its alternative, or of those they imply")
    forms = alternative.implied if implied else (*alternative.forms, *alternative.implied)
    cnf = encoding.formula(forms)
    formula = cnf.to_dimacs()
    if _read(folder / f"{number}.cnf", len(formula)) != formula:
        raise CertificateError(f"{folder / f'{number}.cnf'} is not the formula of this statement")
    proof_path = folder / f"{number}.drat"
    try:
        proof = proof_from_text(_read(proof_path, MAX_PROOF_BYTES), cnf.variables)
    except ValueError as error:
        raise CertificateError(f"{proof_path}: {error}") from error
    flaw = find_flaw(cnf, proof)
    if flaw is not None:
        raise CertificateError(f"{proof_path} is not a refutation: {flaw}")
    return cnf.clauses, int(np.count_nonzero(proof == 0))


def _read(path: Path, most: int) -> bytes:
    try:
        if not path.is_file():  # a pipe would wait for its writer
            raise CertificateError(f"cannot read {path}: it is not there, or no file")
        if path.stat().st_size > most:  # before memory is asked for
            raise CertificateError(f"{path} has {path.stat().st_size:,} bytes; {most:,} are the most that it can have")
        return path.read_bytes()
    except OSError as error:
        raise CertificateError(f"cannot read {path}: {error.strerror}") from error


def _some(problem: Problem, methods: list[str], method: str) -> Problem | None:
    """The problem with those alternatives that were refuted by a method."""
    pairs = zip(problem.alternatives, methods, strict=True)
    own = tuple(alternative for alternative, how in pairs if how == method)
    return replace(problem, alternatives=own) if own else None


def _check_points(folder: Path, problem: Problem, methods: list[str]) -> None:
    rest = _some(problem, methods, "exhaustive")
    if rest is None:
        return
    if not exhaust.fits(rest):
        raise CertificateError(f"{folder}: {rest.points():,} points cannot have been tried one by one")
    if exhaust.try_all(rest, kernel="words") is not None:
        raise CertificateError(f"{folder}: the statement is false; some point refutes it")


def _check_decomposed(folder: Path, problem: Problem, encoding: Encoding, methods: list[str]) -> None:
    rest = _some(problem, methods, "decomposed")
    if rest is None:
        return
    if not decompose.serves(rest):
        raise CertificateError(f"{folder}: this statement is not of the kind that is decomposed")
    tables = decompose.Tables(rest, encoding)
    if not decompose.fits(rest, tables):
        raise CertificateError(f"{folder}: the outputs read too much to be decomposed")
    if decompose.decompose_reference(tables, list(range(len(rest.alternatives)))) is not None:
        raise CertificateError(f"{folder}: the statement is false; some point refutes it")


def bound_reference(encoding: Encoding, alternative: Alternative) -> bool:
    """Whether supports alone refute an alternative, by plain sets."""
    problem, graph = encoding.problem, encoding.graph
    reads: list[frozenset[int]] = [frozenset()] * graph.nodes
    for i, columns in enumerate(encoding.columns):
        for column in range(columns.values.shape[1]):
            reads[encoding.first[i] + column] = frozenset([i])
    for node in range(encoding.second, 1 + graph.inputs):
        reads[node] = frozenset([-1 if problem.second is None else problem.second])
    for gate, (a, b) in enumerate(graph.operands.T.tolist(), start=1 + graph.inputs):
        reads[gate] = reads[a] | reads[b]
    for form in (*alternative.forms, *alternative.implied):
        literals, weights, need = encoding.terms(form)
        if int(weights.sum()) < need:
            return True
        if problem.changes is None or problem.base is None or problem.second is not None:
            continue
        if not problem.inside(problem.base):
            continue
        values = _values_by_definition(encoding)
        now, gains = 0, dict.fromkeys(range(len(encoding.columns)), 0)
        for literal, weight in zip(literals.tolist(), weights.tolist(), strict=True):
            if values[literal >> 1] ^ (literal & 1 == 1):
                now += weight
            else:
                for feature in reads[literal >> 1]:
                    gains[feature] += weight
        if now + sum(sorted(gains.values(), reverse=True)[: problem.changes]) < need:
            return True
    return False


def _values_by_definition(encoding: Encoding) -> list[bool]:
    """The nodes at the base, gate by gate from the truth tables."""
    from gatefit.gates import TRUTH_TABLES

    problem, graph = encoding.problem, encoding.graph
    assert problem.base is not None
    values = [False] * graph.nodes
    for i, columns in enumerate(encoding.columns):
        own = columns.values[problem.allowed[i].tolist().index(int(problem.base[i]))]
        values[encoding.first[i] : encoding.first[i] + own.size] = own.tolist()
    pairs = zip(graph.gates.tolist(), graph.operands.T.tolist(), strict=True)
    for node, (gate, (a, b)) in enumerate(pairs, start=1 + graph.inputs):
        values[node] = bool(TRUTH_TABLES[gate, 2 * values[a] + values[b]])
    return values
