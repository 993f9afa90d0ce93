"""Bits, packed: data sets held as rows of bits, batches as words of 64 samples.

    rows    uint64 (samples, ⌈bits/64⌉)    bit i of word j of a sample is its feature 64 j + i      for keeping
    words   uint64 (⌈samples/64⌉, bits)    bit s of word [w, i] is feature i of sample 64 w + s     for computing

Rows become words by transposing 64 × 64 bits at a time. Bits beyond the last sample or feature are zero.
"""
# mypy: disable-error-code="no-untyped-def"

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int64, UInt64
from numba import njit

_kernel = njit(cache=True, nogil=True)


@dataclass(frozen=True, eq=False)
class PackedBatch:
    """A batch of samples, 64 to a word."""

    words: UInt64[np.ndarray, "words bits"]
    samples: int

    @property
    def bits(self) -> int:
        """Features of a sample."""
        return int(self.words.shape[1])

    def __len__(self) -> int:
        return self.samples


def pack_rows(values: Bool[np.ndarray, "samples bits"]) -> UInt64[np.ndarray, "samples row_words"]:
    """A Boolean matrix as rows of bits."""
    values = _matrix(values)
    packed = np.packbits(values, axis=1, bitorder="little")
    rows = np.zeros((values.shape[0], -(-values.shape[1] // 64) * 8), dtype=np.uint8)
    rows[:, : packed.shape[1]] = packed
    return rows.view("<u8").astype(np.uint64, copy=False)


def unpack_rows(rows: UInt64[np.ndarray, "samples row_words"], bits: int) -> Bool[np.ndarray, "samples bits"]:
    """Rows of bits as a Boolean matrix."""
    bytes_ = np.ascontiguousarray(rows).astype("<u8", copy=False).view(np.uint8)
    return np.unpackbits(bytes_, axis=1, count=bits, bitorder="little").view(np.bool_)


def gather(
    rows: UInt64[np.ndarray, "samples row_words"], indices: Int64[np.ndarray, "batch"], bits: int
) -> PackedBatch:
    """The samples at ``indices`` as one batch, 64 to a word."""
    words = np.empty((-(-len(indices) // 64), bits), dtype=np.uint64)
    _gather(rows, np.asarray(indices, dtype=np.int64), words)
    return PackedBatch(words, len(indices))


def pack(values: Bool[np.ndarray, "samples bits"]) -> PackedBatch:
    """A Boolean matrix as one batch."""
    values = _matrix(values)
    return gather(pack_rows(values), np.arange(values.shape[0]), values.shape[1])


def unpack(batch: PackedBatch) -> Bool[np.ndarray, "samples bits"]:
    """The batch as a Boolean matrix."""
    return unpack_features(batch, np.uint8).T.astype(np.bool_)


def unpack_features(batch: PackedBatch, dtype: type[np.generic] = np.float32) -> Float[np.ndarray, "bits samples"]:
    """The batch feature by feature, each sample a number 0 or 1: what a floating layer reads."""
    result = np.empty((batch.bits, batch.samples), dtype=dtype)
    _unpack_features(batch.words, result)
    return result


def _matrix(values: np.ndarray) -> np.ndarray:
    if values.ndim != 2 or values.dtype not in (np.bool_, np.uint8):
        raise TypeError(f"bits come as a Boolean matrix (samples, bits), got {values.dtype} of shape {values.shape}")
    return values


@_kernel
def _transpose(block):
    """Transpose 64 × 64 bits in place: swap ever smaller off-diagonal squares (Hacker's Delight, 7-3)."""
    half = 32
    mask = np.uint64(0x00000000FFFFFFFF)
    while half:
        shift = np.uint64(half)
        row = 0
        while row < 64:
            for k in range(row, row + half):
                swap = ((block[k] >> shift) ^ block[k + half]) & mask
                block[k] ^= swap << shift
                block[k + half] ^= swap
            row += 2 * half
        half >>= 1
        mask ^= mask << np.uint64(half)


@_kernel
def _gather(rows, indices, words):
    block = np.empty(64, dtype=np.uint64)
    bits = words.shape[1]
    for w in range(words.shape[0]):
        first = 64 * w
        filled = min(64, indices.size - first)
        for j in range(rows.shape[1]):
            for k in range(filled):
                block[k] = rows[indices[first + k], j]
            for k in range(filled, 64):
                block[k] = 0
            _transpose(block)
            for k in range(min(64, bits - 64 * j)):
                words[w, 64 * j + k] = block[k]


@_kernel
def _unpack_features(words, result):
    samples = result.shape[1]
    for w in range(words.shape[0]):
        for i in range(words.shape[1]):
            word = words[w, i]
            for s in range(64 * w, min(64 * w + 64, samples)):
                result[i, s] = (word >> np.uint64(s & 63)) & np.uint64(1)
