"""Independent random streams from one seed: each purpose has its own, so adding a draw to one moves no other."""

import contextlib
import hashlib
from collections.abc import Iterator

from gatefit._requires import require

require("torch", "train", "training")

import torch
from torch import nn


def stream(seed: int, purpose: str) -> torch.Generator:
    """A generator that is a pure function of (seed, purpose)."""
    if not isinstance(seed, int) or isinstance(seed, bool):
        raise TypeError(f"seed must be a whole number, got {seed!r}")
    digest = hashlib.sha256(f"{purpose}:{seed}".encode()).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest[:8], "little") >> 1)


@contextlib.contextmanager
def noise_kept(network: nn.Module) -> Iterator[None]:
    """Let noise be drawn, and put its streams back where they were: training goes on as if nobody looked.

    A module whose training draws random numbers says so (``draws_noise``) and keeps its stream's position as its extra
    state.
    """
    noisy = [module for module in network.modules() if getattr(module, "draws_noise", False)]
    before = [module.get_extra_state() for module in noisy]
    try:
        yield
    finally:
        for module, state in zip(noisy, before, strict=True):
            module.set_extra_state(state)
