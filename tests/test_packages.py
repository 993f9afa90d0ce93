"""Wheel and sdist in clean environments, for every Python that is said to work and is on this machine."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import gatefit
from gatefit._version import VERSION

ROOT = Path(__file__).parents[1]
CURRENT = f"{sys.version_info.major}.{sys.version_info.minor}"
PROJECT = (ROOT / "pyproject.toml").read_text()
CLAIMED = re.findall(r'"Programming Language :: Python :: (3\.\d+)"', PROJECT)


def interpreter(version: str) -> str | None:
    """A Python of this version: on the PATH, or one of pyenv's."""
    if version == CURRENT:
        return sys.executable
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    for found in (shutil.which(f"python{version}"), *map(str, sorted(root.glob(f"{version}.*/bin/python")))):
        if found and not subprocess.run([found, "-c", ""], capture_output=True, check=False).returncode:
            return found
    return None


def smoke_test(version: str) -> None:
    python = interpreter(version)
    if python is None:
        pytest.skip(f"there is no Python {version} on this machine")
    command = [python, ROOT / "scripts" / "smoke_test.py"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.findall(rf"gatefit {re.escape(VERSION)} works with Python {re.escape(version)}\.\d+", done.stdout)[1:]


@pytest.mark.slow
@pytest.mark.parametrize("version", CLAIMED)
def test_packages_work_with_every_python_that_is_claimed(version):
    smoke_test(version)


def test_what_the_package_says_of_itself_is_true():
    assert re.search(r'^version = "(.*)"$', PROJECT, re.MULTILINE)[1] == gatefit.__version__ == VERSION
    assert re.search(r"^version: (.*)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)[1] == VERSION
    least = re.search(r'^requires-python = ">=(.*)"$', PROJECT, re.MULTILINE)[1]
    assert CLAIMED[0] == least
    assert CURRENT in CLAIMED
    assert (Path(gatefit.__file__).parent / "py.typed").read_bytes() == b""
    workflow = (ROOT / ".github" / "workflows" / "ci.yml").read_text()
    for job in workflow.split("matrix:")[1:]:
        assert re.findall(r'"(3\.\d+)"', job) == CLAIMED
    assert "run: .ci/run" in workflow
    assert "run: python scripts/smoke_test.py" in workflow


def test_the_changelog_begins_with_this_version():
    text = (ROOT / "CHANGELOG.md").read_text()
    assert re.search(r"^## \[?(\d+\.\d+\.\d+)", text, re.MULTILINE)[1] == VERSION
