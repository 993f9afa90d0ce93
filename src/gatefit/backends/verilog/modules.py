"""A circuit as synthesizable Verilog-2001: gates, group sums and argmax, combinational or pipelined.

    input  x[inputs-1:0]                    or one port per bit, or integer features that are compared inside
    output y[outputs-1:0]                   the gates' outputs, if asked for
    output scores[classes*width-1:0]        class k in bits [k*width +: width]; a regression has ``sum`` instead
    output class_index                      the first class with the largest score

With ``pipeline_stages`` registers on every path a new sample is accepted every clock cycle, and its answer is there
LATENCY cycles later. The text is a hierarchy of modules, so that a tool can say what each part costs:

    MODULE_encoder    features -> bits      comparators of unsigned integers (only where features are read)
    MODULE_gates      x -> y                one wire a gate that matters
    MODULE_popcount   y -> sums             one sum a class, by counters
    MODULE_argmax     sums -> class_index   a tree of comparisons (and the scores, delayed alike)
    MODULE            the parts, connected

Registers lie inside the part whose values they hold. What a module is given and does not read is read once, by name, so
that linters know it is meant: ``verilator --lint-only -Wall`` finds nothing to say.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from gatefit.backends.comparators import require_carried, verilog_comparators
from gatefit.backends.names import (
    VERILOG_KEYWORDS,
    bit_names,
    comment_text,
    given_names,
    identifiers,
    require_identifier,
)
from gatefit.backends.verilog.pipeline import Body, Pipeline, plan_pipeline
from gatefit.backends.verilog.readout import SumFormat, sum_format, write_argmax, write_sum
from gatefit.circuit.ir import Circuit
from gatefit.circuit.provenance import origin_lines
from gatefit.circuit.statistics import depth, fan_out, levels
from gatefit.encoders import Encoder
from gatefit.gates import Gate


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


_CLOCK: Final = Port("input", "clk", 1)


@dataclass(frozen=True)
class Modules:
    """The text of all modules, and what a wrapper must know to instantiate the top one."""

    text: str
    module: str
    parts: tuple[str, ...]
    """The parts that there are: encoder, gates, popcount, argmax; part p is the module MODULE_p."""
    inputs: Port
    """All inputs as one vector; with named ports, the net that joins them."""
    outputs: tuple[Port, ...]
    pipeline: Pipeline

    @property
    def clocked(self) -> bool:
        """Whether the top module has a port ``clk``."""
        return self.pipeline.latency > 0


def to_verilog(
    circuit: Circuit,
    module: str = "gatefit",
    pipeline_stages: int = 0,
    outputs: bool = False,
    readout: bool = True,
    named_ports: bool = False,
    feature_bits: int = 0,
    counter: int = 3,
) -> str:
    """The circuit as a Verilog module, and before it the modules that are its parts.

    Arguments:
        module: its name; a part's is MODULE_part.
        pipeline_stages: registers on every path from inputs to outputs; 0 for a combinational module.
        outputs: add the port ``y`` with the gates' outputs.
        readout: write scores and class; without it the module has ``y`` only.
        named_ports: one input port per bit (or feature), named after it, instead of one vector.
        feature_bits: read features as unsigned integers of this many bits (8 for images) and compare them with the
            encoder's thresholds inside; 0 to read bits. Features that such integers do not carry are refused.
        counter: bits that one counter of the sums takes: 3 for tables of up to 4 inputs, 6 for tables of 6.
    """
    return to_verilog_modules(
        circuit,
        module,
        pipeline_stages,
        feature_bits,
        counter=counter,
        outputs=outputs,
        readout=readout,
        named_ports=named_ports,
    ).text


def to_verilog_modules(
    circuit: Circuit,
    module: str = "gatefit",
    pipeline_stages: int = 0,
    feature_bits: int = 0,
    scores: bool = True,
    counter: int = 3,
    *,
    carries: bool = False,
    outputs: bool = False,
    readout: bool = True,
    named_ports: bool = False,
) -> Modules:
    """The circuit as one module a part.

    Arguments as for ``to_verilog``; ``scores=False`` leaves the class number as the readout's only output, and
    ``carries`` writes full adders as additions, for devices with carry chains beside tables of 6 inputs.
    """
    require_identifier(module, VERILOG_KEYWORDS, "Verilog")
    sums = integer_sums(circuit) if readout else None
    if not circuit.outputs.size and (outputs or sums is None):
        raise ValueError("the circuit has no output bits, so the module cannot have a port y")
    pipeline = _plan(circuit, sums, pipeline_stages)
    written: list[_Part] = []
    vector = Port("input", "x", circuit.inputs)
    if feature_bits:
        encoder = require_carried(circuit.encoder, feature_bits)
        body = Body()
        vector, bits = write_encoder(body, encoder, feature_bits)
        written.append(_Part("encoder", vector, (body, (bits,))))
    written.append(_Part("gates", Port("input", "x", circuit.inputs), _gates(circuit, pipeline)))
    if not circuit.outputs.size:
        written = []  # only constants are left, and no part would read the inputs
    if sums is not None:
        y = Port("input", "y", circuit.outputs.size) if circuit.outputs.size else None
        written.append(_Part("popcount", y, _popcount(circuit.outputs.size, sums, pipeline, counter, carries)))
        if not circuit.readout.gives_value:
            total = Port("input", "sums", sums.classes * sums.width)
            written.append(_Part("argmax", total, _argmax(sums, pipeline, scores)))
    top = _Top(pipeline, written, vector, outputs or sums is None)
    if named_ports:
        names = circuit.encoder.feature_names if feature_bits and circuit.encoder is not None else bit_names(circuit)
        top.join(port_names(names), max(1, feature_bits))
    ports = top.connect(module, sums)
    text = [
        *comment_lines(circuit, pipeline, sums),
        "// Its parts are modules of this one file.",
        "// verilator lint_off DECLFILENAME",
        "",
        *(part.text(module) for part in written),
        _module(module, [*top.inputs, *ports], top.body.text()),
    ]
    return Modules("\n".join(text), module, tuple(part.name for part in written), vector, tuple(ports), pipeline)


def plan_stages(circuit: Circuit, stages: int | None) -> Pipeline:
    """Where ``stages`` registers go; None for a stage per about six gate delays, the output registers included."""
    sums = integer_sums(circuit)
    whole = _plan(circuit, sums, 0)
    if stages is None:
        steps = whole.gate_levels + whole.adder_levels + whole.comparison_levels
        stages = min(steps, max(1, round(whole.delay / 6)))
    return _plan(circuit, sums, stages)


def _plan(circuit: Circuit, sums: SumFormat | None, stages: int) -> Pipeline:
    gates = depth(circuit)
    comparisons = sums.comparison_levels if sums and not circuit.readout.gives_value else 0
    return plan_pipeline(stages, gates, sums.adder_levels if sums else 0, comparisons)


@dataclass(frozen=True)
class _Part:
    name: str
    inputs: Port | None
    content: tuple[Body, tuple[Port, ...]]

    @property
    def outputs(self) -> tuple[Port, ...]:
        return self.content[1]

    @property
    def clocked(self) -> bool:
        return bool(self.content[0].clocked)

    def text(self, module: str) -> str:
        inputs = [] if self.inputs is None else [self.inputs]
        ports = [*[_CLOCK] * self.clocked, *inputs, *self.outputs]
        return _module(f"{module}_{self.name}", ports, self.content[0].text())


def _gates(circuit: Circuit, pipeline: Pipeline) -> tuple[Body, tuple[Port, ...]]:
    body = Body()
    terms = write_gates(body, circuit, levels(circuit), pipeline)
    body.lines.append(f"    assign y = {concatenation(terms)};")
    return body, (Port("output", "y", len(terms)),)


def _popcount(
    outputs: int, sums: SumFormat, pipeline: Pipeline, counter: int, carries: bool
) -> tuple[Body, tuple[Port, ...]]:
    body = Body()
    bits = ["y"] if outputs == 1 else [f"y[{i}]" for i in range(outputs)]
    read = {i for own in sums.members for i, weight in own if weight}
    write_unused(body, [bit for i, bit in enumerate(bits) if i not in read])
    totals = [write_sum(body, sums, k, bits, pipeline, counter, carries=carries) for k in range(sums.classes)]
    body.lines.append(f"    assign sums = {concatenation(totals)};")
    return body, (Port("output", "sums", sums.classes * sums.width),)


def _argmax(sums: SumFormat, pipeline: Pipeline, scores: bool) -> tuple[Body, tuple[Port, ...]]:
    body = Body()
    whole = sums.classes * sums.width
    entries = []
    for k in range(sums.classes):
        part = f"sums[{k * sums.width} +: {sums.width}]" if whole > 1 else "sums"
        entries.append(body.wire(f"score_{k}", part, sums.width, sums.signed))
    index = write_argmax(body, sums, entries, pipeline)
    ports = [Port("output", "class_index", sums.index_width)]
    if scores:
        cycles = len(pipeline.comparison_cuts)
        late = [body.delayed(score, cycles, sums.width, sums.signed) for score in entries]
        body.lines.append(f"    assign scores = {concatenation(late)};")
        ports.insert(0, Port("output", "scores", whole))
    elif sums.classes == 1:
        write_unused(body, entries)
    body.lines.append(f"    assign class_index = {index};")
    return body, tuple(ports)


class _Top:
    """The statements of the top module: nets from part to part, one instance a part."""

    def __init__(self, pipeline: Pipeline, parts: list[_Part], vector: Port, outputs: bool) -> None:
        self.pipeline, self.parts, self.vector, self.outputs = pipeline, parts, vector, outputs
        self.body = Body()
        # For benches and readers: nothing in here needs the number.
        self.body.lines = [
            "    // verilator lint_off UNUSED",
            f"    localparam LATENCY = {pipeline.latency};",
            "    // verilator lint_on UNUSED",
        ]
        self.inputs = [*[_CLOCK] * (pipeline.latency > 0), vector]

    def join(self, names: tuple[str, ...], width: int) -> None:
        """Take the inputs as ports of their own, the first lowest in the vector."""
        self.inputs = [*self.inputs[:-1], *(Port("input", name, width) for name in names)]
        self.body.wire(self.vector.name, concatenation(list(names)), self.vector.width)

    def connect(self, module: str, sums: SumFormat | None) -> list[Port]:
        """Write the instances; returns the output ports."""
        ports: list[Port] = []
        for part, following in zip(self.parts, [*self.parts[1:], None], strict=True):
            connections = [".clk(clk)"] * part.clocked
            if part.inputs is not None:
                connections.append(f".{part.inputs.name}({self._net(part.inputs.name)})")
            if following is not None and following.inputs is not None:
                (port,) = part.outputs
                net = self._net(following.inputs.name)
                self.body.lines.append(f"    wire {_range(port)}{net};")
                connections.append(f".{port.name}({net})")
            elif part.name == "gates":
                self.body.lines.append(f"    wire {_range(part.outputs[0])}{self._net('y')};")
                connections.append(f".y({self._net('y')})")
            else:
                assert sums is not None
                regression = part.name == "popcount"
                ports = [Port("output", "sum", sums.width, sums.signed)] if regression else list(part.outputs)
                connections += [f".{own.name}({port.name})" for own, port in zip(part.outputs, ports, strict=True)]
            self.body.lines.append(f"    {module}_{part.name} {part.name} ({', '.join(connections)});")
        return [*self._gate_outputs(), *ports]

    def _net(self, name: str) -> str:
        # The port y may come later than the gates' outputs, so these have a net of their own.
        return "gates_y" if name == "y" and self.outputs else name

    def _gate_outputs(self) -> list[Port]:
        unread = [] if any(part.inputs == self.vector for part in self.parts) else [self.vector.name]
        if self.outputs:
            (port,) = next(part for part in self.parts if part.name == "gates").outputs
            rest = self.pipeline.latency - self.pipeline.gate_stages
            self.body.lines.append(f"    assign y = {self.body.delayed('gates_y', rest, port.width)};")
        if self.pipeline.latency and not self.body.clocked and not any(part.clocked for part in self.parts):
            unread.append("clk")
        write_unused(self.body, unread)
        return [port] if self.outputs else []


def _range(port: Port) -> str:
    return f"[{port.width - 1}:0] " if port.width > 1 else ""


def _module(name: str, ports: list[Port], body: str) -> str:
    listed = ",\n".join(f"    {port}" for port in ports)
    return f"module {name} (\n{listed}\n);\n{body}\nendmodule\n"


def port_names(names: tuple[str, ...]) -> tuple[str, ...]:
    """One port name per bit or feature; nothing else in the module starts with ``in_``."""
    return identifiers([f"in {name}" for name in names], VERILOG_KEYWORDS)


def integer_sums(circuit: Circuit) -> SumFormat:
    """What the readout adds; one that adds floats is refused."""
    if circuit.readout.float_terms() is not None:
        raise ValueError(
            "a learned linear readout needs floating-point arithmetic, which Verilog export does not write; "
            "train with the GroupSum readout, or use readout=False for a module that ends at the gates' outputs"
        )
    return sum_format(circuit.readout.sums_for("the Verilog export"))


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
    live = (fan_out(circuit) > 0).tolist()
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


def comment_lines(circuit: Circuit, pipeline: Pipeline, sums: SumFormat | None) -> list[str]:
    """What the module is, with the names of inputs and classes; they are data, and stay inside the comment."""
    lines = [
        f"A logic gate network, written by gatefit: {circuit.inputs} input bits, {circuit.gates.size} gates.",
        *origin_lines(circuit),
        f"Latency: {pipeline.latency} clock cycles" + ("." if pipeline.latency else " (combinational)."),
    ]
    whole = circuit.readout.sums() if circuit.readout.gives_value else None
    if whole is not None:
        lines.append(f"value = {whole.intercept!r} + {whole.scale!r} * sum")
    elif sums:
        kind = "signed, two's complement" if sums.signed else "unsigned"
        lines.append(f"scores: {sums.width} bits a class ({kind}), class 0 lowest.")
    lines += [f"input {i}: {comment_text(name)}" for i, name in enumerate(given_names(circuit))]
    lines += [f"class {k}: {comment_text(name)}" for k, name in enumerate(circuit.class_names)]
    return [f"// {line}" for line in lines]


def concatenation(values: list[str]) -> str:
    """A vector whose bit (or part) 0 is the first value."""
    return "{" + ",\n        ".join(reversed(values)) + "}"
