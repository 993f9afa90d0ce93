"""Kernels: numba's ``njit``, whose cache on disk is a convenience and never a condition.

    kept       NUMBA_CACHE_DIR, else __pycache__ beside the source, else the user's cache folder: the first that can be
               written; none of them: compiled in every process
    read       from there, else from NUMBA_CACHE_DIR and __pycache__ as somebody else left them: who made an image, or
               installed the package

numba itself refuses to define a cached function where it finds no writable folder, as in a container with a read-only
file system, ends a call whose machine code it cannot store, and does not read a folder that it cannot write. Every
kernel is decorated with the ``njit`` of this module instead.
"""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import numba
from numba.core import caching, event, registry

# Typed in some versions of numba only, and there not in full.
_config: Any = numba.config
_event: Any = event
_Dispatcher: Any = registry.CPUDispatcher
_FunctionCache: Any = caching.FunctionCache
_CompileResultCacheImpl: Any = caching.CompileResultCacheImpl


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

    def serves(self, processor: Any) -> bool:
        """Whether it holds the function for this processor, whatever the types."""
        try:
            return any(key[1] == processor for key in self._cache_file._load_index())
        except Exception:  # a damaged index, or a later form of it: it will be compiled, and that is all
            return False


def _left_by_others(name: str) -> type[_Cache] | None:
    """A cache in the folder of one of numba's locators that can be read and not written."""
    locator: Any = getattr(caching, name, None) or getattr(caching, f"_{name}", None)  # as older versions call it
    if locator is None:
        return None

    class Reading(locator):  # type: ignore[misc]
        @classmethod
        def from_function(cls, py_func: Any, py_file: Any) -> Any:
            if "UserProvided" in name and not _config.CACHE_DIR:
                return None
            here = cls(py_func, py_file)
            path = here.get_cache_path()
            return here if Path(path).is_dir() and not os.access(path, os.W_OK) else None

    class Form(_CompileResultCacheImpl):  # type: ignore[misc]
        _locator_classes = (Reading,)

    class LeftByOthers(_Cache):
        _impl_class = Form

        def save_overload(self, sig: Any, data: Any) -> None:
            """Nothing can be kept here."""

    return LeftByOthers


_READ_ONLY: Final[tuple[type[_Cache], ...]] = tuple(
    kind for kind in map(_left_by_others, ("UserProvidedCacheLocator", "InTreeCacheLocator")) if kind is not None
)


class _Caches:
    """What numba asks for: the cache that can be written, if there is one, and what others left to read."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.parts: list[_Cache] = []
        kinds: tuple[type[_Cache], ...] = (_Cache, *_READ_ONLY)
        for kind in kinds:
            with suppress(RuntimeError, OSError):  # "no locator available": no such folder
                self.parts.append(kind(function))

    @property
    def cache_path(self) -> str | None:
        """The folder that is written."""
        return self.parts[0].cache_path if self.parts else None

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The compiled function of a signature, or None."""
        for part in self.parts:
            found = part.load_overload(sig, target_context)
            if found is not None:
                return found
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep a compiled function where that is possible."""
        if self.parts:
            self.parts[0].save_overload(sig, data)

    def enable(self) -> None:
        """Read and write."""
        for part in self.parts:
            part.enable()

    def disable(self) -> None:
        """Neither read nor write."""
        for part in self.parts:
            part.disable()

    def flush(self) -> None:
        """Forget what was kept."""
        if self.parts:
            self.parts[0].flush()


def is_compiled(dispatcher: Any) -> bool:
    """Whether a kernel has machine code for this processor, in this process or on the disk; for some types at least."""
    if getattr(dispatcher, "overloads", True):  # a plain function, with NUMBA_DISABLE_JIT, has nothing to wait for
        return True
    cache = dispatcher._cache
    if not isinstance(cache, _Caches):
        return False
    processor = dispatcher.targetctx.codegen().magic_tuple()
    return any(part.serves(processor) for part in cache.parts)


def njit(*, cache: bool = False, inner: bool = False, **options: Any) -> Callable[[Callable[..., Any]], Any]:
    """``numba.njit`` with these options; ``cache`` keeps the machine code where a folder can be written.

    ``inner`` functions are called by kernels: what Python would need to call them, a fifth of the time that compiling
    them takes, is made when Python does.
    """
    # Nobody hands kernels to C.
    options = {"no_cfunc_wrapper": True, **options}
    if inner:
        options["no_cpython_wrapper"] = True

    def compiled(function: Callable[..., Any]) -> Any:
        dispatcher: Any = numba.njit(**options)(function)
        if dispatcher is function:  # as it is with NUMBA_DISABLE_JIT
            return function
        if inner:
            dispatcher.__class__ = _Inner
        if cache:
            dispatcher._cache = _Caches(function)
        return dispatcher

    return compiled


class _Inner(_Dispatcher):  # type: ignore[misc]
    """A function without a way in from Python, but for this one."""

    _from_python: Any = None

    def __call__(self, *arguments: Any) -> Any:
        if self._from_python is None:
            options = {**self.targetoptions, "no_cpython_wrapper": False}
            options.pop("nopython", None)
            self._from_python = numba.njit(**options)(self.py_func)
        return self._from_python(*arguments)


class Compilations:
    """Which of our functions numba compiles, with the processor seconds that are theirs alone.

    What they use of numba's own library is compiled on the way and counts as theirs; what they call of ours does not.
    """

    def __init__(self) -> None:
        self.seconds: dict[str, list[float]] = {}
        """By module and name: one number for each set of types."""
        self.folders: set[str] = set()
        """Where they are kept."""
        self._open: list[tuple[float, float]] = []

    def notify(self, event: Any) -> None:
        """A function begins or ends."""
        now = time.process_time()
        if event.is_start:
            self._open.append((now, 0.0))
            return
        begun, inner = self._open.pop()
        dispatcher = event.data["dispatcher"]
        function = dispatcher.py_func
        ours = function.__module__.startswith("gatefit.")
        if self._open:
            self._open[-1] = self._open[-1][0], self._open[-1][1] + (now - begun if ours else inner)
        if ours:
            self.seconds.setdefault(f"{function.__module__}.{function.__qualname__}", []).append(now - begun - inner)
            folder = getattr(dispatcher._cache, "cache_path", None)
            self.folders |= {folder} if folder else set()


@contextmanager
def compilations() -> Iterator[Compilations]:
    """Listen to numba."""
    found = Compilations()
    _event.Listener.register(Compilations)
    _event.register("numba:compile", found)
    try:
        yield found
    finally:
        _event.unregister("numba:compile", found)
