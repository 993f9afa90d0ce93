"""Runs given more steps end with every bit of a run that was started with that many."""

import json
import shutil
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest

from gatefit.datasets import load_dataset
from gatefit.methods import METHODS
from gatefit.paper.baselines import build_model
from gatefit.training import runs
from gatefit.training.config import RunConfig
from gatefit.training.folder import RunFolderError
from gatefit.training.loop import Observer
from gatefit.training.runs import execute, take_folder
from kill_resume import complete, kill_after

pytestmark = pytest.mark.outside

SHORT = RunConfig(dataset="monks-1", width=40, depth=2, steps=60, evaluate_every=20, batch_size=48, warmup=5)
LONG = replace(SHORT, steps=110)


class Steps(Observer):
    """Which steps were trained."""

    def __init__(self):
        self.seen = []

    def stepped(self, state, network, loss):
        self.seen.append(state.step)


def contents(folder):
    """The bytes of every file of a run but made.json, which says when and where."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        # A killed process may leave an unfinished temporary file behind, which nobody reads.
        if path.is_file() and path.name not in ("made.json", "lock") and path.suffix != ".tmp"
    }


def started_with(config, folder):
    execute(config, folder=folder)
    return contents(folder)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"wiring": "learned"},
            r"holds a run of 60 steps, and regrows its wiring for a part of them, which is another",
        ),
        (
            {"dataset": "digits", "width": 230, "shift": 1, "augment_until": 0.5},
            r"and moves its images for a part of them, which is another part of 110, so it cannot",
        ),
    ],
)
def test_what_is_done_for_a_part_of_the_steps_does_not_go_on(tmp_path, options, message):
    short = replace(SHORT, **options)
    execute(short, folder=tmp_path / "run")
    before = contents(tmp_path / "run")
    with pytest.raises(RunFolderError, match=message):
        execute(replace(short, steps=LONG.steps), folder=tmp_path / "run")
    assert contents(tmp_path / "run") == before


@pytest.mark.parametrize("options", [{"regrow_every": 0}, {"regrow_until": 1.0}])
def test_a_learned_wiring_goes_on_where_no_step_depends_on_the_last(tmp_path, options):
    short = replace(SHORT, wiring="learned", **options)
    execute(short, folder=tmp_path / "run")
    execute(replace(short, steps=LONG.steps), folder=tmp_path / "run")
    assert contents(tmp_path / "run") == started_with(replace(short, steps=LONG.steps), tmp_path / "whole")


@pytest.mark.parametrize("validation_fraction", [0.0, 0.25])
@pytest.mark.parametrize("method", METHODS)
def test_every_method_goes_on_to_the_same_bits(tmp_path, method, validation_fraction):
    short = replace(SHORT, method=method, validation_fraction=validation_fraction)
    config = replace(short, steps=LONG.steps)
    execute(short, folder=tmp_path / "run")
    steps = Steps()
    run = execute(config, folder=tmp_path / "run", observers=[steps])
    assert steps.seen == list(range(61, 111))
    assert run.result.finished
    assert contents(tmp_path / "run") == started_with(config, tmp_path / "whole")
    assert json.loads((tmp_path / "run" / "result.json").read_text())["config"] == config.identity != short.identity


@pytest.mark.parametrize("validation_fraction", [0.0, 0.25])
@pytest.mark.parametrize(("short", "first"), [(50, 41), (40, 41), (21, 21), (13, 1), (109, 101)])
def test_an_evaluation_that_the_longer_run_does_not_have_is_forgotten(tmp_path, short, first, validation_fraction):
    config = replace(LONG, method="gumbel-st", noise_steps=70, validation_fraction=validation_fraction)
    execute(replace(config, steps=short), folder=tmp_path / "run")
    steps = Steps()
    execute(config, folder=tmp_path / "run", observers=[steps])
    assert steps.seen == list(range(first, 111))
    assert contents(tmp_path / "run") == started_with(config, tmp_path / "whole")


def test_a_run_that_patience_ended_ends_there_again(tmp_path):
    short = replace(SHORT, steps=2000, patience=2, validation_fraction=0.25, seed=3)
    execute(short, folder=tmp_path / "run")
    steps = Steps()
    execute(replace(short, steps=3000), folder=tmp_path / "run", observers=[steps])
    assert steps.seen == []
    assert contents(tmp_path / "run") == started_with(replace(short, steps=3000), tmp_path / "whole")


@pytest.mark.parametrize("stop", [5, 33, 45])
def test_an_unfinished_run_goes_on_to_more_steps(tmp_path, stop):
    calls = count(1)
    execute(replace(SHORT, steps=50), folder=tmp_path / "run", should_stop=lambda: next(calls) == stop)
    steps = Steps()
    execute(LONG, folder=tmp_path / "run", observers=[steps])
    assert steps.seen == list(range(stop + 1, 111))
    whole = started_with(LONG, tmp_path / "whole")
    assert contents(tmp_path / "run") == whole


def test_it_may_be_lengthened_again_and_again(tmp_path):
    for steps in (10, 30, 60, 61, 110):
        execute(replace(SHORT, steps=steps), folder=tmp_path / "run")
    assert contents(tmp_path / "run") == started_with(LONG, tmp_path / "whole")


@pytest.mark.slow
def test_a_longer_run_that_is_killed_goes_on(tmp_path):
    method = "gumbel-st"
    complete(tmp_path / "run", method, 210, schedule="constant")
    kill_after(tmp_path / "run", method, 2000, 275, schedule="constant")
    complete(tmp_path / "run", method, 2000, schedule="constant")
    complete(tmp_path / "whole", method, 2000, schedule="constant")
    assert contents(tmp_path / "run") == contents(tmp_path / "whole")


class Killed(BaseException):
    """The process ends here."""


@pytest.mark.parametrize("short", [60, 50])
def test_killed_while_the_folder_is_taken_the_same_command_goes_on(tmp_path, monkeypatch, short):
    execute(replace(SHORT, steps=short), folder=tmp_path / "finished")
    whole = started_with(LONG, tmp_path / "whole")
    for after in count():
        folder = tmp_path / f"run-{after}"
        shutil.copytree(tmp_path / "finished", folder)
        left = iter(range(after))
        with monkeypatch.context() as patch:
            for owner, name in ((runs, "write_atomically"), (Path, "unlink")):
                patch.setattr(owner, name, dies_after(left, getattr(owner, name)))
            try:
                take_folder(folder, LONG)
            except Killed:
                killed = True
            else:
                killed = False
        execute(LONG, folder=folder)
        assert contents(folder) == whole
        if not killed:
            assert after >= 4
            return


def dies_after(left, act):
    def acting(*arguments, **options):
        if next(left, None) is None:
            raise Killed
        return act(*arguments, **options)

    return acting


def test_a_baseline_goes_on_to_the_same_bits(tmp_path):
    dataset = load_dataset("monks-1")
    config = RunConfig(dataset="monks-1", method="mlp", depth=1, width=16, steps=50, evaluate_every=20)
    for folder, steps in (("run", 50), ("run", 110), ("whole", 110)):
        execute(replace(config, steps=steps), dataset=dataset, folder=tmp_path / folder, build=build_model)
    assert contents(tmp_path / "run") == contents(tmp_path / "whole")


def test_what_depends_on_the_last_step_cannot_go_on(tmp_path):
    execute(replace(SHORT, schedule="cosine"), folder=tmp_path)
    before = contents(tmp_path)
    with pytest.raises(RunFolderError, match=r"60 steps whose cosine schedule ends there, so it cannot go on to 110"):
        execute(replace(LONG, schedule="cosine"), folder=tmp_path)
    assert contents(tmp_path) == before


@pytest.mark.parametrize(
    ("change", "words"), [({"steps": 40}, "steps: 60 there, 40 here"), ({"seed": 1}, "steps: 60 there, 110 here; seed")]
)
def test_another_configuration_is_still_refused(tmp_path, change, words):
    execute(SHORT, folder=tmp_path)
    before = contents(tmp_path)
    with pytest.raises(RunFolderError, match=f"another configuration \\({words}"):
        execute(replace(SHORT, **{"steps": 110, **change}), folder=tmp_path)
    assert contents(tmp_path) == before


def test_a_finished_run_without_its_state_says_what_to_do(tmp_path):
    execute(SHORT, folder=tmp_path)
    for path in (tmp_path / "checkpoints").iterdir():
        path.unlink()
    with pytest.raises(RunFolderError, match=r"without a checkpoint to go on from; .* in another --out folder"):
        execute(LONG, folder=tmp_path)
    assert (tmp_path / "result.json").exists()
    assert execute(SHORT, folder=tmp_path).result.finished


def test_a_damaged_last_state_costs_the_steps_since_the_one_before(tmp_path):
    execute(SHORT, folder=tmp_path / "run")
    newest = max((tmp_path / "run" / "checkpoints").iterdir())
    newest.write_bytes(newest.read_bytes()[:1000])
    steps = Steps()
    execute(LONG, folder=tmp_path / "run", observers=[steps])
    assert steps.seen == list(range(41, 111))
    assert contents(tmp_path / "run") == started_with(LONG, tmp_path / "whole")
