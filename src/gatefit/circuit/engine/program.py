"""From a circuit to the program that the engine interprets: lowered gates, an evaluation order and memory slots.

    lowering    not g is stored as g and remembered, so that 10 of the 16 gates become AND, AND_NOT, OR or XOR,
                and constants, wires and inverters cost nothing
    order       by level, then by the block of memory that is read, then by operation: long runs, near operands
    slots       a gate is written over the row that was read last (last in, first out): it is still in the cache
    readout     output rows by class, in chunks of 16, the size of the engine's carry-save step

Everything is linear in the number of gates.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Int64, UInt8, UInt32, UInt64

from gatefit.circuit.ir import Circuit
from gatefit.circuit.logic.graph import Graph, levels, readers
from gatefit.circuit.logic.literals import simple_gate
from gatefit.circuit.readout import Sums
from gatefit.compiled import njit
from gatefit.gates import Gate

AND, AND_NOT, OR, XOR = range(4)
CHUNK: Final = 16
"""Output rows that one carry-save step adds."""
_BLOCK_BITS: Final = 8
"""Rows of 512 samples whose operands are read together: 256 of them, 16 KB, leave room in any first-level cache."""


def _lowering() -> UInt8[np.ndarray, "16 3"]:
    """For each gate of two operands: the operation, whether they are swapped, whether its value is stored inverted."""
    base = {Gate.AND: AND, Gate.A_AND_NOT_B: AND_NOT, Gate.OR: OR, Gate.XOR: XOR}
    table = np.full((16, 3), 255, dtype=np.uint8)
    for inverted in (1, 0):
        for swapped in (1, 0):
            for gate, operation in base.items():
                gate = gate.swapped if swapped else gate
                table[gate.complement if inverted else gate] = operation, swapped, inverted
    return table


_LOWERING: Final = _lowering()


@dataclass(frozen=True, eq=False)
class Program:
    """What the engine interprets; row numbers are memory slots, the inputs come first, then a row of zeros."""

    inputs: int
    slots: int
    code: UInt32[np.ndarray, "gates 3"]
    """Slots written, read and read."""
    run_operations: UInt8[np.ndarray, " runs"]
    run_ends: Int64[np.ndarray, " runs"]
    output_slots: Int64[np.ndarray, " outputs"]
    output_flips: UInt64[np.ndarray, " outputs"]
    """All ones where the stored row is the complement of the output."""


@dataclass(frozen=True, eq=False)
class Counting:
    """Weighted sums of rows as counts of rows of equal weight, in chunks of 16:

    total_k = base_k + Σ over the segments s of sum k of multiplier_s · ones in the (possibly flipped) rows of s

    Where all weights are one, a sum is one segment; other weights are taken apart into signed powers of two.
    """

    rows: UInt32[np.ndarray, "chunks 16"]
    flips: UInt64[np.ndarray, " chunks"]
    ends: Int64[np.ndarray, " segments"]
    """Chunks of each segment end here."""
    multipliers: Int64[np.ndarray, " segments"]
    segment_ends: Int64[np.ndarray, " classes"]
    base: Int64[np.ndarray, " classes"]
    planes: int
    """Bits that the largest count needs."""


def plan(circuit: Circuit) -> Program:
    """The engine's program for a circuit."""
    gates, operands, literals = _lower(circuit.inputs, circuit.gates, circuit.operands)
    lowered, outputs = Graph(circuit.inputs, gates, operands), literals[circuit.outputs]
    uses, level = readers(lowered, outputs >> 1), levels(lowered)
    code, order, slot, slots = _schedule(circuit.inputs, _LOWERING[gates, 0], operands, uses, level)
    ends = np.flatnonzero(np.append(np.diff(order) != 0, order.size > 0)) + 1
    return Program(
        inputs=circuit.inputs,
        slots=int(slots),
        code=code,
        run_operations=order[ends - 1],
        run_ends=ends.astype(np.int64),
        output_slots=slot[outputs >> 1].astype(np.int64),
        output_flips=_flips(outputs & 1),
    )


