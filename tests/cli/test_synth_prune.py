"""``gatefit prune``."""

from gatefit.circuit.ir import Circuit


def test_outputs_and_gates_are_dropped(gatefit, model, tmp_path):
    out = tmp_path / "small.gate"
    before = Circuit.load(model)
    outcome = gatefit("prune", model, "--outputs", 12, "--out", out, "--json")
    assert outcome.code == 0, outcome
    found, circuit = outcome.json, Circuit.load(out)
    assert circuit.outputs.size == found["outputs_after"] <= 12
    assert circuit.gates.size == found["gates_after"] < found["gates_before"] == before.gates.size
    assert found["accuracy_after"] > found["accuracy_before"] - 0.1
    assert circuit.class_names == before.class_names
    assert circuit.encoder is not None
    measured = gatefit("evaluate", out, "--split", "test", "--json").json["test"]["hard"]
    assert measured == found["accuracy_after"]
    assert "outputs" in gatefit("prune", model, "--outputs", 12, "--out", tmp_path / "again.gate").out


def test_wrong_numbers_are_refused(refused, model, tmp_path):
    message = refused("prune", model, "--outputs", 1, "--out", tmp_path / "o.gate")
    assert "outputs must be from 2 (one a class)" in message
    assert "exists; choose another --out" in refused("prune", model, "--outputs", 9, "--out", model)
