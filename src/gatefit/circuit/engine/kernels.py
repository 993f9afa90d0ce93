"""The engine's kernels: blocks of samples through pack, gates and readout, without leaving the cache.

    pack       bytes 0/1 (samples, inputs)  ->  rows (inputs, words): bit s of a row is sample s
    gates      the program, run by run of equal operations
    count      Σ of rows of equal weight as bit planes, then as one integer per sample, times the weight
    unpack     rows  ->  bytes 0/1 (samples, outputs)

A block is 512 samples (8 words a row), or 64 (one word) when the batch is no larger. Every kernel takes a range of
samples that starts at a block, and releases the interpreter lock: threads share nothing but what they only read.

Three steps are written as vectors, because a loop compiler does not find them:

    pack eight       bytes[c] = Σ_s 2^s · bits[first + s, c]    for 64 columns c and 8 samples s
    run of gates     for each gate of a run:  row[dst] = row[a] op row[b]           op: AND, AND_NOT, OR, XOR
    count rows       planes += Σ of 16 rows, bit-sliced: 15 carry-save adders, then one ripple into the upper planes

A row is one vector there. The two operands of a gate may be the row that it writes, so a loop over the words of a row
would not be vectorised; a vector load is. The compiler splits the vector into whatever registers the processor has
(AVX-512, AVX2, SSE2, NEON).
"""

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from gatefit.circuit.engine.program import AND, AND_NOT, CHUNK, OR, XOR
from gatefit.compiled import njit

_I8, _I32, _I64 = ir.IntType(8), ir.IntType(32), ir.IntType(64)
LANES: Final = 64
"""Columns that one packing step takes."""

OPERATIONS: dict[int, Callable[[Any, Any, Any], Any]] = {
    AND: lambda builder, a, b: builder.and_(a, b),
    AND_NOT: lambda builder, a, b: builder.and_(a, builder.not_(b)),
    OR: lambda builder, a, b: builder.or_(a, b),
    XOR: lambda builder, a, b: builder.xor(a, b),
}


class _Emitter:
    """Addresses of rows and table entries inside one piece of generated code."""

    def __init__(self, context: Any, builder: Any, words: int) -> None:
        self.context, self.builder = context, builder
        self.row_type = ir.VectorType(_I64, words)

    def data(self, array_type: Any, array: Any) -> Any:
        return self.context.make_array(array_type)(self.context, self.builder, array).data

    def row(self, base: Any, slot: Any) -> Any:
        """The address of a row; rows are aligned to words only, as far as the compiler is told."""
        rows = self.builder.bitcast(base, self.row_type.as_pointer())
        return self.builder.gep(rows, [slot])

    def load(self, base: Any, slot: Any) -> Any:
        return self.builder.load(self.row(base, slot), align=8)

    def store(self, value: Any, base: Any, slot: Any) -> None:
        self.builder.store(value, self.row(base, slot), align=8)

    def entry(self, base: Any, index: Any) -> Any:
        """An unsigned table entry: no sign extension, no wrap-around of negative numbers."""
        return self.builder.zext(self.builder.load(self.builder.gep(base, [index])), _I64)

    def carry_save(self, a: Any, b: Any, c: Any) -> tuple[Any, Any]:
        """Three bits of one weight as a bit of the same and a bit of twice the weight."""
        half = self.builder.xor(a, b)
        carry = self.builder.or_(self.builder.and_(a, b), self.builder.and_(half, c))
        return self.builder.xor(half, c), carry


_variable: Any = cgutils.alloca_once_value