def plan_counting(program: Program, sums: Sums) -> Counting:
    """How the engine counts the ones among the outputs of each sum."""
    zero, base = program.inputs, sums.offsets.copy()
    of_sum, weights = sums.sums.astype(np.int64), sums.weights
    slots, flipped = program.output_slots[sums.outputs], program.output_flips[sums.outputs] != 0
    constant = slots == zero
    np.add.at(base, of_sum[constant & flipped], weights[constant & flipped])
    digits, term = _digits(of_sum, weights, np.flatnonzero(~constant))
    # Segments by sum and digit; a sum without any has one of no rows, so that it is set all the same.
    empty = np.setdiff1d(np.arange(base.size), digits >> 7) << 7
    segments, which = np.unique(np.append(digits, empty), return_inverse=True)
    multipliers = (1 - 2 * (segments & 1)) << (segments >> 1 & 63)
    which = which[: digits.size]
    slots, keys = slots[term], 2 * which + flipped[term]
    order = np.lexsort((slots, keys))
    sizes = np.bincount(keys, minlength=2 * len(segments))
    chunks = -(-sizes // CHUNK)
    padded = chunks * CHUNK
    # Rows of zeros fill the last chunk of each key; in a flipped chunk they count as ones.
    np.subtract.at(base, segments >> 7, multipliers * (padded - sizes)[1::2])
    start = np.cumsum(padded) - padded
    rank = np.arange(keys.size) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    rows = np.full(int(padded.sum()), zero, dtype=np.uint32)
    rows[start[keys[order]] + rank] = slots[order]
    per_segment = padded.reshape(-1, 2).sum(axis=1)
    return Counting(
        rows=rows.reshape(-1, CHUNK),
        flips=_flips(np.repeat(np.arange(2 * len(segments)) % 2, chunks)),
        ends=np.cumsum(per_segment // CHUNK).astype(np.int64),
        multipliers=multipliers,
        segment_ends=np.cumsum(np.bincount(segments >> 7, minlength=base.size)).astype(np.int64),
        base=base,
        planes=max(CHUNK.bit_length(), int(per_segment.max()).bit_length()),
    )


def _digits(
    of_sum: Int64[np.ndarray, " terms"], weights: Int64[np.ndarray, " terms"], terms: Int64[np.ndarray, " counted"]
) -> tuple[Int64[np.ndarray, " digits"], Int64[np.ndarray, " digits"]]:
    """The binary digits of the weights of ``terms``, as 128 · sum + 2 · place + negative, and the term of each."""
    sizes, found = np.abs(weights[terms]), []
    for place in range(int(sizes.max(initial=1)).bit_length()):
        own = terms[sizes >> place & 1 == 1]
        found.append((of_sum[own] << 7 | 2 * place | (weights[own] < 0), own))
    digits, owners = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return digits, owners


def _flips(negated: np.ndarray) -> UInt64[np.ndarray, " n"]:
    return np.where(negated != 0, np.uint64(0xFFFF_FFFF_FFFF_FFFF), np.uint64(0))


@njit(cache=True, nogil=True)
def _lower(inputs, gates, operands):  # type: ignore[no-untyped-def]
    """The gates of two operands that are left, what they read, and for every circuit node its literal among them."""
    literals = np.empty(inputs + gates.size, np.int64)
    kept = np.empty(gates.size, np.uint8)
    reads = np.empty((2, gates.size), np.int32)
    for i in range(inputs):
        literals[i] = 2 * (1 + i)
    count = 0
    for g in range(gates.size):
        done, literal, gate, a, b = simple_gate(np.int64(gates[g]), literals[operands[0, g]], literals[operands[1, g]])
        if not done:
            if _LOWERING[gate, 1]:
                a, b = b, a
            kept[count], reads[0, count], reads[1, count] = gate, a >> 1, b >> 1
            count += 1
            literal = 2 * (inputs + count) + np.int64(_LOWERING[gate, 2])
        literals[inputs + g] = literal
    return kept[:count].copy(), reads[:, :count].copy(), literals


@njit(cache=True, nogil=True)
def _schedule(inputs, operations, operands, uses, level):  # type: ignore[no-untyped-def]
    """Code in evaluation order, its operations, the slot of every lowered node, and the number of slots."""
    count, first = operations.size, inputs + 1
    live, depth = 0, 0
    for g in range(count):
        if uses[first + g]:
            live += 1
            depth = max(depth, level[first + g])
    starts = np.zeros(depth + 2, np.int64)
    for g in range(count):
        if uses[first + g]:
            starts[level[first + g] + 1] += 1
    starts = np.cumsum(starts)
    by_level = np.empty(live, np.int32)
    fill = starts.copy()
    for g in range(count):
        if uses[first + g]:
            by_level[fill[level[first + g]]] = g
            fill[level[first + g]] += 1

    # Slots: inputs, the row of zeros, then gates. Rows that nobody reads again are free, the latest on top.
    slot = np.full(first + count, -1, np.int32)
    slot[0] = inputs
    free = np.empty(inputs + live, np.int32)
    frees = 0
    for i in range(inputs):
        slot[1 + i] = i
        if uses[1 + i] == 0:
            free[frees] = i
            frees += 1
    slots = first
    code = np.empty((live, 3), np.uint32)
    sequence = np.empty(live, np.uint8)
    buckets = np.empty(4 * (live + 2) + 1, np.int64)
    order = np.empty(live, np.int32)
    position = 0
    for lev in range(1, depth + 1):
        begin, end = starts[lev], starts[lev + 1]
        # Buckets by (block read, operation); never more blocks than gates, so that deep circuits stay linear.
        shift = _BLOCK_BITS
        while (slots >> shift) > end - begin:
            shift += 1
        size = 4 * ((slots >> shift) + 1)
        buckets[: size + 1] = 0
        for i in range(begin, end):
            g = by_level[i]
            block = min(slot[operands[0, g]], slot[operands[1, g]]) >> shift
            buckets[4 * block + operations[g] + 1] += 1
        for i in range(size):
            buckets[i + 1] += buckets[i]
        for i in range(begin, end):
            g = by_level[i]
            key = 4 * (min(slot[operands[0, g]], slot[operands[1, g]]) >> shift) + operations[g]
            order[buckets[key]] = g
            buckets[key] += 1
        for i in range(end - begin):
            g = order[i]
            sequence[position] = operations[g]
            for j in range(2):
                source = operands[j, g]
                code[position, 1 + j] = slot[source]
                uses[source] -= 1
                if uses[source] == 0:
                    free[frees] = slot[source]
                    frees += 1
            if frees:
                frees -= 1
                slot[first + g] = free[frees]
            else:
                slot[first + g] = slots
                slots += 1
            code[position, 0] = slot[first + g]
            position += 1
    return code, sequence, slot, slots
