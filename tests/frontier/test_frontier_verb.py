"""``gatefit frontier``: rows that are trained, proven, counted, shown and adopted; nothing in them is typed in."""

import json
import shlex
import shutil

import pytest

from gatefit.circuit.file import digest
from gatefit.circuit.ir import Circuit
from gatefit.circuit.prove.certificate import check_certificate
from gatefit.circuit.statistics import statistics
from gatefit.experiments.store import Store
from gatefit.frontier.results import read_results


def row_of(made, name, seed):
    row = read_results(made.out)[name]
    return next(each for each in row.seeds if each["seed"] == seed)


def test_the_rows_are_those_of_the_entries(made):
    rows = read_results(made.out)
    assert {name: [each["seed"] for each in row.seeds] for name, row in rows.items()} == {
        "tiny": [0, 1],
        "tiny-pruned": [1],
    }
    for row in rows.values():
        for config, figures in zip(row.entry.runs(), row.seeds, strict=True):
            assert figures["run"] == config.identity
            assert figures["threads"] >= 1
            assert figures["seconds"] > 0


@pytest.mark.parametrize(("name", "seed"), [("tiny", 0), ("tiny", 1), ("tiny-pruned", 1)])
def test_the_commands_of_a_row_make_its_circuit(made, gatefit, tmp_path, monkeypatch, name, seed):
    monkeypatch.chdir(tmp_path)
    figures = row_of(made, name, seed)
    for command in read_results(made.out)[name].entry.commands(seed):
        outcome = gatefit(*shlex.split(command)[1:])
        assert outcome.code == 0, outcome
    circuit = Circuit.load(f"{name}.gate")
    assert digest(circuit) == figures["digest"]
    assert statistics(circuit).live_gates == figures["live_gates"] <= figures["trained_gates"] == 40
    evaluated = gatefit("evaluate", f"{name}.gate", "--split", "test", "--json").json["test"]
    assert (evaluated["hard"], evaluated["samples"]) == (figures["test_accuracy"], figures["test_samples"])


def test_every_step_to_the_circuit_is_proven_by_a_certificate_that_is_kept(made):
    figures = row_of(made, "tiny-pruned", 1)
    (folder,) = (made.store / "circuits").glob(f"{figures['run']}-12-of-100")
    trained, pruned, deployed = (Circuit.load(folder / f"{name}.gate") for name in ("trained", "pruned", "model"))
    check_certificate(folder / "certificate-pruned", pruned, deployed)
    assert [proof["of"] for proof in figures["proofs"]] == [
        "the trained network, hardened",
        f"the circuit with 12 of its {row_of(made, 'tiny', 1)['outputs']} outputs",
    ]
    assert figures["proofs"][0]["spec_digest"] == digest(trained)
    assert figures["proofs"][1]["spec_digest"] == digest(pruned)
    assert figures["proofs"][1]["digest"] == figures["digest"] == digest(deployed)


def test_a_second_call_trains_and_measures_nothing(made, gatefit, monkeypatch):
    from gatefit.experiments import worker

    monkeypatch.setattr(worker, "execute_together", None)
    before = (made.out / "frontier.json").read_bytes()
    outcome = gatefit("frontier", "tiny", *made.options, "--json")
    assert outcome.code == 0
    assert outcome.json["rows"][0]["accuracy"] == read_results(made.out)["tiny"].accuracy
    assert (made.out / "frontier.json").read_bytes() == before


def test_what_a_killed_measurement_left_is_made_again(made, gatefit):
    figures = row_of(made, "tiny", 0)
    folder = made.store / "circuits" / figures["run"]
    (folder / "row.json").unlink()
    outcome = gatefit("frontier", "tiny", "--seeds", "0,", *made.options)
    assert outcome.code == 0, outcome
    assert row_of(made, "tiny", 0) == figures
    assert "tiny, seed 0: " in outcome.err


