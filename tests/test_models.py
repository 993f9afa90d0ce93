"""Circuits that ship with the package: what their cards say is so, and their names load them everywhere."""

import gzip
import json
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from command_line import _plain_environment, gatefit, refused
from gatefit import models
from gatefit.circuit.engine import Engine
from gatefit.circuit.file import digest
from gatefit.circuit.ir import Circuit
from gatefit.circuit.statistics import statistics
from gatefit.datasets import DATASETS, DatasetError, load_dataset

__all__ = ["_plain_environment", "gatefit", "refused"]

ROOT = Path(__file__).parents[1]
SHIPPED = [name for name in models.names() if models.is_shipped(name)]
LARGE = [name for name in models.names() if not models.is_shipped(name)]


@pytest.mark.parametrize("name", SHIPPED)
def test_the_card_is_of_the_circuit(name):
    card, circuit = models.card(name), Circuit.load(name)
    counts = statistics(circuit)
    assert card["name"] == name
    assert card["digest"] == digest(circuit) == card["proofs"][-1]["digest"]
    assert card["live_gates"] == counts.live_gates <= models.LARGEST
    assert card["depth"] == counts.depth
    assert card["outputs"] == counts.outputs
    assert card["encoder_comparisons"] == counts.encoder_comparisons
    assert card["readout_gates"] == counts.readout.gates
    assert card["run"] == circuit.metadata["run"]
    assert card["dataset"] == circuit.metadata["dataset"]
    assert card["dataset_options"] == json.loads(circuit.metadata["dataset_options"])
    assert card["data_terms"] == DATASETS[card["dataset"]].terms
    assert all(command.startswith("gatefit ") for command in card["commands"])


def accuracy_is_as_said(name):
    card, circuit = models.card(name), Circuit.load(name)
    try:
        data = load_dataset(card["dataset"], download=False, **card["dataset_options"])
    except DatasetError as error:
        pytest.skip(f"needs {card['dataset']} under $GATEFIT_DATA: {error}")
    assert data.digest == card["data"]
    right = Engine(circuit).predict(circuit.encoder.transform(data.x_test)) == data.y_test
    assert len(right) == card["test_samples"]
    assert float(right.mean()) == card["test_accuracy"] == card["seeds"][str(card["seed"])]


SMALL_DATA = [name for name in SHIPPED if DATASETS[models.card(name)["dataset"]].test < 1000]


@pytest.mark.parametrize("name", SMALL_DATA)
def test_the_accuracy_is_as_the_card_says(name):
    accuracy_is_as_said(name)


@pytest.mark.outside
@pytest.mark.data
@pytest.mark.parametrize("name", [name for name in SHIPPED if name not in SMALL_DATA])
def test_the_accuracy_on_real_data_is_as_the_card_says(name):
    accuracy_is_as_said(name)


@pytest.mark.parametrize("name", LARGE)
def test_one_that_is_too_large_says_how_to_make_it(name):
    assert models.card(name)["live_gates"] > models.LARGEST
    with pytest.raises(FileNotFoundError, match=f"model {name} is too large to ship .* make it with: gatefit train"):
        Circuit.load(name)


def test_all_of_them_are_small():
    assert sum(path.stat().st_size for path in models.FOLDER.iterdir() if path.is_file()) < 1_000_000


def test_the_package_holds_every_file_of_the_folder():
    text = (ROOT / "pyproject.toml").read_text()
    patterns = re.findall(r'"([^"]+)"', re.search(r"package-data\]\ngatefit = \[(.*?)\]\n", text, re.DOTALL)[1])
    package = ROOT / "src/gatefit"
    held = {path for pattern in patterns for path in package.glob(pattern)}
    for folder in ("models", "frontier"):
        files = {path for path in (package / folder).iterdir() if path.is_file() and path.suffix != ".py"}
        assert files <= held


@pytest.fixture
def shelf(tmp_path, monkeypatch):
    """A folder of models with one small circuit, one that is too large, and an empty working directory."""
    from gatefit.circuit.file import dumps
    from gatefit.circuit.readout import GroupSum

    circuit = Circuit(2, [6, 8], [[0, 0], [1, 1]], [2, 3], GroupSum([0, 1], [0, 0]))
    card = {
        "name": "xor-2", "title": "a test", "note": "", "dataset": "monks-1", "dataset_options": {}, "data": "",
        "data_source": "nowhere", "data_terms": "none", "seed": 0, "run": "", "commands": ["gatefit train --seed 0"],
        "test_accuracy": 0.5, "test_samples": 4, "seeds": {"0": 0.5}, "trained_gates": 2, "live_gates": 2, "depth": 1,
        "outputs": 2, "encoder_comparisons": 0, "readout_gates": 8, "luts": {"lut6": 3}, "digest": digest(circuit),
        "proofs": [{"of": "x", "gates": 2, "optimised_gates": 2, "method": "sat", "steps": 1,
                    "spec_digest": digest(circuit), "digest": digest(circuit)}],
        "made": {"finished": "2030-01-31T00:00:00Z", "code_version": "0", "seconds": 1.0, "threads": 2, "cpu": "x"},
    }  # fmt: skip
    monkeypatch.setattr(models, "FOLDER", tmp_path / "models")
    models.write(tmp_path / "models", card, dumps(circuit))
    models.write(tmp_path / "models", card | {"name": "xor-9000", "live_gates": 9000}, None)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return circuit


def test_a_name_loads_a_circuit(shelf):
    assert digest(Circuit.load("xor-2")) == digest(Circuit.load(Path("xor-2"))) == digest(shelf)


