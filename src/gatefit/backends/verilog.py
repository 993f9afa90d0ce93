"""A circuit as synthesizable Verilog-2001: gates, group sums and argmax, combinational or pipelined.

    input  x[inputs-1:0]                    or one port per bit, or integer features that are compared inside
    output scores[classes*width-1:0]        class k in bits [k*width +: width]; a regression has ``sum`` instead
    output class_index                      the first class with the largest score
    output y[outputs-1:0]                   the gates' outputs, if asked for

With ``pipeline_stages`` registers on every path a new sample is accepted every clock cycle, and its answer is there
LATENCY cycles later.
"""

from dataclasses import dataclass

import numpy as np

from gatefit.backends.c_table import live_nodes
from gatefit.backends.comparators import NotNumeric, verilog_comparators
from gatefit.backends.names import (
    VERILOG_KEYWORDS,
    bit_names,
    comment_text,
    given_names,
    identifiers,
    require_identifier,
)
from gatefit.backends.verilog_pipeline import Body, Pipeline, plan_pipeline
from gatefit.backends.verilog_readout import Sums, readout_sums, write_argmax, write_sum
from gatefit.circuit.ir import Circuit
from gatefit.circuit.readout import Affine, Linear
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


def to_verilog(
    circuit: Circuit,
    module: str = "gatefit",
    pipeline_stages: int = 0,
    outputs: bool = False,
    readout: bool = True,
    named_ports: bool = False,
    feature_bits: int = 0,
) -> str:
    """The circuit as one Verilog module.

    Arguments:
        module: its name.
        pipeline_stages: registers on every path from inputs to outputs; 0 for a combinational module.
        outputs: add the port ``y`` with the gates' outputs.
        readout: write scores and class; without it the module has ``y`` only.
        named_ports: one input port per bit (or feature), named after it, instead of one vector.
        feature_bits: read features as unsigned integers of this many bits (8 for images) and compare them with the
            encoder's thresholds inside; 0 to read bits. Scale other numbers to integers first, as in training.
    """
    require_identifier(module, VERILOG_KEYWORDS, "Verilog")
    sums = integer_sums(circuit) if readout else None
    outputs = outputs or sums is None
    if outputs and not circuit.outputs.size:
        raise ValueError("the circuit has no output bits, so the module cannot have a port y")
    levels = gate_levels(circuit)
    pipeline = plan_pipeline(
        pipeline_stages,
        int(levels[circuit.outputs].max(initial=0)),
        sums.adder_levels if sums else 0,
        sums.comparison_levels if sums and not isinstance(circuit.readout, Affine) else 0,
    )
    body = Body()
    input_ports = write_inputs(body, circuit, named_ports, feature_bits)
    terms = write_gates(body, circuit, levels, pipeline)
    ports = [Port("input", "clk", 1)] * (pipeline_stages > 0) + input_ports
    if outputs:
        rest = pipeline.latency - pipeline.gate_stages
        values = [body.delayed(term, rest) for term in terms]
        ports.append(Port("output", "y", len(values)))
        body.lines.append(f"    assign y = {concatenation(values)};")
    if sums:
        ports += _write_readout(body, circuit, sums, terms, pipeline)
    lines = [
        *comment_lines(circuit, pipeline, sums),
        f"module {module} (",
        ",\n".join(f"    {port}" for port in ports),
        ");",
        f"    localparam LATENCY = {pipeline.latency};",
        body.text(),
        "endmodule",
        "",
    ]
    return "\n".join(lines)


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


def write_inputs(body: Body, circuit: Circuit, named: bool, feature_bits: int) -> list[Port]:
    """The input ports, and where features are compared inside, the comparisons that make the bits ``x``."""
    if not feature_bits:
        if not named:
            return [Port("input", "x", circuit.inputs)]
        names = port_names(bit_names(circuit))
        body.lines.append(f"    wire [{circuit.inputs - 1}:0] x = {concatenation(list(names))};")
        return [Port("input", name, 1) for name in names]
    if circuit.encoder is None:
        raise ValueError("feature_bits needs the circuit's encoder, and it was saved without one; use feature_bits=0")
    if not 1 <= feature_bits <= 64:
        raise ValueError(f"feature_bits must be from 1 to 64, or 0 to read bits, got {feature_bits}")
    try:
        rules = verilog_comparators(circuit.encoder, feature_bits)
    except NotNumeric as reason:
        raise ValueError(f"{reason}; use feature_bits=0 and encode outside the module") from None
    features = circuit.encoder.features
    if named:
        names = port_names(circuit.encoder.feature_names)
        ports = [Port("input", name, feature_bits) for name in names]
    else:
        names = tuple(f"features[{feature_bits * i} +: {feature_bits}]" for i in range(features))
        ports = [Port("input", "features", features * feature_bits)]
    for i, name in enumerate(names):
        body.wire(f"f{i}", name if feature_bits * features > 1 or named else "features", feature_bits)
    body.lines.append(f"    wire [{circuit.inputs - 1}:0] x;")
    body.lines += [f"    assign x[{i}] = {rule};" for i, rule in enumerate(rules)]
    return ports


def write_gates(body: Body, circuit: Circuit, levels: np.ndarray, pipeline: Pipeline) -> list[str]:
    """One wire per gate that matters; returns the output bits as they enter the readout."""
    x = "x" if circuit.inputs == 1 else "x[{}]"
    names = [x.format(i) for i in range(circuit.inputs)]
    stages = [pipeline.stage_of_gate(level) for level in levels.tolist()]
    live = live_nodes(circuit).tolist()

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


def _write_readout(body: Body, circuit: Circuit, sums: Sums, terms: list[str], pipeline: Pipeline) -> list[Port]:
    scores = [write_sum(body, sums, k, [terms[i] for i in outputs], pipeline) for k, outputs in enumerate(sums.members)]
    if isinstance(circuit.readout, Affine):
        body.lines.append(f"    assign sum = {scores[0]};")
        return [Port("output", "sum", sums.width, sums.signed)]
    index = write_argmax(body, sums, scores, pipeline)
    late = [body.delayed(score, len(pipeline.comparison_cuts), sums.width, sums.signed) for score in scores]
    body.lines.append(f"    assign scores = {concatenation(late)};")
    body.lines.append(f"    assign class_index = {index};")
    return [
        Port("output", "scores", sums.classes * sums.width),
        Port("output", "class_index", sums.index_width),
    ]


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
