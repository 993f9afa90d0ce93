"""Runs on a Ray of this machine: one worker is killed half-way, and nothing is lost, doubled or different."""

import importlib.util
import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from gatefit.experiments import ray_jobs
from gatefit.experiments.ray_jobs import FILES, RayError, connected, run_on_ray
from gatefit.experiments.runner import run_all
from gatefit.experiments.store import Store
from gatefit.training.folder import MADE, TEMPERATURE
from patience import HANG
from ray_driver import APART, BASE, CONFIGS, IMPOSSIBLE, KILLED, STOPPED, UNLUCKY

pytestmark = pytest.mark.outside

DRIVER = Path(__file__).parent.parent / "ray_driver.py"
needs_ray = pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="needs Ray: pip install 'gatefit[ray]'")


def driven(folder, kind):
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "XDG_CACHE_HOME": str(folder / "cache")}
    done = subprocess.run(
        [sys.executable, str(DRIVER), str(folder), kind],
        env=environment,
        capture_output=True,
        text=True,
        timeout=HANG,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads((folder / "story.json").read_text())


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ray")
    return folder, driven(folder, "quick")


@pytest.fixture(scope="module")
def slow(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ray-slow")
    return folder, driven(folder, "slow")


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    """The same runs by one process, undisturbed."""
    folder = tmp_path_factory.mktemp("here")
    with Store.open(folder) as store:
        run_all([*CONFIGS, APART], store, threads=1, side_by_side=False)
    return folder


def assert_same(found, expected, configs):
    """Rows, diagnostics and figures in the store, and the bytes of the trained networks and logs."""
    with Store.open(found, read_only=True) as one, Store.open(expected, read_only=True) as other:
        one.check()
        for config in configs:
            record, reference = one.find(config.identity), other.find(config.identity)
            assert record.status == "finished"
            assert record.metrics == reference.metrics
            assert record.diagnostics == reference.diagnostics
            assert record.diagnostics
            assert record.summary == reference.summary
            assert record.data_digest == reference.data_digest
            assert record.code_version
            assert record.seconds > 0
            for name in set(FILES) - {TEMPERATURE}:  # which none of these runs searched for
                mine, theirs = (store.run_folder(config.identity) / name for store in (one, other))
                assert (mine.read_bytes() == theirs.read_bytes()) == (name != MADE), name


def steps_begun(story, config):
    return [e["step"] for e in story["events"] if (e["identity"], e["kind"]) == (config.identity, "started")]


@needs_ray
def test_a_killed_worker_loses_nothing_and_changes_no_bit(quick, here):
    folder, story = quick
    assert story["killed"]["outcome"] == 1, "one process was killed while it trained"
    first, again = steps_begun(story["killed"], KILLED)
    assert first == 0
    # The rows of step 300 were told before its checkpoint was written; that of step 200 was there.
    assert again >= 200
    assert_same(folder / "killed", here, CONFIGS)


@needs_ray
def test_a_run_that_cannot_be_trained_fails_with_its_reason_and_the_others_go_on(quick):
    *others, impossible = quick[1]["killed"]["records"]
    assert {status for _, status, _ in others} == {"finished"}
    assert impossible == [IMPOSSIBLE.identity, "failed", impossible[2]]
    assert "width must be a multiple of 2 classes, got 33" in impossible[2]


@needs_ray
def test_machines_that_do_not_see_the_folder_send_the_files_back(quick, here):
    folder, _ = quick
    assert_same(folder / "apart", here, [APART])
    # A run's folder on the machine is given up once the driver has its files.
    assert not any(path.is_file() for path in (folder / "cache").rglob("*") if "ray" in path.parts)
    assert not list((folder / "apart").glob(".ray-*"))


@needs_ray
def test_tasks_that_fit_no_machine_are_refused(quick):
    _, story = quick
    assert story["size"] == (
        f"a task asks for 1000 processors, and no machine of this Ray has more than {story['processors']}; "
        "use fewer --threads"
    )


@needs_ray
def test_nothing_is_left_of_a_ray_that_was_started_here(quick):
    assert quick[1]["processes"] >= 3
    assert quick[1]["left over"] == []


@needs_ray
@pytest.mark.slow
def test_a_wish_to_stop_saves_every_run_and_they_go_on_later(slow, tmp_path):
    folder, story = slow
    told = {identity: status for identity, status, _ in story["stopped"]["records"]}
    assert told[STOPPED.identity] == "planned"
    own = [event for event in story["stopped"]["events"] if event["identity"] == STOPPED.identity]
    assert (own[0]["kind"], own[-1]["kind"]) == ("started", "stopped")
    assert steps_begun(story["resumed"], STOPPED) == [own[-1]["step"]]
    assert own[-1]["step"] >= 100
    with Store.open(tmp_path) as store:
        run_all([STOPPED], store, threads=1)
    assert_same(folder / "stopped", tmp_path, [STOPPED])


@needs_ray
@pytest.mark.slow
def test_a_run_whose_process_dies_too_often_is_given_up_with_the_reason(slow):
    ((identity, status, error),) = slow[1]["unlucky"]["records"]
    assert (identity, status) == (UNLUCKY.identity, "failed")
    assert error.startswith("its process died with WorkerCrashedError: The worker died unexpectedly")
    assert slow[1]["unlucky"]["events"][-1]["kind"] == "failed"


@needs_ray
@pytest.mark.slow
def test_a_machine_with_another_version_is_refused(slow):
    assert "the driver 0.0.0; install the same on all machines" in slow[1]["version"]


@needs_ray
def test_finished_runs_need_no_ray(here, monkeypatch):
    monkeypatch.setattr(ray_jobs, "connected", None)
    with Store.open(here) as store:
        records = run_on_ray([APART, APART], store, address="127.0.0.1:1")
    assert [(record.identity, record.status) for record in records] == [(APART.identity, "finished")]


@needs_ray
@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("ray://head:10001", "ray://head:10001 is Ray's client protocol, .* run this on a machine of the cluster"),
        ("nonsense", "the address of a Ray is HOST:PORT, auto or local, got 'nonsense'"),
        ("head:ssh", "the address of a Ray is HOST:PORT, auto or local, got 'head:ssh'"),
        ("127.0.0.1:99999999999", r"there is no Ray at 127.0.0.1:99999999999 \("),
    ],
)
def test_an_address_without_a_ray_is_refused(address, words):
    with pytest.raises(RayError, match=words), connected(address):
        pass


@needs_ray
def test_a_port_without_a_ray_is_refused_at_once():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # Bound, but nobody listens.
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        words = f"there is no Ray at {address} .* start one with `ray start --head`"
        with pytest.raises(RayError, match=words), connected(address):
            pass


@needs_ray
@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"threads": 0}, "threads must be a whole number >= 1, got 0"),
        ({"threads": True}, "threads must be a whole number >= 1, got True"),
        ({"retries": -1}, "retries must be a whole number >= 0, got -1"),
    ],
)
def test_options_are_checked_before_anything_is_planned(tmp_path, options, words):
    with Store.open(tmp_path) as store:
        with pytest.raises(ValueError, match=words):
            run_on_ray([BASE], store, address="local", **options)
        assert store.records() == []


def test_without_ray_one_sentence_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with (
        Store.open(tmp_path) as store,
        pytest.raises(
            ImportError, match=r"^--ray needs ray, which is not installed; run: pip install 'gatefit\[ray\]'$"
        ),
    ):
        run_on_ray([BASE], store, address="local")
