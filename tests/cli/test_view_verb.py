"""``gatefit view``: a page for a run in a folder or a store, and what it says when there is none."""

import shutil
from pathlib import Path

import pytest

from gatefit.experiments.import_runs import import_runs
from gatefit.experiments.store import Store
from page_checks import check_page


def test_a_page_of_a_run_folder(gatefit, finished_run, tmp_path):
    page = tmp_path / "run.html"
    result = gatefit("view", finished_run, "--out", page)
    assert result.code == 0, result.err
    assert result.out.startswith(f"{page} (")
    html = page.read_text()
    check_page(html)
    assert "monks-1, multilinear-covjac, 2 × 34" in html
    assert "of its saved network alone" in html  # `gatefit train` records none
    assert "Signal survival" in html
    assert "Deployed gates at step 60" in html


def test_the_page_is_put_into_the_folder_and_made_again(gatefit, finished_run, tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(finished_run, folder)
    assert gatefit("view", folder).code == 0
    first = (folder / "view.html").read_bytes()
    assert gatefit("view", folder).code == 0
    assert (folder / "view.html").read_bytes() == first


def test_an_unfinished_run(gatefit, finished_run, tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(finished_run, folder)
    for name in ("result.json", "model.safetensors"):
        (folder / name).unlink()
    assert gatefit("view", folder).code == 0
    html = (folder / "view.html").read_text()
    check_page(html)
    assert "step 60 of 60" in html
    assert "there is no saved network to compute them from" in html


def test_data_that_are_not_at_hand_are_said_to_be_missing(gatefit, finished_run, tmp_path, monkeypatch):
    def missing(*_, **__):
        raise OSError("there is no network here")

    monkeypatch.setattr("gatefit.training.diagnostics_observer.load_dataset", missing)
    assert gatefit("view", finished_run, "--out", tmp_path / "run.html").code == 0
    assert "could not be computed: there is no network here" in (tmp_path / "run.html").read_text()


@pytest.fixture
def store(finished_run, tmp_path) -> tuple[Path, str]:
    """A store that has taken the run in, with diagnostics of two steps."""
    with Store.open(tmp_path / "store") as store:
        (intake,) = import_runs([finished_run], store)
        for step in (20, 60):
            store.write_diagnostics(intake.identity, step, {"entropy": {"mean": 2.0, "by_layer": [2.0, 1.0]}})
    return tmp_path / "store", intake.identity


def test_a_page_of_a_run_in_a_store(gatefit, store, tmp_path, monkeypatch):
    folder, identity = store
    monkeypatch.chdir(tmp_path)
    result = gatefit("view", identity[:6], "--store", folder)
    assert result.code == 0, result.err
    html = (tmp_path / f"{identity}.html").read_text()
    check_page(html)
    assert "Gate entropy by layer" in html
    assert "of its saved network alone" not in html


def test_no_such_run(refused, store, tmp_path):
    assert "no run in" in refused("view", "ffff", "--store", store[0])
    message = refused("view", "nowhere", "--store", tmp_path / "nothing")
    assert "nowhere is no folder, and there is no store at" in message
    (tmp_path / "empty").mkdir()
    assert "holds no run: there is no config.json" in refused("view", tmp_path / "empty")


def test_an_output_that_exists_is_kept(refused, gatefit, finished_run, tmp_path):
    page = tmp_path / "page.html"
    page.write_text("mine")
    assert "exists; choose another --out, or replace it with --overwrite" in refused(
        "view", finished_run, "--out", page
    )
    assert page.read_text() == "mine"
    assert gatefit("view", finished_run, "--out", page, "--overwrite").code == 0
