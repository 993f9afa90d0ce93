"""A command that is killed or stopped goes on to the same circuit when it is given again."""

import json
import os
import signal

import pytest

from gatefit.frontier.results import read_results
from patience import HANG, wait_until

pytestmark = pytest.mark.outside

ROW = {
    "name": "long",
    "seeds": [0],
    "config": {"dataset": "monks-1", "width": 40, "depth": 2, "steps": 3000, "evaluate_every": 50, "wiring": "learned"},
}


def options(folder):
    folder.mkdir()
    (folder / "entries.json").write_text(json.dumps([ROW]))
    names = {"--entries": "entries.json", "--store": "store", "--out": "out"}
    return [word for option, name in names.items() for word in (option, str(folder / name))]


def interrupted(process, given, folder, number):
    running = process("frontier", "long", *given, "--threads", 1)
    wait_until(lambda: list(folder.glob("store/runs/*/checkpoints/*.safetensors")), "a checkpoint")
    os.kill(running.pid, number)
    _, err = running.communicate(timeout=HANG)
    assert not list(folder.glob("store/runs/*/result.json")), "it was over before it was stopped"
    return running.returncode, err


@pytest.mark.slow
def test_killed_and_started_again_the_circuit_is_the_same(gatefit, process, tmp_path):
    assert gatefit("frontier", "long", *options(tmp_path / "undisturbed")).code == 0
    given = options(tmp_path / "killed")
    code, _ = interrupted(process, given, tmp_path / "killed", signal.SIGKILL)
    assert code == -signal.SIGKILL
    assert read_results(tmp_path / "killed/out") == {}
    assert gatefit("frontier", "long", *given).code == 0
    undisturbed, resumed = (
        read_results(tmp_path / name / "out")["long"].seeds[0] for name in ("undisturbed", "killed")
    )
    for figure in ("digest", "test_accuracy", "live_gates", "proofs", "run"):
        assert resumed[figure] == undisturbed[figure]


def test_ctrl_c_stops_cleanly_and_says_how_to_go_on(process, tmp_path):
    given = options(tmp_path / "stopped")
    code, err = interrupted(process, given, tmp_path / "stopped", signal.SIGINT)
    assert code == 130
    assert "stopped; what was trained is saved. To go on:\n" in err
    assert err.rstrip().splitlines()[-1].split()[:3] == ["gatefit", "frontier", "long"]
