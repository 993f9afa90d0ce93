"""Real programs that tests run: a C compiler, a Verilog simulator and a linter, ABC, a proof checker."""

import os
import shutil

import pytest


def require_tool(name: str) -> str:
    """The path of a program; without it the test is skipped, or fails where CI is set."""
    path = shutil.which(name)
    if path is None:
        message = f"needs the program {name!r}; install it to run this test"
        if os.environ.get("CI"):
            pytest.fail(message)
        pytest.skip(message)
    return path
