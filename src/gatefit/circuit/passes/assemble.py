"""From literals back to a circuit: what the outputs' literals mean for gates and readout.

    a constant output        is added to the readout's offset and leaves the circuit
    an inverted output       changes the kind of its gate, and of the gates that read that gate
    both polarities, or an inverted input: one inverter, the only place where inverters remain

A sum of integers is folded exactly. A Linear readout adds floats in a fixed order, so a constant is folded into its
bias only where that cannot change any rounding; otherwise the constant stays, as a gate without operands.
"""

from dataclasses import replace

import numpy as np
from jaxtyping import Bool, Int64

from gatefit.circuit.ir import Circuit
from gatefit.circuit.logic.graph import Graph, as_nodes
from gatefit.circuit.logic.literals import TRUE
from gatefit.circuit.readout import Affine, GroupSum, Linear, Readout, exact_unit


def assemble(circuit: Circuit, graph: Graph, literals: Int64[np.ndarray, " outputs"]) -> Circuit:
    """The circuit of the graph's gates whose outputs are ``literals``, otherwise like ``circuit``."""
    readout, stays = fold_outputs(circuit.readout, literals <= TRUE, literals & 1 == 1)
    graph, nodes = as_nodes(graph, literals[stays])
    return replace(circuit, gates=graph.gates, operands=graph.operands - 1, outputs=nodes - 1, readout=readout)


def fold_outputs(
    readout: Readout, constant: Bool[np.ndarray, " outputs"], ones: Bool[np.ndarray, " outputs"]
) -> tuple[Readout, Bool[np.ndarray, " outputs"]]:
    """The readout without its constant outputs, and which outputs remain; ``ones`` says which constants are 1."""
    if not constant.any():
        return readout, np.ones(constant.size, bool)
    ones = ones & constant
    if isinstance(readout, GroupSum):
        offsets = readout.offsets + np.bincount(readout.groups[ones], minlength=readout.classes)
        return replace(readout, groups=readout.groups[~constant], offsets=offsets), ~constant
    if isinstance(readout, Affine):
        return replace(readout, outputs=int((~constant).sum()), offset=readout.offset + int(ones.sum())), ~constant
    # Ones before the first variable output are added to the bias first in any case.
    readout, left = _add_to_bias(readout, ones & (np.cumsum(~constant) == 0))
    rest = ones & (left | (np.cumsum(~constant) > 0))
    if exact_unit(Linear(readout.weights[:, ~constant | rest], readout.bias)) is not None:
        readout, rest = _add_to_bias(readout, rest)
    stays = ~constant | rest
    return Linear(readout.weights[:, stays], readout.bias), stays


def _add_to_bias(readout: Linear, outputs: Bool[np.ndarray, " outputs"]) -> tuple[Linear, Bool[np.ndarray, " outputs"]]:
    """The readout with the weights of ``outputs`` in its bias, and those outputs that did not fit a float32."""
    bias = readout.bias.copy()
    with np.errstate(over="ignore"):
        for i in np.flatnonzero(outputs):
            bias += readout.weights[:, i]
    if not np.isfinite(bias).all():
        return readout, outputs
    return Linear(readout.weights, bias), np.zeros_like(outputs)
