"""Tests wait for what they wait for: a file, a line, the end of a process; how long is the machine's affair."""

import time
from collections.abc import Callable
from typing import Final

HANG: Final = 3600.0
"""Seconds after which nothing will come any more: the guard of a suite against a hang, never a measure of speed."""


def wait_until(condition: Callable[[], object], what: str) -> None:
    """Return once the condition holds."""
    until = time.monotonic() + HANG
    while not condition():
        if time.monotonic() > until:
            raise TimeoutError(f"still waiting for this after {HANG:.0f} s: {what}")
        time.sleep(0.02)
