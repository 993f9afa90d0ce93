"""Gumbel noise by counter: a pure function of (seed, step, place), so it is the same on any number of threads.

    γ = -log(-log u),   u = (k + 1/2) / 2²³,   k = the upper 23 bits of hash(place, key(seed, step))

A generator that draws one number after another cannot be cut into parts or vectorised; a hash of the place can. Its
state is two integers. ``log`` is a polynomial of degree 9 (Cephes' logf): exact to about one unit in the last place.
"""
# mypy: disable-error-code="no-untyped-def"

import numpy as np
import torch
from jaxtyping import Float, Int64
from torch import Tensor

from gatefit.compiled import njit
from gatefit.ops.gumbel_reference import gumbel_reference
from gatefit.ops.implementations import REFERENCE, Implementation
from gatefit.ops.threads import parallel_for

_BLOCK = 256
_SHARE = 256 * _BLOCK
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


def _key(seed: int, step: int) -> tuple[np.uint32, np.uint32]:
    """splitmix64 of seed and step, as two halves."""
    mask = (1 << 64) - 1
    x = (seed + step * 0x9E3779B97F4A7C15) & mask
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & mask
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & mask
    x ^= x >> 31
    return np.uint32(x & 0xFFFFFFFF), np.uint32(x >> 32)


class GumbelNoise:
    """A stream of noise; each draw is the next step."""

    def __init__(self, seed: int) -> None:
        self.seed, self.step = seed, 0

    def fill(self, noise: Float[Tensor, "gates 16"], *, implementation: Implementation) -> None:
        """Fill a contiguous float32 tensor with fresh noise, the same whatever the implementation."""
        key, values = _key(self.seed, self.step), noise.numpy().reshape(-1)
        count = values.size

        def task(place: int) -> None:
            _fill(*key, values, place * _SHARE, min(count, (place + 1) * _SHARE))

        if implementation == REFERENCE:
            values[:] = gumbel_reference(*key, count)
        else:
            parallel_for(task, -(-count // _SHARE))
        self.step += 1

    def get_state(self) -> Int64[Tensor, "2"]:
        """Seed and step."""
        return torch.tensor([self.seed, self.step], dtype=torch.int64)

    def set_state(self, state: Int64[Tensor, "2"]) -> None:
        """Go on from a saved state."""
        self.seed, self.step = (int(value) for value in state)
