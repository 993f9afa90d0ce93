"""Gumbel noise by counter, by a Triton kernel: nothing fused, so that the bits are those of every other device."""
# mypy: disable-error-code="no-untyped-def"

from typing import Final

import triton
import triton.language as tl
from jaxtyping import Float32
from torch import Tensor

from gatefit.ops.triton_launch import launch, parts

PLACES: Final = 1024
"""Numbers that a program draws."""


@triton.jit
def _mix(x):
    """A bijection of 32 bits in which every input bit changes every output bit half of the time (lowbias32)."""
    x = (x ^ (x >> 16)) * 0x7FEB352D
    x = (x ^ (x >> 15)) * 0x846CA68B
    return x ^ (x >> 16)


@triton.jit
def _minus_log(x):
    """-log x by Cephes' polynomial: x = m 2^e with m in [√½, √2)."""
    shifted = x.to(tl.int32, bitcast=True) - 0x3F3504F3
    exponent = (shifted >> 23).to(tl.float32)
    r = ((shifted & 0x007FFFFF) + 0x3F3504F3).to(tl.float32, bitcast=True) - 1.0
    p = r * 7.0376836292e-2 - 1.1514610310e-1
    p = p * r + 1.1676998740e-1
    p = p * r - 1.2420140846e-1
    p = p * r + 1.4249322787e-1
    p = p * r - 1.6668057665e-1
    p = p * r + 2.0000714765e-1
    p = p * r - 2.4999993993e-1
    p = p * r + 3.3333331174e-1
    square = r * r
    p = p * r * square - exponent * 2.12194440e-4 - square * 0.5
    return -(r + p + exponent * 0.693359375)


@triton.jit(do_not_specialize=["key_low", "key_high"])
def _fill(noise, key_low, key_high, size, PLACES: tl.constexpr):
    place = tl.program_id(0).to(tl.int64) * PLACES + tl.arange(0, PLACES)
    low, high = key_low.to(tl.uint32), key_high.to(tl.uint32)
    hashed = _mix(_mix(place.to(tl.uint32) ^ low) + high)
    u = ((hashed >> 9).to(tl.float32) + 0.5) * 1.1920928955078125e-07
    tl.store(noise + place, _minus_log(_minus_log(u)), mask=place < size)


def fill(key_low: int, key_high: int, noise: Float32[Tensor, " places"]) -> None:
    """The noise of all places."""
    size = noise.numel()
    # As 64 bits, whatever their values: an argument's type is part of a compiled kernel.
    low, high = key_low | 1 << 62, key_high | 1 << 62
    launch(_fill, (parts(size, PLACES),), noise, low, high, size, fused=False, PLACES=PLACES)
