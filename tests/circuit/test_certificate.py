"""Certificates: written whole, checked from the circuits up, refused when anything about them is wrong."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from pysat.formula import CNF
from pysat.solvers import Solver

from faults import KINDS, with_fault
from gatefit.circuit.ir import Circuit
from gatefit.circuit.logic.cnf import Cnf, clauses_to_text, proof_from_text
from gatefit.circuit.optimise import optimise
from gatefit.circuit.prove import Counterexample, Equivalent, prove
from gatefit.circuit.prove import certificate as certificate_module
from gatefit.circuit.prove.certificate import CertificateError, check_certificate, circuit_digest, write_certificate
from gatefit.circuit.prove.miter import equalities_cnf, obligations
from gatefit.circuit.readout import Affine, GroupSum
from scramble import scramble
from strategies import layered_circuit, random_circuit


@pytest.fixture
def proven(tmp_path):
    """Two equal circuits and the path of their certificate."""
    rng = np.random.default_rng(0)
    spec = layered_circuit(rng, 20, 40, 4)
    impl = scramble(rng, spec)
    path = tmp_path / "certificate"
    verdict = prove(spec, impl, certificate=path)
    assert isinstance(verdict, Equivalent)
    assert verdict.certificate == path
    return spec, impl, path


def edit(path, **changes):
    summary = json.loads((path / "certificate.json").read_text())
    (path / "certificate.json").write_text(json.dumps(summary | changes))


def test_a_certificate_is_three_files_that_check(proven):
    spec, impl, path = proven
    assert sorted(p.name for p in path.iterdir()) == ["certificate.json", "proof.cnf", "proof.drat"]
    assert [p.name for p in path.parent.iterdir()] == ["certificate"]  # no draft is left
    checked = check_certificate(path, spec, impl)
    assert (checked.path, checked.method) == (path, "sat")
    header = (path / "proof.cnf").read_bytes().split(b"\n")[0]
    assert header == b"p cnf %d %d" % (checked.variables, checked.clauses)
    assert checked.steps == (path / "proof.drat").read_bytes().count(b" 0\n") + 1  # the last one is a bare 0


@pytest.mark.parametrize("kind", ["group_sum", "affine", "linear"])
def test_certificates_of_all_readouts(kind, tmp_path):
    rng = np.random.default_rng(1)
    for i in range(15):
        spec = random_circuit(rng, readout_kinds=[kind])
        impl = optimise(spec)[0] if i % 2 else scramble(rng, spec)
        verdict = prove(spec, impl, certificate=tmp_path / str(i))
        assert isinstance(verdict, Equivalent)
        assert check_certificate(tmp_path / str(i), spec, impl).method == verdict.method


def test_the_formula_is_unsatisfiable_for_another_solver(proven):
    _, _, path = proven
    with Solver(name="maplechrono", bootstrap_with=CNF(from_file=str(path / "proof.cnf")).clauses) as solver:
        assert solver.solve() is False


def test_the_proof_is_accepted_by_another_checker(proven):
    dratify = pytest.importorskip("dratify")
    _, _, path = proven
    formula = dratify.parse_dimacs((path / "proof.cnf").read_text())
    proof = (path / "proof.drat").read_text()
    assert dratify.check_proof(formula, proof, check_rat=False).ok
    assert dratify.check_proof(formula, proof, check_rat=False).reached_empty


def test_a_certificate_is_about_its_two_circuits_only(proven):
    spec, impl, path = proven
    with pytest.raises(CertificateError, match="is not about this spec: its gates, wiring or readout are different"):
        check_certificate(path, impl, impl)
    with pytest.raises(CertificateError, match="is not about this impl"):
        check_certificate(path, spec, spec)


def test_the_digest_covers_what_decides_the_scores_and_nothing_else():
    rng = np.random.default_rng(2)
    for i in range(100):
        circuit = random_circuit(rng)
        faulty = with_fault(rng, circuit, KINDS[i % len(KINDS)])
        arrays = ("gates", "operands", "outputs")
        same = all(np.array_equal(getattr(circuit, a), getattr(faulty, a)) for a in arrays)
        same &= circuit.readout is faulty.readout or all(
            np.array_equal(getattr(circuit.readout, a), getattr(faulty.readout, a))
            for a in circuit.readout.__dataclass_fields__
        )
        assert (circuit_digest(circuit) == circuit_digest(faulty)) == same
    named = replace(circuit, input_names=tuple(f"bit {i}" for i in range(circuit.inputs)), metadata={"a": "b"})
    assert circuit_digest(named) == circuit_digest(circuit)


def test_a_forged_certificate_is_refused(tmp_path):
    """Everything a forger can rewrite is rewritten to fit a faulty circuit; only the refutation cannot be."""
    rng = np.random.default_rng(3)
    refused = 0
    for i in range(160):
        spec = random_circuit(rng, max_inputs=8, readout_kinds=["group_sum"])
        impl = scramble(rng, spec)
        faulty = with_fault(rng, impl, KINDS[i % 2])
        if not isinstance(prove(spec, faulty), Counterexample):
            continue
        path = tmp_path / str(i)
        assert isinstance(prove(spec, impl, certificate=path), Equivalent)
        claims = np.array(json.loads((path / "certificate.json").read_text())["claims"], np.int32)
        goal = obligations(spec, faulty, claims)
        (path / "proof.cnf").write_bytes(equalities_cnf(goal.graph, goal.pairs).to_dimacs())
        edit(path, impl=circuit_digest(faulty))
        with pytest.raises(CertificateError, match="is not a refutation: "):
            check_certificate(path, spec, faulty)
        refused += 1
    assert refused > 15


def test_false_claims_are_refused(proven):
    spec, impl, path = proven
    claims = json.loads((path / "certificate.json").read_text())["claims"]
    for change in (lambda c: [0] * len(c), lambda c: [x ^ 1 for x in c], lambda c: c[::-1]):
        edit(path, claims=change(claims))
        with pytest.raises(CertificateError, match="is not the formula of these circuits and claims"):
            check_certificate(path, spec, impl)


def test_damage_to_any_file_is_noticed_or_harmless(proven):
    """A changed byte either raises CertificateError, or leaves a refutation that another checker accepts as well."""
    dratify = pytest.importorskip("dratify")
    spec, impl, path = proven
    rng = np.random.default_rng(4)
    originals = {file.name: file.read_bytes() for file in path.iterdir()}
    formula = dratify.parse_dimacs(originals["proof.cnf"].decode())
    refused = 0
    for i in range(150):
        name = sorted(originals)[i % 3]
        damaged = bytearray(originals[name])
        at = int(rng.integers(len(damaged)))
        match int(rng.integers(3)):
            case 0:
                damaged[at] = int(rng.integers(256))
            case 1:
                del damaged[at:]
            case _:
                damaged[at:at] = bytes([damaged[at]])
        (path / name).write_bytes(damaged)
        try:
            check_certificate(path, spec, impl)
        except CertificateError:
            refused += 1
        else:
            assert name != "proof.cnf" or damaged == originals[name]
            assert name != "proof.drat" or dratify.check_proof(formula, damaged.decode(), check_rat=False).ok
        (path / name).write_bytes(originals[name])
    assert refused > 100
    check_certificate(path, spec, impl)


@pytest.mark.parametrize(
    ("summary", "message"),
    [
        ("{", "is not JSON"),
        ("[]", "is not a gatefit-certificate"),
        ('{"format": "other"}', "is not a gatefit-certificate"),
        ('{"format": "gatefit-certificate", "version": 2}', "has version 2, this gatefit reads 1"),
        ('{"format": "gatefit-certificate", "version": 1}', "is not about this spec"),
        ("[" * 100_000, "is not JSON"),
        ("\ud800", "is not JSON"),
    ],
)
def test_malformed_summaries_are_refused(proven, summary, message):
    spec, impl, path = proven
    (path / "certificate.json").write_bytes(summary.encode("utf-8", errors="surrogatepass"))
    with pytest.raises(CertificateError, match=message):
        check_certificate(path, spec, impl)


@pytest.mark.parametrize("claims", [None, [], [0], "0", [0.0] * 80, [True] * 80, [-1] * 80, [10**30] * 80])
def test_malformed_claims_are_refused(proven, claims):
    spec, impl, path = proven
    edit(path, claims=claims)
    with pytest.raises(CertificateError, match="claim"):
        check_certificate(path, spec, impl)


def test_missing_files_are_refused(proven):
    spec, impl, path = proven
    for name in ("proof.drat", "proof.cnf", "certificate.json"):
        (path / name).unlink()
        with pytest.raises(CertificateError, match=f"cannot read .*{name}: No such file"):
            check_certificate(path, spec, impl)
    with pytest.raises(CertificateError, match=r"cannot read .*a certificate is a folder of files"):
        check_certificate(path / "nothing", spec, impl)


def test_too_large_summaries_are_refused_before_they_are_read(proven, monkeypatch):
    spec, impl, path = proven
    monkeypatch.setattr(certificate_module, "MAX_SUMMARY_BYTES", 100)
    with pytest.raises(CertificateError, match="has more than 100 bytes"):
        check_certificate(path, spec, impl)


def test_nothing_is_overwritten_and_nothing_is_half_written(proven, monkeypatch):
    spec, impl, path = proven
    with pytest.raises(FileExistsError, match="certificate exists; remove it or choose another path"):
        prove(spec, impl, certificate=path)
    shutil.rmtree(path)

    def fail(self):
        raise OSError("disk full")

    monkeypatch.setattr(Cnf, "to_dimacs", fail)
    with pytest.raises(OSError, match="disk full"):
        prove(spec, impl, certificate=path)
    assert list(path.parent.iterdir()) == []


def test_no_certificate_is_written_for_different_circuits(tmp_path):
    rng = np.random.default_rng(5)
    spec = layered_circuit(rng, 8, 20, 2)
    assert isinstance(prove(spec, with_fault(rng, spec, "readout"), certificate=tmp_path / "no"), Counterexample)
    assert list(tmp_path.iterdir()) == []


def test_exhaustive_certificates_are_checked_by_trying_again(tmp_path):
    # 1e20 + sum is 1e20: equal values of different sums have no formula.
    rng = np.random.default_rng(6)
    spec = replace(random_circuit(rng, max_inputs=5), readout=GroupSum([0], [0]), outputs=np.array([0]))
    spec = replace(spec, readout=Affine(1, 0, 1.0, 1e20))
    impl = replace(spec, readout=Affine(1, 1, 1.0, 1e20))
    verdict = prove(spec, impl, certificate=tmp_path / "all")
    assert isinstance(verdict, Equivalent)
    assert [p.name for p in (tmp_path / "all").iterdir()] == ["certificate.json"]
    assert check_certificate(tmp_path / "all", spec, impl).method == "exhaustive"
    different = replace(spec, readout=Affine(1, 0, 1.0, 2e20))
    write_certificate(tmp_path / "false", spec, different)
    with pytest.raises(CertificateError, match="the circuits differ on some input"):
        check_certificate(tmp_path / "false", spec, different)
    large = layered_circuit(rng, 17, 20, 2)
    write_certificate(tmp_path / "large", large, large)
    with pytest.raises(CertificateError, match="more than 16 inputs cannot have been tried exhaustively"):
        check_certificate(tmp_path / "large", large, large)


def test_the_proof_on_disk_is_the_proof_that_was_checked(proven):
    _, _, path = proven
    text = (path / "proof.drat").read_bytes()
    assert clauses_to_text(proof_from_text(text, 10**6)) == text


def test_certificates_of_earlier_versions_still_check():
    """Two circuits whose sums are equal by arithmetic alone, so that the formula holds adders."""
    folder = Path(__file__).parents[1] / "samples" / "certificate-1"
    spec, impl = (Circuit.load(folder / f"{name}.gate") for name in ("spec", "impl"))
    checked = check_certificate(folder / "certificate", spec, impl)
    assert (checked.method, checked.variables, checked.clauses) == ("sat", 108, 285)
    with pytest.raises(CertificateError, match="is not about this spec"):
        check_certificate(folder / "certificate", impl, spec)