def test_the_page_and_the_table_are_made_from_the_figures_alone(made, gatefit, tmp_path):
    page = tmp_path / "page.md"
    outcome = gatefit("frontier", "--table-only", "--out", made.out, "--page", page)
    assert outcome.code == 0
    assert page.read_bytes() == made.page.read_bytes()
    figures = row_of(made, "tiny", 0)
    assert f"{100 * figures['test_accuracy']:.2f}" in page.read_text()
    assert "gatefit train --dataset monks-1 " in page.read_text()
    assert "tiny-pruned" in outcome.out


def test_another_configuration_of_the_same_name_drops_the_figures_of_the_old_one(made):
    from dataclasses import replace

    from gatefit.frontier.results import merged

    rows = read_results(made.out)
    figures = rows["tiny"].seeds[1]
    assert [each["seed"] for each in merged(rows, rows["tiny"].entry, figures)["tiny"].seeds] == [0, 1]
    other = replace(rows["tiny"].entry, config=replace(rows["tiny"].entry.config, steps=41))
    assert [each["seed"] for each in merged(rows, other, figures)["tiny"].seeds] == [1]


def test_a_circuit_that_is_not_what_was_trained_is_no_row(made, gatefit, tmp_path):
    entries = tmp_path / "entries.json"
    entries.write_text(made.entries.read_text())
    options = ["--entries", entries, "--store", tmp_path / "store", "--out", tmp_path / "out"]
    assert gatefit("frontier", "tiny", "--seeds", "0,", *options).code == 0
    with Store.open(tmp_path / "store") as store:
        (record,) = store.records()
        summary = json.dumps({**record.summary, "test_accuracy": 0.123})
        store._connection.execute("UPDATE runs SET summary = ?", (summary,))
    outcome = gatefit("frontier", "tiny", "--seeds", "0,", *options, "--measure-again")
    assert outcome.code == 1
    assert "and the network that was trained on 12.3000%; this is a bug in gatefit" in outcome.err


def test_a_run_that_was_trained_elsewhere_is_taken_with_its_folder(made, gatefit, tmp_path):
    figures = row_of(made, "tiny", 0)
    options = ["--entries", made.entries, "--store", tmp_path / "store", "--out", tmp_path / "out"]
    shutil.copytree(made.store / "runs" / figures["run"], tmp_path / "store/runs" / figures["run"])
    assert gatefit("frontier", "tiny", "--seeds", "0,", *options).code == 0
    (copied,) = read_results(tmp_path / "out")["tiny"].seeds
    assert copied == figures | {"finished": copied["finished"]}
    shutil.rmtree(tmp_path / "store/runs" / figures["run"])
    outcome = gatefit("frontier", "tiny", "--seeds", "0,", *options, "--measure-again")
    assert outcome.code == 1
    assert "but its network is not in " in outcome.err


def test_without_yosys_the_row_is_kept_and_the_tables_are_missed(made, gatefit, tmp_path, monkeypatch):
    from gatefit.hardware import flow
    from gatefit.hardware.tools import MissingToolError

    def nowhere():
        raise MissingToolError("yosys", "synthesis")

    monkeypatch.setattr(flow, "find_yosys", nowhere)
    rows = json.loads(made.entries.read_text())
    entries = tmp_path / "entries.json"
    entries.write_text(json.dumps([{**rows[0], "synth": ["lut6"]}]))
    outcome = gatefit("frontier", "tiny", "--entries", entries, "--store", made.store, "--out", tmp_path)
    assert outcome.code == 1
    assert "tables are not counted: synthesis needs yosys, which is not installed" in outcome.err
    assert len(read_results(tmp_path)["tiny"].seeds) == 2
    outcome = gatefit("frontier", "tiny", "--entries", entries, "--store", made.store, "--out", tmp_path, "--no-synth")
    assert outcome.code == 0