def test_a_file_of_that_name_wins(shelf):
    from gatefit.circuit.readout import GroupSum

    other = Circuit(2, [1], [[0], [1]], [2], GroupSum([0], [0]))
    other.save("xor-2")
    assert digest(Circuit.load("xor-2")) == digest(other)
    assert digest(Circuit.load("./xor-2")) == digest(other)
    Path("xor-2").unlink()
    with pytest.raises(FileNotFoundError):
        Circuit.load("./xor-2")  # a path is a path


def test_a_folder_of_that_name_wins_too(shelf, refused):
    Path("xor-2").mkdir()
    assert "xor-2 holds no circuit yet" in refused("export", "xor-2", "--to", "json")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("xor-3", "there is no file xor-3, and gatefit ships no model of that name; did you mean xor-2"),
        ("whatever", "there is no file whatever, and gatefit ships no model of that name; `gatefit models` lists them"),
        ("xor-9000", "the model xor-9000 is too large to ship with gatefit; make it with: gatefit train --seed 0"),
    ],
)
def test_an_unknown_name_is_told_the_nearest_and_a_large_one_its_commands(shelf, refused, name, message):
    with pytest.raises(FileNotFoundError, match=re.escape(message)):
        Circuit.load(name)
    assert message in refused("info", name)
    assert message in refused("export", name, "--to", "c")
    assert message in refused("synth", name, "--target", "lut4")


def test_a_missing_file_is_a_missing_file(shelf, refused):
    assert refused("info", "xor-2.gate") == "xor-2.gate: No such file or directory"


def test_every_verb_on_circuits_takes_a_name(shelf, gatefit):
    info = gatefit("info", "xor-2", "--json").json
    assert (info["file"], info["bytes"], info["gates"]) == ("xor-2", models.size("xor-2"), 2)
    assert "ships with gatefit" in gatefit("info", "xor-2").out
    assert gatefit("export", "xor-2", "--to", "html", "--out", "page.html").code == 0
    assert gatefit("export", "xor-2", "--to", "verilog").out.startswith("// A logic gate network")
    assert gatefit("optimise", "xor-2", "--out", "smaller.gate").code == 0
    assert gatefit("prove", "xor-2", "smaller.gate", "--json").json["verdict"] == "equivalent"
    Path("bits.csv").write_text("0,0\n0,1\n1,1\n")
    predicted = gatefit("predict", "xor-2", "bits.csv", "--no-header", "--json").json["predictions"]
    assert predicted == Circuit.load("smaller.gate").predict([[0, 0], [0, 1], [1, 1]]).tolist()


def test_the_list_and_the_cards(shelf, gatefit, refused):
    listed = gatefit("models", "--json").json["models"]
    assert [(card["name"], card["ships"]) for card in listed] == [("xor-2", True), ("xor-9000", False)]
    table = gatefit("models").out
    assert "xor-2" in table
    assert "too large to ship, `gatefit models NAME` shows the commands that make it: xor-9000" in table
    card = gatefit("models", "xor-2").out
    for words in ("50.00 % of 4, seed 0", "gatefit train --seed 0", "certificate checked", digest(shelf), "2030-01-31"):
        assert words in card
    assert gatefit("models", "xor-9000", "--json").json["ships"] is False
    assert "unknown model 'xor-1'; did you mean xor-2?" in refused("models", "xor-1")


def test_no_models_are_no_error(gatefit, tmp_path, monkeypatch):
    monkeypatch.setattr(models, "FOLDER", tmp_path)
    assert "no models ship with this gatefit" in gatefit("models").out


def test_the_same_card_and_circuit_give_the_same_bytes(shelf, tmp_path, monkeypatch):
    from gatefit.circuit.file import dumps

    first = (models.FOLDER / "xor-2.gate.gz").read_bytes()
    monkeypatch.setattr(time, "time", lambda: 1e9)
    models.write(tmp_path / "again", models.card("xor-2"), dumps(shelf))
    assert (tmp_path / "again/xor-2.gate.gz").read_bytes() == first
    with pytest.raises(ValueError, match="name is lower case letters, digits and dashes, got 'x/y'; rename it"):
        models.write(tmp_path, {"name": "x/y"}, None)


def test_a_damaged_model_is_refused_as_any_file_is(shelf):
    from gatefit.circuit.file import CircuitFileError

    path = models.FOLDER / "xor-2.gate.gz"
    content = bytearray(gzip.decompress(path.read_bytes()))
    content[-1] ^= 1
    path.write_bytes(gzip.compress(bytes(content)))
    with pytest.raises(CircuitFileError, match="does not match its digest"):
        Circuit.load("xor-2")


def test_a_model_is_loaded_and_run_without_torch():
    if not SHIPPED:
        pytest.skip("no model ships")
    code = f"""
import sys
sys.modules["torch"] = None
import numpy as np
from gatefit import Circuit
circuit = Circuit.load({SHIPPED[0]!r})
print(len(circuit.scores(np.zeros((3, circuit.encoder.features)))))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "3\n"


def test_a_copy_of_a_model_is_a_circuit_file(shelf, tmp_path):
    shutil.copy(models.FOLDER / "xor-2.gate.gz", tmp_path / "copy.gate.gz")
    (tmp_path / "copy.gate").write_bytes(gzip.decompress((tmp_path / "copy.gate.gz").read_bytes()))
    assert digest(Circuit.load(tmp_path / "copy.gate")) == digest(shelf)
