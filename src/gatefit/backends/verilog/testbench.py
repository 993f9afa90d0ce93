"""A self-checking testbench for the exported Verilog: applies vectors, compares every output, says PASS or FAIL.

    cycle t            vector t is applied
    cycle t + LATENCY  its answers are compared with what ``simulate`` says

It is plain Verilog-2001, for iverilog or any other simulator.
"""

import numpy as np
from jaxtyping import Bool

from gatefit.backends.names import VERILOG_KEYWORDS, bit_names, require_identifier
from gatefit.backends.verilog.modules import port_names
from gatefit.backends.verilog.readout import sum_format
from gatefit.circuit import simulate
from gatefit.circuit.ir import Circuit

_TEMPLATE = """\
`timescale 1ns / 1ps
module @MODULE_tb;
    reg clk = 1'b0;
    reg [@INPUTS:0] x;
    reg [@INPUTS:0] stimulus [0:@LAST];
@DECLARATIONS
    integer t, failures;

    @MODULE dut (@CONNECTIONS);

    initial begin
@VALUES
        failures = 0;
        for (t = 0; t < @VECTORS + @LATENCY; t = t + 1) begin
            if (t < @VECTORS) x = stimulus[t];
            #1;
            if (t >= @LATENCY) begin
@CHECKS
            end
            #1 clk = 1'b1;
            #1 clk = 1'b0;
        end
        if (failures == 0) $display("PASS: @VECTORS vectors");
        else $display("FAIL: %0d of @VECTORS vectors and outputs differ", failures);
        $finish;
    end
endmodule
"""


def to_testbench(
    circuit: Circuit,
    vectors: Bool[np.ndarray, "vectors inputs"],
    module: str = "gatefit",
    pipeline_stages: int = 0,
    outputs: bool = False,
    readout: bool = True,
    named_ports: bool = False,
) -> str:
    """A testbench for ``to_verilog`` with the same arguments; ``vectors`` are input bits."""
    require_identifier(module, VERILOG_KEYWORDS, "Verilog")
    bits = simulate.check_bits(circuit, vectors)
    if not len(bits):
        raise ValueError("a testbench needs at least one vector")
    values = simulate.simulate(circuit, bits)
    if not readout:
        expected = {"y": [_bits(row) for row in values]}
        widths = {"y": circuit.outputs.size}
    else:
        expected, widths = _answers(circuit, values)
        if outputs:
            expected["y"], widths["y"] = [_bits(row) for row in values], circuit.outputs.size
    if named_ports:
        names = port_names(bit_names(circuit))
        inputs = [f".{name}(x[{i}])" for i, name in enumerate(names)]
    else:
        inputs = [".x(x)"]
    connections = [".clk(clk)"] * (pipeline_stages > 0) + inputs + [f".{port}({port})" for port in expected]
    declarations, checks = [], []
    assignments = [f"stimulus[{t}] = {circuit.inputs}'h{_bits(row):x};" for t, row in enumerate(bits)]
    for port, answers in expected.items():
        width = widths[port]
        declarations += [f"wire [{width - 1}:0] {port};", f"reg [{width - 1}:0] {port}_expected [0:{len(bits) - 1}];"]
        assignments += [f"{port}_expected[{t}] = {width}'h{answer:x};" for t, answer in enumerate(answers)]
        # !== also notices unknown values.
        checks.append(f"if ({port} !== {port}_expected[t - {pipeline_stages}]) failures = failures + 1;")
    replacements = {
        "@MODULE": module,
        "@INPUTS": str(circuit.inputs - 1),
        "@LAST": str(len(bits) - 1),
        "@VECTORS": str(len(bits)),
        "@LATENCY": str(pipeline_stages),
        "@DECLARATIONS": "\n".join(f"    {line}" for line in declarations),
        "@CONNECTIONS": ", ".join(connections),
        "@VALUES": "\n".join(f"        {line}" for line in assignments),
        "@CHECKS": "\n".join(f"                {line}" for line in checks),
    }
    text = _TEMPLATE
    for key, value in replacements.items():
        text = text.replace(key, value)
    return text


def _answers(circuit: Circuit, values: np.ndarray) -> tuple[dict[str, list[int]], dict[str, int]]:
    """What every readout port must show, as unsigned numbers of its width."""
    if circuit.readout.float_terms() is not None:
        raise ValueError("a learned linear readout has no Verilog; use readout=False")
    whole = circuit.readout.sums_for("the Verilog export")
    sums, totals = sum_format(whole), whole.totals(values).tolist()
    modulus = 2**sums.width
    if circuit.readout.gives_value:
        return {"sum": [total % modulus for (total,) in totals]}, {"sum": sums.width}
    packed = [sum((score % modulus) << (sums.width * k) for k, score in enumerate(row)) for row in totals]
    classes = [row.index(max(row)) for row in totals]
    widths = {"scores": sums.width * sums.classes, "class_index": sums.index_width}
    return {"scores": packed, "class_index": classes}, widths


def _bits(row: np.ndarray) -> int:
    """A row of bits as a number, bit i from column i."""
    return int.from_bytes(np.packbits(row, bitorder="little").tobytes(), "little")
