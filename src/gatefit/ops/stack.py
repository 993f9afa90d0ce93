"""A whole network's forward pass, by the fastest implementation that serves it.

    plain      one ``gate_layer`` after another, any input: defines the result, and serves what the others do not
    soft       bits in, all layers in one function, tile by tile                    (``gate_stack_numba``)
    Boolean    the same on 64 samples a word, where the method commits to one gate  (``packed``)
    deployed   the Boolean network of ``eval()``, without gradients                 (``packed.boolean_forward``)

The compiled stacks serve bits on the CPU in float32 and float64; they are tested against the plain path.
"""

from collections.abc import Sequence
from typing import Any, Final, Protocol

import numpy as np
import torch
from torch import Tensor

from gatefit.bits import PackedBatch, pack, unpack_features
from gatefit.ops.coefficients import codebook
from gatefit.ops.gate_layer import gate_layer
from gatefit.ops.gate_stack_numba import gate_stack_numba
from gatefit.ops.implementations import NUMBA, Implementation
from gatefit.ops.packed import boolean_forward, boolean_stack
from gatefit.ops.straight_through import straight_through

Batch = Tensor | PackedBatch
NUMPY_TYPES: Final[dict[torch.dtype, type[np.floating[Any]]]] = {torch.float32: np.float32, torch.float64: np.float64}


class Stack(Protocol):
    """A network as this module sees it (``gatefit.network.LogicNetwork``)."""

    inputs: int
    readout: Any
    implementation: Implementation

    @property
    def gate_layers(self) -> Sequence[Any]:
        """The layers, first to last."""

    @property
    def dtype(self) -> torch.dtype:
        """The parameters' floating type."""


def train_scores(network: Stack, x: Batch) -> Tensor:
    """Scores of the network as it is trained."""
    check_batch(network, x)
    packed = packed_bits(network, x)
    methods = [layer.method for layer in network.gate_layers]
    activation = methods[0].activation_name
    if packed is None or activation is None or any(method.activation_name != activation for method in methods):
        return _plain(network, as_float(network, x))
    wirings = [layer.wiring for layer in network.gate_layers]
    groups = network.readout.groups
    if all(method.boolean_forward for method in methods):
        samples = [method.sample() for method in methods]
        sums = boolean_stack(packed, wirings, [gates for gates, _ in samples], [c for _, c in samples], groups)
    else:
        sums = gate_stack_numba(
            packed, wirings, [method.coefficients() for method in methods], groups, sigmoid=activation == "sigmoid"
        )
    return _scores(network.readout.from_sums(sums))


def eval_scores(network: Stack, x: Batch) -> Tensor:
    """Scores of the deployed Boolean network."""
    check_batch(network, x)
    if isinstance(x, Tensor) and x.is_floating_point():
        odd = x[(x != 0) & (x != 1)]
        if odd.numel():
            raise ValueError(
                f"the deployed network reads bits 0 and 1, got {float(odd[0])}; encode the features first, "
                "or use soft_scores for values between"
            )
        x = x.bool()
    packed = packed_bits(network, x)
    if packed is None:
        activations = as_float(network, x)
        for layer in network.gate_layers:
            activations = layer(activations)
        return _scores(network.readout.deployed(activations))
    wirings = [layer.wiring for layer in network.gate_layers]
    gates = [layer.method.gates() for layer in network.gate_layers]
    sums = boolean_forward(packed, wirings, gates, network.readout.groups).to(network.dtype)
    return _scores(network.readout.deployed_from_sums(sums))


def _plain(network: Stack, activations: Tensor) -> Tensor:
    for layer in network.gate_layers:
        activations = train_layer(activations, layer, network.implementation)
    return _scores(network.readout(activations))


def train_layer(x: Tensor, layer: Any, implementation: Implementation) -> Tensor:
    """A layer's output as it is trained, floating inputs."""
    method = layer.method
    if not method.continuous_backward:
        return _scores(
            method.activation(gate_layer(x, layer.wiring, method.coefficients(), implementation=implementation))
        )
    gates, c = method.sample()
    # Not z + (ĉ·ψ - z).detach(): that sum rounds, and a 1 must stay a 1.
    z = gate_layer(x, layer.wiring, c, implementation=implementation)
    snapped = codebook(c.dtype, c.device)[gates.long()]
    return straight_through(z, gate_layer(x.detach(), layer.wiring, snapped, implementation=implementation))


def _scores(scores: Any) -> Tensor:
    assert isinstance(scores, Tensor)
    return scores


def packed_bits(network: Stack, x: Batch) -> PackedBatch | None:
    """The batch as packed bits, where the compiled stacks can serve it."""
    if network.implementation != NUMBA:
        return None
    if isinstance(x, PackedBatch):
        return x
    if x.is_floating_point() or x.device.type != "cpu" or network.gate_layers[0].wiring.device.type != "cpu":
        return None
    # check_batch has seen to it that these are bits.
    return pack((x if x.dtype in (torch.bool, torch.uint8) else x.bool()).numpy())


def as_float(network: Stack, x: Batch) -> Tensor:
    """The batch as a floating tensor (batch, inputs), stored feature by feature where it was packed."""
    if isinstance(x, PackedBatch):
        return torch.from_numpy(unpack_features(x, NUMPY_TYPES.get(network.dtype, np.float32))).T.to(network.dtype)
    return x.to(network.dtype)


def check_batch(network: Stack, x: Batch) -> None:
    """Refuse a batch of the wrong width, and whole numbers that are no bits; floats may lie between in training."""
    shape = (len(x), x.bits) if isinstance(x, PackedBatch) else tuple(x.shape)
    if len(shape) != 2 or shape[1] != network.inputs:
        given = f"{shape[-1]} (shape {shape})" if shape else "a single number"
        raise ValueError(f"the network reads {network.inputs} bits a sample, got {given}")
    if isinstance(x, PackedBatch) or x.dtype == torch.bool or x.is_floating_point():
        return
    if x.is_complex():
        raise TypeError(f"the network reads bits, got {x.dtype}")
    if x.numel():
        low, high = (int(value) for value in x.aminmax())
        if low < 0 or high > 1:
            raise ValueError(
                f"the network reads bits 0 and 1, got {x.dtype} values from {low} to {high}; encode the features first "
                "(gatefit.encoders), pixels for example by x > 127"
            )


def side_by_side(batches: Sequence[PackedBatch]) -> PackedBatch:
    """Batches of the same size as one batch with all their inputs."""
    return PackedBatch(np.concatenate([batch.words for batch in batches], axis=1), batches[0].samples)
