"""Batches of bits as networks and stacks read them, in whichever form they come.

Tensor         (batch, inputs)  Boolean, whole numbers 0 and 1, or floating (between 0 and 1 in training)
PackedBatch    64 samples a word, a NumPy array on the CPU or an int64 tensor on any device
"""

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor

from gatefit.bits import PackedBatch, pack, unpack_features
from gatefit.ops.workspace import NUMPY_TYPES

Batch = Tensor | PackedBatch


def check_batch(x: Batch, inputs: int) -> None:
    """Refuse a batch of the wrong width, and whole numbers that are no bits; floats may lie between in training."""
    shape = (len(x), x.bits) if isinstance(x, PackedBatch) else tuple(x.shape)
    if len(shape) != 2 or shape[1] != inputs:
        given = f"{shape[-1]} (shape {shape})" if shape else "a single number"
        raise ValueError(f"the network reads {inputs} bits a sample, got {given}")
    if are_bits(x) and isinstance(x, Tensor) and x.dtype != torch.bool:
        if x.is_complex():
            raise TypeError(f"the network reads bits, got {x.dtype}")
        low, high = (int(value) for value in x.aminmax()) if x.numel() else (0, 0)
        if low < 0 or high > 1:
            raise ValueError(
                f"the network reads bits 0 and 1, got {x.dtype} values from {low} to {high}; encode the features first "
                "(gatefit.encoders), pixels for example by x > 127"
            )


def are_bits(x: Batch) -> bool:
    """Whether the batch can hold nothing but bits, once it is checked."""
    return isinstance(x, PackedBatch) or not x.is_floating_point()


def as_packed(x: Batch) -> PackedBatch:
    """Bits as packed words on the CPU, where compiled stacks read them."""
    if isinstance(x, PackedBatch):
        return x if isinstance(x.words, np.ndarray) else PackedBatch(_host_words(x.words), x.samples)
    return pack((x if x.dtype in (torch.bool, torch.uint8) else x.bool()).cpu().numpy())


def as_float(x: Batch, dtype: torch.dtype, device: torch.device | str = "cpu") -> Float[Tensor, "batch inputs"]:
    """The batch as a floating tensor, stored feature by feature where it was packed."""
    if isinstance(x, Tensor):
        return x.to(device, dtype)
    if isinstance(x.words, np.ndarray):
        values = unpack_features(x, NUMPY_TYPES.get(dtype, np.float32))
        return torch.from_numpy(values).T.to(device, dtype)
    words: Tensor = x.words.to(device)
    bits = (words.T[:, :, None] >> torch.arange(64, device=device)) & 1
    return bits.flatten(1)[:, : x.samples].to(dtype).T


def on_device(x: PackedBatch, device: torch.device | str) -> PackedBatch:
    """The same packed words, as a tensor on a device: int64, since torch has no arithmetic on uint64."""
    words = torch.from_numpy(x.words.view(np.int64)) if isinstance(x.words, np.ndarray) else x.words
    return PackedBatch(words.to(device), x.samples)


def pack_samples(x: Bool[Tensor, "batch bits"]) -> Int64[Tensor, "words bits"]:
    """Bits as packed words, where they are."""
    batch, bits = x.shape
    missing = -batch % 64
    if missing:
        x = torch.cat([x, x.new_zeros((missing, bits))])
    places = torch.arange(64, device=x.device).view(1, 64, 1)
    # Each bit has a place of its own, so that a sum is an or.
    return (x.view(-1, 64, bits).to(torch.int64) << places).sum(1)


def side_by_side(batches: Sequence[PackedBatch]) -> PackedBatch:
    """Batches of the same size as one batch with all their inputs."""
    return PackedBatch(np.concatenate([as_packed(batch).words for batch in batches], axis=1), batches[0].samples)


def _host_words(words: Tensor) -> np.ndarray:
    host: np.ndarray = words.cpu().numpy()
    return host.view(np.uint64)
