"""``gatefit reproduce``: lists, plans, trains, shows; refuses with one line; goes on after a kill."""

import os
import re
import signal
import sys

import pytest

from gatefit.cli.errors import UserError
from gatefit.cli.many_runs import RunLines, parse_seeds, run_progress
from gatefit.experiments.events import RunEvent
from gatefit.paper.registry import labels
from gatefit.paper.verbs.reproduce import only_runs, run_words
from gatefit.training.config import RunConfig
from patience import HANG

pytestmark = pytest.mark.outside

LABEL = "tab:h7-cross-dataset"
TINY = ["--scale", "tiny", "--threads", "1"]


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    """A store with every run of the label at tiny scale."""
    from typer.testing import CliRunner

    from gatefit.cli import app

    folder = tmp_path_factory.mktemp("reproduce") / "store"
    result = CliRunner().invoke(app, ["reproduce", LABEL, *TINY, "--store", str(folder)])
    assert result.exit_code == 0, result.stderr
    return folder, result.stdout, result.stderr


def test_list_names_every_label(gatefit):
    outcome = gatefit("reproduce", "--list")
    assert outcome.code == 0
    assert [line.split()[0] for line in outcome.out.splitlines()[1:]] == list(labels())
    content = gatefit("reproduce", "--list", "--json").json["labels"]
    assert {"label": "tab:cost", "title": "What a gate costs", "runs": {"paper": 0, "small": 0, "tiny": 0}} in content


def test_a_label_end_to_end(filled):
    _, out, err = filled
    assert out.startswith("tab:h7-cross-dataset  Splice and MONK's-2\n")
    assert "86.06 ± 2.17" in out
    assert "runs are missing" not in out
    assert "Tiny scale" in out
    assert re.search(r"^\[8/8\] monks-2 multilinear-covjac, 6 × 40, 40 steps, seed 0: last 10 \d+\.\d\d %$", err, re.M)


def test_a_second_time_nothing_is_trained(filled, gatefit):
    folder, out, _ = filled
    again = gatefit("reproduce", LABEL, *TINY, "--store", folder)
    assert (again.code, again.err) == (0, "")
    assert again.out == out
    assert gatefit("reproduce", LABEL, "--scale", "tiny", "--store", folder, "--table-only").out == out


def test_json_is_one_object_with_our_numbers_and_the_papers(filled, gatefit):
    folder, _, _ = filled
    (outcome,) = gatefit("reproduce", LABEL, *TINY, "--store", folder, "--json").json["outcomes"]
    assert outcome["label"] == LABEL
    assert (len(outcome["used"]), outcome["missing"]) == (8, [])
    (table,) = outcome["tables"]
    name, cells = table["rows"][1]
    assert name == "MONK's-2"
    assert cells[3]["paper"] == {"mean": 86.06, "std": 2.17, "count": 3, "unit": "%", "error": None}
    assert 30 < cells[3]["ours"]["mean"] < 90


def test_a_dry_run_tells_what_is_done_and_trains_nothing(filled, gatefit, tmp_path):
    folder, _, _ = filled
    done = gatefit("reproduce", LABEL, "--scale", "tiny", "--store", folder, "--dry-run")
    assert done.out.splitlines()[-1] == "8 runs, 8 finished; about 0.00 s left"
    fresh = tmp_path / "fresh"
    plan = gatefit("reproduce", LABEL, "--scale", "tiny", "--store", fresh, "--dry-run", "--json").json
    assert [run["status"] for run in plan["runs"]] == ["to do"] * 8
    assert plan["seconds_left"] > 0
    assert plan["seconds_left"] == pytest.approx(sum(run["seconds"] for run in plan["runs"]), abs=0.5)
    assert not fresh.exists()
    more = gatefit("reproduce", LABEL, "--scale", "tiny", "--seeds", "2", "--store", folder, "--dry-run", "--json").json
    assert [run["status"] for run in more["runs"]].count("finished") == 8
    assert len(more["runs"]) == 16


