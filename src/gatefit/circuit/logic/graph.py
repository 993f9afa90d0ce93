"""Gates over the constant and the inputs, how deep they are, and who reads them.

    node 0                   the constant false
    nodes 1 to inputs        the input bits
    further nodes            gates, each after what it reads

A ``Circuit`` has no node for the constant: its node n is node n + 1 here.

    level      of a gate: the gates with two real operands on the longest path to it; wires and constants add nothing
    readers    of a node: the outputs and the live gates that read it, operands that a gate ignores left out
    live       a node with readers
"""
# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from dataclasses import dataclass

import numpy as np
from jaxtyping import Int32, Int64, UInt8

from gatefit.circuit.ir import Circuit
from gatefit.circuit.logic.literals import TRUE
from gatefit.compiled import njit
from gatefit.gates import COMPLEMENT, DEPENDS_ON_A, DEPENDS_ON_B, NEGATED_A, NEGATED_B, Gate


@dataclass(frozen=True, eq=False)
class Graph:
    """Gates over the constant (node 0) and the inputs (nodes 1 to ``inputs``), in topological order."""

    inputs: int
    gates: UInt8[np.ndarray, " gates"]
    operands: Int32[np.ndarray, "2 gates"]

    def __post_init__(self) -> None:
        # Of one layout and read-only, wherever they come from: so that kernels are compiled for one type of each.
        for name in ("gates", "operands"):
            view = np.ascontiguousarray(getattr(self, name)).view()
            view.flags.writeable = False
            object.__setattr__(self, name, view)

    @classmethod
    def of(cls, circuit: Circuit) -> "Graph":
        """A circuit's gates; its outputs are the nodes ``circuit.outputs + 1``."""
        return cls(circuit.inputs, circuit.gates, circuit.operands + np.int32(1))

    @property
    def nodes(self) -> int:
        """The constant, the inputs and the gates."""
        return 1 + self.inputs + int(self.gates.size)


def levels(graph: Graph) -> Int32[np.ndarray, " nodes"]:
    """The level of every node; see above."""
    level = np.zeros(graph.nodes, np.int32)
    _levels(1 + graph.inputs, graph.gates, graph.operands, level)
    return level


def readers(graph: Graph, outputs: Int32[np.ndarray, " outputs"]) -> Int64[np.ndarray, " nodes"]:
    """How many live gates and ``outputs`` (nodes) read each node; a gate that reads one node twice counts twice."""
    count = np.bincount(outputs, minlength=graph.nodes)
    _count_readers(1 + graph.inputs, graph.gates, graph.operands, count)
    return count


@njit(cache=True, plain=True)
def _levels(first, gates, operands, level):
    for i in range(len(gates)):
        reads_a, reads_b = DEPENDS_ON_A[gates[i]], DEPENDS_ON_B[gates[i]]
        a = level[operands[0, i]] if reads_a else np.int32(0)
        b = level[operands[1, i]] if reads_b else np.int32(0)
        level[first + i] = (a if a > b else b) + (1 if reads_a and reads_b else 0)


@njit(cache=True, plain=True)
def _count_readers(first, gates, operands, count):
    for i in range(len(gates) - 1, -1, -1):
        if count[first + i]:
            if DEPENDS_ON_A[gates[i]]:
                count[operands[0, i]] += 1
            if DEPENDS_ON_B[gates[i]]:
                count[operands[1, i]] += 1


def without_dead(graph: Graph, outputs: Int32[np.ndarray, " outputs"]) -> tuple[Graph, Int32[np.ndarray, " outputs"]]:
    """The live gates alone, and the outputs there; a gate's operand that it ignores becomes the one that it reads."""
    first = 1 + graph.inputs
    live = readers(graph, outputs)[first:] > 0
    if live.all():
        return graph, outputs
    number = np.arange(graph.nodes, dtype=np.int32)
    number[first:] = graph.inputs + np.cumsum(live)
    gates, (a, b) = graph.gates[live], graph.operands[:, live]
    reads_a, reads_b = DEPENDS_ON_A[gates], DEPENDS_ON_B[gates]
    # A constant reads the first input, which is there in any case, and ignores it.
    a, b = np.where(reads_a, a, np.where(reads_b, b, 1)), np.where(reads_b, b, np.where(reads_a, a, 1))
    return Graph(graph.inputs, gates, number[np.stack([a, b])]), number[outputs]


def as_nodes(graph: Graph, literals: Int64[np.ndarray, " outputs"]) -> tuple[Graph, Int64[np.ndarray, " outputs"]]:
    """A graph in which every one of the literals is a node of its own accord, and these nodes.

    A gate that is only put out inverted computes the inverse instead, and the gates that read it expect it; other
    inverted nodes, and constants, take one more gate each.
    """
    graph, literals = _turned_over(graph, literals)
    loose = (literals <= TRUE) | (literals & 1 == 1)
    extra, which = np.unique(literals[loose], return_inverse=True)
    nodes = literals >> 1
    nodes[loose] = graph.nodes + which
    kinds = np.where(extra > TRUE, Gate.NOT_A, np.where(extra == TRUE, Gate.TRUE, Gate.FALSE)).astype(np.uint8)
    # A constant reads the first input, which is there in any case, and ignores it.
    reads = np.maximum(extra >> 1, 1).astype(np.int32)
    operands = np.concatenate([graph.operands, np.stack([reads, reads])], axis=1)
    return Graph(graph.inputs, np.concatenate([graph.gates, kinds]), operands), nodes


def _turned_over(graph: Graph, literals: Int64[np.ndarray, " outputs"]) -> tuple[Graph, Int64[np.ndarray, " outputs"]]:
    first = 1 + graph.inputs
    turned = np.zeros(graph.nodes, bool)
    turned[literals[literals & 1 == 1] >> 1] = True
    turned[literals[literals & 1 == 0] >> 1] = False
    turned[:first] = False
    if not turned.any():
        return graph, literals
    gates = np.where(turned[first:], COMPLEMENT[graph.gates], graph.gates)
    gates = np.where(turned[graph.operands[0]], NEGATED_A[gates], gates)
    gates = np.where(turned[graph.operands[1]], NEGATED_B[gates], gates)
    return Graph(graph.inputs, gates, graph.operands), np.where(turned[literals >> 1], literals ^ 1, literals)
