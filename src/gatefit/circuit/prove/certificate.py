"""Certificates of equivalence: files that let anybody check a proof without trusting what found it.

    certificate.json   format, version, digests of both circuits, the claim made for every output bit
    proof.cnf          the formula "some claim is false on some input", DIMACS
    proof.drat         its refutation, DRAT text with steps that follow by unit propagation alone

What a certificate covers: on every input the two circuits have equal scores, hence equal predictions. The formula is
regenerated from the circuits and the claims (``miter.obligations``) and compared byte by byte, so a checker trusts
that generator, the truth tables of the sixteen gates, and the refutation check; not the solver, nor the sweep, nor
the simulation; and where the outputs of one circuit are its answer, ``lower_readout``, which makes the other one's
answer of gates. What it does not cover: input encoders, names, and temperatures of probabilities.

A readout that is compared by simulating all inputs (``"method": "exhaustive"``) has no formula; checking it means
simulating them again.
"""

import hashlib
import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from jaxtyping import Int32

from gatefit.circuit.ir import Circuit
from gatefit.circuit.logic.cnf import Cnf, clauses_to_text, proof_from_text
from gatefit.circuit.lower_readout import in_one_form
from gatefit.circuit.prove.miter import equalities_cnf, join, obligations
from gatefit.circuit.prove.rup import find_flaw
from gatefit.circuit.prove.search import EXHAUSTIVE_INPUTS, try_all_inputs

FORMAT: Final = "gatefit-certificate"
VERSION: Final = 1
MAX_SUMMARY_BYTES: Final = 256 * 2**20
SUMMARY, FORMULA, PROOF = "certificate.json", "proof.cnf", "proof.drat"


class CertificateError(ValueError):
    """A certificate that does not prove what it should."""


@dataclass(frozen=True)
class Certificate:
    """A certificate that has been checked."""

    path: Path
    method: str
    variables: int
    clauses: int
    steps: int


def circuit_digest(circuit: Circuit) -> str:
    """SHA-256 of everything that decides the scores: gates, wiring, outputs, readout; not names or encoders."""
    readout = circuit.readout
    arrays = [[circuit.inputs], circuit.gates, circuit.operands, circuit.outputs, *readout.decides()]
    digest = hashlib.sha256(f"{FORMAT} {type(readout).__name__}".encode())
    for values in arrays:
        array = np.asarray(values)
        array = array.astype("<f8" if array.dtype.kind == "f" else "<i8")
        digest.update(f"{array.shape}".encode() + array.tobytes())
    return digest.hexdigest()


def refuse_existing(path: Path) -> None:
    """A certificate never overwrites anything; say so before hours of proof."""
    if path.exists():
        raise FileExistsError(f"{path} exists; remove it or choose another path for the certificate")


def write_certificate(
    path: Path,
    spec: Circuit,
    impl: Circuit,
    claims: Int32[np.ndarray, " outputs"] | None = None,
    cnf: Cnf | None = None,
    proof: Int32[np.ndarray, " steps"] | None = None,
) -> None:
    """Write a directory with the three files, complete or not at all; without a formula, only the summary."""
    refuse_existing(path)
    summary: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "statement": "spec and impl have equal scores on every input",
        "method": "exhaustive" if cnf is None else "sat",
        "spec": circuit_digest(spec),
        "impl": circuit_digest(impl),
    }
    draft = path.with_name(f"{path.name}.part{os.getpid()}")
    draft.mkdir(parents=True)
    try:
        if claims is not None and cnf is not None and proof is not None:
            summary |= {"claims": claims.tolist(), "variables": cnf.variables, "clauses": cnf.clauses}
            (draft / FORMULA).write_bytes(cnf.to_dimacs())
            (draft / PROOF).write_bytes(clauses_to_text(proof))
        (draft / SUMMARY).write_text(json.dumps(summary) + "\n", encoding="utf-8")
        draft.rename(path)
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise


def check_certificate(path: str | os.PathLike[str], spec: Circuit, impl: Circuit) -> Certificate:
    """Check that the certificate at ``path`` proves ``spec`` and ``impl`` equal; raise CertificateError if not."""
    folder = Path(path)
    summary = _read_summary(folder)
    spec, impl = in_one_form(spec, impl)
    for name, circuit in (("spec", spec), ("impl", impl)):
        if summary.get(name) != circuit_digest(circuit):
            raise CertificateError(f"{folder} is not about this {name}: its gates, wiring or readout are different")
    if summary.get("method") == "exhaustive":
        return _check_exhaustive(folder, spec, impl)
    claims = _claims(summary, spec, impl)
    built = obligations(spec, impl, claims)
    if built is None:
        raise CertificateError(f"{folder}: its claims do not make the two readouts comparable")
    cnf = equalities_cnf(built.graph, built.pairs)
    if _read(folder / FORMULA) != cnf.to_dimacs():
        raise CertificateError(f"{folder / FORMULA} is not the formula of these circuits and claims")
    try:
        proof = proof_from_text(_read(folder / PROOF), cnf.variables)
    except ValueError as error:
        raise CertificateError(f"{folder / PROOF}: {error}") from error
    flaw = find_flaw(cnf, proof)
    if flaw is not None:
        raise CertificateError(f"{folder / PROOF} is not a refutation: {flaw}")
    return Certificate(folder, "sat", cnf.variables, cnf.clauses, int(np.count_nonzero(proof == 0)))


def _check_exhaustive(folder: Path, spec: Circuit, impl: Circuit) -> Certificate:
    if spec.inputs != impl.inputs or spec.inputs > EXHAUSTIVE_INPUTS:
        raise CertificateError(f"{folder}: more than {EXHAUSTIVE_INPUTS} inputs cannot have been tried exhaustively")
    if try_all_inputs(spec, impl) is not None:
        raise CertificateError(f"{folder}: the circuits differ on some input")
    return Certificate(folder, "exhaustive", 0, 0, 0)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise CertificateError(f"cannot read {path}: {error.strerror}; a certificate is a folder of files") from error


def _read_summary(folder: Path) -> dict[str, Any]:
    path = folder / SUMMARY
    if path.is_file() and path.stat().st_size > MAX_SUMMARY_BYTES:
        raise CertificateError(f"{path} has more than {MAX_SUMMARY_BYTES} bytes")
    try:
        summary = json.loads(_read(path).decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise CertificateError(f"{path} is not JSON: {error}") from error
    if not isinstance(summary, dict) or summary.get("format") != FORMAT:
        raise CertificateError(f"{path} is not a {FORMAT}")
    if summary.get("version") != VERSION:
        raise CertificateError(f"{path} has version {summary.get('version')!r}, this gatefit reads {VERSION}")
    return summary


def _claims(summary: dict[str, Any], spec: Circuit, impl: Circuit) -> Int32[np.ndarray, " outputs"]:
    claims = summary.get("claims")
    graph, outputs = join(spec, impl)
    if not isinstance(claims, list) or len(claims) != outputs.size:
        raise CertificateError(f"the certificate needs a claim for each of the {outputs.size} output bits")
    if any(type(x) is not int or not 0 <= x < 2 * graph.nodes for x in claims):
        raise CertificateError(f"claims must be literals from 0 to {2 * graph.nodes - 1}")
    return np.array(claims, np.int32)
