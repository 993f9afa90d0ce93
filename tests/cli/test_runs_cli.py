"""gatefit runs: list, show, compare, export, import."""

import json
import subprocess
import sys
from dataclasses import replace

import pytest

from gatefit.experiments.runner import run_all
from gatefit.experiments.store import Store
from gatefit.training.config import RunConfig

pytestmark = pytest.mark.outside

CONFIG = RunConfig(dataset="monks-1", width=40, depth=2, steps=40, evaluate_every=20)
FREE = replace(CONFIG, method="iwp-free", seed=3, wiring="random")
FAILED = replace(CONFIG, width=41)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """Two finished runs, a failed one and a planned one; not to be changed."""
    folder = tmp_path_factory.mktemp("runs") / "store"
    with Store.open(folder) as store:
        run_all([CONFIG, FREE, FAILED], store)
        store.plan([replace(CONFIG, seed=8)])
    return folder


def test_list(gatefit, store):
    lines = gatefit("runs", "list", "--store", store).out.splitlines()
    titles = "run data set method width depth seed steps status last 10 best time options"
    assert lines[0].split() == titles.split()
    assert len(lines) == 5
    free = next(line for line in lines if FREE.identity in line)
    assert "wiring=random evaluate_every=20" in free
    assert " % " in free
    planned = next(line for line in lines if "planned" in line)
    assert "0/40" in planned
    content = gatefit("runs", "list", "--store", store, "--json").json
    assert [run["identity"] for run in content["runs"]] == [line.split()[0] for line in lines[1:]]
    assert content["runs"][0]["config"]["dataset"] == "monks-1"


def test_list_filters(gatefit, store, refused):
    def names(*options):
        return {run["identity"] for run in gatefit("runs", "list", "--store", store, "--json", *options).json["runs"]}

    assert names("--status", "finished") == {CONFIG.identity, FREE.identity}
    assert names("--method", "iwp-free", "--dataset", "monks-1") == {FREE.identity}
    assert names("--status", "running") == set()
    assert gatefit("runs", "list", "--store", store, "--status", "running").out == "no runs\n"
    message = refused("runs", "list", "--store", store, "--status", "done")
    assert message == "unknown status 'done'; choose one of planned, running, finished, failed"
    assert "did you mean iwp-free?" in refused("runs", "list", "--store", store, "--method", "iwp-fre")
    assert "choose one of monks-1" in refused("runs", "list", "--store", store, "--dataset", "monks-2")


def test_show(gatefit, store, refused):
    out = gatefit("runs", "show", CONFIG.identity[:6], "--store", store, "--metrics").out
    assert f"run                         {CONFIG.identity}" in out
    assert "last 10 evaluations" in out
    assert "train_discretisation_gap" in out
    content = gatefit("runs", "show", CONFIG.identity, "--store", store, "--json").json
    assert [row["step"] for row in content["metrics"]] == [20, 40]
    assert set(content["diagnostics"]["entropy"]) == {"0", "20", "40"}
    assert content["machine"]["cores"] >= 1
    failed = gatefit("runs", "show", FAILED.identity, "--store", store).out
    assert "a multiple of 2 classes, got 41" in failed
    assert refused("runs", "show", "zzz", "--store", store) == (
        "there is no run 'zzz'; `gatefit runs list` shows what there is"
    )
    assert "is the beginning of 4 runs: " in refused("runs", "show", "", "--store", store)


def test_compare(gatefit, store, refused):
    out = gatefit("runs", "compare", CONFIG.identity, FREE.identity, "--store", store).out
    rows = {line.split()[0]: line.split()[1:] for line in out.splitlines()[1:]}
    assert rows["method"] == ["multilinear-covjac", "iwp-free"]
    assert rows["wiring"] == ["unique", "random"]
    assert "width" not in rows
    content = gatefit("runs", "compare", CONFIG.identity, FREE.identity, "--store", store, "--json").json
    assert content["differences"]["seed"] == [0, 3]
    assert len(content["figures"]["last_10_accuracy"]) == 2
    assert all(0 < accuracy <= 1 for accuracy in content["figures"]["last_10_accuracy"])
    message = refused("runs", "compare", CONFIG.identity, "--store", store)
    assert message == "comparing needs at least two runs, got 1; see `gatefit runs list`"


