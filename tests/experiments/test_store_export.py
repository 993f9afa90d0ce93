"""Exports and imports: exact, in order, nothing doubled, nothing overwritten, nothing private."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from gatefit.experiments.export import Export, open_results, public_error, write_export
from gatefit.experiments.import_runs import FinalDiagnostics, import_runs, read_run_folder
from gatefit.experiments.record import RunRecord
from gatefit.experiments.runner import run_all
from gatefit.experiments.store import Store, StoreError
from gatefit.paper.outcome import Results
from gatefit.training.config import RunConfig
from gatefit.training.folder import RunFolderError
from gatefit.training.runs import execute

BUILD = "gatefit.paper.baselines:build_model"
CONFIG = RunConfig(dataset="monks-1", width=40, depth=2, steps=60, evaluate_every=20)
FILES = ("runs.csv", "metrics.csv", "diagnostics.jsonl")


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    """A store with finished runs of several kinds, a failed one and a planned one; not to be changed."""
    folder = tmp_path_factory.mktemp("filled")
    with Store.open(folder) as store:
        configs = [replace(CONFIG, seed=s) for s in range(2)]
        free = replace(CONFIG, method="multilinear-free", readout_temperature=2.5, learnable_temperature=False)
        # One run has a column that the others lack.
        configs[1] = replace(configs[1], batch_size=100, whole_batches=True)
        run_all([*configs, free, replace(CONFIG, method="mlp", width=8), replace(CONFIG, width=41)], store, build=BUILD)
        store.plan([replace(CONFIG, seed=9)])
    return folder


def export(folder, out, **options):
    with open_results(folder) as source:
        write_export(source.records(rows=True), out, **options)
    return [(out / name).read_bytes() if (out / name).exists() else None for name in FILES]


def test_export_import_export_gives_the_same_bytes(filled, tmp_path):
    first = export(filled, tmp_path / "first")
    assert export(filled, tmp_path / "again") == first
    assert export(tmp_path / "first", tmp_path / "read") == first
    with Store.open(tmp_path / "store") as store:
        outcomes = [intake.outcome for intake in import_runs([tmp_path / "first"], store)]
        assert outcomes == ["added"] * 6
        outcomes = [intake.outcome for intake in import_runs([tmp_path / "first", filled], store)]
        assert sorted(outcomes) == ["present"] * 8 + ["skipped"] * 4
    assert export(tmp_path / "store", tmp_path / "second") == first


def test_an_export_holds_what_the_store_holds(filled, tmp_path):
    export(filled, tmp_path)
    with open_results(filled) as store, open_results(tmp_path) as exported:
        assert isinstance(store, Store)
        assert isinstance(exported, Export)
        for record in store.records(rows=True):
            copy = exported.find(record.identity)
            if record.status != "failed":
                assert copy == replace(record, machine={k: v for k, v in record.machine.items() if v is not None})
        assert exported.records() == [replace(r, metrics=(), diagnostics={}) for r in exported.records(rows=True)]
        for chosen in ({"status": "finished"}, {"method": "mlp"}, {"dataset": "monks-1", "status": "failed"}):
            names = [record.identity for record in store.records(**chosen)]
            assert [record.identity for record in exported.records(**chosen)] == names != []
        assert exported.find("000000000000") is None
        assert Results(exported.find).get(CONFIG).summary == store.find(CONFIG.identity).summary


def test_an_export_is_sorted_and_complete(filled, tmp_path):
    export(filled, tmp_path)
    runs = (tmp_path / "runs.csv").read_text().splitlines()
    assert runs[0].startswith("identity,status,dataset,method,width,depth,steps,seed,")
    assert runs[0].endswith(",machine_torch,machine_numba,machine_numpy")
    assert [line.split(",")[3] for line in runs[1:]] == ["mlp"] + ["multilinear-covjac"] * 4 + ["multilinear-free"]
    metrics = (tmp_path / "metrics.csv").read_text().splitlines()
    assert metrics[0].startswith("identity,step,loss,train_hard,train_soft,train_discretisation_gap,test_hard,")
    assert len(metrics) == 1 + 4 * 3
    lines = [json.loads(line) for line in (tmp_path / "diagnostics.jsonl").read_text().splitlines()]
    keys = [(line["identity"], line["name"], line["step"]) for line in lines]
    assert len(keys) == len(set(keys)) == 3 * 7 * 4
    _, _, ends = export(filled, tmp_path / "ends", diagnostics="ends")
    kept = [json.loads(line) for line in ends.decode().splitlines()]
    assert kept == [line for line in lines if line["step"] in (0, 60)]
    assert export(filled, tmp_path / "ends", diagnostics="none")[2] is None


def test_an_export_of_curves_keeps_the_ends_and_what_is_drawn_over_time(filled, tmp_path):
    everything = [json.loads(line) for line in export(filled, tmp_path / "all")[2].decode().splitlines()]
    curves = [json.loads(line) for line in export(filled, tmp_path, diagnostics="curves")[2].decode().splitlines()]
    ends = [line for line in everything if line["step"] in (0, 60)]
    assert [line for line in curves if line["step"] in (0, 60)] == ends
    between = [line for line in curves if line not in ends]
    assert {line["name"] for line in between} == {"gradient_norms", "commitment", "entropy"}
    whole = {(line["identity"], line["name"], line["step"]): line["value"] for line in everything}
    for line in between:
        value = whole[line["identity"], line["name"], line["step"]]
        assert line["value"] == (None if value is None else {key: value[key] for key in line["value"]})
    drawn = [(line["name"], line["value"]) for line in between if line["value"] is not None]
    assert {len(value["by_layer"]) for name, value in drawn if name == "entropy"} == {CONFIG.depth}
    assert {tuple(value) for name, value in drawn if name == "commitment"} == {("std_c_ab",)}
    assert all("ratio" in value and "by_layer" not in value for name, value in drawn if name == "gradient_norms")
    with open_results(tmp_path) as source, Store.open(tmp_path / "copy") as copy:
        for record in source.records(rows=True):
            copy.take(record)
    again = export(tmp_path / "copy", tmp_path / "again", diagnostics="curves")
    assert again[2] == (tmp_path / "diagnostics.jsonl").read_bytes()


def test_curves_are_those_of_the_first_wiring(filled, tmp_path):
    with open_results(filled) as source:
        first = source.records(rows=True)
    others = [replace(record, config=replace(record.config, wiring_seed=2)) for record in first]
    assert write_export([*first, *others], tmp_path, diagnostics="ends")["diagnostics.jsonl"] == 2 * 3 * 7 * 2
    curves = write_export(others, tmp_path, diagnostics="curves")
    assert curves == {"runs.csv": 6, "metrics.csv": 4 * 3, "diagnostics.jsonl": 0}


def test_errors_are_exported_without_paths_and_addresses():
    text = "the files of x were not found in /home/me/data, ~/data: see https://host.example/a?b=c (or ../near)\nmore"
    assert public_error(text) == "the files of x were not found in …, …: see … (or ../near)"
    assert public_error("") == ""
    assert public_error("3 / 4 and a/b are no paths") == "3 / 4 and a/b are no paths"


def test_run_folders_are_taken_in_with_their_last_diagnostics(tmp_path):
    execute(CONFIG, folder=tmp_path / "runs" / "one")
    asked = iter(range(1000))
    execute(replace(CONFIG, seed=1), folder=tmp_path / "runs" / "two", should_stop=lambda: next(asked) > 30)
    (tmp_path / "runs" / "other").mkdir()
    with Store.open(tmp_path / "store") as store:
        taken = list(
            import_runs([tmp_path / "runs"], store, machine={"cpu": "c"}, code_version="1", diagnose=FinalDiagnostics())
        )
        assert [(each.outcome, each.identity) for each in taken] == [("added", CONFIG.identity), ("skipped", "")]
        assert taken[1].reason.startswith("not finished; finish it with `gatefit train --resume ")
        record = store.find(CONFIG.identity)
        (again,) = import_runs([tmp_path / "runs" / "one"], store, diagnose=FinalDiagnostics())
        assert again.outcome == "present"
        assert store.find(CONFIG.identity) == record
    with Store.open(tmp_path / "trained") as store:
        (trained,) = run_all([CONFIG], store)
    assert (record.metrics, record.summary, record.step) == (trained.metrics, trained.summary, 60)
    assert record.data_digest == trained.data_digest
    assert (record.machine, record.code_version) == (trained.machine, trained.code_version)
    assert record.seconds > 0
    assert record.diagnostics == {name: {60: by_step[60]} for name, by_step in trained.diagnostics.items()}


def test_folders_that_do_not_say_what_made_them_are_taken_at_the_callers_word(tmp_path):
    execute(CONFIG, folder=tmp_path / "run")
    (tmp_path / "run" / "made.json").unlink()
    with Store.open(tmp_path / "store") as store:
        list(import_runs([tmp_path / "run"], store, machine={"cpu": "c"}, code_version="1"))
        record = store.find(CONFIG.identity)
    assert (record.machine, record.code_version, record.seconds) == ({"cpu": "c"}, "1", None)


def test_another_result_for_the_same_run_is_a_conflict(filled, tmp_path):
    export(filled, tmp_path / "export")
    path = tmp_path / "export" / "metrics.csv"
    lines = path.read_text().splitlines()
    place = next(i for i, line in enumerate(lines) if line.startswith(f"{CONFIG.identity},60,"))
    cells = lines[place].split(",")
    cells[2] = "0.125"
    lines[place] = ",".join(cells)
    path.write_text("\n".join(lines) + "\n")
    with Store.open(tmp_path / "store") as store:
        list(import_runs([filled], store))
        before = store.records(rows=True)
        conflicts = [each for each in import_runs([tmp_path / "export"], store) if each.outcome == "conflict"]
        assert [each.identity for each in conflicts] == [CONFIG.identity]
        assert "with another log; that one is kept" in conflicts[0].reason
        assert store.records(rows=True) == before


def test_damaged_run_folders_are_skipped_with_the_reason(tmp_path):
    for name, result, log in (
        ("a", "{", '{"step": 60}'),
        ("b", '{"data": "d"}', ""),
        ("c", '{"data": "d"}', '{"step": 60}\n{"st'),
        ("d", "[3]", '{"step": 60}'),
        ("e", '{"steps": 60}', '{"step": 40}'),
    ):
        (tmp_path / "runs" / name).mkdir(parents=True)
        (tmp_path / "runs" / name / "config.json").write_text(CONFIG.to_json())
        (tmp_path / "runs" / name / "result.json").write_text(result)
        (tmp_path / "runs" / name / "metrics.jsonl").write_text(log)
        with pytest.raises(RunFolderError, match=r"metrics.jsonl (in .* is damaged|ends at step 40)"):
            read_run_folder(tmp_path / "runs" / name)
    (tmp_path / "runs" / "f").mkdir()
    (tmp_path / "runs" / "f" / "config.json").write_text('{"widht": 3}')
    with Store.open(tmp_path / "store") as store:
        taken = list(import_runs([tmp_path / "runs"], store))
        assert [each.outcome for each in taken] == ["skipped"] * 6
        assert "unknown configuration field 'widht'" in taken[5].reason
        assert store.records() == []


def test_what_holds_no_runs_is_refused_before_anything_is_taken(tmp_path):
    (tmp_path / "empty").mkdir()
    with Store.open(tmp_path / "store") as store:
        with pytest.raises(StoreError, match=r"empty holds no runs: no store\.sqlite, no runs\.csv, no config\.json"):
            list(import_runs([tmp_path / "empty"], store))
        with pytest.raises(StoreError, match=r"nowhere is no folder; name an export, a store, or run folders"):
            list(import_runs([tmp_path / "nowhere"], store))
        with pytest.raises(StoreError, match=r"is the store itself"):
            list(import_runs([tmp_path / "store"], store))


@pytest.mark.parametrize(
    ("file", "change", "message"),
    [
        (
            "runs.csv",
            lambda t: t.replace("identity,status", "identity,flavour,status", 1),
            "column 'flavour' that this",
        ),
        ("runs.csv", lambda t: "", "runs.csv has no column identity"),
        ("runs.csv", lambda t: t.replace(",40,2,", ",48,2,"), "has the configuration of"),
        ("runs.csv", lambda t: t.replace(",40,2,", ",forty,2,"), "is damaged: Expecting value"),
        ("runs.csv", lambda t: t[:-30], "is damaged: zip"),
        ("metrics.csv", lambda t: t.replace(",20,", ",twenty,", 1), "is damaged: Expecting value"),
        ("metrics.csv", lambda t: t.splitlines()[0] + "\n", "its log in metrics.csv is missing"),
        ("metrics.csv", lambda t: "\n".join(t.splitlines()[:-1]) + "\n", "its log in metrics.csv (ends|is missing)"),
        ("diagnostics.jsonl", lambda t: t[:-5], "is damaged: "),
    ],
)
def test_a_damaged_export_is_named(filled, tmp_path, file, change, message):
    export(filled, tmp_path)
    (tmp_path / file).write_text(change((tmp_path / file).read_text()))
    with pytest.raises(StoreError, match=message):
        open_results(tmp_path)


def test_a_configuration_of_an_older_version_is_read(filled, tmp_path):
    export(filled, tmp_path)
    lines = [line.split(",") for line in (tmp_path / "runs.csv").read_text().splitlines()]
    place = lines[0].index("noise_scale")  # As if the field had come later; its default keeps every identity.
    (tmp_path / "runs.csv").write_text("".join(",".join(l[:place] + l[place + 1 :]) + "\n" for l in lines))
    with open_results(tmp_path) as source:
        assert source.find(CONFIG.identity).config == CONFIG


def test_a_later_field_has_a_column_where_a_run_sets_it(filled, tmp_path):
    export(filled, tmp_path)
    columns = (tmp_path / "runs.csv").read_text().splitlines()[0].split(",")
    committed = (Path(__file__).parents[2] / "results" / "runs.csv").read_text().splitlines()[0].split(",")
    assert columns == committed[: len(columns)]
    records = [record for record in Export(tmp_path).records() if record.status == "planned"]
    learned = replace(records[0].config, wiring="learned", regrow_every=7, flip=True, seed=3)
    changed = replace(records[0], identity=learned.identity, config=learned)
    write_export([*records, changed], tmp_path / "later")
    later = (tmp_path / "later" / "runs.csv").read_text().splitlines()[0].split(",")
    assert later[: len(columns)] == columns
    assert set(later[len(columns) :]) == {"regrow_every", "flip"}
    assert Export(tmp_path / "later").find(learned.identity).config == learned
    assert Export(tmp_path / "later").find(records[0].identity) == records[0]


def test_results_are_read_without_torch(filled, tmp_path):
    export(filled, tmp_path)
    code = f"""
