"""``gatefit train --data``: own data on the command line, from a file to a circuit that every verb takes."""

import json
import os
from dataclasses import replace

import numpy as np
import pytest

from command_line import invoke
from gatefit.circuit.file import digest
from gatefit.circuit.ir import Circuit
from gatefit.datasets.splits import stratified_split
from gatefit.estimators import LogicGateClassifier, LogicGateRegressor

QUICK = ["--width", "30", "--depth", "2", "--steps", "40"]


def people(path, rows=240, first=0):
    """Who buys follows from age and colour; ids and dates are in the way."""
    lines = ["id;age;colour;member;since;buys"]
    for i in range(first, first + rows):
        age, colour = 18 + 37 * i % 60, ("red", "green", "blue", "?")[7 * i // 3 % 4]
        buys = "yes" if (age > 40) == (colour == "red") else "no"
        lines.append(f"c{i};{age};{colour};{('true', 'false')[i % 2]};2024-01-{1 + i % 28:02};{buys}")
    path.write_text("\n".join(lines) + "\n")
    return path


DROPPED = ["--column", "id=drop", "--column", "since=drop"]


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A run on a file of people, finished; not to be changed."""
    folder = tmp_path_factory.mktemp("own")
    data = people(folder / "people.csv")
    outcome = invoke("train", "--data", data, "--target", "buys", *DROPPED, *QUICK, "--out", folder / "run")
    assert outcome.code == 0, outcome.err
    return data, folder / "run", outcome.out


@pytest.fixture(scope="module")
def valued(tmp_path_factory):
    """A regression, finished; not to be changed."""
    folder = tmp_path_factory.mktemp("value")
    data = folder / "rents.csv"
    data.write_text("size,floor,rent\n" + "".join(f"{i % 90},{i % 5},{7.5 * (i % 90) + i % 5}\n" for i in range(300)))
    outcome = invoke("train", "--data", data, "--target", "rent", *QUICK, "--out", folder / "run")
    assert outcome.code == 0, outcome.err
    return data, folder / "run", outcome.out


def test_the_first_look_and_the_end_are_said(trained):
    _, folder, out = trained
    assert "people.csv: 240 rows, separated by semicolons" in out
    assert "192 to learn from, 48 to test on" in out
    assert "buys: classification (words)" in out
    lines = out.splitlines()
    age = next(line for line in lines if line.startswith("age "))
    assert age.split()[1:4] == ["numbers", "60", "0"]
    assert "thresholds" in age
    colour = next(line for line in lines if line.startswith("colour "))
    assert colour.split()[1:4] == ["categories", "3", "60"]
    assert colour.endswith("categories: 3, missing      4")
    assert "dropped" in out
    assert "step 40/40" in out
    assert "test accuracy" in out
    assert "(proven)" in out
    assert f"next: gatefit export {folder} --to c --out model.h" in out


def test_the_estimator_makes_the_same_circuit(trained):
    data, folder, _ = trained
    pandas = pytest.importorskip("pandas")
    frame = pandas.read_csv(data, sep=";", na_values="?").drop(columns=["id", "since"])
    y = frame.pop("buys")
    kept, _ = stratified_split((y == "yes").to_numpy().astype(np.int64), test_fraction=0.2, seed=0)
    model = LogicGateClassifier(width=30, depth=2, steps=40, random_state=0).fit(frame.iloc[kept], y.iloc[kept])
    mine = Circuit.load(folder / "model.gate")
    assert digest(replace(mine, metadata={})) == digest(replace(model.circuit_, metadata={}))
    assert json.loads((folder / "report.json").read_text())["circuit"]["content_digest"] == digest(
        replace(model.circuit_, metadata={})
    )


def test_the_regressor_makes_the_same_circuit(valued):
    data, folder, out = valued
    assert "rent: regression (" in out
    assert "R² " in out
    table = np.loadtxt(data, delimiter=",", skiprows=1)
    kept, _ = stratified_split(np.zeros(len(table), dtype=np.int64), test_fraction=0.2, seed=0)
    pandas = pytest.importorskip("pandas")
    frame = pandas.read_csv(data)
    y = frame.pop("rent")
    model = LogicGateRegressor(width=30, depth=2, steps=40, random_state=0).fit(frame.iloc[kept], y.iloc[kept])
    assert digest(replace(Circuit.load(folder / "model.gate"), metadata={})) == digest(
        replace(model.circuit_, metadata={})
    )


def test_look_trains_nothing(gatefit, tmp_path):
    data = people(tmp_path / "people.csv")
    command = ["train", "--data", data, "--target", "buys", *DROPPED, "--column", "age=thresholds:4", "--look"]
    outcome = gatefit(*command, "--json")
    assert outcome.code == 0
    columns = {column["name"]: column for column in outcome.json["columns"]}
    assert (columns["age"]["bits"], columns["age"]["encoding"]) == (4, "thresholds: 4")
    assert columns["age"]["chosen"] == "thresholds:4"
    assert columns["since"]["encoding"] == "dropped"
    assert outcome.json["bits"] == 4 + 4 + 1
    assert {each["class"] for each in outcome.json["classes"]} == {"yes", "no"}
    assert [path.name for path in tmp_path.iterdir()] == ["people.csv"]


def test_evaluate_finds_the_rows_again(gatefit, trained, tmp_path):
    _, folder, _ = trained
    report = json.loads((folder / "report.json").read_text())
    found = gatefit("evaluate", folder, "--json").json
    assert found["test"] == report["results"]["test"]
    assert found["train"] == report["results"]["train"]
    more = people(tmp_path / "more.csv", rows=50, first=1000)
    of_run, of_file = (
        gatefit("evaluate", model, "--data", more, "--json").json["rows"] for model in (folder, folder / "model.gate")
    )
    assert of_run == of_file
    assert of_run["samples"] == 50
    more.write_text(more.read_text().replace("yes", "perhaps", 1))
    assert gatefit("evaluate", folder, "--data", more, "--json").json["rows"]["unknown_classes"] == 1
    assert "people.csv" in gatefit("evaluate", folder).out


def test_evaluate_says_when_the_file_has_changed(refused, trained, tmp_path):
    data, folder, _ = trained
    text = data.read_text()
    data.write_text(text + "\n")
    try:
        assert "has changed since; name a file with --data" in refused("evaluate", folder)
    finally:
        data.write_text(text)
    assert "--data of any other file" in refused("evaluate", folder, "--data", data, "--split", "test")
    assert "give the file too" in refused("evaluate", folder, "--target", "buys")
    circuit = Circuit.load(folder / "model.gate")
    assert circuit.metadata["target"] == "buys"
    assert "was trained on a file of yours, people.csv" in refused("evaluate", folder / "model.gate")


def test_every_verb_takes_the_folder(gatefit, trained, tmp_path):
    data, folder, _ = trained
    assert "#include <stdint.h>" in gatefit("export", folder, "--to", "c").out
    assert "equivalent" in gatefit("prove", folder, "--certificate", tmp_path / "proof").out
    checked = gatefit("prove", tmp_path / "proof/spec.gate", folder / "model.gate", "--check", tmp_path / "proof")
    assert "proves it" in checked.out
    again = tmp_path / "again.gate"
    compiled = gatefit("compile", folder, "--out", again, "--data", data, "--json")
    assert compiled.json["check"]["same_answers"] == compiled.json["check"]["samples"] == 240
    one, two = Circuit.load(folder / "model.gate"), Circuit.load(again)
    assert one.labels.tolist() == two.labels.tolist() == ["no", "yes"]
    assert gatefit("prove", folder / "model.gate", again).code == 0
    shown = gatefit("info", folder).out
    assert "buys (classification)" in shown
    assert gatefit("info", folder, "--json").json["data"]["target"] == "buys"
    assert "finished" in shown
    predicted = gatefit("predict", folder, data).out.splitlines()
    assert set(predicted) == {"no", "yes"}
    assert gatefit("explain", folder, data, "--row", "0").code == 0
    assert gatefit("view", folder, "--out", tmp_path / "view.html").code == 0
    assert json.loads((folder / "result.json").read_text())["steps"] == 40
    assert gatefit("verify", "reachable", folder, "--target", "yes").code in (0, 1)


def test_a_regression_is_taken_too(gatefit, valued, tmp_path):
    data, folder, _ = valued
    found = gatefit("evaluate", folder, "--json").json
    assert set(found["test"]) == {"r2", "mean_absolute_error", "samples"}
    assert found["train"]["samples"] == 240
    assert gatefit("prove", folder).code == 0
    compiled = gatefit("compile", folder, "--out", tmp_path / "a.gate", "--data", data, "--json")
    assert compiled.json["check"]["same_answers"] == 300
    assert "rent (regression)" in gatefit("info", folder).out
    html = gatefit("export", folder, "--to", "html", "--samples", 3, "--out", tmp_path / "a.html")
    assert html.code == 0, html.err


def test_samples_of_the_own_file_go_into_the_page(gatefit, refused, trained, tmp_path):
    data, folder, _ = trained
    for number, options in enumerate(([], ["--data", data])):
        page = tmp_path / f"{number}.html"
        outcome = gatefit("export", folder, "--to", "html", "--samples", 2, "--out", page, *options)
        assert outcome.code == 0, outcome.err
        assert '"samples"' in page.read_text()
    assert "--data is for --to html" in refused("export", folder, "--to", "c", "--data", data)
    assert "are for --samples" in refused("export", folder, "--to", "html", "--data", data)


def test_prune_by_the_own_file(gatefit, refused, trained, tmp_path):
    data, folder, _ = trained
    out = tmp_path / "small.gate"
    outcome = gatefit("prune", folder, "--data", data, "--outputs", 10, "--out", out, "--json")
    assert outcome.code == 0, outcome.err
    assert outcome.json["outputs_after"] == 10
    assert Circuit.load(out).labels.tolist() == ["no", "yes"]
    assert "give it, or another, with --data FILE" in refused(
        "prune", folder, "--outputs", 10, "--out", tmp_path / "b.gate"
    )


def test_a_test_file_is_not_learned_from(gatefit, tmp_path):
    data, test = people(tmp_path / "a.csv"), people(tmp_path / "b.csv", rows=60, first=500)
    command = ["train", "--data", data, "--target", "buys", "--test", test, *DROPPED, *QUICK, "--out", tmp_path / "run"]
    report = gatefit(*command, "--json").json
    assert report["results"]["train"]["samples"] == 240
    assert report["results"]["test"]["samples"] == 60
    assert gatefit("evaluate", tmp_path / "run", "--json").json["test"] == report["results"]["test"]
    assert "is finished already" in gatefit(*command).out


def test_all_rows_can_be_learned_from(gatefit, refused, tmp_path):
    data = people(tmp_path / "a.csv")
    command = ["train", "--data", data, "--target", "buys", "--test-fraction", 0, *DROPPED, *QUICK]
    report = gatefit(*command, "--out", tmp_path / "run", "--json").json
    assert set(report["results"]) == {"steps", "train"}
    assert "there are none to test on" in refused("evaluate", tmp_path / "run", "--split", "test")


def test_a_budget_and_other_parameters_are_the_estimators(gatefit, tmp_path):
    data = people(tmp_path / "a.csv")
    options = ["--max-gates", "60", "--steps", "20", "--seed", "3", "--patience", "2", "--validation-fraction", "0.25"]
    outcome = gatefit(
        "train", "--data", data, "--target", "buys", *DROPPED, *options, "--out", tmp_path / "r", "--json"
    )
    assert outcome.code == 0, outcome.err
    assert outcome.json["circuit"]["gates"] <= 60
    assert outcome.json["parameters"] == {
        "steps": 20,
        "max_gates": 60,
        "random_state": 3,
        "early_stopping": True,
        "validation_fraction": 0.25,
        "n_iter_no_change": 2,
    }


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--target", "buyz"], "has no column 'buyz'; did you mean 'buys'?"),
        (["--target", "buys"], "column 'id' holds free text or names: 240 different words in 240 rows ('c0')"),
        (["--target", "buys", "--column", "id=drop"], "line 2: column 'since' holds dates or times ('2024-01-01')"),
        (["--target", "buys", "--column", "id"], "--column takes NAME=ENCODING"),
        (["--target", "buys", "--column", "id=drop", "--column", "id=drop"], "--column is given twice for 'id'"),
        (["--target", "buys", "--dataset", "mnist"], "--dataset is for --dataset; leave it out"),
        (["--target", "buys", *DROPPED, "--shift", "1"], "--shift is for --dataset"),
        (["--target", "buys", *DROPPED, "--test", "none.csv"], "there is no file none.csv"),
        (["--target", "buys", *DROPPED, "--width", "31"], "31"),
        (["--target", "age", *DROPPED, "--readout", "linear"], "--readout is for classes, and age is a value"),
        (["--target", "buys", *DROPPED, "--task", "regression"], "a regression needs numbers in 'buys', got 'no'"),
        (["--target", "buys", *DROPPED, "--test-fraction", "0.001"], "of 240 rows is none"),
        ([], "say which column"),
    ],
)
def test_what_cannot_be_trained_is_said_in_one_sentence(refused, tmp_path, options, said):
    data = people(tmp_path / "people.csv")
    assert said in refused("train", "--data", data, "--quiet", "--out", tmp_path / "run", *options)
    assert not (tmp_path / "run" / "config.json").exists()


def test_a_folder_is_free_again_where_nothing_was_begun(gatefit, refused, tmp_path):
    command = ["train", "--data", people(tmp_path / "a.csv"), "--target", "buys", *DROPPED, "--out", tmp_path / "run"]
    assert "31" in refused(*command, "--quiet", "--width", 31)
    assert gatefit(*command, *QUICK, "--quiet").code == 0


def test_options_of_own_data_need_a_file(refused):
    assert "--target is about your own data; say which with --data FILE" in refused(
        "train", "--dataset", "monks-1", "--target", "x"
    )


def test_a_folder_of_another_training_is_refused(refused, gatefit, trained, finished_run, tmp_path):
    data, folder, _ = trained
    command = ["train", "--data", data, "--target", "buys", *DROPPED, "--quiet"]
    assert "belongs to another training (parameters:" in refused(*command, "--steps", 50, "--out", folder)
    assert "holds a run on another data set" in refused(*command, "--out", finished_run)
    assert "--steps too; leave it out" in refused("train", "--resume", folder, "--steps", 50)
    assert "is finished already" in gatefit("train", "--resume", folder).out


@pytest.mark.outside
@pytest.mark.data
def test_adult_from_csv_is_the_same_circuit_on_the_command_line_and_in_python(tmp_path):
    pandas = pytest.importorskip("pandas")
    if "GATEFIT_DATA" not in os.environ:
        pytest.skip("needs real data: set GATEFIT_DATA to the folder that holds adult/")
    from gatefit.datasets import load_adult_frame

    data = tmp_path / "adult.csv"
    train, income, *_ = load_adult_frame(download=False)
    train.assign(income=income).to_csv(data, index=False, na_rep="?")
    command = ["train", "--data", data, "--target", "income", "--test-fraction", 0, "--steps", 100, "--seed", 7]
    assert invoke(*command, "--out", tmp_path / "run", "--quiet").code == 0
    frame = pandas.read_csv(data, na_values="?")
    y = frame.pop("income")
    model = LogicGateClassifier(steps=100, random_state=7).fit(frame, y)
    found = Circuit.load(tmp_path / "run" / "model.gate")
    assert digest(replace(found, metadata={})) == digest(replace(model.circuit_, metadata={}))


@pytest.mark.outside
def test_ctrl_c_keeps_what_was_learned_and_goes_on_to_the_same_circuit(process, gatefit, tmp_path):
    import shlex
    import signal
    import subprocess

    from patience import HANG

    data = people(tmp_path / "people.csv")
    options = ["--data", data, "--target", "buys", *DROPPED, "--width", 30, "--depth", 2, "--steps", 2000]
    assert gatefit("train", *options, "--out", tmp_path / "whole", "--quiet").code == 0
    running = process("train", *options, "--out", tmp_path / "run")
    for line in running.stdout:
        if line.startswith("step 100/"):
            running.send_signal(signal.SIGINT)
            break
    rest, err = running.communicate(timeout=HANG)
    assert running.returncode == 130, err
    assert "stopping after this step" in err
    told, command = rest.splitlines()[-2:]
    assert told.startswith("stopped at step ")
    assert told.endswith("what was learned so far is saved, to go on:")
    assert not (tmp_path / "run" / "result.json").exists()
    assert Circuit.load(tmp_path / "run" / "model.gate").labels.tolist() == ["no", "yes"]
    assert gatefit("evaluate", tmp_path / "run", "--json").json["test"]["samples"] == 48
    done = subprocess.run(shlex.split(command), capture_output=True, text=True, timeout=HANG, check=True)
    assert "resumed at step" in done.stdout
    one, two = (Circuit.load(tmp_path / name / "model.gate") for name in ("whole", "run"))
    assert digest(one) == digest(two)


def test_other_kinds_of_files(gatefit, tmp_path):
    rng = np.random.default_rng(0)
    x = rng.integers(0, 256, (60, 5, 5)).astype(np.uint8)
    y = (x[:, 2, 2] > 127).astype(np.int64)
    np.savez(tmp_path / "a.npz", x=x, y=y)
    outcome = gatefit("train", "--data", tmp_path / "a.npz", "--target", "y", *QUICK, "--out", tmp_path / "a")
    assert outcome.code == 0, outcome.err
    assert "5 x 5 pixels, 1 channels" in outcome.out
    assert gatefit("evaluate", tmp_path / "a", "--data", tmp_path / "a.npz", "--json").json["rows"]["samples"] == 60
    assert len(gatefit("predict", tmp_path / "a", tmp_path / "a.npz").out.split()) == 60
    image = pytest.importorskip("PIL.Image")
    for number, (pixels, kind) in enumerate(zip(x, y, strict=True)):
        path = tmp_path / "images" / f"kind{kind}" / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        image.fromarray(pixels).save(path)
    outcome = gatefit("train", "--data", tmp_path / "images", *QUICK, "--out", tmp_path / "b")
    assert outcome.code == 0, outcome.err
    assert gatefit("evaluate", tmp_path / "b", "--data", tmp_path / "images", "--json").json["rows"]["samples"] == 60
    assert gatefit("export", tmp_path / "b", "--to", "html", "--samples", 1, "--out", tmp_path / "b.html").code == 0


def test_a_file_without_header(gatefit, tmp_path):
    data = tmp_path / "x.csv"
    data.write_text("".join(f"{'pq'[i % 50 > 20]},c{i},{i % 50},{i % 3}\n" for i in range(150)))
    command = ["train", "--data", data, "--no-header", "--target", "0", "--column", "x1=drop", *QUICK]
    report = gatefit(*command, "--test", data, "--out", tmp_path / "run", "--json").json
    assert report["results"]["test"] == report["results"]["train"]
    assert Circuit.load(tmp_path / "run" / "model.gate").encoder.feature_names == ("x0", "x1")
