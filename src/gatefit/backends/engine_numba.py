"""The engine's kernels: blocks of samples through pack, gates and readout, without leaving the cache.

    pack       bytes 0/1 (samples, inputs)  ->  rows (inputs, words): bit s of a row is sample s
    gates      the program, run by run of equal operations
    count      Σ of rows of equal weight as bit planes, then as one integer per sample, times the weight
    unpack     rows  ->  bytes 0/1 (samples, outputs)

A block is 512 samples (8 words a row), or 64 (one word) when the batch is no larger. Every kernel takes a range of
samples that starts at a block, and releases the interpreter lock: threads share nothing but what they only read.
"""

import numpy as np

from gatefit.backends.engine_rows import (
    LANES,
    count_rows_64,
    count_rows_512,
    pack_eight,
    run_of_gates_64,
    run_of_gates_512,
)
from gatefit.compiled import njit

# A byte's bits as the lowest bits of eight bytes, first bit first.
_SPREAD = ((np.arange(256)[:, None] >> np.arange(8)) & 1).astype(np.uint8).view(np.uint64).ravel()


@njit(cache=True, nogil=True)
def _exchange(words, step, shift, mask):  # type: ignore[no-untyped-def]
    for i in range(8):
        if not i & step:
            upper, lower = words[i], words[i + step]
            for k in range(words.shape[1]):
                swap = ((upper[k] >> shift) ^ lower[k]) & mask
                lower[k] ^= swap
                upper[k] ^= swap << shift


@njit(cache=True, nogil=True)
def _transpose_bytes(words):  # type: ignore[no-untyped-def]
    """Each column of eight words as an 8 x 8 matrix of bytes, transposed in place."""
    _exchange(words, 1, np.uint64(8), np.uint64(0x00FF_00FF_00FF_00FF))
    _exchange(words, 2, np.uint64(16), np.uint64(0x0000_FFFF_0000_FFFF))
    _exchange(words, 4, np.uint64(32), np.uint64(0x0000_0000_FFFF_FFFF))


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
def _evaluate(program, rows):  # type: ignore[no-untyped-def]
    code, operations, ends = program
    begin, wide = np.int64(0), rows.shape[1] == 8
    for run in range(ends.size):
        if wide:
            run_of_gates_512(rows, code, operations[run], begin, ends[run])
        else:
            run_of_gates_64(rows, code, operations[run], begin, ends[run])
        begin = ends[run]


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
def group_sums(  # type: ignore[no-untyped-def]
    source, begin, end, program, counting, memory, counters, best, scores, classes
):
    """Integer totals of samples ``begin`` to ``end``, or the class of the first largest one if ``best``."""
    chunks, flips, ends, multipliers, segment_ends, base = counting
    rows, staging, seen = memory
    counting_memory, maxima, winners = counters
    totals, block = counting_memory[4], 64 * rows.shape[1]
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
                maxima[:] = totals
                winners[:] = 0
            else:
                for s in range(block):
                    better = totals[s] > maxima[s]
                    maxima[s] = totals[s] if better else maxima[s]
                    winners[s] = k if better else winners[s]
        if best:
            classes[first : first + samples] = winners[:samples]


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
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
