"""Runs killed with SIGKILL resume to the same bits; the long version is `python tests/kill_resume.py --runs 50`."""

import pytest

from kill_resume import LEARNED, complete, fingerprint, trial

pytestmark = pytest.mark.outside


def test_killed_runs_end_as_undisturbed_ones_do(tmp_path):
    kills, mismatches = trial(tmp_path, runs=3, seed=1, steps=400)
    assert kills >= 2
    assert mismatches == 0


@pytest.mark.slow
def test_killed_runs_with_learned_wiring_end_as_undisturbed_ones_do(tmp_path):
    kills, mismatches = trial(tmp_path, runs=2, seed=2, steps=300, methods=LEARNED)
    assert kills >= 1
    assert mismatches == 0


def test_one_and_two_threads_give_the_same_files(tmp_path):
    for threads in (1, 2):
        complete(tmp_path / str(threads), "multilinear-covjac", 50, threads)
    assert fingerprint(tmp_path / "1") == fingerprint(tmp_path / "2")


@pytest.mark.slow
def test_twenty_killed_runs_with_learned_wiring_end_as_undisturbed_ones_do(tmp_path):
    kills, mismatches = trial(tmp_path, runs=20, seed=0, steps=400, methods=LEARNED)
    assert kills >= 20
    assert mismatches == 0


@pytest.mark.slow
def test_fifty_killed_runs_end_as_undisturbed_ones_do(tmp_path):
    _, mismatches = trial(tmp_path, runs=50, seed=0, steps=400)
    assert mismatches == 0
