"""Gumbel noise by counter, by a compiled kernel on the CPU."""
# mypy: disable-error-code="no-untyped-def, call-arg"

from collections.abc import Sequence
from typing import Final

import numpy as np
import torch
from jaxtyping import Float, Float32
from torch import Tensor

from gatefit.compiled import njit
from gatefit.ops.simd import fma
from gatefit.ops.threads import parallel_for
from gatefit.ops.workspace import workspace

_BLOCK: Final = 256
SHARE: Final = 256 * _BLOCK
"""Numbers that one thread draws at a time: those of 4,096 gates."""


@njit(cache=True, nogil=True)
def _mix(x):
    """A bijection of 32 bits in which every input bit changes every output bit half of the time (lowbias32)."""
    # numba computes in 64 bits unless told otherwise; the casts keep 32, and with them wide vectors.
    x = np.uint32(x ^ np.uint32(x >> np.uint32(16)))
    x = np.uint32(x * np.uint32(0x7FEB352D))
    x = np.uint32(x ^ np.uint32(x >> np.uint32(15)))
    x = np.uint32(x * np.uint32(0x846CA68B))
    return np.uint32(x ^ np.uint32(x >> np.uint32(16)))


@njit(cache=True, nogil=True)
def _minus_log(integers, floats, exponents, count):
    """floats[i] = -log(floats[i]); ``integers`` is the same memory seen as int32, ``exponents`` scratch."""
    for i in range(count):
        # x = m 2^e with m in [√½, √2): the offset moves the cut from 1 to √½.
        shifted = np.int32(integers[i] - np.int32(0x3F3504F3))
        exponents[i] = np.float32(np.int32(shifted >> np.int32(23)))
        integers[i] = np.int32(np.int32(shifted & np.int32(0x007FFFFF)) + np.int32(0x3F3504F3))
    for i in range(count):
        r, exponent = floats[i] - np.float32(1), exponents[i]
        p = np.float32(7.0376836292e-2)
        p = p * r - np.float32(1.1514610310e-1)
        p = p * r + np.float32(1.1676998740e-1)
        p = p * r - np.float32(1.2420140846e-1)
        p = p * r + np.float32(1.4249322787e-1)
        p = p * r - np.float32(1.6668057665e-1)
        p = p * r + np.float32(2.0000714765e-1)
        p = p * r - np.float32(2.4999993993e-1)
        p = p * r + np.float32(3.3333331174e-1)
        square = r * r
        p = p * r * square - np.float32(2.12194440e-4) * exponent - np.float32(0.5) * square
        floats[i] = -(r + p + np.float32(0.693359375) * exponent)


@njit(cache=True, nogil=True)
def _fill(key_low, key_high, noise, first, last):
    """noise[first:last], block by block: the same blocks whoever has which part."""
    integers = np.empty(_BLOCK, dtype=np.int32)
    floats, exponents = integers.view(np.float32), np.empty(_BLOCK, dtype=np.float32)
    for start in range(first, last, _BLOCK):
        count = min(_BLOCK, last - start)
        for i in range(count):
            hashed = _mix(np.uint32(_mix(np.uint32(np.uint32(start + i) ^ key_low)) + key_high))
            integers[i] = np.int32(np.uint32(hashed >> np.uint32(9)))
        for i in range(count):
            floats[i] = (np.float32(integers[i]) + np.float32(0.5)) * np.float32(2.0**-23)
        _minus_log(integers, floats, exponents, count)
        _minus_log(integers, floats, exponents, count)
        for i in range(count):
            noise[start + i] = floats[i]


@njit(cache=True, nogil=True)
def _add(logits, noise, scale, result, first, last):
    """result = θ + scale γ, rounded once, as torch does; ``noise`` may be the same array."""
    for i in range(first, last):
        result[i] = fma(logits.dtype.type(noise[i]), scale, logits[i])


def fill(key_low: int, key_high: int, noise: Float32[Tensor, " places"]) -> None:
    """The noise of all places, shared out among the threads."""
    key, values = (np.uint32(key_low), np.uint32(key_high)), noise.numpy()

    def task(place: int) -> None:
        _fill(*key, values, place * SHARE, min(values.size, (place + 1) * SHARE))

    parallel_for(task, -(-values.size // SHARE))


def noisy(
    logits: Float[Tensor, "gates 16"], keys: Sequence[tuple[int, int]], scale: float
) -> Float[Tensor, "gates 16"]:
    """Drawn and added share by share, by all threads at once."""
    result = workspace.tensor(tuple(logits.shape), logits.dtype)
    given = logits.detach().contiguous().view(len(keys), -1).numpy()
    found = result.view(len(keys), -1).numpy()
    noise = found if logits.dtype == torch.float32 else workspace.array(found.shape, np.float32)
    factor, size = given.dtype.type(scale), given.shape[1]
    shares = [(stream, first) for stream in range(len(keys)) for first in range(0, size, SHARE)]

    def task(place: int) -> None:
        stream, first = shares[place]
        last = min(size, first + SHARE)
        _fill(*map(np.uint32, keys[stream]), noise[stream], first, last)
        _add(given[stream], noise[stream], factor, found[stream], first, last)

    parallel_for(task, len(shares), nanoseconds=2 * given.size)
    return result
