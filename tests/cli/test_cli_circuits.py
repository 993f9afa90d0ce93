"""``gatefit compile``, ``optimise``, ``prove`` and ``info`` on circuits."""

import itertools
import json
import re
import time
from dataclasses import replace

import numpy as np
import pytest

from gatefit.circuit.file import digest
from gatefit.circuit.ir import Circuit
from gatefit.circuit.prove import ALL_CONFLICTS, Counterexample, Undecided
from gatefit.circuit.readout import GroupSum
from gatefit.circuit.simulate import simulate
from gatefit.cli.circuits import CONFLICTS
from gatefit.gates import Gate


@pytest.fixture
def different(model, tmp_path):
    """The model with one live gate complemented."""
    circuit = Circuit.load(model)
    gates = circuit.gates.copy()
    gates[-1] ^= 0b1111
    path = tmp_path / "different.gate"
    replace(circuit, gates=gates).save(path)
    return path


def test_compile_saves_a_circuit_that_computes_the_trained_network(finished_run, model):
    import torch

    from gatefit.training.runs import load_network

    network, circuit = load_network(finished_run / "model.safetensors"), Circuit.load(model)
    bits = np.random.default_rng(0).random((500, 17)) < 0.5
    with torch.no_grad():
        trained = network(torch.from_numpy(bits)).numpy() * network.readout.temperature
    assert np.array_equal(circuit.readout.scores(simulate(circuit, bits)), trained.round().astype(int))
    assert circuit.metadata["dataset"] == "monks-1"
    assert circuit.class_names == ("0", "1")


def test_compile_shows_gates_after_each_pass_and_the_proof(gatefit, finished_run, tmp_path):
    text = gatefit("compile", finished_run, "--out", tmp_path / "m.gate").out
    assert re.search(r"^fold_constants +68 +\d+ ", text, re.MULTILINE)
    assert re.search(r"^gates +68 -> \d+$", text, re.MULTILINE)
    assert re.search(r"^proof +equivalent \(by SAT, refutation checked\) in ", text, re.MULTILINE)


def test_compile_json_names_every_pass(gatefit, finished_run, tmp_path):
    content = gatefit("compile", finished_run, "--out", tmp_path / "m.gate", "--json").json
    assert content["gates_before"] == 68
    assert content["gates_after"] == Circuit.load(tmp_path / "m.gate").gates.size
    assert content["passes"][0]["before"] == 68
    assert content["verdict"] == "equivalent"


@pytest.mark.parametrize("options", [["--no-optimise"], ["--level", "0"], ["--no-optimise", "--no-prove"]])
def test_compile_keeps_every_gate_if_told_to(gatefit, finished_run, tmp_path, options):
    content = gatefit("compile", finished_run, "--out", tmp_path / "m.gate", *options, "--json").json
    assert content["gates_after"] == 68
    assert content["verdict"] == ("not proven" if "--no-prove" in options else "equivalent")


def test_compile_writes_a_certificate_that_prove_checks(gatefit, refused, finished_run, different, tmp_path):
    proof, out = tmp_path / "proof", tmp_path / "m.gate"
    assert gatefit("compile", finished_run, "--out", out, "--certificate", proof).code == 0
    checked = gatefit("prove", proof / "spec.gate", out, "--check", proof)
    assert checked.out == f"{proof} proves it: every input gives the same scores (sat)\n"
    assert "is not about this impl" in refused("prove", proof / "spec.gate", different, "--check", proof)


@pytest.mark.parametrize(
    ("verdict", "message"),
    [
        (Counterexample(np.eye(17, dtype=bool)[2], np.array([1, 2]), np.array([2, 1])), "this is a bug in gatefit"),
        (Undecided("time is over"), "time is over"),
    ],
)
def test_compile_saves_nothing_that_is_not_proven(refused, finished_run, tmp_path, monkeypatch, verdict, message):
    import gatefit.circuit.prove as prover

    monkeypatch.setattr(prover, "prove", lambda spec, impl, **options: verdict)
    told = refused("compile", finished_run, "--out", tmp_path / "m.gate", code=1)
    assert message in told
    assert ("00100000000000000" in told) == isinstance(verdict, Counterexample)
    assert list(tmp_path.iterdir()) == []


