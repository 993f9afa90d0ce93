"""What kernels say to LLVM that a loop in Python cannot: vectors by name, full registers, functions without a call.

    wide_vectors()              inside a kernel: its loops may use 512-bit registers
    kernel, inlined             compilers of kernels whose loops over straight-line code become SIMD
    exp_of_negative(x)          e^x for x <= 0, without a call in float32
    float_of_bits(i), fma(a, b, c)

A vector of many samples is a value of its own, where a loop would leave the choice to LLVM:

    load(array, i, tile)        array[i], array[i + 1], ...: as many as the tile has samples
    store(array, i, v)          of arrays of uint16 and int16 as halves and as brains, two kinds of 16-bit numbers
    stream(array, i, v)         past the caches
    spread(x, tile)             x in every lane
    v + w, v * w, v / w         as operators; a product and a sum are fused where the processor can. Of two products
                                that are added either could be, and which one LLVM takes differs from processor to
                                processor, and with it the bits. A kernel says it: times_plus(v, w, times(x, y))
    times(v, w), times_plus(v, w, plus)   v w never fused with a sum, v w + plus always
    group_sums(v, group)        in every lane the sum of its group of neighbours; ``group`` has a zero for each of them
    group_tops(v, group)        in every lane the largest of its group
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

import numpy as np
from llvmlite import ir
from numba import float32, int32, types
from numba.core import cgutils
from numba.extending import intrinsic, models, overload, register_model
from numba.np import arrayobj

from gatefit.compiled import njit

FUSED: Final = {"contract", "nsz"}

inlined = njit(cache=True, inner=True, plain=True, optional=True, forceinline=True, error_model="numpy", fastmath=FUSED)
"""Calls inside a loop keep LLVM from making it SIMD, and so does a check for division by zero."""

kernel = njit(cache=True, nogil=True, plain=True, optional=True, error_model="numpy", fastmath=FUSED)
subkernel = njit(cache=True, inner=True, nogil=True, plain=True, optional=True, error_model="numpy", fastmath=FUSED)
"""What kernels call."""


@intrinsic
def wide_vectors(typing_context):
    """Called inside a kernel: let its loops use 512-bit registers.

    LLVM uses half of AVX-512's width unless a function says ``prefer-vector-width=512``; for kernels that live in the
    caches the full width is 1.1 to 1.5 times as fast. The attribute asks for nothing the processor lacks: elsewhere it
    changes nothing.
    """

    def generate(context, builder, signature, arguments):
        # llvmlite's own ``add`` knows only attributes without a value.
        set.add(builder.function.attributes, '"prefer-vector-width"="512"')
        return context.get_dummy_value()

    return types.none(), generate


@intrinsic
def fma(typing_context, a, b, c):
    """a b + c, rounded once."""
    return a(a, b, c), lambda context, builder, signature, arguments: builder.fma(*arguments)


@intrinsic
def float_of_bits(typing_context, bits):
    """The float32 whose bits these are."""

    def generate(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], context.get_value_type(types.float32))

    return types.float32(types.int32), generate


@njit(cache=True, inner=True, plain=True, forceinline=True, fastmath={"contract"})
def _exp_float32(x):
    """exp(x) for x <= 0 to 1.5 ulp, without a call, so that a loop over it is SIMD; NaN gives NaN."""
    x = float32(-87.0) if x < float32(-87.0) else x
    # x = n ln 2 + r with |r| <= ln 2 / 2; adding 1.5 * 2^23 rounds to an integer. ln 2 in two parts keeps r exact.
    shifted = x * float32(1.4426950408889634) + float32(12582912.0)
    n = shifted - float32(12582912.0)
    r = (x - n * float32(0.693359375)) - n * float32(-2.12194440e-4)
    p = float32(1.9891981302e-4)
    p = p * r + float32(1.3934541927e-3)
    p = p * r + float32(8.3333100242e-3)
    p = p * r + float32(4.1666456810e-2)
    p = p * r + float32(1.6666666683e-1)
    p = p * r + float32(5.0000000143e-1)
    p = (p * r * r + r) + float32(1.0)
    return p * float_of_bits((int32(n) + int32(127)) << int32(23))


def exp_of_negative(x):
    """e^x for x <= 0, in either type; compiled, the float32 form is one that loops turn into SIMD."""
    return np.exp(x)


@overload(exp_of_negative, jit_options={"forceinline": True})
def _exp_of_type(x):
    if x == types.float32:
        return lambda x: _exp_float32(x)  # noqa: PLW0108 -- numba compiles a function, a kernel is none
    return lambda x: np.exp(x)  # noqa: PLW0108 -- numba compiles this function, and np.exp is none


_FUSED: Final = ("contract", "nsz")
_LINE: Final = 64
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


_HALF: Final = types.uint16
"""An array of these holds binary16 numbers, of eleven bits: what lies between 0 and 1 is off by 2^-12 at most."""
_BRAIN: Final = types.int16
"""An array of these holds bfloat16 numbers, float32 without its last sixteen bits: of eight, and none is too small."""


def _number(kind):
    """The type that numbers of an array are computed in."""
    return types.float32 if kind.dtype in (_HALF, _BRAIN) else kind.dtype


def _vector(element, count):
    return ir.VectorType(element, count)


def _same(element, count, value):
    """A vector constant."""
    return ir.Constant(_vector(element, count), [value] * count)


def _unpacked(builder, kind, v):
    """What is computed with, of what an array holds."""
    if kind.dtype == _HALF:
        halves = builder.bitcast(v, _vector(ir.HalfType(), v.type.count))
        return builder.fpext(halves, _vector(ir.FloatType(), v.type.count))
    if kind.dtype == _BRAIN:
        words = builder.zext(v, _vector(ir.IntType(32), v.type.count))
        words = builder.shl(words, _same(ir.IntType(32), v.type.count, 16))
        return builder.bitcast(words, _vector(ir.FloatType(), v.type.count))
    return v


def _packed(builder, kind, v):
    """What an array holds, of what was computed: to nearest, ties to even."""
    short, word = (_vector(ir.IntType(bits), v.type.count) for bits in (16, 32))
    if kind.dtype == _HALF:
        return builder.bitcast(builder.fptrunc(v, _vector(ir.HalfType(), v.type.count)), short)
    if kind.dtype == _BRAIN:
        bits, places = builder.bitcast(v, word), _same(ir.IntType(32), v.type.count, 16)
        odd = builder.and_(builder.lshr(bits, places), _same(ir.IntType(32), v.type.count, 1))
        half = builder.add(odd, _same(ir.IntType(32), v.type.count, 0x7FFF))
        return builder.trunc(builder.lshr(builder.add(bits, half), places), short)
    return v


def _pointer(context, builder, kind, array, index, count):
    """A pointer to ``count`` elements of the array from the flat index on."""
    data = arrayobj.make_array(kind)(context, builder, array).data
    element = context.get_value_type(kind.dtype)
    return builder.bitcast(builder.gep(data, [index]), ir.VectorType(element, count).as_pointer())


@intrinsic
def load(typing_context, array, index, tile):
    """The elements of a contiguous array from the flat index on."""
    kind = Lanes(_number(array), samples(tile))

    def generate(context, builder, signature, arguments):
        pointer = _pointer(context, builder, signature.args[0], *arguments[:2], kind.count)
        value = builder.load(pointer)
        value.align = signature.args[0].dtype.bitwidth // 8
        return _unpacked(builder, signature.args[0], value)

    return kind(array, types.intp, tile), generate


@intrinsic
def store(typing_context, array, index, value):
    """The numbers into the array, from the flat index on."""

    def generate(context, builder, signature, arguments):
        pointer = _pointer(context, builder, signature.args[0], *arguments[:2], value.count)
        packed = _packed(builder, signature.args[0], arguments[2])
        builder.store(packed, pointer, align=signature.args[0].dtype.bitwidth // 8)
        return context.get_dummy_value()

    return types.none(array, types.intp, value), generate


@intrinsic
def stream(typing_context, array, index, value):
    """The same past the caches: whole cache lines, which the index must begin with, that are not read again soon."""

    def generate(context, builder, signature, arguments):
        pointer = _pointer(context, builder, signature.args[0], *arguments[:2], value.count)
        written = builder.store(_packed(builder, signature.args[0], arguments[2]), pointer, align=_LINE)
        written.set_metadata("nontemporal", builder.module.add_metadata([cgutils.int32_t(1)]))
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


@intrinsic
def times(typing_context, v, w):
    """v w, rounded by itself: a sum that it is part of is not fused with it."""
    return v(v, w), lambda context, builder, signature, arguments: builder.fmul(*arguments)


@intrinsic
def times_plus(typing_context, v, w, plus):
    """v w + plus, rounded once where the processor can, however often the product is needed."""

    def generate(context, builder, signature, arguments):
        kind = arguments[0].type
        name = f"llvm.fmuladd.v{kind.count}f{signature.return_type.element.bitwidth}"
        function = cgutils.get_or_insert_function(builder.module, ir.FunctionType(kind, [kind] * 3), name)
        return builder.call(function, arguments)

    return v(v, w, plus), generate


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
def _over(typing_context, v, w):
    return v(v, w), lambda context, builder, signature, arguments: builder.fdiv(*arguments)


@overload(operator.truediv)
def _divide(v, w):
    if isinstance(v, Lanes) and v == w:
        return lambda v, w: _over(v, w)  # noqa: PLW0108 -- likewise
    return None


def _grouped(builder, v, size, combine):
    """Combine each lane with the others of its group, by halves: all lanes of a group end with the same number."""
    apart = 1
    while apart < size:
        v = combine(v, _shuffled(builder, v, v, [lane ^ apart for lane in range(v.type.count)]))
        apart *= 2
    return v


@intrinsic
def group_sums(typing_context, v, group):
    """Sums over groups of neighbours, as many as a power of two."""
    size = len(group)

    def generate(context, builder, signature, arguments):
        return _grouped(builder, arguments[0], size, builder.fadd)

    return v(v, group), generate


@intrinsic
def group_tops(typing_context, v, group):
    """The largest of groups of neighbours, as many as a power of two."""
    size = len(group)

    def generate(context, builder, signature, arguments):
        def larger(v, w):
            return builder.select(builder.fcmp_ordered(">", v, w), v, w)

        return _grouped(builder, arguments[0], size, larger)

    return v(v, group), generate


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
