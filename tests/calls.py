"""How much Python a call runs: the same on every machine, however busy."""

import sys
from collections.abc import Callable
from typing import Any


def calls(function: Callable[..., Any], *arguments: Any) -> int:
    """Python functions that one call makes, the second time, when all that is made once is there."""
    function(*arguments)
    count = 0

    def counted(frame: Any, event: str, argument: Any) -> None:
        nonlocal count
        count += event == "call"

    sys.setprofile(counted)
    try:
        function(*arguments)
    finally:
        sys.setprofile(None)
    return count