def test_optimise_makes_a_file_smaller(gatefit, finished_run, tmp_path):
    big, small = tmp_path / "big.gate", tmp_path / "small.gate"
    assert gatefit("compile", finished_run, "--out", big, "--no-optimise").code == 0
    content = gatefit("optimise", big, "--out", small, "--json").json
    assert content["gates_before"] == 68
    assert Circuit.load(small).gates.size == content["gates_after"] < 68
    assert gatefit("prove", big, small).code == 0


def test_prove_tells_equal_circuits(gatefit, model):
    outcome = gatefit("prove", model, model)
    assert outcome.code == 0
    assert outcome.out.startswith("equivalent: every input gives the same scores")


def test_prove_prints_a_counterexample_that_replays(gatefit, model, different):
    outcome = gatefit("prove", model, different, "--json")
    assert outcome.code == 1
    content = outcome.json
    bits = np.array([[bit == "1" for bit in content["bits"]]])
    for path, scores in ((model, content["spec_scores"]), (different, content["impl_scores"])):
        circuit = Circuit.load(path)
        assert circuit.readout.scores(simulate(circuit, bits))[0].tolist() == scores
    assert content["spec_scores"] != content["impl_scores"]
    text = gatefit("prove", model, different).out
    assert content["bits"] in text
    assert "where these are one: " in text


def test_prove_without_verdict_has_its_own_exit_code(gatefit, model, monkeypatch):
    import gatefit.circuit.prove as prover

    monkeypatch.setattr(prover, "prove", lambda spec, impl, **options: Undecided("time is over"))
    outcome = gatefit("prove", model, model)
    assert outcome.code == 2
    assert outcome.out.startswith("undecided: time is over")


def test_prove_refuses_circuits_that_cannot_be_compared(refused, model, tmp_path):
    circuit = Circuit.load(model)
    wider = replace(circuit, inputs=18, operands=circuit.operands + (circuit.operands >= 17), input_names=(),
                    encoder=None, outputs=circuit.outputs + (circuit.outputs >= 17))  # fmt: skip
    wider.save(tmp_path / "wider.gate")
    assert "spec reads 17 input bits and impl reads 18" in refused("prove", model, tmp_path / "wider.gate")


def test_info_counts_what_the_circuit_holds(gatefit, model):
    circuit, content = Circuit.load(model), gatefit("info", model, "--json").json
    assert content["gates"] == circuit.gates.size
    kinds, counts = np.unique(circuit.gates, return_counts=True)
    assert content["by_kind"] == {Gate(k).name: int(n) for k, n in zip(kinds, counts, strict=True)}
    assert content["aig_nodes"] >= content["logic_gates"]
    assert content["encoder"]["comparisons"] == content["used_inputs"]
    assert content["readout"]["kind"] == "GroupSum"
    assert content["input_names"][0] == "a1 = 1"
    text = gatefit("info", model).out
    for title in ("by kind", "depth", "fan-out", "AIG size", "encoder, apart", "readout, apart", "class names"):
        assert re.search(rf"^{title}  ", text, re.MULTILINE), title


@pytest.mark.parametrize("verb", ["compile", "optimise"])
def test_existing_output_is_refused_unless_told(gatefit, refused, finished_run, model, tmp_path, verb):
    out = tmp_path / "m.gate"
    out.write_text("mine")
    source = finished_run if verb == "compile" else model
    assert refused(verb, source, "--out", out) == (
        f"{out} exists; choose another --out, or replace it with --overwrite"
    )
    assert out.read_text() == "mine"
    assert gatefit(verb, source, "--out", out, "--overwrite").code == 0
    assert Circuit.load(out).inputs == 17


def test_the_command_line_spends_what_the_library_does():
    assert CONFLICTS == ALL_CONFLICTS


