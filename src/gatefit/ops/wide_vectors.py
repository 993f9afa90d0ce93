"""Full-width SIMD registers for one kernel, where the processor has them.

LLVM uses half of AVX-512's width unless a function says ``prefer-vector-width=512``; for kernels that live in the
caches the full width is 1.1 to 1.5 times as fast. The attribute asks for nothing the processor lacks: elsewhere it
changes nothing.
"""
# mypy: disable-error-code="untyped-decorator"

from typing import Any

from numba import types
from numba.extending import intrinsic


@intrinsic
def wide_vectors(typing_context: Any) -> Any:
    """Called inside a kernel: let its loops use 512-bit registers."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        # llvmlite's own ``add`` knows only attributes without a value.
        set.add(builder.function.attributes, '"prefer-vector-width"="512"')
        return context.get_dummy_value()

    return types.none(), generate
