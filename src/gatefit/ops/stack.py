"""A whole network's forward pass, by the fastest implementation that serves it.

    training   layer by layer, or one fused function for the stack where the method and the input allow it
    eval       the deployed Boolean network

The plain path, one ``gate_layer`` after another in torch, defines the result; the others are tested against it.
"""

from collections.abc import Sequence
from typing import Any, Final, Protocol

import numpy as np
import torch
from torch import Tensor

from gatefit.bits import PackedBatch, unpack_features
from gatefit.ops.gate_layer import gate_layer

Batch = Tensor | PackedBatch
NUMPY_TYPES: Final[dict[torch.dtype, type[np.floating[Any]]]] = {torch.float32: np.float32, torch.float64: np.float64}


class Stack(Protocol):
    """A network as this module sees it (``gatefit.network.LogicNetwork``)."""

    inputs: int
    readout: Any
    implementation: str

    @property
    def gate_layers(self) -> Sequence[Any]:
        """The layers, first to last."""

    @property
    def dtype(self) -> torch.dtype:
        """The parameters' floating type."""


def train_scores(network: Stack, x: Batch) -> Tensor:
    """Scores of the network as it is trained."""
    activations = as_float(network, x)
    for layer in network.gate_layers:
        z = gate_layer(activations, layer.wiring, layer.method.coefficients(), implementation=network.implementation)
        activations = layer.method.activation(z)
    scores: Tensor = network.readout(activations)
    return scores


def eval_scores(network: Stack, x: Batch) -> Tensor:
    """Scores of the deployed Boolean network."""
    activations = as_float(network, x)
    odd = activations[(activations != 0) & (activations != 1)]
    if odd.numel():
        raise ValueError(
            f"the deployed network reads bits 0 and 1, got {float(odd[0])}; encode the features first, "
            "or use soft_scores for values between"
        )
    for layer in network.gate_layers:
        activations = layer(activations)
    scores: Tensor = network.readout.deployed(activations)
    return scores


def as_float(network: Stack, x: Batch) -> Tensor:
    """The batch as a floating tensor (batch, inputs), stored feature by feature where it was packed."""
    check_batch(network, x)
    if isinstance(x, PackedBatch):
        return torch.from_numpy(unpack_features(x, NUMPY_TYPES.get(network.dtype, np.float32))).T.to(network.dtype)
    return x.to(network.dtype)


def check_batch(network: Stack, x: Batch) -> None:
    """Refuse a batch of the wrong width."""
    shape = (len(x), x.bits) if isinstance(x, PackedBatch) else tuple(x.shape)
    if len(shape) != 2 or shape[1] != network.inputs:
        raise ValueError(f"the network reads {network.inputs} bits a sample, got {shape[-1]} (shape {shape})")


def side_by_side(batches: Sequence[PackedBatch]) -> PackedBatch:
    """Batches of the same size as one batch with all their inputs."""
    return PackedBatch(np.concatenate([batch.words for batch in batches], axis=1), batches[0].samples)
