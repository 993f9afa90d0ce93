"""Kernels: numba's ``njit``, whose cache on disk is a convenience and never a condition.

    NUMBA_CACHE_DIR, else __pycache__ beside the source, else the user's cache folder     the first that can be written
    none of them                                                                          compiled in every process

numba itself refuses to define a cached function where it finds no writable folder, as in a container with a read-only
file system, and ends a call whose machine code it cannot store. Every kernel is decorated with the ``njit`` of this
module instead.
"""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numba
from numba.core import caching

_FunctionCache: Any = caching.FunctionCache  # typed in some versions of numba only


class _Cache(_FunctionCache):  # type: ignore[misc]
    """Machine code on disk: what cannot be read is compiled, what cannot be written is not kept."""

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The compiled function of a signature, or None."""
        try:
            return super().load_overload(sig, target_context)
        except OSError:
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep a compiled function, if there is room."""
        with suppress(OSError):
            super().save_overload(sig, data)


def njit(*, cache: bool = False, **options: Any) -> Callable[[Callable[..., Any]], Any]:
    """``numba.njit`` with these options; ``cache`` keeps the machine code where a folder can be written."""

    def compiled(function: Callable[..., Any]) -> Any:
        dispatcher: Any = numba.njit(**options)(function)
        if cache and dispatcher is not function:  # as it is with NUMBA_DISABLE_JIT
            with suppress(RuntimeError):  # "no locator available": no folder can be written
                dispatcher._cache = _Cache(function)
        return dispatcher

    return compiled
