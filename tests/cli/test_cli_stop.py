"""Ctrl+C and SIGTERM: the step is finished, the run saved, and the printed command goes on to the same bits."""

import hashlib
import json
import os
import shlex
import signal
import subprocess
import time

import pytest
from typer.testing import CliRunner

from gatefit.cli import app
from gatefit.cli.stop import StopSignals
from patience import HANG

pytestmark = pytest.mark.outside

LONG = ["--dataset", "monks-1", "--width", "34", "--depth", "2", "--steps", "400", "--evaluate-every", "20"]


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("stop") / "run"
    result = CliRunner().invoke(app, ["train", *LONG, "--out", str(folder), "--quiet"])
    assert result.exit_code == 0
    return digests(folder)


def digests(folder):
    """What a run has learned and logged; not where or when."""
    names = ("model.safetensors", "metrics.jsonl", "result.json")
    return {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in names}


def send(number):
    """Send a signal to this process and give its handler a moment to run."""
    os.kill(os.getpid(), number)
    time.sleep(0.01)


def test_the_command_printed_on_ctrl_c_resumes_to_the_same_bits(process, uninterrupted, tmp_path):
    folder = tmp_path / "a run; with 'quotes'"
    running = process("train", *LONG, "--out", folder)
    for line in running.stdout:
        if line.startswith("step 20/"):
            running.send_signal(signal.SIGINT)
            break
    rest, err = running.communicate(timeout=HANG)
    assert running.returncode == 130
    assert "stopping after this step" in err
    told, command = rest.splitlines()[-2:]
    assert told.startswith("stopped at step ")
    assert 20 <= int(told.split()[3]) < 400
    assert not (folder / "result.json").exists()
    done = subprocess.run(shlex.split(command), capture_output=True, text=True, timeout=HANG, check=True)
    assert done.stdout.startswith("resumed at step ")
    assert digests(folder) == uninterrupted


def test_sigterm_with_json_says_how_to_go_on(process, uninterrupted, gatefit, tmp_path):
    folder = tmp_path / "run"
    running = process("train", *LONG, "--out", folder, "--json", "--threads", 1)
    for line in running.stderr:
        if line.startswith("step 20/"):
            running.send_signal(signal.SIGTERM)
            break
    out, _ = running.communicate(timeout=HANG)
    assert running.returncode == 143
    content = json.loads(out)
    assert content["finished"] is False
    words = shlex.split(content["resume"])
    assert words[words.index("train") :] == ["train", *LONG, "--out", str(folder), "--threads", "1", "--json"]
    assert gatefit("info", folder).out.splitlines()[1].startswith("state    stopped or running, step ")
    assert gatefit("train", "--resume", folder, "--json").json["finished"] is True
    assert digests(folder) == uninterrupted


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_second_signal_aborts_at_once(number, code, capfd):
    before = signal.getsignal(number)
    with StopSignals() as stop:
        stop.started(None, None, None)
        assert not stop()
        send(number)
        assert stop()
        assert stop.exit_code == code
        with pytest.raises(SystemExit) as exit:
            send(number)
    assert exit.value.code == code
    assert "aborted" in capfd.readouterr().err
    assert signal.getsignal(number) is before


def test_a_signal_before_the_first_step_ends_the_process(capfd):
    with StopSignals(), pytest.raises(SystemExit) as exit:
        send(signal.SIGINT)
    assert exit.value.code == 130
    assert "nothing to save" in capfd.readouterr().err
