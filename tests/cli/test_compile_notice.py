"""The first compilation of the kernels says so on a terminal, once, and nowhere else."""

import os
import pty
import subprocess
import sys
import time

import numpy as np
import pytest
from numba import njit

from gatefit.circuit.ir import Circuit
from gatefit.circuit.readout import GroupSum
from gatefit.cli import compile_notice
from gatefit.cli.compile_notice import MESSAGE, compilation, message_for

pytestmark = pytest.mark.outside


def on_a_terminal(environment, *command):
    """What a command writes to a terminal as its stderr."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "gatefit.cli", *map(str, command)],
        stdout=subprocess.DEVNULL,
        stderr=theirs,
        env=os.environ | environment,
    ) as process:
        os.close(theirs)
        said = b""
        try:
            while part := os.read(ours, 1 << 12):
                said += part
        except OSError:  # the other end is closed
            pass
    os.close(ours)
    assert process.returncode == 0, said
    return said.decode()


def test_the_first_compilation_is_announced_and_the_second_run_needs_none(tmp_path):
    rng = np.random.default_rng(0)
    operands = np.stack([np.arange(60) % 30, (np.arange(60) + 7) % 30])
    circuit = Circuit(30, rng.integers(0, 16, 60), operands, 30 + np.arange(60), GroupSum(np.arange(60) % 2, [0, 0]))
    circuit.save(tmp_path / "a.gate")
    environment = {"NUMBA_CACHE_DIR": str(tmp_path / "cache"), "TERM": "dumb"}
    command = ("prove", tmp_path / "a.gate", tmp_path / "a.gate")
    assert on_a_terminal(environment, *command).count(MESSAGE) == 1
    assert MESSAGE not in on_a_terminal(environment, *command)


def test_nested_kernels_are_counted_once(monkeypatch, capsys):
    monkeypatch.setattr(compile_notice, "SILENT_SECONDS", 0.0)

    @njit
    def inner(x):
        return x * 2 + 1

    @njit
    def outer(x):
        return inner(x) + inner(float(x))

    start = time.perf_counter()
    with compilation(speak=False) as quiet, compilation(speak=True) as heard:
        outer(1)
    whole = time.perf_counter() - start
    assert 0 < heard.seconds < whole
    assert 0 < quiet.seconds < whole
    before = heard.seconds
    outer(2)
    outer(2.5)
    assert heard.seconds == before
    assert capsys.readouterr() == ("", f"{MESSAGE}\n")


def test_it_says_what_the_kernels_are_for():
    assert message_for("gatefit.circuit.engine.kernels") == (
        f"{MESSAGE} (to run circuits; `gatefit warm-up` compiles all of them)"
    )
    assert "to optimise and prove circuits" in message_for("gatefit.circuit.prove.rup")
    assert "to train" in message_for("gatefit.ops.soft_stack.numba")
    assert message_for("somewhere.else") == MESSAGE
