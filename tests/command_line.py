"""Commands run as a user types them, and one small trained run with its circuit: fixtures of every verb's tests."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from gatefit.cli import app

# Where colorama is installed, numba's first import would otherwise keep hold of a test's captured output.
os.environ.setdefault("NUMBA_DISABLE_ERROR_MESSAGE_HIGHLIGHTING", "1")

SMALL = ["--dataset", "monks-1", "--width", "34", "--depth", "2", "--steps", "60", "--evaluate-every", "20"]
"""A run of a tenth of a second on embedded data."""


@dataclass
class Outcome:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def invoke(*arguments: object) -> Outcome:
    """A command in this process; a bug's exception comes through."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return Outcome(result.exit_code, result.stdout, result.stderr)


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GATEFIT_TRACEBACK", raising=False)
    monkeypatch.setenv("COLUMNS", "200")


@pytest.fixture
def gatefit() -> Callable[..., Outcome]:
    """Run a command that should work or fail as the test says."""
    return invoke


@pytest.fixture
def refused() -> Callable[..., str]:
    """Run a command that must be refused: exit code 2, one line on stderr, nothing on stdout; returns the line."""

    def run(*arguments: object, code: int = 2) -> str:
        outcome = invoke(*arguments)
        assert outcome.code == code, outcome
        assert outcome.out == ""
        assert outcome.err.startswith("error: ")
        assert outcome.err.count("\n") == 1, outcome.err
        return outcome.err.removeprefix("error: ").rstrip("\n")

    return run


@pytest.fixture(scope="session")
def small() -> list[str]:
    """The options of the small run."""
    return SMALL


@pytest.fixture(scope="session")
def finished_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the small run, finished; not to be changed."""
    folder = tmp_path_factory.mktemp("cli") / "run"
    assert invoke("train", *SMALL, "--out", folder, "--quiet").code == 0
    return folder


@pytest.fixture(scope="session")
def model(finished_run: Path) -> Path:
    """Its circuit, optimised and proven; not to be changed."""
    path = finished_run.parent / "model.gate"
    assert invoke("compile", finished_run, "--out", path).code == 0
    return path


@pytest.fixture
def process() -> Callable[..., "subprocess.Popen[str]"]:
    """Start ``gatefit`` as a process of its own, with both its streams readable."""

    def start(*arguments: object) -> "subprocess.Popen[str]":
        command = [sys.executable, "-m", "gatefit.cli", *map(str, arguments)]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    return start