@pytest.mark.outside
@pytest.mark.slow
def test_tables_are_those_of_synth(made, gatefit, tmp_path):
    from tools import require_tool

    require_tool("yosys")
    rows = json.loads(made.entries.read_text())
    entries = tmp_path / "entries.json"
    entries.write_text(json.dumps([{**rows[0], "seeds": [0], "synth": ["lut4", "xilinx"]}]))
    options = ["--entries", entries, "--store", tmp_path / "store", "--out", tmp_path / "out"]
    assert gatefit("frontier", "tiny", *options).code == 0
    figures = read_results(tmp_path / "out")["tiny"].seeds[0]
    circuit = tmp_path / "store" / "circuits" / figures["run"] / "model.gate"
    report = gatefit("synth", circuit, "--target", "lut4,xilinx", "--pipeline", "0", "--out", tmp_path / "s", "--json")
    for build in report.json["builds"]:
        assert figures["luts"][build["target"]]["tables"] == build["core"]["tables"] > 0
        assert figures["luts"][build["target"]]["carries"] == build["core"]["carries"]


def test_a_smoke_test_trains_fewer_steps_and_writes_elsewhere(made, gatefit, refused, tmp_path):
    assert "name another folder with --out" in refused("frontier", "tiny", "--steps-scale", 0.1)
    options = ["--entries", made.entries, "--store", tmp_path / "store", "--out", tmp_path]
    assert "leave out --adopt" in refused("frontier", "tiny", *options, "--steps-scale", 0.1, "--adopt", tmp_path)
    assert gatefit("frontier", "tiny", "--seeds", 1, *options, "--steps-scale", 0.5).code == 0
    assert [each["steps"] for each in read_results(tmp_path)["tiny"].seeds] == [20]


def test_the_plan_says_what_is_finished(made, gatefit):
    plan = gatefit("frontier", "tiny", "--seeds", 3, *made.options, "--dry-run", "--json").json
    assert [run["status"] for run in plan["runs"]] == ["finished", "finished", "to do"]
    assert [run["seconds"] == 0 for run in plan["runs"]] == [True, True, False]
    assert "3 runs, 2 finished; about " in gatefit("frontier", "tiny", "--seeds", 3, *made.options, "--dry-run").out


def test_the_list_of_rows(made, gatefit):
    listed = gatefit("frontier", "--list", *made.options, "--json").json["rows"]
    assert [row["name"] for row in listed] == ["tiny", "tiny-pruned"]
    assert "for tests" in gatefit("frontier", "--list", *made.options).out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "name a row, as in `gatefit frontier mnist-1k`, or --all; --list shows them"),
        (["tiney"], "unknown row 'tiney'; did you mean tiny?"),
        (["tiny", "--all"], "--all is every row, got tiny too; leave one of them out"),
        (["--all", "--dry-run", "--table-only"], "give one of them"),
        (["tiny", "--seeds", "x"], "--seeds is a number of seeds or a list of them"),
    ],
)
def test_what_cannot_be_done_is_said(made, refused, arguments, message):
    assert message in refused("frontier", *arguments, *made.options)


def test_figures_that_cannot_be_read_are_named(made, refused, tmp_path):
    assert "holds no frontier.json with rows" in refused("frontier", "--table-only", "--out", tmp_path)
    for content in ("{", "[]", '{"format": "other", "version": 1, "rows": []}'):
        (tmp_path / "frontier.json").write_text(content)
        told = refused("frontier", "--table-only", "--out", tmp_path)
        assert "frontier.json cannot be read: " in told
        assert "make it again with `gatefit frontier`" in told


def test_a_circuit_that_is_not_in_the_store_is_not_adopted(made, gatefit, tmp_path):
    adopt = ["--table-only", "--out", made.out, "--adopt", tmp_path / "models"]
    outcome = gatefit("frontier", "tiny", *adopt, "--store", tmp_path / "store")
    assert outcome.code == 1
    assert "the circuit of tiny is not in " in outcome.err
    assert not (tmp_path / "models").exists()
    assert gatefit("frontier", "tiny", *adopt, "--store", made.store).code == 0
    for path in (tmp_path / "models").iterdir():
        assert path.read_bytes() == (made.models / path.name).read_bytes()
