"""ABC and yosys, as tests run them."""

import subprocess
from pathlib import Path

from patience import HANG
from tools import require_tool


def run_abc(folder: Path, commands: str) -> str:
    """What ABC prints for a line of commands; it runs in ``folder``."""
    program = require_tool("berkeley-abc")
    return run(folder, program, "-q", commands)


def run_yosys(folder: Path, commands: str) -> str:
    program = require_tool("yosys")
    return run(folder, program, "-q", "-p", commands)


def run(folder: Path, *command: str) -> str:
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=HANG, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout + result.stderr
