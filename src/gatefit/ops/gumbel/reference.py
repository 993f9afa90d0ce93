"""Gumbel noise by counter in plain torch, on any device: the definition, bit for bit."""

import torch
from jaxtyping import Float32, Int64
from torch import Tensor

_COEFFICIENTS = (
    7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1, -1.6668057665e-1,
    2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1,
)  # fmt: skip
_BITS = 0xFFFFFFFF


def _mix(x: Int64[Tensor, " places"]) -> Int64[Tensor, " places"]:
    """A bijection of 32 bits in which every input bit changes every output bit half of the time (lowbias32)."""
    # Whatever a product loses at the top of 64 bits, its lower 32 are right.
    x = ((x ^ (x >> 16)) * 0x7FEB352D) & _BITS
    x = ((x ^ (x >> 15)) * 0x846CA68B) & _BITS
    return x ^ (x >> 16)


def _minus_log(x: Float32[Tensor, " places"]) -> Float32[Tensor, " places"]:
    # x = m 2^e with m in [√½, √2).
    shifted = x.view(torch.int32) - 0x3F3504F3
    exponent = (shifted >> 23).float()
    r = ((shifted & 0x007FFFFF) + 0x3F3504F3).view(torch.float32) - 1
    p = torch.full_like(r, _COEFFICIENTS[0])
    for coefficient in _COEFFICIENTS[1:]:
        p = p * r + coefficient
    square = r * r
    p = p * r * square - exponent * 2.12194440e-4 - square * 0.5
    return -(r + p + exponent * 0.693359375)


def fill(key_low: int, key_high: int, noise: Float32[Tensor, " places"]) -> None:
    """The noise of all places."""
    places = torch.arange(noise.numel(), device=noise.device)
    hashed = _mix((_mix(places ^ key_low) + key_high) & _BITS)
    noise.copy_(_minus_log(_minus_log(((hashed >> 9).float() + 0.5) * 2.0**-23)))
