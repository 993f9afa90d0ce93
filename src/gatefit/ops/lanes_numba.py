"""Sixteen numbers at a time: a SIMD value that kernels can name, where a loop would leave the choice to LLVM.

    load(array, i)              array[i], ..., array[i + 15]
    store(array, i, v)
    spread(x)                   x in every lane
    v + w, v * w                as operators; a product and a sum are fused where the processor can
    where(bits, v, w)           lane k is v's where bit k is set, else w's
    store_sums(array, i, p, q, r, s)   the four sums over lanes, into array[i], ..., array[i + 3]

Arrays are contiguous and addressed by a flat index; nothing is checked. The values compile to one AVX-512 register,
two of AVX2 or four of NEON; the order of every sum is written here, so it is the same on all of them.
"""
# mypy: disable-error-code="no-untyped-def, untyped-decorator, call-arg"

import operator
from typing import Any, Final

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, models, overload, register_model
from numba.np import arrayobj

LANES: Final = 16
_FUSED: Final = ("contract", "nsz")


class Lanes(types.Type):
    """Sixteen numbers of one floating type."""

    def __init__(self, element: Any) -> None:
        self.element = element
        super().__init__(name=f"Lanes({element})")


@register_model(Lanes)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Lanes) -> None:
        element = manager.lookup(kind.element).get_value_type()
        super().__init__(manager, kind, ir.VectorType(element, LANES))


def _pointer(context, builder, kind, array, index, width):
    """A pointer to ``width`` elements of the array from the flat index on."""
    data = arrayobj.make_array(kind)(context, builder, array).data
    element = context.get_value_type(kind.dtype)
    return builder.bitcast(builder.gep(data, [index]), ir.VectorType(element, width).as_pointer())


@intrinsic
def load(typing_context, array, index):
    """Sixteen elements of a flat or contiguous array, from the flat index on."""

    def generate(context, builder, signature, arguments):
        pointer = _pointer(context, builder, signature.args[0], *arguments, LANES)
        value = builder.load(pointer)
        value.align = signature.args[0].dtype.bitwidth // 8
        return value

    return Lanes(array.dtype)(array, types.intp), generate


@intrinsic
def store(typing_context, array, index, value):
    """The sixteen numbers into the array, from the flat index on."""

    def generate(context, builder, signature, arguments):
        pointer = _pointer(context, builder, signature.args[0], *arguments[:2], LANES)
        builder.store(arguments[2], pointer, align=signature.args[0].dtype.bitwidth // 8)
        return context.get_dummy_value()

    return types.none(array, types.intp, value), generate


def _shuffled(builder, v, w, places):
    return builder.shuffle_vector(v, w, ir.Constant(ir.VectorType(ir.IntType(32), len(places)), list(places)))


@intrinsic
def spread(typing_context, x):
    """x in every lane."""

    def generate(context, builder, signature, arguments):
        kind = ir.VectorType(arguments[0].type, LANES)
        first = builder.insert_element(ir.Constant(kind, ir.Undefined), arguments[0], cgutils.int32_t(0))
        return _shuffled(builder, first, ir.Constant(kind, ir.Undefined), [0] * LANES)

    return Lanes(x)(x), generate


@intrinsic
def _plus(typing_context, v, w):
    return v(v, w), lambda context, builder, signature, arguments: builder.fadd(*arguments, flags=_FUSED)


@intrinsic
def _times(typing_context, v, w):
    return v(v, w), lambda context, builder, signature, arguments: builder.fmul(*arguments, flags=_FUSED)


@overload(operator.add)
def _add(v, w):
    if isinstance(v, Lanes) and v == w:
        return lambda v, w: _plus(v, w)
    return None


@overload(operator.mul)
def _multiply(v, w):
    if isinstance(v, Lanes) and v == w:
        return lambda v, w: _times(v, w)
    return None


@intrinsic
def where(typing_context, bits, v, w):
    """Lane k of v where bit k of the uint16 is set, of w elsewhere."""

    def generate(context, builder, signature, arguments):
        mask = builder.bitcast(arguments[0], ir.VectorType(ir.IntType(1), LANES))
        return builder.select(mask, arguments[1], arguments[2])

    return v(types.uint16, v, v), generate


@intrinsic
def store_sums(typing_context, array, index, p, q, r, s):
    """The sums of p, q, r and s over their lanes, side by side."""

    def generate(context, builder, signature, arguments):
        def pairs(v, w, step):
            """In each group of four lanes: v's and w's partial sums side by side."""
            low = [4 * group + lane for group in range(LANES // 4) for lane in step[0]]
            high = [4 * group + lane for group in range(LANES // 4) for lane in step[1]]
            return builder.fadd(_shuffled(builder, v, w, low), _shuffled(builder, v, w, high), flags=_FUSED)

        array, index, p, q, r, s = arguments
        far = LANES
        # (p0+p2, q0+q2, p1+p3, q1+q3), then (p, q, r, s) of each group of four lanes, then the four groups.
        pq = pairs(p, q, ((0, far, 1, far + 1), (2, far + 2, 3, far + 3)))
        rs = pairs(r, s, ((0, far, 1, far + 1), (2, far + 2, 3, far + 3)))
        four = pairs(pq, rs, ((0, 1, far, far + 1), (2, 3, far + 2, far + 3)))
        while four.type.count > 4:
            half = four.type.count // 2
            low = _shuffled(builder, four, four, range(half))
            high = _shuffled(builder, four, four, range(half, 2 * half))
            four = builder.fadd(low, high, flags=_FUSED)
        pointer = _pointer(context, builder, signature.args[0], array, index, 4)
        builder.store(four, pointer, align=signature.args[0].dtype.bitwidth // 8)
        return context.get_dummy_value()

    return types.none(array, types.intp, p, q, r, s), generate
