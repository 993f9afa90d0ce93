"""Boolean data as bits, in the two orders that matter.

    rows    uint64 (samples, ⌈bits/64⌉)    bit b % 64 of rows[s, b // 64] is bit b of sample s      for keeping
    words   uint64 (⌈samples/64⌉, bits)    bit s % 64 of words[s // 64, b] is bit b of sample s     for computing

A data set is stored row by row, so that a batch is gathered by copying rows. A batch is stored sixty-four samples to a
word, so that one bit operation serves them all, and one word after another, so that sixty-four samples of all bits lie
together. From one to the other is a transpose of 64 x 64 bits. Bits beyond the last sample or bit are 0.
"""
# mypy: disable-error-code="no-untyped-def"

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int, UInt64

from gatefit.compiled import njit

_kernel = njit(cache=True, nogil=True, plain=True)


@njit(cache=True, inner=True, nogil=True, plain=True)
def _transpose(block):
    """Exchange bit j of word i and bit i of word j, for all sixty-four of both."""
    width, mask = 32, np.uint64(0x00000000FFFFFFFF)
    while width:
        shift = np.uint64(width)
        for group in range(0, 64, 2 * width):
            for i in range(width):
                low, high = block[group + i], block[group + width + i]
                moved = ((low >> shift) ^ high) & mask
                block[group + i] = low ^ (moved << shift)
                block[group + width + i] = high ^ moved
        width //= 2
        mask ^= mask << np.uint64(width)


@_kernel
def _gather(rows, indices, words, block):
    """``block``: room for 64 words."""
    bits = words.shape[1]
    for word in range(words.shape[0]):
        samples = min(64, indices.size - 64 * word)
        for column in range(rows.shape[1]):
            for i in range(samples):
                block[i] = rows[indices[64 * word + i], column]
            for i in range(samples, 64):
                block[i] = 0
            _transpose(block)
            width = min(64, bits - 64 * column)
            for i in range(width):  # numba takes two seconds to compile the assignment of an array to a slice
                words[word, 64 * column + i] = block[i]


@_kernel
def _scatter(words, rows, block):
    for word in range(words.shape[0]):
        samples = min(64, rows.shape[0] - 64 * word)
        for column in range(rows.shape[1]):
            width = min(64, words.shape[1] - 64 * column)
            for i in range(width):
                block[i] = words[word, 64 * column + i]
            for i in range(width, 64):
                block[i] = 0
            _transpose(block)
            for i in range(samples):
                rows[64 * word + i, column] = block[i]


@_kernel
def _unpack_features(words, values):
    """values[b, s] = bit b of sample s, as a number."""
    one, zero = values.dtype.type(1), values.dtype.type(0)
    for word in range(words.shape[0]):
        first = 64 * word
        samples = min(64, values.shape[1] - first)
        for b in range(words.shape[1]):
            own, row = words[word, b], values[b, first : first + samples]
            for s in range(samples):
                row[s] = one if (own >> np.uint64(s)) & np.uint64(1) else zero


@dataclass(frozen=True, eq=False)
class PackedBatch:
    """A batch of Boolean samples, sixty-four to a word.

    The words may lie in an int64 tensor of torch instead, on any device (``ops.batches.on_device``): it has no
    arithmetic on uint64, and for bits the two are the same.
    """

    words: Any
    """uint64 (words, bits)."""
    samples: int

    def __post_init__(self) -> None:
        if isinstance(self.words, np.ndarray):
            fits = self.words.dtype == np.uint64 and self.words.flags.c_contiguous
        else:
            fits = str(self.words.dtype) == "torch.int64" and self.words.is_contiguous()
        if not fits or self.words.ndim != 2:
            raise TypeError(
                f"a packed batch needs contiguous uint64 words (words, bits), got {self.words.dtype} of shape "
                f"{self.words.shape}; make it with pack() or gather()"
            )
        if self.samples < 0 or -(-self.samples // 64) != self.words.shape[0]:
            raise ValueError(f"{self.samples} samples need {-(-self.samples // 64)} words, got {self.words.shape[0]}")

    @property
    def bits(self) -> int:
        """Bits of one sample."""
        return int(self.words.shape[1])

    def __len__(self) -> int:
        return self.samples


def pack_rows(values: Bool[np.ndarray, "samples bits"]) -> UInt64[np.ndarray, "samples row_words"]:
    """A Boolean matrix as rows of bits; rows packed piece by piece may be concatenated."""
    values = _matrix(values)
    packed = np.packbits(values, axis=1, bitorder="little")
    rows = np.zeros((values.shape[0], 8 * -(-values.shape[1] // 64)), dtype=np.uint8)
    rows[:, : packed.shape[1]] = packed
    return rows.view("<u8").astype(np.uint64, copy=False)


def unpack_rows(rows: UInt64[np.ndarray, "samples row_words"], bits: int) -> Bool[np.ndarray, "samples bits"]:
    """Rows of bits as a Boolean matrix."""
    _check_rows(rows, bits)
    octets = np.ascontiguousarray(rows).astype("<u8", copy=False).view(np.uint8)
    return np.unpackbits(octets, axis=1, count=bits, bitorder="little").view(np.bool_)


def gather(rows: UInt64[np.ndarray, "samples row_words"], indices: Int[np.ndarray, " batch"], bits: int) -> PackedBatch:
    """The samples at ``indices`` as one batch, sixty-four to a word."""
    _check_rows(rows, bits)
    indices = np.ascontiguousarray(indices, dtype=np.int64)
    if indices.size and not 0 <= indices.min() <= indices.max() < rows.shape[0]:
        raise IndexError(
            f"indices run from {indices.min()} to {indices.max()}, there are {rows.shape[0]} samples, numbered from 0"
        )
    words = np.empty((-(-indices.size // 64), bits), dtype=np.uint64)
    _gather(rows, indices, words, np.empty(64, np.uint64))
    return PackedBatch(words, int(indices.size))


def pack(values: Bool[np.ndarray, "samples bits"]) -> PackedBatch:
    """A Boolean matrix as one batch."""
    return gather(pack_rows(values), np.arange(values.shape[0]), values.shape[1])


def unpack(batch: PackedBatch) -> Bool[np.ndarray, "samples bits"]:
    """The batch as a Boolean matrix."""
    rows = np.empty((batch.samples, -(-batch.bits // 64)), dtype=np.uint64)
    _scatter(batch.words, rows, np.empty(64, np.uint64))
    return unpack_rows(rows, batch.bits)


def unpack_features(batch: PackedBatch, dtype: type[np.generic] = np.float32) -> Float[np.ndarray, "bits samples"]:
    """The batch feature by feature, each sample a number 0 or 1: what a floating layer reads."""
    result = np.empty((batch.bits, batch.samples), dtype=dtype)
    _unpack_features(batch.words, result)
    return result


def _matrix(values: np.ndarray) -> np.ndarray:
    if values.ndim != 2 or values.dtype not in (np.bool_, np.uint8):
        raise TypeError(f"bits come as a Boolean matrix (samples, bits), got {values.dtype} of shape {values.shape}")
    return values


def _check_rows(rows: np.ndarray, bits: int) -> None:
    if rows.dtype != np.uint64 or rows.ndim != 2 or rows.shape[1] != -(-bits // 64):
        raise TypeError(
            f"{bits} bits a sample are uint64 rows (samples, {-(-bits // 64)}), got {rows.dtype} of shape "
            f"{rows.shape}; make them with pack_rows()"
        )
