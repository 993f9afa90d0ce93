"""The two commands of the README: the demo installs what it needs, the tests add the rest to the same place."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tools import require_tool

pytestmark = pytest.mark.outside

ROOT = Path(__file__).parents[1]


@pytest.fixture
def planned(tmp_path):
    """What `make TARGET` would run in a fresh clone."""
    make = require_tool("make")
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / name, tmp_path)

    def plan(target, wanted=r"pip install .*|gatefit demo|pytest -m", **environment):
        own = {**os.environ, **environment}
        done = subprocess.run([make, "-n", target], cwd=tmp_path, env=own, capture_output=True, text=True, check=True)
        return re.findall(wanted, done.stdout)

    return plan


def test_the_demo_installs_what_training_needs_and_no_more(planned):
    install, run = planned("demo")
    assert install.rstrip("; \\").endswith("--constraint constraints.txt --editable '.[train]'")
    assert run == "gatefit demo"


def test_the_tests_install_all_at_once(planned):
    install, *runs = planned("test")
    assert install.endswith("--constraint constraints.txt --editable '.[dev]'")
    assert runs == ["pytest -m", "pytest -m"]
    assert planned("test-core") == [install, "pytest -m"]


@pytest.mark.parametrize("target", ["test", "test-core"])
def test_where_tools_are_required_they_are_installed_before_the_first_test(planned, target):
    first, *others = planned(target, r"install-tools\.sh|pytest -m", CI="true")
    assert first == "install-tools.sh"
    assert others
    assert set(others) == {"pytest -m"}


def test_one_adds_to_the_other(planned, tmp_path):
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    (tmp_path / ".venv" / "bin" / "python").touch()
    (tmp_path / ".venv" / ".installed-train").touch()
    assert planned("demo") == ["gatefit demo"]
    assert len(planned("test")) == 3
    (tmp_path / ".venv" / ".installed").touch()
    assert planned("test") == ["pytest -m", "pytest -m"]


def test_what_is_installed_without_bytecode_may_write_it(planned, tmp_path):
    """Else every process that the tests start compiles torch again."""
    assert "--no-compile" in planned("test")[0]
    (tmp_path / "asked.mk").write_text('include Makefile\nasked:\n\t@echo "[$$PYTHONDONTWRITEBYTECODE]"\n')
    asked = subprocess.run(
        [require_tool("make"), "--no-print-directory", "-f", "asked.mk", "asked"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert asked.stdout == "[]\n"
