"""Gumbel noise by counter: a pure function of (seed, step, place), so it is the same on any number of threads.

    noisy = θ + scale γ
    γ = -log(-log u),   u = (k + 1/2) / 2²³,   k = the upper 23 bits of hash(place, key(seed, step))

A generator that draws one number after another cannot be cut into parts or vectorised; a hash of the place can. Its
state is two integers. ``log`` is Cephes' polynomial of degree 9 in float32, exact to about one unit in the last place,
with nothing fused: every implementation on every processor gives the same bits.
"""

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from gatefit.ops.gumbel import numba, reference
from gatefit.ops.implementations import Implementation
from gatefit.ops.triton_launch import lazily

Key: TypeAlias = tuple[int, int]
"""Of a stream's step: two 32-bit halves."""
Fill: TypeAlias = Callable[[int, int, Tensor], None]
Noisy: TypeAlias = Callable[[Tensor, Sequence[Key], float], Tensor]


def _by_filling(fill: Fill) -> Noisy:
    """The noise first, then its sum with the logits."""

    def noisy(logits: Tensor, keys: Sequence[Key], scale: float) -> Tensor:
        noise = torch.empty_like(logits, dtype=torch.float32, requires_grad=False)
        for part, key in zip(noise.chunk(len(keys)), keys, strict=True):
            fill(*key, part.view(-1))
        return torch.add(logits.detach(), noise.to(logits), alpha=scale)

    return noisy


FILL: Final[dict[str, Fill]] = {
    "reference": reference.fill,
    "numba": numba.fill,
    "triton": lazily("gumbel", "fill"),
}

NOISY: Final[dict[str, Noisy]] = {
    "reference": _by_filling(FILL["reference"]),
    "numba": numba.noisy,
    "triton": _by_filling(FILL["triton"]),
}


def fill(key_low: int, key_high: int, noise: Float[Tensor, " places"], *, implementation: Implementation) -> None:
    """Fill a contiguous float32 tensor with the noise of a key of two 32-bit halves."""
    if noise.dtype != torch.float32 or noise.ndim != 1 or not noise.is_contiguous():
        raise TypeError(
            f"noise is drawn into a contiguous float32 tensor of one dimension, got {noise.dtype} of shape "
            f"{tuple(noise.shape)}"
        )
    implementation.choose(FILL)(key_low, key_high, noise)


def noisy(
    logits: Float[Tensor, "gates 16"], streams: "Sequence[GumbelNoise]", scale: float, *, implementation: Implementation
) -> Float[Tensor, "gates 16"]:
    """θ + scale γ without gradients; each stream draws for an equal part of the gates, in their order."""
    if logits.shape[0] % len(streams):
        raise ValueError(f"{len(streams)} streams draw for equal parts, got {logits.shape[0]} gates")
    keys = [stream.next_key() for stream in streams]
    return implementation.choose(NOISY)(logits, keys, scale)


def _key(seed: int, step: int) -> Key:
    """splitmix64 of seed and step, as two halves."""
    mask = (1 << 64) - 1
    x = (seed + step * 0x9E3779B97F4A7C15) & mask
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & mask
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & mask
    x ^= x >> 31
    return x & 0xFFFFFFFF, x >> 32


class GumbelNoise:
    """A stream of noise; each draw is the next step."""

    def __init__(self, seed: int) -> None:
        self.seed, self.step = seed, 0

    def fill(self, noise: Float[Tensor, "gates 16"], *, implementation: Implementation) -> None:
        """Fill a contiguous float32 tensor with fresh noise, the same whatever the implementation."""
        fill(*self.next_key(), noise.view(-1), implementation=implementation)

    def next_key(self) -> Key:
        """The key of the next step, which is taken."""
        self.step += 1
        return _key(self.seed, self.step - 1)

    def get_state(self) -> Int64[Tensor, "2"]:
        """Seed and step."""
        return torch.tensor([self.seed, self.step], dtype=torch.int64)

    def set_state(self, state: Int64[Tensor, "2"]) -> None:
        """Go on from a saved state."""
        self.seed, self.step = (int(value) for value in state)
