"""Triton's interpreter, fast enough for tests.

It replaces functions of ``triton.language`` by ones that compute with NumPy, and does so again for every call of one
jitted function by another: forty times the cost of the call itself. Here that is done once a launch.
"""

import types
from contextlib import contextmanager
from unittest import mock


@contextmanager
def patched_once_a_launch():
    """Within, kernels under the interpreter run some forty times faster, and compute the same."""
    import triton.language as tl
    from triton.runtime import interpreter

    patch, run = interpreter._patch_lang, interpreter.GridExecutor.__call__
    everything = types.SimpleNamespace(__globals__={"tl": tl, "core": tl.core})
    nothing = types.SimpleNamespace(restore=lambda: None)
    inside = False

    def patched(fn):
        return nothing if inside else patch(fn)

    def launched(self, *arguments, **named):
        nonlocal inside
        scope, inside = patch(everything), True
        try:
            return run(self, *arguments, **named)
        finally:
            inside = False
            scope.restore()

    with (
        mock.patch.object(interpreter, "_patch_lang", patched),
        mock.patch.object(interpreter.GridExecutor, "__call__", launched),
    ):
        yield