@intrinsic
def _pack_eight(typing_context: Any, bits: Any, first: Any, column: Any, packed: Any, seen: Any) -> Any:
    """Pack 64 columns of 8 samples into ``packed``, and OR every byte into ``seen`` to notice values above 1."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        matrix = context.make_array(signature.args[0])(context, builder, arguments[0])
        width = builder.extract_value(matrix.shape, 1)
        vector = ir.VectorType(_I8, LANES)

        def address(base: Any, offset: Any) -> Any:
            return builder.bitcast(builder.gep(base, [offset]), vector.as_pointer())

        emit = _Emitter(context, builder, words=1)
        seen_at = address(emit.data(signature.args[4], arguments[4]), _I64(0))
        union, total = builder.load(seen_at, align=1), ir.Constant(vector, [0] * LANES)
        for sample in reversed(range(8)):
            row = builder.mul(builder.add(arguments[1], _I64(sample)), width)
            value = builder.load(address(matrix.data, builder.add(row, arguments[2])), align=1)
            union, total = builder.or_(union, value), builder.add(builder.add(total, total), value)
        builder.store(union, seen_at, align=1)
        builder.store(total, address(emit.data(signature.args[3], arguments[3]), arguments[2]), align=1)
        return context.get_dummy_value()

    return types.void(bits, types.int64, types.int64, packed, seen), generate


def _run_of_gates(words: int) -> Any:
    @intrinsic
    def run_of_gates(typing_context: Any, rows: Any, code: Any, operation: Any, begin: Any, end: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            emit = _Emitter(context, builder, words)
            rows_base = emit.data(signature.args[0], arguments[0])
            code_base = emit.data(signature.args[1], arguments[1])
            _, _, chosen, first, last = arguments
            done = builder.append_basic_block("run.done")
            switch = builder.switch(chosen, done)
            for number, apply in OPERATIONS.items():
                block = builder.append_basic_block(f"run.{number}")
                switch.add_case(ir.Constant(chosen.type, number), block)
                builder.position_at_end(block)
                with cgutils.for_range_slice(builder, first, last, _I64(1), _I64) as (gate, _):
                    entry = builder.mul(gate, _I64(3))
                    slots = [emit.entry(code_base, builder.add(entry, _I64(k))) for k in range(3)]
                    a, b = emit.load(rows_base, slots[1]), emit.load(rows_base, slots[2])
                    emit.store(apply(builder, a, b), rows_base, slots[0])
                builder.branch(done)
            builder.position_at_end(done)
            return context.get_dummy_value()

        return types.void(rows, code, types.uint8, types.int64, types.int64), generate

    return run_of_gates


def _count_rows(words: int) -> Any:
    @intrinsic
    def count_rows(typing_context: Any, rows: Any, chunks: Any, chunk: Any, flip: Any, planes: Any, top: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            emit = _Emitter(context, builder, words)
            rows_base, chunks_base, planes_base = (emit.data(signature.args[k], arguments[k]) for k in (0, 1, 4))
            entry = builder.mul(arguments[2], _I64(CHUNK))
            lane = builder.insert_element(ir.Constant(emit.row_type, ir.Undefined), arguments[3], _I32(0))
            mask = ir.Constant(ir.VectorType(_I32, words), [0] * words)
            flips = builder.shuffle_vector(lane, ir.Constant(emit.row_type, ir.Undefined), mask)
            carries = []
            for k in range(CHUNK):
                slot = emit.entry(chunks_base, builder.add(entry, _I64(k)))
                carries.append(builder.xor(emit.load(rows_base, slot), flips))
            plane = 0
            while len(carries) > 1:
                total, doubled = emit.load(planes_base, _I64(plane)), []
                for a, b in zip(carries[::2], carries[1::2], strict=True):
                    total, carry = emit.carry_save(total, a, b)
                    doubled.append(carry)
                emit.store(total, planes_base, _I64(plane))
                carries, plane = doubled, plane + 1
            ripple = _variable(builder, carries[0])
            with cgutils.for_range_slice(builder, _I64(plane), arguments[5], _I64(1), _I64) as (index, _):
                value, carry = emit.load(planes_base, index), builder.load(ripple)
                emit.store(builder.xor(value, carry), planes_base, index)
                builder.store(builder.and_(value, carry), ripple)
            return context.get_dummy_value()

        return types.void(rows, chunks, types.int64, types.uint64, planes, types.int64), generate

    return count_rows


pack_eight: Any = _pack_eight
run_of_gates_512, run_of_gates_64 = _run_of_gates(8), _run_of_gates(1)
count_rows_512, count_rows_64 = _count_rows(8), _count_rows(1)

# A byte's bits as the lowest bits of eight bytes, first bit first.
_SPREAD = ((np.arange(256)[:, None] >> np.arange(8)) & 1).astype(np.uint8).view(np.uint64).ravel()


@njit(cache=True, nogil=True, inner=True, plain=True)
def _exchange(words, step, shift, mask):  # type: ignore[no-untyped-def]
    for i in range(8):
        if not i & step:
            upper, lower = words[i], words[i + step]
            for k in range(words.shape[1]):
                swap = ((upper[k] >> shift) ^ lower[k]) & mask
                lower[k] ^= swap
                upper[k] ^= swap << shift


@njit(cache=True, nogil=True, inner=True, plain=True)
def _transpose_bytes(words):  # type: ignore[no-untyped-def]
    """Each column of eight words as an 8 x 8 matrix of bytes, transposed in place."""
    _exchange(words, 1, np.uint64(8), np.uint64(0x00FF_00FF_00FF_00FF))
    _exchange(words, 2, np.uint64(16), np.uint64(0x0000_FFFF_0000_FFFF))
    _exchange(words, 4, np.uint64(32), np.uint64(0x0000_0000_FFFF_FFFF))


@njit(cache=True, nogil=True, inner=True, plain=True)
def _pack(bits, first, samples, rows, staging, seen):  # type: ignore[no-untyped-def]
    """Samples as rows; missing samples are 0. Every byte is ORed into ``seen``, to notice values above 1."""
    inputs, used = bits.shape[1], -(-samples // 64)
    lines, words = staging
    for word in range(used):
        for eighth in range(8):
            begin = 64 * word + 8 * eighth
            line = lines[eighth]
            if begin + 8 <= samples and inputs >= LANES:
                for column in range(0, inputs - LANES + 1, LANES):
                    pack_eight(bits, first + begin, column, line, seen)
                pack_eight(bits, first + begin, inputs - LANES, line, seen)
            else:
                line[:inputs] = 0
                for s in range(begin, min(begin + 8, samples)):
                    sample, shift = bits[first + s], s - begin
                    for i in range(inputs):
                        seen[0] |= sample[i]
                        line[i] |= sample[i] << shift
        _transpose_bytes(words)
        for group in range(words.shape[1]):
            for k in range(min(8, inputs - 8 * group)):
                rows[8 * group + k, word] = words[k, group]
    rows[:inputs, used:] = 0


@njit(cache=True, nogil=True, inner=True, plain=True)
def _unpack(rows, slots, flips, first, samples, staging, out):  # type: ignore[no-untyped-def]
    """Rows as one byte per sample and output."""
    lines, words = staging
    for word in range(-(-samples // 64)):
        for i in range(slots.size):
            words[i & 7, i >> 3] = rows[slots[i], word] ^ flips[i]
        _transpose_bytes(words)
        for s in range(min(64, samples - 64 * word)):
            line, shift, sample = lines[s >> 3], s & 7, out[first + 64 * word + s]
            for i in range(slots.size):
                sample[i] = (line[i] >> shift) & 1


@njit(cache=True, nogil=True, inner=True, plain=True)
def _fill(source, first, samples, rows, staging, seen):  # type: ignore[no-untyped-def]
    """The input rows of one block, from bytes, or from rows that are packed already."""
    bits, words = source
    if bits.size:
        _pack(bits, first, samples, rows, staging, seen)
    else:
        column = first // 64
        for k in range(min(rows.shape[1], words.shape[0] - column)):
            line = words[column + k]
            for i in range(line.size):
                rows[i, k] = line[i]


@njit(cache=True, nogil=True, inner=True, plain=True)
def _evaluate(program, rows):  # type: ignore[no-untyped-def]
    code, operations, ends = program
    begin, wide = np.int64(0), rows.shape[1] == 8
    for run in range(ends.size):
        if wide:
            run_of_gates_512(rows, code, operations[run], begin, ends[run])
        else:
            run_of_gates_64(rows, code, operations[run], begin, ends[run])
        begin = ends[run]


@njit(cache=True, nogil=True, inner=True, plain=True)
def _count(rows, chunks, flips, begin, end, multiplier, samples, memory):  # type: ignore[no-untyped-def]
    """Adds to ``totals`` how many of the rows of chunks ``begin`` to ``end`` are one, per sample, times a number."""
    planes, plane_bytes, counts, spread, totals = memory
    if samples == 1:
        for chunk in range(begin, end):
            flip = flips[chunk] & np.uint64(1)
            for k in range(chunks.shape[1]):
                totals[0] += multiplier * np.int64((rows[chunks[chunk, k], 0] & np.uint64(1)) ^ flip)
        return
    top = np.int64(planes.shape[0])
    planes[:] = 0
    if rows.shape[1] == 8:
        for chunk in range(begin, end):
            count_rows_512(rows, chunks, chunk, flips[chunk], planes, top)
    else:
        for chunk in range(begin, end):
            count_rows_64(rows, chunks, chunk, flips[chunk], planes, top)
    for low in range(0, planes.shape[0], 8):
        # Eight planes make a byte per sample; eight samples are handled as one word.
        spread[:] = 0
        for k in range(min(8, planes.shape[0] - low)):
            plane, shift = plane_bytes[low + k], np.uint64(k)
            for eighth in range(plane.size):
                spread[eighth] |= _SPREAD[plane[eighth]] << shift
        for s in range(totals.size):
            totals[s] += multiplier * (np.int64(counts[s]) << low)


@njit(cache=True, nogil=True, plain=True)
def group_sums(  # type: ignore[no-untyped-def]
    source, begin, end, program, counting, memory, counters, best, scores, classes
):
    """Integer totals of samples ``begin`` to ``end``, or the class of the first largest one if ``best``."""
    chunks, flips, ends, multipliers, segment_ends, base = counting
    rows, staging, seen = memory
    counting_memory, maxima, winners = counters
    _, _, _, _, totals = counting_memory
    block = 64 * rows.shape[1]
    for first in range(begin, end, block):
        samples = min(block, end - first)
        _fill(source, first, samples, rows, staging, seen)
        _evaluate(program, rows)
        chunk = segment = np.int64(0)
        for k in range(base.size):
            totals[:] = base[k]
            while segment < segment_ends[k]:
                _count(rows, chunks, flips, chunk, ends[segment], multipliers[segment], samples, counting_memory)
                chunk = ends[segment]
                segment += 1
            if not best:
                for s in range(samples):
                    scores[first + s, k] = totals[s]
            elif k == 0:
                # By a loop: numba takes two seconds to compile the assignment of an array to a slice.
                for s in range(block):
                    maxima[s] = totals[s]
                    winners[s] = 0
            else:
                for s in range(block):
                    better = totals[s] > maxima[s]
                    maxima[s] = totals[s] if better else maxima[s]
                    winners[s] = k if better else winners[s]
        if best:
            for s in range(samples):
                classes[first + s] = winners[s]


@njit(cache=True, nogil=True, plain=True)
def linear_scores(  # type: ignore[no-untyped-def]
    source, begin, end, program, outputs, linear, memory, accumulators, scores
):
    """Linear scores, added in the readout's order: the bias, then one output after the other."""
    (slots, flips), (weights, bias), (column, totals) = outputs, linear, accumulators
    rows, staging, seen = memory
    block = 64 * rows.shape[1]
    for first in range(begin, end, block):
        samples = min(block, end - first)
        _fill(source, first, samples, rows, staging, seen)
        _evaluate(program, rows)
        for k in range(bias.size):
            totals[k, :] = bias[k]
        for i in range(slots.size):
            for word in range(rows.shape[1]):
                value = rows[slots[i], word] ^ flips[i]
                for s in range(64):
                    column[64 * word + s] = np.float32((value >> np.uint64(s)) & np.uint64(1))
            for k in range(bias.size):
                line, weight = totals[k], weights[i, k]
                # The product with 0 or 1 is exact, so a fused multiply-add rounds as the sum does.
                for s in range(block):
                    line[s] += weight * column[s]
        for k in range(bias.size):
            for s in range(samples):
                scores[first + s, k] = totals[k, s]


@njit(cache=True, nogil=True, plain=True)
def output_bits(source, begin, end, program, outputs, memory, out_staging, out):  # type: ignore[no-untyped-def]
    """The output bits of samples ``begin`` to ``end``, one byte each."""
    slots, flips = outputs
    rows, staging, seen = memory
    block = 64 * rows.shape[1]
    for first in range(begin, end, block):
        samples = min(block, end - first)
        _fill(source, first, samples, rows, staging, seen)
        _evaluate(program, rows)
        _unpack(rows, slots, flips, first, samples, out_staging, out)
