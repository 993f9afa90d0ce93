"""Many samples at a time: a SIMD value that kernels can name, where a loop would leave the choice to LLVM.

    load(array, i, tile)        array[i], array[i + 1], ...: as many as the tile has samples
    store(array, i, v)
    spread(x, tile)             x in every lane
    v + w, v * w                as operators; a product and a sum are fused where the processor can
    where(bits, v, w)           lane k is v's where bit k of the unsigned integer is set, else w's
    add_sums(array, i, p, q, r, s)   the four sums over lanes, added to array[i], ..., array[i + 3]
    prefetch(array, i)          array[i] will be needed soon

``tile`` is a tuple of n zeros for 16 n samples: the width is part of its type, so that each width gets its own code.
Arrays are contiguous and addressed by a flat index; nothing is checked. Sixteen float32 compile to one register of
AVX-512, two of AVX2 or four of NEON; the order of every sum is written here, so it is the same on all of them that can
fuse a product and a sum.
"""
# mypy: disable-error-code="no-untyped-def, untyped-decorator, call-arg"

import operator
from typing import Any, Final

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, models, overload, register_model
from numba.np import arrayobj

_FUSED: Final = ("contract", "nsz")
_REGISTER: Final = 16
"""Lanes to which longer values are added up first: one register."""


class Lanes(types.Type):
    """``count`` numbers of one floating type."""

    def __init__(self, element: Any, count: int) -> None:
        self.element, self.count = element, count
        super().__init__(name=f"Lanes({element}, {count})")


def samples(tile: tuple[int, ...]) -> int:
    """How many samples the tile has."""
    return _REGISTER * len(tile)


@register_model(Lanes)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Lanes) -> None:
        element = manager.lookup(kind.element).get_value_type()
        super().__init__(manager, kind, ir.VectorType(element, kind.count))


@overload(samples)
def _samples(tile):
    count = _REGISTER * len(tile)
    return lambda tile: count


def _pointer(context, builder, kind, array, index, count):
    """A pointer to ``count`` elements of the array from the flat index on."""
    data = arrayobj.make_array(kind)(context, builder, array).data
    element = context.get_value_type(kind.dtype)
    return builder.bitcast(builder.gep(data, [index]), ir.VectorType(element, count).as_pointer())


@intrinsic
def load(typing_context, array, index, tile):
    """The elements of a contiguous array from the flat index on."""
    kind = Lanes(array.dtype, samples(tile))

    def generate(context, builder, signature, arguments):
        pointer = _pointer(context, builder, signature.args[0], *arguments[:2], kind.count)
        value = builder.load(pointer)
        value.align = signature.args[0].dtype.bitwidth // 8
        return value

    return kind(array, types.intp, tile), generate


@intrinsic
def store(typing_context, array, index, value):
    """The numbers into the array, from the flat index on."""

    def generate(context, builder, signature, arguments):
        pointer = _pointer(context, builder, signature.args[0], *arguments[:2], value.count)
        builder.store(arguments[2], pointer, align=signature.args[0].dtype.bitwidth // 8)
        return context.get_dummy_value()

    return types.none(array, types.intp, value), generate


@intrinsic
def prefetch(typing_context, array, index):
    """Begin to fetch the cache line of an element that will be read and written soon."""

    def generate(context, builder, signature, arguments):
        data = arrayobj.make_array(signature.args[0])(context, builder, arguments[0]).data
        pointer = builder.bitcast(builder.gep(data, [arguments[1]]), ir.IntType(8).as_pointer())
        signature_of = ir.FunctionType(ir.VoidType(), [pointer.type, *[ir.IntType(32)] * 3])
        function = cgutils.get_or_insert_function(builder.module, signature_of, "llvm.prefetch.p0i8")
        # To write, into every level of cache, data.
        builder.call(function, [pointer, *(cgutils.int32_t(number) for number in (1, 3, 1))])
        return context.get_dummy_value()

    return types.none(array, types.intp), generate


def _shuffled(builder, v, w, places):
    return builder.shuffle_vector(v, w, ir.Constant(ir.VectorType(ir.IntType(32), len(places)), list(places)))


@intrinsic
def spread(typing_context, x, tile):
    """x in every lane."""
    kind = Lanes(x, samples(tile))

    def generate(context, builder, signature, arguments):
        vector = ir.VectorType(arguments[0].type, kind.count)
        empty = ir.Constant(vector, ir.Undefined)
        return _shuffled(
            builder, builder.insert_element(empty, arguments[0], cgutils.int32_t(0)), empty, [0] * kind.count
        )

    return kind(x, tile), generate


@intrinsic
def _plus(typing_context, v, w):
    return v(v, w), lambda context, builder, signature, arguments: builder.fadd(*arguments, flags=_FUSED)


@intrinsic
def _times(typing_context, v, w):
    return v(v, w), lambda context, builder, signature, arguments: builder.fmul(*arguments, flags=_FUSED)


@overload(operator.add)
def _add(v, w):
    if isinstance(v, Lanes) and v == w:
        return lambda v, w: _plus(v, w)  # noqa: PLW0108 -- numba compiles a function, an intrinsic is none
    return None


@overload(operator.mul)
def _multiply(v, w):
    if isinstance(v, Lanes) and v == w:
        return lambda v, w: _times(v, w)  # noqa: PLW0108 -- likewise
    return None


@intrinsic
def where(typing_context, bits, v, w):
    """Lane k of v where bit k is set, of w elsewhere; bits beyond the lanes are ignored."""

    def generate(context, builder, signature, arguments):
        bits, v, w = arguments
        if bits.type.width > v.type.count:
            bits = builder.trunc(bits, ir.IntType(v.type.count))
        return builder.select(builder.bitcast(bits, ir.VectorType(ir.IntType(1), v.type.count)), v, w)

    return v(bits, v, v), generate


@intrinsic
def add_sums(typing_context, array, index, p, q, r, s):
    """The sums of p, q, r and s over their lanes, added to four neighbours in the array."""

    def generate(context, builder, signature, arguments):
        def halved(v, count):
            while v.type.count > count:
                half = v.type.count // 2
                low, high = (_shuffled(builder, v, v, range(first, first + half)) for first in (0, half))
                v = builder.fadd(low, high, flags=_FUSED)
            return v

        def merged(v, w, left, right):
            """In each group of four lanes, the sums of two choices among v's lanes 0 to 3 and w's, numbered 4 to 7."""
            chosen = [
                [
                    4 * group + (lane if lane < 4 else _REGISTER + lane - 4)
                    for group in range(_REGISTER // 4)
                    for lane in side
                ]
                for side in (left, right)
            ]
            return builder.fadd(*(_shuffled(builder, v, w, places) for places in chosen), flags=_FUSED)

        p, q, r, s = (halved(v, _REGISTER) for v in arguments[2:])
        # (p0+p2, q0+q2, p1+p3, q1+q3) of each group, then (p, q, r, s) of each group, then the sum of the groups.
        pq = merged(p, q, (0, 4, 1, 5), (2, 6, 3, 7))
        rs = merged(r, s, (0, 4, 1, 5), (2, 6, 3, 7))
        four = halved(merged(pq, rs, (0, 1, 4, 5), (2, 3, 6, 7)), 4)
        pointer = _pointer(context, builder, signature.args[0], *arguments[:2], 4)
        alignment = signature.args[0].dtype.bitwidth // 8
        before = builder.load(pointer)
        before.align = alignment
        builder.store(builder.fadd(before, four), pointer, align=alignment)
        return context.get_dummy_value()

    return types.none(array, types.intp, p, q, r, s), generate
