"""A whole network's forward pass, by the fastest implementation that serves it.

    training   layer by layer, or one fused function for the stack where the method and the input allow it
    eval       the deployed Boolean network

The plain path, one ``gate_layer`` after another in torch, defines the result; the others are tested against it.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from gatefit.ops.gate_layer import gate_layer

if TYPE_CHECKING:
    from gatefit.network import LogicNetwork

Batch = Tensor


def train_scores(network: "LogicNetwork", x: Batch) -> Tensor:
    """Scores of the network as it is trained."""
    activations = as_float(network, x)
    for layer in network.gate_layers:
        z = gate_layer(activations, layer.wiring, layer.method.coefficients(), implementation=network.implementation)
        activations = layer.method.activation(z)
    scores: Tensor = network.readout(activations)
    return scores


def eval_scores(network: "LogicNetwork", x: Batch) -> Tensor:
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
    return network.readout.deployed(activations)


def as_float(network: "LogicNetwork", x: Batch) -> Tensor:
    """The batch as a floating tensor (batch, inputs)."""
    if x.ndim != 2 or x.shape[1] != network.inputs:
        raise ValueError(
            f"the network reads {network.inputs} bits a sample, got {x.shape[-1]} (shape {tuple(x.shape)})"
        )
    return x.to(network.dtype)


def side_by_side(batches: Sequence[Batch]) -> Batch:
    """Batches of the same size as one batch with all their inputs."""
    return torch.cat(list(batches), dim=1)