def test_a_proof_ends_by_its_conflicts_and_by_the_clock_only_where_told(gatefit, tmp_path, monkeypatch):
    inputs, paths = 12, []
    for order in (range(inputs), range(inputs)[::-1]):  # the same parity, with nothing in common on the way
        sums = [order[0], *range(inputs, 2 * inputs - 2)]
        gates, readout = np.full(inputs - 1, Gate.XOR), GroupSum([0], [0, 0])
        paths.append(tmp_path / f"{order[0]}.gate")
        Circuit(inputs, gates, np.array([sums, order[1:]]), [2 * inputs - 2], readout).save(paths[-1])
    outcome = gatefit("prove", *paths, "--conflicts", "1")
    assert outcome.code == 2
    assert outcome.out.startswith("undecided: 1 of 1 equalities were not decided in 1 conflicts; raise conflicts")
    looks = itertools.count()
    monkeypatch.setattr(time, "monotonic", lambda: 1e4 * next(looks))  # hours pass between any two looks
    assert gatefit("prove", *paths).code == 0
    assert gatefit("prove", *paths, "--timeout", "600").out.startswith(
        "undecided: 1 of 1 equalities were not decided in"
    )


def test_existing_certificate_is_refused(refused, finished_run, model, tmp_path):
    for command in (["compile", finished_run, "--out", tmp_path / "m.gate"], ["prove", model, model]):
        assert refused(*command, "--certificate", tmp_path) == (
            f"{tmp_path} exists; choose another folder for the certificate"
        )
    assert list(tmp_path.iterdir()) == []


def test_certificate_without_proof_is_refused(refused, finished_run, tmp_path):
    told = refused("compile", finished_run, "--out", tmp_path / "m.gate", "--no-prove", "--certificate", tmp_path / "p")
    assert told == "--certificate needs a proof; leave out --no-prove"


def test_a_circuit_says_where_it_is_from(gatefit, finished_run, model):
    result = json.loads((finished_run / "result.json").read_text())
    content = gatefit("info", model, "--json").json
    assert content["digest"] == digest(Circuit.load(model))
    said = content["metadata"]
    assert (said["run"], said["data"]) == (result["config"], result["data"])
    assert float(said["test_accuracy"]) == result["test_accuracy"]
    assert "date" not in said
    text = gatefit("info", model).out
    assert re.search(rf"^configuration +{result['config']}$", text, re.MULTILINE)
    assert re.search(rf"^data +monks-1 {result['data']}$", text, re.MULTILINE)


def test_compile_writes_the_same_bytes_unless_asked_for_the_date(gatefit, finished_run, tmp_path):
    for name, options in (("a", []), ("b", []), ("c", ["--date"])):
        gatefit("compile", finished_run, "--out", tmp_path / f"{name}.gate", "--no-optimise", "--no-prove", *options)
    plain, same, dated = ((tmp_path / f"{name}.gate").read_bytes() for name in "abc")
    assert plain == same
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", gatefit("info", tmp_path / "c.gate", "--json").json["metadata"]["date"])
    assert plain != dated


@pytest.mark.parametrize("form", ["c", "blif", "json", "html", "arduino"])
def test_an_export_is_traced_to_its_circuit(gatefit, model, different, tmp_path, form):
    out = tmp_path / ("sketch" if form == "arduino" else f"m.{form}")
    gatefit("export", model, "--to", form, "--out", out)
    found = gatefit("info", out, "--circuit", model, "--json").json
    assert found["digest"] == digest(Circuit.load(model))
    assert found["same"] is True
    assert found["metadata"]["dataset"] == "monks-1"
    assert gatefit("info", out).out.count(found["digest"]) == 1
    other = gatefit("info", out, "--circuit", different)
    assert other.code == 1
    assert f"not {different}, which is {digest(Circuit.load(different))}" in other.out


def test_only_exports_are_compared_with_a_circuit(refused, model):
    assert refused("info", model, "--circuit", model).startswith("--circuit is for exports, and ")
