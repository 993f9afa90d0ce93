"""``gatefit train --max-gates`` and ``--max-luts``."""

from gatefit.circuit.optimise import optimise
from gatefit.circuit.statistics import statistics
from gatefit.harden import harden
from gatefit.training.budget import Size, estimated_luts
from gatefit.training.runs import load_network

SHORT = ("--dataset", "monks-1", "--steps", "30", "--evaluate-every", "30")


def test_a_budget_of_gates_is_kept(gatefit, refused, tmp_path):
    folder = tmp_path / "run"
    done = gatefit("train", *SHORT, "--max-gates", "91", "--out", folder, "--json")
    assert done.code == 0
    assert done.json["network"]["gates"] == 88
    assert done.json["config"]["votes"] == "all"
    circuit, _ = optimise(harden(load_network(folder / "model.safetensors")))
    assert statistics(circuit).live_gates <= 91
    assert gatefit("train", *SHORT, "--max-gates", "91", "--out", folder, "--json").json["finished"]
    assert "--resume takes the configuration of" in refused("train", "--resume", folder, "--max-gates", "50")
    assert "max_gates=1 is too small: the smallest is 2" in refused("train", *SHORT, "--max-gates", "1")
    message = refused("train", *SHORT, "--max-gates", "100", "--width", "20")
    assert "max_gates and max_luts choose the width, got width=20 too" in message


def test_a_budget_of_tables_lets_the_last_of_two_layers_vote(gatefit, tmp_path):
    done = gatefit("train", *SHORT, "--max-luts", "60", "--out", tmp_path / "run", "--json")
    config = done.json["config"]
    assert (config["depth"], config["votes"], config["wiring"]) == (2, "last", "learned")
    assert (
        estimated_luts(Size(config["width"], 2, "last"), 2)
        <= 60
        < estimated_luts(Size(config["width"] + 2, 2, "last"), 2)
    )