import sys
from pathlib import Path
from gatefit.experiments.export import open_results, write_export
from gatefit.experiments.estimate import estimate
from gatefit.paper.outcome import Results
from gatefit.training.config import RunConfig
for folder in ({str(filled)!r}, {str(tmp_path)!r}):
    with open_results(Path(folder)) as source:
        results = Results(source.find)
        config = RunConfig(dataset="monks-1", width=40, depth=2, steps=60, evaluate_every=20)
        print(results.get(config).summary["steps"], estimate([config], source))
        write_export(source.records(rows=True), Path({str(tmp_path / "copy")!r}))
assert "torch" not in sys.modules
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("60 0.0\n60 0.0\n", "")


def test_records_without_rows_can_be_exported(tmp_path):
    record = RunRecord(CONFIG.identity, CONFIG, "planned")
    assert write_export([record], tmp_path) == {"runs.csv": 1, "metrics.csv": 0, "diagnostics.jsonl": 0}
    assert open_results(tmp_path).find(CONFIG.identity) == record


def test_figures_of_a_validation_set_have_columns_where_a_run_has_one(filled, tmp_path):
    config = replace(CONFIG, validation_fraction=0.2, seed=77)
    figures = {"validation_accuracy": 0.75, "discretisation_gap_validation": None, "best_accuracy": 0.75, "steps": 60}
    with Store.open(filled, read_only=True) as store:
        others = store.records(rows=True)
        record = replace(store.find(CONFIG.identity), identity=config.identity, config=config)
        record = replace(record, summary=figures)
    write_export(others, tmp_path / "without")
    assert "validation_accuracy" not in (tmp_path / "without" / "runs.csv").read_text()
    write_export([*others, record], tmp_path / "with")
    with open_results(tmp_path / "with") as exported:
        copy = exported.find(config.identity).summary
        assert {name: copy[name] for name in figures} == figures
        assert "test_accuracy" not in copy
        assert exported.find(CONFIG.identity).summary == next(
            other.summary for other in others if other.identity == CONFIG.identity
        )
