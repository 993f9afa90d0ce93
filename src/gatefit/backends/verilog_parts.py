"""The pieces of exported Verilog: ports, the comparisons of features, the gates, and what the file says of itself.

encoder    x[i] = features[j] > bound        unsigned integers of a fixed number of bits
gates      one wire a gate that matters, registers where the pipeline cuts
unused     what a module is given and does not read is read once, by name, so that linters know it is meant
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gatefit.backends.c_table import live_nodes
from gatefit.backends.comparators import verilog_comparators
from gatefit.backends.names import VERILOG_KEYWORDS, comment_text, given_names, identifiers
from gatefit.backends.verilog_pipeline import Body, Pipeline
from gatefit.backends.verilog_readout import Sums, readout_sums
from gatefit.circuit.ir import Circuit
from gatefit.circuit.readout import Affine, Linear
from gatefit.encoders import Encoder
from gatefit.gates import DEPENDS_ON_A, DEPENDS_ON_B, Gate


@dataclass(frozen=True)
class Port:
    """One port of the module."""

    direction: str
    name: str
    width: int
    signed: bool = False

    def __str__(self) -> str:
        kind = "signed " if self.signed else ""
        return f"{self.direction} wire {kind}" + (f"[{self.width - 1}:0] " if self.width > 1 else "") + self.name


def port_names(names: tuple[str, ...]) -> tuple[str, ...]:
    """One port name per bit or feature; nothing else in the module starts with ``in_``."""
    return identifiers([f"in {name}" for name in names], VERILOG_KEYWORDS)


def gate_levels(circuit: Circuit) -> np.ndarray:
    """Two-input gates on the longest path to each node; wires, inverters and constants are free."""
    levels = np.zeros(circuit.nodes, dtype=np.int64)
    reads_a, reads_b = DEPENDS_ON_A[circuit.gates].tolist(), DEPENDS_ON_B[circuit.gates].tolist()
    found = [0] * circuit.nodes
    for g, (a, b) in enumerate(circuit.operands.T.tolist()):
        level = max(found[a] if reads_a[g] else 0, found[b] if reads_b[g] else 0)
        found[circuit.inputs + g] = level + (reads_a[g] and reads_b[g])
    levels[:] = found
    return levels


def integer_sums(circuit: Circuit) -> Sums:
    """What the readout adds; a linear readout is refused."""
    if isinstance(circuit.readout, Linear):
        raise ValueError(
            "a learned linear readout needs floating-point arithmetic, which Verilog export does not write; "
            "train with the GroupSum readout, or use readout=False for a module that ends at the gates' outputs"
        )
    return readout_sums(circuit.readout)


def write_encoder(body: Body, encoder: Encoder, feature_bits: int) -> tuple[Port, Port]:
    """The comparisons that make ``bits`` of ``features``, and these two ports."""
    width = encoder.features * feature_bits
    rules = verilog_comparators(encoder, feature_bits)
    read = {rule.partition(" ")[0] for rule in rules}  # not the features whose rules are all constant
    unused = []
    for i in range(encoder.features):
        part = f"features[{feature_bits * i} +: {feature_bits}]" if width > 1 else "features"
        if f"f{i}" in read:
            body.wire(f"f{i}", part, feature_bits)
        else:
            unused.append(part)
    body.lines += [
        f"    assign {'bits' if len(rules) == 1 else f'bits[{i}]'} = {rule};" for i, rule in enumerate(rules)
    ]
    write_unused(body, unused)
    return Port("input", "features", width), Port("output", "bits", encoder.bits)


def write_unused(body: Body, values: Sequence[str]) -> None:
    """Read what nothing else reads; linters take ``unused`` in a name as said on purpose, tools remove it."""
    if values:
        body.lines.append(f"    wire unused = &{{1'b0, {', '.join(values)}}};")


def write_gates(body: Body, circuit: Circuit, levels: np.ndarray, pipeline: Pipeline) -> list[str]:
    """One wire per gate that matters; returns the output bits as they enter the readout."""
    x = "x" if circuit.inputs == 1 else "x[{}]"
    names = [x.format(i) for i in range(circuit.inputs)]
    stages = [pipeline.stage_of_gate(level) for level in levels.tolist()]
    live = live_nodes(circuit).tolist()
    write_unused(body, [name for name, read in zip(names, live, strict=False) if not read])

    def at(node: int, stage: int) -> str:
        return body.delayed(names[node], stage - stages[node])

    for g, (number, (a, b)) in enumerate(zip(circuit.gates.tolist(), circuit.operands.T.tolist(), strict=True)):
        gate, node = Gate(number), circuit.inputs + g
        if not live[node]:
            names.append("")
        elif gate in (Gate.FALSE, Gate.TRUE):
            names.append("1'b1" if gate is Gate.TRUE else "1'b0")
        else:
            first = at(a, stages[node]) if gate.depends_on_a else ""
            second = at(b, stages[node]) if gate.depends_on_b else ""
            names.append(body.wire(f"n{g}", gate.formula.format(a=first, b=second)))
    return [at(node, pipeline.gate_stages) for node in circuit.outputs.tolist()]


def comment_lines(circuit: Circuit, pipeline: Pipeline, sums: Sums | None) -> list[str]:
    """What the module is, with the names of inputs and classes; they are data, and stay inside the comment."""
    lines = [
        f"A logic gate network, written by gatefit: {circuit.inputs} input bits, {circuit.gates.size} gates.",
        f"Latency: {pipeline.latency} clock cycles" + ("." if pipeline.latency else " (combinational)."),
    ]
    if isinstance(circuit.readout, Affine):
        lines.append(f"value = {circuit.readout.intercept!r} + {circuit.readout.scale!r} * sum")
    elif sums:
        kind = "signed, two's complement" if sums.signed else "unsigned"
        lines.append(f"scores: {sums.width} bits a class ({kind}), class 0 lowest.")
    lines += [f"input {i}: {comment_text(name)}" for i, name in enumerate(given_names(circuit))]
    lines += [f"class {k}: {comment_text(name)}" for k, name in enumerate(circuit.class_names)]
    return [f"// {line}" for line in lines]


def concatenation(values: list[str]) -> str:
    """A vector whose bit (or part) 0 is the first value."""
    return "{" + ",\n        ".join(reversed(values)) + "}"
