"""Optimisation by a library of logic synthesis: circuit -> and-inverter graph -> circuit.

    resubstitution    a node as a gate of nodes that exist already
    refactoring       large cones as sums of products, factored
    cut rewriting     small cones from a library of graphs

The graph has ANDs and inverters only; XORs are found again by ``rewrite_cuts``. Not part of any level of ``optimise``:
it needs aigverse (``pip install aigverse``), and after the other passes it finds little. Prove its result.
"""

from typing import Any

import numpy as np

from gatefit.circuit.ir import Circuit
from gatefit.circuit.passes.assemble import from_literals
from gatefit.circuit.passes.literals import FALSE, TRUE
from gatefit.circuit.passes.rewrite import rewrite_cuts
from gatefit.gates import Gate


def optimise_aig(circuit: Circuit, *, rounds: int = 2) -> Circuit:
    """The circuit after ``rounds`` of aigverse's passes, or the circuit itself if that has no fewer gates."""
    try:
        from aigverse import algorithms
    except ImportError as error:
        raise ImportError("optimise_aig needs the library aigverse; pip install aigverse") from error
    aig = to_aig(circuit)
    for _ in range(rounds):
        for improve in (
            algorithms.aig_resubstitution,
            algorithms.sop_refactoring,
            algorithms.aig_cut_rewriting,
        ):
            aig = improve(aig)
    result = rewrite_cuts(from_aig(aig, circuit))
    return result if result.gates.size < circuit.gates.size else circuit


def to_aig(circuit: Circuit) -> Any:
    """An ``aigverse.networks.Aig`` of the circuit's gates: one input a bit, one output a readout bit."""
    from aigverse.networks import Aig

    aig = Aig()
    signals = [aig.create_pi() for _ in range(circuit.inputs)]
    false = aig.get_constant(False)
    for kind, i, j in zip(circuit.gates.tolist(), *circuit.operands.tolist(), strict=True):
        gate, a, b = Gate(kind), signals[i], signals[j]
        inverted = gate(0, 0) == 1
        plain = gate.complement if inverted else gate
        match plain:
            case Gate.FALSE:
                signal = false
            case Gate.A:
                signal = a
            case Gate.B:
                signal = b
            case Gate.XOR:
                signal = aig.create_xor(a, b)
            case Gate.OR:
                signal = aig.create_or(a, b)
            case _:
                signal = aig.create_and(~a if plain is Gate.NOT_A_AND_B else a, ~b if plain is Gate.A_AND_NOT_B else b)
        signals.append(~signal if inverted else signal)
    for node in circuit.outputs.tolist():
        aig.create_po(signals[node])
    return aig


def from_aig(aig: Any, like: Circuit) -> Circuit:
    """The graph as a circuit with the readout, names and encoder of ``like``, whose inputs and outputs it has."""
    literals = {aig.node_to_index(aig.get_node(aig.get_constant(False))): FALSE}
    literals |= {aig.node_to_index(node): 2 * i for i, node in enumerate(aig.pis())}

    def literal(signal: Any) -> int:
        return literals[aig.node_to_index(aig.get_node(signal))] ^ int(aig.is_complemented(signal))

    gates: list[int] = []
    operands: list[tuple[int, int]] = []
    for node in aig.gates():
        a, b = (literal(signal) for signal in aig.fanins(node))
        if a < 0 or b < 0:
            literals[aig.node_to_index(node)] = FALSE if FALSE in (a, b) else (b if a == TRUE else a)
            continue
        gate = Gate.AND.negated_a if a & 1 else Gate.AND
        literals[aig.node_to_index(node)] = 2 * (like.inputs + len(gates))
        gates.append(int(gate.negated_b if b & 1 else gate))
        operands.append((a >> 1, b >> 1))
    return from_literals(
        like,
        np.array(gates, np.uint8),
        np.array(operands, np.int32).reshape(-1, 2).T,
        np.array([literal(signal) for signal in aig.pos()], np.int64),
    )
