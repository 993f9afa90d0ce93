"""A circuit as a Graphviz drawing: ``dot -Tsvg`` lays it out from inputs to scores.

    box        an input bit, with its name
    ellipse    a gate; the edges of gates that are not symmetric say which operand they are
    hexagon    a score (of a regression: the value), which adds up the outputs that lead to it

Drawings of more than a few hundred gates cannot be read, so larger circuits are refused unless asked for.
"""

from gatefit.backends.names import bit_names, class_names, quoted
from gatefit.circuit.ir import Circuit
from gatefit.circuit.provenance import origin_lines
from gatefit.gates import Gate


def to_dot(circuit: Circuit, max_gates: int = 500) -> str:
    """The circuit as text in the DOT language; inputs that nobody reads are left out."""
    if circuit.gates.size > max_gates:
        raise ValueError(
            f"a drawing of {circuit.gates.size} gates cannot be read (the limit is {max_gates}); optimise the circuit "
            f"first, or pass max_gates={circuit.gates.size} to draw it all the same"
        )
    names = bit_names(circuit)
    edges, read = [], set(circuit.outputs.tolist())
    nodes = []
    for g, (number, (a, b)) in enumerate(zip(circuit.gates.tolist(), circuit.operands.T.tolist(), strict=True)):
        gate = Gate(number)
        nodes.append(f"  g{g} [label={quoted(gate.name.replace('_', ' '))}];")
        sides = (("a", a, gate.depends_on_a), ("b", b, gate.depends_on_b))
        plain = gate.swapped is gate or not (gate.depends_on_a and gate.depends_on_b)
        for side, operand, matters in sides:
            if matters:
                read.add(operand)
                edges.append(f"  {_node(circuit, operand)} -> g{g}{'' if plain else f' [label={side}]'};")
    inputs = [f"  x{i} [shape=box, label={quoted(names[i])}];" for i in range(circuit.inputs) if i in read]
    scores, readout = _scores(circuit)
    comments = [f"  // {line}" for line in origin_lines(circuit)]
    lines = ["digraph circuit {", *comments, "  rankdir=LR;", *inputs, *nodes, *scores, *edges, *readout, "}", ""]
    return "\n".join(lines)


def _scores(circuit: Circuit) -> tuple[list[str], list[str]]:
    """Score nodes, and the edges that lead to them."""
    readout, names = circuit.readout, class_names(circuit)
    sums = None if readout.float_terms() is not None else readout.sums()
    read = {i: list(range(readout.classes)) for i in range(readout.outputs)}
    labels = [f"{name} (weighted)" for name in names]
    if sums is not None:
        read = {i: [] for i in range(readout.outputs)}
        for i, k in zip(sums.outputs.tolist(), sums.sums.tolist(), strict=True):
            read[i].append(k)
        if sums.counts:
            labels = [f"{name} ({offset:+})" for name, offset in zip(names, sums.offsets.tolist(), strict=True)]
        if readout.gives_value:
            total = f"{sums.offsets[0]} + {'sum' if sums.counts else 'weighted sum'}"
            labels = [f"{sums.intercept:.6g} + {sums.scale:.6g} * ({total})"]
    nodes = [f"  s{k} [shape=hexagon, label={quoted(label)}];" for k, label in enumerate(labels)]
    edges = []
    for i, output in enumerate(circuit.outputs.tolist()):
        edges += [f"  {_node(circuit, output)} -> s{k};" for k in read[i]]
    return nodes, edges


def _node(circuit: Circuit, node: int) -> str:
    return f"x{node}" if node < circuit.inputs else f"g{node - circuit.inputs}"
