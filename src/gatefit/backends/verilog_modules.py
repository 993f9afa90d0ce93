"""A circuit as a hierarchy of Verilog modules, so that a tool can say what each part costs.

    MODULE_encoder    features -> bits      comparators (only where features are read)
    MODULE_gates      x -> y                the gates
    MODULE_popcount   y -> sums             one sum a class, by ``+``
    MODULE_argmax     sums -> class_index   a tree of comparisons (and the scores, delayed alike)
    MODULE            the parts, connected; its ports are those of ``to_verilog``

Function, ports and latency are those of the flat module; registers lie inside the part whose values they hold.
"""

from dataclasses import dataclass

import numpy as np

from gatefit.backends.names import VERILOG_KEYWORDS, require_identifier
from gatefit.backends.verilog import Port, comment_lines, concatenation, gate_levels, integer_sums, write_gates
from gatefit.backends.verilog import write_inputs as write_encoder
from gatefit.backends.verilog_pipeline import Body, Pipeline, plan_pipeline
from gatefit.backends.verilog_readout import Sums, write_argmax, write_sum
from gatefit.circuit.ir import Circuit
from gatefit.circuit.readout import Affine


@dataclass(frozen=True)
class Modules:
    """The text of all modules, and what a wrapper must know to instantiate the top one."""

    text: str
    module: str
    parts: tuple[str, ...]
    """The parts that there are: encoder, gates, popcount, argmax; part p is the module MODULE_p."""
    inputs: Port
    outputs: tuple[Port, ...]
    pipeline: Pipeline

    @property
    def clocked(self) -> bool:
        """Whether the top module has a port ``clk``."""
        return self.pipeline.latency > 0


def to_verilog_modules(
    circuit: Circuit,
    module: str = "gatefit",
    pipeline_stages: int = 0,
    feature_bits: int = 0,
    scores: bool = True,
    counter: int = 0,
) -> Modules:
    """The circuit as one module a part.

    Arguments as for ``to_verilog``; ``scores=False`` leaves the class number as the only output, and ``counter`` is
    3 or 6 for sums by trees of counters (``verilog_counters``), 0 for sums by ``+`` alone.
    """
    require_identifier(module, VERILOG_KEYWORDS, "Verilog")
    if not circuit.outputs.size:
        raise ValueError("the circuit has no output bits, so there is nothing to count")
    sums = integer_sums(circuit)
    levels = gate_levels(circuit)
    pipeline = plan_stages(circuit, pipeline_stages)
    vector = Port("input", "x", circuit.inputs)
    written = [_Part("gates", vector, _gates(circuit, levels, pipeline))]
    inputs = vector
    if feature_bits:
        body = Body()
        (inputs,) = write_encoder(body, circuit, False, feature_bits)
        body.lines.append("    assign bits = x;")
        written.insert(0, _Part("encoder", inputs, (body, (Port("output", "bits", circuit.inputs),))))
    regression = isinstance(circuit.readout, Affine)
    written.append(_Part("popcount", Port("input", "y", circuit.outputs.size), _popcount(sums, pipeline, counter)))
    if not regression:
        total = Port("input", "sums", sums.classes * sums.width)
        written.append(_Part("argmax", total, _argmax(sums, pipeline, scores)))
    outputs = (Port("output", "sum", sums.width, sums.signed),) if regression else written[-1].outputs
    text = [*comment_lines(circuit, pipeline, sums), ""]
    text += [part.text(module) for part in written]
    text.append(_top(module, written, inputs, outputs, pipeline))
    return Modules("\n".join(text), module, tuple(part.name for part in written), inputs, outputs, pipeline)


def plan_stages(circuit: Circuit, stages: int | None) -> Pipeline:
    """Where ``stages`` registers go; None for a stage per about six gate delays, the output registers included."""
    sums = integer_sums(circuit)
    gates = int(gate_levels(circuit)[circuit.outputs].max(initial=0))
    comparisons = 0 if isinstance(circuit.readout, Affine) else sums.comparison_levels
    if stages is None:
        delay = plan_pipeline(0, gates, sums.adder_levels, comparisons).delay
        stages = min(gates + sums.adder_levels + comparisons, max(1, round(delay / 6)))
    return plan_pipeline(stages, gates, sums.adder_levels, comparisons)


@dataclass(frozen=True)
class _Part:
    name: str
    inputs: Port
    content: tuple[Body, tuple[Port, ...]]

    @property
    def outputs(self) -> tuple[Port, ...]:
        return self.content[1]

    @property
    def clocked(self) -> bool:
        return bool(self.content[0].clocked)

    def text(self, module: str) -> str:
        ports = [*[Port("input", "clk", 1)] * self.clocked, self.inputs, *self.outputs]
        return _module(f"{module}_{self.name}", ports, self.content[0].text())


def _gates(circuit: Circuit, levels: np.ndarray, pipeline: Pipeline) -> tuple[Body, tuple[Port, ...]]:
    body = Body()
    terms = write_gates(body, circuit, levels, pipeline)
    body.lines.append(f"    assign y = {concatenation(terms)};")
    return body, (Port("output", "y", len(terms)),)


def _popcount(sums: Sums, pipeline: Pipeline, counter: int) -> tuple[Body, tuple[Port, ...]]:
    body = Body()
    count = sum(map(len, sums.members))
    bits = ["y"] if count == 1 else [f"y[{i}]" for i in range(count)]
    totals = [write_sum(body, sums, k, [bits[i] for i in own], pipeline, counter) for k, own in enumerate(sums.members)]
    body.lines.append(f"    assign sums = {concatenation(totals)};")
    return body, (Port("output", "sums", sums.classes * sums.width),)


def _argmax(sums: Sums, pipeline: Pipeline, scores: bool) -> tuple[Body, tuple[Port, ...]]:
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
    body.lines.append(f"    assign class_index = {index};")
    return body, tuple(ports)


def _top(module: str, parts: list[_Part], inputs: Port, outputs: tuple[Port, ...], pipeline: Pipeline) -> str:
    lines = [f"    localparam LATENCY = {pipeline.latency};"]
    last = parts[-1]
    for part, following in zip(parts, [*parts[1:], None], strict=True):
        connections = [".clk(clk)"] * part.clocked + [f".{part.inputs.name}({part.inputs.name})"]
        if following is not None:
            (port,) = part.outputs
            lines.append(f"    wire {_range(port)}{following.inputs.name};")
            connections.append(f".{port.name}({following.inputs.name})")
        else:
            connections += [f".{own.name}({port.name})" for own, port in zip(last.outputs, outputs, strict=True)]
        lines.append(f"    {module}_{part.name} {part.name} ({', '.join(connections)});")
    ports = [*[Port("input", "clk", 1)] * (pipeline.latency > 0), inputs, *outputs]
    return _module(module, ports, "\n".join(lines))


def _range(port: Port) -> str:
    return f"[{port.width - 1}:0] " if port.width > 1 else ""


def _module(name: str, ports: list[Port], body: str) -> str:
    listed = ",\n".join(f"    {port}" for port in ports)
    return f"module {name} (\n{listed}\n);\n{body}\nendmodule\n"