def test_export_and_import(gatefit, store, tmp_path, monkeypatch):
    out = tmp_path / "results"
    assert gatefit("runs", "export", "--store", store, "--out", out).out == f"3 runs, 4 evaluations written to {out}\n"
    monkeypatch.setenv("GATEFIT_STORE", str(tmp_path / "new"))
    lines = gatefit("runs", "import", out).out.splitlines()
    assert lines[-1] == "3 added, 0 present, 0 conflict, 0 skipped"
    assert lines[0].startswith("added  ")
    content = gatefit("runs", "import", out, "--json").json
    assert (content["added"], content["present"], content["skipped"]) == (0, 2, 1)
    again = gatefit("runs", "export", "--out", tmp_path / "again", "--json").json
    assert again["lines"] == {"runs.csv": 3, "metrics.csv": 4, "diagnostics.jsonl": 42}
    for name in again["lines"]:
        assert (tmp_path / "again" / name).read_bytes() == (out / name).read_bytes()
    gatefit("runs", "export", "--out", tmp_path / "again", "--csv", "--unfinished", "--store", store)
    assert not (tmp_path / "again" / "diagnostics.jsonl").exists()
    assert len((tmp_path / "again" / "runs.csv").read_text().splitlines()) == 5
    listed = gatefit("runs", "list", "--store", out, "--json").json["runs"]
    assert [run["identity"] for run in listed] == [
        run["identity"] for run in gatefit("runs", "list", "--json").json["runs"]
    ]


def test_a_run_folder_is_imported_and_a_conflict_is_an_error(gatefit, finished_run, tmp_path):
    place = ("--store", tmp_path / "store")
    content = gatefit("runs", "import", finished_run, "--json", *place).json
    assert (content["added"], content["runs"][0]["source"]) == (1, str(finished_run))
    run = gatefit("runs", "show", content["runs"][0]["identity"], "--json", *place).json
    assert run["machine"]["cores"] >= 1
    assert run["code_version"].startswith("0.")
    assert list(run["diagnostics"]["census"]) == ["60"]
    other = tmp_path / "other"
    other.mkdir()
    for name in ("config.json", "result.json"):
        (other / name).write_bytes((finished_run / name).read_bytes())
    rows = [json.loads(line) for line in (finished_run / "metrics.jsonl").read_text().splitlines()]
    rows[-1]["loss"] += 0.5
    (other / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    outcome = gatefit("runs", "import", other, "--no-diagnose", *place)
    assert outcome.code == 1
    assert outcome.out.startswith(f"conflict  {run['identity']}: finished in ")
    assert outcome.out.endswith("0 added, 0 present, 1 conflict, 0 skipped\n")
    for said, version in ((("--made-here",), run["code_version"]), ((), "")):
        place = ("--store", tmp_path / f"store{len(said)}")  # This folder has no made.json.
        gatefit("runs", "import", other, "--no-diagnose", *said, *place)
        assert gatefit("runs", "show", run["identity"], "--json", *place).json["code_version"] == version


def test_bad_stores_are_one_sentence(refused, tmp_path):
    assert "there is no store at" in refused("runs", "list", "--store", tmp_path / "nowhere")
    (tmp_path / "store.sqlite").write_text("no database, but some text that is long enough to be looked at")
    assert "is not a gatefit store" in refused("runs", "list", "--store", tmp_path)
    (tmp_path / "empty").mkdir()
    assert "holds no runs" in refused("runs", "import", tmp_path / "empty", "--store", tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_runs_alone_and_its_help(gatefit):
    assert gatefit("runs").code == 0
    for words in ([], ["list"], ["show"], ["compare"], ["export"], ["import"]):
        text = gatefit("runs", *words, "--help").out
        assert f"gatefit runs {' '.join(words)}".strip() in text.partition("Example:")[2]


def test_nothing_but_import_needs_torch(store, tmp_path):
    code = f"""
import sys
from gatefit.cli import app
for words in (["list"], ["show", {CONFIG.identity!r}], ["compare", {CONFIG.identity!r}, {FREE.identity!r}],
              ["export", "--out", {str(tmp_path)!r}]):
    try:
        app(["runs", *words, "--store", {str(store)!r}])
    except SystemExit as end:
        assert not end.code, end.code
assert "torch" not in sys.modules
assert "numba" not in sys.modules
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
