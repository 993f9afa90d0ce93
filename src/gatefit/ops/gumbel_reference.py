"""Gumbel noise by counter, in numpy: the definition that the compiled kernel equals to the bit.

    γ = -log(-log u),   u = (k + 1/2) / 2²³,   k = the upper 23 bits of hash(place, key)

``log`` is Cephes' polynomial of degree 9 in float32, with nothing fused, so that every processor gives the same noise.
"""

import numpy as np
from jaxtyping import Float32, UInt32

_COEFFICIENTS = (
    7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1, -1.6668057665e-1,
    2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1,
)  # fmt: skip


def _mix(x: UInt32[np.ndarray, " places"]) -> UInt32[np.ndarray, " places"]:
    x = (x ^ (x >> np.uint32(16))) * np.uint32(0x7FEB352D)
    x = (x ^ (x >> np.uint32(15))) * np.uint32(0x846CA68B)
    return np.asarray(x ^ (x >> np.uint32(16)))


def _minus_log(x: Float32[np.ndarray, " places"]) -> Float32[np.ndarray, " places"]:
    # x = m 2^e with m in [√½, √2).
    shifted = x.view(np.int32) - np.int32(0x3F3504F3)
    exponent = (shifted >> np.int32(23)).astype(np.float32)
    mantissa = ((shifted & np.int32(0x007FFFFF)) + np.int32(0x3F3504F3)).view(np.float32)
    r = mantissa - np.float32(1)
    p = np.full_like(r, _COEFFICIENTS[0])
    for coefficient in _COEFFICIENTS[1:]:
        p = p * r + np.float32(coefficient)
    square = r * r
    p = p * r * square - np.float32(2.12194440e-4) * exponent - np.float32(0.5) * square
    return np.asarray(-(r + p + np.float32(0.693359375) * exponent))


def gumbel_reference(key_low: np.uint32, key_high: np.uint32, count: int) -> Float32[np.ndarray, " places"]:
    """The noise at the places 0 to count - 1."""
    hashed = _mix(_mix(np.arange(count, dtype=np.uint32) ^ key_low) + key_high)
    u = ((hashed >> np.uint32(9)).astype(np.float32) + np.float32(0.5)) * np.float32(2.0**-23)
    return _minus_log(_minus_log(u))