def test_a_page_is_written_with_its_figures(gatefit, tmp_path):
    page = tmp_path / "pages" / "codebook.md"
    outcome = gatefit("reproduce", "fig:codebook-3d", "tab:cost", "--store", tmp_path / "none", "--out", page)
    assert outcome.code == 0
    assert outcome.err == f"written: {page}\n"
    text = page.read_text()
    assert "tab:cost" in text
    pytest.importorskip("matplotlib")
    assert "codebook-figures/fig-codebook-3d-1.svg" in text
    assert (page.parent / "codebook-figures" / "fig-codebook-3d-1.svg").read_bytes().startswith(b"<?xml")
    assert not (tmp_path / "none").exists()


def test_labels_that_need_no_runs_need_no_store(gatefit, tmp_path):
    outcome = gatefit("reproduce", "tab:ste-enumeration", "--store", tmp_path / "none", "--table-only")
    assert outcome.code == 0
    assert "48 entries compared" in outcome.out


def test_an_unknown_label_is_refused_with_the_nearest(refused):
    line = refused("reproduce", "tab:depht")
    assert line.startswith("unknown label 'tab:depht'; nearest: tab:depth")
    assert line.endswith("all labels: gatefit reproduce --list")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "name a label, as in `gatefit reproduce tab:depth`, or --all; --list shows them"),
        (["tab:cost", "--all"], "--all is every label, got tab:cost too; leave one of them out"),
        (["tab:cost", "--scale", "smal"], "unknown scale 'smal'; did you mean small? choose one of paper, small, tiny"),
        (["tab:cost", "--seeds", "x"],
         "--seeds is a number of seeds or a list of them, as in 3 or 0,1,2; got 'x'"),
        (["tab:cost", "--seeds", "10000000"],
         "--seeds 10000000 asks for 10,000,000 seeds, at most 1,000; for one seed: 10000000,"),
        (["tab:cost", "--dry-run", "--table-only"],
         "--dry-run lists runs and --table-only shows results; give one of them"),
        (["tab:cost", "--ray", "auto", "--jobs", "2"],
         "with --ray the cluster decides how many runs go at a time, got --jobs 2; leave it out"),
    ],
)  # fmt: skip
def test_what_cannot_be_done_is_refused_in_one_line(refused, arguments, message):
    assert refused("reproduce", *arguments) == message


def test_a_table_asked_for_before_its_runs_exist_says_how_to_make_them(refused, tmp_path):
    line = refused("reproduce", "tab:depth", "--scale", "tiny", "--table-only", "--store", tmp_path / "none")
    assert line == (
        "none of the 16 runs of tab:depth at tiny scale is finished; "
        f"make them with: gatefit reproduce tab:depth --scale tiny --store {tmp_path / 'none'}"
    )
    line = refused("reproduce", "tab:depth", "tab:ablation", "--table-only", "--store", tmp_path / "none")
    assert line.startswith("none of the 26 runs of tab:depth and 1 other label")


def test_of_several_labels_those_with_runs_are_shown(filled, gatefit):
    folder, out, _ = filled
    outcome = gatefit("reproduce", LABEL, "tab:depth", "--scale", "tiny", "--table-only", "--store", folder)
    assert outcome.code == 0
    assert outcome.out == out
    command = f"gatefit reproduce tab:depth --scale tiny --store {folder}"
    assert outcome.err == f"tab:depth: no finished run yet; make them with: {command}\n"


