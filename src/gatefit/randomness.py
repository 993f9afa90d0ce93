"""Independent random streams from one seed: each purpose has its own, so adding a draw to one moves no other."""

import hashlib

from gatefit._requires import require

require("torch", "train", "training")

import torch


def stream(seed: int, purpose: str) -> torch.Generator:
    """A generator that is a pure function of (seed, purpose)."""
    if not isinstance(seed, int) or isinstance(seed, bool):
        raise TypeError(f"seed must be a whole number, got {seed!r}")
    digest = hashlib.sha256(f"{purpose}:{seed}".encode()).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest[:8], "little") >> 1)
