"""Three steps of the engine's interpreter, written as vectors because a loop compiler does not find them.

    pack eight       bytes[c] = Σ_s 2^s · bits[first + s, c]    for 64 columns c and 8 samples s
    run of gates     for each gate of a run:  row[dst] = row[a] op row[b]           op: AND, AND_NOT, OR, XOR
    count rows       planes += Σ of 16 rows, bit-sliced: 15 carry-save adders, then one ripple into the upper planes

A row is ``words`` 64-bit words, one vector: 512 samples for throughput, 64 for latency. The two operands of a gate
may be the row that it writes, so a loop over the words of a row would not be vectorised; a vector load is.
The compiler splits the vector into whatever registers the processor has (AVX-512, AVX2, SSE2, NEON).
"""

from collections.abc import Callable
from typing import Any, Final

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from gatefit.backends.engine_plan import AND, AND_NOT, CHUNK, OR, XOR

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