def test_ray_without_ray_says_what_to_install(refused, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    line = refused("reproduce", LABEL, *TINY, "--store", tmp_path / "store", "--ray", "local")
    assert line == "--ray needs ray, which is not installed; run: pip install 'gatefit[ray]'"


def test_runs_whose_data_cannot_be_had_are_skipped_with_the_reason(gatefit, tmp_path, monkeypatch):
    from gatefit.cli import many_runs
    from gatefit.datasets import DatasetError

    def nowhere(name, data_dir, options, *, quiet=False):
        raise DatasetError(f"{name} is nowhere")

    monkeypatch.delenv("GATEFIT_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(many_runs, "load", nowhere)
    outcome = gatefit("reproduce", "tab:scale-up", "--scale", "paper", "--store", tmp_path / "store")
    assert outcome.code == 0
    assert outcome.err.splitlines() == [
        f"skipping 24 runs of {name}: {name} is nowhere" for name in ("cifar100", "tiny-imagenet")
    ]
    assert "48 runs are missing; train with: gatefit reproduce tab:scale-up --scale paper" in outcome.out
    plan = gatefit("reproduce", "tab:scale-up", "--scale", "paper", "--store", tmp_path / "store", "--dry-run").out
    assert plan.count("needs data") == 48
    assert "48 runs, 0 finished; about " in plan
    assert "cifar100: not here; downloaded when first used; where that fails, its runs are skipped" in plan


def test_a_run_that_fails_is_told_and_the_table_is_shown_all_the_same(gatefit, tmp_path, monkeypatch):
    from gatefit.experiments import worker
    from gatefit.training.loop import TrainingDivergedError

    def diverges(configs, **options):
        raise TrainingDivergedError("the loss is nan at step 3")

    monkeypatch.setattr(worker, "execute_together", diverges)
    outcome = gatefit("reproduce", "app:entropy", *TINY, "--store", tmp_path / "store")
    assert outcome.code == 1
    assert outcome.out.startswith("app:entropy")
    assert outcome.err.splitlines()[-1] == "8 runs failed: the loss is nan at step 3"


@pytest.mark.parametrize(
    ("given", "seeds"), [(None, (5,)), ("3", (0, 1, 2)), ("0,2", (0, 2)), ("7,", (7,)), ("1,1", (1,))]
)
def test_seeds_are_a_number_or_a_list(given, seeds):
    assert parse_seeds(given, (5,)) == seeds


def test_only_some_runs_of_a_plan():
    plan = [RunConfig(dataset=d, depth=n, readout_temperature=t) for d in ("iris", "mnist") for n in (1, 6)
            for t in (None, 30.0)]  # fmt: skip
    assert only_runs(plan, []) == plan
    assert {c.dataset for c in only_runs(plan, ["dataset=mnist"])} == {"mnist"}
    assert only_runs(plan, ["dataset=mnist", "depth=6", "readout-temperature=30"]) == [plan[-1]]
    assert len(only_runs(plan, ["depth=1,6", "readout_temperature=none"])) == 4
    for given, message in (
        ("mnist", r"--only is a field and its value, as in --only dataset=mnist; got 'mnist'"),
        ("deepth=1", r"runs have no field deepth; did you mean depth\?"),
        ("depth=7", r"--only depth=7: no run of these labels is left; depth is 1, 6"),
    ):
        with pytest.raises(UserError, match=message):
            only_runs(plan, [given])


def test_only_the_chosen_runs_are_trained(gatefit, tmp_path):
    store = tmp_path / "store"
    outcome = gatefit("reproduce", LABEL, *TINY, "--store", store, "--only", "dataset=monks-2",
                      "--only", "method=soft-mix,multilinear-ste")  # fmt: skip
    assert outcome.code == 0
    assert len(re.findall(r"^\[\d/2\]", outcome.err, re.M)) == 2
    assert len(gatefit("runs", "list", "--store", store, "--json").json["runs"]) == 2


def test_runs_in_words():
    config = RunConfig(dataset="adult", method="multilinear-covjac", width=4096, temperature=0.1, seed=2)
    assert run_words(config) == "adult multilinear-covjac, 6 × 4,096, 50,000 steps, τ 0.1, seed 2"
    config = RunConfig(dataset="adult", method="gumbel-st", width=1000, readout_temperature=80, noise_in="backward")
    assert run_words(config) == "adult gumbel-st, 6 × 1k, 50,000 steps, T 80, noise in backward, seed 0"
    config = RunConfig(method="iwp-ste", width=1000, steps=400, corner_activation="sin01")
    assert run_words(config) == "mnist iwp-ste, 6 × 1k, 400 steps, sin01, seed 0"
    assert run_words(RunConfig(method="cnn-3x3", depth=3)) == "mnist cnn-3x3, 3 layers, 50,000 steps, seed 0"


def test_lines_say_where_a_run_goes_on_why_it_fails_and_what_is_left(capsys):
    from gatefit.cli.output import console

    configs = [RunConfig(seed=seed, width=8000) for seed in range(2)]
    lines = RunLines(console(), configs, {config.identity: 100.0 for config in configs}, jobs=1, words=run_words)
    name = configs[0].identity
    lines(RunEvent(name, "started", 0, 10))
    lines(RunEvent(name, "started", 5, 10))
    lines(RunEvent(name, "waiting", 0, 10))
    lines(RunEvent(name, "failed", 5, 10, "no\nmemory"))
    lines(RunEvent(configs[1].identity, "finished", 10, 10, accuracy=0.5))
    first, second, third, fourth = capsys.readouterr().out.splitlines()
    assert first.endswith("seed 0: goes on at step 5 of 10")
    assert second.endswith("another process works on it; waiting")
    assert re.fullmatch(r"\[1/2\] .*: failed: no; memory; about .* left", third)
    assert fourth == "[2/2] mnist multilinear-covjac, 6 × 8k, 50,000 steps, seed 1: last 10 50.00 %"


def test_bars_on_a_terminal():
    import io

    from rich.console import Console

    written = io.StringIO()
    config = RunConfig(width=8000)
    terminal = Console(file=written, force_terminal=True, width=200, highlight=False, color_system=None)
    with run_progress(terminal, [config], {config.identity: 1.0}, jobs=1, quiet=False, words=run_words) as tell:
        for kind, step, accuracy in (("started", 0, None), ("evaluated", 5, 0.9), ("failed", 5, None)):
            tell(RunEvent(config.identity, kind, step, 10, "no memory" if kind == "failed" else "", accuracy))
        tell(RunEvent("0" * 12, "started", 0, 10))
    text = written.getvalue()
    assert "mnist multilinear-covjac, 6 × 8k, 50,000 steps, seed 0: failed: no memory" in text
    assert "1/1" in text


def _until_first_run_is_finished(running) -> None:
    for line in running.stderr:
        if line.startswith("[1/"):
            return


def test_killed_in_the_middle_and_started_again_the_table_is_the_same(filled, gatefit, process, tmp_path):
    folder, _, _ = filled
    other = tmp_path / "store"
    running = process("reproduce", LABEL, *TINY, "--store", other)
    _until_first_run_is_finished(running)
    running.kill()
    running.communicate()
    assert running.returncode == -signal.SIGKILL
    planned = gatefit("reproduce", LABEL, "--scale", "tiny", "--store", other, "--dry-run", "--json")
    assert planned.code == 0, planned.err
    before = planned.json
    assert 0 < sum(run["status"] == "finished" for run in before["runs"]) < 8
    resumed = gatefit("reproduce", LABEL, *TINY, "--store", other, "--json")
    undisturbed = gatefit("reproduce", LABEL, *TINY, "--store", folder, "--json")
    assert resumed.code == 0
    assert resumed.out == undisturbed.out


def test_ctrl_c_stops_cleanly_and_says_how_to_go_on(process, tmp_path):
    running = process("reproduce", LABEL, *TINY, "--store", tmp_path / "store")
    _until_first_run_is_finished(running)
    os.kill(running.pid, signal.SIGINT)
    out, err = running.communicate(timeout=HANG)
    assert running.returncode == 130
    assert out == ""
    assert "stopped; what was trained is saved. To go on:\n" in err
    assert err.rstrip().endswith(f"gatefit reproduce {LABEL} --scale tiny --threads 1 --store {tmp_path / 'store'}")
